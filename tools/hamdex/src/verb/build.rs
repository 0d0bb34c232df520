//! `build`: documents become an index in one go, by external sort and bulk ingest.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use hamdex::advice::Support;
use hamdex::{
    BuildOptions, BuildReport, Builder, Error, Fingerprint, IndexOptions, NewDocument, shards,
};
use serde::Serialize;

use crate::advise::{self, Wishes};
use crate::failure::{Failure, Result};
use crate::input::{
    At, Document, Ids, Inputs, Kind, Place, Policy, Reading, Reason, Rejects, Totals, WarcId,
};
use crate::key::Name;
use crate::options::{DistanceArg, MemoryArg, PipelineArgs, PlanArg, RowArgs, TmpArg, WidthArg};
use crate::session::Session;
use crate::size;
use crate::stored;
use crate::table::Table;
use crate::verify_options::KeepFeaturesArg;
use crate::width::{self, for_width};

/// Build an index from documents, or merge them into one
///
/// Sorts outside memory and ingests whole files, which is many times faster than 'insert'.
/// A row whose id the index has already replaces the stored document.
///
/// After a kill, the same command with --resume goes on where it stopped; it reads the same
/// inputs in the same order and passes over the rows that are safe already.
#[derive(Debug, Args)]
#[command(after_long_help = "Example:\n  hamdex build pages.idx pages-*.jsonl.gz -k 3 --memory 2G")]
pub(crate) struct BuildArgs {
    /// Directory of the index: absent, empty, or an index to merge into
    index: PathBuf,
    /// Documents: .jsonl, .parquet, .csv, .tsv, .warc, .txt, .html, directories, raw .u32 .u64 .u128, - for stdin
    #[arg(required_unless_present_any = ["abandon", "from_shards", "files_from"], value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Take over the sorted files that many machines wrote (Python: `build_index`)
    ///
    /// They bring width, plan, distance and pipeline along.
    #[arg(long, value_name = "DIR", conflicts_with_all = [
        "inputs", "resume", "abandon", "bits", "distance", "plan",
    ])]
    from_shards: Option<PathBuf>,
    /// Go on with a build that was interrupted
    #[arg(long, conflicts_with = "abandon")]
    resume: bool,
    /// Drop a build that was interrupted; the index is as it was before
    #[arg(long, conflicts_with = "inputs")]
    abandon: bool,
    #[command(flatten)]
    width: WidthArg,
    #[command(flatten)]
    distance: DistanceArg,
    #[command(flatten)]
    plan: PlanArg,
    #[command(flatten)]
    pipeline: PipelineArgs,
    #[command(flatten)]
    rows: RowArgs,
    #[command(flatten)]
    memory: MemoryArg,
    #[command(flatten)]
    tmp: TmpArg,
    #[command(flatten)]
    keep: KeepFeaturesArg,
}

#[derive(Default, Serialize)]
struct Summary {
    index: String,
    documents: u64,
    distinct: u64,
    read: u64,
    replaced: u64,
    rejects: u64,
    skipped_binary: u64,
    skipped_status: u64,
    skipped_type: u64,
    without_features: u64,
    bytes: u64,
    seconds: f64,
    rate: f64,
}

