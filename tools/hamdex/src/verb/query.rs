//! `query`: fingerprints, a text or documents become their stored matches, nearest first.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use hamdex::inspect::Header;
use hamdex::{Fingerprint, Index, Query, for_width};
use serde::Serialize;

use crate::failure::{Failure, Result};
use crate::input::{Bring, Document, Ids, Inputs, Proofs, Reading, Sink, Wanted};
use crate::key::Name;
use crate::options::resources::SeedArg;
use crate::options::verification::VerifyArg;
use crate::options::{DistanceArg, MemoryArg, RowArgs, WidthArg, stored_pipeline};
use crate::output::Output;
use crate::session::Session;
use crate::settings;
use crate::size;
use crate::stored;

/// Queries of the first batch: few, so that answers arrive early.
const FIRST: usize = 1 << 10;
/// Queries that are searched together at most: the more, the less each costs.
const MOST: usize = 1 << 18;
/// Growth from one batch to the next.
const GROWTH: usize = 1 << 8;
/// Target for the matches of one batch, which wait in memory.
const MATCHES: usize = 1 << 20;
/// Bytes of names and features that wait for a search.
const WAITING: usize = 1 << 26;

/// Find stored documents within k bits of a query
///
/// Prints JSON Lines {"query","id","distance"}, nearest first for each query. A query without
/// matches prints nothing. With --verify, which needs an index built with --keep-features, only
/// documents that pass are printed, with their "similarity".
#[derive(Debug, Args)]
#[command(
    after_long_help = "Example:\n  hamdex query pages.idx --text 'some text of interest' -k 6 --limit 10"
)]
pub(crate) struct QueryArgs {
    /// Directory of the index
    index: PathBuf,
    /// Search for these fingerprints: hexadecimal, with or without 0x
    #[arg(long, value_name = "HEX", num_args = 1.., conflicts_with_all = ["text", "inputs"])]
    fingerprint: Vec<String>,
    /// Search for this text
    #[arg(long, value_name = "STR", conflicts_with = "inputs")]
    text: Option<String>,
    /// Search for each of these documents; - is JSON Lines on standard input
    #[arg(required_unless_present_any = ["fingerprint", "text", "files_from"], value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Read the index into memory first: pays off from about 500,000 queries on
    #[arg(long)]
    resident: bool,
    #[command(flatten)]
    memory: MemoryArg,
    /// Print at most N matches of each query
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    #[command(flatten)]
    distance: DistanceArg,
    #[command(flatten)]
    width: WidthArg,
    #[command(flatten)]
    rows: RowArgs,
    #[command(flatten)]
    verify: VerifyArg,
    #[command(flatten)]
    seed: SeedArg,
}

#[derive(Serialize)]
struct Found<'a> {
    query: Name<'a>,
    id: Name<'a>,
    distance: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    similarity: Option<f64>,
}

impl QueryArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<()> {
        stored::before_inputs(&self.index)?;
        let header = stored::require(&self.index, self.width.bits)?;
        self.verify.require_stored(header.keeps_features)?;
        let inputs = if self.inputs.is_empty() && self.rows.files_from.is_none() {
            None
        } else {
            self.refuse_texts()?;
            Some(self.rows.inputs(&self.inputs, &session.console)?)
        };
        // Fingerprints alone have nothing to check.
        let texts = match &inputs {
            Some(inputs) => inputs.bring() == Bring::Texts,
            None => self.text.is_some(),
        };
        let verify =
            if texts { self.verify.or_as_made(&header, &session.console)? } else { self.verify };
        for_width!(header.bits, F => self.search::<F>(session, &header, inputs.as_ref(), verify))
    }

    /// Refuses a text that was given as the name of a file.
    fn refuse_texts(&self) -> Result<()> {
        let is_text = |input: &&PathBuf| {
            !input.exists() && input.to_string_lossy().contains(char::is_whitespace)
        };
        let Some(text) = self.inputs.iter().find(is_text) else { return Ok(()) };
        let text = text.display();
        Err(Failure::Usage(format!("{text}: no such file; to search for a text, pass --text")))
    }

    fn search<F: Fingerprint>(
        &self,
        session: &Session,
        header: &Header,
        inputs: Option<&Arc<Inputs>>,
        verify: VerifyArg,
    ) -> Result<()> {
        let index = stored::read_only_of::<F>(&self.index)?;
        if self.resident {
            stored::load(&index, &self.index, &self.memory)?;
        }
        let mut asked = Asked {
            index: &index,
            distance: self.distance.distance.unwrap_or(index.distance()),
            limit: self.limit,
            verify,
            waiting: Vec::new(),
            bytes: 0,
            batch: FIRST,
            output: Output::stdout(&session.console),
        };
        if let Some(inputs) = inputs {
            return self.documents(session, header, inputs, asked);
        }
        if let Some(text) = &self.text {
            let wanted = Wanted::by(verify.check());
            let (fingerprint, proofs) =
                sketch::<F>(header, &self.index, &self.seed, (text, wanted))?;
            asked.push(text.as_bytes(), fingerprint, proofs)?;
        } else {
            for hex in &self.fingerprint {
                asked.push(hex.as_bytes(), from_hex::<F>(hex)?, Proofs::default())?;
            }
        }
        asked.finish()
    }

    fn documents<F: Fingerprint>(
        &self,
        session: &Session,
        header: &Header,
        inputs: &Arc<Inputs>,
        mut asked: Asked<'_, F>,
    ) -> Result<()> {
        settings::width(None, Some(header), inputs.raw_width()?)?;
        let pipeline = stored::pipeline_of(header, &self.index, inputs, &self.seed)?;
        let reading = Reading {
            inputs,
            pipeline: pipeline.as_ref(),
            console: &session.console,
            ids: Ids::Labels,
            keep_blank: false,
            after: None,
            wanted: Wanted::by(asked.verify.check()),
        };
        let mut rejects = self.rows.rejects(session)?;
        reading.run::<F>(&mut rejects, &mut asked)?;
        asked.finish()?;
        rejects.finish().map(drop)
    }
}

