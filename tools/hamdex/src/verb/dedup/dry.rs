//! Dry run and sample: what a deduplication will need is estimated from a part of the rows.
//!
//! A dry run writes nothing. A sample is drawn, and the whole work is done on it.

use std::collections::BinaryHeap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use hamdex::dedup::{self, Dedup};
use hamdex::verify::Verification;
use hamdex::{Fingerprint, for_width};
use hamdex_io::host::Host;
use rayon::prelude::*;
use serde::Serialize;

use super::DedupArgs;
use crate::advise::Resolved;
use crate::console::Console;
use crate::draw::table::Table;
use crate::failure::{Failure, Result};
use crate::input::{Body, Chunk, Draw, Inputs, Kind, Reason, Rows, for_each_chunk};
use crate::session::Session;
use crate::settings;
use crate::size;
use crate::stored;

/// Sources whose first rows are counted.
const SOURCES: usize = 16;
/// Chunks that are read of them, all together.
const CHUNKS: usize = 128;
/// Texts that are deduplicated as a trial.
const TEXTS: usize = 2000;
/// Bytes of memory of a run without documents: buffers of both passes, and the counts of words.
const BASE: f64 = 112.0 * (1 << 20) as f64;
/// Bytes of memory per document, besides its fingerprint, if everything fits. With `BASE`, 100,000
/// made rows of 200 characters take 133 MB (`hamdex dedup`: 137 MB, peak).
const PER_DOCUMENT: f64 = 152.0;
/// Bytes per document that are never on disk: labels, clusters and the smallest block.
const LEAST: f64 = 17.0;
/// Bytes of a document's record beside its evidence, which is on disk if many are.
const RECORD: f64 = 76.0;
/// Part of the memory that records may take.
const RECORDS_PART: u64 = 12;

/// Seed of all samples, so that equal inputs give equal ones.
const SEED: u64 = 0x68_61_6d_64_65_78;

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
        let bits = settings::width(self.width.bits, header.as_ref(), inputs.raw_width()?)?;
        let inputs = Arc::new(inputs);
        let resolved = match &self.state {
            Some(state) => self.resolve_shards(session, &inputs, state, bits)?,
            None => self.resolve(session, &inputs, header.as_ref(), bits)?,
        };
        resolved.say(&session.console);
        let near = self.near(resolved.distance, resolved.verification)?;
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
    near: &dedup::DedupOptions,
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
        memory: memory(rows, F::BYTES, near.memory),
        temporary: temporary(rows, trial.evidence_each, near.memory),
        results: scaled(bytes, expansion.max(1.0)),
        seconds: (seconds * 10.0).ceil() / 10.0,
    })
}

/// Estimates the memory at the peak under a limit.
fn memory(documents: u64, fingerprint: usize, limit: usize) -> u64 {
    let all = scaled(documents, PER_DOCUMENT + fingerprint as f64);
    let least = scaled(documents, LEAST + fingerprint as f64);
    scaled(1, BASE).saturating_add(all.min(least.max(limit as u64)))
}

