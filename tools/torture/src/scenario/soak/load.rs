//! The load: writes and searches, with the time of each call.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fastrand::Rng;
use hamdex::health::Event;
use hamdex::{Durability, Index, Query};

use super::phases::ByFold;
use crate::report::{Finding, Verdict};

/// Memory for cache and buffers in bytes.
///
/// With less, the cache does not hold an index of ten million documents, and most of what a search
/// waits for beside writes are blocks that it read before.
pub(super) const MEMORY: usize = 1 << 30;

/// Documents of one writing call.
const BATCH: u64 = 50;

/// One in 16 documents may be replaced; the others keep their fingerprint.
const REPLACED: u64 = 16;

/// One in this many steps of the writer is a flush, some in a minute.
///
/// With several in a second the writer waits for most of its time until small files are compacted,
/// and what it would wait for without them does not show.
const FLUSH_EVERY: u32 = 2000;

const DISTANCE: u32 = 3;

/// Returns the key of a document.
pub(super) fn key(id: u64) -> Vec<u8> {
    id.to_be_bytes().to_vec()
}

/// Returns the fingerprint of a document that was not replaced.
pub(super) fn fingerprint(seed: u64, id: u64) -> u64 {
    Rng::with_seed(seed ^ id.wrapping_mul(0x9e37_79b9_7f4a_7c15)).u64(..)
}

/// The stored documents, and the times of calls.
#[derive(Debug)]
pub(super) struct Load {
    seed: u64,
    /// The oldest document.
    first: AtomicU64,
    /// One after the newest document.
    last: AtomicU64,
    stopped: AtomicBool,
    /// Whether a background merge is running.
    folding: AtomicBool,
    folds: Mutex<Folds>,
    finding: Mutex<Option<Finding>>,
    searches: Mutex<Times>,
    writes: Mutex<Times>,
    flushes: Mutex<Times>,
}

/// The running time of background merges.
#[derive(Debug, Default)]
struct Folds {
    ended: Duration,
    began: Option<Instant>,
}

/// The times of calls of one kind.
#[derive(Debug, Default)]
struct Times {
    /// Since the last sample.
    latest: Vec<Duration>,
    by_fold: ByFold,
}

impl Load {
    pub(super) fn new(seed: u64, documents: u64) -> Self {
        Self {
            seed,
            first: AtomicU64::new(0),
            last: AtomicU64::new(documents),
            stopped: AtomicBool::new(false),
            folding: AtomicBool::new(false),
            folds: Mutex::default(),
            finding: Mutex::default(),
            searches: Mutex::default(),
            writes: Mutex::default(),
            flushes: Mutex::default(),
        }
    }

    /// Repeats a step until stopped; a finding stops all threads.
    pub(super) fn work(&self, step: impl Fn(&mut Rng) -> Verdict) {
        let rng = &mut Rng::with_seed(self.seed);
        while self.goes_on() {
            if let Err(finding) = step(rng) {
                held(&self.finding).get_or_insert(finding);
                self.stop();
            }
        }
    }

    pub(super) fn goes_on(&self) -> bool {
        !self.stopped.load(Ordering::Relaxed)
    }

    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Clears the stop flag.
    pub(super) fn go_on(&self) {
        self.stopped.store(false, Ordering::Relaxed);
    }

    pub(super) fn finding(&self) -> Option<Finding> {
        held(&self.finding).take()
    }

    /// Returns the number of the first document and one after the last.
    pub(super) fn stored(&self) -> (u64, u64) {
        (self.first.load(Ordering::Acquire), self.last.load(Ordering::Acquire))
    }

    /// Records an event of the index.
    pub(super) fn notice(&self, event: &Event<'_>) {
        match event {
            Event::MergeBegan => {
                held(&self.folds).began = Some(Instant::now());
                self.folding.store(true, Ordering::Relaxed);
            }
            Event::MergeEnded { .. } => self.end_merge(),
            Event::MergeFailed { error } => {
                let finding = Finding::wrong(format!("the background fold failed: {error}"));
                held(&self.finding).get_or_insert(finding);
                self.stop();
            }
            Event::Flushed { .. } | Event::SlowWrite { .. } | Event::CaughtUp { .. } | _ => (),
        }
    }