/// Fingerprints the text of `--text` by the pipeline of the index, and extracts its evidence.
pub(super) fn sketch<F: Fingerprint>(
    header: &Header,
    index: &Path,
    seed: &SeedArg,
    (text, wanted): (&str, Wanted),
) -> Result<(F, Proofs)> {
    let pipeline = stored_pipeline(header, index, seed)?;
    let pipeline = pipeline.ok_or_else(|| stored::no_pipeline(index))?;
    let made = Proofs::with_sketch::<F>(wanted, &pipeline, text);
    let (sketch, proofs) = made.ok_or_else(|| {
        Failure::Usage("--text has no features to search with; give a text with words".to_owned())
    })?;
    Ok((sketch.fingerprint, proofs))
}

/// Queries on their way to answers.
struct Asked<'a, F: Fingerprint> {
    index: &'a Index<F>,
    distance: u32,
    limit: Option<usize>,
    verify: VerifyArg,
    waiting: Vec<(Vec<u8>, F, Vec<u8>)>,
    /// Bytes of names and features that wait.
    bytes: usize,
    /// Queries that the next search waits for.
    batch: usize,
    output: Output,
}

impl<F: Fingerprint> Sink<F> for Asked<'_, F> {
    fn document(&mut self, document: Document<'_, F>) -> Result<()> {
        self.push(document.key, document.fingerprint, document.proofs)
    }

    fn pause(&mut self) -> Result<()> {
        self.answer()?;
        self.output.flush()
    }
}

impl<F: Fingerprint> Asked<'_, F> {
    fn push(&mut self, name: &[u8], fingerprint: F, proofs: Proofs) -> Result<()> {
        self.verify.require(name, &proofs)?;
        self.bytes += name.len() + proofs.features.len();
        self.waiting.push((name.to_vec(), fingerprint, proofs.features));
        if self.waiting.len() < self.batch && self.bytes < WAITING { Ok(()) } else { self.answer() }
    }

    fn answer(&mut self) -> Result<()> {
        let limit = self.limit.unwrap_or(usize::MAX);
        let query = |(_, fingerprint, features): &(Vec<u8>, F, Vec<u8>)| {
            let query = Query::new(*fingerprint).distance(self.distance).limit(limit);
            query.verify(self.verify.check(), features.as_slice())
        };
        let queries: Vec<_> = self.waiting.iter().map(query).collect();
        let answers = self.index.search_batch(&queries)?;
        let found = answers.iter().map(Vec::len).sum();
        for ((name, ..), matches) in self.waiting.iter().zip(answers) {
            for found in matches {
                let (query, id) = (Name::of(name), Name::of(&found.key));
                let (distance, similarity) =
                    (found.distance, found.similarity.map(size::similarity));
                self.output.json(&Found { query, id, distance, similarity })?;
            }
        }
        self.batch = next_batch(self.batch, self.waiting.len(), found);
        self.waiting.clear();
        self.bytes = 0;
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        self.answer()?;
        self.output.finish()
    }
}

/// Sizes the next batch by the matches of the last one, to fit into memory.
fn next_batch(last: usize, queries: usize, found: usize) -> usize {
    let fitting = MATCHES.saturating_mul(queries.max(1)) / found.max(1);
    last.saturating_mul(GROWTH).min(fitting).clamp(FIRST, MOST)
}

/// Parses a fingerprint in hexadecimal; `0x` before it is allowed.
pub(super) fn from_hex<F: Fingerprint>(text: &str) -> hamdex::Result<F> {
    F::from_hex(text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_grow_while_their_matches_are_few() {
        assert_eq!(next_batch(FIRST, FIRST, 0), FIRST * GROWTH);
        assert_eq!(next_batch(MOST, MOST, MOST), MOST);
        assert_eq!(next_batch(MOST, MOST, MOST * 100), MATCHES / 100);
        assert_eq!(next_batch(FIRST, FIRST, usize::MAX), FIRST);
        assert_eq!(next_batch(FIRST, 0, 0), FIRST * GROWTH);
    }

    #[test]
    fn hexadecimal_may_be_prefixed() {
        for text in ["00000000000000ff", "0x00000000000000ff", "0X00000000000000FF"] {
            assert_eq!(from_hex::<u64>(text).unwrap(), 255);
        }
        assert!(from_hex::<u64>("0x0x000000000000ff").is_err());
    }
}
