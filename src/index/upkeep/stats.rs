//! Statistics: counts the content of an index and the bytes of each part.

use rayon::prelude::*;

use super::shape::{Alike, Ones, Sizes};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::index::Index;
use crate::index::read::deltas::Deltas;
use crate::index::read::entries::{EntryCounts, bounds};
use crate::index::read::parts::{self, Parts};
use crate::index::read::reader::Reader;
use crate::progress::{self, Progress};
use crate::store::codec::{self, Document};
use crate::store::{Family, keys, resources};
use crate::text::Resources;

/// Entries between two reports of progress.
const REPORT_EVERY: u64 = 1 << 16;
/// Entries that are counted together.
const CHUNK: usize = 16 << 10;

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
    /// Uses all threads of the current rayon pool.
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
        let mut ones = Ones::default();
        let deltas = Deltas::of(reader.snapshot(), self.plan().tables())?;
        progress.begin("counting", Some(reader.len() * store.tables() as u64));
        for (number, table) in self.plan().tables().iter().enumerate() {
            let deltas = deltas.permuted(table.permutation());
            let parts = Parts::new(&reader, number, &deltas, progress);
            // All tables have the same fingerprints.
            let counted = Counted::of(&parts, number == 0, progress)?;
            fingerprints = counted.fingerprints;
            if number == 0 {
                ones = counted.ones;
            }
            tables.push(TableStats {
                prefix_bits: table.prefix_bits(),
                delta_entries: counted.entries.delta_entries,
                runs: counted.entries.runs,
                bytes: store.bytes(Family::Table(number))?,
                prefixes: counted.prefixes,
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
            ones: ones.finish(F::BITS),
            copies,
            keys,
            resources: self.resources()?,
        })
    }

    /// Counts documents per fingerprint and the bytes of their keys.
    fn postings(reader: &Reader<F>, progress: &dyn Progress) -> Result<(Sizes, Sizes)> {
        progress.begin("reading postings", Some(reader.len()));
        let bits = parts::bits(reader);
        let parts = (0..1_u32 << bits).into_par_iter().with_max_len(1).map(|part| {
            let (first, end) = bounds::<F>(part, bits);
            let (mut copies, mut key_bytes) = (Alike::default(), Sizes::default());
            let mut cursor = reader.snapshot().sweep(Family::Postings)?;
            cursor.seek(first.to_bytes().as_ref());
            let mut read = 0_u64;
            while let Some((key, _)) = cursor.entry()? {
                let (fingerprint, document) = keys::split_posting::<F>(key)?;
                if fingerprint > end {
                    break;
                }
                copies.push(fingerprint);
                key_bytes.add(document.len() as u64);
                read += 1;
                if read.is_multiple_of(REPORT_EVERY) {
                    progress.advance(REPORT_EVERY);
                    progress::check(progress)?;
                }
                cursor.next();
            }
            progress.advance(read % REPORT_EVERY);
            Ok((copies.finish(), key_bytes))
        });
        let (mut copies, mut key_bytes) = (Sizes::default(), Sizes::default());
        for (of_part, bytes) in parts.collect::<Result<Vec<_>>>()? {
            copies.merge(&of_part);
            key_bytes.merge(&bytes);
        }
        Ok((copies, key_bytes))
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

/// What is counted of a table, or of a part of it.
struct Counted {
    entries: EntryCounts,
    fingerprints: u64,
    prefixes: Sizes,
    ones: Ones,
}

impl Counted {
    fn of<F: Fingerprint>(
        parts: &Parts<'_, F>,
        with_ones: bool,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let (permutation, prefix) =
            (parts.table().permutation(), F::high_mask(parts.table().prefix_bits()));
        let counted = parts.each(CHUNK, |(prefixes, ones): &mut (Alike<F>, Ones), entries| {
            for &entry in entries.iter() {
                prefixes.push(entry & prefix);
            }
            if with_ones {
                permutation.invert_all(entries);
                for entry in entries.iter() {
                    ones.add(entry.to_bytes().as_ref());
                }
            }
            progress.advance(entries.len() as u64);
            Ok(())
        })?;
        let (mut entries, mut prefixes) = (EntryCounts::default(), Sizes::default());
        let mut ones = Ones::default();
        for ((of_part, ones_of_part), counts) in counted {
            entries.runs += counts.runs;
            entries.delta_entries += counts.delta_entries;
            prefixes.merge(&of_part.finish());
            ones.merge(ones_of_part);
        }
        Ok(Self { entries, fingerprints: prefixes.total(), prefixes, ones })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::index::IndexOptions;
    use crate::index::read::entries::Entries;

    /// Documents in runs, some of them removed or given another fingerprint since.
    fn filled(count: u64) -> (tempfile::TempDir, Index<u64>, BTreeMap<u64, u64>) {
        let directory = tempfile::tempdir().unwrap();
        let index = Index::create(directory.path(), &IndexOptions::new()).unwrap();
        let mut rng = fastrand::Rng::with_seed(3);
        let mut documents = BTreeMap::new();
        for key in 0..count {
            // A quarter has the fingerprint of another document.
            let fingerprint = if key % 4 == 3 { documents[&(key - 1)] } else { rng.u64(..) };
            index.insert(&key.to_be_bytes(), fingerprint).unwrap();
            documents.insert(key, fingerprint);
        }
        index.merge(&()).unwrap();
        for key in (0..count).step_by(10) {
            index.remove(&key.to_be_bytes()).unwrap();
            documents.remove(&key);
            index.insert(&(key + 1).to_be_bytes(), !key).unwrap();
            documents.insert(key + 1, !key);
        }
        (directory, index, documents)
    }

    #[test]
    fn what_is_counted_in_parts_is_that_of_all_documents() {
        for count in [0, 1, 200, 3000] {
            let (_directory, index, documents) = filled(count);
            let stats = index.stats(&()).unwrap();
            let mut copies: BTreeMap<u64, u64> = BTreeMap::new();
            for &fingerprint in documents.values() {
                *copies.entry(fingerprint).or_default() += 1;
            }
            let distinct: Vec<u64> = copies.keys().copied().collect();
            assert_eq!(stats.documents, documents.len() as u64);
            assert_eq!(stats.fingerprints, distinct.len() as u64);
            assert_eq!(stats.copies, copies.values().copied().collect());
            assert_eq!(stats.keys, documents.keys().map(|_| 8).collect());
            let ones = (0..64).map(|bit| distinct.iter().filter(|f| **f << bit >> 63 == 1).count());
            assert!(stats.ones.iter().copied().eq(ones.map(|count| count as u64)), "{count}");
            let reader = index.reader().unwrap();
            let deltas = Deltas::of(reader.snapshot(), index.plan().tables()).unwrap();
            for (number, table) in index.plan().tables().iter().enumerate() {
                let (permutation, bits) = (table.permutation(), table.prefix_bits());
                let mut prefixes: BTreeMap<u64, u64> = BTreeMap::new();
                for &fingerprint in &distinct {
                    *prefixes.entry(permutation.apply(fingerprint) >> (64 - bits)).or_default() +=
                        1;
                }
                let counted = stats.tables[number];
                assert_eq!(counted.prefixes, prefixes.values().copied().collect());
                let deltas = deltas.permuted(permutation);
                let mut whole = Entries::<u64>::new(reader.snapshot(), number, &deltas).unwrap();
                while whole.next().unwrap().is_some() {}
                let whole = whole.counts();
                assert_eq!(
                    (counted.runs, counted.delta_entries),
                    (whole.runs, whole.delta_entries)
                );
            }
        }
    }
}
