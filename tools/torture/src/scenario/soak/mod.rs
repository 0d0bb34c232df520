//! Soak: a mixed load on a large index for a long time, which must not degrade it.
//!
//! One thread inserts, replaces and removes documents at a constant total, one searches, and the
//! index merges in the background. Memory, open files, disk and latencies are sampled every second.
//! Finally nine in ten documents are removed, and their space must be freed.

mod load;
mod phases;
mod plot;
mod sample;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hamdex::build::{BuildOptions, Builder};
use hamdex::{Durability, Index, IndexOptions};

use self::load::{Load, MEMORY, fingerprint, key};
use self::phases::{ByFold, Phases};
use self::sample::{Flatness, Sample};
use crate::report::{Account, Finding, Verdict};

/// Documents removed by one call at the end.
const REMOVED_AT_ONCE: u64 = 10_000;

/// Maximum space of the remaining tenth, as a share of the space of all documents.
const LEFT: f64 = 0.35;

/// Minimum time of a run whose trend is judged; shorter runs only warm up.
const JUDGED: Duration = Duration::from_mins(5);

/// Looks, ten in a second, that must find no compaction.
const RESTS: u32 = 20;

/// Longest time for which files may be compacted after the last write.
const LONGEST_COMPACTION: Duration = Duration::from_mins(5);

/// Settings of a soak.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) documents: u64,
    pub(crate) time: Duration,
    /// Directory for samples and plots.
    pub(crate) report: Option<PathBuf>,
}

/// Builds the index, runs the load and empties the index.
pub(crate) fn run(directory: &Path, seed: u64, settings: &Settings) -> Account {
    let mut account = Account::new("soak");
    account.tried();
    let outcome = soak(&directory.join("soak"), seed, settings, &mut account);
    let context = format!("soak, seed {seed}, {} documents", settings.documents);
    account.judge(outcome.map_err(|found| found.within(&context)));
    account.end();
    account
}

fn soak(path: &Path, seed: u64, settings: &Settings, account: &mut Account) -> Verdict {
    build(path, seed, settings.documents)?;
    let load = Arc::new(Load::new(seed, settings.documents));
    let noticing = Arc::clone(&load);
    let open = IndexOptions::new()
        .memory(MEMORY)
        .background_merge(true)
        .on_event(move |event| noticing.notice(event));
    let index = Index::<u64>::open_with(path, &open)?;
    let built = search_alone(&index, &load, settings.time / 20);
    let begun = Instant::now();
    let warm = settings.time / 10;
    let mut folded = Duration::ZERO;
    let samples = std::thread::scope(|scope| {
        scope.spawn(|| load.work(|rng| load.write(&index, rng)));
        scope.spawn(|| load.work(|rng| load.search(&index, rng)));
        let samples = watch(path, &load, begun, warm).and_then(|mut samples| {
            // Until then there is nothing to compact, which later holds up everything.
            load.by_fold();
            folded = load.folding_time();
            samples.extend(watch(path, &load, begun, settings.time)?);
            Ok(samples)
        });
        load.stop();
        samples
    })?;
    let [searches, writes, flushes] = load.by_fold();
    let within = load.folding_time().saturating_sub(folded).as_secs_f64();
    let seconds = (begun.elapsed().saturating_sub(warm).as_secs_f64() - within, within);
    if let Some(finding) = load.finding() {
        return Err(finding);
    }
    drop(index);
    load.end_merge();
    // Without a background merge, which would take minutes to rest.
    let index = Index::<u64>::open_with(path, &IndexOptions::new().memory(MEMORY))?;
    await_compactions(&index)?;
    let quiet = [built, search_alone(&index, &load, settings.time / 20)];
    let phases = Phases { quiet, searches, writes, flushes, seconds };
    account.note(phases.to_string());
    if let Some(finding) = load.finding() {
        return Err(finding);
    }
    let (first, last) = load.stored();
    if index.len()? != last - first {
        let text = format!("{} documents are counted, {} stored", index.len()?, last - first);
        return Err(Finding::wrong(text));
    }
    account.add("samples", samples.len() as u64);
    account.add("searches", samples.iter().map(|sample| sample.searches.count).sum());
    account.add("writes", samples.iter().map(|sample| sample.writes.count).sum());
    let emptied = empty(&index, path, first..last)?;
    drop(index);
    let flatness = sample::flatness(&samples);
    if let Some(report) = &settings.report {
        plot::write(report, settings, &samples, &flatness, &phases, emptied)?;
    }
    let (before, after) = emptied;
    account.add("percent of space left", after * 100 / before.max(1));
    if after as f64 > before as f64 * LEFT {
        let text = format!("{after} of {before} bytes are left after removing nine in ten");
        return Err(Finding::wrong(text));
    }
    let steep = flatness.iter().filter(|flat| !flat.is_flat()).map(Flatness::to_string);
    let steep: Vec<_> = steep.collect();
    if settings.time >= JUDGED && !steep.is_empty() {
        return Err(Finding::wrong(format!("not flat: {}", steep.join(", "))));
    }
    let report = Index::<u64>::open_read_only(path)?.check(&())?;
    if report.problem_count > 0 {
        return Err(Finding::wrong(format!("check: {}", report.problems.join("; "))));
    }
    Ok(())
}

