//! Deduplication: computes a mask of the rows to keep, and tables of the removed ones.

mod outcome;
pub(crate) mod sources;

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Instant;

use arrow_array::UInt32Array;
use hamdex::Fingerprint;
use hamdex::advice::{Overrides, Resolved};
use hamdex::any::AnyIndex;
use hamdex::dedup::{Decisions, Dedup, DedupOptions, Stamp};
use hamdex::join::Linkage;
use hamdex::verify::Verification;
use hamdex_io::host::Host;
use hamdex_io::{Blank, Document, Sink, Wanted as Evidence};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use self::outcome::{Done, Outcome};
use crate::failure::{Failure, Result};
use crate::fingerprints::for_width;
use crate::index::{Index, Texts};
use crate::interrupt::{Watch, interruptible};
use crate::pipeline::Asked;
use crate::rows::{self, Columns, LABELS, Read, Rows};
use crate::table::Table;
use crate::tables::Tables;
use crate::{fields, resolve};

/// Mask, duplicates, clusters, rejects and report.
type Answer<'py> = (Bound<'py, PyBytes>, Table, Table, Table, Bound<'py, PyDict>);

/// Which document of a group is kept; the first one of equals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Keep {
    First,
    Longest,
    /// The one with the largest value in this column; the keyword is "newest" or "best".
    Largest(&'static str, String),
}

impl Keep {
    fn of(text: &str) -> Result<Self> {
        let refused = || {
            Failure::usage(format!(
                "keep is \"{text}\"; supported are first, longest, newest:COLUMN and best:COLUMN"
            ))
        };
        match text.split_once(':') {
            None if text == "first" => Ok(Self::First),
            None if text == "longest" => Ok(Self::Longest),
            Some((word, column)) if !column.is_empty() => {
                let word = ["newest", "best"].into_iter().find(|known| *known == word);
                word.map(|word| Self::Largest(word, column.to_owned())).ok_or_else(refused)
            }
            _ => Err(refused()),
        }
    }
}

/// The arguments of a call, without the pipeline.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Wanted {
    text: String,
    id: Option<String>,
    /// Rows whose value is not a text.
    odd: Vec<u64>,
    distance: Option<u32>,
    verify: Option<String>,
    keep: String,
    unique_by: Option<String>,
    source_field: Option<String>,
    drop_empty: bool,
    bits: u32,
    verify_chain: bool,
    tmp: Option<PathBuf>,
}

/// Removes near-duplicates from a table.
#[pyfunction]
#[pyo3(signature = (data, wanted, *, pipeline, tables, against))]
#[allow(clippy::needless_pass_by_value)] // extracted from a dict of Python
pub(crate) fn dedup<'py>(
    py: Python<'py>,
    data: &Bound<'py, Table>,
    wanted: Wanted,
    pipeline: Option<&Bound<'py, PyAny>>,
    tables: Tables,
    against: Option<&Bound<'py, Index>>,
) -> PyResult<Answer<'py>> {
    let asked = Asked::of(pipeline, &tables)?;
    let job = Job {
        table: data.get(),
        asked,
        verify: wanted.verify.as_deref().map(str::parse).transpose().map_err(Failure::from)?,
        keep: Keep::of(&wanted.keep)?,
        wanted: &wanted,
    };
    let against = against
        .map(|index| {
            let index = index.get();
            Ok::<_, Failure>((index.opened()?, index.texts().clone()))
        })
        .transpose()?;
    let outcome = interruptible(py, |watch| {
        let against = against.as_ref().map(|(open, texts)| Against { open, texts });
        let bits = against.as_ref().map_or(wanted.bits, |against| against.open.bits());
        for_width!(bits, F => job.run::<F>(against, watch))
    })?;
    let Outcome { mask, duplicates, clusters, rejects, report } = outcome;
    let report = report.to_dict(py, &wanted)?;
    Ok((PyBytes::new(py, &mask), duplicates, clusters, rejects, report))
}

/// An index whose documents are compared too.
#[derive(Clone, Copy)]
struct Against<'a> {
    open: &'a AnyIndex,
    texts: &'a Texts,
}

/// One call.
struct Job<'a> {
    table: &'a Table,
    asked: Asked,
    verify: Option<Verification>,
    keep: Keep,
    wanted: &'a Wanted,
}

