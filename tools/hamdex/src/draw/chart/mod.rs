//! Charts: series of points become pictures, with tables of the same figures.

mod draw;
mod labels;
mod scale;

pub(crate) use draw::{inline, sheet};

use crate::size;

/// One picture: series over a common pair of axes.
#[derive(Debug, Clone)]
pub(crate) struct Chart {
    pub(crate) title: String,
    /// Width and height in pixels.
    pub(crate) size: (u32, u32),
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
    /// A height for comparison, with its name.
    pub(crate) level: Option<(f64, String)>,
    /// Whether to draw the names of points.
    pub(crate) named: bool,
}

/// What one direction of a chart means.
#[derive(Debug, Clone)]
pub(crate) struct Axis {
    /// Quantity, and its unit if it has one.
    pub(crate) label: String,
    pub(crate) kind: Kind,
    /// Writes a value, as at a tick and in the table.
    pub(crate) format: fn(f64) -> String,
    /// Ends of the axis; those of the values where there are none.
    pub(crate) ends: Option<(f64, f64)>,
}

/// How values lie along an axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    Linear,
    /// Values above zero, by their logarithms.
    Logarithmic,
    /// The values 0, 1, 2 and so on, each with a name.
    Names(Vec<String>),
}

/// Points that belong together.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) mark: Mark,
    /// Which of the colours and shapes.
    pub(crate) style: usize,
    pub(crate) points: Vec<Point>,
}

/// How points are drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Mark {
    Dots,
    /// Dots that a line joins.
    Line,
    /// A line without points, which the legend skips.
    Edge,
    /// A line of edges, each from its point to the next one's place.
    Steps,
    /// Bars of that width from the foot of the chart, in units of the axis.
    Bars(f64),
}

/// A value at a place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
    /// Name of the place in the table, if its value does not show it.
    pub(crate) name: Option<String>,
}

impl Axis {
    pub(crate) fn new(label: impl Into<String>, kind: Kind, format: fn(f64) -> String) -> Self {
        Self { label: label.into(), kind, format, ends: None }
    }

    pub(crate) fn between(self, low: f64, high: f64) -> Self {
        Self { ends: Some((low, high)), ..self }
    }

    /// Writes a value as the table shows it.
    pub(crate) fn show(&self, value: f64) -> String {
        match &self.kind {
            Kind::Names(names) => scale::name(names, value),
            Kind::Linear | Kind::Logarithmic => (self.format)(value),
        }
    }
}

impl Point {
    pub(crate) fn at(x: f64, y: f64) -> Self {
        Self { x, y, name: None }
    }

    pub(crate) fn named(x: f64, y: f64, name: impl Into<String>) -> Self {
        Self { x, y, name: Some(name.into()) }
    }
}

impl Chart {
    /// Returns the heading and the rows of a table that holds every figure of the chart.
    pub(crate) fn table(&self) -> (Vec<String>, Vec<Vec<String>>) {
        if self.named {
            return self.list();
        }
        let mut places: Vec<&Point> = self.series.iter().flat_map(|s| &s.points).collect();
        places.sort_by(|a, b| a.x.total_cmp(&b.x));
        places.dedup_by(|a, b| a.x.total_cmp(&b.x).is_eq());
        let mut heading = vec![self.x.label.clone()];
        heading.extend(self.series.iter().map(|series| match self.series.len() {
            1 => self.y.label.clone(),
            _ => series.name.clone(),
        }));
        let row = |place: &Point| {
            let first = place.name.clone().unwrap_or_else(|| self.x.show(place.x));
            let cell = |series: &Series| {
                let mut points = series.points.iter();
                let point = points.find(|point| point.x.total_cmp(&place.x).is_eq());
                point.map_or_else(|| "-".to_owned(), |point| (self.y.format)(point.y))
            };
            std::iter::once(first).chain(self.series.iter().map(cell)).collect()
        };
        (heading, places.into_iter().map(row).collect())
    }

