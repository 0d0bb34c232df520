//! Folds: merges delta entries into runs while others search and write.
//!
//! A pass reads the delta entries of a snapshot, merges them into the runs of one table after the
//! other, in steps, and deletes their delta runs last, in order. Until then they override the runs, so
//! the set of a table is the same at any moment. Only merges create or cut runs, only one step runs at
//! a time, and no write replaces a delta run: a step conflicts with nobody.

use std::sync::{Arc, PoisonError};

use super::Committer;
use super::offer::{Offer, Offers};
use super::taken::Taken;
use super::unmerged::{Demand, Epoch};
use crate::error::Result;
use crate::exclusion::{self, Held};
use crate::fail_point::fail_point;
use crate::fingerprint::Fingerprint;
use crate::index::read::deltas::Deltas;
use crate::plan::Table;
use crate::store::keys::{Delta, Kind};
use crate::store::{Batch, Snapshot};
use crate::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use crate::sync::{self, Mutex, MutexGuard};

/// Delta runs deleted in one batch.
const DELETED_TOGETHER: usize = if cfg!(any(test, feature = "model")) { 4 } else { 1 << 10 };

/// Fewest delta entries for which a pass begins if memory is short.
pub(in crate::index) const LEAST_WORTH: u64 = 1 << 14;

/// Fewest delta entries that a pass takes in, if there are more than fit in memory.
const LEAST_TOGETHER: usize = 1 << 16;

/// Entries for which a step counts that merged fewer, such as one that deletes.
const LEAST_PAID: u64 = 1 << 11;

/// Shared state of merges and writers.
#[derive(Debug)]
pub(super) struct Folds<F> {
    pass: Mutex<Option<Pass<F>>>,
    /// A batch of the last step. Whoever takes it back holds the pass.
    offers: Offers,
    /// Number of delta entries that writes have announced since opening.
    announced: AtomicU64,
    /// Number of delta entries that are not merged, roughly.
    unmerged: AtomicU64,
    /// Number of delta entries for which writers have not merged, below 0 if they did more.
    owed: AtomicI64,
    /// Number of the next delta run.
    next_run: AtomicU64,
    /// Number of passes that ended and took in everything.
    ended: AtomicU64,
}

/// A pass over all tables, in steps.
#[derive(Debug)]
struct Pass<F> {
    /// Number of delta entries announced until it began.
    announced: u64,
    /// What has been added since.
    since: Arc<Epoch<F>>,
    taken: Taken<F>,
    /// Number of delta entries that it began with.
    count: u64,
    /// Whether these are all that there were.
    complete: bool,
    /// The table that is merged; behind the last one, the delta entries are deleted.
    table: usize,
    /// How many delta entries are done, in the order of that table.
    done: usize,
    /// How many delta runs are deleted.
    deleted: usize,
    /// What will be done once the batch is committed that the last step left to writers.
    offered: Option<Progress>,
}

/// What a batch of a pass does.
#[derive(Debug, Clone, Copy)]
enum Progress {
    /// Merges delta entries into the runs of the present table.
    Merged(usize),
    /// Deletes delta runs.
    Deleted(usize),
}

impl<F: Fingerprint> Pass<F> {
    /// Turns to a table. There is none behind the last one.
    fn turn_to(&mut self, table: usize, tables: &[Table]) {
        self.table = table;
        self.done = 0;
        if let Some(table) = tables.get(table) {
            self.taken.turn_to(table);
        }
    }

    /// Continues behind a batch that is committed.
    fn advance(&mut self, progress: Progress, tables: &[Table]) {
        match progress {
            Progress::Merged(entries) => {
                self.done += entries;
                if self.done == self.taken.entries().len() {
                    self.turn_to(self.table + 1, tables);
                }
            }
            Progress::Deleted(runs) => self.deleted += runs,
        }
    }
}

