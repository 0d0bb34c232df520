//! Dry run: what a deduplication will need is estimated from a sample, and nothing is written.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use hamdex::Fingerprint;
use hamdex::dedup::{self, Dedup};
use hamdex::verify::Verification;
use rayon::prelude::*;
use serde::Serialize;

use super::DedupArgs;
use crate::advise::Resolved;
use crate::failure::{Failure, Result};
use crate::input::{Body, Inputs, Kind, Rows, for_each_chunk};
use crate::session::Session;
use crate::size;
use crate::stored;
use crate::table::Table;
use crate::width::{self, for_width};

/// Sources whose first rows are counted.
const SOURCES: usize = 16;
/// Chunks that are read of them, all together.
const CHUNKS: usize = 32;
/// Texts that are deduplicated as a trial.
const TEXTS: usize = 2000;
/// Bytes of memory of a run without documents: buffers of both passes and evidence. With what
/// follows, 235 MiB for 147,869 pages of documentation, 1 GB, which take 230 (`hamdex dedup`,
/// peak).
const BASE: f64 = 176.0 * (1 << 20) as f64;
/// Bytes of memory a document while groups are formed, besides its fingerprint.
const PER_DOCUMENT: f64 = 400.0;

/// What a run needs, estimated from a sample.
#[derive(Debug, Serialize)]
pub(super) struct Estimate<'a> {
    inputs: usize,
    bytes: u64,
    /// Rows by the bytes of the first rows of some inputs.
    rows: u64,
    /// Rows that were read for it.
    rows_sampled: u64,
    /// Whether every input says how many rows it has.
    rows_exact: bool,
    /// Texts that were deduplicated as a trial.
    texts_sampled: usize,
    distance: u32,
    verification: String,
    pipeline: &'a str,
    keep: String,
    /// Bytes of memory at the peak.
    memory: u64,
    /// Bytes of temporary files.
    temporary: u64,
    /// Most bytes of results: all rows kept.
    results: u64,
    /// Seconds for reading twice and for fingerprints; checks of near pairs are in it only as far
    /// as the sample has such pairs.
    seconds: f64,
}

/// Rows that were counted, and the bytes that they took in their files.
#[derive(Debug, Default)]
struct Counted {
    rows: u64,
    bytes: u64,
    /// Bytes in memory, where a file is compressed.
    plain: u64,
    seconds: f64,
}

impl DedupArgs {
    /// Estimates what the work will need.
    pub(super) fn dry(
        &self,
        session: &Session,
        done: &mut dyn FnMut(&Estimate<'_>) -> Result<()>,
    ) -> Result<()> {
        let inputs = self.rows.resolve(&self.inputs, self.names(), &session.console)?;
        if let Some(live) = inputs.sources.iter().find(|source| source.is_live()) {
            return Err(Failure::Usage(format!(
                "{} can be read only once, and --dry-run would consume its first rows; save it \
                    to a file",
                live.name
            )));
        }
        let index = self.state.as_deref().or(self.against.as_deref());
        let header = match &self.against {
            Some(index) => Some(stored::require(index, self.width.bits)?),
            None => index.map(stored::header).transpose()?.flatten(),
        };
        let bits = width::resolve(self.width.bits, header.as_ref(), inputs.raw_width()?)?;
        let inputs = Arc::new(inputs);
        let resolved = match &self.state {
            Some(state) => self.resolve_shards(session, &inputs, state, bits)?,
            None => self.resolve(session, &inputs, header.as_ref(), bits)?,
        };
        resolved.say(&session.console);
        let near = self.near(resolved.distance, resolved.verification);
        let keep = self.prefer.to_string();
        for_width!(bits, F => {
            done(&estimate::<F>(session, inputs, &resolved, &near, keep)?)
        })
    }
}

/// Estimates what a run over these inputs will need; consumes them.
fn estimate<'a, F: Fingerprint>(
    session: &Session,
    inputs: Arc<Inputs>,
    resolved: &'a Resolved,
    near: &dedup::Settings,
    keep: String,
) -> Result<Estimate<'a>> {
    let texts = inputs.sample(TEXTS)?;
    let bytes = inputs.bytes().unwrap_or(0);
    let known = inputs.estimated_rows(F::BYTES);
    let exact = inputs.sources.iter().all(|source| {
        matches!(source.kind, Kind::Raw(_) | Kind::Columnar(_) | Kind::Text | Kind::Directory(_))
    });
    let count = inputs.sources.len();
    let counted = counted(session, inputs)?;
    let rows = if exact || counted.bytes == 0 {
        known
    } else {
        scaled(counted.rows, bytes as f64 / counted.bytes as f64)
    };
    let trial = Trial::of::<F>(&texts, resolved, near)?;
    let reading = counted.seconds / counted.bytes.max(1) as f64 * bytes as f64;
    let seconds = 2.0 * reading + trial.seconds_each * rows as f64;
    let expansion = counted.plain as f64 / counted.bytes.max(1) as f64;
    Ok(Estimate {
        inputs: count,
        bytes,
        rows,
        rows_sampled: counted.rows,
        rows_exact: exact,
        texts_sampled: texts.len(),
        distance: resolved.distance,
        verification: resolved.verification.to_string(),
        pipeline: resolved.pipeline.as_ref().map_or("", |pipeline| pipeline.descriptor()),
        keep,
        memory: scaled(rows, PER_DOCUMENT + F::BYTES as f64).saturating_add(scaled(1, BASE)),
        temporary: scaled(rows, trial.evidence_each),
        results: scaled(bytes, expansion.max(1.0)),
        seconds: (seconds * 10.0).ceil() / 10.0,
    })
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // an estimate, never negative
fn scaled(count: u64, factor: f64) -> u64 {
    (count as f64 * factor).ceil() as u64
}

