//! Unmerged fingerprints: those that were added since the last merge, held in memory.
//!
//! Their delta entries lie in the memory tables and the newest files of every table, so reading
//! them takes one seek in each of these for each range of a search. One look-up in memory replaces
//! all of that. The store remains authoritative: memory may hold more than a snapshot, but never
//! less, because a batch is added before it commits, and what a merge has taken in leaves only the
//! readers that come after the merge.
//!
//! Each pass of a merge begins an epoch. At its end the earlier ones are in runs.

use std::sync::{Arc, PoisonError};

use crate::error::Result;
use crate::exclusion;
use crate::fingerprint::Fingerprint;
use crate::index::resident::{MERGED, layered};
use crate::index::search::Found;
use crate::kernel;
use crate::plan::Costs;
use crate::resident::ResidentTables;
use crate::sync::RwLock;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Number of fingerprints without tables from which tables are built for them.
const FEW: usize = 1 << 12;

/// Up to this many fingerprints without tables are compared one by one.
const ONE_BY_ONE: usize = 1 << 14;

/// Fingerprints for which tables are built at once, which takes all threads some milliseconds.
const TOGETHER: usize = 1 << 16;

/// Who builds tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::index) enum Builder {
    /// Writers, after they have finished a batch.
    Writers,
    /// The thread that merges in the background.
    Background,
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
}

/// What was added since one pass began, until the next one.
#[derive(Debug)]
pub(in crate::index) struct Epoch<F> {
    /// `None` if they are too many or unknown, so that delta entries must be read.
    held: RwLock<Option<Held<F>>>,
    /// Whether a batch has removed fingerprints, which are still members of runs.
    removes: AtomicBool,
    bytes: AtomicUsize,
    limits: Arc<Limits>,
}

#[derive(Debug)]
struct Held<F> {
    /// Larger ones first.
    tables: Vec<Arc<ResidentTables<F>>>,
    /// The latest fingerprints, without tables.
    bare: Vec<F>,
}

impl<F: Fingerprint> Unmerged<F> {
    /// `delta_entries` is true if the opened index may hold delta entries, which are unknown.
    pub(in crate::index) fn new(
        delta_entries: bool,
        budget: usize,
        builder: Builder,
        costs: Costs,
    ) -> Self {
        let (used, asked, building) = Default::default();
        let limits = Arc::new(Limits { costs, builder, budget, used, asked, building });
        let held = (!delta_entries).then(Held::default);
        let epochs = vec![Arc::new(Epoch::new(held, &limits))];
        Self { epochs, limits }
    }

    /// Returns true if no table holds the delta entry of an added fingerprint.
    pub(in crate::index) fn is_empty(&self) -> bool {
        self.epochs.iter().all(|epoch| epoch.is_empty())
    }

    /// Returns the memory in use, in bytes.
    pub(in crate::index) fn bytes(&self) -> usize {
        self.limits.used.load(Ordering::Relaxed)
    }

    /// Returns true if the tables hold no delta entry.
    pub(in crate::index) fn is_merged(&self) -> bool {
        self.epochs.iter().all(|epoch| epoch.is_merged())
    }

    /// Adds the fingerprints of a batch that has not been committed.
    ///
    /// `removes` is true if it also removes some.
    pub(super) fn add(&self, fingerprints: &[F], removes: bool) {
        let latest = self.latest();
        if removes {
            latest.removes.store(true, Ordering::Release);
        }
        latest.add(fingerprints);
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

    /// Replaces what came before the epoch of a pass by what the pass has left.
    ///
    /// That is `left`, and removals if `removes` is true. Returns what was replaced, which takes
    /// long to drop.
    #[must_use]
    pub(super) fn end(
        &mut self,
        since: &Arc<Epoch<F>>,
        mut left: Vec<F>,
        removes: bool,
    ) -> Vec<Arc<Epoch<F>>> {
        let at = self.epochs.iter().position(|one| Arc::ptr_eq(one, since));
        let ended = self.epochs.drain(..at.expect("only the end of a pass drops epochs")).collect();
        if removes || !left.is_empty() {
            left.sort_unstable();
            left.dedup();
            let kept = Epoch::new(Some(Held::default()), &self.limits);
            kept.removes.store(removes, Ordering::Release);
            kept.add(&left);
            self.epochs.insert(0, Arc::new(kept));
        }
        ended
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

    /// Returns true if memory has them all, so that a search need not read delta entries.
    pub(in crate::index) fn suffice(&self) -> bool {
        self.epochs.iter().all(|epoch| epoch.suffices())
    }

    /// Returns true if searches need tables, and `builder` is to build them.
    pub(super) fn want_tables(&self, builder: Builder) -> bool {
        self.limits.builder == builder && self.limits.asked.load(Ordering::Relaxed)
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
        };
        for epoch in &self.epochs {
            epoch.build(largest);
        }
        limits.building.store(false, Ordering::Release);
    }
}

impl<F> Default for Held<F> {
    fn default() -> Self {
        Self { tables: Vec::new(), bare: Vec::new() }
    }
}

impl<F: Fingerprint> Held<F> {
    fn bytes(&self) -> usize {
        let tables: usize = self.tables.iter().map(|tables| tables.bytes()).sum();
        tables + self.bare.len() * F::BYTES
    }