/// Runs of a table, merged with their delta entries and encoded again.
#[derive(Debug)]
pub(in crate::index) struct Merged<F> {
    /// Keys of runs that were read and that no new run has.
    pub(in crate::index) deleted: Vec<F>,
    /// Last member and value of each new run.
    pub(in crate::index) runs: Vec<(F, Vec<u8>)>,
    /// Number of delta entries taken in.
    pub(in crate::index) deltas: usize,
}

/// A step of a merge.
pub(in crate::index) struct Step<'s, F: Fingerprint> {
    committer: &'s Committer<F>,
    pass: MutexGuard<'s, Option<Pass<F>>>,
    /// Whether it leaves its batch to writers.
    offers: bool,
}

/// Result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::index) struct Stepped {
    /// Number of entries merged into runs.
    pub(in crate::index) merged: u64,
    /// Whether the pass is complete.
    pub(in crate::index) ends_pass: bool,
    /// Whether the index may hold a delta entry.
    pub(in crate::index) more: bool,
}

impl Stepped {
    fn merged(merged: usize) -> Self {
        Self { merged: merged as u64, ends_pass: false, more: true }
    }
}

impl<F: Fingerprint> Folds<F> {
    /// `unmerged` is the number of delta entries of the opened index, and no delta run has the
    /// number `next_run` or a higher one.
    pub(super) fn new(unmerged: u64, next_run: u64) -> Self {
        Self {
            pass: Mutex::new(None),
            offers: Offers::default(),
            announced: AtomicU64::new(0),
            unmerged: AtomicU64::new(unmerged),
            owed: AtomicI64::new(0),
            next_run: AtomicU64::new(next_run),
            ended: AtomicU64::new(0),
        }
    }

    /// Returns a number for a delta run. The caller holds the writer lock.
    pub(super) fn next_run(&self) -> u64 {
        self.next_run.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts the delta entries of a batch. The caller holds the writer lock.
    pub(super) fn announce(&self, entries: usize) {
        let entries = entries as u64;
        self.announced.fetch_add(entries, Ordering::Relaxed);
        self.unmerged.fetch_add(entries, Ordering::Relaxed);
        self.owed.fetch_add(entries.cast_signed(), Ordering::Relaxed);
    }

    pub(super) fn unmerged(&self) -> u64 {
        self.unmerged.load(Ordering::Relaxed)
    }
}

impl<F: Fingerprint> Committer<F> {
    /// Makes the next step begin a new pass.
    pub(in crate::index) fn begin_fold(&self) {
        let mut pass = self.folds.pass.lock().unwrap_or_else(PoisonError::into_inner);
        *pass = None;
        // It need not be committed, and must not be once the next pass has read the runs.
        drop(self.folds.offers.take());
        self.ranges.end_change();
    }

    /// Returns how many passes have ended that took in everything, also by steps of writers.
    pub(in crate::index) fn ended_folds(&self) -> u64 {
        self.folds.ended.load(Ordering::Relaxed)
    }

