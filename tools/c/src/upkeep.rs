//! Upkeep: counts, consistency check, flush and fold.

use std::mem::MaybeUninit;

use hamdex::inspect::CheckReport;

use crate::border::{end, give, guard, guard_or, required};
use crate::error::HamdexError;
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
    /// Entries of the first table that are not in runs yet.
    pub singles: u64,
    /// Runs of the first table.
    pub runs: u64,
    /// Bytes of the documents' records.
    pub bytes_docs: u64,
    /// Bytes of the postings.
    pub bytes_postings: u64,
    /// Bytes of all permutation tables.
    pub bytes_tables: u64,
}

/// What a consistency check found.
///
/// It never changes, so that any number of threads may read it. Owned by the caller, who ends it
/// with `hamdex_check_free`.
#[derive(Debug)]
pub struct HamdexCheck(CheckReport);

/// Counts entries and bytes by reading everything once.
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
            singles: counted.singles,
            runs: counted.runs,
            bytes_docs: counted.bytes_docs,
            bytes_postings: counted.bytes_postings,
            bytes_tables: counted.bytes_tables,
        });
        Ok(())
    })
}

/// Reads everything and compares every table and posting with the documents.
///
/// Problems are no error; they are in `*check`, which is the caller's to free, and NULL after an
/// error.
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

/// Returns how many documents were read; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_check_documents(check: Option<&HamdexCheck>) -> u64 {
    guard_or(0, || check.map_or(0, |check| check.0.documents))
}

/// Returns how many problems there are; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_check_problems(check: Option<&HamdexCheck>) -> u64 {
    guard_or(0, || check.map_or(0, |check| check.0.problem_count))
}

/// Returns a problem's words by its number from 0; they belong to the check.
///
/// The first thousand are kept. Behind the last one, and for NULL, there are no bytes.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_check_problem(check: Option<&HamdexCheck>, at: usize) -> HamdexBytes {
    guard_or(HamdexBytes::NONE, || {
        let problem = check.and_then(|check| check.0.problems.get(at));
        problem.map_or(HamdexBytes::NONE, |problem| HamdexBytes::of(problem.as_bytes()))
    })
}

/// Ends a check; nothing happens for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_check_free(check: Option<Box<HamdexCheck>>) {
    end(check);
}

/// Writes what is in memory to table files; the log already holds it.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_index_flush(index: Option<&HamdexIndex>) -> Option<Box<HamdexError>> {
    guard(|| Ok(required(index, "index")?.0.flush()?))
}

/// Folds every single entry into runs, which makes searches faster and the index smaller.
///
/// `*folded` tells how many there were, over all tables; it may be NULL. Searches and writes go
/// on meanwhile.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_index_fold(
    index: Option<&HamdexIndex>,
    folded: Option<&mut MaybeUninit<u64>>,
) -> Option<Box<HamdexError>> {
    guard(|| {
        let report = required(index, "index")?.0.fold(&())?;
        give(folded, report.folded);
        Ok(())
    })
}
