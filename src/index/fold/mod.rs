//! Folding: single entries become members of runs, in small steps, beside all other work.

mod thread;

use std::collections::VecDeque;
use std::sync::Arc;

pub(super) use self::thread::Folder;
pub use self::thread::Folding;
use super::committer::{Merged, Stepped};
use super::search::run_at;
use super::{Index, Shared};
use crate::error::Result;
use crate::fail_point::fail_point;
use crate::fingerprint::Fingerprint;
use crate::progress::{self, Progress};
use crate::store::keys::{self, Kind, TableKey};
use crate::store::run::{self, RUN_MEMBERS};
use crate::store::{Family, Store, View};

/// Members that one step writes anew, roughly.
///
/// Some 45 KB in the log, for which a write that comes at the same time waits.
const STEP_MEMBERS: usize = 1 << 14;

/// Singles that are read at once.
const READ_AT_ONCE: usize = 512;

/// Members beyond which a rewritten run is cut.
const LONGEST_RUN: usize = RUN_MEMBERS + RUN_MEMBERS / 2;

/// What a fold did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FoldReport {
    /// Table entries that became members of runs, over all tables.
    pub folded: u64,
    /// Bytes of the tables before.
    pub bytes_before: u64,
    /// Bytes of the tables afterwards.
    pub bytes_after: u64,
}

/// What a compaction did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CompactReport {
    /// Bytes of all families before.
    pub bytes_before: u64,
    /// Bytes of all families afterwards.
    pub bytes_after: u64,
}

impl<F: Fingerprint> Index<F> {
    /// Folds every single entry that is there into runs, step by step.
    ///
    /// Searches and writes go on meanwhile and wait for no step; each step is one atomic batch of
    /// some 45 KB. What is inserted meanwhile may stay single, and what others keep removing from.
    ///
    /// # Errors
    ///
    /// [`Error::ReadOnly`](crate::Error::ReadOnly), [`Error::Cancelled`](crate::Error::Cancelled),
    /// and damage or failures of the store. What was folded before stays folded.
    pub fn fold(&self, progress: &dyn Progress) -> Result<FoldReport> {
        let shared = &*self.shared;
        shared.store.require_writable()?;
        let bytes_before = shared.table_bytes()?;
        progress.begin("folding", None);
        shared.committer.begin_fold();
        let (mut folded, mut passes) = (0, 0);
        loop {
            progress::check(progress)?;
            let step = shared.fold_step()?;
            progress.advance(step.folded);
            folded += step.folded;
            // The second pass is for what removals kept out of the first one.
            passes += u32::from(step.ends_pass);
            if !step.more || passes == 2 {
                break;
            }
        }
        shared.clear_singles()?;
        Ok(FoldReport { folded, bytes_before, bytes_after: shared.table_bytes()? })
    }

    /// Folds a bounded number of entries; true while there is more to do.
    ///
    /// # Errors
    ///
    /// As [`Index::fold`].
    pub fn fold_step(&self) -> Result<bool> {
        self.shared.store.require_writable()?;
        self.shared.fold_step().map(|step| step.more)
    }

    /// Rewrites all files so that what was deleted gives its space back.
    ///
    /// # Errors
    ///
    /// [`Error::ReadOnly`](crate::Error::ReadOnly) and failures of the store.
    pub fn compact(&self) -> Result<CompactReport> {
        let shared = &*self.shared;
        shared.store.require_writable()?;
        let bytes_before = shared.all_bytes()?;
        shared.store.flush()?;
        fail_point!("compact.flushed");
        for family in Family::of_generation(shared.store.tables()) {
            shared.store.compact(family, None, None)?;
            fail_point!("compact.family");
        }
        shared.committer.withdraw();
        Ok(CompactReport { bytes_before, bytes_after: shared.all_bytes()? })
    }
}

impl<F: Fingerprint> Shared<F> {
    fn table_bytes(&self) -> Result<u64> {
        (0..self.store.tables()).map(|table| self.store.bytes(Family::Table(table))).sum()
    }

    fn all_bytes(&self) -> Result<u64> {
        Family::of_generation(self.store.tables()).map(|family| self.store.bytes(family)).sum()
    }

    /// Folds on from where the last step ended, in the next table that has something to fold.
    fn fold_step(&self) -> Result<Stepped> {
        loop {
            let step = self.fold_table()?;
            if step.folded > 0 || step.ends_pass {
                return Ok(step);
            }
        }
    }

    fn fold_table(&self) -> Result<Stepped> {
        let step = self.committer.fold_step();
        let table = step.table();
        let mut view = View::new(Arc::clone(&step.snapshot));
        let (merged, behind) = merge::<F>(&mut view, table, step.behind())?;
        drop(view);
        let tables = self.core.plan.tables();
        let permutation = tables.get(table).expect("a pass ends at the last table").permutation();
        step.commit(&merged, behind, |fingerprint| permutation.apply(fingerprint))
    }

