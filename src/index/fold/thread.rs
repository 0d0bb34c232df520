//! The thread that folds while an index is open.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::error::{Error, Fault, Result};
use crate::fingerprint::Fingerprint;
use crate::index::Shared;
use crate::index::health::Event;

/// How often the thread looks for work.
const IDLE: Duration = Duration::from_millis(200);

/// Inserts that make the thread begin, at least.
const FOLD_AFTER: u64 = 1 << 16;

/// Share of the documents that has to be new, one in so many.
///
/// A pass writes all runs that any single belongs to, and a run has 128 members: the more singles
/// come together, the fewer bytes are written for each.
const FOLD_SHARE: u64 = 32;

/// Rest after a step, as a multiple of its time: searches and writes have the processors then.
const REST: u32 = 3;

/// Rest after a step that failed for want of space, say; doubled up to [`LONGEST_REST`].
const FIRST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_mins(1);

/// What the background fold of a handle is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Folding {
    /// The handle has none: [`OpenOptions::background_fold`](crate::OpenOptions::background_fold).
    Off,
    /// It waits for more inserts.
    Idle,
    /// It is at work.
    Working,
    /// It failed by the fault of the environment, and tries again.
    Retrying {
        /// What failed last.
        error: String,
        /// Failures since the last success.
        failures: u32,
    },
    /// It met damage and stopped; searches and writes go on as far as they can.
    Stopped {
        /// What it met.
        error: String,
    },
}

/// The thread, which ends when this is dropped.
#[derive(Debug)]
pub(in crate::index) struct Folder {
    desk: Arc<Desk>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread and its handle share.
#[derive(Debug)]
struct Desk {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Debug)]
struct State {
    stop: bool,
    folding: Folding,
}

impl Folder {
    pub(in crate::index) fn spawn<F: Fingerprint>(shared: &Arc<Shared<F>>) -> Result<Self> {
        let state = Mutex::new(State { stop: false, folding: Folding::Idle });
        let desk = Arc::new(Desk { state, wake: Condvar::new() });
        let (mine, weak) = (Arc::clone(&desk), Arc::downgrade(shared));
        let thread = std::thread::Builder::new()
            .name("hamdex-fold".to_owned())
            .spawn(move || fold_until(&mine, &weak))
            .map_err(|e| Error::io(shared.store.path(), e))?;
        Ok(Self { desk, thread: Some(thread) })
    }

    /// Returns what the thread is doing.
    pub(in crate::index) fn folding(&self) -> Folding {
        self.desk.state().folding.clone()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.desk.state().stop = true;
        self.desk.wake.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was reported where it happened; nothing is left to undo.
            let _ = thread.join();
        }
    }
}

impl Desk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows what the thread is doing and rests; false once it is to stop.
    fn rest(&self, folding: Folding, time: Duration) -> bool {
        let mut state = self.state();
        state.folding = folding;
        let waited = self.wake.wait_timeout_while(state, time, |state| !state.stop);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !state.stop
    }
}

/// A pass that the thread is about.
struct Work {
    began: Instant,
    folded: u64,
}

/// Folds whenever there is enough, until told to stop or the index is gone.
fn fold_until<F: Fingerprint>(desk: &Desk, shared: &Weak<Shared<F>>) {
    let mut pass = None;
    let mut failures = 0_u32;
    loop {
        let Some(shared) = shared.upgrade() else { return };
        let begun = Instant::now();
        let outcome = shared.fold_a_little(&mut pass);
        if let Err(error) = &outcome {
            shared.core.events.tell(&Event::FoldFailed { error });
        }
        drop(shared);
        let (folding, time) = match outcome {
            Ok(()) => {
                failures = 0;
                match pass {
                    Some(_) => (Folding::Working, begun.elapsed() * REST),
                    None => (Folding::Idle, IDLE),
                }
            }
            Err(error) if error.fault() == Fault::Environment => {
                let time = (FIRST_REST * 2_u32.pow(failures.min(6))).min(LONGEST_REST);
                failures += 1;
                (Folding::Retrying { error: error.to_string(), failures }, time)
            }
            Err(error) => {
                desk.state().folding = Folding::Stopped { error: error.to_string() };
                return;
            }
        };
        if !desk.rest(folding, time) {
            return;
        }
    }
}

impl<F: Fingerprint> Shared<F> {
    /// Takes a step of the pass at work, or begins one when it is due.
    fn fold_a_little(&self, pass: &mut Option<Work>) -> Result<()> {
        let events = &self.core.events;
        if pass.is_none() {
            if !self.is_due()? {
                return Ok(());
            }
            self.committer.begin_fold();
            events.tell(&Event::FoldBegan);
        }
        let work = pass.get_or_insert_with(|| Work { began: Instant::now(), folded: 0 });
        let step = self.fold_step()?;
        work.folded += step.folded;
        if step.ends_pass {
            self.clear_singles()?;
            events.tell(&Event::FoldEnded { folded: work.folded, took: work.began.elapsed() });
            *pass = None;
        }
        Ok(())
    }

    fn is_due(&self) -> Result<bool> {
        let Some(unfolded) = self.committer.unfolded() else { return Ok(true) };
        Ok(unfolded >= FOLD_AFTER && unfolded >= self.store.state()?.documents / FOLD_SHARE)
    }
}
