//! Epochs: what was added from one pass until the next, with tables for most of it.

use std::sync::{Arc, PoisonError};

use super::{FEW, Limits};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::index::read::deltas::Deltas;
use crate::index::read::search::Found;
use crate::index::resident::layered;
use crate::kernel;
use crate::resident::ResidentTables;
use crate::sync::RwLock;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// Most memory that tables take, as a multiple of that of their fingerprints.
const SHARE_OF_TABLES: usize = 4;

/// What was added since one pass began, until the next one.
#[derive(Debug)]
pub(in crate::index) struct Epoch<F> {
    /// `None` if they are too many or unknown, so that delta entries must be read.
    pub(super) held: RwLock<Option<Held<F>>>,
    bytes: AtomicUsize,
    limits: Arc<Limits>,
}

#[derive(Debug)]
pub(super) struct Held<F> {
    /// Larger ones first.
    pub(super) tables: Vec<Arc<ResidentTables<F>>>,
    /// The latest fingerprints, without tables.
    bare: Vec<F>,
    /// Whether batches removed fingerprints, which runs still have.
    removes: bool,
}

impl<F> Default for Held<F> {
    fn default() -> Self {
        Self { tables: Vec::new(), bare: Vec::new(), removes: false }
    }
}

impl<F: Fingerprint> Held<F> {
    fn len(&self) -> usize {
        self.tables.iter().map(|tables| tables.len()).sum::<usize>() + self.bare.len()
    }

    fn bytes(&self) -> usize {
        let tables: usize = self.tables.iter().map(|tables| tables.bytes()).sum();
        tables + self.bare.len() * F::BYTES
    }
}

impl<F: Fingerprint> Epoch<F> {
    pub(super) fn new(held: Option<Held<F>>, limits: &Arc<Limits>) -> Self {
        let limits = Arc::clone(limits);
        Self { held: RwLock::new(held), bytes: AtomicUsize::default(), limits }
    }

    pub(super) fn is_merged(&self) -> bool {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        let nothing =
            |held: &Held<F>| held.tables.is_empty() && held.bare.is_empty() && !held.removes;
        held.as_ref().is_some_and(nothing)
    }

    pub(super) fn lacks(&self) -> bool {
        self.held.read().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Takes the delta entries of the opened index.
    pub(super) fn fill(&self, deltas: &Deltas<F>) {
        *self.held.write().unwrap_or_else(PoisonError::into_inner) = Some(Held::default());
        let added: Vec<F> = deltas.added().collect();
        self.add(&added, deltas.removes());
    }

    /// Takes what a batch adds, and whether it removes fingerprints.
    pub(super) fn add(&self, added: &[F], removes: bool) {
        self.change(|held| {
            held.bare.extend_from_slice(added);
            held.removes |= removes;
            true
        });
    }

    /// Returns the memory in use, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns the memory that would be in use without tables, in bytes.
    pub(super) fn bytes_without_tables(&self) -> usize {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        held.as_ref().map_or(0, |held| held.len() * F::BYTES)
    }

    /// Changes what is held, and drops it if `change` returns false or the budget is exceeded.
    ///
    /// Gives up tables first, which take three times as much as the fingerprints.
    fn change(&self, change: impl FnOnce(&mut Held<F>) -> bool) {
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        let Some(present) = &mut *held else { return };
        let mut kept = change(present);
        if kept && !self.account(present.bytes()) {
            let tables = std::mem::take(&mut present.tables);
            present.bare.extend(tables.iter().flat_map(|tables| tables.members()));
            kept = self.account(present.bytes());
        }
        if !kept {
            *held = None;
            self.account(0);
        }
    }

    /// Returns true if all epochs are within the budget.
    fn account(&self, bytes: usize) -> bool {
        let before = self.bytes.swap(bytes, Ordering::Relaxed);
        // In one operation, or another epoch might find both the old and the new bytes in use.
        let change = bytes.wrapping_sub(before);
        let used = self.limits.used.fetch_add(change, Ordering::Relaxed).wrapping_add(change);
        used <= self.limits.budget
    }

    pub(super) fn find(&self, query: F, distance: u32, found: &mut Vec<Found<F>>) -> Result<bool> {
        let tables = {
            let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
            let Some(held) = &*held else { return Ok(false) };
            self.ask(held);
            kernel::within(&held.bare, query, distance, &mut |at, apart| {
                found.extend(held.bare.get(at).map(|near| (apart, *near)));
            });
            held.tables.clone()
        };
        for tables in &tables {
            tables.sweep(&[query], distance, |hit| found.push((hit.distance, hit.fingerprint)))?;
        }
        Ok(true)
    }

    /// Adds the tables and the fingerprints without them, for a batch of queries.
    ///
    /// Returns false if memory lacks some.
    pub(super) fn gather(
        &self,
        tables: &mut Vec<Arc<ResidentTables<F>>>,
        bare: &mut Vec<F>,
    ) -> bool {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        let Some(held) = &*held else { return false };
        self.ask(held);
        tables.extend(held.tables.iter().cloned());
        bare.extend_from_slice(&held.bare);
        true
    }

    /// Asks for tables if a search meets many fingerprints without them.
    fn ask(&self, held: &Held<F>) {
        if held.bare.len() >= FEW {
            self.limits.asked.store(true, Ordering::Relaxed);
        }
    }

    /// Builds tables for fingerprints without them, and merges them up to `largest` together.
    ///
    /// Only one thread may build.
    pub(super) fn build(&self, largest: usize) {
        let (tables, some) = {
            let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
            let Some(held) = held.as_ref().filter(|held| held.bare.len() >= FEW) else { return };
            let room = self.limits.room() / (F::BYTES * SHARE_OF_TABLES);
            let some = held.bare.len().min(largest).min(room);
            if some < FEW {
                return;
            }
            (held.tables.clone(), held.bare.iter().take(some).copied().collect::<Vec<F>>())
        };
        let built = some.len();
        let tables = layered(tables, some, largest, self.limits.costs);
        self.change(|held| {
            // If memory for the tables is missing, searches read delta entries.
            let Ok(tables) = tables else { return false };
            // The last ones take the places of the first, because writers wait for this.
            let kept = held.bare.len() - built;
            held.bare.copy_within(kept.max(built).., 0);
            held.bare.truncate(kept);
            held.tables = tables;
            true
        });
    }
}

impl<F> Drop for Epoch<F> {
    fn drop(&mut self) {
        self.limits.used.fetch_sub(self.bytes.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}
