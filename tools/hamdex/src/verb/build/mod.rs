//! `build`: documents become an index in one go, by external sort and bulk ingest.

mod inputs;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use hamdex::advice::Support;
use hamdex::any::AnyBuilder;
use hamdex::build::{BuildOptions, BuildReport, Builder, Repeats, shards};
use hamdex::inspect::Header;
use hamdex::plan::Plan;
use hamdex::text::Pipeline;
use hamdex::{Error, Fingerprint, IndexOptions, NewDocument, for_width};
use hamdex_io::host::Host;
use serde::Serialize;

use crate::advise::{self, Overrides};
use crate::draw::table::Table;
use crate::failure::{Failure, Result};
use crate::input::{Document, Export, Ids, Inputs, Origins, Policy, Reading, Rejects, Repeat};
use crate::options::verification::KeepFeaturesArg;
use crate::options::{
    DistanceArg, MemoryArg, OnRepeat, PipelineArgs, PlanArg, RowArgs, TmpArg, WidthArg,
};
use crate::session::Session;
use crate::settings;
use crate::size;
use crate::stored;

/// Build an index from documents, or merge them into one
///
/// Sorts on disk and ingests whole files, which is many times faster than 'insert'. A row whose id
/// is stored already replaces the stored document. Two rows with the same id are refused before
/// anything changes, unless --on-repeat chooses one.
///
/// After a kill, the same command with --resume continues. It reads the same inputs in the same
/// order and skips the rows that are stored already. Other inputs are refused.
#[derive(Debug, Args)]
#[command(after_long_help = "Example:\n  hamdex build pages.idx pages-*.jsonl.gz -k 3 --memory 2G")]
pub(crate) struct BuildArgs {
    /// Directory of the index: absent, empty, or an index to merge into
    index: PathBuf,
    /// Documents: .jsonl, .parquet, .csv, .tsv, .warc, .txt, .html, directories, raw .u32 .u64
    /// .u128, - for stdin
    #[arg(required_unless_present_any = ["abandon", "from_shards", "files_from"], value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Ingest the sorted files that many machines wrote (Python: `build_index`)
    ///
    /// These files define width, plan, distance and pipeline.
    #[arg(long, value_name = "DIR", conflicts_with_all = [
        "inputs", "resume", "abandon", "bits", "distance", "plan",
    ])]
    from_shards: Option<PathBuf>,
    /// Continue an interrupted build
    #[arg(long, conflicts_with = "abandon")]
    resume: bool,
    /// Drop an interrupted build; the index is then as it was before
    #[arg(long, conflicts_with = "inputs")]
    abandon: bool,
    /// Row to use of several with the same id; without this option they are refused
    #[arg(long, value_name = "first|last", value_enum, hide_possible_values = true)]
    on_repeat: Option<OnRepeat>,
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
    repeated: u64,
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
        stored::before_inputs(&self.index)?;
        if self.abandon {
            return self.drop_unfinished(session);
        }
        if let Some(directory) = &self.from_shards {
            return self.take_shards(session, directory);
        }
        let inputs = self.rows.inputs(&self.inputs, &session.console)?;
        let header = stored::header(&self.index)?;
        let export = inputs.export()?;
        if let Some(header) = &header {
            stored::require_export(header, export.as_ref())?;
        }
        // An existing index keeps its settings.
        let export = export.filter(|_| header.is_none());
        let mut wanted = self.keep.wanted(header.as_ref())?;
        wanted.features |= export.as_ref().is_some_and(|export| export.keeps_features);
        let bits = self.width.bits.or(export.as_ref().map(|export| export.bits));
        let bits = settings::width(bits, header.as_ref(), inputs.raw_width()?)?;
        let (pipeline, distance) =
            self.resolved(session, &inputs, header.as_ref(), export.as_ref(), bits)?;
        for_width!(bits, F => {
            let count = inputs.estimated_rows(F::BYTES);
            let mut options =
                stored::index_options::<F>(&self.plan, distance, header.as_ref(), count)?;
            options = options.memory(self.memory.memory.0).keep_features(wanted.features);
            if let Some(export) = &export {
                options = self.as_exported::<F>(options, export, distance)?;
            }
            if let Some(pipeline) = &pipeline {
                options = options.text(pipeline);
            }
            let reading = Reading {
                inputs: &inputs,
                pipeline: pipeline.as_ref(),
                console: &session.console,
                // Repeats are found after the sort, before anything goes live.
                ids: Ids::Keys(Repeat::Pass),
                keep_blank: false,
                after: None,
                wanted,
            };
            self.build::<F>(session, &options, reading)
        })
    }

    /// Returns pipeline and distance: of the index, of an export, else from a sample.
    fn resolved(
        &self,
        session: &Session,
        inputs: &Arc<Inputs>,
        header: Option<&Header>,
        export: Option<&Export>,
        bits: u32,
    ) -> Result<(Option<Pipeline>, Option<u32>)> {
        if let Some(header) = header {
            let pipeline = stored::pipeline_for(&self.pipeline, header, &self.index, inputs)?;
            return Ok((pipeline, self.distance.distance));
        }
        let overrides = Overrides {
            pipeline: &self.pipeline,
            distance: self.distance.distance,
            verify: None,
            sketch: self.pipeline.sketch,
            support: if self.keep.keep_features { Support::Features } else { Support::Nothing },
            bits,
        };
        let resolved = advise::resolve_index(&session.console, inputs, export, &overrides)?;
        Ok((resolved.pipeline, Some(resolved.distance)))
    }

    /// Adds the plan and the words for the pipeline of an exported index, unless overridden.
    fn as_exported<F: Fingerprint>(
        &self,
        mut options: IndexOptions,
        export: &Export,
        distance: Option<u32>,
    ) -> Result<IndexOptions> {
        if self.plan.plan.is_none() {
            let distance = distance.unwrap_or(export.distance);
            options = options.plan(Plan::parse(&export.plan, F::BITS, distance, None)?);
        }
        if !self.pipeline.given() && !export.pipeline.is_empty() {
            options = options.pipeline(&export.pipeline);
        }
        Ok(options)
    }

    fn drop_unfinished(&self, session: &Session) -> Result<()> {
        stored::require(&self.index, self.width.bits)?;
        let abandoned = AnyBuilder::abandon(&self.index)?;
        say_left(session, abandoned.left.as_deref());
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

    /// Resumes the unfinished build, or begins one if nothing was stored yet.
    fn builder<F: Fingerprint>(
        &self,
        session: &Session,
        options: &IndexOptions,
        resources: &BuildOptions,
    ) -> Result<Builder<F>> {
        if self.resume {
            match Builder::<F>::resume(&self.index, resources) {
                // Killed before it had begun: there is nothing that a second build would replace.
                Err(Error::NotFound { .. }) => {}
                Err(error @ Error::NothingToResume { .. }) => {
                    if !stored::read_only_of::<F>(&self.index)?.is_empty()? {
                        return Err(error.into());
                    }
                }
                builder => {
                    let builder = builder?;
                    if !builder.knows_inputs() {
                        session.console.say(
                            "the inputs cannot be compared with those of the unfinished build; \
                                make sure that they are the same, in the same order",
                        );
                    }
                    return Ok(builder);
                }
            }
            session.console.say("there is no unfinished build; reading from the start");
        }
        Ok(Builder::create(&self.index, options, resources)?)
    }

    fn build<F: Fingerprint>(
        &self,
        session: &Session,
        options: &IndexOptions,
        mut reading: Reading<'_>,
    ) -> Result<()> {
        let started = Instant::now();
        let mut resources =
            BuildOptions::new().memory(self.memory.memory.0).repeats(repeats_of(self.on_repeat));
        if let Some(directory) = self.tmp.directory() {
            resources = resources.tmp(directory);
        }
        match inputs::described(reading.inputs, F::BITS) {
            Some(description) => resources = resources.inputs(description),
            None if self.resume => resources = resources.inputs(inputs::PIPE),
            None => {}
        }
        let policy =
            Policy { append: self.resume, overwrite: session.overwrite, ..self.rows.policy() };
        let was_there = self.index.exists();
        let mut rejects = Rejects::new(policy, &session.console)?;
        let mut builder = self.builder::<F>(session, options, &resources)?;
        say_left(session, builder.left());
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
                    self.give_up::<F>(session, was_there)?;
                } else {
                    session.console.say("the rows read so far are stored; continue with --resume");
                }
                return Err(failure);
            }
        };
        let report = builder.finish(&session.console, &mut |_, _| ());
        session.console.end_phase();
        let report = match report {
            Err(Error::RepeatedKey { first, again, .. }) => {
                self.give_up::<F>(session, was_there)?;
                return Err(repeated(reading.inputs, &totals.origins, first, again));
            }
            report => report?,
        };
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
                repeated: report.duplicates,
                rejects: rejected,
                skipped_binary: totals.binary,
                skipped_status: totals.passed.status,
                skipped_type: totals.passed.kind,
                without_features,
                bytes: report.bytes,
                seconds,
                rate: totals.documents as f64 / seconds.max(1e-9),
            },
        )
    }

    /// Drops the build, and the index too if the build has made it.
    fn give_up<F: Fingerprint>(&self, session: &Session, was_there: bool) -> Result<()> {
        let abandoned = Builder::<F>::abandon(&self.index)?;
        say_left(session, abandoned.left.as_deref());
        if !abandoned.made_index {
            return Ok(());
        }
        // The directory was absent or empty, so everything in it is from the build.
        for entry in std::fs::read_dir(&self.index).map_err(|e| Failure::io(&self.index, e))? {
            let path = entry.map_err(|e| Failure::io(&self.index, e))?.path();
            let removed = if path.is_dir() && !path.is_symlink() {
                std::fs::remove_dir_all(&path)
            } else {
                std::fs::remove_file(&path)
            };
            removed.map_err(|e| Failure::io(&path, e))?;
        }
        if was_there && !self.resume {
            return Ok(());
        }
        std::fs::remove_dir(&self.index).map_err(|e| Failure::io(&self.index, e))
    }
}

/// Reports a directory of temporary files that is not this index's to remove.
fn say_left(session: &Session, left: Option<&Path>) {
    if let Some(left) = left {
        session.console.say(&format!(
            "kept {}: the unfinished build lists it as its directory for temporary files, but it \
                was not made for this index",
            left.display()
        ));
    }
}

/// Returns true if the same inputs would fail again, so that there is nothing to resume.
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
        ("repeated ids dropped", summary.repeated),
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

fn repeats_of(choice: Option<OnRepeat>) -> Repeats {
    match choice {
        Some(OnRepeat::First) => Repeats::First,
        Some(OnRepeat::Last) => Repeats::Last,
        None => Repeats::Refuse,
    }
}

/// Names the rows of two origins that have the same id.
fn repeated(inputs: &Inputs, origins: &Origins, first: u64, again: u64) -> Failure {
    let reason = format!(
        "has the same id as {}, so nothing was stored; remove one of them, or choose one with \
            --on-repeat first or --on-repeat last",
        inputs.at(origins, first)
    );
    Failure::File { path: inputs.at(origins, again), reason }
}
