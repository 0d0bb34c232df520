//! Folds: merges delta entries into runs while others search and write.
//!
//! A merge does not change the set of a table, but it deletes the delta entries that it has read. A
//! write conflicts if it has replaced one of them since by its opposite: a removal that of an added
//! fingerprint, an insert that of a removed one. So writes are recorded while a step reads, and the
//! step leaves out the runs that they affect. Inserts of fingerprints that a step adds itself may
//! reach the log before or after it.
//!
//! A pass walks all tables once. Only merges create or cut runs, and only one step runs at a time,
//! so the part of a table behind a pass stays merged.

use std::sync::{Arc, PoisonError};

use super::Committer;
use super::unmerged::Epoch;
use crate::error::Result;
use crate::exclusion::Held;
use crate::fail_point::fail_point;
use crate::fingerprint::Fingerprint;
use crate::plan::Permutation;
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
    /// The delta entries written since the current step began to read.
    written: Mutex<Option<Written<F>>>,
    /// Number of delta entries that writes have announced since opening.
    announced: AtomicU64,
    /// How many of them the last pass did not merge, roughly. At least [`UNKNOWN`] before one.
    unmerged: AtomicU64,
}

/// Fingerprints by what writes made of them, in the order of writing.
#[derive(Debug, Default)]
struct Written<F> {
    added: Vec<F>,
    removed: Vec<F>,
}

impl<F: Fingerprint> Written<F> {
    /// Returns the fingerprints in the bit order of a table, ascending.
    fn permuted(&self, permute: impl Fn(F) -> F) -> Self {
        let sorted = |fingerprints: &[F]| {
            let mut permuted: Vec<F> = fingerprints.iter().map(|f| permute(*f)).collect();
            permuted.sort_unstable();
            permuted
        };
        Self { added: sorted(&self.added), removed: sorted(&self.removed) }
    }
}

/// A pass over all tables, in steps.
#[derive(Debug)]
struct Pass<F> {
    table: usize,
    /// The last delta entry of the table that a step looked at.
    behind: Option<F>,
    /// `None` before its first step.
    began: Option<Began<F>>,
    /// Number of delta entries left behind because of a conflicting write.
    left: u64,
    /// The added fingerprints among them.
    left_added: Vec<F>,
    /// Whether there are others.
    left_removed: bool,
}

impl<F> Default for Pass<F> {
    fn default() -> Self {
        let (table, behind, began, left, left_added, left_removed) = Default::default();
        Self { table, behind, began, left, left_added, left_removed }
    }
}

/// Where a pass began.
#[derive(Debug)]
struct Began<F> {
    /// Number of delta entries announced until then.
    announced: u64,
    /// What has been added since.
    since: Arc<Epoch<F>>,
}

/// A run that a step has read, merged with its delta entries and encoded again.
#[derive(Debug)]
pub(in crate::index) struct Merged<F> {
    /// Added fingerprints, which become members. Ascending.
    pub(in crate::index) added: Vec<F>,
    /// Removed fingerprints, which are no longer members. Ascending.
    pub(in crate::index) removed: Vec<F>,
    /// The key of the run that was read, if no new run has it.
    pub(in crate::index) deleted: Option<F>,
    /// Last member and value of each new run. Empty if the members stay the same.
    pub(in crate::index) runs: Vec<(F, Vec<u8>)>,
}

impl<F: Fingerprint> Merged<F> {
    /// Number of delta entries.
    fn len(&self) -> u64 {
        (self.added.len() + self.removed.len()) as u64
    }

    /// Returns true if a write has replaced a delta entry by its opposite.
    fn conflicts(&self, written: &Written<F>) -> bool {
        any_of(&self.added, &written.removed) || any_of(&self.removed, &written.added)
    }

    fn stage(&self, batch: &mut Batch<'_>, table: usize) -> Result<()> {
        for entry in self.added.iter().chain(&self.removed) {
            batch.delete_entry(table, Kind::Delta, *entry)?;
        }
        if let Some(last) = self.deleted {
            batch.delete_entry(table, Kind::Run, last)?;
        }
        for (last, value) in &self.runs {
            batch.put_run(table, *last, value)?;
        }
        Ok(())
    }
}

/// Returns true if two ascending lists have a fingerprint in common.
fn any_of<F: Fingerprint>(few: &[F], others: &[F]) -> bool {
    let (Some(first), Some(last)) = (few.first(), few.last()) else { return false };
    let from = others.partition_point(|other| other < first);
    let near = others.iter().skip(from).take_while(|other| *other <= last);
    near.into_iter().any(|other| few.binary_search(other).is_ok())
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
    pub(in crate::index) merged: u64,
    /// Whether the pass is complete.
    pub(in crate::index) ends_pass: bool,
    /// Whether a table may hold a delta entry.
    pub(in crate::index) more: bool,
}

