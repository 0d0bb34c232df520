//! Cursors: positions in families, frozen at one snapshot.
//!
//! The `self_cell` type holds a snapshot with its store.

use std::sync::Arc;

use rocksdb::perf::{PerfContext, PerfMetric, PerfStatsLevel, set_perf_stats};
use rocksdb::{DBRawIteratorWithThreadMode, ReadOptions, SnapshotWithThreadMode};
use self_cell::self_cell;

use super::overlay::{self, Base, Beneath};
use crate::error::Result;
use crate::exclusion;
use crate::store::bytes::pack::Member;
use crate::store::{Db, Family, Role, Store, engine_error};

/// Steps of a cursor that take less time than a seek.
const STEPS: usize = 8;

/// A position in one family.
pub(crate) struct Cursor<'a> {
    iterator: DBRawIteratorWithThreadMode<'a, Db>,
    family: Family,
    /// The packs that the family overrides.
    beneath: Option<Box<Beneath<'a>>>,
}

impl<'a> Cursor<'a> {
    pub(in crate::store) fn new(
        iterator: DBRawIteratorWithThreadMode<'a, Db>,
        family: Family,
        base: Option<Base<'a>>,
    ) -> Self {
        let beneath = base.map(|base| Box::new(Beneath::new(base)));
        Self { iterator, family, beneath }
    }

    /// Moves to the first entry at or after the key.
    #[inline]
    pub(crate) fn seek(&mut self, key: &[u8]) {
        match &mut self.beneath {
            None => self.iterator.seek(key),
            Some(beneath) => beneath.seek(&mut self.iterator, key),
        }
    }

    /// Moves to the next entry.
    ///
    /// Call only after [`Cursor::entry`] returned an entry, or damage that
    /// [`Cursor::damaged_up_to`] limits.
    #[inline]
    pub(crate) fn next(&mut self) {
        match &mut self.beneath {
            None => self.iterator.next(),
            Some(beneath) => beneath.next(&mut self.iterator),
        }
    }

    /// Returns whether the family overrides packs.
    pub(crate) fn has_packs(&self) -> bool {
        self.beneath.is_some()
    }

    /// Returns true if the family has packs, and only these have entries that begin with `prefix`.
    ///
    /// Seek again before reading the present entry.
    pub(crate) fn only_packs_hold(&mut self, prefix: &[u8]) -> Result<bool> {
        match self.beneath {
            None => Ok(false),
            Some(_) => Beneath::hold_alone(&mut self.iterator, self.family, prefix),
        }
    }

    /// Calls `visit` with what packs hold from a key on, removed or not, until it returns false.
    ///
    /// Seek again before reading the present entry.
    ///
    /// # Errors
    ///
    /// Returns an error for a pack that does not decode, and of a failed read.
    pub(crate) fn each_packed(
        &mut self,
        from: &[u8],
        visit: impl FnMut(Member) -> bool,
    ) -> Result<()> {
        match &mut self.beneath {
            None => Ok(()),
            Some(beneath) => beneath.each_member(from, visit),
        }
    }

    /// Calls `visit` with key and value of each entry from the present one on, until it returns
    /// false.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Cursor::entry`] and of `visit`.
    pub(crate) fn each(
        &mut self,
        mut visit: impl FnMut(&[u8], &[u8]) -> Result<bool>,
    ) -> Result<()> {
        if let Some(beneath) = &mut self.beneath {
            return beneath.each(&mut self.iterator, self.family, &mut visit);
        }
        while let Some((key, value)) = self.entry()? {
            if !visit(key, value)? {
                break;
            }
            self.next();
        }
        Ok(())
    }

    /// Returns key and value, or `None` after the last entry.
    ///
    /// # Errors
    ///
    /// Returns the error of a failed read, which otherwise looks like the end of the data.
    #[inline]
    pub(crate) fn entry(&self) -> Result<Option<(&[u8], &[u8])>> {
        if let Some(beneath) = &self.beneath {
            return beneath.entry(&self.iterator, self.family);
        }
        if let Some(item) = self.iterator.item() {
            return Ok(Some(item));
        }
        self.iterator.status().map_err(|e| engine_error(&self.family.to_string(), e))?;
        Ok(None)
    }

    /// Returns the last key that the present damage affects, if the cursor can move behind it.
    pub(crate) fn damaged_up_to(&self) -> Option<&[u8]> {
        self.beneath.as_ref().and_then(|beneath| beneath.damaged_up_to(&self.iterator))
    }
}

/// `None` for a secondary: it has no snapshots, and changes only while it has no readers.
type RocksSnapshot<'a> = Option<SnapshotWithThreadMode<'a, Db>>;