    /// Returns true if a search can compare those without tables.
    fn suffices(&self) -> bool {
        self.bare.len() <= ONE_BY_ONE
    }
}

impl<F: Fingerprint> Epoch<F> {
    fn new(held: Option<Held<F>>, limits: &Arc<Limits>) -> Self {
        let limits = Arc::clone(limits);
        let (removes, bytes) = Default::default();
        Self { held: RwLock::new(held), removes, bytes, limits }
    }

    fn is_empty(&self) -> bool {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        held.as_ref().is_some_and(|held| held.tables.is_empty() && held.bare.is_empty())
    }

    fn is_merged(&self) -> bool {
        !self.removes.load(Ordering::Acquire) && self.is_empty()
    }

    fn suffices(&self) -> bool {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        held.as_ref().is_some_and(Held::suffices)
    }

    fn add(&self, fingerprints: &[F]) {
        self.change(|held| {
            held.bare.extend_from_slice(fingerprints);
            true
        });
    }

    /// Changes what is held, and drops it if it exceeds the budget or `change` returns false.
    fn change(&self, change: impl FnOnce(&mut Held<F>) -> bool) {
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        let Some(present) = &mut *held else { return };
        let kept = change(present) && self.account(present.bytes());
        if !kept {
            *held = None;
            self.account(0);
        }
    }

    /// Returns true if all epochs are within the budget.
    fn account(&self, bytes: usize) -> bool {
        let (before, used) = (self.bytes.swap(bytes, Ordering::Relaxed), &self.limits.used);
        let with = used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        used.fetch_sub(before, Ordering::Relaxed);
        with - before <= self.limits.budget
    }

