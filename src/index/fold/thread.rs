//! The background thread that merges delta entries while an index is open.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::error::{Error, Fault, Result};
use crate::fingerprint::Fingerprint;
use crate::index::Shared;
use crate::index::committer::{Builder, LEAST_WORTH};
use crate::index::health::Event;
use crate::index::upkeep::repack::Packed;

/// Interval at which the thread looks for work.
const IDLE: Duration = Duration::from_millis(200);

/// Least number of new fingerprints for a pass.
const FOLD_AFTER: u64 = 1 << 16;

/// Least share of new documents for a pass, as one in this many.
///
/// A pass rewrites every run with new members, and a run has 128 members: the more entries are
/// merged together, the fewer bytes are written for each.
const FOLD_SHARE: u64 = 8;

/// Least share of entries over packs, among documents, for a repacking, as one in this many.
///
/// It rewrites nearly all packs: the more entries it takes in, the fewer bytes are written for each.
/// The fewer it leaves, the less space and time they cost beside the packs.
const PACK_SHARE: u64 = 2;

/// Rest after a step, as a multiple of its time, which leaves the CPUs to searches and writes.
///
/// Shorter once writes are ahead of the thread: see [`rest`].
const REST: u32 = 7;

/// Rest after a step that failed, for example on a full disk. Doubled up to [`LONGEST_REST`].
const FIRST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_mins(1);

/// State of the background merge of a handle.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Merging {
    /// The handle has none: [`IndexOptions::background_merge`](crate::IndexOptions::background_merge).
    Off,
    /// The merge waits for more inserts.
    Idle,
    /// The merge is running.
    Working,
    /// The merge failed because of the environment, and tries again.
    Retrying {
        /// The last error.
        error: String,
        /// Number of failures since the last success.
        failures: u32,
    },
    /// The merge found damage and stopped. Searches and writes continue as far as possible.
    Stopped {
        /// The error.
        error: String,
    },
}

/// The thread, which ends when this is dropped.
#[derive(Debug)]
pub(in crate::index) struct Folder {
    desk: Arc<Desk>,
    thread: Option<JoinHandle<()>>,
}

/// Shared state of the thread and its handle.
#[derive(Debug)]
struct Desk {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Debug)]
struct State {
    stop: bool,
    merging: Merging,
}

impl Folder {
    pub(in crate::index) fn spawn<F: Fingerprint>(shared: &Arc<Shared<F>>) -> Result<Self> {
        let state = Mutex::new(State { stop: false, merging: Merging::Idle });
        let desk = Arc::new(Desk { state, wake: Condvar::new() });
        let (mine, weak) = (Arc::clone(&desk), Arc::downgrade(shared));
        let thread = std::thread::Builder::new()
            .name("hamdex-fold".to_owned())
            .spawn(move || fold_until(&mine, &weak))
            .map_err(|e| Error::io(shared.store.path(), e))?;
        Ok(Self { desk, thread: Some(thread) })
    }

    /// Returns the state of the thread.
    pub(in crate::index) fn merging(&self) -> Merging {
        self.desk.state().merging.clone()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.desk.state().stop = true;
        self.desk.wake.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was reported where it happened, and nothing has to be undone.
            let _ = thread.join();
        }
    }
}

impl Desk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes the state of the thread and rests. Returns false once it must stop.
    fn rest(&self, merging: Merging, time: Duration) -> bool {
        let mut state = self.state();
        state.merging = merging;
        let waited = self.wake.wait_timeout_while(state, time, |state| !state.stop);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !state.stop
    }
}

/// What the thread is doing.
#[derive(Default)]
struct Work {
    pass: Option<Pass>,
    is_packing: bool,
    /// Entries over packs that the last repacking left, because packs cannot hold them.
    unpacked: u64,
}

/// The current pass.
struct Pass {
    began: Instant,
    merged: u64,
    /// How many passes had ended before. Steps of writers may end this one.
    ended: u64,
}

/// Merges whenever there is enough to merge, until the thread must stop or the index is closed.
fn fold_until<F: Fingerprint>(desk: &Desk, shared: &Weak<Shared<F>>) {
    let mut work = Work::default();
    let mut failures = 0_u32;
    loop {
        let Some(shared) = shared.upgrade() else { return };
        shared.committer.build_unmerged(Builder::Background);
        let begun = Instant::now();
        let outcome = shared.work_a_little(&mut work);
        if let Err(error) = &outcome {
            shared.core.events.emit(&Event::MergeFailed { error });
        }
        drop(shared);
        let (merging, time) = match outcome {
            Ok(rest) => {
                failures = 0;
                if work.pass.is_some() || work.is_packing {
                    (Merging::Working, begun.elapsed() * rest)
                } else {
                    (Merging::Idle, IDLE)
                }
            }
            Err(error) if error.fault() == Fault::Environment => {
                let time = (FIRST_REST * 2_u32.pow(failures.min(6))).min(LONGEST_REST);
                failures += 1;
                (Merging::Retrying { error: error.to_string(), failures }, time)
            }
            Err(error) => {
                desk.state().merging = Merging::Stopped { error: error.to_string() };
                return;
            }
        };
        if !desk.rest(merging, time) {
            return;
        }
    }
}

