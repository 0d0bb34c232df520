//! `evaluate`: documents and labelled pairs become precision and recall for each distance.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use clap::Args;
use hamdex::{Fingerprint, join};
use serde::Serialize;

use super::gather::{self, Gathered};
use super::labels::Labels;
use super::pairs::Copies;
use crate::failure::Result;
use crate::options::{PipelineArgs, RowArgs, WidthArg};
use crate::output::Output;
use crate::session::Session;
use crate::size;
use crate::table::Table;
use crate::width::for_width;

/// Measure precision, recall and F1 against labelled pairs
///
/// The labels are lines of two ids and, if there is one, a similarity, with tabs between; a line
/// of column names may come first. Every pair of documents that is not listed counts as
/// different.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  hamdex evaluate posts.jsonl.gz --pairs posts_pairs.tsv --min-similarity 0.9 --ignore-above 0.8"
)]
pub(crate) struct EvaluateArgs {
    /// Documents: .jsonl, .txt, .html, directories, raw .u64, - for standard input
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// The labelled pairs
    #[arg(long, value_name = "TSV")]
    pairs: PathBuf,
    /// Column of the similarity, by name or number from 1 [default: the third, if there is one]
    #[arg(long, value_name = "COLUMN")]
    similarity: Option<String>,
    /// Pairs of at least this similarity are near-duplicates [default: every listed pair]
    #[arg(long, value_name = "S")]
    min_similarity: Option<f64>,
    /// Pairs from this similarity up to the other one are left out of the count
    #[arg(long, value_name = "S", requires = "min_similarity")]
    ignore_above: Option<f64>,
    /// Plots are not written; --json gives the figures
    #[arg(long, value_name = "FILE", value_parser = no_plot, hide = true)]
    plot: Option<PathBuf>,
    /// Largest distance of the table [default: a quarter of the width]
    #[arg(short = 'k', long, value_name = "N")]
    distance: Option<u32>,
    #[command(flatten)]
    width: WidthArg,
    #[command(flatten)]
    pipeline: PipelineArgs,
    #[command(flatten)]
    rows: RowArgs,
}

fn no_plot(_: &str) -> Result<PathBuf, String> {
    Err("plots are not supported; supported are the table and --json".to_owned())
}

/// The figures of one distance.
#[derive(Debug, Serialize)]
struct Row {
    distance: u32,
    /// Pairs within the distance.
    found: u64,
    /// Labelled near-duplicates among them.
    correct: u64,
    precision: Option<f64>,
    recall: Option<f64>,
    f1: Option<f64>,
}

impl EvaluateArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<()> {
        let labels = Labels::read(&self.pairs, self.similarity.as_deref())?;
        let (inputs, bits) = gather::resolve(&self.inputs, &self.rows, &self.width)?;
        for_width!(bits, F => {
            let gathered = gather::gather::<F>(session, &inputs, &self.rows, &self.pipeline)?;
            self.measure(session, &gathered, &labels)
        })
    }

    fn measure<F: Fingerprint>(
        &self,
        session: &Session,
        gathered: &Gathered<F>,
        labels: &Labels,
    ) -> Result<()> {
        let largest = self.distance.unwrap_or(F::MAX_DISTANCE);
        if largest > F::MAX_DISTANCE {
            let error = hamdex::Error::InvalidDistance {
                distance: largest,
                bits: F::BITS,
                max: F::MAX_DISTANCE,
            };
            return Err(error.into());
        }
        let judged = labels.judge(gathered, self.min_similarity, self.ignore_above);
        if judged.unknown > 0 {
            let unknown = size::thousands(judged.unknown);
            session
                .console
                .say(&format!("{unknown} labelled pairs name ids that are not in the inputs"));
        }
        let mut found = count_pairs(session, gathered, largest)?;
        subtract(&mut found, &judged.ignored);
        let rows = rows(&found, &judged.near);
        let positives = judged.near.len() as u64;
        if session.json {
            let mut output = Output::stdout(&session.console);
            rows.iter().try_for_each(|row| output.json(row))?;
            return output.finish();
        }
        session.console.say(&format!(
            "{} documents, {} labelled near-duplicates",
            size::thousands(gathered.fingerprints.len() as u64),
            size::thousands(positives)
        ));
        let mut table =
            Table::with_heading(&["distance", "found", "correct", "precision", "recall", "F1"]);
        let share = |share: Option<f64>| {
            share.map_or_else(|| "-".to_owned(), |share| format!("{share:.4}"))
        };
        for row in &rows {
            table.row([
                row.distance.to_string(),
                size::thousands(row.found),
                size::thousands(row.correct),
                share(row.precision),
                share(row.recall),
                share(row.f1),
            ]);
        }
        let mut output = Output::stdout(&session.console);
        output.with(|out| table.write(out))?;
        output.finish()
    }
}

/// Counts the pairs of documents at every distance from 0 to the largest.
fn count_pairs<F: Fingerprint>(
    session: &Session,
    gathered: &Gathered<F>,
    largest: u32,
) -> Result<Vec<u64>> {
    let copies = Copies::new(&gathered.fingerprints)?;
    let counts: Vec<AtomicU64> = (0..=largest).map(|_| AtomicU64::new(0)).collect();
    let add = |distance: u32, pairs: u64| {
        if let Some(count) = counts.get(distance as usize) {
            count.fetch_add(pairs, Relaxed);
        }
    };
    for group in copies.groups() {
        let len = group.len() as u64;
        add(0, len * (len - 1) / 2);
    }
    join::self_join(&gathered.fingerprints, largest, &session.console, &|batch| {
        for pair in batch {
            add(pair.distance, copies.of(pair.a).len() as u64 * copies.of(pair.b).len() as u64);
        }
        Ok(())
    })?;
    session.console.end_phase();
    Ok(counts.into_iter().map(AtomicU64::into_inner).collect())
}

fn subtract(counts: &mut [u64], distances: &[u32]) {
    for &distance in distances {
        if let Some(count) = counts.get_mut(distance as usize) {
            *count = count.saturating_sub(1);
        }
    }
}

/// Adds the counts up from distance 0 and sets them against the labels' distances.
fn rows(found: &[u64], near: &[u32]) -> Vec<Row> {
    let (mut total, mut correct) = (0, 0);
    let mut rows = Vec::new();
    for (&count, distance) in found.iter().zip(0..) {
        total += count;
        correct += near.iter().filter(|&&of| of == distance).count() as u64;
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        rows.push(Row {
            distance,
            found: total,
            correct,
            precision: share(correct, total),
            recall: share(correct, near.len() as u64),
            // The harmonic mean of the two, written so that it exists where one of them does.
            f1: share(2 * correct, total + near.len() as u64),
        });
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_add_up_over_the_distances() {
        let rows = rows(&[1, 0, 3], &[0, 2, 9, 9]);
        let last = &rows[2];
        assert_eq!((last.found, last.correct), (4, 2));
        assert_eq!((last.precision, last.recall, last.f1), (Some(0.5), Some(0.5), Some(0.5)));
        assert_eq!((rows[0].precision, rows[0].recall), (Some(1.0), Some(0.25)));
    }

    #[test]
    fn shares_of_nothing_are_none() {
        let rows = rows(&[0], &[]);
        assert_eq!((rows[0].precision, rows[0].recall, rows[0].f1), (None, None, None));
    }
}
