//! `insert`: documents are added to an index, batch by batch, each batch durable when done.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use hamdex::advice::Support;
use hamdex::inspect::Header;
use hamdex::verify::DuplicateRule;
use hamdex::{BatchReport, Durability, Fingerprint, Index, IndexOptions, for_width};
use hamdex_io::host::Host;
use serde::Serialize;

use crate::advise::{self, Overrides};
use crate::console::Console;
use crate::failure::{Failure, Result};
use crate::input::{Bring, Document, Ids, Reading, Rejects, Repeat, Sink};
use crate::key::Name;
use crate::options::verification::{KeepFeaturesArg, VerifyArg};
use crate::options::{DistanceArg, MemoryArg, OnRepeat, PipelineArgs, PlanArg, RowArgs, WidthArg};
use crate::output::Output;
use crate::session::Session;
use crate::settings;
use crate::size;
use crate::stored;

/// Insert documents into an index, durably
///
/// A document whose id is stored already replaces the stored one. An absent index is made. With
/// --if-new, a document within k bits of another stored one is rejected, and standard output
/// reports each as JSON Lines {"id","of","distance"}. With --verify too, only documents that pass
/// against the stored features are rejected, and "similarity" is reported.
///
/// Documents are stored batch by batch, each batch whole or not at all. After a kill, the same
/// command stores the rest and counts the stored ones as unchanged.
#[derive(Debug, Args)]
#[command(
    after_long_help = "Example:\n  hamdex insert pages.idx today.jsonl --if-new > known.jsonl"
)]
pub(crate) struct InsertArgs {
    /// Directory of the index
    index: PathBuf,
    /// Documents: .jsonl, .parquet, .csv, .tsv, .warc, .txt, .html, directories, raw .u32 .u64
    /// .u128, - for stdin
    #[arg(required_unless_present = "files_from", value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Reject documents that are near a stored one
    #[arg(long)]
    if_new: bool,
    /// Row to store of several in the inputs with the same id; without this option, every row after
    /// the first is bad
    #[arg(long, value_name = "first|last", value_enum, hide_possible_values = true)]
    on_repeat: Option<OnRepeat>,
    /// Documents in one durable batch
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    batch: u32,
    /// Let the system choose when to write: survives a kill, not a power loss
    #[arg(long)]
    no_sync: bool,
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
    verify: VerifyArg,
    #[command(flatten)]
    keep: KeepFeaturesArg,
}

#[derive(Debug, Default, Serialize)]
struct Summary {
    inserted: u64,
    replaced: u64,
    unchanged: u64,
    refused: u64,
    repeated: u64,
    without_features: u64,
    rejects: u64,
    seconds: f64,
    rate: f64,
}

impl Summary {
    fn stored(&self) -> u64 {
        self.inserted + self.replaced + self.unchanged
    }
}

#[derive(Serialize)]
struct Refused<'a> {
    id: Name<'a>,
    of: Name<'a>,
    distance: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    similarity: Option<f64>,
}

