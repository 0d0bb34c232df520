//! The committer: the only path by which batches reach the store and become visible.
//!
//! A batch takes a turn and is announced, committed, published and finished, in this order. Each
//! step is a value that only the step before can create, so no caller can skip one.
//!
//! - A batch is announced before it commits. So memory holds no less than the store, and searches of
//!   a snapshot learn what changed.
//! - It is published before it finishes. So a call that waited for it sees it.
//!
//! Turns are short. The holder of the writer lock reads single records; it does not search, wait
//! for an fsync or use other threads (see [`crate::exclusion`]). A deep check is the exception: it
//! reads the log under the lock, because the log must not change meanwhile.

mod flights;
mod folds;
mod gather;
mod journal;
#[cfg(feature = "model")]
pub mod model;
mod named;
mod offer;
mod taken;
mod turn;
mod unmerged;

use std::sync::{Arc, PoisonError};

use self::flights::Flights;
pub(super) use self::flights::hash;
use self::folds::Folds;
pub(super) use self::folds::{LEAST_WORTH, Merged, Stepped};
pub(super) use self::gather::gather;
use self::journal::{Journal, Place};
pub(super) use self::named::Named;
pub(super) use self::turn::{Appended, Ready, Turn};
pub(super) use self::unmerged::{Builder, Unmerged};
use super::core::Core;
use super::resident::Resident;
use crate::error::Result;
use crate::exclusion::{self, Lock};
use crate::fingerprint::Fingerprint;
use crate::index::read::deltas::Deltas;
use crate::index::read::ranges::Ranges;
use crate::index::read::reader::Reader;
use crate::store::{Runs, Store};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{self, RwLock, RwLockWriteGuard};

/// The write side of an index and the state it has published.
#[derive(Debug)]
pub(super) struct Committer<F: Fingerprint> {
    store: Arc<Store>,
    core: Arc<Core>,
    /// Ranges that searches have read.
    ranges: Arc<Ranges<F>>,
    writer: Lock<()>,
    flights: Flights,
    journal: Journal<F>,
    folds: Folds<F>,
    /// Whether a thread is merging resident tables.
    merging: AtomicBool,
    published: RwLock<Published<F>>,
}

/// State of the last write that readers need.
#[derive(Debug)]
struct Published<F: Fingerprint> {
    /// All added fingerprints that may not be in runs.
    unmerged: Unmerged<F>,
    /// The runs for the next reader. `None` if it must see what was merged.
    runs: Option<Arc<Runs>>,
    /// The reader of the current state. `None` after a write.
    reader: Option<Reader<F>>,
    /// The store's turn before that reader was made.
    turn: u64,
    /// All fingerprints in the store, if they are resident.
    resident: Option<Arc<Resident<F>>>,
}

impl<F: Fingerprint> Published<F> {
    fn reader_at(&self, turn: u64) -> Option<&Reader<F>> {
        self.reader.as_ref().filter(|_| self.turn == turn)
    }
}

/// A reader and the place in the journal after which its snapshot may miss changes.
pub(super) struct Watch<'a, F: Fingerprint> {
    pub(super) reader: Reader<F>,
    place: Place<'a, F>,
}

impl<F: Fingerprint> Watch<'_, F> {
    /// Returns the fingerprints that batches changed since the last call, unordered.
    ///
    /// Under the writer lock the result is complete for all announced batches.
    pub(super) fn since(&mut self) -> Vec<Arc<Vec<F>>> {
        self.place.move_on().into_iter().map(|entry| entry.fingerprints).collect()
    }
}

impl<F: Fingerprint> Committer<F> {
    /// Opens the write side. `budget` is the memory of unmerged fingerprints in bytes.
    ///
    /// Unless it only searches, reads the delta entries.
    pub(super) fn open(
        store: Arc<Store>,
        core: Arc<Core>,
        builder: Builder,
        budget: usize,
    ) -> Result<Self> {
        let unmerged = Unmerged::new(budget, builder, core.costs);
        let (mut delta_entries, mut next_run) = (0, 0);
        if builder != Builder::Search {
            next_run = store.next_delta_run()?;
            let tables = core.plan.tables();
            unmerged.read_once(|most| {
                let (deltas, complete) = Deltas::some(&store.snapshot(), tables, most)?;
                delta_entries = deltas.len() as u64;
                Ok((deltas, complete))
            })?;
        }
        let (cache, documents) = (store.cache().cloned(), store.state()?.documents);
        let ranges = Arc::new(Ranges::new(core.plan.tables(), cache, documents));
        Ok(Self {
            store,
            core,
            ranges,
            writer: Lock::default(),
            flights: Flights::default(),
            journal: Journal::default(),
            folds: Folds::new(delta_entries, next_run),
            merging: AtomicBool::new(false),
            published: RwLock::new(Published {
                unmerged,
                runs: None,
                reader: None,
                turn: 0,
                resident: None,
            }),
        })
    }

    /// Returns a reader of the current state, and makes one if there is none.
    pub(super) fn read(&self) -> Result<Reader<F>> {
        let published = self.published.read().unwrap_or_else(PoisonError::into_inner);
        let turn = self.store.turn();
        if let Some(reader) = published.reader_at(turn) {
            return Ok(reader.clone());
        }
        drop(published);
        let mut published = self.published();
        // Read the turn before making the snapshot, which then holds no less.
        let turn = self.store.turn();
        if let Some(reader) = published.reader_at(turn) {
            return Ok(reader.clone());
        }
        sync::pause();
        let moment = self.ranges.moment();
        let snapshot = self.store.snapshot();
        let (core, ranges) = (Arc::clone(&self.core), Arc::clone(&self.ranges));
        let resident = published.resident.clone();
        let old = published.runs.take_if(|runs| runs.are_old());
        let (unmerged, runs) = (published.unmerged.clone(), published.runs.clone());
        let reader = Reader::new(core, snapshot, unmerged, resident, runs, (ranges, moment))?;
        published.runs = Some(Arc::clone(reader.runs()));
        published.reader = Some(reader.clone());
        published.turn = turn;
        // Close cursors without the lock, so that no other thread waits for it.
        drop(published);
        drop(old);
        Ok(reader)
    }

