//! Folds: merges delta entries into runs while others search and write.
//!
//! A merge does not change the set of a table, so inserts may reach the log before or after it.
//! Only a removal conflicts: a merge that read before it would restore what it removed. So removals
//! are recorded while a step reads, and the step leaves out the runs that they affect.
//!
//! A pass walks all tables once. Only merges create or cut runs, and only one step runs at a time,
//! so the part of a table behind a pass stays merged.

use std::sync::{Arc, PoisonError};

use super::Committer;
use crate::error::Result;
use crate::exclusion::Held;
use crate::fail_point::fail_point;
use crate::fingerprint::Fingerprint;
use crate::store::keys::Kind;
use crate::store::{Batch, Snapshot};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{self, Mutex, MutexGuard};

/// Added to the count if the index had delta entries when opened, whose number is unknown.
const UNKNOWN: u64 = u64::MAX / 2;

/// Shared state of merges and writers.
#[derive(Debug)]
pub(super) struct Folds<F> {
    pass: Mutex<Pass<F>>,
    /// Fingerprints that lost their last document since the current step began to read.
    removed: Mutex<Option<Vec<F>>>,
    /// Number of delta entries that writes have announced since opening.
    announced: AtomicU64,
    /// How many of them the last pass did not merge, roughly. At least [`UNKNOWN`] before one.
    unfolded: AtomicU64,
}

/// A pass over all tables, in steps.
#[derive(Debug, Default)]
struct Pass<F> {
    table: usize,
    /// The last delta entry of the table that a step looked at.
    behind: Option<F>,
    /// Number of announced delta entries when the pass began. `None` before its first step.
    announced: Option<u64>,
    /// Number of delta entries left behind because of a removal.
    left: u64,
}

/// One or more runs that a step has read, merged and encoded.
#[derive(Debug)]
pub(in crate::index) struct Merged<F> {
    /// Delta entries that become members, ascending.
    pub(in crate::index) singles: Vec<F>,
    /// All members, ascending.
    pub(in crate::index) members: Vec<F>,
    /// Last member and value of each new run.
    pub(in crate::index) runs: Vec<(F, Vec<u8>)>,
}

impl<F: Fingerprint> Merged<F> {
    /// Returns true if any of the ascending fingerprints is a member.
    fn holds_any(&self, rising: &[F]) -> bool {
        let (Some(first), Some(last)) = (self.members.first(), self.members.last()) else {
            return false;
        };
        let from = rising.partition_point(|fingerprint| fingerprint < first);
        let near = rising.iter().skip(from).take_while(|fingerprint| *fingerprint <= last);
        near.into_iter().any(|fingerprint| self.members.binary_search(fingerprint).is_ok())
    }

    fn stage(&self, batch: &mut Batch<'_>, table: usize) -> Result<()> {
        for single in &self.singles {
            batch.delete_entry(table, Kind::Single, *single)?;
        }
        for (last, value) in &self.runs {
            batch.put_entry(table, Kind::Run, *last, value)?;
        }
        Ok(())
    }
}

/// A step of a merge. What it read stays valid, except for recorded removals.
pub(in crate::index) struct Step<'s, F: Fingerprint> {
    committer: &'s Committer<F>,
    pass: MutexGuard<'s, Pass<F>>,
    pub(in crate::index) snapshot: Arc<Snapshot>,
}

/// Result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::index) struct Stepped {
    /// Number of entries merged into runs.
    pub(in crate::index) folded: u64,
    /// Whether the pass is complete.
    pub(in crate::index) ends_pass: bool,
    /// Whether a table may hold a delta entry.
    pub(in crate::index) more: bool,
}

impl<F: Fingerprint> Folds<F> {
    /// `singles` is true if the opened index may hold delta entries.
    pub(super) fn new(singles: bool) -> Self {
        Self {
            pass: Mutex::default(),
            removed: Mutex::default(),
            announced: AtomicU64::new(0),
            unfolded: AtomicU64::new(if singles { UNKNOWN } else { 0 }),
        }
    }