impl InsertArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<()> {
        stored::before_inputs(&self.index)?;
        let inputs = self.rows.inputs(&self.inputs, &session.console)?;
        if self.verify.verify.is_some() && !self.if_new {
            let reason = "--verify works with --if-new only; pass both";
            return Err(Failure::Usage(reason.to_owned()));
        }
        let header = stored::header(&self.index)?;
        let export = inputs.export()?;
        match &header {
            Some(header) => stored::require_export(header, export.as_ref())?,
            None if export.is_some() => {
                let reason = "an export has the settings of its index; build the new index with \
                              'hamdex build'";
                return Err(Failure::Usage(reason.to_owned()));
            }
            None => {}
        }
        let wanted = self.keep.wanted(header.as_ref())?;
        // Checked before an index is made that could not verify.
        self.verify.require_stored(wanted.features)?;
        let bits = settings::width(self.width.bits, header.as_ref(), inputs.raw_width()?)?;
        let (pipeline, distance) = if let Some(header) = &header {
            let pipeline = stored::pipeline_for(&self.pipeline, header, &self.index, &inputs)?;
            (pipeline, self.distance.distance)
        } else {
            let overrides = Overrides {
                pipeline: &self.pipeline,
                distance: self.distance.distance,
                verify: self.verify.verify,
                sketch: self.pipeline.sketch,
                support: if self.verify.verify.is_some() {
                    Support::Features
                } else {
                    Support::Nothing
                },
                bits,
            };
            let resolved = advise::resolve_index(&session.console, &inputs, None, &overrides)?;
            (resolved.pipeline, Some(resolved.distance))
        };
        let texts = pipeline.is_some() && inputs.bring() == Bring::Texts;
        let verify = match &header {
            Some(header) if self.if_new && texts => {
                self.verify.or_as_made(header, &session.console)?
            }
            _ => self.verify,
        };
        for_width!(bits, F => {
            let count = inputs.estimated_rows(F::BYTES);
            let mut options =
                stored::index_options::<F>(&self.plan, distance, header.as_ref(), count)?;
            if let Some(pipeline) = &pipeline {
                options = options.text(pipeline);
            }
            let index = self.open::<F>(header.as_ref(), &options)?;
            let reading = Reading {
                inputs: &inputs,
                pipeline: pipeline.as_ref(),
                console: &session.console,
                ids: Ids::Keys(self.repeat()),
                keep_blank: false,
                after: None,
                wanted,
            };
            self.insert(session, &index, &reading, verify)
        })
    }

    fn repeat(&self) -> Repeat {
        match self.on_repeat {
            None => Repeat::Reject,
            Some(OnRepeat::First) => Repeat::Drop,
            Some(OnRepeat::Last) => Repeat::Pass,
        }
    }

    fn open<F: Fingerprint>(
        &self,
        header: Option<&Header>,
        options: &IndexOptions,
    ) -> Result<Index<F>> {
        let memory = self.memory.memory.0;
        let Some(header) = header else {
            let options = options.clone().keep_features(self.keep.keep_features).memory(memory);
            return Ok(Index::create(&self.index, &options)?);
        };
        let mut open = IndexOptions::new().memory(memory);
        if let Some(plan) = stored::wanted_plan(&self.plan, header)? {
            open = open.plan(plan);
        }
        Ok(Index::open_with(&self.index, &open)?)
    }

    fn insert<F: Fingerprint>(
        &self,
        session: &Session,
        index: &Index<F>,
        reading: &Reading<'_>,
        verify: VerifyArg,
    ) -> Result<()> {
        let started = Instant::now();
        let mut rejects = self.rows.rejects(session)?;
        let mut batches = Batches {
            index,
            near: self.if_new.then(|| {
                let distance = self.distance.distance.unwrap_or(index.distance());
                DuplicateRule::new(distance).verify(verify.check())
            }),
            verify,
            keeps: reading.wanted.features,
            durability: if self.no_sync { Durability::Buffered } else { Durability::Synced },
            size: usize::try_from(self.batch).unwrap_or(usize::MAX),
            waiting: Vec::new(),
            output: Some(Output::stdout(&session.console)),
            summary: Summary::default(),
            console: &session.console,
        };
        let read = reading.run::<F>(&mut rejects, &mut batches);
        // Documents read before a failure are good ones.
        let last = batches.write();
        Self::tell_repeats(session, &rejects);
        let totals = match read.and_then(|totals| last.map(|()| totals)) {
            Ok(totals) => totals,
            Err(failure) => {
                let stored = batches.summary.stored();
                if stored > 0 {
                    let stored = size::thousands(stored);
                    session.console.say(&format!("documents stored before the error: {stored}"));
                }
                return Err(failure);
            }
        };
        let mut summary = batches.finish()?;
        summary.repeated += totals.repeated;
        summary.rejects = rejects.count();
        rejects.finish()?;
        summary.seconds = started.elapsed().as_secs_f64();
        summary.rate = summary.stored() as f64 / summary.seconds.max(1e-9);
        self.tell(session, &summary)
    }

    /// Names the option that accepts rows which were bad for their ids.
    fn tell_repeats(session: &Session, rejects: &Rejects) {
        let repeated = rejects.repeated_ids();
        if repeated > 0 {
            let repeated = size::thousands(repeated);
            session.console.say(&format!(
                "ids repeated in the inputs: {repeated}; --on-repeat first drops these rows, \
                    --on-repeat last lets them replace the earlier ones"
            ));
        }
    }

    fn tell(&self, session: &Session, summary: &Summary) -> Result<()> {
        let refused = if self.if_new {
            format!(", refused {}", size::thousands(summary.refused))
        } else {
            String::new()
        };
        let line = format!(
            "inserted {}, replaced {}, unchanged {}{refused} in {:.2} s, {}/s",
            size::thousands(summary.inserted),
            size::thousands(summary.replaced),
            size::thousands(summary.unchanged),
            summary.seconds,
            size::estimate(summary.rate.round())
        );
        session.console.say(&line);
        if summary.repeated > 0 {
            let dropped = size::thousands(summary.repeated);
            session.console.say(&format!("repeated ids dropped: {dropped}"));
        }
        if summary.without_features > 0 {
            session.console.say(&stored::without_features(summary.without_features));
        }
        // With --if-new standard output is for the refused documents alone.
        if session.json && !self.if_new {
            let mut output = Output::stdout(&session.console);
            output.json(summary)?;
            output.finish()?;
        }
        Ok(())
    }
}