/// Estimates the temporary files under a limit of memory.
fn temporary(documents: u64, evidence: f64, limit: usize) -> u64 {
    let records = if evidence > 0.0 { scaled(documents, RECORD) } else { 0 };
    let spilled = if records > limit as u64 / RECORDS_PART { records } else { 0 };
    scaled(documents, evidence).saturating_add(spilled)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // an estimate, never negative
fn scaled(count: u64, factor: f64) -> u64 {
    (count as f64 * factor).ceil() as u64
}

/// Counts the rows of the first chunks of some sources, spread over all.
fn counted(session: &Session, inputs: Arc<Inputs>) -> Result<Counted> {
    let mut counted = Counted::default();
    let Ok(Inputs { sources, names, .. }) = Arc::try_unwrap(inputs) else { return Ok(counted) };
    let apart = sources.len().div_ceil(SOURCES).max(1);
    let chunks = CHUNKS / sources.len().clamp(1, SOURCES);
    for source in sources.into_iter().step_by(apart) {
        let one = Arc::new(Inputs { sources: vec![source], names: names.clone(), drawn: None });
        let begun = Instant::now();
        let mut seen: Option<(u64, u64, u64)> = None;
        let mut left = chunks;
        let read = for_each_chunk(&one, Rows::Whole, None, &session.console, |chunk| {
            let (rows, _, plain) = seen.unwrap_or_default();
            let plain = plain + chunk.body.bytes() as u64;
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

/// Draws rows from all inputs, each with the same chance; what is read from now on is these.
///
/// Equal inputs give equal rows, and a smaller sample is a part of a larger one. Rows without a
/// page, which crawls have, are not counted. Memory is 16 bytes for each row that is drawn.
pub(super) fn draw(inputs: &mut Arc<Inputs>, rows: u64, console: &Console) -> Result<Drawn> {
    if let Some(raw) = inputs.sources.iter().find(|source| matches!(source.kind, Kind::Raw(_))) {
        return Err(Failure::Usage(format!(
            "{}: --sample draws texts, not raw fingerprints; drop it, or give rows of JSON",
            raw.name
        )));
    }
    let begun = Instant::now();
    let wanted = usize::try_from(rows).unwrap_or(usize::MAX);
    // The rows with the smallest hashes, the largest of these on top.
    let mut chosen: BinaryHeap<(u64, u64)> = BinaryHeap::new();
    let mut drawn = Drawn { bytes: inputs.bytes().unwrap_or(0), ..Drawn::default() };
    console.begin_reading("sampling", inputs.bytes());
    let extents = for_each_chunk(inputs, Rows::Needed, None, console, |chunk| {
        drawn.plain += chunk.body.bytes() as u64;
        for_each_row(&chunk, |origin| {
            drawn.of += 1;
            chosen.push((scatter(origin ^ SEED), origin));
            if chosen.len() > wanted {
                chosen.pop();
            }
        });
        Ok(())
    })?;
    console.end_phase();
    let mut origins: Vec<u64> = chosen.into_iter().map(|(_, origin)| origin).collect();
    origins.sort_unstable();
    drawn.rows = origins.len() as u64;
    drawn.seconds = begun.elapsed().as_secs_f64();
    let inputs = Arc::get_mut(inputs).expect("no reading is under way");
    inputs.drawn = Some(Draw { origins, extents });
    Ok(drawn)
}

/// Calls `row` with the ordinal of each row of a chunk that may be drawn.
fn for_each_row(chunk: &Chunk, mut row: impl FnMut(u64)) {
    let base = chunk.base.unwrap_or_default();
    match &chunk.body {
        Body::Lines { lines, .. } => {
            for line in lines {
                row(base + line.ordinal);
            }
        }
        Body::Texts(texts) => {
            let passed = |reason: &Reason| {
                matches!(reason, Reason::Status(_) | Reason::OtherType(_) | Reason::Binary)
            };
            for text in texts.iter().filter(|text| !text.bytes.as_ref().is_err_and(passed)) {
                row(base + text.ordinal);
            }
        }
        // Rows of tables are lines by now.
        Body::Raw { .. } | Body::Table(_) => {}
    }
}

/// Mixes all bits of a number; different numbers stay different (Steele and others, OOPSLA 2014).
fn scatter(number: u64) -> u64 {
    let mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// What drawing a sample showed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Drawn {
    /// Rows that were drawn.
    rows: u64,
    /// Rows of all inputs.
    of: u64,
    /// Bytes of the inputs, and without compression.
    bytes: u64,
    plain: u64,
    /// Seconds of reading everything once.
    seconds: f64,
}

/// What a deduplication of a sample took, to estimate that of all rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spent {
    /// Documents of the sample, and those that were removed.
    pub(super) documents: u64,
    pub(super) removed: u64,
    /// Bytes of evidence.
    pub(super) evidence: u64,
    /// Bytes of a fingerprint.
    pub(super) fingerprint: usize,
    /// Most bytes of memory.
    pub(super) limit: usize,
    /// Seconds without those of drawing.
    pub(super) seconds: f64,
}

/// The sample in the report, with what all rows need.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Sampled {
    rows: u64,
    of: u64,
    /// Share of all documents that the whole work removes, expected between these two.
    removed_share_at_least: f64,
    removed_share_at_most: f64,
    /// Bytes of memory at the peak of the whole work, of temporary files and of results.
    memory: u64,
    temporary: u64,
    results: u64,
    /// Seconds of the whole work; checks of near pairs take more, because their share rises.
    seconds: f64,
}

impl Drawn {
    /// Estimates what all rows need.
    ///
    /// A group with one member in the sample shows nothing. Of pairs, the sample shows the share of
    /// its size squared, and of large groups nearly all: the whole loses between the share of the
    /// sample and that share as many times as the sample is smaller.
    pub(super) fn whole(&self, spent: &Spent) -> Sampled {
        let times = self.of as f64 / self.rows.max(1) as f64;
        let share = spent.removed as f64 / spent.documents.max(1) as f64;
        let documents = scaled(spent.documents, times);
        let evidence = spent.evidence as f64 / spent.documents.max(1) as f64;
        let work = (spent.seconds - 2.0 * self.seconds).max(0.0);
        let seconds = 2.0 * self.seconds + work * times;
        Sampled {
            rows: self.rows,
            of: self.of,
            removed_share_at_least: size::similarity(share),
            removed_share_at_most: size::similarity((share * times).min(1.0)),
            memory: memory(documents, spent.fingerprint, spent.limit),
            temporary: temporary(documents, evidence, spent.limit),
            results: self.bytes.max(self.plain),
            seconds: (seconds * 10.0).ceil() / 10.0,
        }
    }
}

impl Sampled {
    pub(super) fn show(&self, table: &mut Table) {
        let (rows, of) = (size::thousands(self.rows), size::thousands(self.of));
        table.pair("sample", format!("{rows} of {of} rows; the whole needs:"));
        let least = 100.0 * self.removed_share_at_least;
        let most = 100.0 * self.removed_share_at_most;
        table
            .pair("  removed", format!("{least:.1} to {most:.1} %"))
            .pair("  memory", format!("about {}", size::bytes(self.memory as f64)))
            .pair("  temporary files", size::bytes(self.temporary as f64))
            .pair("  results", format!("up to {}", size::bytes(self.results as f64)))
            .pair(
                "  seconds",
                format!("{:.1} or more, because many near pairs are checked", self.seconds),
            );
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
        near: &dedup::DedupOptions,
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