impl<F: Fingerprint> Shared<F> {
    /// Runs a step of the current pass and one of the current repacking, or begins what is due.
    ///
    /// Returns the rest after it, as a multiple of its time.
    fn work_a_little(&self, work: &mut Work) -> Result<u32> {
        let packed = self.pack_a_little(work);
        let rest = self.fold_a_little(&mut work.pass)?;
        Ok(rest.min(packed?))
    }

    /// Does nothing while a compaction repacks, which ends the repacking of the thread.
    fn pack_a_little(&self, work: &mut Work) -> Result<u32> {
        let least = FOLD_AFTER.max(self.store.state()?.documents / PACK_SHARE);
        let entries = self.store.entries_over_packs()?;
        work.unpacked = work.unpacked.min(entries);
        let waiting = entries - work.unpacked;
        let is_due = waiting >= least;
        if !(work.is_packing || is_due) {
            return Ok(REST);
        }
        let stepped = self.unless_repacked(|repacks| {
            if repacks.is_none() && is_due {
                self.begin_packing(repacks)?;
            }
            self.pack_step(repacks, &mut || ())
        });
        work.is_packing = false;
        match stepped?.flatten() {
            Some(Packed::Some) => work.is_packing = true,
            Some(Packed::All { took, unpacked }) => {
                work.unpacked = unpacked;
                self.core.events.emit(&Event::Packed { took });
            }
            None => {}
        }
        Ok(rest(waiting / least))
    }

    /// Runs a step of the current pass, or begins a pass if one is due.
    ///
    /// Returns the rest after it, as a multiple of its time.
    fn fold_a_little(&self, pass: &mut Option<Pass>) -> Result<u32> {
        let events = &self.core.events;
        let least = FOLD_AFTER.max(self.store.state()?.documents / FOLD_SHARE);
        let waiting = self.committer.unmerged();
        let (full, fifths) = self.committer.memory_pressure();
        if pass.is_none() {
            if waiting < if full { LEAST_WORTH } else { least } {
                return Ok(REST);
            }
            self.committer.begin_fold();
            events.emit(&Event::MergeBegan);
        }
        let ended = self.committer.ended_folds();
        let current = pass.get_or_insert_with(|| Pass { began: Instant::now(), merged: 0, ended });
        if current.ended == ended {
            current.merged += self.offering_step()?.merged;
        }
        if current.ended < self.committer.ended_folds() {
            self.clear_deltas()?;
            events
                .emit(&Event::MergeEnded { merged: current.merged, took: current.began.elapsed() });
            *pass = None;
        }
        // Also if two or four fifths of the memory for unmerged fingerprints are in use.
        Ok(rest(fifths.max(waiting / least)))
    }
}

/// Returns the rest if `times` as many entries wait as the thread begins with.
fn rest(times: u64) -> u32 {
    match times {
        0..2 => REST,
        2..4 => REST / 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::index::{Durability, Index, IndexOptions};

    #[test]
    fn the_thread_ends_a_pass_whose_last_step_a_writer_ran() {
        let directory = tempfile::tempdir().unwrap();
        let ended = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&ended);
        let options = IndexOptions::new().on_event(move |event| {
            if let Event::MergeEnded { .. } = event {
                counter.fetch_add(1, Ordering::Relaxed);
            }
        });
        let index = Index::<u64>::create(directory.path(), &options).unwrap();
        let documents: Vec<_> = (0..FOLD_AFTER)
            .map(|key| (key.to_be_bytes(), key.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
            .collect();
        index.insert_batch(&documents, Durability::Buffered).unwrap();
        let (shared, mut work) = (&*index.shared, Work::default());
        shared.work_a_little(&mut work).unwrap();
        assert!(work.pass.is_some() && ended.load(Ordering::Relaxed) == 0);
        while !shared.merge_step().unwrap().ends_pass {}
        index.insert(b"new", 7).unwrap();
        shared.work_a_little(&mut work).unwrap();
        assert!(work.pass.is_none() && ended.load(Ordering::Relaxed) == 1);
        assert!(!shared.committer.is_folding(), "no other pass has begun");
    }

    #[test]
    fn a_pass_that_memory_cuts_into_several_ends_once() {
        let directory = tempfile::tempdir().unwrap();
        let index = Index::<u64>::create(directory.path(), &IndexOptions::new()).unwrap();
        let documents: Vec<_> = (0..300_000_u64)
            .map(|key| (key.to_be_bytes(), key.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
            .collect();
        index.insert_batch(&documents, Durability::Buffered).unwrap();
        drop(index);
        let ended = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&ended);
        let options = IndexOptions::new().memory(16 << 20).on_event(move |event| {
            if let Event::MergeEnded { .. } = event {
                counter.fetch_add(1, Ordering::Relaxed);
            }
        });
        let index = Index::<u64>::open_with(directory.path(), &options).unwrap();
        let mut work = Work::default();
        while ended.load(Ordering::Relaxed) == 0 {
            index.shared.work_a_little(&mut work).unwrap();
        }
        assert_eq!(index.stats(&()).unwrap().delta_entries, 0);
    }
}