    #[cfg(test)]
    pub(in crate::index) fn is_folding(&self) -> bool {
        self.folds.pass.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Makes the batch fail that a step has left.
    #[cfg(test)]
    pub(in crate::index) fn fail_offer(&self) {
        let source = std::io::Error::other("a test made the commit fail");
        self.folds.offers.serve(|_| Err(crate::Error::io("log", source)));
    }

    /// Waits until no other step runs. Begins a pass if there is none.
    pub(in crate::index) fn merge_step(&self) -> Result<Step<'_, F>> {
        self.step(self.folds.pass.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns a step that a writer should run, because memory is short.
    ///
    /// Waits until no other step runs if memory is nearly full, and otherwise leaves it to that one.
    /// The thread that merges may not get a processor for a long time: then no other step would run.
    pub(in crate::index) fn step_of_writer(&self) -> Result<Option<Step<'_, F>>> {
        let demand = self.demand();
        if demand == Demand::Nothing {
            self.folds.owed.store(0, Ordering::Relaxed);
            return Ok(None);
        }
        if self.folds.owed.load(Ordering::Relaxed) <= 0 || exclusion::alone() {
            return Ok(None);
        }
        let pass = match (self.folds.pass.try_lock(), demand) {
            (Ok(pass), _) => pass,
            (Err(_), Demand::Most) => {
                self.folds.pass.lock().unwrap_or_else(PoisonError::into_inner)
            }
            (Err(_), _) => return Ok(None),
        };
        self.step(pass).map(Some)
    }

    /// Credits writers with a step, so that a pass ends before memory does.
    ///
    /// It takes in at most half of the memory, or at most four fifths.
    pub(in crate::index) fn paid(&self, merged: u64) {
        let times = if self.demand() == Demand::Most { 8 } else { 2 };
        let entries = merged.max(LEAST_PAID) / (times * self.store.tables() as u64);
        self.folds.owed.fetch_sub(entries.cast_signed(), Ordering::Relaxed);
    }

    fn demand(&self) -> Demand {
        if self.folds.unmerged() < LEAST_WORTH {
            return Demand::Nothing;
        }
        self.look(|published| published.unmerged.demand())
    }

    fn step<'s>(&'s self, pass: MutexGuard<'s, Option<Pass<F>>>) -> Result<Step<'s, F>> {
        let mut step = Step { committer: self, pass, offers: false };
        self.settle(&mut step.pass)?;
        if step.pass.is_none() {
            *step.pass = Some(self.begin_pass()?);
        }
        Ok(step)
    }

    /// Continues behind the batch that the last step left, and commits it if no writer did.
    ///
    /// If that failed, the next step repeats it.
    fn settle(&self, pass: &mut Option<Pass<F>>) -> Result<()> {
        let Some((pass, progress)) =
            pass.as_mut().and_then(|pass| pass.offered.take().map(|progress| (pass, progress)))
        else {
            return Ok(());
        };
        match self.folds.offers.take() {
            Offer::Waits(changes) => self.commit_beside(Batch::attach(&self.store, changes)?)?,
            Offer::Committed(result) => result?,
            Offer::Nothing => return Ok(()),
        }
        self.ranges.end_change();
        pass.advance(progress, self.core.plan.tables());
        Ok(())
    }

    /// Commits a batch of a merge while inserts continue.
    fn commit_beside(&self, batch: Batch<'_>) -> Result<()> {
        let turn = self.turn();
        let _flight = turn.take_off();
        let _held = Held::new();
        drop(turn);
        commit(batch)
    }

    /// Commits the batch that a merge has left, if there is one.
    ///
    /// The caller has the turn or a batch in flight, and has published what it wrote.
    pub(super) fn serve_merge(&self) {
        self.folds.offers.serve(|changes| commit(Batch::attach(&self.store, changes)?));
    }

    fn begin_pass(&self) -> Result<Pass<F>> {
        // Announced delta entries are in the snapshot.
        let turn = self.turn_alone();
        let announced = self.folds.announced.load(Ordering::Relaxed);
        let (since, most) = {
            let unmerged = &mut self.published().unmerged;
            (unmerged.begin(), unmerged.most().max(LEAST_TOGETHER))
        };
        let snapshot = self.store.snapshot();
        drop(turn);
        let tables = self.core.plan.tables();
        let (deltas, complete) = Deltas::some(&snapshot, tables, most)?;
        self.ranges.begin_pass(deltas.len());
        let mut pass = Pass {
            announced,
            since,
            count: deltas.len() as u64,
            taken: Taken::new(deltas),
            complete,
            table: 0,
            done: 0,
            deleted: 0,
            offered: None,
        };
        pass.turn_to(if pass.count > 0 { 0 } else { tables.len() }, tables);
        Ok(pass)
    }
}

impl<F: Fingerprint> Step<'_, F> {
    /// Makes the step leave its batch to the next writer. Another step must follow soon.
    pub(in crate::index) fn offering(mut self) -> Self {
        self.offers = true;
        self
    }

