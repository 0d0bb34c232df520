//! The committer: the one way by which batches reach the store and readers see them.
//!
//! A batch takes a turn, is announced, committed, published and lands, in this order. Each step is
//! a value that only the step before it makes, so no caller can leave one out. Announced before
//! it commits, so that no reader takes tables for free of singles, that memory holds no less than
//! the store, and that whoever searched a snapshot learns what came since. Published before it
//! lands, so that whoever waits for it to land sees it.
//!
//! Turns are short: a holder of the writer lock looks up single records, and neither searches nor
//! waits for an fsync nor shares out work (see [`crate::exclusion`]). A deep check is the
//! exception: it reads the log under the lock, which nobody may change meanwhile.

mod flights;
mod folds;
mod journal;
#[cfg(test)]
#[cfg(feature = "model")]
mod model;
mod turn;

use std::sync::{Arc, PoisonError};

use self::flights::Flights;
pub(super) use self::flights::hash;
use self::folds::Folds;
pub(super) use self::folds::{Merged, Stepped};
use self::journal::{Journal, Place};
pub(super) use self::turn::{Appended, Ready, Turn};
use super::core::Core;
use super::reader::Reader;
use super::resident::Resident;
use crate::error::Result;
use crate::exclusion::{self, Lock};
use crate::fingerprint::Fingerprint;
use crate::store::Store;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{self, RwLock, RwLockWriteGuard};

/// The write side of one index and what it has published.
#[derive(Debug)]
pub(super) struct Committer<F: Fingerprint> {
    store: Arc<Store>,
    core: Arc<Core>,
    writer: Lock<()>,
    flights: Flights,
    journal: Journal<F>,
    folds: Folds<F>,
    /// Whether a thread merges what was added to the memory.
    merging: AtomicBool,
    published: RwLock<Published<F>>,
}

/// What readers need to know of the last write.
#[derive(Debug)]
struct Published<F: Fingerprint> {
    /// False only when no table holds a single entry.
    singles: bool,
    /// The reader of the present state, unless a write came after it.
    reader: Option<Reader<F>>,
    /// The store's turn before that reader was made.
    turn: u64,
    /// Every fingerprint that the store holds, if they are kept in memory.
    resident: Option<Arc<Resident<F>>>,
}

impl<F: Fingerprint> Published<F> {
    fn reader_at(&self, turn: u64) -> Option<&Reader<F>> {
        self.reader.as_ref().filter(|_| self.turn == turn)
    }
}

/// A reader, and the place in the journal behind which its snapshot may miss changes.
pub(super) struct Watch<'a, F: Fingerprint> {
    pub(super) reader: Reader<F>,
    place: Place<'a, F>,
}

impl<F: Fingerprint> Watch<'_, F> {
    /// Returns the fingerprints that batches changed since the last call, in no order.
    ///
    /// Under the writer lock it leaves out none of a batch that was announced.
    pub(super) fn since(&mut self) -> Vec<Arc<Vec<F>>> {
        self.place.move_on()
    }
}

impl<F: Fingerprint> Committer<F> {
    /// `singles` may be true without need, but false only when every entry is in a run.
    pub(super) fn new(store: Arc<Store>, core: Arc<Core>, singles: bool) -> Self {
        Self {
            store,
            core,
            writer: Lock::default(),
            flights: Flights::default(),
            journal: Journal::default(),
            folds: Folds::new(singles),
            merging: AtomicBool::new(false),
            published: RwLock::new(Published { singles, reader: None, turn: 0, resident: None }),
        }
    }

    /// Freezes the present state, or shares what is frozen of it.
    pub(super) fn read(&self) -> Result<Reader<F>> {
        let published = self.published.read().unwrap_or_else(PoisonError::into_inner);
        let turn = self.store.turn();
        if let Some(reader) = published.reader_at(turn) {
            return Ok(reader.clone());
        }
        drop(published);
        let mut published = self.published();
        // Read before the snapshot is made, which then holds no less.
        let turn = self.store.turn();
        if let Some(reader) = published.reader_at(turn) {
            return Ok(reader.clone());
        }
        sync::pause();
        let snapshot = self.store.snapshot();
        let (core, resident) = (Arc::clone(&self.core), published.resident.clone());
        let reader = Reader::new(core, snapshot, published.singles, resident)?;
        published.reader = Some(reader.clone());
        published.turn = turn;
        Ok(reader)
    }

    /// Reads, and learns from then on what changes.
    pub(super) fn watch(&self) -> Result<Watch<'_, F>> {
        // What has landed by now was published before, so the reader has it.
        let place = self.journal.place();
        Ok(Watch { reader: self.read()?, place })
    }

    /// Waits for the turn to write, beside batches that are on their way.
    pub(super) fn turn(&self) -> Turn<'_, F> {
        Turn::begin(self)
    }

    /// Waits for the turn to write, with nothing on its way.
    pub(super) fn turn_alone(&self) -> Turn<'_, F> {
        let turn = self.turn();
        turn.wait_for_all();
        turn
    }

    /// Returns how many fingerprints came since the last whole fold, roughly.
    ///
    /// `None` if there were some when the index was opened.
    pub(super) fn unfolded(&self) -> Option<u64> {
        self.folds.unfolded()
    }

    /// Lets the next search make a new reader, and drops the cursors of the old one.
    pub(super) fn withdraw(&self) {
        let withdrawn = self.published().reader.take();
        // Closing cursors is no work for others to wait for.
        drop(withdrawn);
    }

    pub(super) fn resident(&self) -> Option<Arc<Resident<F>>> {
        self.published.read().unwrap_or_else(PoisonError::into_inner).resident.clone()
    }

    /// Searches by these fingerprints from now on; `None` goes by the store.
    ///
    /// `watch` is from before they were read. What was announced since then is added.
    pub(super) fn install(&self, mut watch: Watch<'_, F>, resident: Option<Resident<F>>) {
        let turn = self.turn();
        let since = watch.since();
        let resident = resident
            .and_then(|resident| since.iter().try_fold(resident, |held, new| held.mark_dirty(new)));
        self.published().resident = resident.map(Arc::new);
        self.withdraw();
        drop(turn);
        self.merge_resident();
    }

    /// Builds tables of what was added to the memory, beside writes and searches.
    ///
    /// Does nothing below a host's code, and while another thread is about it.
    pub(super) fn merge_resident(&self) {
        let Some(before) = self.resident().filter(|resident| resident.wants_merging()) else {
            return;
        };
        if exclusion::alone() || self.merging.swap(true, Ordering::Acquire) {
            return;
        }
        let merged = before.merged();
        let mut published = self.published();
        let present = published.resident.clone().filter(|present| present.continues(&before));
        if let Some(present) = present {
            // Without memory for the tables searches go by the store.
            let next = merged.ok().and_then(|merged| present.with_merged(&before, merged));
            published.resident = next.map(Arc::new);
        }
        drop(published);
        self.withdraw();
        self.merging.store(false, Ordering::Release);
    }

    fn published(&self) -> RwLockWriteGuard<'_, Published<F>> {
        self.published.write().unwrap_or_else(PoisonError::into_inner)
    }
}