impl BuildArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<()> {
        if self.abandon {
            return self.drop_unfinished(session);
        }
        if let Some(directory) = &self.from_shards {
            return self.take_shards(session, directory);
        }
        let inputs = self.rows.inputs(&self.inputs, &session.console)?;
        let header = stored::header(&self.index)?;
        let wanted = self.keep.wanted(header.as_ref())?;
        let bits = width::settle(self.width.bits, header.as_ref(), inputs.raw_width()?)?;
        let (pipeline, distance) = if let Some(header) = &header {
            let pipeline = stored::pipeline_for(&self.pipeline, header, &self.index, &inputs)?;
            (pipeline, self.distance.distance)
        } else {
            let wishes = Wishes {
                pipeline: &self.pipeline,
                distance: self.distance.distance,
                verify: None,
                sketch: self.pipeline.sketch,
                support: if wanted.features { Support::Features } else { Support::Nothing },
                bits,
            };
            let settled = advise::settle_index(&session.console, &inputs, &wishes)?;
            (settled.pipeline, Some(settled.distance))
        };
        for_width!(bits, F => {
            let count = inputs.estimated_rows(F::BYTES);
            let mut options =
                stored::index_options::<F>(&self.plan, distance, header.as_ref(), count)?;
            options = options.memory(self.memory.memory.0).keep_features(wanted.features);
            if let Some(pipeline) = &pipeline {
                options = options.text(pipeline);
            }
            let reading = Reading {
                inputs: &inputs,
                pipeline: pipeline.as_ref(),
                console: &session.console,
                // Duplicates come to light when all is sorted, too late for those who want to stop.
                ids: Ids::Keys { unique: self.rows.strict },
                keep_blank: false,
                after: None,
                wanted,
            };
            self.build::<F>(session, &options, reading, header.is_none())
        })
    }

    fn drop_unfinished(&self, session: &Session) -> Result<()> {
        let header = stored::require(&self.index, self.width.bits)?;
        for_width!(header.bits, F => Builder::<F>::abandon(&self.index)?);
        session.console.say(&format!("dropped the unfinished build in {}", self.index.display()));
        Ok(())
    }

    /// Makes the index of files that were sorted elsewhere.
    fn take_shards(&self, session: &Session, directory: &Path) -> Result<()> {
        let started = Instant::now();
        let bits = shards::manifest_bits(directory)?;
        let report =
            for_width!(bits, F => shards::ingest::<F>(directory, &self.index, &session.console));
        session.console.end_phase();
        let BuildReport { documents, fingerprints, bytes, .. } = report?;
        let seconds = started.elapsed().as_secs_f64();
        let summary = Summary {
            index: self.index.display().to_string(),
            documents,
            distinct: fingerprints,
            read: documents,
            bytes,
            seconds,
            rate: documents as f64 / seconds.max(1e-9),
            ..Summary::default()
        };
        summarise(session, &summary)
    }

    /// Takes up the unfinished build, or begins one where there is none.
    fn builder<F: Fingerprint>(
        &self,
        session: &Session,
        options: &IndexOptions,
        resources: &BuildOptions,
    ) -> Result<Builder<F>> {
        if self.resume {
            match Builder::resume(&self.index, resources) {
                Err(Error::NothingToResume { .. } | Error::NotFound { .. }) => {
                    // A build that was killed at once, or one that was done: both are repeatable.
                    session.console.say("nothing to resume, reading from the start");
                }
                builder => return Ok(builder?),
            }
        }
        Ok(Builder::create(&self.index, options, resources)?)
    }

    fn build<F: Fingerprint>(
        &self,
        session: &Session,
        options: &IndexOptions,
        mut reading: Reading<'_>,
        new: bool,
    ) -> Result<()> {
        let started = Instant::now();
        let mut resources = BuildOptions::new().memory(self.memory.memory.0);
        if let Some(directory) = self.tmp.directory() {
            resources = resources.tmp(directory);
        }
        let policy = Policy {
            append: self.resume,
            overwrite: session.overwrite,
            ..self.rows.policy()
        };
        let mut rejects = Rejects::new(policy, &session.console)?;
        let mut builder = self.builder::<F>(session, options, &resources)?;
        reading.after = builder.resume_after();
        let mut without_features = 0;
        let read = reading.run::<F>(&mut rejects, &mut |document: Document<'_, F>| {
            let new = NewDocument::new(document.key, document.fingerprint);
            let features = &document.proofs.features;
            if features.is_empty() {
                without_features += u64::from(reading.wanted.features);
                return Ok(builder.push_document(&new, document.origin)?);
            }
            Ok(builder.push_document(&new.features(features), document.origin)?)
        });
        let totals = match read {
            Ok(totals) => totals,
            Err(failure) => {
                drop(builder);
                if inputs_at_fault(&failure) {
                    Builder::<F>::abandon(&self.index)?;
                    if new {
                        // There was nothing here before, so nothing is to stay behind.
                        std::fs::remove_dir_all(&self.index)
                            .map_err(|e| Failure::io(&self.index, e))?;
                    }
                } else {
                    session.console.say("what was read is safe: --resume goes on from there");
                }
                return Err(failure);
            }
        };
        let mut refused = Ok(());
        let report = builder.finish(&session.console, &mut |key, origin| {
            if refused.is_ok() {
                refused = duplicate(reading.inputs, &totals, &mut rejects, key, origin);
            }
        });
        session.console.end_phase();
        let report = report?;
        let rejected = rejects.count();
        rejects.finish()?;
        let seconds = started.elapsed().as_secs_f64();
        summarise(
            session,
            &Summary {
                index: self.index.display().to_string(),
                documents: report.documents,
                distinct: report.fingerprints,
                read: totals.documents,
                replaced: report.replaced,
                rejects: rejected,
                skipped_binary: totals.binary,
                skipped_status: totals.passed.status,
                skipped_type: totals.passed.kind,
                without_features,
                bytes: report.bytes,
                seconds,
                rate: totals.documents as f64 / seconds.max(1e-9),
            },
        )?;
        refused
    }
}