impl Job<'_> {
    fn run<F: Fingerprint>(&self, against: Option<Against<'_>>, watch: &Watch) -> Result<Outcome> {
        let started = Instant::now();
        let Wanted { text, id, odd, distance, tmp, .. } = self.wanted;
        let stamp = match &self.keep {
            Keep::Largest(_, column) => {
                fields::require_order(&fields::pieces(self.table, column)?, column)?;
                Some(column.as_str())
            }
            Keep::First | Keep::Longest => None,
        };
        let columns = Columns {
            text,
            id: None,
            stamp,
            unique: self.wanted.unique_by.as_deref(),
            source: self.wanted.source_field.as_deref(),
        };
        let rows = Rows::of(self.table, &columns, odd.clone())?;
        let resolved = if let Some(Against { open, texts }) = against {
            let pipeline = texts.pipeline()?.cloned();
            resolve::resolve_by_index(open.header(), pipeline, &self.asked, *distance, self.verify)?
        } else {
            let mut overrides = Overrides::new().bits(F::BITS);
            overrides.distance = *distance;
            overrides.verification = self.verify;
            let learn = |pipeline: &hamdex::Pipeline| rows.learn(pipeline, watch);
            resolve::resolve(&self.asked, overrides, &learn, || rows.sample())?
        };
        let linkage = self.wanted.verify_chain.then_some(Linkage::Chain);
        let mut settings = DedupOptions::of(&resolved);
        settings.linkage = linkage;
        settings.tmp.clone_from(tmp);
        let engine = Engine {
            rows: &rows,
            resolved: &resolved,
            settings: &settings,
            against: against.map(|against| against.open),
            watch,
        };
        let found = match self.keep {
            Keep::First => engine.decide::<F, ()>(|_, _| ())?,
            Keep::Longest => engine.decide::<F, u64>(|length, _| length)?,
            Keep::Largest(..) => engine.decide::<F, Stamp>(|_, stamp| stamp)?,
        };
        watch.check()?;
        self.require_values(&found, rows.len)?;
        if found.documents.is_empty() && rows.len > 0 && found.repeated.is_empty() {
            return Err(rows.unusable(&found.read));
        }
        outcome::outcome(&Done {
            found: &found,
            labels: rows::labels(self.table, id.as_deref())?,
            rows: rows.len,
            resolved: &resolved,
            settings: &settings,
            drop_empty: self.wanted.drop_empty,
            sourced: columns.source.is_some(),
            against: against.is_some(),
            started,
        })
    }

    /// Refuses columns in which no row has a value.
    fn require_values<F>(&self, found: &Found<F>, rows: usize) -> Result<()> {
        if rows == 0 {
            return Ok(());
        }
        if let (Keep::Largest(word, column), false) = (&self.keep, found.stamped) {
            return Err(Failure::usage(format!(
                "keep=\"{word}:{column}\": no row has a value in that column"
            )));
        }
        match &self.wanted.source_field {
            Some(column) if found.sources.is_empty() => Err(Failure::data(format!(
                "source_field=\"{column}\": no row has a value in that column"
            ))),
            _ => Ok(()),
        }
    }
}

/// One deduplication of one table.
struct Engine<'a> {
    rows: &'a Rows,
    resolved: &'a Resolved,
    settings: &'a DedupOptions,
    against: Option<&'a AnyIndex>,
    watch: &'a Watch,
}