self_cell!(
    /// The state of the store at one moment.
    pub(crate) struct Snapshot {
        owner: Arc<Store>,
        #[covariant]
        dependent: RocksSnapshot,
    }
);

/// Takes a snapshot of the store.
pub(in crate::store) fn snapshot(store: Arc<Store>) -> Arc<Snapshot> {
    Arc::new(Snapshot::new(store, |store| {
        (!matches!(store.role, Role::Follower(_))).then(|| store.db.snapshot())
    }))
}

impl Snapshot {
    /// Returns the store of this snapshot.
    pub(crate) fn store(&self) -> &Arc<Store> {
        self.borrow_owner()
    }

    /// Returns the number of the last change that the snapshot holds.
    pub(super) fn sequence(&self) -> u64 {
        let latest = || self.store().db.latest_sequence_number();
        self.borrow_dependent()
            .as_ref()
            .map_or_else(latest, SnapshotWithThreadMode::sequence_number)
    }

    pub(crate) fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let store = self.borrow_owner();
        let Some(snapshot) = self.borrow_dependent() else { return store.get(family, key) };
        let found = snapshot.get_cf(store.handle(family)?, key);
        let found = found.map_err(|e| engine_error(&family.to_string(), e))?;
        let options = || self.of_state(in_order());
        overlay::value(store.packs(family)?, &mut None, options, key, found)
    }

    /// Opens a cursor that reads ahead and bypasses the cache.
    pub(crate) fn sweep(&self, family: Family) -> Result<Cursor<'_>> {
        exclusion::require_none();
        let mut cursor = self.cursor(family, sweeping)?;
        cursor.seek(&[]);
        Ok(cursor)
    }

    /// Opens a cursor for one pass over part of a family, which leaves the cache to searches.
    pub(crate) fn pass(&self, family: Family) -> Result<Cursor<'_>> {
        self.cursor(family, passing)
    }

    /// Opens a cursor for many seeks, which keeps its blocks in the cache.
    ///
    /// Behind a key it may only find keys with the same prefix (see [`Family::prefix_bytes`]). A
    /// block that is not in the cache is read together with the `at_once` bytes behind it.
    pub(crate) fn probe(&self, family: Family, at_once: usize) -> Result<Cursor<'_>> {
        self.cursor(family, || {
            let mut options = ReadOptions::default();
            options.set_prefix_same_as_start(true);
            options.set_readahead_size(at_once);
            options
        })
    }

    fn cursor(&self, family: Family, options: impl Fn() -> ReadOptions) -> Result<Cursor<'_>> {
        let store = self.borrow_owner();
        let options = || self.of_state(options());
        let handle = store.handle(family)?;
        let base = store.packs(family)?.map(|packs| packs.base(options()));
        Ok(Cursor::new(store.db.raw_iterator_cf_opt(handle, options()), family, base))
    }

    /// Makes options read the state of this snapshot.
    pub(super) fn of_state(&self, mut options: ReadOptions) -> ReadOptions {
        if let Some(snapshot) = self.borrow_dependent() {
            options.set_snapshot(snapshot);
        }
        options
    }
}

#[cfg(test)]
impl Snapshot {
    /// Counts what a family itself stores, without the packs beneath it.
    pub(crate) fn stored(&self, family: Family) -> Result<usize> {
        let store = self.store();
        let options = self.of_state(in_order());
        let entries = store.db.raw_iterator_cf_opt(store.handle(family)?, options);
        let mut cursor = Cursor::new(entries, family, None);
        let mut count = 0;
        cursor.seek(&[]);
        cursor.each(|_, _| {
            count += 1;
            Ok(true)
        })?;
        Ok(count)
    }
}

impl Store {
    /// Calls `visit` with the value of each key that a family itself stores, `None` for the others.
    ///
    /// Keys must ascend. Steps from one to the next where they are close together, which costs a
    /// tenth of a lookup each, and leaves the cache to searches. Not for holders of the writer lock.
    pub(super) fn stored_values<K: AsRef<[u8]>>(
        &self,
        family: Family,
        keys: &[K],
        mut visit: impl FnMut(usize, Option<&[u8]>),
    ) -> Result<()> {
        exclusion::require_none();
        let mut entries = self.db.raw_iterator_cf_opt(self.handle(family)?, passing());
        let mut steps = 0;
        for (at, key) in keys.iter().map(AsRef::as_ref).enumerate() {
            while steps > 0 && entries.key().is_some_and(|before| before < key) {
                entries.next();
                steps -= 1;
            }
            if steps == 0 {
                entries.seek(key);
            }
            steps = STEPS;
            visit(at, entries.item().filter(|(found, _)| *found == key).map(|(_, value)| value));
        }
        entries.status().map_err(|e| engine_error(&family.to_string(), e))
    }
}

