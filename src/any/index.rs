//! An open index of any width: every method calls that of the width.

use std::any::Any;
use std::path::Path;

use super::{AnyIndex, AnyReader, narrow_documents, widen};
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::index::{
    AsDocument, BackupOptions, BackupReport, BatchReport, CheckReport, CompactReport, Durability,
    Header, Index, IndexOptions, Match, MergeReport, Query, Stats,
};
use crate::plan::Plan;
use crate::progress::Progress;
use crate::text::{Pipeline, Secret};
use crate::verify::DuplicateRule;
use crate::{each_width, for_width};

impl AnyIndex {
    /// Creates an empty index of that many bits in a directory that is absent or empty.
    ///
    /// # Errors
    ///
    /// As [`Index::create`], and [`Error::InvalidOption`] for a width that is not supported.
    pub fn create(path: impl AsRef<Path>, bits: u32, options: &IndexOptions) -> Result<Self> {
        for_width!(bits, F => Ok(Index::<F>::create(path, options)?.into()))
    }

    /// Opens an index for reading and writing.
    ///
    /// # Errors
    ///
    /// As [`Index::open`], except for the width.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, &IndexOptions::new())
    }

    /// Opens an index with settings.
    ///
    /// ```
    /// use hamdex::any::AnyIndex;
    /// use hamdex::{IndexOptions};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("pages");
    /// drop(AnyIndex::create(&path, 64, &IndexOptions::new().distance(6))?);
    /// let index = AnyIndex::open_with(&path, &IndexOptions::new().read_only(true))?;
    /// assert_eq!((index.header().bits, index.distance()), (64, 6));
    /// assert_eq!(index.plan().tables().len(), 4);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Index::open_with`], except for the width.
    pub fn open_with(path: impl AsRef<Path>, options: &IndexOptions) -> Result<Self> {
        let path = path.as_ref();
        for_width!(Header::read(path)?.bits, F => Ok(Index::<F>::open_with(path, options)?.into()))
    }

    /// Returns the width of the fingerprints in bits.
    pub fn bits(&self) -> u32 {
        self.header().bits
    }

    /// Returns what was chosen when the index was created.
    pub fn header(&self) -> &Header {
        each_width!(AnyIndex, self, index => index.header())
    }

    /// Returns the distance of searches that name none.
    pub fn distance(&self) -> u32 {
        self.header().distance
    }

    /// Returns the plan of the permutation tables.
    pub fn plan(&self) -> &Plan {
        each_width!(AnyIndex, self, index => index.plan())
    }

    /// Returns the index as one of that width, for code that is generic over it.
    ///
    /// ```
    /// use hamdex::any::AnyIndex;
    /// use hamdex::{Error, IndexOptions};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// let index = AnyIndex::create(directory.path(), 64, &IndexOptions::new())?;
    /// index.insert(b"page", 0xff)?;
    /// assert_eq!(index.of_width::<u64>()?.get(b"page")?, Some(0xff));
    /// assert!(matches!(index.of_width::<u32>(), Err(Error::WidthMismatch { .. })));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::WidthMismatch`] for another width.
    pub fn of_width<F: Fingerprint>(&self) -> Result<&Index<F>> {
        let index: &dyn Any = each_width!(AnyIndex, self, index => index);
        let mismatch = || Error::WidthMismatch { stored: self.bits(), wanted: F::BITS };
        index.downcast_ref().ok_or_else(mismatch)
    }

    /// Freezes the present state for reading.
    ///
    /// ```
    /// # use hamdex::{IndexOptions, any::AnyIndex};
    /// # let directory = tempfile::tempdir().unwrap();
    /// let index = AnyIndex::create(directory.path(), 64, &IndexOptions::new())?;
    /// assert!(index.is_empty()?);
    /// let before = index.reader()?;
    /// index.insert(b"page", 0xff)?;
    /// assert_eq!((before.len(), index.len()?), (0, 1));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Index::reader`].
    pub fn reader(&self) -> Result<AnyReader> {
        each_width!(AnyIndex, self, index => Ok(index.reader()?.into()))
    }

    /// Returns the number of stored documents.
    ///
    /// # Errors
    ///
    /// As [`Index::len`].
    pub fn len(&self) -> Result<u64> {
        each_width!(AnyIndex, self, index => index.len())
    }

    /// Returns true if no document is stored.
    ///
    /// # Errors
    ///
    /// As [`Index::len`].
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Returns the fingerprint of a document, `None` if it is not stored.
    ///
    /// ```
    /// # use hamdex::{IndexOptions, any::AnyIndex};
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = AnyIndex::create(directory.path(), 64, &IndexOptions::new())?;
    /// index.insert(b"page", 0xff)?;
    /// assert_eq!(index.get(b"page")?, Some(0xff));
    /// assert_eq!(index.get(b"other")?, None);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Index::get`].
    pub fn get(&self, key: &[u8]) -> Result<Option<u128>> {
        self.reader()?.get(key)
    }

    /// Returns the encoded feature set of a document, `None` if none is stored.
    ///
    /// ```
    /// use hamdex::any::AnyIndex;
    /// use hamdex::verify::FeatureSet;
    /// use hamdex::{Durability, IndexOptions, NewDocument};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// let index = AnyIndex::create(directory.path(), 64, &IndexOptions::new().keep_features(true))?;
    /// let encoded = FeatureSet::from_hashes(&[1 << 40, 2 << 40]).encode();
    /// let page = NewDocument::new(b"page", 0xff_u128).features(&encoded);
    /// index.insert_batch(&[page], Durability::Synced)?;
    /// assert_eq!(index.features(b"page")?, Some(encoded));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Index::features`].
    pub fn features(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.reader()?.features(key)
    }

    /// Returns every document within the distance, nearest first, then by key.
    ///
    /// # Errors
    ///
    /// As [`AnyReader::search`].
    pub fn search(&self, query: Query<u128>) -> Result<Vec<Match<u128>>> {
        self.reader()?.search(query)
    }

    /// Answers many queries on all threads, in their order.
    ///
    /// ```
    /// use hamdex::Query;
    /// # use hamdex::{IndexOptions, any::AnyIndex};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = AnyIndex::create(directory.path(), 64, &IndexOptions::new())?;
    /// index.insert(b"page", 0xff)?;
    /// let answers = index.search_batch([Query::new(0xfe), Query::new(0xff00)])?;
    /// assert_eq!((answers[0].len(), answers[1].len()), (1, 0));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`AnyReader::search`].
    pub fn search_batch(
        &self,
        queries: impl IntoIterator<Item = Query<u128>>,
    ) -> Result<Vec<Vec<Match<u128>>>> {
        self.reader()?.search_batch(queries)
    }

    /// Stores a document, or replaces the one with the same key; true if it replaced one.
    ///
    /// # Errors
    ///
    /// As [`AnyIndex::insert_batch`].
    pub fn insert(&self, key: &[u8], fingerprint: u128) -> Result<bool> {
        let report = self.insert_batch(&[(key, fingerprint)], Durability::Synced)?;
        Ok(report.replaced > 0)
    }

    /// Stores many documents at once: all of them or, on an error, none.
    ///
    /// # Errors
    ///
    /// As [`Index::insert_batch`], and [`Error::InvalidFingerprint`] for one that is too wide.
    pub fn insert_batch<D: AsDocument<u128>>(
        &self,
        documents: &[D],
        durability: Durability,
    ) -> Result<BatchReport> {
        each_width!(AnyIndex, self, index => {
            index.insert_batch(&narrow_documents(documents)?, durability)
        })
    }

    /// Stores a document unless a near-duplicate of it is stored already.
    ///
    /// ```
    /// use hamdex::Durability;
    /// # use hamdex::{IndexOptions, any::AnyIndex};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = AnyIndex::create(directory.path(), 64, &IndexOptions::new())?;
    /// assert!(index.insert_if_new(b"page", 0xff, 3, Durability::Synced)?.is_none());
    /// let known = index.insert_if_new(b"copy", 0xfe, 3, Durability::Synced)?;
    /// assert_eq!(known.unwrap().key, b"page");
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`AnyIndex::insert_batch_if_new`].
    pub fn insert_if_new(
        &self,
        key: &[u8],
        fingerprint: u128,
        distance: u32,
        durability: Durability,
    ) -> Result<Option<Match<u128>>> {
        let refused = self.insert_batch_if_new(&[(key, fingerprint)], distance, durability)?;
        Ok(refused.into_iter().next().flatten())
    }

    /// Stores those documents that have no near-duplicate, in their order.
    ///
    /// ```
    /// use hamdex::Durability;
    /// # use hamdex::{IndexOptions, any::AnyIndex};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = AnyIndex::create(directory.path(), 64, &IndexOptions::new())?;
    /// let pages = [(b"page", 0xff_u128), (b"copy", 0xfe), (b"news", 0xff00)];
    /// let known = index.insert_batch_if_new(&pages, 3, Durability::Synced)?;
    /// assert!(known[0].is_none() && known[1].is_some() && known[2].is_none());
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Index::insert_batch_if_new`], and [`Error::InvalidFingerprint`] for one that is too
    /// wide.
    pub fn insert_batch_if_new<D: AsDocument<u128>>(
        &self,
        documents: &[D],
        near: impl Into<DuplicateRule>,
        durability: Durability,
    ) -> Result<Vec<Option<Match<u128>>>> {
        each_width!(AnyIndex, self, index => {
            let documents = narrow_documents(documents)?;
            let refused = index.insert_batch_if_new(&documents, near, durability)?;
            Ok(refused.into_iter().map(|found| found.map(widen)).collect())
        })
    }

    /// Removes a document; false if it was not stored.
    ///
    /// ```
    /// # use hamdex::{IndexOptions, any::AnyIndex};
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = AnyIndex::create(directory.path(), 64, &IndexOptions::new())?;
    /// index.insert(b"page", 0xff)?;
    /// assert!(index.remove(b"page")?);
    /// assert!(!index.remove(b"page")?);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Index::remove`].
    pub fn remove(&self, key: &[u8]) -> Result<bool> {
        Ok(self.remove_batch(&[key], Durability::Synced)? > 0)
    }

    /// Removes many documents at once and returns how many were stored.
    ///
    /// ```
    /// use hamdex::Durability;
    /// # use hamdex::{IndexOptions, any::AnyIndex};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = AnyIndex::create(directory.path(), 64, &IndexOptions::new())?;
    /// index.insert_batch(&[(b"a", 0xff_u128), (b"b", 0xff00)], Durability::Synced)?;
    /// assert_eq!(index.remove_batch(&[b"a", b"b", b"c"], Durability::Synced)?, 2);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Index::remove_batch`].
    pub fn remove_batch<K: AsRef<[u8]>>(&self, keys: &[K], durability: Durability) -> Result<u64> {
        each_width!(AnyIndex, self, index => index.remove_batch(keys, durability))
    }

    /// Reads everything and compares every table and posting with the documents.
    ///
    /// ```
    /// # use hamdex::{IndexOptions, any::AnyIndex};
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = AnyIndex::create(directory.path(), 64, &IndexOptions::new())?;
    /// index.insert(b"page", 0xff)?;
    /// assert_eq!(index.check(&())?.documents, 1);
    /// assert!(index.check_deep(&())?.problems.is_empty());
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Index::check`].
    pub fn check(&self, progress: &dyn Progress) -> Result<CheckReport> {
        each_width!(AnyIndex, self, index => index.check(progress))
    }

    /// Does what [`AnyIndex::check`] does, and reads every file for its checksums.
    ///
    /// # Errors
    ///
    /// As [`Index::check_deep`].
    pub fn check_deep(&self, progress: &dyn Progress) -> Result<CheckReport> {
        each_width!(AnyIndex, self, index => index.check_deep(progress))
    }

    /// Counts entries and bytes by reading every table and the postings once.
    ///
    /// ```
    /// # use hamdex::{IndexOptions, any::AnyIndex};
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = AnyIndex::create(directory.path(), 64, &IndexOptions::new())?;
    /// index.insert(b"page", 0xff)?;
    /// assert_eq!(index.stats(&())?.delta_entries, 1); // the same in every table
    /// assert_eq!(index.merge(&())?.merged, 4); // in four tables
    /// assert_eq!(index.stats(&())?.delta_entries, 0);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Index::stats`].
    pub fn stats(&self, progress: &dyn Progress) -> Result<Stats> {
        each_width!(AnyIndex, self, index => index.stats(progress))
    }

    /// Merges every delta entry into runs, step by step.
    ///
    /// # Errors
    ///
    /// As [`Index::merge`].
    pub fn merge(&self, progress: &dyn Progress) -> Result<MergeReport> {
        each_width!(AnyIndex, self, index => index.merge(progress))
    }

    /// Rewrites all files, so that removed data frees its space.
    ///
    /// ```
    /// # use hamdex::{IndexOptions, any::AnyIndex};
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = AnyIndex::create(directory.path(), 64, &IndexOptions::new())?;
    /// index.insert(b"page", 0xff)?;
    /// index.flush()?;
    /// index.remove(b"page")?;
    /// println!("{} bytes are left", index.compact()?.bytes_after);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Index::compact`].
    pub fn compact(&self) -> Result<CompactReport> {
        each_width!(AnyIndex, self, index => index.compact())
    }

    /// Saves all fingerprints to a file, which other handles map instead of loading them.
    ///
    /// ```
    /// # use hamdex::{IndexOptions, any::AnyIndex};
    /// # let directory = tempfile::tempdir().unwrap();
    /// let index = AnyIndex::create(directory.path(), 64, &IndexOptions::new())?;
    /// index.insert(b"page", 0xff)?;
    /// assert!(index.save_resident(1 << 30)?.is_some());
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Index::save_resident`].
    pub fn save_resident(&self, budget: usize) -> Result<Option<u64>> {
        each_width!(AnyIndex, self, index => index.save_resident(budget))
    }

    /// Writes what is in memory to table files; the log already holds it.
    ///
    /// # Errors
    ///
    /// As [`Index::flush`].
    pub fn flush(&self) -> Result<()> {
        each_width!(AnyIndex, self, index => index.flush())
    }

    /// Adds a backup to a directory, beside writers and readers.
    ///
    /// ```
    /// use hamdex::any::AnyIndex;
    /// use hamdex::IndexOptions;
    /// use hamdex::backup::BackupOptions;
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path();
    /// let index = AnyIndex::create(path.join("pages"), 64, &IndexOptions::new())?;
    /// let report = index.backup_with(path.join("backups"), &BackupOptions::new().keep(7))?;
    /// assert_eq!(report.id, 1);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Index::backup_with`].
    pub fn backup_with(
        &self,
        directory: impl AsRef<Path>,
        options: &BackupOptions,
    ) -> Result<BackupReport> {
        each_width!(AnyIndex, self, index => index.backup_with(directory, options))
    }

    /// Rebuilds the pipeline that the index was created with; `None` if there was none.
    ///
    /// ```
    /// use hamdex::any::AnyIndex;
    /// use hamdex::text::Secret;
    /// use hamdex::{IndexOptions, Pipeline, PipelineOptions};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// let secret = || Secret::from_bytes(b"0123456789abcdef0123456789abcdef");
    /// let pipeline = Pipeline::new(&PipelineOptions::new().secret(secret()?))?;
    /// let index = AnyIndex::create(directory.path(), 64, &IndexOptions::new().text(&pipeline))?;
    /// assert!(index.pipeline_with(None).is_err(), "the secret is not stored");
    /// let again = index.pipeline_with(Some(secret()?))?.expect("has a pipeline");
    /// assert_eq!(again.descriptor(), pipeline.descriptor());
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Index::pipeline_with`].
    pub fn pipeline_with(&self, secret: Option<Secret>) -> Result<Option<Pipeline>> {
        each_width!(AnyIndex, self, index => index.pipeline_with(secret))
    }
}