    /// Returns a reader, and records changes from now on.
    pub(super) fn watch(&self) -> Result<Watch<'_, F>> {
        // Batches that are finished by now were published before, so the reader has them.
        let place = self.journal.place();
        Ok(Watch { reader: self.read()?, place })
    }

    /// Records which documents batches name from now on.
    pub(super) fn named(&self) -> Named<'_, F> {
        Named::since(self.journal.place())
    }

    /// Waits for the turn to write. Other batches may still be in flight.
    pub(super) fn turn(&self) -> Turn<'_, F> {
        Turn::begin(self)
    }

    /// Waits for the turn to write, with no batch in flight.
    pub(super) fn turn_alone(&self) -> Turn<'_, F> {
        let turn = self.turn();
        turn.wait_for_all();
        turn
    }

    /// Says that a batch will change packs of postings, from a fingerprint to another one each.
    ///
    /// Call before it can be committed, and then [`Committer::end_repacked`].
    pub(super) fn begin_repacked(&self, ranges: impl Iterator<Item = (u128, u128)>) {
        self.ranges.begin_repacked(ranges);
    }

    /// Says that the batch is committed, or that it never will be.
    pub(super) fn end_repacked(&self) {
        self.ranges.end_repacked();
    }

    /// Returns the number of delta entries, roughly.
    pub(super) fn unmerged(&self) -> u64 {
        self.folds.unmerged()
    }

    /// Returns the memory of unmerged fingerprints, in bytes.
    pub(super) fn unmerged_bytes(&self) -> usize {
        self.look(|published| published.unmerged.bytes())
    }

    /// Returns the memory of ranges that searches have read, in bytes.
    pub(super) fn range_bytes(&self) -> u64 {
        self.ranges.bytes()
    }

    /// Returns whether memory asks for a merge, and how much of it is in use, in fifths.
    pub(super) fn memory_pressure(&self) -> (bool, u64) {
        self.look(|Published { unmerged, .. }| (unmerged.is_full(), unmerged.fifths()))
    }

    /// Builds tables for unmerged fingerprints if searches need them and `builder` is to do it.
    pub(super) fn build_unmerged(&self, builder: Builder) {
        if let Some(unmerged) = self.look(|published| published.unmerged.wanting(builder)) {
            unmerged.build(builder);
        }
    }

    /// Builds tables that searches need for dirty resident and for unmerged fingerprints.
    pub(super) fn build_wanted(&self) {
        let (resident, unmerged) = self.look(|Published { resident, unmerged, .. }| {
            let resident = resident.clone().filter(|resident| resident.wants_merging());
            (resident, unmerged.wanting(Builder::Writers))
        });
        if let Some(resident) = resident {
            self.merge_resident(&resident);
        }
        if let Some(unmerged) = unmerged {
            unmerged.build(Builder::Writers);
        }
    }

    /// Withdraws the published reader, so that the next search makes a new one.
    ///
    /// That one may read the same runs: what was added since is in memory, and searches drop what
    /// was removed.
    pub(super) fn withdraw(&self) {
        let withdrawn = self.published().reader.take();
        // Close the cursors without the lock, so that no other thread waits for it.
        drop(withdrawn);
    }

    /// Withdraws the published reader and its runs, which keep files and what was merged since.
    pub(super) fn withdraw_runs(&self) {
        let withdrawn = {
            let mut published = self.published();
            (published.reader.take(), published.runs.take())
        };
        drop(withdrawn);
    }

    pub(super) fn resident(&self) -> Option<Arc<Resident<F>>> {
        self.look(|published| published.resident.clone())
    }

    /// Publishes resident fingerprints. With `None`, searches read the store.
    ///
    /// `watch` must be older than the snapshot that was loaded. Changes since then are added.
    pub(super) fn install(&self, mut watch: Watch<'_, F>, resident: Option<Resident<F>>) {
        let turn = self.turn();
        let since = watch.since();
        let resident = resident
            .and_then(|resident| since.iter().try_fold(resident, |held, new| held.mark_dirty(new)));
        self.published().resident = resident.map(Arc::new);
        self.withdraw();
        drop(turn);
        self.build_wanted();
    }

    /// Builds tables for dirty resident fingerprints, beside writes and searches.
    ///
    /// Does nothing within a host's code or while another thread does it.
    fn merge_resident(&self, before: &Resident<F>) {
        if exclusion::alone() || self.merging.swap(true, Ordering::Acquire) {
            return;
        }
        let merged = before.merged();
        let mut published = self.published();
        let present = published.resident.clone().filter(|present| present.continues(before));
        if let Some(present) = present {
            // If memory for the tables is missing, searches read the store.
            let next = merged.ok().and_then(|merged| present.with_merged(before, merged));
            published.resident = next.map(Arc::new);
        }
        drop(published);
        self.withdraw();
        self.merging.store(false, Ordering::Release);
    }

    fn look<R>(&self, at: impl FnOnce(&Published<F>) -> R) -> R {
        at(&self.published.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn published(&self) -> RwLockWriteGuard<'_, Published<F>> {
        self.published.write().unwrap_or_else(PoisonError::into_inner)
    }
}
