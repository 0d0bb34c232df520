//! Folds: how singles become members of runs while others search and write.
//!
//! A fold leaves every table's set as it is, so inserts may reach the log before or after it. Only
//! a removal conflicts: a fold that read before it would put back what it took out. So removals
//! are noted while a step reads, and the step leaves out the runs that they concern.
//!
//! A pass goes through all tables once. Folds are the only ones that make or cut runs, and one
//! step is taken at a time, so what a pass has left behind it stays folded.

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

/// Singles of an index that was opened with some, which nobody counted.
const UNKNOWN: u64 = u64::MAX / 2;

/// What folds and the writers beside them know of each other.
#[derive(Debug)]
pub(super) struct Folds<F> {
    pass: Mutex<Pass<F>>,
    /// Fingerprints that lost their last document since the step at work began to read.
    removed: Mutex<Option<Vec<F>>>,
    /// Singles that writes announced since the index was opened.
    announced: AtomicU64,
    /// Those of them that the last pass did not meet, roughly; [`UNKNOWN`] and more before one.
    unfolded: AtomicU64,
}

/// A walk through all tables, of which every step folds a piece.
#[derive(Debug, Default)]
struct Pass<F> {
    table: usize,
    /// The last single of the table that a step looked at.
    behind: Option<F>,
    /// Singles that had been announced when it began; `None` before its first step.
    announced: Option<u64>,
    /// Singles that stay because a removal came between.
    left: u64,
}

/// A run or several that a step has read, merged and encoded.
#[derive(Debug)]
pub(in crate::index) struct Merged<F> {
    /// Singles that become members, rising.
    pub(in crate::index) singles: Vec<F>,
    /// All members, rising.
    pub(in crate::index) members: Vec<F>,
    /// Last member and value of each new run.
    pub(in crate::index) runs: Vec<(F, Vec<u8>)>,
}

impl<F: Fingerprint> Merged<F> {
    /// Tells whether any of some rising fingerprints is a member.
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

/// A step of a fold: what it read stays true, but for the removals that it learns of.
pub(in crate::index) struct Step<'s, F: Fingerprint> {
    committer: &'s Committer<F>,
    pass: MutexGuard<'s, Pass<F>>,
    pub(in crate::index) snapshot: Arc<Snapshot>,
}

/// What a step did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::index) struct Stepped {
    /// Entries that became members of runs.
    pub(in crate::index) folded: u64,
    /// Whether the pass came to its end.
    pub(in crate::index) ends_pass: bool,
    /// Whether a table may hold a single.
    pub(in crate::index) more: bool,
}

impl<F: Fingerprint> Folds<F> {
    /// `singles` tells whether the index may hold some when it is opened.
    pub(super) fn new(singles: bool) -> Self {
        Self {
            pass: Mutex::default(),
            removed: Mutex::default(),
            announced: AtomicU64::new(0),
            unfolded: AtomicU64::new(if singles { UNKNOWN } else { 0 }),
        }
    }

    /// Notes what a batch is about to do to the tables; the caller holds the writer lock.
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
    /// Lets the next step begin a new pass.
    pub(in crate::index) fn begin_fold(&self) {
        *self.folds.pass.lock().unwrap_or_else(PoisonError::into_inner) = Pass::default();
    }

    /// Waits until no other step is at work, and freezes what this one reads.
    pub(in crate::index) fn fold_step(&self) -> Step<'_, F> {
        let mut pass = self.folds.pass.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = self.turn();
        if pass.announced.is_none() {
            // What was announced is in the tables then, for the pass to meet.
            turn.wait_for_all();
            pass.announced = Some(self.folds.announced.load(Ordering::Relaxed));
        }
        // A removal holds the writer lock until it has committed: the snapshot has it, or it is noted.
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

    /// Commits what was merged of the table, up to the single `behind`, or all of it for `None`.
    ///
    /// `permute` is the order of bits in the table.
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
            committer.folds.removed().iter().flatten().map(|gone| permute(*gone)).collect();
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
            // Inserts go on meanwhile; removals wait until nothing is on its way.
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

    /// Ends the pass; returns true if it leaves no single behind.
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
