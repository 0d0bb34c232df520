//! Building: a table becomes an index, offline and in bounded memory.

use std::path::{Path, PathBuf};

use arrow_array::Array;
use hamdex::advice::{Support, Wishes};
use hamdex::verify::FeatureSet;
use hamdex::{BuildOptions, Builder, Error, Header, IndexOptions, NewDocument, OpenOptions, Plan};
use pyo3::IntoPyObject;
use rayon::prelude::*;

use super::open::{Open, Width};
use crate::column::{Ids, Texts};
use crate::failure::Result;
use crate::fingerprints::for_width;
use crate::interrupt::Watch;
use crate::name;
use crate::pipeline::Asked;
use crate::settle;
use crate::table::Table;

/// Rows that are read together, on all threads.
const BATCH: usize = 1024;

/// What is to be built.
#[derive(Debug)]
pub(super) struct Job<'a> {
    pub(super) path: &'a Path,
    pub(super) table: &'a Table,
    pub(super) text: &'a str,
    /// `None` numbers the rows.
    pub(super) id: Option<&'a str>,
    pub(super) asked: Asked,
    pub(super) bits: u32,
    pub(super) distance: Option<u32>,
    pub(super) plan: Option<&'a str>,
    pub(super) keep_features: bool,
    pub(super) memory: Option<usize>,
    pub(super) tmp: Option<PathBuf>,
}

/// What was built; a dict in Python.
#[derive(Debug, Default, Clone, Copy, IntoPyObject)]
pub(super) struct Summary {
    documents: u64,
    distinct: u64,
    replaced: u64,
    bytes: u64,
    /// Rows without a text that has features, or with the id of an earlier row.
    rejects: u64,
}

/// A row on its way into the index.
struct Made<F> {
    key: Vec<u8>,
    fingerprint: F,
    features: Option<Vec<u8>>,
}

impl Job<'_> {
    pub(super) fn run(&self, watch: &Watch) -> Result<(Open, Summary)> {
        let header = match Header::read(self.path) {
            Ok(header) => Some(header),
            Err(Error::NotFound { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let bits = header.as_ref().map_or(self.bits, |header| header.bits);
        for_width!(bits, F => self.build::<F>(header.as_ref(), watch))
    }

    fn build<F: Width>(&self, header: Option<&Header>, watch: &Watch) -> Result<(Open, Summary)> {
        let texts = self.table.column(self.text)?;
        let mut options = IndexOptions::new();
        let keeps = header.map_or(self.keep_features, |header| header.keeps_features);
        let (pipeline, distance) = if let Some(header) = header {
            let stored = Header::read_pipeline(self.path)?;
            if self.keep_features {
                options = options.keep_features(true);
            }
            if let Some(distance) = self.distance {
                options = options.distance(distance);
            }
            let distance = self.distance.unwrap_or(header.distance);
            (settle::by_index(header, stored, &self.asked)?, distance)
        } else {
            let support = if keeps { Support::Features } else { Support::Nothing };
            let wishes =
                Wishes { distance: self.distance, support, bits: F::BITS, ..Wishes::new() };
            let settled =
                settle::settle(&self.asked, wishes, || settle::sample(&texts, self.text))?;
            options = options.distance(settled.distance).keep_features(keeps);
            let pipeline = match settled.pipeline {
                Some(pipeline) => pipeline,
                None => self.asked.pipeline()?,
            };
            (pipeline, settled.distance)
        };
        options = options.text(&pipeline);
        if let Some(plan) = self.plan {
            let count = Some(self.table.rows() as u64);
            options = options.plan(Plan::parse(plan, F::BITS, distance, count)?);
        }
        let mut build = BuildOptions::new();
        if let Some(memory) = self.memory {
            build = build.memory(memory);
        }
        if let Some(tmp) = &self.tmp {
            build = build.tmp(tmp);
        }
        let builder = Builder::<F>::create(self.path, &options, &build)?;
        let summary = match self.push(builder, &pipeline, keeps, watch) {
            Ok(summary) => summary,
            Err(failure) => {
                // The table is still at hand, so nothing has to be gone on with.
                Builder::<F>::abandon(self.path)?;
                if header.is_none() {
                    std::fs::remove_dir_all(self.path)
                        .map_err(|source| Error::Io { path: self.path.to_owned(), source })?;
                }
                return Err(failure);
            }
        };
        let open = F::open(hamdex::Index::open_with(self.path, &OpenOptions::new())?);
        Ok((open, summary))
    }

    fn push<F: Width>(
        &self,
        mut builder: Builder<F>,
        pipeline: &hamdex::Pipeline,
        keeps: bool,
        watch: &Watch,
    ) -> Result<Summary> {
        let texts = self.table.column(self.text)?;
        let ids = self.id.map(|id| self.table.column(id)).transpose()?;
        let mut summary = Summary::default();
        let mut base = 0_usize;
        for (at, piece) in texts.iter().enumerate() {
            let texts = Texts::of(piece.as_ref(), self.text)?;
            let ids = ids.as_ref().and_then(|ids| ids.get(at));
            let ids = ids.map(|ids| Ids::of(ids, self.id.unwrap_or_default())).transpose()?;
            let make = |row: usize| -> Option<Made<F>> {
                let text = texts.get(row)?;
                let key = match &ids {
                    Some(ids) => ids.key(row).ok()??,
                    None => name::of_number((base + row) as i128),
                };
                let fingerprint = pipeline.fingerprint::<F>(text)?.fingerprint;
                let features = keeps.then(|| FeatureSet::of_text(pipeline, text).encode());
                Some(Made { key, fingerprint, features })
            };
            for first in (0..piece.len()).step_by(BATCH) {
                watch.check()?;
                let batch = first..piece.len().min(first + BATCH);
                let made: Vec<_> = batch.clone().into_par_iter().map(make).collect();
                for (row, made) in batch.zip(made) {
                    let Some(Made { key, fingerprint, features }) = made else {
                        summary.rejects += 1;
                        continue;
                    };
                    let mut document = NewDocument::new(&key, fingerprint);
                    if let Some(features) = &features {
                        document = document.features(features);
                    }
                    builder.push_document(&document, (base + row) as u64)?;
                }
            }
            base += piece.len();
        }
        let report = builder.finish(watch, &mut |_, _| ())?;
        Ok(Summary {
            documents: report.documents,
            distinct: report.fingerprints,
            replaced: report.replaced,
            bytes: report.bytes,
            rejects: summary.rejects + report.duplicates,
        })
    }
}