impl<F: Fingerprint> Folds<F> {
    /// `delta_entries` is true if the opened index may hold delta entries.
    pub(super) fn new(delta_entries: bool) -> Self {
        Self {
            pass: Mutex::default(),
            written: Mutex::default(),
            announced: AtomicU64::new(0),
            unmerged: AtomicU64::new(if delta_entries { UNKNOWN } else { 0 }),
        }
    }

    /// Records the changes of a batch to the tables. The caller holds the writer lock.
    pub(super) fn announce(&self, added: &[F], removed: &[F]) {
        let entries = (added.len() + removed.len()) as u64;
        self.announced.fetch_add(entries, Ordering::Relaxed);
        self.unmerged.fetch_add(entries, Ordering::Relaxed);
        if let Some(written) = &mut *self.written() {
            written.added.extend_from_slice(added);
            written.removed.extend_from_slice(removed);
        }
    }

    pub(super) fn unmerged(&self) -> Option<u64> {
        Some(self.unmerged.load(Ordering::Relaxed)).filter(|unmerged| *unmerged < UNKNOWN)
    }

    fn written(&self) -> MutexGuard<'_, Option<Written<F>>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F: Fingerprint> Committer<F> {
    /// Makes the next step begin a new pass.
    pub(in crate::index) fn begin_fold(&self) {
        *self.folds.pass.lock().unwrap_or_else(PoisonError::into_inner) = Pass::default();
    }

    /// Waits until no other step runs, and takes the snapshot that this step reads.
    pub(in crate::index) fn merge_step(&self) -> Step<'_, F> {
        let mut pass = self.folds.pass.lock().unwrap_or_else(PoisonError::into_inner);
        // Announced delta entries are in the snapshot, and those announced later are recorded.
        let turn = self.turn_alone();
        pass.began.get_or_insert_with(|| Began {
            announced: self.folds.announced.load(Ordering::Relaxed),
            since: self.published().unmerged.begin(),
        });
        *self.folds.written() = Some(Written::default());
        let snapshot = self.store.snapshot();
        drop(turn);
        Step { committer: self, pass, snapshot }
    }
}

impl<F: Fingerprint> Drop for Step<'_, F> {
    fn drop(&mut self) {
        *self.committer.folds.written() = None;
    }
}

impl<F: Fingerprint> Step<'_, F> {
    pub(in crate::index) fn table(&self) -> usize {
        self.pass.table
    }

    pub(in crate::index) fn behind(&self) -> Option<F> {
        self.pass.behind
    }

    /// Commits the merged groups of the table up to `behind`, or all of it for `None`.
    pub(in crate::index) fn commit(
        mut self,
        groups: &[Merged<F>],
        behind: Option<F>,
        permutation: &Permutation,
    ) -> Result<Stepped> {
        let committer = self.committer;
        let table = self.pass.table;
        let turn = committer.turn();
        let written = match &*committer.folds.written() {
            Some(written) => written.permuted(|f| permutation.apply(f)),
            None => unreachable!("writes are recorded until the step ends"),
        };
        let mut batch = committer.store.batch()?;
        let (mut merged, mut removes) = (0, false);
        for group in groups {
            if group.conflicts(&written) {
                self.pass.left += group.len();
                let added = group.added.iter().map(|added| permutation.invert(*added));
                self.pass.left_added.extend(added);
                self.pass.left_removed |= !group.removed.is_empty();
            } else {
                merged += group.len();
                removes |= !group.removed.is_empty();
                group.stage(&mut batch, table)?;
            }
        }
        let commit = || {
            fail_point!("fold.staged");
            sync::pause();
            batch.commit()?;
            fail_point!("fold.logged");
            Ok(())
        };
        if merged == 0 {
            drop(turn);
        } else if removes {
            // An insert of a removed fingerprint must not reach the log before its entry is deleted.
            commit()?;
            drop(turn);
        } else {
            let flight = committer.flights.take_off(Vec::new());
            let held = Held::new();
            // Inserts continue meanwhile. Removals wait until nothing is in flight.
            drop(turn);
            commit()?;
            drop(held);
            drop(flight);
        }
        self.pass.behind = behind;
        if behind.is_none() {
            self.pass.table += 1;
        }
        let ends_pass = self.pass.table == committer.store.tables();
        let more = !ends_pass || !self.end();
        Ok(Stepped { merged, ends_pass, more })
    }

    /// Ends the pass. Returns true if it leaves no delta entry.
    fn end(&mut self) -> bool {
        let committer = self.committer;
        let Pass { began, left, left_added, left_removed, .. } = std::mem::take(&mut *self.pass);
        let Began { announced, since } = began.expect("a pass begins with a step");
        let turn = committer.turn();
        let unmerged = committer.folds.announced.load(Ordering::Relaxed) - announced + left;
        committer.folds.unmerged.store(unmerged, Ordering::Relaxed);
        let ended = committer.published().unmerged.end(&since, left_added, left_removed);
        drop(turn);
        // The published reader holds what the pass has taken in.
        committer.withdraw();
        drop(ended);
        unmerged == 0
    }
}