    /// Records the changes of a batch to the tables. The caller holds the writer lock.
    pub(super) fn announce(&self, singles: u64, removed: &[F]) {
        self.announced.fetch_add(singles, Ordering::Relaxed);
        self.unfolded.fetch_add(singles, Ordering::Relaxed);
        if let Some(noted) = &mut *self.removed() {
            noted.extend_from_slice(removed);
        }
    }

    pub(super) fn unfolded(&self) -> Option<u64> {
        Some(self.unfolded.load(Ordering::Relaxed)).filter(|unfolded| *unfolded < UNKNOWN)
    }

    fn removed(&self) -> MutexGuard<'_, Option<Vec<F>>> {
        self.removed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F: Fingerprint> Committer<F> {
    /// Makes the next step begin a new pass.
    pub(in crate::index) fn begin_fold(&self) {
        *self.folds.pass.lock().unwrap_or_else(PoisonError::into_inner) = Pass::default();
    }

    /// Waits until no other step runs, and takes the snapshot that this step reads.
    pub(in crate::index) fn fold_step(&self) -> Step<'_, F> {
        let mut pass = self.folds.pass.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = self.turn();
        if pass.announced.is_none() {
            // Announced delta entries are then in the tables, so the pass meets them.
            turn.wait_for_all();
            pass.announced = Some(self.folds.announced.load(Ordering::Relaxed));
        }
        // A removal commits under the writer lock: either the snapshot has it or it is recorded.
        *self.folds.removed() = Some(Vec::new());
        let snapshot = self.store.snapshot();
        drop(turn);
        Step { committer: self, pass, snapshot }
    }
}

impl<F: Fingerprint> Drop for Step<'_, F> {
    fn drop(&mut self) {
        *self.committer.folds.removed() = None;
    }
}

impl<F: Fingerprint> Step<'_, F> {
    pub(in crate::index) fn table(&self) -> usize {
        self.pass.table
    }

    pub(in crate::index) fn behind(&self) -> Option<F> {
        self.pass.behind
    }

    /// Commits the merged part of the table up to `behind`, or all of it for `None`.
    ///
    /// `permute` is the permutation of the table.
    pub(in crate::index) fn commit(
        mut self,
        merged: &[Merged<F>],
        behind: Option<F>,
        permute: impl Fn(F) -> F,
    ) -> Result<Stepped> {
        let committer = self.committer;
        let table = self.pass.table;
        let turn = committer.turn();
        let mut removed: Vec<F> =
            committer.folds.removed().iter().flatten().map(|orphan| permute(*orphan)).collect();
        removed.sort_unstable();
        let mut batch = committer.store.batch()?;
        let (mut folded, mut left) = (0, 0);
        for group in merged {
            let singles = group.singles.len() as u64;
            if group.holds_any(&removed) {
                left += singles;
            } else {
                folded += singles;
                group.stage(&mut batch, table)?;
            }
        }
        if folded > 0 {
            let flight = committer.flights.take_off(Vec::new());
            let held = Held::new();
            // Inserts continue meanwhile. Removals wait until nothing is in flight.
            drop(turn);
            fail_point!("fold.staged");
            sync::pause();
            batch.commit()?;
            fail_point!("fold.logged");
            drop(held);
            drop(flight);
        } else {
            drop(turn);
        }
        self.pass.left += left;
        self.pass.behind = behind;
        if behind.is_none() {
            self.pass.table += 1;
        }
        let ends_pass = self.pass.table == committer.store.tables();
        let more = !ends_pass || !self.end();
        Ok(Stepped { folded, ends_pass, more })
    }

    /// Ends the pass. Returns true if it leaves no delta entry.
    fn end(&mut self) -> bool {
        let Self { committer, pass, .. } = self;
        let committer: &Committer<F> = committer;
        let turn = committer.turn();
        let folds = &committer.folds;
        let announced = folds.announced.load(Ordering::Relaxed);
        let since = announced - pass.announced.expect("a pass begins with a step");
        folds.unfolded.store(since + pass.left, Ordering::Relaxed);
        let whole = since + pass.left == 0;
        if whole {
            committer.published().singles = false;
        }
        drop(turn);
        if whole {
            committer.withdraw();
        }
        **pass = Pass::default();
        whole
    }
}
