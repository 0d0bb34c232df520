//! Building: builds an index from a table, offline and in bounded memory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use arrow_array::Array;
use hamdex::advice::{Overrides, Support};
use hamdex::any::AnyIndex;
use hamdex::build::{BuildOptions, Builder, Repeats};
use hamdex::inspect::Header;
use hamdex::plan::Plan;
use hamdex::{Error, Fingerprint, IndexOptions, NewDocument};
use hamdex_io::{Document, Ids, MaxBad, Repeat, Wanted, columnar, failure};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString};

use super::open::{Texts, is_secret, secret_missing};
use crate::failure::{Failure, Result};
use crate::fingerprints::for_width;
use crate::interrupt::Watch;
use crate::pipeline::Asked;
use crate::resolve;
use crate::rows::{self, Columns, Rows};
use crate::table::Table;
use crate::tables::Seed;

/// The arguments of a build.
#[derive(Debug)]
pub(super) struct Job<'a> {
    pub(super) path: &'a Path,
    pub(super) table: &'a Table,
    pub(super) text: &'a str,
    /// `None` uses row numbers.
    pub(super) id: Option<&'a str>,
    pub(super) odd: Vec<u64>,
    pub(super) asked: Asked,
    pub(super) seed: Option<&'a Seed>,
    pub(super) bits: u32,
    pub(super) distance: Option<u32>,
    pub(super) plan: Option<&'a str>,
    pub(super) keep_features: bool,
    pub(super) memory: Option<usize>,
    pub(super) tmp: Option<PathBuf>,
    pub(super) repeats: Repeats,
    pub(super) max_bad: MaxBad,
}

/// Returns which of several rows with the same id is stored.
pub(super) fn repeats(word: Option<&str>) -> Result<Repeats> {
    match word {
        None => Ok(Repeats::Refuse),
        Some("first") => Ok(Repeats::First),
        Some("last") => Ok(Repeats::Last),
        Some(word) => Err(Failure::usage(format!(
            "on_repeat is \"{word}\"; supported are \"first\" and \"last\""
        ))),
    }
}

/// Parses how many rows may have an invalid id.
pub(super) fn max_bad(object: &Bound<'_, PyAny>) -> Result<MaxBad> {
    let wrong = || Failure::usage("max_bad must be a number of rows, or a share such as \"5%\"");
    if !object.is_instance_of::<PyInt>() && !object.is_instance_of::<PyString>() {
        return Err(wrong());
    }
    object.str()?.to_str()?.parse().map_err(|_| wrong())
}

/// The counts of a build; a dict in Python.
#[derive(Debug, Default, Clone, IntoPyObject)]
pub(super) struct Summary {
    rows: u64,
    documents: u64,
    distinct: u64,
    replaced: u64,
    /// Rows that were skipped because another one has their id.
    repeated: u64,
    /// Rows with nothing to fingerprint, by reason.
    not_compared: BTreeMap<&'static str, u64>,
    /// Rows with an invalid id.
    rejects: u64,
    bytes: u64,
}

