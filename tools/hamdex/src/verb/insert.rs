//! `insert`: documents are added to an index, batch by batch, each batch durable when done.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use hamdex::{Durability, Fingerprint, Header, Index, IndexOptions, OpenOptions};
use serde::Serialize;

use crate::failure::{Failure, Result};
use crate::input::{Document, Reading, Sink};
use crate::key::Name;
use crate::options::{DistanceArg, MemoryArg, PipelineArgs, PlanArg, RowArgs, WidthArg};
use crate::output::Output;
use crate::session::Session;
use crate::size;
use crate::stored;
use crate::width::{self, for_width};

/// Insert documents into an index, durably
///
/// A document whose id is there already replaces the stored one. An index that does not exist is
/// made. With --if-new a document within k bits of another stored one is kept out, and
/// standard output tells of each as JSON Lines {"id","of","distance"}.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hamdex insert pages.idx today.jsonl --if-new > known.jsonl")]
pub(crate) struct InsertArgs {
    /// Directory of the index
    index: PathBuf,
    /// Documents: .jsonl, .txt, .html, directories, raw .u32 .u64 .u128, - for standard input
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Keep out what is near a stored document
    #[arg(long)]
    if_new: bool,
    /// Documents in one durable batch
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    batch: u32,
    /// Leave the moment of writing to the system: survives a kill, not a loss of power
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
    /// Kind of check of near documents
    #[arg(long, value_name = "KIND", value_parser = ["none"], hide = true)]
    verify: Option<String>,
}

#[derive(Debug, Default, Serialize)]
struct Summary {
    inserted: u64,
    replaced: u64,
    refused: u64,
    rejects: u64,
    seconds: f64,
    rate: f64,
}

#[derive(Serialize)]
struct Refused<'a> {
    id: Name<'a>,
    of: Name<'a>,
    distance: u32,
}

impl InsertArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<()> {
        let inputs = self.rows.inputs(&self.inputs)?;
        let header = stored::header(&self.index)?;
        let bits = width::settle(self.width.bits, header.as_ref(), inputs.raw_width()?)?;
        let pipeline = match &header {
            Some(header) => stored::pipeline_for(&self.pipeline, header, &self.index, &inputs)?,
            None => self.pipeline.fresh(&inputs)?,
        };
        for_width!(bits, F => {
            let count = inputs.estimated_rows(F::BYTES);
            let options =
                stored::index_options::<F>(&self.plan, &self.distance, header.as_ref(), count)?;
            let descriptor = pipeline.as_ref().map_or("", |pipeline| pipeline.descriptor());
            let index = self.open::<F>(header.as_ref(), &options, descriptor)?;
            let reading = Reading {
                inputs: &inputs,
                pipeline: pipeline.as_ref(),
                console: &session.console,
                unique: true,
                after: None,
            };
            self.insert(session, &index, &reading)
        })
    }

    fn open<F: Fingerprint>(
        &self,
        header: Option<&Header>,
        options: &IndexOptions,
        descriptor: &str,
    ) -> Result<Index<F>> {
        let memory = self.memory.memory.0;
        let Some(header) = header else {
            return Ok(Index::create(
                &self.index,
                &options.clone().pipeline(descriptor).memory(memory),
            )?);
        };
        let mut open = OpenOptions::new().memory(memory);
        if let Some(plan) = stored::wanted_plan(&self.plan, header)? {
            open = open.expect_plan(plan);
        }
        Ok(Index::open_with(&self.index, &open)?)
    }

    fn insert<F: Fingerprint>(
        &self,
        session: &Session,
        index: &Index<F>,
        reading: &Reading<'_>,
    ) -> Result<()> {
        let started = Instant::now();
        let mut rejects = self.rows.rejects(&session.console)?;
        let mut batches = Batches {
            index,
            distance: self.if_new.then(|| self.distance.distance.unwrap_or(index.distance())),
            durability: if self.no_sync { Durability::Buffered } else { Durability::Synced },
            size: usize::try_from(self.batch).unwrap_or(usize::MAX),
            waiting: Vec::new(),
            output: Some(Output::stdout(&session.console)),
            summary: Summary::default(),
        };
        let read = reading.run::<F>(&mut rejects, &mut batches);
        // Documents read before a failure are good ones.
        let last = batches.write();
        read?;
        last?;
        let mut summary = batches.finish()?;
        summary.rejects = rejects.finish()?;
        summary.seconds = started.elapsed().as_secs_f64();
        summary.rate = (summary.inserted + summary.replaced) as f64 / summary.seconds.max(1e-9);
        self.tell(session, &summary)
    }

    fn tell(&self, session: &Session, summary: &Summary) -> Result<()> {
        let refused = if self.if_new {
            format!(", refused {}", size::thousands(summary.refused))
        } else {
            String::new()
        };
        let line = format!(
            "inserted {}, replaced {}{refused} in {:.2} s, {}/s",
            size::thousands(summary.inserted),
            size::thousands(summary.replaced),
            summary.seconds,
            size::estimate(summary.rate.round())
        );
        session.console.say(&line);
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
    /// Keep out documents within this distance of a stored one.
    distance: Option<u32>,
    durability: Durability,
    size: usize,
    waiting: Vec<(Vec<u8>, F)>,
    /// `None` once nobody reads any more, which is no reason to stop inserting.
    output: Option<Output>,
    summary: Summary,
}

impl<F: Fingerprint> Sink<F> for Batches<'_, F> {
    fn document(&mut self, document: Document<'_, F>) -> Result<()> {
        self.waiting.push((document.key.to_vec(), document.fingerprint));
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
        if let Some(distance) = self.distance {
            let refused =
                self.index.insert_batch_if_new(&self.waiting, distance, self.durability)?;
            for ((key, _), near) in self.waiting.iter().zip(refused) {
                let Some(near) = near else {
                    self.summary.inserted += 1;
                    continue;
                };
                self.summary.refused += 1;
                let (id, of) = (Name::of(key), Name::of(&near.key));
                let line = Refused { id, of, distance: near.distance };
                match self.output.as_mut().map_or(Ok(()), |output| output.json(&line)) {
                    Err(Failure::OutputClosed) => self.output = None,
                    written => written?,
                }
            }
        } else {
            let report = self.index.insert_batch(&self.waiting, self.durability)?;
            self.summary.inserted += report.inserted;
            self.summary.replaced += report.replaced;
        }
        self.waiting.clear();
        Ok(())
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
