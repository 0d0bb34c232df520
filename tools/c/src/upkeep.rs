//! Maintenance: statistics, consistency check, flush and merge.

use std::mem::MaybeUninit;

use hamdex::inspect::CheckReport;

use crate::error::{HamdexError, free, guard, guard_or, required, write_to};
use crate::index::HamdexIndex;
use crate::slices::HamdexBytes;

/// Counts and sizes of an index.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct HamdexStats {
    /// Stored documents.
    pub documents: u64,
    /// Distinct fingerprints among them.
    pub fingerprints: u64,
    /// Delta entries, which apply to all tables.
    pub singles: u64,
    /// Runs of the first table.
    pub runs: u64,
    /// Bytes of the document records.
    pub bytes_docs: u64,
    /// Bytes of the postings.
    pub bytes_postings: u64,
    /// Bytes of all tables.
    pub bytes_tables: u64,
}

/// The result of a consistency check.
///
/// Immutable, so any number of threads may read it. Owned by the caller; free with
/// `hamdex_check_free`.
#[derive(Debug)]
pub struct HamdexCheck(CheckReport);

/// Computes statistics by reading the whole index once.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_index_stats(
    index: Option<&HamdexIndex>,
    stats: Option<&mut MaybeUninit<HamdexStats>>,
) -> Option<Box<HamdexError>> {
    guard(|| {
        let out = required(stats, "stats")?;
        let counted = required(index, "index")?.0.stats(&())?;
        out.write(HamdexStats {
            documents: counted.documents,
            fingerprints: counted.fingerprints,
            singles: counted.delta_entries,
            runs: counted.runs,
            bytes_docs: counted.bytes_docs,
            bytes_postings: counted.bytes_postings,
            bytes_tables: counted.bytes_tables,
        });
        Ok(())
    })
}

/// Reads the whole index and compares tables and postings with the documents.
///
/// Problems are not an error of the call; `*check` lists them. `*check` is owned by the caller, and
/// NULL after an error.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_index_check(
    index: Option<&HamdexIndex>,
    check: Option<&mut MaybeUninit<Option<Box<HamdexCheck>>>>,
) -> Option<Box<HamdexError>> {
    guard(|| {
        let out = required(check, "check")?.write(None);
        let report = required(index, "index")?.0.check(&())?;
        *out = Some(Box::new(HamdexCheck(report)));
        Ok(())
    })
}

/// Returns the number of documents that were read; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_check_documents(check: Option<&HamdexCheck>) -> u64 {
    guard_or(0, || check.map_or(0, |check| check.0.documents))
}

/// Returns the number of problems; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_check_problems(check: Option<&HamdexCheck>) -> u64 {
    guard_or(0, || check.map_or(0, |check| check.0.problem_count))
}

/// Returns the description of the problem with an index, starting at 0; owned by the check.
///
/// The first thousand are kept. Empty for an index past the end, and for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_check_problem(check: Option<&HamdexCheck>, at: usize) -> HamdexBytes {
    guard_or(HamdexBytes::NONE, || {
        let problem = check.and_then(|check| check.0.problems.get(at));
        problem.map_or(HamdexBytes::NONE, |problem| HamdexBytes::of(problem.as_bytes()))
    })
}

/// Frees a check; does nothing for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_check_free(check: Option<Box<HamdexCheck>>) {
    free(check);
}

/// Writes the write buffers to table files; the log already contains them.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_index_flush(index: Option<&HamdexIndex>) -> Option<Box<HamdexError>> {
    guard(|| Ok(required(index, "index")?.0.flush()?))
}

/// Merges all delta entries into runs, which makes searches faster and the index smaller.
///
/// `*merged` is the number of merged entries over all tables; it may be NULL. Searches and writes
/// continue during the merge.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_index_merge(
    index: Option<&HamdexIndex>,
    merged: Option<&mut MaybeUninit<u64>>,
) -> Option<Box<HamdexError>> {
    guard(|| {
        let report = required(index, "index")?.0.merge(&())?;
        write_to(merged, report.merged);
        Ok(())
    })
}

/// The former name of `hamdex_index_merge`.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_index_fold(
    index: Option<&HamdexIndex>,
    folded: Option<&mut MaybeUninit<u64>>,
) -> Option<Box<HamdexError>> {
    hamdex_index_merge(index, folded)
}
