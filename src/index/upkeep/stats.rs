//! Statistics: counts the content of an index and the bytes of each part.

use super::shape::{Alike, Ones, Sizes};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::index::Index;
use crate::index::read::deltas::Deltas;
use crate::index::read::entries::Entries;
use crate::index::read::reader::Reader;
use crate::progress::{self, Progress};
use crate::store::codec::{self, Document};
use crate::store::{Family, keys, resources};
use crate::text::Resources;

/// Entries between two reports of progress.
const REPORT_EVERY: u64 = 1 << 16;

/// Counts and sizes of an index.
///
/// ```
/// use hamdex::inspect::Stats;
/// # let directory = tempfile::tempdir().unwrap();
/// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
///
/// index.insert(b"page", 0xff)?;
/// index.insert(b"copy", 0xff)?;
/// let stats: Stats = index.stats(&())?;
/// assert_eq!((stats.documents, stats.fingerprints), (2, 1));
/// assert_eq!(stats.copies.largest(), 2);
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Number of stored documents.
    pub documents: u64,
    /// Number of distinct fingerprints.
    pub fingerprints: u64,
    /// Number of delta entries, which apply to all tables.
    pub delta_entries: u64,
    /// Number of runs of the first table.
    pub runs: u64,
    /// Size of the documents' records in bytes.
    pub bytes_docs: u64,
    /// Number of documents with a feature set.
    pub with_features: u64,
    /// Size of the feature sets in bytes, before compression. Part of the records.
    pub bytes_features: u64,
    /// Size of the postings in bytes.
    pub bytes_postings: u64,
    /// Size of all permutation tables in bytes.
    pub bytes_tables: u64,
    /// The plan in canonical form.
    pub plan: String,
    /// Default distance of searches, in bits.
    pub distance: u32,
    /// One entry per table.
    pub tables: Vec<TableStats>,
    /// Number of distinct fingerprints with each bit set, from the most significant bit.
    pub ones: Vec<u64>,
    /// Number of documents per fingerprint.
    pub copies: Sizes,
    /// Length of the documents' keys in bytes.
    pub keys: Sizes,
    /// Name and size in bytes of each of the caller's tables of the pipeline.
    pub resources: Vec<(&'static str, u64)>,
}

/// Counts and sizes of one permutation table.
///
/// ```
/// use hamdex::inspect::TableStats;
/// # let directory = tempfile::tempdir().unwrap();
/// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
///
/// index.insert(b"page", 0xff)?;
/// let first: TableStats = index.stats(&())?.tables.remove(0);
/// assert_eq!((first.prefix_bits, first.runs), (16, 0));
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TableStats {
    /// Length of the table's prefix in bits.
    pub prefix_bits: u32,
    /// Number of delta entries, the same in every table.
    pub delta_entries: u64,
    /// Number of runs.
    pub runs: u64,
    /// Size on disk and in memory tables, in bytes.
    pub bytes: u64,
    /// Number of fingerprints per prefix, which is what one probe reads.
    pub prefixes: Sizes,
}