/// The decisions, and what the rows are.
#[derive(Debug)]
struct Found<F> {
    decisions: Decisions<F>,
    read: Read,
    /// The row of every document, ascending.
    documents: Vec<u64>,
    /// Rows with nothing to compare and why, ascending.
    blank: Vec<(u64, &'static str)>,
    /// For each row, whether it repeats a value of a preferred row; empty without `unique_by`.
    repeated: Vec<bool>,
    sources: sources::Column,
    /// Whether a row has a value that decides which one is kept.
    stamped: bool,
}

impl Engine<'_> {
    /// Decides on all rows.
    fn decide<F: Fingerprint, R: Ord + Clone + Send + Sync>(
        &self,
        rank: impl Fn(u64, Stamp) -> R,
    ) -> Result<Found<F>> {
        let Self { rows, resolved, settings, against, watch } = *self;
        let Some(pipeline) = &resolved.pipeline else {
            return Err(Failure::usage("there is no pipeline for texts"));
        };
        let mut taken = Taken {
            rows,
            rank,
            dedup: Dedup::<F, R>::new(settings)?,
            documents: Vec::new(),
            blank: Vec::new(),
            unique: Vec::new(),
            sources: sources::Column::default(),
            stamped: false,
        };
        let evidence = Evidence::by(settings.verification);
        let mut read = rows.read(pipeline, watch, LABELS, evidence, &mut taken)?;
        let repeated = taken.repeated();
        let Taken { dedup, documents, mut blank, sources, stamped, .. } = taken;
        blank.retain(|&(row, reason)| {
            let counted = repeated.get(outcome::at(row)) != Some(&true);
            if !counted && let Some(count) = read.totals.blank.get_mut(reason) {
                *count -= 1;
            }
            counted
        });
        read.totals.blank.retain(|_, count| *count > 0);
        let decisions = match against {
            Some(open) => dedup.finish_against(open.of_width::<F>()?, watch)?,
            None => dedup.finish(watch)?,
        };
        Ok(Found { decisions, read, documents, blank, repeated, sources, stamped })
    }
}

/// Rows that are collected.
struct Taken<'a, F, R, K> {
    rows: &'a Rows,
    /// Returns the rank of a row by the length of its text and its stamp.
    rank: K,
    dedup: Dedup<F, R>,
    documents: Vec<u64>,
    blank: Vec<(u64, &'static str)>,
    /// Values that rows must not share.
    unique: Vec<Unique<R>>,
    sources: sources::Column,
    stamped: bool,
}

/// A value that one row may keep.
struct Unique<R> {
    value: u128,
    row: u64,
    /// Position among the documents; `None` of a row with nothing to compare.
    position: Option<u32>,
    rank: R,
}

impl<F: Fingerprint, R: Ord + Clone + Sync, K: Fn(u64, Stamp) -> R> Sink<F> for Taken<'_, F, R, K> {
    fn document(&mut self, document: Document<'_, F>) -> hamdex_io::failure::Result<()> {
        let Document { fingerprint, length, stamp, proofs, unique, source, origin, .. } = document;
        self.stamped |= !stamp.is_missing();
        self.sources.push(source);
        let rank = (self.rank)(length, stamp);
        if let Some(value) = unique {
            let position = u32::try_from(self.documents.len()).ok();
            self.unique.push(Unique { value, row: origin, position, rank: rank.clone() });
        }
        self.dedup.push(fingerprint, proofs.evidence(), rank)?;
        self.documents.push(origin);
        Ok(())
    }

    fn blank(&mut self, blank: Blank) -> hamdex_io::failure::Result<()> {
        self.blank.push((blank.origin, self.rows.reason(&blank)));
        let Blank { length, stamp, unique, source, origin, .. } = blank;
        self.stamped |= !stamp.is_missing();
        self.sources.push(source);
        if let Some(value) = unique {
            let rank = (self.rank)(length, stamp);
            self.unique.push(Unique { value, row: origin, position: None, rank });
        }
        Ok(())
    }
}

impl<F: Fingerprint, R: Ord + Sync, K> Taken<'_, F, R, K> {
    /// Excludes the rows that share a value with a preferred one, or with an earlier one of equals.
    fn repeated(&mut self) -> Vec<bool> {
        if self.unique.is_empty() {
            return Vec::new();
        }
        let mut repeated = vec![false; self.rows.len];
        let mut best: HashMap<u128, &Unique<R>> = HashMap::new();
        for found in &self.unique {
            let kept = best.entry(found.value).or_insert(found);
            let loser = if found.rank > kept.rank { std::mem::replace(kept, found) } else { found };
            if loser.row == kept.row {
                continue;
            }
            if let Some(slot) = repeated.get_mut(outcome::at(loser.row)) {
                *slot = true;
            }
            if let Some(position) = loser.position {
                self.dedup.exclude(position);
            }
        }
        repeated
    }
}

/// A column of numbers, some of them missing.
fn numbers(values: impl Iterator<Item = Option<u32>>) -> UInt32Array {
    values.collect()
}