    /// Returns the running time of merges up to now.
    pub(super) fn folding_time(&self) -> Duration {
        let folds = held(&self.folds);
        folds.ended + folds.began.map_or(Duration::ZERO, |began| began.elapsed())
    }

    /// Records that no merge is running any more. Closing the index ends one without an event.
    pub(super) fn end_merge(&self) {
        self.folding.store(false, Ordering::Relaxed);
        let mut folds = held(&self.folds);
        if let Some(began) = folds.began.take() {
            folds.ended += began.elapsed();
        }
    }

    fn is_folding(&self) -> bool {
        self.folding.load(Ordering::Relaxed)
    }

    /// Takes the times of searches and of writes since the last call.
    pub(super) fn times(&self) -> (Vec<Duration>, Vec<Duration>) {
        let take = |times: &Mutex<Times>| std::mem::take(&mut held(times).latest);
        (take(&self.searches), take(&self.writes))
    }

    /// Takes the times of all searches, writes and flushes, and clears them.
    pub(super) fn by_fold(&self) -> [ByFold; 3] {
        [&self.searches, &self.writes, &self.flushes]
            .map(|times| std::mem::take(&mut *held(times)).by_fold)
    }

    fn timed<T>(&self, times: &Mutex<Times>, call: impl FnOnce() -> T) -> T {
        let (begun, folding) = (Instant::now(), self.is_folding());
        let result = call();
        let took = begun.elapsed();
        let mut times = held(times);
        times.latest.push(took);
        times.by_fold.add(took, folding || self.is_folding());
        result
    }

    /// Inserts a batch and removes the oldest one, replaces a batch, or flushes.
    pub(super) fn write(&self, index: &Index<u64>, rng: &mut Rng) -> Verdict {
        let (first, last) = self.stored();
        let durability =
            if rng.u32(0..20) == 0 { Durability::Synced } else { Durability::Buffered };
        match rng.u32(0..FLUSH_EVERY) {
            0 => self.timed(&self.flushes, || index.flush())?,
            step if step < FLUSH_EVERY / 3 => {
                let documents: Vec<_> =
                    (last..last + BATCH).map(|id| (key(id), fingerprint(self.seed, id))).collect();
                self.timed(&self.writes, || index.insert_batch(&documents, durability))?;
                self.last.store(last + BATCH, Ordering::Release);
                // No longer searched for from here on, then removed from the index.
                self.first.store(first + BATCH, Ordering::Release);
                let gone: Vec<_> = (first..first + BATCH).map(key).collect();
                let removed = self.timed(&self.writes, || index.remove_batch(&gone, durability))?;
                if removed != BATCH {
                    return Err(Finding::lost(format!("{removed} of {BATCH} were removed")));
                }
            }
            _ => {
                let slots = (last - first) / REPLACED;
                let documents: Vec<_> = (0..BATCH)
                    .map(|_| {
                        let slot = rng.u64(0..slots - 1);
                        (key(first.next_multiple_of(REPLACED) + slot * REPLACED), rng.u64(..))
                    })
                    .collect();
                self.timed(&self.writes, || index.insert_batch(&documents, durability))?;
            }
        }
        Ok(())
    }

    /// Searches for a document that must be found, or in a batch.
    pub(super) fn search(&self, index: &Index<u64>, rng: &mut Rng) -> Verdict {
        let (first, last) = self.stored();
        let known = |rng: &mut Rng| {
            let id = rng.u64(first..last);
            if id.is_multiple_of(REPLACED) { id + 1 } else { id }
        };
        if rng.u32(0..200) == 0 {
            let queries: Vec<_> = (0..100)
                .map(|_| fingerprint(self.seed, known(rng)) ^ (1 << rng.u32(0..64)))
                .map(|query| Query::new(query).distance(DISTANCE))
                .collect();
            index.search_batch(&queries)?;
            return Ok(());
        }
        let id = known(rng);
        let asked = fingerprint(self.seed, id);
        let query = Query::new(asked ^ (1 << rng.u32(0..64))).distance(DISTANCE);
        let found = self.timed(&self.searches, || index.search(query))?;
        // The document may have been removed meanwhile.
        let stored = id >= self.stored().0 && id < last;
        if stored && !found.iter().any(|found| found.key == key(id)) {
            return Err(Finding::lost(format!("document {id} is stored and not found")));
        }
        Ok(())
    }
}

fn held<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