    /// Returns the table of a chart with a name at each point, a row for each.
    fn list(&self) -> (Vec<String>, Vec<Vec<String>>) {
        let heading = ["", &self.x.label, &self.y.label, ""].map(str::to_owned).to_vec();
        let row = |series: &Series, point: &Point| {
            let name = point.name.clone().unwrap_or_default();
            vec![name, self.x.show(point.x), (self.y.format)(point.y), series.name.clone()]
        };
        let rows = self.series.iter().filter(|series| series.mark == Mark::Dots);
        let rows = rows.flat_map(|series| series.points.iter().map(|point| row(series, point)));
        (heading, rows.collect())
    }
}

/// Writes a count.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates
pub(crate) fn count(value: f64) -> String {
    size::thousands(value.round() as u64)
}

/// Writes a share of one in percent, with all digits it needs.
pub(crate) fn percent(share: f64) -> String {
    format!("{} %", digits(100.0 * share, 2))
}

/// Writes a share of one as it is.
pub(crate) fn share(share: f64) -> String {
    digits(share, 4)
}

/// Writes a figure with at most `digits` digits behind the point.
fn digits(figure: f64, most: usize) -> String {
    let text = format!("{figure:.most$}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    // Rounding may put the tick of zero slightly below it.
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Writes bytes in units of powers of 1000, which are whole where ticks are.
pub(crate) fn bytes(value: f64) -> String {
    unit(value, &[(1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB"), (1e15, "PB")])
}

/// Writes seconds in a fitting unit.
pub(crate) fn seconds(value: f64) -> String {
    unit(value, &[(1e-9, "ns"), (1e-6, "\u{b5}s"), (1e-3, "ms"), (1.0, "s")])
}

fn unit(value: f64, units: &[(f64, &str)]) -> String {
    // A value that rounds up to the next unit is written in that unit.
    let fits = units.iter().rev().find(|(least, _)| value >= 0.9995 * least);
    let Some((least, name)) = fits.or(units.first()) else { return value.to_string() };
    let figure = value / least;
    let figure = match figure {
        figure if figure >= 99.95 => format!("{figure:.0}"),
        figure if figure >= 9.995 => format!("{figure:.1}"),
        figure => format!("{figure:.2}"),
    };
    let figure = if figure.contains('.') {
        figure.trim_end_matches('0').trim_end_matches('.')
    } else {
        &figure
    };
    format!("{figure} {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_take_the_unit_that_fits() {
        let shown = [1e3, 1.5e12, 999.7e6, 12.0].map(bytes);
        assert_eq!(shown, ["1 kB", "1.5 TB", "1 GB", "12 B"]);
        let shown = [2.5e-6, 1e-3, 120.0].map(seconds);
        assert_eq!(shown, ["2.5 \u{b5}s", "1 ms", "120 s"]);
        assert_eq!([0.5, 0.1234, 1.0].map(percent), ["50 %", "12.34 %", "100 %"]);
        assert_eq!([0.5, 1.0].map(share), ["0.5", "1"]);
        assert_eq!([share(-1e-17), percent(-1e-17), percent(0.0)], ["0", "0 %", "0 %"]);
    }

    #[test]
    fn a_table_has_a_row_for_every_place_and_a_column_for_every_series() {
        let series = |name: &str, places: &[f64]| Series {
            name: name.to_owned(),
            mark: Mark::Line,
            style: 0,
            points: places.iter().map(|&x| Point::at(x, 10.0 * x)).collect(),
        };
        let chart = Chart {
            title: String::new(),
            size: (300, 200),
            x: Axis::new("distance", Kind::Linear, count),
            y: Axis::new("found", Kind::Linear, count),
            series: vec![series("a", &[1.0, 2.0]), series("b", &[0.0, 2.0])],
            level: None,
            named: false,
        };
        let (heading, rows) = chart.table();
        assert_eq!(heading, ["distance", "a", "b"]);
        assert_eq!(rows, [["0", "-", "0"], ["1", "10", "-"], ["2", "20", "20"]]);
    }
}
