//! Drawing: charts become SVG, within a page or as a separate picture.

use std::io;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::labels;
use super::scale::Scale;
use super::{Chart, Kind, Mark, Point, Series};

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Plane<'a> = DrawingArea<SVGBackend<'a>, Cartesian2d<Scale, Scale>>;
type Drawn<T = ()> = Result<T, DrawingAreaErrorKind<io::Error>>;

const INK: RGBColor = RGBColor(0x1a, 0x1a, 0x1a);
const GRID: RGBColor = RGBColor(0xdd, 0xdd, 0xdd);
const EDGE: RGBColor = RGBColor(0x88, 0x88, 0x88);

/// Colours that stay apart for every kind of sight, after Okabe and Ito.
const COLORS: [RGBColor; 5] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0xe6, 0x9f, 0x00),
];

/// Sizes of letters, as the drawing crate counts them: 1.24 to a pixel.
const TITLE: f64 = 19.0;
const TEXT: f64 = 15.5;
const SMALL: f64 = 14.0;

/// Pixels of a letter of the small size, and of a line.
const LETTER: i32 = 7;
const LINE: i32 = 18;

/// Draws a chart for a page, which sets the colours of text and paper.
pub(crate) fn inline(chart: &Chart) -> Result<String, String> {
    svg(chart.size, &chart.title, |root| panel(root, chart))
}

/// Draws charts as one picture, `columns` in a row.
pub(crate) fn sheet(title: &str, charts: &[Chart], columns: usize) -> Result<String, String> {
    let columns = columns.clamp(1, charts.len().max(1));
    let rows = charts.len().div_ceil(columns);
    let most = |side: fn(&Chart) -> u32| charts.iter().map(side).max().unwrap_or(1);
    let times = |side: u32, count: usize| side * u32::try_from(count).unwrap_or(1);
    let size = (times(most(|c| c.size.0), columns), times(most(|c| c.size.1), rows));
    svg(size, title, |root| {
        root.fill(&WHITE)?;
        let areas = root.split_evenly((rows, columns));
        areas.iter().zip(charts).try_for_each(|(area, chart)| panel(area, chart))
    })
}

/// Draws a picture with a description in words.
fn svg(
    size: (u32, u32),
    title: &str,
    draw: impl FnOnce(&Area<'_>) -> Drawn,
) -> Result<String, String> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        draw(&root).and_then(|()| root.present()).map_err(|error| error.to_string())?;
    }
    let title = maud::html! { (title) }.into_string();
    Ok(svg.replacen("<svg ", &format!("<svg role=\"img\" aria-label=\"{title}\" "), 1))
}

fn panel(area: &Area<'_>, chart: &Chart) -> Drawn {
    let text = ("sans-serif", TEXT).into_font().color(&INK);
    let small = ("sans-serif", SMALL).into_font().color(&INK);
    let bold = ("sans-serif", TITLE, FontStyle::Bold).into_font().color(&INK);
    let middle = |style: &TextStyle<'static>| style.pos(Pos::new(HPos::Left, VPos::Center));
    area.draw(&Text::new(chart.title.clone(), (12, 18), middle(&bold)))?;
    let top = 32 + legend(area, chart, &middle(&small))?;

    let points = || chart.series.iter().flat_map(|series| &series.points);
    let level = chart.level.iter().map(|(at, _)| *at);
    let across = Scale::over(&chart.x, points().map(|point| point.x));
    let up = Scale::over(&chart.y, points().map(|point| point.y).chain(level));
    let foot = up.foot();
    let mut builder = ChartBuilder::on(area);
    // The level's name stands beside the plot, where no bar hides it.
    let right = 18 + chart.level.as_ref().map_or(0, |(_, name)| 6 * name.chars().count());
    builder.margin_top(top).margin_right(u32::try_from(right).unwrap_or(18));
    builder.margin_left(6).margin_bottom(4);
    let mut plot =
        builder.x_label_area_size(46).y_label_area_size(70).build_cartesian_2d(across, up)?;
    let names = matches!(chart.x.kind, Kind::Names(_));
    let mut mesh = plot.configure_mesh();
    if names || matches!(chart.series.first(), Some(Series { mark: Mark::Bars(_), .. })) {
        mesh.disable_x_mesh();
    }
    mesh.x_desc(chart.x.label.clone())
        .y_desc(chart.y.label.clone())
        .x_labels(usize::try_from(chart.size.0 / 70).unwrap_or(8))
        .y_labels(usize::try_from(chart.size.1 / 50).unwrap_or(6))
        .max_light_lines(0)
        .bold_line_style(GRID)
        .axis_style(EDGE)
        .label_style(small.clone())
        .axis_desc_style(text.clone())
        .draw()?;

    let plane = plot.plotting_area();
    let bars = chart.series.iter().filter(|series| matches!(series.mark, Mark::Bars(_))).count();
    for (number, series) in chart.series.iter().enumerate() {
        let share = 1.0 / bars.max(1) as f64;
        let slot = Slot { share, middle: (number as f64 + 0.5) * share - 0.5 };
        draw_series(plane, series, foot, slot)?;
    }
    if let Some((at, name)) = &chart.level {
        let ends = plane.get_x_range();
        line(plane, vec![(ends.start, *at), (ends.end, *at)], INK.stroke_width(1))?;
        let style = small.pos(Pos::new(HPos::Left, VPos::Center));
        plane
            .draw(&(EmptyElement::at((ends.end, *at)) + Text::new(name.clone(), (4, 0), style)))?;
    }
    if chart.named { names_beside(area, plane, chart, &middle(&small)) } else { Ok(()) }
}