    /// Removes the traces of folded singles, which later range reads would step over.
    fn clear_singles(&self) -> Result<()> {
        self.store.flush()?;
        fail_point!("fold.flushed");
        let from = [Kind::Single as u8];
        let to = TableKey::end(Kind::Single);
        for table in 0..self.store.tables() {
            self.store.compact(Family::Table(table), Some(&from), Some(&to))?;
            fail_point!("fold.compacted");
        }
        // Its cursors keep the files of before.
        self.committer.withdraw();
        Ok(())
    }
}

/// Tells whether any table holds a single entry.
pub(super) fn any_single(store: &Arc<Store>) -> Result<bool> {
    let mut view = View::new(store.snapshot());
    for table in 0..store.tables() {
        let found = view.table(table, |cursor| {
            cursor.seek(&[Kind::Single as u8]);
            Ok(cursor.entry()?.is_some())
        })?;
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Merges the next singles of a table with their runs, and returns the last one of them.
///
/// `None` is the table's end.
fn merge<F: Fingerprint>(
    view: &mut View,
    table: usize,
    behind: Option<F>,
) -> Result<(Vec<Merged<F>>, Option<F>)> {
    let mut ahead = Singles { table, read: VecDeque::new(), behind };
    let mut merged = Vec::new();
    let (mut written, mut behind) = (0, behind);
    while written < STEP_MEMBERS {
        let Some(first) = ahead.peek(view)? else { return Ok((merged, None)) };
        let mut members = Vec::new();
        let last = run_at(view, table, first, &mut members)?;
        let mut singles = Vec::new();
        while singles.len() < STEP_MEMBERS
            && let Some(single) = ahead.peek(view)?
            && last.is_none_or(|last| single <= last)
        {
            singles.push(single);
            behind = Some(single);
            ahead.read.pop_front();
        }
        members.extend_from_slice(&singles);
        members.sort_unstable();
        members.dedup();
        // The members below a run's last one never pass it, so its key is written again.
        debug_assert!(last.is_none() || last == members.last().copied());
        written += members.len();
        merged.push(Merged { runs: encoded(&members), singles, members });
    }
    Ok((merged, behind))
}

/// The singles of a table by their order, some of them read ahead.
struct Singles<F> {
    table: usize,
    read: VecDeque<F>,
    /// The last one that was read.
    behind: Option<F>,
}

impl<F: Fingerprint> Singles<F> {
    fn peek(&mut self, view: &mut View) -> Result<Option<F>> {
        if self.read.is_empty() {
            self.read_on(view)?;
        }
        Ok(self.read.front().copied())
    }

    fn read_on(&mut self, view: &mut View) -> Result<()> {
        let Self { table, read, behind } = self;
        view.table(*table, |cursor| {
            match behind {
                Some(last) => cursor.seek(TableKey::new(Kind::Single, *last).as_ref()),
                None => cursor.seek(&[Kind::Single as u8]),
            }
            while let Some((key, _)) = cursor.entry()? {
                let Some(single) = keys::permuted(key, Kind::Single, *table)? else { break };
                if behind.is_none_or(|last| last < single) {
                    read.push_back(single);
                    *behind = Some(single);
                }
                if read.len() == READ_AT_ONCE {
                    break;
                }
                cursor.next();
            }
            Ok(())
        })
    }
}

/// Cuts rising members into runs of even length; returns the last member and value of each.
fn encoded<F: Fingerprint>(members: &[F]) -> Vec<(F, Vec<u8>)> {
    let runs = if members.len() <= LONGEST_RUN { 1 } else { members.len().div_ceil(RUN_MEMBERS) };
    let cut = members.chunks(members.len().div_ceil(runs).max(1));
    cut.filter_map(|run| {
        let mut value = Vec::new();
        run::encode(run, &mut value);
        run.last().map(|last| (*last, value))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Durability, IndexOptions};

    /// An index with runs, and singles among and behind them; document `n` is `n * 2^40`.
    fn index(path: &std::path::Path) -> Index<u64> {
        let index = Index::create(path, &IndexOptions::new().memory(16 << 20)).unwrap();
        let fill = |documents: &[u64]| {
            let documents: Vec<_> = documents.iter().map(|&n| (n.to_be_bytes(), n << 40)).collect();
            index.insert_batch(&documents, Durability::Buffered).unwrap();
        };
        fill(&(0..2000).step_by(2).collect::<Vec<_>>());
        index.fold(&()).unwrap();
        assert_eq!(index.stats(&()).unwrap().singles, 0);
        fill(&(0..3000).step_by(3).collect::<Vec<_>>());
        index
    }

    /// Reads what a step would fold, does something else, and commits the step.
    fn step_around(index: &Index<u64>, between: impl FnOnce()) -> Stepped {
        let shared = &*index.shared;
        let step = shared.committer.fold_step();
        let mut view = View::new(Arc::clone(&step.snapshot));
        let table = step.table();
        let (merged, behind) = merge::<u64>(&mut view, table, step.behind()).unwrap();
        assert!(!merged.is_empty());
        between();
        let permutation = shared.core.plan.tables()[table].permutation();
        step.commit(&merged, behind, |fingerprint| permutation.apply(fingerprint)).unwrap()
    }

    fn near(index: &Index<u64>, n: u64) -> usize {
        index.search(crate::Query::new(n << 40).distance(0)).unwrap().len()
    }

    #[test]
    fn what_is_removed_between_reading_and_committing_of_a_step_stays_removed() {
        let directory = tempfile::tempdir().unwrap();
        let index = index(directory.path());
        // The first is in a run only, the second a single only, the third both.
        let removed = [500_u64, 2997, 600];
        step_around(&index, || {
            for n in removed {
                assert!(index.remove(&n.to_be_bytes()).unwrap());
            }
        });
        index.fold(&()).unwrap();
        for n in removed {
            assert_eq!(near(&index, n), 0, "{n}");
        }
        let report = index.check(&()).unwrap();
        assert_eq!(report.problem_count, 0, "{:?}", report.problems);
        assert_eq!(index.stats(&()).unwrap().singles, 0);
    }

    #[test]
    fn inserts_do_not_wait_for_a_step_and_are_not_undone_by_it() {
        let directory = tempfile::tempdir().unwrap();
        let index = index(directory.path());
        step_around(&index, || {
            // Known and unknown fingerprints, under new keys and in the place of old ones.
            for (key, n) in [(7000_u64, 600), (7001, 601), (7002, 9001), (8, 999), (999, 8)] {
                index.insert(&key.to_be_bytes(), n << 40).unwrap();
            }
            index.remove(&7002_u64.to_be_bytes()).unwrap();
            index.insert(&7003_u64.to_be_bytes(), 9001 << 40).unwrap();
        });
        let found = [600, 601, 9001, 999, 8].map(|n| near(&index, n));
        assert_eq!(found, [2, 1, 1, 1, 1]);
        index.fold(&()).unwrap();
        assert_eq!([600, 601, 9001, 999, 8].map(|n| near(&index, n)), found);
        let report = index.check(&()).unwrap();
        assert_eq!(report.problem_count, 0, "{:?}", report.problems);
    }

    #[test]
    fn a_pass_that_a_removal_kept_from_a_run_is_followed_by_another_one() {
        let directory = tempfile::tempdir().unwrap();
        let index = index(directory.path());
        step_around(&index, || assert!(index.remove(&600_u64.to_be_bytes()).unwrap()));
        let left = index.stats(&()).unwrap().tables[0].singles;
        assert!((1..=64).contains(&left), "{left} singles of one run are left in the first table");
        let mut passes = 0;
        loop {
            let step = index.shared.fold_step().unwrap();
            passes += u32::from(step.ends_pass);
            if !step.more {
                break;
            }
        }
        assert_eq!(passes, 2);
        assert_eq!(index.stats(&()).unwrap().singles, 0);
        assert_eq!(index.health().unwrap().unfolded, Some(0));
    }

    #[test]
    fn what_comes_behind_a_pass_keeps_searches_looking_at_singles() {
        let directory = tempfile::tempdir().unwrap();
        let index = index(directory.path());
        while index.shared.committer.fold_step().table() == 0 {
            index.shared.fold_step().unwrap();
        }
        // The pass has left the first table, by which alone a search at distance 0 may go.
        index.insert(&7000_u64.to_be_bytes(), 9001 << 40).unwrap();
        loop {
            let step = index.shared.fold_step().unwrap();
            assert!(step.more);
            if step.ends_pass {
                break;
            }
        }
        assert_eq!(near(&index, 9001), 1);
        assert_eq!(index.health().unwrap().unfolded, Some(1));
    }

    #[test]
    fn steps_cut_long_runs_and_many_singles_and_lose_none() {
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
            let report = index.fold(&()).unwrap();
            assert!(report.folded > 0);
            let stats = index.stats(&()).unwrap();
            assert_eq!((stats.singles, stats.fingerprints), (0, stored.len() as u64));
        }
        assert_eq!(index.check(&()).unwrap().problem_count, 0);
    }
}
