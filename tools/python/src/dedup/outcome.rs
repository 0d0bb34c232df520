//! The outcome: converts decisions by position into tables by row and id.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::{
    Array, ArrayRef, Float64Array, ListArray, StringArray, UInt32Array, UInt64Array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::Field;
use arrow_select::take::take;
use hamdex::Fingerprint;
use hamdex::advice::Resolved;
use hamdex::dedup::{Decision, DedupOptions};
use hamdex::join::Linkage;
use hamdex_io::job::Choice;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::sources::Account;
use super::{Found, Wanted, numbers};
use crate::failure::Result;
use crate::index::key_to_text;
use crate::resolve;
use crate::table::Table;

/// The result of a deduplication.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// A byte for every row: 1 to keep it.
    pub(crate) mask: Vec<u8>,
    pub(crate) duplicates: Table,
    pub(crate) clusters: Table,
    pub(crate) rejects: Table,
    pub(crate) report: Report,
}

/// Counts and settings.
#[derive(Debug)]
pub(crate) struct Report {
    rows: usize,
    kept: usize,
    removed: usize,
    removed_unique_by: usize,
    removed_against_index: usize,
    not_compared: BTreeMap<&'static str, u64>,
    clusters: usize,
    rejects: usize,
    sources: Account,
    seconds: f64,
    bits: u32,
    settings: DedupOptions,
    to: Option<u64>,
    resolved: Resolved,
}

/// The inputs of the outcome.
pub(super) struct Done<'a, F> {
    pub(super) found: &'a Found<F>,
    /// The labels of all rows.
    pub(super) labels: ArrayRef,
    pub(super) rows: usize,
    pub(super) resolved: &'a Resolved,
    pub(super) settings: &'a DedupOptions,
    /// Rows to leave.
    pub(super) to: Option<u64>,
    pub(super) drop_empty: bool,
    /// Whether sources are counted.
    pub(super) sourced: bool,
    pub(super) against: bool,
    pub(super) started: Instant,
}

pub(super) fn outcome<F: Fingerprint>(done: &Done<'_, F>) -> Result<Outcome> {
    let Done { rows, resolved, settings, .. } = *done;
    let Choice { decisions, origins, repeats, .. } = &done.found.choice;
    let mut mask = vec![1; rows];
    let mut drop = |row: u64| {
        if let Some(slot) = mask.get_mut(at(row)) {
            *slot = 0;
        }
    };
    for (decision, row) in decisions.iter().zip(origins.iter()) {
        if !matches!(decision, Decision::Kept { .. }) {
            drop(row);
        }
    }
    repeats.keys().copied().for_each(&mut drop);
    let rejects = if done.drop_empty { done.found.blank.as_slice() } else { &[] };
    for &(row, _) in rejects {
        drop(row);
    }
    let kept = |row: usize| {
        let rejected = rejects.binary_search_by_key(&(row as u64), |&(row, _)| row).is_ok();
        (!rejected).then(|| mask.get(row) == Some(&1))
    };
    let sources = if done.sourced {
        Account::of(done.found, &done.labels, kept)?
    } else {
        Account::default()
    };
    let reasons = rejects.iter().map(|(_, reason)| *reason);
    let removed_unique_by = repeats.len();
    let removed = decisions.removed() + removed_unique_by;
    Ok(Outcome {
        duplicates: duplicates(done)?,
        clusters: clusters(done)?,
        rejects: Table::of(vec![
            ("row", Arc::new(UInt64Array::from_iter_values(rejects.iter().map(|r| r.0)))),
            ("reason", Arc::new(StringArray::from_iter_values(reasons))),
        ])?,
        report: Report {
            rows,
            kept: rows - removed - rejects.len(),
            removed,
            removed_unique_by,
            removed_against_index: decisions.near_stored(),
            not_compared: if done.drop_empty {
                BTreeMap::new()
            } else {
                done.found.read.totals.blank.clone()
            },
            clusters: decisions.clusters().len(),
            rejects: rejects.len(),
            sources,
            seconds: done.started.elapsed().as_secs_f64(),
            bits: F::BITS,
            settings: settings.clone(),
            to: done.to,
            resolved: resolved.clone(),
        },
        mask,
    })
}

/// Returns the index of a row.
pub(super) fn at(row: u64) -> usize {
    usize::try_from(row).unwrap_or(usize::MAX)
}

impl<F> Done<'_, F> {
    /// Returns the rows of the documents at some positions.
    fn numbered(&self, positions: impl Iterator<Item = Option<u32>>) -> UInt64Array {
        let row = |position: u32| self.found.choice.origins.get(position as usize);
        positions.map(|position| position.and_then(row)).collect()
    }

    /// Returns the labels of the documents at some positions.
    fn names(&self, positions: impl Iterator<Item = Option<u32>>) -> Result<ArrayRef> {
        Ok(take(&self.labels, &self.numbered(positions), None)?)
    }
}

/// A removed document: distance, similarity, cluster, and the position or key of the kept one.
struct Duplicate<'a> {
    position: u32,
    kept: Option<u32>,
    stored: Option<&'a [u8]>,
    distance: u32,
    similarity: Option<f64>,
    cluster: Option<u32>,
}

