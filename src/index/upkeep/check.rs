//! Consistency check: reads every record and compares every family with the documents.
//!
//! Families are compared by order-independent sums of strong hashes, so memory is bounded at any
//! size. Only if sums differ, a second pass searches for the faulty entries.

use xxhash_rust::xxh3::xxh3_128;

use crate::error::{Error, Fault, Result, add_problem, note_problem};
use crate::fingerprint::Fingerprint;
use crate::index::Index;
use crate::index::pipeline;
use crate::index::read::deltas::Deltas;
use crate::index::read::entries::Entries;
use crate::index::read::reader::Reader;
use crate::index::read::search::is_in_run;
use crate::plan::Table;
use crate::progress::{self, Progress};
use crate::store::codec::{self, Document};
use crate::store::keys::Delta;
use crate::store::{self, Family, keys, resources};
use crate::verify::FeatureSet;

/// Entries between two reports of progress.
const REPORT_EVERY: u64 = 1 << 14;

/// Result of a consistency check.
///
/// ```
/// use hamdex::inspect::CheckReport;
/// # let directory = tempfile::tempdir().unwrap();
/// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
///
/// index.insert(b"page", 0xff)?;
/// let report: CheckReport = index.check(&())?;
/// assert_eq!((report.documents, report.fingerprints), (1, 1));
/// assert!(report.problems.is_empty(), "{:?}", report.problems);
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CheckReport {
    /// Number of documents read.
    pub documents: u64,
    /// Number of distinct fingerprints in the postings.
    pub fingerprints: u64,
    /// Up to a thousand problems, described in words.
    pub problems: Vec<String>,
    /// Total number of problems.
    pub problem_count: u64,
}

impl CheckReport {
    fn problem(&mut self, text: String) {
        add_problem(text, &mut self.problems, &mut self.problem_count);
    }

    /// Adds damage to the problems. Returns failures of the environment.
    fn note(&mut self, error: Error) -> Result<()> {
        note_problem(error, &mut self.problems, &mut self.problem_count)
    }
}

impl<F: Fingerprint> Index<F> {
    /// Reads everything and compares every table and posting with the documents.
    ///
    /// Problems are reported in the result, not returned as errors. Changes nothing, and blocks
    /// neither searches nor writers. `progress` may be `&()`.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
    /// index.insert(b"page", 0xff)?;
    /// let report = index.check(&())?;
    /// assert_eq!((report.documents, report.problem_count), (1, 0));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::Cancelled`] and failures of the environment.
    pub fn check(&self, progress: &dyn Progress) -> Result<CheckReport> {
        let reader = self.reader()?;
        let mut check =
            Check { reader: &reader, progress, report: CheckReport::default(), read: 0 };
        check.run(self.plan().tables())?;
        Ok(check.report)
    }
}