/// Counts the rows of the first chunks of some sources, spread over all.
fn counted(session: &Session, inputs: Arc<Inputs>) -> Result<Counted> {
    let mut counted = Counted::default();
    let Ok(Inputs { sources, names }) = Arc::try_unwrap(inputs) else { return Ok(counted) };
    let apart = sources.len().div_ceil(SOURCES).max(1);
    let chunks = CHUNKS / sources.len().clamp(1, SOURCES);
    for source in sources.into_iter().step_by(apart) {
        let one = Arc::new(Inputs { sources: vec![source], names: names.clone() });
        let begun = Instant::now();
        let mut seen: Option<(u64, u64, u64)> = None;
        let mut left = chunks;
        let read = for_each_chunk(&one, Rows::Whole, None, &session.console, |chunk| {
            let (rows, _, plain) = seen.unwrap_or_default();
            let plain = plain + plain_bytes(&chunk.body);
            seen = Some((rows + chunk.body.rows(), chunk.read, plain));
            left -= 1;
            // Enough was read.
            if left == 0 { Err(Failure::OutputClosed) } else { Ok(()) }
        });
        match (read, seen) {
            (Err(Failure::OutputClosed) | Ok(_), Some((rows, bytes, plain))) => {
                counted.rows += rows;
                counted.bytes += bytes;
                counted.plain += plain;
                counted.seconds += begun.elapsed().as_secs_f64();
            }
            (read, _) => drop(read?),
        }
    }
    Ok(counted)
}

/// Returns the bytes of rows in memory.
fn plain_bytes(body: &Body) -> u64 {
    match body {
        Body::Lines { bytes, .. } | Body::Raw { bytes, .. } => bytes.len() as u64,
        Body::Texts(texts) => {
            texts.iter().filter_map(|text| text.bytes.as_ref().ok()).map(|b| b.len() as u64).sum()
        }
    }
}

/// What a deduplication of some texts took.
struct Trial {
    seconds_each: f64,
    evidence_each: f64,
}

impl Trial {
    fn of<F: Fingerprint>(
        texts: &[String],
        resolved: &Resolved,
        near: &dedup::Settings,
    ) -> Result<Self> {
        let Some(pipeline) = resolved.pipeline.as_ref().filter(|_| !texts.is_empty()) else {
            return Ok(Self { seconds_each: 0.0, evidence_each: 0.0 });
        };
        let begun = Instant::now();
        let mut dedup = Dedup::<F>::new(near)?;
        dedup.push_texts(pipeline, texts)?;
        dedup.finish(&())?;
        let seconds_each = begun.elapsed().as_secs_f64() / texts.len() as f64;
        let evidence_each = if resolved.verification == Verification::None {
            0.0
        } else {
            let evidence = |text: &String| resolved.verification.evidence(pipeline, text).len();
            texts.par_iter().map(evidence).sum::<usize>() as f64 / texts.len() as f64
        };
        Ok(Self { seconds_each, evidence_each })
    }
}

impl Estimate<'_> {
    pub(super) fn json(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|e| Failure::io("estimate", e.into()))
    }

    pub(super) fn show(&self, session: &Session, output: &Path, tmp: &Path) -> Result<()> {
        let mut table = Table::list();
        let rows = size::thousands(self.rows);
        let rows = if self.rows_exact { rows } else { format!("about {rows}") };
        let sampled = size::thousands(self.rows_sampled);
        table
            .pair("inputs", size::thousands(self.inputs as u64))
            .pair("bytes", size::bytes(self.bytes as f64))
            .pair("rows", format!("{rows} ({sampled} sampled)"))
            .pair("pipeline", self.pipeline)
            .pair("distance", self.distance)
            .pair("verification", &self.verification)
            .pair("keep", &self.keep)
            .pair("memory", format!("about {}", size::bytes(self.memory as f64)));
        let free = |place: &Path| {
            let space = place.ancestors().find_map(|place| rustix::fs::statvfs(place).ok());
            let free = space.map(|space| space.f_bavail.saturating_mul(space.f_frsize));
            free.map_or(String::new(), |free| format!(", {} free", size::bytes(free as f64)))
        };
        table
            .pair(
                "temporary files",
                format!("{} in {}{}", size::bytes(self.temporary as f64), tmp.display(), free(tmp)),
            )
            .pair("results", format!("up to {}{}", size::bytes(self.results as f64), free(output)))
            .pair(
                "seconds",
                format!("{:.1} or more, because many near pairs are checked", self.seconds),
            );
        session.report(self, &table)
    }
}
