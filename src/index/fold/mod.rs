//! Merging: merges delta entries into runs in small steps, beside all other work.

mod merge;
mod thread;

use self::merge::merge;
pub(super) use self::thread::Folder;
pub use self::thread::Merging;
use super::committer::Stepped;
use super::health::Event;
use super::{Index, Shared};
use crate::error::Result;
use crate::fail_point::fail_point;
use crate::fingerprint::Fingerprint;
use crate::progress::{self, Progress};
use crate::store::Family;
use crate::store::keys::{Kind, TableKey};

/// Merged entries that writers wait for before they try again after a failure.
const AFTER_FAILURE: u64 = 1 << 20;

/// Result of a merge: entries merged and sizes of the tables.
///
/// ```
/// use hamdex::inspect::MergeReport;
/// # let directory = tempfile::tempdir().unwrap();
/// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
///
/// let report: MergeReport = index.merge(&())?;
/// assert_eq!(report.merged, 0); // the index is empty
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct MergeReport {
    /// Number of delta entries merged into runs, over all tables.
    pub merged: u64,
    /// Size of the tables before, in bytes.
    pub bytes_before: u64,
    /// Size of the tables afterwards, in bytes.
    pub bytes_after: u64,
}

/// Result of a compaction: sizes before and afterwards.
///
/// ```
/// use hamdex::inspect::CompactReport;
/// # let directory = tempfile::tempdir().unwrap();
/// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
///
/// let report: CompactReport = index.compact()?;
/// println!("{} bytes before, {} afterwards", report.bytes_before, report.bytes_after);
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CompactReport {
    /// Size of all families before, in bytes.
    pub bytes_before: u64,
    /// Size of all families afterwards, in bytes.
    pub bytes_after: u64,
}

impl<F: Fingerprint> Index<F> {
    /// Merges all current delta entries into runs, step by step.
    ///
    /// Searches and writes continue and wait for no step. Each step is one atomic batch of about 45
    /// KB. Until the pass ends, it takes 32 bytes of memory for each 64-bit delta entry. Delta entries
    /// may remain if others insert or remove documents meanwhile. Finally
    /// compacts the region of delta entries.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
    /// index.insert(b"page", 0xff)?;
    /// let report = index.merge(&())?;
    /// assert_eq!(report.merged, 4); // one entry in each of four tables
    /// assert_eq!(index.stats(&())?.delta_entries, 0);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::ReadOnly`](crate::Error::ReadOnly),
    /// [`Error::Cancelled`](crate::Error::Cancelled), and an error on damage or a failure of the
    /// store. Completed steps are kept.
    pub fn merge(&self, progress: &dyn Progress) -> Result<MergeReport> {
        let shared = &*self.shared;
        shared.store.require_writable()?;
        let bytes_before = shared.table_bytes()?;
        progress.begin("merging", None);
        let merged = shared.fold_all(progress)?;
        shared.clear_deltas()?;
        Ok(MergeReport { merged, bytes_before, bytes_after: shared.table_bytes()? })
    }

    /// Merges a bounded number of delta entries. Returns true if there may be more.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
    /// index.insert(b"page", 0xff)?;
    /// while index.merge_step()? {}
    /// assert_eq!(index.stats(&())?.delta_entries, 0);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Index::merge`].
    pub fn merge_step(&self) -> Result<bool> {
        self.shared.store.require_writable()?;
        self.shared.merge_step().map(|step| step.more)
    }

    /// Merges delta entries and rewrites all files, which frees the space of removed documents.
    ///
    /// Takes time and disk space in proportion to the index. Searches and writes continue; what they
    /// remove meanwhile may keep its space until the next call.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
    /// index.insert(b"page", 0xff)?;
    /// index.remove(b"page")?;
    /// let report = index.compact()?;
    /// println!("{} bytes freed", report.bytes_before.saturating_sub(report.bytes_after));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::ReadOnly`](crate::Error::ReadOnly) and failures of the store.
    pub fn compact(&self) -> Result<CompactReport> {
        let shared = &*self.shared;
        shared.store.require_writable()?;
        let bytes_before = shared.all_bytes()?;
        shared.fold_all(&())?;
        shared.repack()?;
        // Removals are needed until the packs without the removed documents are in files.
        shared.store.flush()?;
        fail_point!("compact.repacked");
        shared.drop_removals()?;
        shared.store.flush()?;
        fail_point!("compact.flushed");
        for family in shared.store.families() {
            shared.store.compact(family, None, None)?;
            fail_point!("compact.family");
        }
        shared.committer.withdraw();
        Ok(CompactReport { bytes_before, bytes_after: shared.all_bytes()? })
    }
}