impl<F: Fingerprint> Index<F> {
    /// Checks like [`Index::check`], then reads every file again and verifies its checksums.
    ///
    /// This bypasses all caches. It also finds damage in blocks that were cached before the damage,
    /// in replaced data that still exists, in the log and in the seal, and in the file of
    /// [`save_resident`](Self::save_resident) if it is of the present state. On a writing handle,
    /// writers wait while the log is read.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
    /// index.insert(b"page", 0xff)?;
    /// assert!(index.check_deep(&())?.problems.is_empty());
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Index::check`], and [`Error::Attached`] for a host's database.
    pub fn check_deep(&self, progress: &dyn Progress) -> Result<CheckReport> {
        self.shared.store.require_own("read its files for damage")?;
        let mut report = self.check(progress)?;
        progress.begin("reading files", None);
        if let Err(error) = self.check_saved_resident() {
            report.note(error)?;
        }
        let mut writers = Some(self.shared.committer.turn_alone());
        let mut read = 0_u64;
        store::read_files(self.shared.store.path(), &mut |error| report.note(error), &mut || {
            writers = None;
            read += 1;
            if read.is_multiple_of(REPORT_EVERY) {
                progress.advance(REPORT_EVERY);
                progress::check(progress)?;
            }
            Ok(())
        })?;
        Ok(report)
    }
}

/// An order-independent digest of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Tally {
    count: u64,
    sum: u128,
}

impl Tally {
    fn add(&mut self, bytes: &[u8]) {
        self.count += 1;
        self.sum = self.sum.wrapping_add(xxh3_128(bytes));
    }
}

struct Check<'a, F: Fingerprint> {
    reader: &'a Reader<F>,
    progress: &'a dyn Progress,
    report: CheckReport,
    read: u64,
}

impl<F: Fingerprint> Check<'_, F> {
    fn run(&mut self, tables: &[Table]) -> Result<()> {
        let passes = 2 + tables.len() as u64;
        self.progress.begin("checking", Some(self.reader.len() * passes));
        progress::check(self.progress)?;
        self.resources()?;
        let docs = self.docs()?;
        let (postings, fingerprints) = self.postings()?;
        self.report.documents = docs.count;
        self.report.fingerprints = fingerprints.count;
        if docs.count != self.reader.len() && self.report.problem_count == 0 {
            self.report.problem(format!(
                "meta: the count is {} documents, {} are stored",
                self.reader.len(),
                docs.count
            ));
        }
        if docs != postings {
            self.name_postings()?;
        }
        let deltas = match Deltas::of(self.reader.snapshot(), tables) {
            Ok(deltas) => Some(deltas),
            Err(error) => {
                self.report.note(error)?;
                None
            }
        };
        for (number, table) in tables.iter().enumerate() {
            let deltas = deltas.as_ref().map(|deltas| deltas.permuted(table.permutation()));
            if let Err(error) = self.table(number, table, deltas.as_deref(), fingerprints) {
                self.report.note(error)?;
            }
        }
        Ok(())
    }

    /// Reads the resources of the pipeline and compares them with the header.
    fn resources(&mut self) -> Result<()> {
        let snapshot = std::sync::Arc::clone(self.reader.snapshot());
        let get = |key: &[u8]| snapshot.get(Family::Meta, key);
        let descriptor = &self.reader.header().pipeline;
        match pipeline::checked(descriptor, |name| resources::read(name, get)) {
            Ok(_) => Ok(()),
            Err(error) => self.report.note(error),
        }
    }

    fn tick(&mut self) -> Result<()> {
        self.read += 1;
        if self.read.is_multiple_of(REPORT_EVERY) {
            self.progress.advance(REPORT_EVERY);
            progress::check(self.progress)?;
        }
        Ok(())
    }

    /// Returns the digest of the postings that the documents should have.
    fn docs(&mut self) -> Result<Tally> {
        let mut tally = Tally::default();
        let mut posting = Vec::new();
        let snapshot = std::sync::Arc::clone(self.reader.snapshot());
        let mut cursor = snapshot.sweep(Family::Docs)?;
        loop {
            match cursor.entry() {
                Ok(None) => break,
                Ok(Some((key, bytes))) => match codec::decode::<Document<F>>("docs", key, bytes) {
                    Ok(document) => {
                        keys::posting_into(&mut posting, document.fingerprint, key);
                        tally.add(&posting);
                        if let Some(features) = &document.features
                            && let Err(error) = FeatureSet::check(features)
                        {
                            let key = key.escape_ascii();
                            self.report.problem(format!("document {key}: {error}"));
                        }
                    }
                    Err(error) => self.report.note(error)?,
                },
                Err(error) => {
                    self.report.note(error)?;
                    if cursor.damaged_up_to().is_none() {
                        break;
                    }
                }
            }
            self.tick()?;
            cursor.next();
        }
        Ok(tally)
    }

    /// Returns the digests of the postings and of their distinct fingerprints.
    fn postings(&mut self) -> Result<(Tally, Tally)> {
        let (mut all, mut distinct) = (Tally::default(), Tally::default());
        let mut last = None;
        let snapshot = std::sync::Arc::clone(self.reader.snapshot());
        let mut cursor = snapshot.sweep(Family::Postings)?;
        loop {
            match cursor.entry() {
                Ok(None) => break,
                Ok(Some((key, _))) => match keys::split_posting::<F>(key) {
                    Ok((fingerprint, _)) => {
                        all.add(key);
                        if last != Some(fingerprint) {
                            distinct.add(fingerprint.to_bytes().as_ref());
                            last = Some(fingerprint);
                        }
                    }
                    Err(error) => self.report.note(error)?,
                },
                Err(error) => {
                    self.report.note(error)?;
                    if cursor.damaged_up_to().is_none() {
                        break;
                    }
                }
            }
            self.tick()?;
            cursor.next();
        }
        Ok((all, distinct))
    }

    /// Reports documents without a posting and postings without a document.
    fn name_postings(&mut self) -> Result<()> {
        let snapshot = std::sync::Arc::clone(self.reader.snapshot());
        let mut cursor = snapshot.sweep(Family::Docs)?;
        while let Ok(Some((key, bytes))) = cursor.entry() {
            if let Ok(document) = codec::decode::<Document<F>>("docs", key, bytes) {
                let posting = keys::posting(document.fingerprint, key);
                match snapshot.get(Family::Postings, &posting) {
                    Ok(Some(_)) => (),
                    Ok(None) => self.report.problem(format!(
                        "document {}: no posting for {}",
                        key.escape_ascii(),
                        document.fingerprint.hex()
                    )),
                    // Unreadable records were reported in the first pass.
                    Err(error) if error.fault() == Fault::Damage => (),
                    Err(error) => return Err(error),
                }
            }
            cursor.next();
        }
        let mut cursor = snapshot.sweep(Family::Postings)?;
        while let Ok(Some((key, _))) = cursor.entry() {
            if let Ok((fingerprint, document)) = keys::split_posting::<F>(key)
                && self.reader.get(document).unwrap_or(Some(fingerprint)) != Some(fingerprint)
            {
                self.report.problem(format!(
                    "posting of {} under {}: the document says otherwise",
                    document.escape_ascii(),
                    fingerprint.hex()
                ));
            }
            cursor.next();
        }
        Ok(())
    }

    /// Compares one table with the distinct fingerprints of the postings.
    ///
    /// Without delta entries the set of the table is unknown, and only its runs are read.
    fn table(
        &mut self,
        number: usize,
        table: &Table,
        deltas: Option<&[(F, Delta)]>,
        expected: Tally,
    ) -> Result<()> {
        let snapshot = std::sync::Arc::clone(self.reader.snapshot());
        let mut tally = Tally::default();
        let mut entries = Entries::new(&snapshot, number, deltas.unwrap_or_default())?;
        while let Some(entry) = entries.next()? {
            tally.add(table.permutation().invert(entry).to_bytes().as_ref());
            self.tick()?;
        }
        let Some(deltas) = deltas.filter(|_| tally != expected) else { return Ok(()) };
        self.report.problem(format!(
            "table {number}: {} fingerprints, the postings hold {}",
            tally.count, expected.count
        ));
        self.name_entries(number, table, deltas)
    }

    /// Reports entries without a posting and fingerprints missing in the table.
    fn name_entries(&mut self, number: usize, table: &Table, deltas: &[(F, Delta)]) -> Result<()> {
        let snapshot = std::sync::Arc::clone(self.reader.snapshot());
        let mut postings = snapshot.sweep(Family::Postings)?;
        let mut entries = Entries::new(&snapshot, number, deltas)?;
        while let Some(entry) = entries.next()? {
            let fingerprint = table.permutation().invert(entry);
            postings.seek(fingerprint.to_bytes().as_ref());
            let owner = match postings.entry()? {
                Some((key, _)) => Some(keys::split_posting::<F>(key)?.0),
                None => None,
            };
            if owner != Some(fingerprint) {
                self.report
                    .problem(format!("table {number}: {} has no document", fingerprint.hex()));
            }
        }
        let mut last = None;
        let mut cursor = snapshot.sweep(Family::Postings)?;
        while let Some((key, _)) = cursor.entry()? {
            let (fingerprint, _) = keys::split_posting::<F>(key)?;
            if last != Some(fingerprint) {
                last = Some(fingerprint);
                let permuted = table.permutation().apply(fingerprint);
                if !self.holds(number, permuted, deltas)? {
                    self.report
                        .problem(format!("table {number}: {} is missing", fingerprint.hex()));
                }
            }
            cursor.next();
        }
        Ok(())
    }

    /// Returns true if a table has a permuted fingerprint, by its delta entry or else in a run.
    fn holds(&self, number: usize, permuted: F, deltas: &[(F, Delta)]) -> Result<bool> {
        match deltas.binary_search_by_key(&permuted, |(entry, _)| *entry) {
            Ok(at) => Ok(deltas.get(at).is_some_and(|(_, delta)| *delta == Delta::Added)),
            Err(_) => self.reader.with_view(|view| is_in_run(view, number, permuted)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

    use crate::progress::Progress;
    use crate::store::delta_run::Name;
    use crate::store::keys::Delta;
    use crate::{Durability, Index, IndexOptions};

    /// Compacts the index once its files are being read.
    struct Compacting<'a> {
        index: &'a Index<u64>,
        reads_files: AtomicBool,
        done: AtomicBool,
    }

    impl Progress for Compacting<'_> {
        fn begin(&self, phase: &str, _: Option<u64>) {
            self.reads_files.store(phase == "reading files", SeqCst);
        }

        fn advance(&self, _: u64) {
            if self.reads_files.load(SeqCst) && !self.done.swap(true, SeqCst) {
                self.index.compact().unwrap();
            }
        }
    }

    #[test]
    fn unreadable_delta_entries_do_not_hide_damage_of_runs() {
        let directory = tempfile::tempdir().unwrap();
        let index = Index::<u64>::create(directory.path(), &IndexOptions::new()).unwrap();
        for key in 1..1000_u64 {
            let document = (key.to_be_bytes(), key << 40);
            index.insert_batch(&[document], Durability::Buffered).unwrap();
            if key == 500 {
                index.merge(&()).unwrap();
            }
        }
        let problems = || {
            let reading = Index::<u64>::open_read_only(directory.path()).unwrap();
            reading.check(&()).unwrap().problem_count
        };
        assert_eq!(problems(), 0);
        // Fingerprints of another width.
        let mut batch = index.shared.store.batch().unwrap();
        let name = Name { number: 1 << 40, delta: Delta::Added };
        batch.put_delta_run(name, &[7_u32]).unwrap();
        batch.commit().unwrap();
        assert_eq!(problems(), 1);
        let mut batch = index.shared.store.batch().unwrap();
        for table in 1..3 {
            batch.put_run(table, 7_u32, &[]).unwrap();
        }
        batch.commit().unwrap();
        assert_eq!(problems(), 3);
    }

    #[test]
    fn a_compaction_deletes_no_file_that_a_deep_check_still_reads() {
        let directory = tempfile::tempdir().unwrap();
        let index = Index::<u64>::create(directory.path(), &IndexOptions::new()).unwrap();
        for part in 0..3_u64 {
            let documents: Vec<_> = (0..8000)
                .map(|n| part * 8000 + n)
                .map(|key| (key.to_be_bytes(), key.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
                .collect();
            index.insert_batch(&documents, Durability::Buffered).unwrap();
            index.shared.store.flush().unwrap();
        }
        let (reads_files, done) = (AtomicBool::new(false), AtomicBool::new(false));
        let progress = Compacting { index: &index, reads_files, done };
        let report = index.check_deep(&progress).unwrap();
        assert!(progress.done.load(SeqCst));
        assert_eq!(report.problems, [""; 0]);
    }
}