/// Returns options of a cursor that meets all entries in order, whatever their prefixes.
pub(in crate::store) fn in_order() -> ReadOptions {
    let mut options = ReadOptions::default();
    options.set_total_order_seek(true);
    options
}

/// Returns options that bypass the cache.
pub(super) fn passing() -> ReadOptions {
    let mut options = in_order();
    options.fill_cache(false);
    options
}

/// Returns options that read ahead and bypass the cache.
pub(in crate::store) fn sweeping() -> ReadOptions {
    let mut options = passing();
    options.set_readahead_size(2 << 20);
    options
}

/// Returns the result of `body` and how many blocks it read from files on this thread.
pub(crate) fn counting_reads<R>(body: impl FnOnce() -> R) -> (R, u64) {
    counting(PerfMetric::BlockReadCount, body)
}

/// Returns the result of `body` and how many deleted entries this thread stepped over.
#[cfg(test)]
pub(crate) fn counting_deleted<R>(body: impl FnOnce() -> R) -> (R, u64) {
    counting(PerfMetric::InternalDeleteSkippedCount, body)
}

/// Returns the result of `body` and how many blocks it found in the cache on this thread.
#[cfg(test)]
pub(crate) fn counting_cached<R>(body: impl FnOnce() -> R) -> (R, u64) {
    counting(PerfMetric::BlockCacheHitCount, body)
}

fn counting<R>(metric: PerfMetric, body: impl FnOnce() -> R) -> (R, u64) {
    set_perf_stats(PerfStatsLevel::EnableCount);
    let mut context = PerfContext::default();
    context.reset();
    let result = body();
    let count = context.metric(metric);
    set_perf_stats(PerfStatsLevel::Disable);
    (result, count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{Durability, Index, IndexOptions};

    type Entry = (Vec<u8>, Vec<u8>);

    /// Returns entries up to the end of the cursor, or to the first with another prefix.
    fn rest(cursor: &mut Cursor<'_>, prefix: &[u8]) -> Vec<Entry> {
        let mut rest = Vec::new();
        let entries = cursor.each(|key, value| {
            rest.push((key.to_vec(), value.to_vec()));
            Ok(key.starts_with(prefix))
        });
        entries.unwrap();
        rest.retain(|(key, _)| key.starts_with(prefix));
        rest
    }

    #[test]
    fn probes_skip_new_files_without_the_prefix_and_find_what_a_pass_finds() {
        let directory = tempfile::tempdir().unwrap();
        let index = Index::<u64>::create(directory.path(), &IndexOptions::new()).unwrap();
        let mut rng = fastrand::Rng::with_seed(3);
        for (round, count) in [(0_u64, 500), (1, 60), (2, 60), (3, 60)] {
            let documents: Vec<_> =
                (0..count).map(|at| ((round * 450 + at).to_be_bytes(), rng.u64(..))).collect();
            // Each one has a delta run.
            for document in documents.chunks(if round == 0 { 500 } else { 1 }) {
                index.insert_batch(document, Durability::Buffered).unwrap();
            }
            if round == 0 {
                index.merge(&()).unwrap();
                index.compact().unwrap();
            }
            // Three small files stay beside the last level, since a fourth begins a compaction.
            index.flush().unwrap();
        }
        let snapshot = Arc::clone(index.reader().unwrap().snapshot());
        let skipped = || PerfContext::default().metric(PerfMetric::BloomSstMissCount);
        // Later tables have no delta entries, so all their files have the one prefix.
        for family in [Family::Table(0), Family::Postings] {
            let prefix_bytes = family.prefix_bytes().unwrap();
            let all = rest(&mut snapshot.sweep(family).unwrap(), &[]);
            assert!(all.len() > 100, "{family}: {}", all.len());
            let mut pass = snapshot.pass(family).unwrap();
            let mut probe = snapshot.probe(family, 0).unwrap();
            set_perf_stats(PerfStatsLevel::EnableCount);
            PerfContext::default().reset();
            for (key, _) in &all {
                let (mut from, prefix) = (key.clone(), key.get(..prefix_bytes).unwrap());
                if rng.bool() {
                    *from.last_mut().unwrap() ^= 1;
                }
                let before = all.partition_point(|(key, _)| *key < from);
                let wanted = all.get(before..).unwrap();
                pass.seek(&from);
                assert_eq!(rest(&mut pass, &[]), wanted, "{family} from {from:?}");
                probe.seek(&from);
                let same = wanted.partition_point(|(key, _)| key.starts_with(prefix));
                assert_eq!(rest(&mut probe, prefix), wanted[..same], "{family} from {from:?}");
            }
            let skipped = skipped();
            set_perf_stats(PerfStatsLevel::Disable);
            assert!(skipped > 8, "{family}: {skipped} files");
        }
    }
}