impl<F: Fingerprint> Shared<F> {
    fn fold_all(&self, progress: &dyn Progress) -> Result<u64> {
        self.committer.begin_fold();
        let (mut merged, mut passes) = (0, 0);
        loop {
            progress::check(progress)?;
            let step = self.merge_step()?;
            progress.advance(step.merged);
            merged += step.merged;
            // The second pass merges what conflicting writes kept out of the first one.
            passes += u32::from(step.ends_pass);
            if !step.more || passes == 2 {
                return Ok(merged);
            }
        }
    }

    fn table_bytes(&self) -> Result<u64> {
        (0..self.store.tables()).map(|table| self.store.bytes(Family::Table(table))).sum()
    }

    fn all_bytes(&self) -> Result<u64> {
        Family::of_generation(self.store.tables()).map(|family| self.store.bytes(family)).sum()
    }

    /// Continues after the last step.
    pub(super) fn merge_step(&self) -> Result<Stepped> {
        self.committer.merge_step()?.run(merge)
    }

    /// Merges as much as writers owe, if nothing else does and memory is short.
    ///
    /// A failure is reported as an event: the writes are done.
    pub(super) fn merge_for_writers(&self) {
        loop {
            let stepped = match self.committer.step_of_writer() {
                Ok(None) => return,
                Ok(Some(step)) => step.run(merge),
                Err(error) => Err(error),
            };
            match stepped {
                Ok(step) => self.committer.paid(step.merged),
                Err(error) => {
                    self.core.events.emit(&Event::MergeFailed { error: &error });
                    self.committer.paid(AFTER_FAILURE);
                    return;
                }
            }
        }
    }

    /// Compacts away the traces of merged delta entries.
    fn clear_deltas(&self) -> Result<()> {
        self.store.flush()?;
        fail_point!("fold.flushed");
        let from = [Kind::Delta as u8];
        let to = TableKey::end(Kind::Delta);
        self.store.compact(Family::Table(0), Some(&from), Some(&to))?;
        fail_point!("fold.compacted");
        // The cursors of the old reader keep the old files.
        self.committer.withdraw();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Durability, IndexOptions};

    /// Returns an index with runs, and delta entries among and behind them. Document `n` is `n *
    /// 2^40`.
    fn index(path: &std::path::Path) -> Index<u64> {
        let index = Index::create(path, &IndexOptions::new().memory(16 << 20)).unwrap();
        let fill = |documents: &[u64]| {
            let documents: Vec<_> = documents.iter().map(|&n| (n.to_be_bytes(), n << 40)).collect();
            index.insert_batch(&documents, Durability::Buffered).unwrap();
        };
        fill(&(0..2000).step_by(2).collect::<Vec<_>>());
        index.merge(&()).unwrap();
        assert_eq!(index.stats(&()).unwrap().delta_entries, 0);
        fill(&(0..3000).step_by(3).collect::<Vec<_>>());
        index
    }

    /// Runs a step, and `between` after it has read what it merges.
    fn step_around(index: &Index<u64>, between: impl FnOnce()) -> Stepped {
        let step = index.shared.committer.merge_step().unwrap();
        step.run(|snapshot, table, deltas| {
            let merged = merge(snapshot, table, deltas)?;
            assert!(merged.deltas > 0);
            between();
            Ok(merged)
        })
        .unwrap()
    }

    fn near(index: &Index<u64>, n: u64) -> usize {
        index.search(crate::Query::new(n << 40).distance(0)).unwrap().len()
    }

    #[test]
    fn what_is_removed_between_reading_and_committing_of_a_step_stays_removed() {
        let directory = tempfile::tempdir().unwrap();
        let index = index(directory.path());
        // The first is in a run, the second a delta entry among runs, the third one behind them.
        let removed = [500_u64, 603, 2997];
        step_around(&index, || {
            for n in removed {
                assert!(index.remove(&n.to_be_bytes()).unwrap());
            }
        });
        index.merge(&()).unwrap();
        for n in removed {
            assert_eq!(near(&index, n), 0, "{n}");
        }
        let report = index.check(&()).unwrap();
        assert_eq!(report.problem_count, 0, "{:?}", report.problems);
        assert_eq!(index.stats(&()).unwrap().delta_entries, 0);
    }

