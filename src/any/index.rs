//! An open index of any width: every method calls that of the width.

use std::any::Any;
use std::path::Path;

use super::{AnyIndex, AnyReader, narrow_documents, widen};
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::index::{
    AsDocument, BackupOptions, BackupReport, BatchReport, CheckReport, CompactReport, Durability,
    FoldReport, Header, Index, IndexOptions, Match, OpenOptions, Query, Stats,
};
use crate::plan::Plan;
use crate::progress::Progress;
use crate::text::{Pipeline, Secret};
use crate::verify::Nearness;
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
        Self::open_with(path, &OpenOptions::new())
    }

    /// Opens an index with settings.
    ///
    /// # Errors
    ///
    /// As [`Index::open_with`], except for the width.
    pub fn open_with(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Self> {
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
    /// # Errors
    ///
    /// As [`Index::get`].
    pub fn get(&self, key: &[u8]) -> Result<Option<u128>> {
        self.reader()?.get(key)
    }

    /// Returns the encoded feature set of a document, `None` if none is stored.
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
    /// # Errors
    ///
    /// As [`Index::insert_batch_if_new`], and [`Error::InvalidFingerprint`] for one that is too
    /// wide.
    pub fn insert_batch_if_new<D: AsDocument<u128>>(
        &self,
        documents: &[D],
        near: impl Into<Nearness>,
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
    /// # Errors
    ///
    /// As [`Index::remove`].
    pub fn remove(&self, key: &[u8]) -> Result<bool> {
        Ok(self.remove_batch(&[key], Durability::Synced)? > 0)
    }

    /// Removes many documents at once and returns how many were stored.
    ///
    /// # Errors
    ///
    /// As [`Index::remove_batch`].
    pub fn remove_batch<K: AsRef<[u8]>>(&self, keys: &[K], durability: Durability) -> Result<u64> {
        each_width!(AnyIndex, self, index => index.remove_batch(keys, durability))
    }

    /// Reads everything and compares every table and posting with the documents.
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
    /// As [`Index::fold`].
    pub fn fold(&self, progress: &dyn Progress) -> Result<FoldReport> {
        each_width!(AnyIndex, self, index => index.fold(progress))
    }

    /// Rewrites all files, so that removed data frees its space.
    ///
    /// # Errors
    ///
    /// As [`Index::compact`].
    pub fn compact(&self) -> Result<CompactReport> {
        each_width!(AnyIndex, self, index => index.compact())
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
    /// # Errors
    ///
    /// As [`Index::pipeline_with`].
    pub fn pipeline_with(&self, secret: Option<Secret>) -> Result<Option<Pipeline>> {
        each_width!(AnyIndex, self, index => index.pipeline_with(secret))
    }
}
