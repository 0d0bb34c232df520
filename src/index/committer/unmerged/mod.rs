//! Unmerged fingerprints: those that were added since the last merge, held in memory.
//!
//! The store has them as delta entries, in the order of the first table only, where a search could
//! not find them without reading all. So every handle looks them up in memory. The store remains
//! authoritative: memory may hold more than a snapshot, but never less, because a batch is added
//! before it commits, and what a merge has taken in leaves only the readers that come after it.
//!
//! A handle that writes reads them when it opens, others before their first search. If they exceed
//! the budget, tables for them are given up, then they are: each search reads all delta entries.
//!
//! Each pass of a merge begins an epoch. At its end the earlier ones are in runs.

mod epoch;
#[cfg(test)]
mod tests;

use std::sync::{Arc, PoisonError};

use rayon::prelude::*;

pub(super) use self::epoch::Epoch;
use self::epoch::Held;
use crate::error::Result;
use crate::exclusion;
use crate::fingerprint::Fingerprint;
use crate::index::read::deltas::Deltas;
use crate::index::read::search::{Found, OfQuery};
use crate::index::read::sorted_sweep::QUADRATIC;
use crate::index::resident::{MERGED, layered};
use crate::kernel;
use crate::plan::Costs;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Number of fingerprints without tables from which tables are built for them.
const FEW: usize = 1 << 12;

/// Fingerprints for which tables are built at once, which takes all threads some milliseconds.
const TOGETHER: usize = 1 << 16;

/// Queries of a batch that one thread looks up.
const OF_A_THREAD: usize = 1 << 8;

/// Who builds tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::index) enum Builder {
    /// Writers, after they have finished a batch.
    Writers,
    /// The thread that merges in the background.
    Background,
    /// The first search, of a handle that does not write.
    Search,
}

/// How much writers are to merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Demand {
    Nothing,
    /// Twice what they add, unless another thread is merging.
    Some,
    /// More, and they wait for their turn: four fifths of the memory are in use, without tables.
    Most,
}

/// The unmerged fingerprints of an index, oldest epoch first.
#[derive(Debug, Clone)]
pub(in crate::index) struct Unmerged<F> {
    epochs: Vec<Arc<Epoch<F>>>,
    limits: Arc<Limits>,
}

/// What all epochs share.
#[derive(Debug)]
struct Limits {
    costs: Costs,
    builder: Builder,
    budget: usize,
    /// Bytes of all epochs that still have readers.
    used: AtomicUsize,
    /// Whether a search met many fingerprints without tables since tables were built.
    asked: AtomicBool,
    /// Whether a thread builds tables.
    building: AtomicBool,
    /// Whether the delta entries of the opened index have not been read.
    unread: AtomicBool,
    /// Held by the thread that reads them.
    reading: Mutex<()>,
}

impl Limits {
    /// Returns the bytes that are left.
    fn room(&self) -> usize {
        self.budget.saturating_sub(self.used.load(Ordering::Relaxed))
    }
}

impl<F: Fingerprint> Unmerged<F> {
    /// Begins with delta entries that have not been read.
    pub(super) fn new(budget: usize, builder: Builder, costs: Costs) -> Self {
        let (used, asked, building, reading) = Default::default();
        let unread = AtomicBool::new(true);
        let limits = Limits { costs, builder, budget, used, asked, building, unread, reading };
        let limits = Arc::new(limits);
        Self { epochs: vec![Arc::new(Epoch::new(None, &limits))], limits }
    }

    /// Reads the delta entries of the opened index, unless that was done.
    ///
    /// `read` returns at most a number of them, and whether these are all. A handle that writes
    /// calls it before its first write.
    pub(in crate::index) fn read_once(
        &self,
        read: impl FnOnce(usize) -> Result<(Deltas<F>, bool)>,
    ) -> Result<()> {
        if !self.limits.unread.load(Ordering::Acquire) {
            return Ok(());
        }
        let _reading = self.limits.reading.lock().unwrap_or_else(PoisonError::into_inner);
        if self.limits.unread.load(Ordering::Acquire) {
            let (deltas, complete) = read(self.most())?;
            if complete {
                self.latest().fill(&deltas);
            }
            self.limits.unread.store(false, Ordering::Release);
            if self.limits.builder == Builder::Search {
                self.build(Builder::Search);
            }
        }
        Ok(())
    }

    /// Returns how many fingerprints the budget holds without tables.
    pub(in crate::index) fn most(&self) -> usize {
        self.limits.budget / F::BYTES
    }

    /// Returns how much writers are to merge.
    ///
    /// Beside a thread that merges, they do so later: once it does not keep up.
    pub(super) fn demand(&self) -> Demand {
        let wants = match self.limits.builder {
            Builder::Writers => self.is_full(),
            Builder::Background => self.fifths() >= 4 || self.lacks(),
            Builder::Search => false,
        };
        let without_tables = self.epochs.iter().map(|epoch| epoch.bytes_without_tables());
        match without_tables.sum::<usize>() / (self.limits.budget / 5).max(1) {
            4.. if wants => Demand::Most,
            _ if wants => Demand::Some,
            _ => Demand::Nothing,
        }
    }

