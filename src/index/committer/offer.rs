//! Offers: batches of the thread that merges, which the next writer commits.
//!
//! Writers hold the writer lock most of the time. A thread that waits for it is often woken when another
//! one has it already, and each time takes a processor from a search. So the thread that merges
//! leaves its batch here and rests. It commits the batch itself if no writer has done so meanwhile.
//!
//! Source: Hendler, Incze, Shavit and Tzafrir, "Flat combining and the synchronization-parallelism
//! tradeoff", SPAA 2010: whoever holds the lock also does the work of those that would wait for it.

use std::mem;
use std::sync::PoisonError;

use crate::error::Result;
use crate::store::Detached;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering};

/// The place for one batch.
#[derive(Debug, Default)]
pub(super) struct Offers {
    /// Whether a batch waits, so that writers need no lock to see that none does.
    waits: AtomicBool,
    offer: Mutex<Offer>,
}

/// What became of the batch.
#[derive(Debug, Default)]
pub(super) enum Offer {
    /// There is none.
    #[default]
    Nothing,
    Waits(Detached),
    Committed(Result<()>),
}

impl Offers {
    /// Leaves a batch. The one before must have been taken back.
    pub(super) fn leave(&self, batch: Detached) {
        let mut offer = self.offer.lock().unwrap_or_else(PoisonError::into_inner);
        debug_assert!(matches!(*offer, Offer::Nothing), "two batches of merges at once");
        *offer = Offer::Waits(batch);
        self.waits.store(true, Ordering::Release);
    }

    /// Commits the batch by `commit`, unless none waits or another thread is at it.
    pub(super) fn serve(&self, commit: impl FnOnce(Detached) -> Result<()>) {
        if !self.waits.load(Ordering::Acquire) {
            return;
        }
        let Ok(mut offer) = self.offer.try_lock() else { return };
        *offer = match mem::take(&mut *offer) {
            Offer::Waits(batch) => {
                self.waits.store(false, Ordering::Relaxed);
                Offer::Committed(commit(batch))
            }
            taken @ (Offer::Nothing | Offer::Committed(_)) => taken,
        };
    }

    /// Takes back the batch, or what became of it. Waits for a thread that commits it.
    pub(super) fn take(&self) -> Offer {
        let mut offer = self.offer.lock().unwrap_or_else(PoisonError::into_inner);
        self.waits.store(false, Ordering::Relaxed);
        mem::take(&mut *offer)
    }
}