    #[test]
    fn inserts_do_not_wait_for_a_step_and_are_not_undone_by_it() {
        let directory = tempfile::tempdir().unwrap();
        let index = index(directory.path());
        step_around(&index, || {
            // Known and unknown fingerprints, under new and existing keys.
            for (key, n) in [(7000_u64, 600), (7001, 601), (7002, 9001), (8, 999), (999, 8)] {
                index.insert(&key.to_be_bytes(), n << 40).unwrap();
            }
            index.remove(&7002_u64.to_be_bytes()).unwrap();
            index.insert(&7003_u64.to_be_bytes(), 9001 << 40).unwrap();
        });
        let found = [600, 601, 9001, 999, 8].map(|n| near(&index, n));
        assert_eq!(found, [2, 1, 1, 1, 1]);
        index.merge(&()).unwrap();
        assert_eq!([600, 601, 9001, 999, 8].map(|n| near(&index, n)), found);
        let report = index.check(&()).unwrap();
        assert_eq!(report.problem_count, 0, "{:?}", report.problems);
    }

    #[test]
    fn what_is_inserted_again_between_reading_and_committing_of_a_step_stays() {
        let directory = tempfile::tempdir().unwrap();
        let index = index(directory.path());
        for n in [500_u64, 603, 700] {
            assert!(index.remove(&n.to_be_bytes()).unwrap());
        }
        // The step has read that all three are removed.
        step_around(&index, || {
            for (key, n) in [(7000_u64, 500), (603, 603)] {
                index.insert(&key.to_be_bytes(), n << 40).unwrap();
            }
        });
        for _ in 0..2 {
            assert_eq!([500, 603, 700].map(|n| near(&index, n)), [1, 1, 0]);
            let report = index.check(&()).unwrap();
            assert_eq!(report.problem_count, 0, "{:?}", report.problems);
            index.merge(&()).unwrap();
        }
        assert_eq!(index.stats(&()).unwrap().delta_entries, 0);
    }

    #[test]
    fn removals_leave_runs_alone_until_a_merge_takes_them_in() {
        let directory = tempfile::tempdir().unwrap();
        let index = index(directory.path());
        index.merge(&()).unwrap();
        let before = index.stats(&()).unwrap();
        let keys: Vec<_> = (0..3000_u64).filter(|n| n % 5 > 0).map(u64::to_be_bytes).collect();
        let removed = index.remove_batch(&keys, Durability::Buffered).unwrap();
        let after = index.stats(&()).unwrap();
        assert_eq!((after.runs, after.delta_entries), (before.runs, removed));
        assert_eq!(after.fingerprints, before.fingerprints - removed);
        assert_eq!([500, 600, 603].map(|n| near(&index, n)), [1, 1, 0]);
        assert_eq!(index.check(&()).unwrap().problem_count, 0);
        index.merge(&()).unwrap();
        let merged = index.stats(&()).unwrap();
        assert_eq!((merged.delta_entries, merged.fingerprints), (0, after.fingerprints));
        let rest: Vec<_> = (0..3000_u64).map(u64::to_be_bytes).collect();
        index.remove_batch(&rest, Durability::Buffered).unwrap();
        assert_eq!(index.stats(&()).unwrap().fingerprints, 0);
        index.merge(&()).unwrap();
        let empty = index.stats(&()).unwrap();
        assert_eq!((empty.fingerprints, empty.delta_entries, empty.runs), (0, 0, 0));
        assert_eq!(index.check(&()).unwrap().problem_count, 0);
    }

    #[test]
    fn near_fingerprints_are_those_of_stored_documents_before_and_after_a_merge() {
        let directory = tempfile::tempdir().unwrap();
        let index = index(directory.path());
        for n in [500_u64, 603, 2997] {
            assert_eq!(index.near_batch(&[n << 40], 0).unwrap()[0].len(), 1, "{n}");
            index.remove(&n.to_be_bytes()).unwrap();
            assert_eq!(index.near(n << 40, 0).unwrap().len(), 0, "{n}");
            assert_eq!(index.near_batch(&[n << 40], 0).unwrap()[0].len(), 0, "{n}");
        }
        index.merge(&()).unwrap();
        assert_eq!(index.near(500 << 40, 0).unwrap().len(), 0);
    }