    /// Returns true if half of the memory is in use, or if it lacks some.
    pub(super) fn is_full(&self) -> bool {
        2 * self.present() > self.limits.budget || self.lacks()
    }

    fn lacks(&self) -> bool {
        self.epochs.iter().any(|epoch| epoch.lacks())
    }

    /// Returns how much of the memory is in use, in fifths.
    pub(super) fn fifths(&self) -> u64 {
        (5 * self.present() / self.limits.budget.max(1)) as u64
    }

    /// Returns the memory of the epochs that new readers get, in bytes.
    fn present(&self) -> usize {
        self.epochs.iter().map(|epoch| epoch.bytes()).sum()
    }

    /// Returns the memory in use, in bytes.
    pub(in crate::index) fn bytes(&self) -> usize {
        self.limits.used.load(Ordering::Relaxed)
    }

    /// Returns true if the tables hold no delta entry.
    pub(in crate::index) fn is_merged(&self) -> bool {
        self.epochs.iter().all(|epoch| epoch.is_merged())
    }

    /// Takes what a batch adds, which has not been committed, and whether it removes fingerprints.
    pub(super) fn add(&self, added: &[F], removes: bool) {
        self.latest().add(added, removes);
    }

    fn latest(&self) -> &Arc<Epoch<F>> {
        self.epochs.last().expect("there is always an epoch")
    }

    /// Begins an epoch together with a pass, which takes in all earlier ones.
    ///
    /// No batch may be in flight.
    pub(super) fn begin(&mut self) -> Arc<Epoch<F>> {
        if !self.latest().is_merged() {
            let next = Epoch::new(Some(Held::default()), &self.limits);
            self.epochs.push(Arc::new(next));
        }
        Arc::clone(self.latest())
    }

    /// Drops what came before the epoch of a pass, which has taken it in.
    ///
    /// Returns it, because freeing it takes long.
    #[must_use]
    pub(super) fn end(&mut self, since: &Arc<Epoch<F>>) -> Vec<Arc<Epoch<F>>> {
        let at = self.epochs.iter().position(|one| Arc::ptr_eq(one, since));
        self.epochs.drain(..at.expect("only the end of a pass drops epochs")).collect()
    }

    /// Adds the unmerged fingerprints within the distance, some of which may not be stored.
    ///
    /// Returns false if memory lacks some, so that delta entries must be read.
    pub(in crate::index) fn find(
        &self,
        query: F,
        distance: u32,
        found: &mut Vec<Found<F>>,
    ) -> Result<bool> {
        for epoch in &self.epochs {
            if !epoch.find(query, distance, found)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Finds the unmerged fingerprints near each query, each with the query's number.
    ///
    /// Some may not be stored. Returns `None` if memory lacks some.
    pub(in crate::index) fn find_batch(
        &self,
        queries: &[F],
        distance: u32,
    ) -> Result<Option<Vec<OfQuery<F>>>> {
        let (mut tables, mut bare) = (Vec::new(), Vec::new());
        for epoch in &self.epochs {
            if !epoch.gather(&mut tables, &mut bare) {
                return Ok(None);
            }
        }
        if bare.len() * queries.len() > QUADRATIC {
            tables = layered(tables, std::mem::take(&mut bare), 0, self.limits.costs)?;
        }
        let numbered: Vec<u32> = (0..).take(queries.len()).collect();
        let parts = queries.par_chunks(OF_A_THREAD).zip(numbered.par_chunks(OF_A_THREAD));
        let parts = parts.map(|(queries, numbers)| {
            let mut found = Vec::new();
            for tables in &tables {
                tables.sweep(queries, distance, |hit| {
                    let number = numbers.get(hit.query).expect("a hit names one of the queries");
                    found.push((*number, (hit.distance, hit.fingerprint)));
                })?;
            }
            for (number, query) in numbers.iter().zip(queries) {
                kernel::within(&bare, *query, distance, &mut |at, apart| {
                    found.extend(bare.get(at).map(|near| (*number, (apart, *near))));
                });
            }
            Ok(found)
        });
        let parts: Vec<Vec<_>> = parts.collect::<Result<_>>()?;
        Ok(Some(parts.concat()))
    }

    /// Returns what needs tables for searches, if `builder` is to build them.
    pub(super) fn wanting(&self, builder: Builder) -> Option<Self> {
        let wanted = self.limits.builder == builder && self.limits.asked.load(Ordering::Relaxed);
        wanted.then(|| self.clone())
    }

    /// Builds tables, unless another thread does or this one is within a host's code.
    ///
    /// Call it without locks.
    pub(super) fn build(&self, builder: Builder) {
        let limits = &*self.limits;
        if exclusion::alone() || limits.building.swap(true, Ordering::Acquire) {
            return;
        }
        limits.asked.store(false, Ordering::Relaxed);
        // A writer makes the next batch wait.
        let largest = match builder {
            Builder::Writers => TOGETHER,
            Builder::Background => TOGETHER * MERGED,
            Builder::Search => usize::MAX,
        };
        for epoch in &self.epochs {
            epoch.build(largest);
        }
        limits.building.store(false, Ordering::Release);
    }
}