/// Tells whether the same inputs would fail again, so that there is nothing to resume.
fn inputs_at_fault(failure: &Failure) -> bool {
    !matches!(failure, Failure::Library(_))
}

fn summarise(session: &Session, summary: &Summary) -> Result<()> {
    let mut table = Table::list();
    table
        .pair("documents", size::thousands(summary.documents))
        .pair("distinct", size::thousands(summary.distinct))
        .pair("bytes", size::bytes(summary.bytes as f64))
        .pair("seconds", format!("{:.2}", summary.seconds))
        .pair("rate", format!("{}/s", size::estimate(summary.rate.round())));
    for (name, count) in [
        ("replaced", summary.replaced),
        ("bad rows skipped", summary.rejects),
        ("binary files skipped", summary.skipped_binary),
        ("other statuses skipped", summary.skipped_status),
        ("other types skipped", summary.skipped_type),
        ("without features", summary.without_features),
    ] {
        if count > 0 {
            table.pair(name, size::thousands(count));
        }
    }
    session.report(summary, &table)
}

/// Notes a row whose key an earlier row had.
fn duplicate(
    inputs: &Arc<Inputs>,
    totals: &Totals,
    rejects: &mut Rejects,
    key: &[u8],
    origin: u64,
) -> Result<()> {
    let name = Name::of(key).to_string();
    let found = totals.origins.find(origin);
    let source = found.and_then(|(source, row)| Some((inputs.sources.get(source)?, row)));
    let Some((source, row)) = source else {
        return rejects.add(Place { file: "-", at: At::Whole }, Reason::DuplicateId(name), None);
    };
    let (file, at) = match &source.kind {
        Kind::Lines | Kind::Json | Kind::Columnar(_) | Kind::Delimited(_) => {
            (source.name.clone(), At::Line(row + 1))
        }
        Kind::Raw(bits) => (source.name.clone(), At::Offset(row * u64::from(bits / 8))),
        Kind::Warc => (source.name.clone(), At::Record(row + 1, None)),
        Kind::Text => (source.name.clone(), At::Whole),
        Kind::Directory(_) => (format!("{}/{name}", source.name), At::Whole),
    };
    let reason = match (at, inputs.names.warc_id) {
        (At::Record(..), WarcId::Uri) => Reason::DuplicateUri(name),
        _ => Reason::DuplicateId(name),
    };
    rejects.add(Place { file: &file, at }, reason, None)
}