    #[test]
    fn a_write_at_any_step_of_a_pass_is_not_undone_by_it() {
        for before in 0.. {
            let directory = tempfile::tempdir().unwrap();
            let index = index(directory.path());
            for n in [3_u64, 6] {
                assert!(index.remove(&n.to_be_bytes()).unwrap());
            }
            let steps = (0..before).take_while(|_| !index.shared.merge_step().unwrap().ends_pass);
            if steps.count() < before {
                assert!(before > 4, "a step for each table, and one that deletes");
                break;
            }
            // A run member and two delta entries go, a removed one comes back, and one is new.
            for n in [500_u64, 603, 2997] {
                assert!(index.remove(&n.to_be_bytes()).unwrap());
            }
            for n in [3_u64, 9001] {
                index.insert(&n.to_be_bytes(), n << 40).unwrap();
            }
            loop {
                let step = index.shared.merge_step().unwrap();
                let found = [500, 603, 2997, 3, 9001, 6, 999].map(|n| near(&index, n));
                assert_eq!(found, [0, 0, 0, 1, 1, 0, 1], "{before} steps before");
                assert_eq!(index.check(&()).unwrap().problem_count, 0, "{before} steps before");
                if !step.more {
                    break;
                }
            }
            assert_eq!(index.stats(&()).unwrap().delta_entries, 0);
        }
    }

    #[test]
    fn a_pass_leaves_what_was_removed_meanwhile_to_the_next_one() {
        let directory = tempfile::tempdir().unwrap();
        let index = index(directory.path());
        step_around(&index, || assert!(index.remove(&603_u64.to_be_bytes()).unwrap()));
        let mut left = Vec::new();
        loop {
            let step = index.shared.merge_step().unwrap();
            if step.ends_pass {
                left.push(index.stats(&()).unwrap().delta_entries);
                for n in (0..3000).step_by(3).filter(|n| *n != 603) {
                    assert_eq!(near(&index, n), 1, "{n} after {} passes", left.len());
                }
            }
            if !step.more {
                break;
            }
        }
        assert_eq!(left, [1, 0]);
        assert_eq!(index.health().unwrap().unmerged, 0);
    }

    #[test]
    fn what_comes_behind_a_pass_keeps_searches_looking_at_delta_entries() {
        let directory = tempfile::tempdir().unwrap();
        let index = index(directory.path());
        index.shared.merge_step().unwrap();
        // The pass has left the first table, which a search at distance 0 may use alone.
        index.insert(&7000_u64.to_be_bytes(), 9001 << 40).unwrap();
        loop {
            let step = index.shared.merge_step().unwrap();
            assert!(step.more);
            if step.ends_pass {
                break;
            }
        }
        assert_eq!(near(&index, 9001), 1);
        assert_eq!(index.health().unwrap().unmerged, 1);
    }

    #[test]
    fn a_pass_that_was_given_up_halfway_is_repeated_by_another_handle() {
        let directory = tempfile::tempdir().unwrap();
        let index = index(directory.path());
        for _ in 0..3 {
            index.shared.merge_step().unwrap();
        }
        assert!(index.remove(&603_u64.to_be_bytes()).unwrap());
        drop(index);
        let index = Index::<u64>::open(directory.path()).unwrap();
        assert_eq!(index.health().unwrap().unmerged, 666);
        assert_eq!([600, 603, 2997].map(|n| near(&index, n)), [1, 0, 1]);
        assert_eq!(index.check(&()).unwrap().problem_count, 0);
        index.merge(&()).unwrap();
        assert_eq!([600, 603, 2997].map(|n| near(&index, n)), [1, 0, 1]);
        let stats = index.stats(&()).unwrap();
        assert_eq!((stats.delta_entries, stats.fingerprints), (0, stats.documents));
        assert_eq!(index.check(&()).unwrap().problem_count, 0);
    }

    #[test]
    fn steps_cut_long_runs_and_many_deltas_and_lose_none() {
        let directory = tempfile::tempdir().unwrap();
        let index = Index::create(directory.path(), &IndexOptions::new().memory(16 << 20)).unwrap();
        let mut rng = fastrand::Rng::with_seed(7);
        let mut stored = std::collections::BTreeSet::new();
        for round in 0..4 {
            let documents: Vec<_> = (0..30_000_u64)
                .map(|n| ((round * 30_000 + n).to_be_bytes(), rng.u64(..) & 0xff_ffff << 40))
                .collect();
            stored.extend(documents.iter().map(|(_, fingerprint)| *fingerprint));
            index.insert_batch(&documents, Durability::Buffered).unwrap();
            let report = index.merge(&()).unwrap();
            assert!(report.merged > 0);
            let stats = index.stats(&()).unwrap();
            assert_eq!((stats.delta_entries, stats.fingerprints), (0, stored.len() as u64));
        }
        assert_eq!(index.check(&()).unwrap().problem_count, 0);
    }
}