impl<F: Fingerprint> Index<F> {
    /// Counts entries and bytes, by reading every table and the postings once.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
    /// index.insert(b"page", 0xff)?;
    /// index.insert(b"copy", 0xff)?;
    /// let stats = index.stats(&())?;
    /// assert_eq!((stats.documents, stats.fingerprints, stats.copies.largest()), (2, 1, 2));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Cancelled`](crate::Error::Cancelled), and an error on damage or a failure of the
    /// store.
    pub fn stats(&self, progress: &dyn Progress) -> Result<Stats> {
        let reader = self.reader()?;
        let store = &self.shared.store;
        let mut tables = Vec::new();
        let mut fingerprints = 0;
        let mut ones = Ones::new(F::BITS);
        let deltas = Deltas::of(reader.snapshot(), self.plan().tables())?;
        progress.begin("counting", Some(reader.len() * store.tables() as u64));
        for (number, table) in self.plan().tables().iter().enumerate() {
            progress::check(progress)?;
            let (permutation, prefix) = (table.permutation(), F::high_mask(table.prefix_bits()));
            let deltas = deltas.permuted(permutation);
            let mut entries = Entries::<F>::of_table(reader.snapshot(), number, &deltas)?;
            let mut prefixes = Alike::new();
            fingerprints = 0;
            while let Some(entry) = entries.next()? {
                prefixes.push(entry & prefix);
                if number == 0 {
                    ones.add(permutation.invert(entry).widen());
                }
                fingerprints += 1;
                if u64::is_multiple_of(fingerprints, REPORT_EVERY) {
                    progress.advance(REPORT_EVERY);
                    progress::check(progress)?;
                }
            }
            let counts = entries.counts();
            tables.push(TableStats {
                prefix_bits: table.prefix_bits(),
                delta_entries: counts.delta_entries,
                runs: counts.runs,
                bytes: store.bytes(Family::Table(number))?,
                prefixes: prefixes.finish(),
            });
        }
        let (copies, keys) = Self::postings(&reader, progress)?;
        let features = self.features_kept(&reader, progress)?;
        let first = tables.first().copied().unwrap_or_default();
        Ok(Stats {
            documents: reader.len(),
            fingerprints,
            delta_entries: first.delta_entries,
            runs: first.runs,
            bytes_docs: store.bytes(Family::Docs)?,
            with_features: features.0,
            bytes_features: features.1,
            bytes_postings: store.bytes(Family::Postings)?,
            bytes_tables: tables.iter().map(|table| table.bytes).sum(),
            plan: self.plan().to_string(),
            distance: self.distance(),
            tables,
            ones: ones.finish(),
            copies,
            keys,
            resources: self.resources()?,
        })
    }

    /// Counts documents per fingerprint and the bytes of their keys.
    fn postings(reader: &Reader<F>, progress: &dyn Progress) -> Result<(Sizes, Sizes)> {
        progress.begin("reading postings", Some(reader.len()));
        let (mut copies, mut key_bytes) = (Alike::new(), Sizes::default());
        let mut cursor = reader.snapshot().sweep(Family::Postings)?;
        let mut read = 0_u64;
        while let Some((key, _)) = cursor.entry()? {
            let (fingerprint, document) = keys::split_posting::<F>(key)?;
            copies.push(fingerprint);
            key_bytes.add(document.len() as u64);
            read += 1;
            if read.is_multiple_of(REPORT_EVERY) {
                progress.advance(REPORT_EVERY);
                progress::check(progress)?;
            }
            cursor.next();
        }
        Ok((copies.finish(), key_bytes))
    }

    /// Counts feature sets and their bytes. Reads nothing if the index keeps none.
    fn features_kept(&self, reader: &Reader<F>, progress: &dyn Progress) -> Result<(u64, u64)> {
        let (mut sets, mut bytes) = (0, 0);
        if !self.header().keeps_features {
            return Ok((sets, bytes));
        }
        progress.begin("reading feature sets", Some(reader.len()));
        let mut cursor = reader.snapshot().sweep(Family::Docs)?;
        let mut read = 0_u64;
        while let Some((key, record)) = cursor.entry()? {
            if let Some(features) = codec::decode::<Document<F>>("docs", key, record)?.features {
                sets += 1;
                bytes += features.len() as u64;
            }
            read += 1;
            if read.is_multiple_of(REPORT_EVERY) {
                progress.advance(REPORT_EVERY);
                progress::check(progress)?;
            }
            cursor.next();
        }
        Ok((sets, bytes))
    }

    /// Returns name and size of every resource.
    fn resources(&self) -> Result<Vec<(&'static str, u64)>> {
        let get = |key: &[u8]| self.shared.store.get(Family::Meta, key);
        let mut found = Vec::new();
        for name in Resources::NAMES {
            if let Some(bytes) = resources::read(name, get)? {
                found.push((name, bytes.len() as u64));
            }
        }
        Ok(found)
    }
}
