//! Reading: computes documents from rows on all threads and passes them on in order.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, UInt64Array};
use hamdex::text::{IdfLearner, IdfTable};
use hamdex::{Fingerprint, Pipeline};
use rayon::prelude::*;

use crate::failure::{Failure, Result};
use crate::fields::TextColumn;
use crate::interrupt::Watch;
use crate::table::Table;

/// Number of rows that are processed at once; their results are held in memory.
pub(crate) const BATCH: usize = 1024;

/// The columns that are read.
#[derive(Debug)]
pub(crate) struct Rows {
    pub(crate) texts: TextColumn,
    /// Numbers of the rows whose value is not a text, ascending.
    pub(crate) odd: Vec<u64>,
    /// The labels of all rows, in one array.
    pub(crate) names: ArrayRef,
}

impl Rows {
    pub(crate) fn of(table: &Table, text: &str, id: Option<&str>, odd: Vec<u64>) -> Result<Self> {
        let texts = TextColumn::of(table, text)?;
        let names: ArrayRef = match id {
            Some(id) => table.whole(id)?,
            None => Arc::new(UInt64Array::from_iter_values(0..texts.len as u64)),
        };
        Ok(Self { texts, odd, names })
    }

    pub(crate) fn len(&self) -> usize {
        self.texts.len
    }
}

/// Why a row has nothing to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Blank {
    NullText,
    EmptyText,
    NoFeatures,
    NotAString,
}

impl Blank {
    /// Returns the reason as the command line reports it.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::NullText => "null text",
            Self::EmptyText => "empty text",
            Self::NoFeatures => "no features",
            Self::NotAString => "not a string",
        }
    }
}

/// The rows that became documents, and the others.
#[derive(Debug, Default)]
pub(crate) struct Read {
    /// The row of every document, ascending.
    pub(crate) rows: Vec<u64>,
    /// Rows with nothing to compare, ascending.
    pub(crate) blank: Vec<(u64, Blank)>,
}

impl Read {
    /// Counts the rows with nothing to compare, by reason.
    pub(crate) fn not_compared(&self) -> BTreeMap<&'static str, u64> {
        let mut counts = BTreeMap::new();
        for (_, blank) in &self.blank {
            *counts.entry(blank.reason()).or_default() += 1;
        }
        counts
    }

    /// Returns the failure of a table without any row to compare.
    pub(crate) fn unusable(&self, rows: usize) -> Failure {
        let counts = self.not_compared();
        let counts = counts.iter().map(|(reason, count)| format!("{count} {reason}"));
        let counts = counts.collect::<Vec<_>>().join(", ");
        Failure::data(format!("no row of {rows} has a text to compare: {counts}"))
    }
}

/// What is computed from one row.
struct Made<F, X> {
    fingerprint: F,
    extra: X,
}

/// Reads all rows except those that `skip` selects.
///
/// `extra` computes what is needed in addition to the fingerprint. `sink` receives row,
/// fingerprint and the extra value, in row order.
pub(crate) fn read<F: Fingerprint, X: Send>(
    rows: &Rows,
    pipeline: &Pipeline,
    watch: &Watch,
    skip: impl Fn(usize) -> bool + Sync,
    extra: impl Fn(usize, &str) -> X + Sync,
    sink: &mut dyn FnMut(u64, F, X) -> Result<()>,
) -> Result<Read> {
    let mut read = Read::default();
    for (base, piece) in rows.texts.pieces()? {
        let make = |row: usize| -> Result<Made<F, X>, Blank> {
            let Some(text) = piece.get(row) else {
                let odd = rows.odd.binary_search(&((base + row) as u64)).is_ok();
                return Err(if odd { Blank::NotAString } else { Blank::NullText });
            };
            if text.trim().is_empty() {
                return Err(Blank::EmptyText);
            }
            let sketch = pipeline.fingerprint::<F>(&text).ok_or(Blank::NoFeatures)?;
            Ok(Made { fingerprint: sketch.fingerprint, extra: extra(base + row, &text) })
        };
        for first in (0..piece.len).step_by(BATCH) {
            watch.check()?;
            let batch = (first..piece.len.min(first + BATCH)).into_par_iter();
            let made = batch.filter(|row| !skip(base + row)).map(|row| (row, make(row)));
            for (row, made) in made.collect::<Vec<_>>() {
                let row = (base + row) as u64;
                match made {
                    Ok(Made { fingerprint, extra }) => {
                        sink(row, fingerprint, extra)?;
                        read.rows.push(row);
                    }
                    Err(blank) => read.blank.push((row, blank)),
                }
            }
        }
    }
    Ok(read)
}

/// Learns the inverse document frequency of the words of the texts.
pub(crate) fn learn(texts: &TextColumn, pipeline: &Pipeline, watch: &Watch) -> Result<IdfTable> {
    let mut learner = IdfLearner::new();
    for (_, piece) in texts.pieces()? {
        for first in (0..piece.len).step_by(BATCH) {
            watch.check()?;
            let batch = (first..piece.len.min(first + BATCH)).into_par_iter();
            let words = |row| piece.get(row).map(|text| pipeline.word_hashes(&text));
            for words in batch.filter_map(words).collect::<Vec<_>>() {
                learner.add_words(&words);
            }
        }
    }
    Ok(learner.finish())
}