/// Returns a row for each removed document, in table order.
fn duplicates<F: Fingerprint>(done: &Done<'_, F>) -> Result<Table> {
    let decisions = &done.found.choice.decisions;
    let duplicate = |(position, decision)| match decision {
        Decision::Kept { .. } => None,
        Decision::Duplicate { kept, distance, similarity, cluster } => Some(Duplicate {
            position,
            kept: Some(kept),
            stored: None,
            distance,
            similarity: similarity.map(|value| (value * 1e4).round() / 1e4),
            cluster: Some(cluster),
        }),
        Decision::Stored { key, distance, similarity } => Some(Duplicate {
            position,
            kept: None,
            stored: Some(key),
            distance,
            similarity,
            cluster: None,
        }),
    };
    let all: Vec<Duplicate<'_>> = (0..).zip(decisions.iter()).filter_map(duplicate).collect();
    let mut columns: Vec<(&str, ArrayRef)> = vec![
        ("id", done.names(all.iter().map(|found| Some(found.position)))?),
        ("row", Arc::new(done.numbered(all.iter().map(|found| Some(found.position))))),
        ("kept_id", done.names(all.iter().map(|found| found.kept))?),
        ("kept_row", Arc::new(done.numbered(all.iter().map(|found| found.kept)))),
        ("distance", Arc::new(numbers(all.iter().map(|found| Some(found.distance))))),
        (
            "similarity",
            Arc::new(all.iter().map(|found| found.similarity).collect::<Float64Array>()),
        ),
        ("cluster", Arc::new(numbers(all.iter().map(|found| found.cluster)))),
    ];
    if done.against {
        let stored = all.iter().map(|found| found.stored.map(key_to_text));
        columns.push(("stored_id", Arc::new(stored.collect::<StringArray>())));
    }
    Table::of(columns)
}

/// Returns a row for each group, the largest first.
fn clusters<F: Fingerprint>(done: &Done<'_, F>) -> Result<Table> {
    let decisions = &done.found.choice.decisions;
    let clusters: Vec<_> = decisions.clusters().collect();
    let members = clusters.iter().flat_map(|cluster| cluster.members).map(|&at| Some(at));
    let ids = done.names(members)?;
    let field = Arc::new(Field::new("item", ids.data_type().clone(), true));
    let lengths = OffsetBuffer::from_lengths(clusters.iter().map(|found| found.members.len()));
    let diameters: Vec<_> = clusters.iter().map(|&found| decisions.diameter(found)).collect();
    let diameter = |exact: bool| {
        diameters.iter().map(move |found| (found.exact == exact).then_some(found.bits))
    };
    let sizes = clusters.iter().map(|found| u32::try_from(found.members.len()).ok());
    Table::of(vec![
        ("cluster", Arc::new(numbers(clusters.iter().map(|found| Some(found.number))))),
        ("size", Arc::new(sizes.collect::<UInt32Array>())),
        ("kept_id", done.names(clusters.iter().map(|found| Some(found.kept)))?),
        ("ids", Arc::new(ListArray::try_new(field, lengths, ids, None)?)),
        ("diameter", Arc::new(numbers(diameter(true)))),
        ("diameter_at_least", Arc::new(numbers(diameter(false)))),
    ])
}

impl Report {
    /// Returns the report with the names of report.json.
    pub(super) fn to_dict<'py>(
        &self,
        py: Python<'py>,
        wanted: &Wanted,
    ) -> PyResult<Bound<'py, PyDict>> {
        let settings = PyDict::new(py);
        settings.set_item("bits", self.bits)?;
        settings.set_item("distance", self.settings.distance)?;
        settings.set_item("verification", self.settings.verification.to_string())?;
        let with_kept = self.settings.linking() == Linkage::Representative;
        settings.set_item("verified_with_kept", with_kept)?;
        let pipeline = self.resolved.pipeline.as_ref();
        settings.set_item("pipeline", pipeline.map_or("", |pipeline| pipeline.descriptor()))?;
        settings.set_item("keep", &wanted.keep)?;
        settings.set_item("to", self.to)?;
        settings.set_item("text", &wanted.text)?;
        settings.set_item("unique_by", &wanted.unique_by)?;
        let dict = PyDict::new(py);
        for (name, count) in [
            ("rows", self.rows),
            ("documents", self.kept + self.removed),
            ("kept", self.kept),
            ("removed", self.removed),
            ("removed_unique_by", self.removed_unique_by),
            ("removed_against_index", self.removed_against_index),
            ("clusters", self.clusters),
            ("rejects", self.rejects),
        ] {
            dict.set_item(name, count)?;
        }
        dict.set_item("not_compared", &self.not_compared)?;
        dict.set_item("seconds", self.seconds)?;
        dict.set_item("settings", settings)?;
        let advice = self.resolved.advice.as_ref();
        dict.set_item("advice", advice.map(|advice| resolve::to_dict(py, advice)).transpose()?)?;
        dict.set_item("sources", self.sources.to_list(py)?)?;
        let mut warnings = self.sources.warnings.clone();
        if let Some(wanted) = self.to.filter(|&wanted| self.kept as u64 > wanted) {
            warnings.push(format!(
                "{} rows are left, more than the {wanted} of `to`: no other pair is near enough",
                self.kept
            ));
        }
        dict.set_item("warnings", warnings)?;
        Ok(dict)
    }
}
