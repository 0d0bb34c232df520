//! Deduplication: computes a mask of the rows to keep, and tables of the removed ones.

mod outcome;
pub(crate) mod sources;
mod unique;

use std::path::PathBuf;
use std::time::Instant;

use arrow_array::UInt32Array;
use hamdex::Fingerprint;
use hamdex::advice::{Overrides, Resolved};
use hamdex::any::AnyIndex;
use hamdex::dedup::{Decisions, Dedup, DedupOptions};
use hamdex::join::Linkage;
use hamdex::verify::Verification;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use self::outcome::{Done, Outcome};
use crate::failure::{Failure, Result};
use crate::fingerprints::for_width;
use crate::index::{Index, Texts};
use crate::interrupt::{Watch, interruptible};
use crate::pipeline::Asked;
use crate::read::{self, Read, Rows};
use crate::stamps;
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
        verify: wanted.verify.as_deref().map(str::parse).transpose().map_err(Failure::Library)?,
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
        let rows = Rows::of(self.table, text, id.as_deref(), odd.clone())?;
        let resolved = if let Some(Against { open, texts }) = against {
            let pipeline = texts.pipeline()?.cloned();
            resolve::resolve_by_index(open.header(), pipeline, &self.asked, *distance, self.verify)?
        } else {
            let mut overrides = Overrides::new().bits(F::BITS);
            overrides.distance = *distance;
            overrides.verification = self.verify;
            let learn = |pipeline: &hamdex::Pipeline| read::learn(&rows.texts, pipeline, watch);
            resolve::resolve(&self.asked, overrides, &learn, || resolve::sample(&rows.texts))?
        };
        let from = self.wanted.source_field.as_deref();
        let from = from.map(|column| sources::Column::of(self.table, column)).transpose()?;
        let linkage = self.wanted.verify_chain.then_some(Linkage::Chain);
        let mut settings = DedupOptions::of(&resolved);
        settings.linkage = linkage;
        settings.tmp.clone_from(tmp);
        let engine = Engine {
            rows: &rows,
            unique: self.unique()?,
            resolved: &resolved,
            settings: &settings,
            against: against.map(|against| against.open),
            watch,
        };
        let (decisions, read, repeated) = match &self.keep {
            Keep::First => engine.decide::<F, ()>(|_, _| ())?,
            Keep::Longest => engine.decide::<F, u64>(|_, text| text.chars().count() as u64)?,
            Keep::Largest(word, column) => {
                let ranks = stamps::ranks(self.table, word, column)?;
                engine.decide::<F, u32>(|row, _| ranks.get(row).copied().unwrap_or(0))?
            }
        };
        watch.check()?;
        if decisions.is_empty() && rows.len() > 0 && repeated.is_empty() {
            return Err(read.unusable(rows.len()));
        }
        outcome::outcome(&Done {
            decisions: &decisions,
            read: &read,
            repeated: &repeated,
            rows: &rows,
            resolved: &resolved,
            settings: &settings,
            drop_empty: self.wanted.drop_empty,
            sources: from.as_ref(),
            against: against.is_some(),
            started,
        })
    }

    /// Returns the values of the unique column as numbers.
    fn unique(&self) -> Result<Option<Vec<Option<u32>>>> {
        let column = self.wanted.unique_by.as_deref();
        column
            .map(|column| unique::classes(&fields::pieces(self.table, column)?, column))
            .transpose()
    }
}

/// One deduplication of one table.
struct Engine<'a> {
    rows: &'a Rows,
    unique: Option<Vec<Option<u32>>>,
    resolved: &'a Resolved,
    settings: &'a DedupOptions,
    against: Option<&'a AnyIndex>,
    watch: &'a Watch,
}

impl Engine<'_> {
    /// Decides on all rows; returns also those that share a value with a better one.
    fn decide<F: Fingerprint, R: Ord + Send + Sync>(
        &self,
        rank: impl Fn(usize, &str) -> R + Sync,
    ) -> Result<(Decisions<F>, Read, Vec<bool>)> {
        let Self { rows, resolved, settings, against, watch, .. } = *self;
        let Some(pipeline) = &resolved.pipeline else {
            return Err(Failure::usage("there is no pipeline for texts"));
        };
        let repeated = match &self.unique {
            Some(classes) => unique::repeated(classes, &rows.texts, watch, &rank)?,
            None => Vec::new(),
        };
        let skip = |row: usize| repeated.get(row) == Some(&true);
        let mut dedup = Dedup::<F, R>::new(settings)?;
        let extra = |row: usize, text: &str| {
            (settings.verification.evidence(pipeline, text), rank(row, text))
        };
        let mut sink = |_, print, (evidence, rank): (Vec<u8>, R)| {
            dedup.push(print, &evidence, rank)?;
            Ok(())
        };
        let read = read::read(rows, pipeline, watch, skip, extra, &mut sink)?;
        let decisions = match against {
            Some(open) => dedup.finish_against(open.of_width::<F>()?, watch)?,
            None => dedup.finish(watch)?,
        };
        Ok((decisions, read, repeated))
    }
}

/// A column of numbers, some of them missing.
fn numbers(values: impl Iterator<Item = Option<u32>>) -> UInt32Array {
    values.collect()
}
