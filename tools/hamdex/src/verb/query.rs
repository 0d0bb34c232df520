//! `query`: fingerprints, a text or documents become their stored matches, nearest first.

use std::path::PathBuf;

use clap::Args;
use hamdex::text::Pipeline;
use hamdex::{Fingerprint, Header, Index, Query};
use serde::Serialize;

use crate::failure::{Failure, Result};
use crate::input::{Document, Reading, Sink};
use crate::key::Name;
use crate::options::{DistanceArg, RowArgs, WidthArg, stored_pipeline};
use crate::output::Output;
use crate::session::Session;
use crate::stored;
use crate::width::{self, for_width};

/// Queries that are searched together, on all threads.
const BATCH: usize = 1024;

/// Find stored documents within k bits
///
/// Prints JSON Lines {"query","id","distance"}, nearest first for each query; a query without
/// matches prints nothing.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  hamdex query pages.idx --text 'some text of interest' -k 6 --limit 10"
)]
pub(crate) struct QueryArgs {
    /// Directory of the index
    index: PathBuf,
    /// Search for these fingerprints, in hexadecimal
    #[arg(long, value_name = "HEX", num_args = 1.., conflicts_with_all = ["text", "inputs"])]
    fingerprint: Vec<String>,
    /// Search for this text
    #[arg(long, value_name = "STR", conflicts_with = "inputs")]
    text: Option<String>,
    /// Search for each of these documents; - is JSON Lines on standard input
    #[arg(required_unless_present_any = ["fingerprint", "text"], value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Print so many matches of a query at most
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    #[command(flatten)]
    distance: DistanceArg,
    #[command(flatten)]
    width: WidthArg,
    #[command(flatten)]
    rows: RowArgs,
    /// Kind of check of near documents
    #[arg(long, value_name = "KIND", value_parser = ["none"], hide = true)]
    verify: Option<String>,
}

#[derive(Serialize)]
struct Found<'a> {
    query: Name<'a>,
    id: Name<'a>,
    distance: u32,
}

impl QueryArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<()> {
        let header = stored::require(&self.index, self.width.bits)?;
        for_width!(header.bits, F => self.search::<F>(session, &header))
    }

    fn search<F: Fingerprint>(&self, session: &Session, header: &Header) -> Result<()> {
        let index = stored::read_only::<F>(&self.index)?;
        let mut asked = Asked {
            index: &index,
            distance: self.distance.distance.unwrap_or(index.distance()),
            limit: self.limit,
            waiting: Vec::new(),
            output: Output::stdout(&session.console),
        };
        if let Some(text) = &self.text {
            let pipeline = stored_pipeline(header)?;
            asked.push(text.as_bytes(), self.sketch::<F>(pipeline.as_ref(), text)?)?;
        } else if self.inputs.is_empty() {
            for hex in &self.fingerprint {
                asked.push(hex.as_bytes(), F::from_hex(hex)?)?;
            }
        } else {
            return self.documents(session, header, asked);
        }
        asked.finish()
    }

    fn documents<F: Fingerprint>(
        &self,
        session: &Session,
        header: &Header,
        mut asked: Asked<'_, F>,
    ) -> Result<()> {
        let inputs = self.rows.inputs(&self.inputs)?;
        width::settle(None, Some(header), inputs.raw_width()?)?;
        let pipeline = stored::pipeline_of(header, &self.index, &inputs)?;
        let reading = Reading {
            inputs: &inputs,
            pipeline: pipeline.as_ref(),
            console: &session.console,
            unique: false,
            after: None,
        };
        let mut rejects = self.rows.rejects(&session.console)?;
        reading.run::<F>(&mut rejects, &mut asked)?;
        asked.finish()?;
        rejects.finish().map(drop)
    }

    fn sketch<F: Fingerprint>(&self, pipeline: Option<&Pipeline>, text: &str) -> Result<F> {
        let pipeline = pipeline.ok_or_else(|| stored::no_pipeline(&self.index))?;
        let sketch = pipeline.fingerprint::<F>(text);
        let sketch = sketch
            .ok_or_else(|| Failure::Usage("--text has no features to search by".to_owned()))?;
        Ok(sketch.fingerprint)
    }
}

/// Queries on their way to answers.
struct Asked<'a, F: Fingerprint> {
    index: &'a Index<F>,
    distance: u32,
    limit: Option<usize>,
    waiting: Vec<(Vec<u8>, F)>,
    output: Output,
}

impl<F: Fingerprint> Sink<F> for Asked<'_, F> {
    fn document(&mut self, document: Document<'_, F>) -> Result<()> {
        self.push(document.key, document.fingerprint)
    }

    fn pause(&mut self) -> Result<()> {
        self.answer()?;
        self.output.flush()
    }
}

impl<F: Fingerprint> Asked<'_, F> {
    fn push(&mut self, name: &[u8], fingerprint: F) -> Result<()> {
        self.waiting.push((name.to_vec(), fingerprint));
        if self.waiting.len() >= BATCH { self.answer() } else { Ok(()) }
    }

    fn answer(&mut self) -> Result<()> {
        let query = |&(_, fingerprint): &(Vec<u8>, F)| {
            let query = Query::new(fingerprint).distance(self.distance);
            self.limit.map_or(query, |limit| query.limit(limit))
        };
        let queries: Vec<_> = self.waiting.iter().map(query).collect();
        for ((name, _), matches) in self.waiting.iter().zip(self.index.search_batch(&queries)?) {
            for found in matches {
                let (query, id) = (Name::of(name), Name::of(&found.key));
                self.output.json(&Found { query, id, distance: found.distance })?;
            }
        }
        self.waiting.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        self.answer()?;
        self.output.finish()
    }
}