impl Job<'_> {
    pub(super) fn run(&self, watch: &Watch) -> Result<(AnyIndex, Summary, Texts)> {
        let header = match Header::read(self.path) {
            Ok(header) => Some(header),
            Err(Error::NotFound { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let bits = header.as_ref().map_or(self.bits, |header| header.bits);
        for_width!(bits, F => self.build::<F>(header.as_ref(), watch))
    }

    fn build<F: Fingerprint>(
        &self,
        header: Option<&Header>,
        watch: &Watch,
    ) -> Result<(AnyIndex, Summary, Texts)> {
        let columns = Columns { text: self.text, id: self.id, ..Columns::default() };
        self.id.map(|id| rows::require_ids(self.table, id)).transpose()?;
        let rows = Rows::of(self.table, &columns, self.odd.clone())?;
        let mut options = IndexOptions::new();
        let keeps = header.map_or(self.keep_features, |header| header.keeps_features);
        let (pipeline, distance) = if let Some(header) = header {
            if self.keep_features {
                options = options.keep_features(true);
            }
            if let Some(distance) = self.distance {
                options = options.distance(distance);
            }
            let distance = self.distance.unwrap_or(header.distance);
            (self.stored(header)?, distance)
        } else {
            let support = if keeps { Support::Features } else { Support::Nothing };
            let mut overrides = Overrides::new().support(support).bits(F::BITS);
            overrides.distance = self.distance;
            let learn = |pipeline: &hamdex::Pipeline| rows.learn(pipeline, watch);
            let resolved = resolve::resolve(&self.asked, overrides, &learn, || rows.sample())?;
            options = options.distance(resolved.distance).keep_features(keeps);
            let pipeline = match resolved.pipeline {
                Some(pipeline) => pipeline,
                None => self.asked.pipeline(&learn)?,
            };
            (pipeline, resolved.distance)
        };
        options = options.text(&pipeline);
        if let Some(plan) = self.plan {
            let count = Some(rows.len as u64);
            options = options.plan(Plan::parse(plan, F::BITS, distance, count)?);
        }
        let mut build = BuildOptions::new().repeats(self.repeats);
        if let Some(memory) = self.memory {
            build = build.memory(memory);
        }
        if let Some(tmp) = &self.tmp {
            build = build.tmp(tmp);
        }
        let builder = Builder::<F>::create(self.path, &options, &build)?;
        let summary = match self.push(builder, &rows, &pipeline, keeps, watch) {
            Ok(summary) => summary,
            Err(failure) => {
                // The input table still exists, so there is nothing to resume.
                Builder::<F>::abandon(self.path)?;
                if header.is_none() {
                    std::fs::remove_dir_all(self.path)
                        .map_err(|source| Error::Io { path: self.path.to_owned(), source })?;
                }
                return Err(failure);
            }
        };
        Ok((AnyIndex::open(self.path)?, summary, Texts::with_pipeline(Some(pipeline))))
    }

    fn stored(&self, header: &Header) -> Result<hamdex::Pipeline> {
        if self.seed.is_none() && is_secret(&header.pipeline) {
            return Err(secret_missing());
        }
        let secret = self.seed.map(|seed| seed.secret);
        let stored = Header::read_pipeline_with(self.path, secret)?;
        resolve::by_index(header, stored, &self.asked)
    }

    /// Stores the documents of the rows.
    fn push<F: Fingerprint>(
        &self,
        mut builder: Builder<F>,
        rows: &Rows,
        pipeline: &hamdex::Pipeline,
        keeps: bool,
        watch: &Watch,
    ) -> Result<Summary> {
        let mut sink = |document: Document<'_, F>| {
            let mut new = NewDocument::new(document.key, document.fingerprint);
            if keeps {
                new = new.features(&document.proofs.features);
            }
            Ok(builder.push_document(&new, document.origin)?)
        };
        let wanted = if keeps { Wanted::FEATURES } else { Wanted::NOTHING };
        // Repeats are found after the sort, before anything goes live.
        let keys = (Ids::Keys(Repeat::Pass), self.max_bad);
        let read = rows.read(pipeline, watch, keys, wanted, &mut sink).map_err(invalid_ids)?;
        if read.totals.documents == 0 && rows.len > 0 {
            return Err(rows.unusable(&read));
        }
        let report = match builder.finish(watch, &mut |_, _| ()) {
            Err(Error::RepeatedKey { first, again, .. }) => {
                return Err(self.repeated(first, again)?);
            }
            report => report?,
        };
        Ok(Summary {
            rows: read.totals.rows,
            documents: report.documents,
            distinct: report.fingerprints,
            replaced: report.replaced,
            repeated: report.duplicates,
            not_compared: read.totals.blank,
            rejects: read.rejects,
            bytes: report.bytes,
        })
    }

    /// Returns the failure of two rows with the same id.
    fn repeated(&self, first: u64, again: u64) -> Result<Failure> {
        let labels = rows::labels(self.table, self.id)?;
        let row = usize::try_from(first).unwrap_or(usize::MAX).min(labels.len());
        let label = columnar::source_values(&labels.slice(row, (labels.len() - row).min(1)))?;
        let id = label.into_iter().flatten().next().unwrap_or_default();
        Ok(Failure::data(format!(
            "rows {first} and {again} have the same id {id}; make ids unique, or pass \
             on_repeat=\"first\" or \"last\""
        )))
    }
}

/// Names the argument that decides how many ids may be invalid.
fn invalid_ids(failure: Failure) -> Failure {
    if let Failure::Rows(failure::Failure::TooManyBad { count, rows, .. }) = failure {
        let message = format!("{count} of {rows} rows have an invalid id; max_bad allows fewer");
        return Failure::data(message);
    }
    failure
}