    fn find(&self, query: F, distance: u32, found: &mut Vec<Found<F>>) -> Result<bool> {
        let tables = {
            let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
            let Some(held) = &*held else { return Ok(false) };
            if held.bare.len() >= FEW {
                self.limits.asked.store(true, Ordering::Relaxed);
            }
            if !held.suffices() {
                return Ok(false);
            }
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

    /// Builds tables for fingerprints without them, and merges them up to `largest` together.
    ///
    /// Only one thread may build.
    fn build(&self, largest: usize) {
        let (tables, some) = {
            let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
            let Some(held) = held.as_ref().filter(|held| held.bare.len() >= FEW) else { return };
            let some = held.bare.len().min(TOGETHER);
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::index::{Durability, Index, IndexOptions};
    use crate::{Query, SearchPath};

    /// An index and a map of what it should hold.
    struct Pair {
        directory: tempfile::TempDir,
        index: Index<u64>,
        model: BTreeMap<u64, u64>,
        rng: fastrand::Rng,
    }

    impl Pair {
        fn new(seed: u64) -> Self {
            let directory = tempfile::tempdir().unwrap();
            let options = IndexOptions::new().memory(16 << 20);
            let index = Index::create(directory.path(), &options).unwrap();
            let rng = fastrand::Rng::with_seed(seed);
            Self { directory, index, model: BTreeMap::new(), rng }
        }

        /// Inserts documents, of which some replace others and some share a fingerprint.
        fn insert(&mut self, count: u64) {
            let documents: BTreeMap<u64, u64> = (0..count)
                .map(|_| (self.rng.u64(..1 << 20), self.rng.u64(..1 << 18) << 40))
                .collect();
            let keyed: Vec<_> = documents.iter().map(|(key, f)| (key.to_be_bytes(), *f)).collect();
            self.index.insert_batch(&keyed, Durability::Buffered).unwrap();
            self.model.extend(documents);
        }

        fn remove(&mut self, one_in: usize) {
            let gone: Vec<u64> = self.model.keys().copied().step_by(one_in).collect();
            let keys: Vec<_> = gone.iter().map(|key| key.to_be_bytes()).collect();
            self.index.remove_batch(&keys, Durability::Buffered).unwrap();
            self.model.retain(|key, _| gone.binary_search(key).is_err());
        }

        /// Compares answers with the map, and returns whether memory had all that is unmerged.
        fn judge(&mut self) -> bool {
            let reader = self.index.reader().unwrap();
            let mut in_memory = true;
            for at in 0..20 {
                let stored = self.rng.choice(self.model.values()).copied().unwrap_or(0);
                let asked = stored ^ 1 << self.rng.u32(..64);
                for distance in [0, 2] {
                    let near = self.model.iter().filter(|(_, f)| f.distance(asked) <= distance);
                    let mut wanted: Vec<u64> = near.map(|(key, _)| *key).collect();
                    wanted.sort_unstable();
                    let query = Query::new(asked).distance(distance);
                    for path in [SearchPath::Tables, SearchPath::Scan] {
                        let found = reader.search(query.clone().path(path)).unwrap();
                        let mut found: Vec<u64> = found
                            .iter()
                            .map(|found| u64::from_be_bytes(found.key[..].try_into().unwrap()))
                            .collect();
                        found.sort_unstable();
                        assert_eq!(found, wanted, "query {at}, {path:?}");
                    }
                }
                let published = self.index.shared.committer.published();
                in_memory &= published.unmerged.find(asked, 2, &mut Vec::new()).unwrap();
            }
            in_memory
        }

        fn bytes(&self) -> usize {
            self.index.shared.committer.unmerged_bytes()
        }
    }

    #[test]
    fn searches_find_what_is_unmerged_in_memory_at_every_step_of_a_pass() {
        for seed in 1..4 {
            let mut pair = Pair::new(seed);
            assert!(pair.judge());
            for _ in 0..3 {
                pair.insert(9000);
                assert!(pair.judge(), "seed {seed}");
                pair.remove(5);
                let mut more = true;
                while more {
                    pair.insert(200);
                    pair.remove(800);
                    more = pair.index.merge_step().unwrap() && pair.rng.u32(..12) > 0;
                    assert!(pair.judge(), "seed {seed}");
                }
            }
            pair.index.merge(&()).unwrap();
            assert!(pair.judge() && pair.bytes() == 0, "seed {seed}");
        }
    }

    #[test]
    fn what_exceeds_the_budget_is_read_from_tables_until_a_merge() {
        let mut pair = Pair::new(7);
        // An eighth of 16 MiB holds 262,144 fingerprints without tables.
        for _ in 0..6 {
            pair.insert(50_000);
        }
        assert!(!pair.judge());
        assert_eq!(pair.bytes(), 0);
        pair.insert(1000);
        assert!(!pair.judge());
        pair.index.merge(&()).unwrap();
        assert!(pair.judge());
        pair.insert(1000);
        assert!(pair.judge());
    }

    #[test]
    fn writers_build_tables_once_searches_meet_many_without() {
        let mut pair = Pair::new(9);
        pair.insert(ONE_BY_ONE as u64 + 5000);
        assert!(!pair.judge(), "they are too many to compare one by one");
        pair.insert(1);
        assert!(pair.judge());
        let (bytes, fingerprints) = (pair.bytes(), pair.model.len());
        assert!(bytes > 20 * fingerprints, "{bytes} bytes for {fingerprints}");
        assert_eq!(pair.index.memory_usage().unwrap().unmerged, bytes as u64);
        for _ in 0..6 {
            pair.insert(FEW as u64);
            assert!(pair.judge());
        }
        let published = pair.index.shared.committer.published();
        let held = published.unmerged.latest().held.read().unwrap();
        let layers = held.as_ref().unwrap().tables.len();
        assert!(layers <= 8, "{layers} layers");
    }

    #[test]
    fn a_reader_from_before_a_merge_finds_what_it_found_before() {
        let mut pair = Pair::new(11);
        pair.insert(3000);
        let before = pair.index.reader().unwrap();
        let (&key, &fingerprint) = pair.model.iter().next().unwrap();
        let wanted = before.search(fingerprint).unwrap();
        assert!(wanted.iter().any(|found| found.key == key.to_be_bytes()));
        pair.index.merge(&()).unwrap();
        pair.remove(1);
        pair.index.merge(&()).unwrap();
        assert_eq!(before.search(fingerprint).unwrap(), wanted);
        assert!(pair.index.search(fingerprint).unwrap().is_empty());
    }

    #[test]
    fn unknown_delta_entries_of_an_opened_index_are_read_from_tables() {
        let mut pair = Pair::new(13);
        pair.insert(3000);
        let path = pair.directory.path();
        let reading = Index::<u64>::open_read_only(path).unwrap();
        for (key, fingerprint) in pair.model.iter().take(50) {
            let found = reading.search(Query::new(*fingerprint).path(SearchPath::Tables)).unwrap();
            assert!(found.iter().any(|found| found.key == key.to_be_bytes()));
        }
        let published = reading.shared.committer.published();
        assert!(!published.unmerged.find(0, 0, &mut Vec::new()).unwrap());
    }
}
