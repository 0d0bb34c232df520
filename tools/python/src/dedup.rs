//! Deduplication: computes a mask of the rows to keep, and tables of the removed ones.

mod outcome;
pub(crate) mod sources;

use std::path::PathBuf;
use std::time::Instant;

use arrow_array::UInt32Array;
use hamdex::Fingerprint;
use hamdex::advice::{Overrides, Resolved};
use hamdex::any::AnyIndex;
use hamdex::dedup::DedupOptions;
use hamdex::join::Linkage;
use hamdex::verify::{EvidencePreparer, Verification};
use hamdex_io::host::Host;
use hamdex_io::job::{Against as Compared, Choice, Documents, Field, Keep, Purpose, To};
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
    to: Option<String>,
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
        keep: keep_of(&wanted.keep)?,
        to: wanted.to.as_deref().map(str::parse).transpose().map_err(Failure::usage)?,
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

/// Parses which document of a group is kept.
fn keep_of(text: &str) -> Result<Keep> {
    text.parse().map_err(|_| {
        Failure::usage(format!(
            "keep is \"{text}\"; supported are first, longest, newest:COLUMN and best:COLUMN"
        ))
    })
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
    to: Option<To>,
    wanted: &'a Wanted,
}

impl Job<'_> {
    fn run<F: Fingerprint>(&self, against: Option<Against<'_>>, watch: &Watch) -> Result<Outcome> {
        let started = Instant::now();
        let Wanted { text, id, odd, distance, tmp, .. } = self.wanted;
        let stamp = match &self.keep {
            Keep::Largest(Field { name: column, .. }) => {
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
        let found = self.decide::<F>(&rows, &resolved, &settings, against, watch)?;
        watch.check()?;
        if found.choice.origins.count() == 0 && rows.len > 0 && found.choice.repeats.is_empty() {
            return Err(rows.unusable(&found.read));
        }
        outcome::outcome(&Done {
            found: &found,
            labels: rows::labels(self.table, id.as_deref())?,
            rows: rows.len,
            resolved: &resolved,
            settings: &settings,
            to: found.to,
            drop_empty: self.wanted.drop_empty,
            sourced: columns.source.is_some(),
            against: against.is_some(),
            started,
        })
    }

    /// Decides on all rows.
    fn decide<F: Fingerprint>(
        &self,
        rows: &Rows,
        resolved: &Resolved,
        settings: &DedupOptions,
        against: Option<Against<'_>>,
        watch: &Watch,
    ) -> Result<Found<F>> {
        let Some(pipeline) = &resolved.pipeline else {
            return Err(Failure::usage("there is no pipeline for texts"));
        };
        let purpose = Purpose {
            keep: &self.keep,
            near: settings,
            unique: self.wanted.unique_by.is_some(),
            against: false,
            sourced: false,
        };
        let mut taken = Taken {
            rows,
            drop_empty: self.wanted.drop_empty,
            documents: Documents::<F>::new(&purpose)?,
            blank: Vec::new(),
            sources: sources::Column::default(),
        };
        let evidence = Evidence::by(settings.verification);
        let mut read = rows.read(pipeline, watch, LABELS, evidence, &mut taken)?;
        let Taken { documents, mut blank, sources, .. } = taken;
        self.require_values(documents.stamped(), &sources, rows.len)?;
        let against = match against {
            Some(against) => Compared::Index(against.open.of_width::<F>()?),
            None => Compared::Nothing,
        };
        let to = self.to.map(|to| to.rows(documents.rows()));
        let choice = documents.decide(against, to, watch)?;
        blank.retain(|&(row, reason)| {
            let counted = !choice.repeats.contains_key(&row);
            if !counted && let Some(count) = read.totals.blank.get_mut(reason) {
                *count -= 1;
            }
            counted
        });
        read.totals.blank.retain(|_, count| *count > 0);
        Ok(Found { choice, read, blank, sources, to })
    }

    /// Refuses columns in which no row has a value.
    fn require_values(&self, stamped: bool, sources: &sources::Column, rows: usize) -> Result<()> {
        if rows == 0 {
            return Ok(());
        }
        if let (Keep::Largest(_), false) = (&self.keep, stamped) {
            let keep = &self.keep;
            return Err(Failure::usage(format!(
                "keep=\"{keep}\": no row has a value in that column"
            )));
        }
        match &self.wanted.source_field {
            Some(column) if sources.is_empty() => Err(Failure::data(format!(
                "source_field=\"{column}\": no row has a value in that column"
            ))),
            _ => Ok(()),
        }
    }
}

/// The decisions, and what the rows are.
#[derive(Debug)]
struct Found<F> {
    choice: Choice<F>,
    read: Read,
    /// Rows with nothing to compare and why, ascending.
    blank: Vec<(u64, &'static str)>,
    sources: sources::Column,
    /// Rows to leave.
    to: Option<u64>,
}

/// Rows that are collected.
struct Taken<'a, F> {
    rows: &'a Rows,
    drop_empty: bool,
    documents: Documents<F>,
    blank: Vec<(u64, &'static str)>,
    sources: sources::Column,
}

impl<F: Fingerprint> Sink<F> for Taken<'_, F> {
    fn document(&mut self, mut document: Document<'_, F>) -> hamdex_io::failure::Result<()> {
        // The job counts no sources here, so it needs none.
        self.sources.push(document.source.take());
        self.documents.document(document)
    }

    fn preparer(&self) -> Option<EvidencePreparer> {
        Sink::<F>::preparer(&self.documents)
    }

    fn blank(&mut self, mut blank: Blank) -> hamdex_io::failure::Result<()> {
        self.blank.push((blank.origin, self.rows.reason(&blank)));
        self.sources.push(blank.source.take());
        // A row that is dropped takes no value from another one.
        if self.drop_empty { Ok(()) } else { Sink::<F>::blank(&mut self.documents, blank) }
    }
}

/// A column of numbers, some of them missing.
fn numbers(values: impl Iterator<Item = Option<u32>>) -> UInt32Array {
    values.collect()
}
