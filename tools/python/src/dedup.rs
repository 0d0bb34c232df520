//! Deduplication: a table becomes a mask of the rows to keep, and tables of what was removed.

mod outcome;

use std::path::PathBuf;
use std::time::Instant;

use arrow_array::UInt32Array;
use arrow_ord::rank::rank;
use arrow_schema::SortOptions;
use hamdex::advice::{Settled, Wishes};
use hamdex::dedup::{Decisions, Dedup, Settings};
use hamdex::join::Linkage;
use hamdex::{Fingerprint, Verification};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use self::outcome::Outcome;
use crate::failure::{Failure, Result};
use crate::fingerprints::for_width;
use crate::index::{Index, Open, Width};
use crate::interrupt::{Watch, interruptible};
use crate::pipeline::Asked;
use crate::read::{self, Read, Rows};
use crate::settle;
use crate::table::Table;

/// Mask, duplicates, clusters, rejects, report.
type Answer<'py> = (Bound<'py, PyBytes>, Table, Table, Table, Bound<'py, PyDict>);

/// Which document of a group is kept; among equals the first one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Keep {
    First,
    Longest,
    /// The one with the largest value in this column.
    Newest(String),
}

impl Keep {
    fn of(text: &str) -> Result<Self> {
        match text {
            "first" => Ok(Self::First),
            "longest" => Ok(Self::Longest),
            _ => match text.strip_prefix("newest:") {
                Some(column) if !column.is_empty() => Ok(Self::Newest(column.to_owned())),
                _ => Err(Failure::usage(format!(
                    "keep is \"{text}\"; supported are first, longest and newest:COLUMN"
                ))),
            },
        }
    }
}

/// What a call asks for, but for the pipeline.
#[derive(Debug)]
pub(crate) struct Wanted {
    text: String,
    id: Option<String>,
    distance: Option<u32>,
    verify: Option<Verification>,
    keep: Keep,
    linkage: Option<Linkage>,
    tmp: Option<PathBuf>,
}

/// Removes near-duplicates from a table.
#[pyfunction]
#[pyo3(signature = (
    data, *, text, id = None, distance = None, verify = None, pipeline = None, keep = "first",
    bits = 64, verify_chain = false, against = None, tmp = None,
))]
#[allow(clippy::too_many_arguments)] // keywords of a Python call
pub(crate) fn dedup<'py>(
    py: Python<'py>,
    data: &Bound<'py, Table>,
    text: String,
    id: Option<String>,
    distance: Option<u32>,
    verify: Option<&str>,
    pipeline: Option<&Bound<'py, PyAny>>,
    keep: &str,
    bits: u32,
    verify_chain: bool,
    against: Option<&Bound<'py, Index>>,
    tmp: Option<PathBuf>,
) -> PyResult<Answer<'py>> {
    let asked = Asked::of(pipeline)?;
    let wanted = Wanted {
        text,
        id,
        distance,
        verify: verify.map(str::parse).transpose().map_err(Failure::Library)?,
        keep: Keep::of(keep)?,
        linkage: verify_chain.then_some(Linkage::Chain),
        tmp,
    };
    let against = against.map(|index| index.get().opened()).transpose()?;
    let table = data.get();
    let outcome = interruptible(py, |watch| {
        let against = against.as_deref();
        let bits = against.map_or(bits, Open::bits);
        for_width!(bits, F => run::<F>(table, &asked, &wanted, against, watch))
    })?;
    let Outcome { mask, duplicates, clusters, rejects, report } = outcome;
    let report = report.to_dict(py, keep)?;
    Ok((PyBytes::new(py, &mask), duplicates, clusters, rejects, report))
}

fn run<F: Width>(
    table: &Table,
    asked: &Asked,
    wanted: &Wanted,
    against: Option<&Open>,
    watch: &Watch,
) -> Result<Outcome> {
    let started = Instant::now();
    let rows = Rows::of(table, &wanted.text, wanted.id.as_deref())?;
    let (distance, verification) = (wanted.distance, wanted.verify);
    let settled = if let Some(open) = against {
        settle::settle_by_index(open.header(), open.pipeline()?, asked, distance, verification)?
    } else {
        let wishes = Wishes { distance, verification, bits: F::BITS, ..Wishes::new() };
        settle::settle(asked, wishes, || settle::sample(&rows.texts, &wanted.text))?
    };
    let settings =
        Settings { linkage: wanted.linkage, tmp: wanted.tmp.clone(), ..Settings::of(&settled) };
    let engine = Engine { rows: &rows, settled: &settled, settings: &settings, against, watch };
    let (decisions, read) = match &wanted.keep {
        Keep::First => engine.decide::<F, ()>(|_, _| ())?,
        Keep::Longest => engine.decide::<F, u64>(|_, text| text.chars().count() as u64)?,
        Keep::Newest(column) => {
            let ranks = ranks(table, column)?;
            engine.decide::<F, u32>(|row, _| ranks.get(row).copied().unwrap_or(0))?
        }
    };
    watch.check()?;
    outcome::outcome(&decisions, &read, &rows, (&settled, &settings), against.is_some(), started)
}

/// Returns the place of every row by its value in a column, nulls first; equals share one.
fn ranks(table: &Table, column: &str) -> Result<Vec<u32>> {
    let whole = table.whole(column)?;
    let order = SortOptions { descending: false, nulls_first: true };
    Ok(rank(&whole, Some(order))?)
}

/// One deduplication of one table.
struct Engine<'a> {
    rows: &'a Rows,
    settled: &'a Settled,
    settings: &'a Settings,
    against: Option<&'a Open>,
    watch: &'a Watch,
}

impl Engine<'_> {
    fn decide<F: Width, R: Ord + Send + Sync>(
        &self,
        rank: impl Fn(usize, &str) -> R + Sync,
    ) -> Result<(Decisions<F>, Read)> {
        let Self { rows, settled, settings, against, watch } = *self;
        let Some(pipeline) = &settled.pipeline else {
            return Err(Failure::usage("there is no pipeline for texts"));
        };
        let mut dedup = Dedup::<F, R>::new(settings)?;
        let extra = |row: usize, text: &str| {
            (settings.verification.evidence(pipeline, text), rank(row, text))
        };
        let read = read::read(rows, pipeline, watch, extra, &mut |_, print, (evidence, rank)| {
            dedup.push(print, &evidence, rank)?;
            Ok(())
        })?;
        let decisions = match against {
            Some(open) => match F::of(open) {
                Some(index) => dedup.finish_against(index, watch)?,
                None => return Err(width_mismatch::<F>(open)),
            },
            None => dedup.finish(watch)?,
        };
        Ok((decisions, read))
    }
}

fn width_mismatch<F: Fingerprint>(open: &Open) -> Failure {
    hamdex::Error::WidthMismatch { stored: open.bits(), wanted: F::BITS }.into()
}

/// A column of numbers, some of them missing.
fn numbers(values: impl Iterator<Item = Option<u32>>) -> UInt32Array {
    values.collect()
}
