//! Merging: merges delta entries into runs in small steps, beside all other work.

mod merge;
#[cfg(test)]
mod tests;
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
    /// Searches and writes continue and wait for no step. Each step is one atomic batch of about 180
    /// KB. Until the pass ends, it takes 16 bytes of memory for each 64-bit delta entry. Delta entries
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
    /// In an index of a bulk build with packs, also packs documents that were inserted since. Takes
    /// time and disk space in proportion to the index, and up to two bytes of memory for each of these
    /// documents, at most 64 MiB. Searches and writes continue; what they remove meanwhile may keep its
    /// space until the next call.
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
        shared.store.flush()?;
        fail_point!("compact.flushed");
        for family in shared.store.families() {
            shared.store.compact(family, None, None)?;
            fail_point!("compact.family");
        }
        shared.committer.withdraw_runs();
        Ok(CompactReport { bytes_before, bytes_after: shared.all_bytes()? })
    }
}

impl<F: Fingerprint> Shared<F> {
    fn fold_all(&self, progress: &dyn Progress) -> Result<u64> {
        self.committer.begin_fold();
        let mut merged = 0;
        loop {
            progress::check(progress)?;
            let step = self.merge_step()?;
            progress.advance(step.merged);
            merged += step.merged;
            if step.ends_pass {
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

    /// Continues after the last step, and leaves the batch to the next writer.
    pub(super) fn offering_step(&self) -> Result<Stepped> {
        self.committer.merge_step()?.offering().run(merge)
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
        let to = TableKey::end(Kind::DeltaRun);
        self.store.compact(Family::Table(0), Some(&from), Some(&to))?;
        fail_point!("fold.compacted");
        // The cursors of the old reader keep the old files.
        self.committer.withdraw_runs();
        Ok(())
    }
}
