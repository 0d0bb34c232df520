//! SVG plots over size or distance, one line for each contender, on logarithmic scales.

use std::error::Error;

use plotters::coord::ranged1d::ValueFormatter;
use plotters::prelude::*;

use super::contender;
use super::document::Plot;
use super::tables::engines;
use crate::row::Row;

const SIZE: (u32, u32) = (900, 480);

/// The content of a plot.
#[derive(Clone, Copy)]
pub(crate) struct Shown {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) work: &'static str,
    pub(crate) figure: &'static str,
    /// Divides the figure by the number of fingerprints.
    pub(crate) each: bool,
}

/// The points of one contender, each with its spread.
struct Line {
    name: String,
    points: Vec<(f64, [f64; 3])>,
}

/// Plots a figure over n; `None` without points.
pub(crate) fn over_size(rows: &[Row], shown: Shown) -> Result<Option<Plot>, Box<dyn Error>> {
    let fits = |row: &&Row| {
        row.work == shown.work
            && row.k.is_none_or(|k| k == 3)
            && matches!(row.kind.as_str(), "near" | "")
            && (row.threads == 1 || row.work != "batch")
    };
    let rows: Vec<&Row> = rows.iter().filter(fits).collect();
    draw(&lines(&rows, shown, |row| Some(row.n as f64)), shown, "fingerprints", true)
}

/// Plots a figure over k at one size; `None` without points.
pub(crate) fn over_distance(
    rows: &[Row],
    n: u64,
    shown: Shown,
) -> Result<Option<Plot>, Box<dyn Error>> {
    let fits = |row: &&Row| row.n == n && row.work == shown.work && row.kind == "near";
    let rows: Vec<&Row> = rows.iter().filter(fits).collect();
    draw(&lines(&rows, shown, |row| row.k.map(|k| k as f64)), shown, "distance k", false)
}

fn lines(rows: &[&Row], shown: Shown, at: impl Fn(&Row) -> Option<f64>) -> Vec<Line> {
    let point = |row: &&Row| {
        let by = if shown.each { row.n as f64 } else { 1.0 };
        let spread = row.spread(shown.figure)?.map(|value| value / by);
        // A logarithmic scale has no zero.
        Some((at(row)?, spread)).filter(|_| spread.iter().all(|value| *value > 0.0))
    };
    let line = |name: &str| {
        let points = rows.iter().filter(|row| row.engine == name).filter_map(point).collect();
        Line { name: name.to_owned(), points }
    };
    let all = engines(rows.iter().copied()).into_iter().map(line);
    all.filter(|line| !line.points.is_empty()).collect()
}

fn draw(
    lines: &[Line],
    shown: Shown,
    across: &str,
    logarithmic: bool,
) -> Result<Option<Plot>, Box<dyn Error>> {
    let points = || lines.iter().flat_map(|line| &line.points);
    if points().next().is_none() {
        return Ok(None);
    }
    let range = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::MAX, f64::MIN), |(least, most), v| (least.min(v), most.max(v)))
    };
    let (left, right) = range(&mut points().map(|(at, _)| *at));
    let (low, high) = range(&mut points().flat_map(|(_, spread)| *spread));
    let (low, high) = (low / 1.6, high * 1.6);
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&root);
        chart
            .caption(shown.title, ("sans-serif", 18))
            .margin(12)
            .margin_right(230)
            .x_label_area_size(42)
            .y_label_area_size(72);
        if logarithmic {
            let across_range = (left / 1.3..right * 1.3).log_scale();
            let mut chart = chart.build_cartesian_2d(across_range, (low..high).log_scale())?;
            mesh(&mut chart, shown.unit, across, 4, power)?;
            curves(&mut chart, lines)?;
        } else {
            let range = (left - 0.3)..(right + 0.3);
            let mut chart = chart.build_cartesian_2d(range, (low..high).log_scale())?;
            mesh(&mut chart, shown.unit, across, 17, |k| format!("{k:.0}"))?;
            curves(&mut chart, lines)?;
        }
        legend(&root, lines)?;
        root.present()?;
    }
    let title = format!("{} ({})", shown.title, shown.unit);
    Ok(Some(Plot { name: shown.name.to_owned(), title, svg }))
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Chart<'a, 'b, X, Y> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<X, Y>>;