/// Draws the legend above the chart, over several lines if needed; returns its height.
fn legend(area: &Area<'_>, chart: &Chart, style: &TextStyle<'_>) -> Drawn<i32> {
    if chart.series.len() < 2 {
        return Ok(0);
    }
    let (width, _) = area.dim_in_pixel();
    let (mut left, mut down) = (16, 42);
    for series in chart.series.iter().filter(|series| series.mark != Mark::Edge) {
        let letters = i32::try_from(series.name.chars().count()).unwrap_or(20);
        let needed = 34 + LETTER * letters;
        if left > 16 && left + needed > i32::try_from(width).unwrap_or(i32::MAX) {
            (left, down) = (16, down + LINE);
        }
        let color = color(series.style);
        match series.mark {
            Mark::Bars(_) => {
                area.draw(&Rectangle::new(
                    [(left, down - 5), (left + 18, down + 5)],
                    color.filled(),
                ))?;
            }
            Mark::Dots => dot(area, (left + 9, down), series.style)?,
            Mark::Line | Mark::Steps | Mark::Edge => {
                line(area, vec![(left, down), (left + 18, down)], color.stroke_width(2))?;
                if series.mark == Mark::Line {
                    dot(area, (left + 9, down), series.style)?;
                }
            }
        }
        area.draw(&Text::new(series.name.clone(), (left + 24, down), style.clone()))?;
        left += needed + 10;
    }
    Ok(down - 42 + LINE)
}

/// Place of a series' bars among those of the others.
#[derive(Debug, Clone, Copy)]
struct Slot {
    /// Share of the width.
    share: f64,
    /// Place of the middle, from -0.5 to 0.5 of the width.
    middle: f64,
}

fn draw_series(plane: &Plane<'_>, series: &Series, foot: f64, slot: Slot) -> Drawn {
    let color = color(series.style);
    let stroke = color.stroke_width(2);
    let at = |point: &Point| (point.x, point.y);
    match series.mark {
        Mark::Dots => series.points.iter().try_for_each(|p| dot(plane, at(p), series.style)),
        Mark::Line => {
            line(plane, series.points.iter().map(at).collect(), stroke)?;
            series.points.iter().try_for_each(|p| dot(plane, at(p), series.style))
        }
        Mark::Edge => line(plane, series.points.iter().map(at).collect(), color.stroke_width(1)),
        Mark::Steps => {
            let mut edges: Vec<(f64, f64)> = Vec::new();
            for point in &series.points {
                let before = edges.last().map_or(foot, |&(_, y)| y);
                edges.extend([(point.x, before), at(point)]);
            }
            line(plane, edges, stroke)
        }
        Mark::Bars(width) => {
            let mut shown = series.points.iter().filter(|point| point.y > foot);
            shown.try_for_each(|point| {
                let (middle, half) = (point.x + slot.middle * width, slot.share * width / 2.0);
                let corners = [(middle - half, foot), (middle + half, point.y)];
                plane.draw(&Rectangle::new(corners, color.filled()))
            })
        }
    }
}

/// Joins points by a line; one point is none.
fn line<CT>(
    area: &DrawingArea<SVGBackend<'_>, CT>,
    points: Vec<CT::From>,
    style: ShapeStyle,
) -> Drawn
where
    CT: CoordTranslate,
{
    area.draw(&PathElement::new(points, style))
}

/// Draws a point in the shape of its series, which is visible without colours.
fn dot<CT>(area: &DrawingArea<SVGBackend<'_>, CT>, at: CT::From, style: usize) -> Drawn
where
    CT: CoordTranslate,
    CT::From: Clone,
{
    let filled = color(style).filled();
    match style % 4 {
        1 => area.draw(&TriangleMarker::new(at, 5, filled)),
        2 => area.draw(&(EmptyElement::at(at) + Rectangle::new([(-3, -3), (4, 4)], filled))),
        3 => area.draw(&Cross::new(at, 4, color(style).stroke_width(2))),
        _ => area.draw(&Circle::new(at, 4, filled)),
    }
}

/// Writes the name of every dot next to it.
fn names_beside(area: &Area<'_>, plane: &Plane<'_>, chart: &Chart, style: &TextStyle<'_>) -> Drawn {
    let (left, top) = area.get_base_pixel();
    let dots = chart.series.iter().filter(|series| series.mark == Mark::Dots);
    let dots: Vec<&Point> = dots.flat_map(|series| &series.points).collect();
    let name = |point: &Point| point.name.clone().unwrap_or_default();
    let place = |point: &Point| {
        let (x, y) = plane.map_coordinate(&(point.x, point.y));
        ((x - left, y - top), name(point).chars().count())
    };
    let anchors: Vec<((i32, i32), usize)> = dots.iter().copied().map(place).collect();
    let (x, y) = plane.get_pixel_range();
    let within = [x.start - left, y.start - top, x.end - left, y.end - top];
    for ((point, &(anchor, _)), place) in
        dots.iter().zip(&anchors).zip(labels::places(&anchors, within))
    {
        if let Some(end) = place.tie {
            line(area, vec![anchor, end], EDGE.stroke_width(1))?;
        }
        area.draw(&Text::new(name(point), (place.left, place.middle), style.clone()))?;
    }
    Ok(())
}

fn color(style: usize) -> RGBColor {
    COLORS.get(style % COLORS.len()).copied().unwrap_or(BLACK)
}