/// Documents on their way into the index.
struct Batches<'a, F: Fingerprint> {
    index: &'a Index<F>,
    /// Keep out documents that are so near to a stored one.
    near: Option<DuplicateRule>,
    verify: VerifyArg,
    keeps: bool,
    durability: Durability,
    size: usize,
    waiting: Vec<(Vec<u8>, F, Option<Vec<u8>>)>,
    /// `None` once the reader has closed its end; inserting continues.
    output: Option<Output>,
    summary: Summary,
    console: &'a Console,
}

impl<F: Fingerprint> Sink<F> for Batches<'_, F> {
    fn document(&mut self, document: Document<'_, F>) -> Result<()> {
        self.verify.require(document.key, &document.proofs)?;
        let features = Some(document.proofs.features).filter(|features| !features.is_empty());
        self.summary.without_features += u64::from(self.keeps && features.is_none());
        self.waiting.push((document.key.to_vec(), document.fingerprint, features));
        if self.waiting.len() >= self.size { self.write() } else { Ok(()) }
    }

    fn pause(&mut self) -> Result<()> {
        self.write()
    }
}

impl<F: Fingerprint> Batches<'_, F> {
    fn write(&mut self) -> Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        if let Some(near) = self.near {
            let (refused, report) =
                self.index.insert_batch_if_new_counted(&self.waiting, near, self.durability)?;
            self.count(report, refused.iter().flatten().count());
            for ((key, ..), near) in self.waiting.iter().zip(refused) {
                let Some(near) = near else { continue };
                let (id, of) = (Name::of(key), Name::of(&near.key));
                let (distance, similarity) = (near.distance, near.similarity.map(size::similarity));
                let line = Refused { id, of, distance, similarity };
                match self.output.as_mut().map_or(Ok(()), |output| output.json(&line)) {
                    Err(Failure::OutputClosed) => self.output = None,
                    written => written?,
                }
            }
        } else {
            let report = self.index.insert_batch(&self.waiting, self.durability)?;
            self.count(report, 0);
        }
        self.waiting.clear();
        Ok(())
    }

    fn count(&mut self, report: BatchReport, refused: usize) {
        let new = (self.waiting.len() - refused) as u64;
        // A later row of the batch took the place of the others.
        self.summary.repeated += new - report.inserted - report.replaced;
        self.summary.refused += refused as u64;
        self.summary.inserted += report.inserted;
        self.summary.replaced += report.replaced - report.unchanged;
        self.summary.unchanged += report.unchanged;
        // An interrupted run reports these as stored.
        self.console.stored(report.inserted + report.replaced - report.unchanged, "inserted");
    }

    fn finish(self) -> Result<Summary> {
        if let Some(output) = self.output {
            match output.finish() {
                Err(Failure::OutputClosed) => {}
                written => written?,
            }
        }
        Ok(self.summary)
    }
}
