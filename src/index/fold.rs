//! Folding: single entries become members of runs, in bounded steps, beside other work.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use super::search::run_at;
use super::{Index, Shared};
use crate::error::{Error, Result};
use crate::fail_point::fail_point;
use crate::fingerprint::Fingerprint;
use crate::progress::{self, Progress};
use crate::store::keys::{self, Kind, TableKey};
use crate::store::run::{self, RUN_MEMBERS};
use crate::store::{Batch, Family, Store, View};

/// Entries that one step rewrites at most, before it lets other writers in.
const STEP_ENTRIES: usize = 1 << 16;

/// Members beyond which a rewritten run is cut.
const LONGEST_RUN: usize = RUN_MEMBERS + RUN_MEMBERS / 2;

/// How often the background thread looks for work.
const IDLE: Duration = Duration::from_millis(200);

/// Inserts that make the background thread begin.
///
/// A step rewrites whole runs, so folding a few entries at a time costs hundreds of bytes each.
const FOLD_AFTER: u64 = 1 << 16;

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
    /// Folds every single entry into runs, step by step.
    ///
    /// Each step is one atomic batch; searches and writes go on meanwhile. It ends when no
    /// single is left, so writers that never pause can keep it busy.
    ///
    /// # Errors
    ///
    /// [`Error::ReadOnly`], [`Error::Cancelled`], and damage or failures of the store. What
    /// was folded before stays folded.
    pub fn fold(&self, progress: &dyn Progress) -> Result<FoldReport> {
        let shared = &*self.shared;
        shared.store.require_writable()?;
        let bytes_before = shared.table_bytes()?;
        progress.begin("folding", None);
        let mut folded = 0;
        loop {
            progress::check(progress)?;
            let step = shared.fold_step()?;
            progress.advance(step.folded);
            folded += step.folded;
            if !step.more {
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
    /// [`Error::ReadOnly`] and failures of the store.
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

/// What one step did.
struct Step {
    folded: u64,
    more: bool,
}

impl<F: Fingerprint> Shared<F> {
    fn table_bytes(&self) -> Result<u64> {
        (0..self.store.tables()).map(|table| self.store.bytes(Family::Table(table))).sum()
    }

    fn all_bytes(&self) -> Result<u64> {
        Family::of_generation(self.store.tables()).map(|family| self.store.bytes(family)).sum()
    }

    /// Folds in the first table that holds singles.
    ///
    /// The writer lock spans reading and writing, so that no removal falls between.
    fn fold_step(&self) -> Result<Step> {
        let folded = self.committer.fold_step(|store| {
            let mut view = View::new(store.snapshot());
            for table in 0..store.tables() {
                let mut batch = store.batch()?;
                let folded = fold_table::<F>(&mut batch, &mut view, table)?;
                if folded > 0 {
                    return Ok(Some((batch, folded)));
                }
            }
            Ok(None)
        })?;
        Ok(Step { folded: folded.unwrap_or(0), more: folded.is_some() })
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

/// Stages the folding of a table's first singles and returns how many.
fn fold_table<F: Fingerprint>(batch: &mut Batch<'_>, view: &mut View, table: usize) -> Result<u64> {
    let singles = first_singles::<F>(view, table)?;
    let mut rest = singles.as_slice();
    let mut folded = 0;
    let mut rewritten = 0;
    while let Some(&first) = rest.first() {
        if rewritten >= STEP_ENTRIES {
            break;
        }
        let mut members = Vec::new();
        let last = run_at(view, table, first, &mut members)?;
        let count = last.map_or(rest.len(), |last| rest.partition_point(|s| *s <= last));
        let (inside, behind) = rest.split_at(count);
        rest = behind;
        for single in inside {
            batch.delete_entry(table, Kind::Single, *single)?;
        }
        members.extend_from_slice(inside);
        members.sort_unstable();
        members.dedup();
        rewritten += members.len();
        folded += inside.len() as u64;
        write_runs(batch, table, &members, last)?;
    }
    Ok(folded)
}

/// Reads the first singles of a table, as many as a step may fold.
fn first_singles<F: Fingerprint>(view: &mut View, table: usize) -> Result<Vec<F>> {
    view.table(table, |cursor| {
        let mut singles = Vec::new();
        cursor.seek(&[Kind::Single as u8]);
        while let Some((key, _)) = cursor.entry()? {
            let Some(single) = keys::permuted(key, Kind::Single, table)? else { break };
            singles.push(single);
            if singles.len() == STEP_ENTRIES {
                break;
            }
            cursor.next();
        }
        Ok(singles)
    })
}

/// Stages rising members as runs of even length in place of the run that ended at `replaced`.
fn write_runs<F: Fingerprint>(
    batch: &mut Batch<'_>,
    table: usize,
    members: &[F],
    replaced: Option<F>,
) -> Result<()> {
    let mut value = Vec::new();
    let runs = if members.len() <= LONGEST_RUN { 1 } else { members.len().div_ceil(RUN_MEMBERS) };
    for run in members.chunks(members.len().div_ceil(runs).max(1)) {
        let Some(last) = run.last() else { continue };
        run::encode(run, &mut value);
        batch.put_entry(table, Kind::Run, *last, &value)?;
    }
    // The members below a run's last one never pass it, so its key is written again above.
    debug_assert!(replaced.is_none() || replaced == members.last().copied());
    Ok(())
}

/// The thread that folds while an index is open.
#[derive(Debug)]
pub(super) struct Folder {
    stop: Arc<(AtomicBool, Mutex<()>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Folder {
    pub(super) fn spawn<F: Fingerprint>(shared: &Arc<Shared<F>>) -> Result<Self> {
        let stop = Arc::new((AtomicBool::new(false), Mutex::new(()), Condvar::new()));
        let signal = Arc::clone(&stop);
        let weak = Arc::downgrade(shared);
        let thread = std::thread::Builder::new()
            .name("hamdex-fold".to_owned())
            .spawn(move || fold_until(&signal, &weak))
            .map_err(|e| Error::io(shared.store.path(), e))?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.stop.0.store(true, Ordering::Release);
        self.stop.2.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was reported where it happened; nothing is left to undo.
            let _ = thread.join();
        }
    }
}

/// Folds whenever there is something, until told to stop or the index is gone.
///
/// A failing step ends the thread: the next write or fold of the handle meets the same failure
/// and reports it to a caller.
fn fold_until<F: Fingerprint>(
    (stop, mutex, wake): &(AtomicBool, Mutex<()>, Condvar),
    shared: &Weak<Shared<F>>,
) {
    while !stop.load(Ordering::Acquire) {
        let Some(shared) = shared.upgrade() else { return };
        let due = shared.committer.unfolded() >= FOLD_AFTER;
        let more = match due.then(|| shared.fold_step()) {
            Some(Ok(step)) if step.more => true,
            Some(Ok(_)) => {
                if shared.clear_singles().is_err() {
                    return;
                }
                false
            }
            Some(Err(_)) => return,
            None => false,
        };
        drop(shared);
        if !more {
            let guard = mutex.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = wake.wait_timeout(guard, IDLE);
        }
    }
}