    fn pass(&mut self) -> &mut Pass<F> {
        self.pass.as_mut().expect("a step is made with a pass, and ends with it")
    }

    /// Merges the next delta entries with the runs of their table by `merge`, or deletes some.
    pub(in crate::index) fn run(
        mut self,
        merge: impl FnOnce(&Snapshot, usize, &[(F, Delta)]) -> Result<Merged<F>>,
    ) -> Result<Stepped> {
        let committer = self.committer;
        let pass = self.pass();
        if pass.table == committer.store.tables() {
            return self.delete();
        }
        let ahead = pass.taken.entries().get(pass.done..).unwrap_or_default();
        let merged = merge(&committer.store.snapshot(), pass.table, ahead)?;
        let progress = Progress::Merged(merged.deltas);
        let changes = merged.deleted.len() + merged.runs.len();
        if changes == 0 {
            pass.advance(progress, committer.core.plan.tables());
            return Ok(Stepped::merged(merged.deltas));
        }
        let mut batch = committer.store.batch()?;
        for last in &merged.deleted {
            batch.delete_entry(pass.table, Kind::Run, *last)?;
        }
        for (last, value) in &merged.runs {
            batch.put_run(pass.table, *last, value)?;
        }
        let entries = ahead.iter().take(merged.deltas).map(|(entry, _)| *entry);
        committer.ranges.begin_change(pass.table, entries);
        self.commit(batch, progress)?;
        Ok(Stepped::merged(merged.deltas))
    }

    /// Deletes the next delta runs, which all tables have taken in, or ends the pass.
    fn delete(mut self) -> Result<Stepped> {
        let committer = self.committer;
        let pass = self.pass();
        if pass.deleted == 0 {
            // Searches must find in runs what they may no longer find in memory or in the log.
            committer.withdraw_runs();
        }
        let rest = pass.taken.runs().get(pass.deleted..).unwrap_or_default();
        if !rest.is_empty() {
            let mut batch = committer.store.batch()?;
            let some = rest.get(..DELETED_TOGETHER).unwrap_or(rest);
            for name in some {
                batch.delete_delta_run(*name)?;
            }
            let progress = Progress::Deleted(some.len());
            self.commit(batch, progress)?;
            return Ok(Stepped::merged(0));
        }
        let complete = pass.complete;
        let more = !self.end(complete);
        Ok(Stepped { merged: 0, ends_pass: complete, more })
    }

    /// Commits the batch of the step, or leaves it to writers.
    fn commit(&mut self, batch: Batch<'_>, progress: Progress) -> Result<()> {
        let committer = self.committer;
        if self.offers {
            self.pass().offered = Some(progress);
            committer.folds.offers.leave(batch.detach());
            return Ok(());
        }
        committer.commit_beside(batch)?;
        committer.ranges.end_change();
        self.pass().advance(progress, committer.core.plan.tables());
        Ok(())
    }

    /// Ends the pass. Returns true if it leaves no delta entry.
    fn end(&mut self, complete: bool) -> bool {
        let committer = self.committer;
        let pass = self.pass.take().expect("a step is made with a pass, and ends with it");
        let turn = committer.turn();
        let unmerged = if complete {
            committer.folds.announced.load(Ordering::Relaxed) - pass.announced
        } else {
            committer.folds.unmerged().saturating_sub(pass.count).max(1)
        };
        committer.folds.unmerged.store(unmerged, Ordering::Relaxed);
        committer.folds.ended.fetch_add(u64::from(complete), Ordering::Relaxed);
        let ended = complete.then(|| committer.published().unmerged.end(&pass.since));
        drop(turn);
        // The published reader holds what the pass has taken in.
        committer.withdraw();
        drop(ended);
        unmerged == 0
    }
}

/// Commits a batch of a merge.
fn commit(batch: Batch<'_>) -> Result<()> {
    fail_point!("fold.staged");
    sync::pause();
    batch.commit()?;
    fail_point!("fold.logged");
    Ok(())
}