fn build(path: &Path, seed: u64, documents: u64) -> Verdict {
    let build = BuildOptions::new().memory(MEMORY);
    let mut builder = Builder::<u64>::create(path, &IndexOptions::new().memory(16 << 20), &build)?;
    for id in 0..documents {
        builder.push(&key(id), fingerprint(seed, id), id)?;
    }
    builder.finish(&(), &mut |_, _| ())?;
    Ok(())
}

/// Searches for a time with nothing beside it.
fn search_alone(index: &Index<u64>, load: &Load, time: Duration) -> ByFold {
    load.go_on();
    std::thread::scope(|scope| {
        scope.spawn(|| load.work(|rng| load.search(index, rng)));
        std::thread::sleep(time);
        load.stop();
    });
    let [searches, ..] = load.by_fold();
    load.go_on();
    searches
}

/// Waits until files are compacted.
fn await_compactions(index: &Index<u64>) -> Verdict {
    let begun = Instant::now();
    let mut resting = 0;
    // Between two compactions there is none either.
    while resting < RESTS {
        let health = index.health()?;
        resting = if health.flushes + health.compactions == 0 { resting + 1 } else { 0 };
        if begun.elapsed() > LONGEST_COMPACTION {
            return Err(Finding::wrong(format!("compactions go on without writes: {health:?}")));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// Takes a sample every second until the load has run for a time.
fn watch(path: &Path, load: &Load, begun: Instant, until: Duration) -> Verdict<Vec<Sample>> {
    let mut samples = Vec::new();
    while begun.elapsed() < until && load.goes_on() {
        std::thread::sleep(Duration::from_secs(1));
        samples.push(Sample::take(path, begun.elapsed(), load)?);
    }
    Ok(samples)
}

/// Removes nine in ten documents; returns the size before and after, in bytes.
fn empty(index: &Index<u64>, path: &Path, ids: std::ops::Range<u64>) -> Verdict<(u64, u64)> {
    index.merge(&())?;
    index.compact()?;
    let before = sample::disk(path)?;
    let end = ids.start + (ids.end - ids.start) / 10 * 9;
    let mut first = ids.start;
    while first < end {
        let next = end.min(first + REMOVED_AT_ONCE);
        let keys: Vec<_> = (first..next).map(key).collect();
        let removed = index.remove_batch(&keys, Durability::Buffered)?;
        if removed != next - first {
            return Err(Finding::lost(format!("{removed} of {} were removed", next - first)));
        }
        first = next;
    }
    index.merge(&())?;
    index.compact()?;
    // RocksDB deletes files in the background.
    std::thread::sleep(Duration::from_millis(500));
    Ok((before, sample::disk(path)?))
}
