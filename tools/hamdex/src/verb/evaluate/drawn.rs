//! The figures drawn: a curve over the distance for every verification that was tried.

use hamdex::Verification;

use super::figure::{self, Figure};
use crate::chart::{self, Axis, Chart, Kind, Mark, Point, Series};
use hamdex::evaluate::Tally;

pub(super) const TITLE: &str = "Precision, recall and F1 over the distance";

pub(super) const ABOUT: &str = "Against the labelled pairs: what share of the pairs found is \
     labelled, what share of the labelled is found, and the harmonic mean of the two. A line for \
     each verification; the best thresholds are those of the highest F1.";

/// Charts in a row: one for each of the three measures.
pub(super) const COLUMNS: usize = 3;

const SIZE: (u32, u32) = (480, 400);

/// Reads one of the three off a figure; `None` where it is not defined.
type Measure = fn(&Figure) -> Option<f64>;

/// Draws the three measures of one signature.
pub(super) fn charts(
    sketch: &str,
    tally: &Tally,
    largest: u32,
    verifications: &[Verification],
) -> Vec<Chart> {
    let curve = |&kind: &Verification| figure::curve("plot", sketch, tally, largest, kind);
    let curves: Vec<Vec<Figure>> = verifications.iter().map(curve).collect();
    let measures: [(&str, Measure); COLUMNS] = [
        ("precision", |figure| figure.precision),
        ("recall", |figure| figure.recall),
        ("F1", |figure| figure.f1),
    ];
    let chart = |(name, measure): (&str, Measure)| {
        let series = verifications.iter().zip(&curves).enumerate();
        let series = series.map(|(style, (verification, curve))| Series {
            name: if *verification == Verification::None {
                "distance alone".to_owned()
            } else {
                verification.to_string()
            },
            mark: Mark::Line,
            style,
            points: curve
                .iter()
                .filter_map(|figure| Some(Point::at(f64::from(figure.distance), measure(figure)?)))
                .collect(),
        });
        let x = Axis::new("distance (bits)", Kind::Linear, chart::count);
        Chart {
            title: format!("{name}, {sketch}"),
            size: SIZE,
            x: x.between(-0.4, f64::from(largest.max(1)) + 0.4),
            y: Axis::new(name, Kind::Linear, chart::share).between(0.0, 1.02),
            series: series.collect(),
            level: None,
            named: false,
        }
    };
    measures.map(chart).into()
}
