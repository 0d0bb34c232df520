//! Figures: counts become precision, recall and F1, and the best settings are found among them.

use hamdex::verify::Verification;
use serde::Serialize;

use crate::draw::chart::{self, Axis, Chart, Kind, Mark, Point, Series};
use crate::draw::table::Table;
use crate::size;
use hamdex::evaluate::{Count, Tally};

/// How good one setting is.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Figure {
    /// Which line this is: `curve`, `verified`, `default`, `best`.
    pub(super) what: &'static str,
    pub(super) sketch: String,
    pub(super) distance: u32,
    pub(super) verification: String,
    /// Pairs that the setting finds.
    pub(super) found: u64,
    /// Labelled near-duplicates among them.
    pub(super) correct: u64,
    pub(super) precision: Option<f64>,
    pub(super) recall: Option<f64>,
    pub(super) f1: Option<f64>,
}

impl Figure {
    pub(super) fn new(
        what: &'static str,
        sketch: &str,
        (distance, verification): (u32, Verification),
        count: Count,
        positives: u64,
    ) -> Self {
        Self {
            what,
            sketch: sketch.to_owned(),
            distance,
            verification: verification.to_string(),
            found: count.found,
            correct: count.correct,
            precision: count.precision(),
            recall: count.recall(positives),
            f1: count.f1(positives),
        }
    }

    /// Returns precision, recall and F1 in words.
    pub(super) fn words(&self) -> String {
        format!(
            "precision {}, recall {}, F1 {}",
            shown(self.precision),
            shown(self.recall),
            shown(self.f1)
        )
    }
}

fn shown(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{share:.4}"))
}

/// Returns a figure for every distance up to the largest; none where it was not measured.
pub(super) fn curve(
    what: &'static str,
    sketch: &str,
    tally: &Tally,
    largest: u32,
    verification: Verification,
) -> Vec<Figure> {
    let figure = |distance| {
        let count = tally.at(distance, verification)?;
        Some(Figure::new(what, sketch, (distance, verification), count, tally.positives()))
    };
    (0..=largest).filter_map(figure).collect()
}

/// Returns the best setting of each kind: plain distance, and every kind of verification.
///
/// Best is the highest F1; of equals the smallest distance, which costs least, and the middle one
/// of the thresholds, which is the safest.
pub(super) fn best(sketch: &str, tally: &Tally, largest: u32) -> Vec<Figure> {
    let none = vec![Verification::None];
    let cuts = |from: u32, make: fn(f64) -> Verification| -> Vec<Verification> {
        (from..=200).map(|n| make(f64::from(n) / 200.0)).collect()
    };
    let jaccard = cuts(40, Verification::Jaccard);
    let edit = cuts(100, Verification::Edit);
    let zhou = (2..=8)
        .flat_map(|k| {
            let k = f64::from(k);
            (30..=120).map(move |n| {
                // Two decimals are enough for anyone.
                let threshold = (k * f64::from(n)).round() / 100.0;
                Verification::Zhou { k, threshold }
            })
        })
        .collect();
    [none, jaccard, zhou, edit]
        .into_iter()
        .filter_map(|kinds: Vec<Verification>| {
            let curve = |kind| curve("best", sketch, tally, largest, kind);
            let mut figures: Vec<Figure> = kinds.into_iter().flat_map(curve).collect();
            let f1 = |figure: &Figure| figure.f1.unwrap_or(0.0);
            let highest = figures.iter().map(f1).fold(0.0, f64::max);
            figures.retain(|figure| f1(figure) >= highest);
            let nearest = figures.iter().map(|figure| figure.distance).min()?;
            figures.retain(|figure| figure.distance == nearest);
            let middle = figures.len() / 2;
            figures.into_iter().nth(middle)
        })
        .collect()
}

/// Draws the curve, and beside it what a verification makes of it.
pub(super) fn table(plain: &[Figure], verified: &[Figure]) -> Table {
    let mut heading = vec!["distance", "found", "correct", "precision", "recall", "F1"];
    if !verified.is_empty() {
        heading.extend(["verified", "correct", "precision", "recall", "F1"]);
    }
    let mut table = Table::with_heading(&heading);
    for (at, figure) in plain.iter().enumerate() {
        let mut cells = vec![figure.distance.to_string()];
        for figure in [Some(figure), verified.get(at)].into_iter().flatten() {
            cells.extend([size::thousands(figure.found), size::thousands(figure.correct)]);
            cells.extend([figure.precision, figure.recall, figure.f1].map(shown));
        }
        table.row(cells);
    }
    table
}

pub(super) const TITLE: &str = "Precision, recall and F1 over the distance";

pub(super) const ABOUT: &str = "Against the labelled pairs: the share of found pairs that are \
                                labelled, the share of labelled pairs that are found, and the \
                                harmonic mean of the two. One line for each verification; the \
                                best thresholds have the highest F1.";

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
    let drawn = |&kind: &Verification| curve("plot", sketch, tally, largest, kind);
    let curves: Vec<Vec<Figure>> = verifications.iter().map(drawn).collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(found: u64, correct: u64, positives: u64) -> Figure {
        let settings = (3, Verification::None);
        Figure::new("curve", "simhash", settings, Count { found, correct }, positives)
    }

    #[test]
    fn shares_are_those_of_what_was_found_and_labelled() {
        let all = figure(4, 2, 4);
        assert_eq!((all.precision, all.recall, all.f1), (Some(0.5), Some(0.5), Some(0.5)));
        assert_eq!(all.words(), "precision 0.5000, recall 0.5000, F1 0.5000");
    }

    #[test]
    fn shares_of_nothing_are_none() {
        let none = figure(0, 0, 0);
        assert_eq!((none.precision, none.recall, none.f1), (None, None, None));
    }
}