fn mesh<X, Y>(
    chart: &mut Chart<'_, '_, X, Y>,
    unit: &str,
    across: &str,
    labels: usize,
    at: fn(f64) -> String,
) -> Result<(), Box<dyn Error>>
where
    X: Ranged<ValueType = f64> + ValueFormatter<f64>,
    Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    chart
        .configure_mesh()
        .x_desc(across)
        .y_desc(unit)
        .x_labels(labels)
        .x_label_formatter(&|value| at(*value))
        .y_label_formatter(&|value| power(*value))
        .light_line_style(RGBColor(238, 238, 238))
        .bold_line_style(RGBColor(210, 210, 210))
        .label_style(("sans-serif", 13))
        .draw()
        .map_err(|error| error.to_string())?;
    Ok(())
}

fn curves<X, Y>(chart: &mut Chart<'_, '_, X, Y>, lines: &[Line]) -> Result<(), Box<dyn Error>>
where
    X: Ranged<ValueType = f64>,
    Y: Ranged<ValueType = f64>,
{
    for line in lines {
        let color = color(&line.name);
        let points = || line.points.iter();
        let width = if line.name.starts_with("hamdex") { 3 } else { 1 };
        let style = color.stroke_width(width);
        let medians = points().map(|(at, [median, ..])| (*at, *median));
        let spreads =
            points().map(|(at, [_, a, b])| PathElement::new(vec![(*at, *a), (*at, *b)], style));
        let text = |error: DrawingAreaErrorKind<_>| error.to_string();
        chart.draw_series(LineSeries::new(medians.clone(), style)).map_err(text)?;
        chart.draw_series(spreads).map_err(text)?;
        chart.draw_series(medians.map(|at| Circle::new(at, 3, color.filled()))).map_err(text)?;
    }
    Ok(())
}

/// Draws the names beside the plot.
fn legend(root: &Area<'_>, lines: &[Line]) -> Result<(), Box<dyn Error>> {
    let left = i32::try_from(SIZE.0)? - 222;
    for (line, down) in lines.iter().zip((52..).step_by(22)) {
        let color = color(&line.name);
        let style = color.stroke_width(if line.name.starts_with("hamdex") { 3 } else { 1 });
        root.draw(&PathElement::new(vec![(left, down), (left + 22, down)], style))?;
        root.draw(&Circle::new((left + 11, down), 3, color.filled()))?;
        root.draw(&Text::new(line.name.clone(), (left + 28, down - 8), ("sans-serif", 14)))?;
    }
    Ok(())
}

/// Returns the colour of a contender: a warm one for ours, a cool one for peers.
///
/// It depends on the position among all contenders, so it is the same in all plots.
fn color(name: &str) -> RGBColor {
    const OURS: [RGBColor; 4] =
        [RGBColor(200, 30, 30), RGBColor(240, 120, 0), RGBColor(150, 0, 90), RGBColor(220, 170, 0)];
    const OTHERS: [RGBColor; 9] = [
        RGBColor(150, 150, 150),
        RGBColor(31, 119, 180),
        RGBColor(44, 140, 44),
        RGBColor(110, 80, 160),
        RGBColor(23, 170, 190),
        RGBColor(90, 90, 90),
        RGBColor(120, 140, 30),
        RGBColor(20, 60, 120),
        RGBColor(0, 110, 90),
    ];
    let is_hamdex = |name: &str| name.starts_with("hamdex");
    let alike = contender::all().filter(|c| is_hamdex(c.name) == is_hamdex(name));
    let number = alike.take_while(|c| c.name != name).count();
    let colors: &[RGBColor] = if is_hamdex(name) { &OURS } else { &OTHERS };
    colors.get(number % colors.len()).copied().unwrap_or(BLACK)
}

/// Formats a label, with large values in powers of ten.
fn power(value: f64) -> String {
    if value >= 10_000.0 {
        let exponent = value.log10().floor();
        let mantissa = value / 10_f64.powf(exponent);
        if mantissa < 1.05 { format!("1e{exponent}") } else { format!("{mantissa:.0}e{exponent}") }
    } else if value >= 1.0 {
        format!("{value:.0}")
    } else {
        let digits = format!("{value:.6}");
        digits.trim_end_matches('0').to_owned()
    }
}
