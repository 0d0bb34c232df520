//! The index: documents in, every stored near-duplicate out, from disk.
//!
//! Reads go through snapshots and never wait for each other. Writes take turns, which cover
//! reading what is replaced and staging, but not the fsync, so that concurrent synced writers
//! share it, nor a search for near-duplicates; for batches of nothing but new documents they do
//! not cover the log write either.
#![doc = include_str!("DURABILITY.md")]

#[cfg(feature = "rocksdb-interop")]
mod attached;
mod backup;
mod batch;
mod check;
mod check_features;
mod committer;
mod core;
mod documents;
mod entries;
mod fold;
mod health;
mod heavy;
mod if_new;
mod new_document;
mod options;
mod pipeline;
mod probing;
mod query;
mod query_tables;
mod reader;
mod resident;
mod search;
mod secondary;
mod shape;
mod sorted_sweep;
mod stats;
mod steps;
mod write;

use std::path::Path;
use std::sync::Arc;

pub use self::backup::{
    Backup, BackupInfo, BackupOptions, BackupReport, RestoreOptions, RestoreReport,
};
pub use self::check::CheckReport;
pub(crate) use self::check_features::Checker;
use self::committer::Committer;
use self::core::Core;
pub use self::core::Header;
pub(crate) use self::core::plan_of;
pub use self::documents::Documents;
use self::fold::Folder;
pub use self::fold::{CompactReport, FoldReport, Folding};
pub use self::health::{Event, Health, MemoryUsage};
pub use self::new_document::{AsDocument, NewDocument};
pub(crate) use self::options::DEFAULT_DISTANCE;
pub use self::options::{Durability, IndexOptions, OpenOptions};
pub(crate) use self::query::check_distance;
pub use self::query::{Explanation, Match, Query, SearchPath, TableExplanation};
pub use self::reader::Reader;
pub(crate) use self::reader::each_document;
pub use self::secondary::Secondary;
pub use self::shape::Sizes;
pub use self::stats::{Stats, TableStats};
#[cfg(feature = "rocksdb-interop")]
pub(crate) use self::steps::Step;
pub use self::write::BatchReport;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::plan::Plan;
use crate::resident::Near;
use crate::store::{self, Access, Store};

/// A durable index of fingerprints of one width.
///
/// A document is a key of 1 to 1024 bytes and a fingerprint; a key holds one document. Handles
/// are `Send` and `Sync`: any number of threads may search and write through one of them. One
/// process at a time may open an index for writing. Batches and large searches use the threads of
/// rayon's current pool; calls may themselves be jobs of that pool.
///
/// ```
/// use hamdex::{Index, IndexOptions};
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path().join("pages");
/// let index = Index::<u64>::create(&path, &IndexOptions::new())?;
/// index.insert(b"first", 0b0000)?;
/// index.insert(b"second", 0b0111)?;
/// let matches = index.search(0b0001)?;
/// assert_eq!(matches[0].key, b"first");
/// assert_eq!(matches[1].distance, 2);
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug)]
pub struct Index<F: Fingerprint> {
    shared: Arc<Shared<F>>,
    folder: Option<Folder>,
}

/// What the handle shares with its background thread.
#[derive(Debug)]
struct Shared<F: Fingerprint> {
    store: Arc<Store>,
    core: Arc<Core>,
    committer: Committer<F>,
}

impl<F: Fingerprint> Index<F> {
    /// Makes a new, empty index in a directory that is absent or empty.
    ///
    /// # Errors
    ///
    /// [`Error::AlreadyExists`] where something is, [`Error::RestoreUnfinished`] where a restore
    /// was cut short, [`Error::InvalidDistance`] and [`Error::IncompletePlan`] for a distance that
    /// cannot be answered, [`Error::Io`].
    pub fn create(path: impl AsRef<Path>, options: &IndexOptions) -> Result<Self> {
        let (header, plan) = new_header::<F>(options)?;
        let resources: Vec<_> = options.resources.parts().collect();
        let tables = plan.tables().len();
        let store = Store::create(path.as_ref(), header, &resources, tables, options.memory)?;
        let open = OpenOptions::new().memory(options.memory).resident(options.resident);
        Self::over(store, plan, &open)
    }

    /// Opens an index for reading and writing.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`], [`Error::Locked`], [`Error::WidthMismatch`],
    /// [`Error::BuildUnfinished`], [`Error::RestoreUnfinished`], [`Error::FormatVersion`] and
    /// [`Error::Corrupt`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, &OpenOptions::new())
    }

    /// Opens an index for reading only, also while another process writes to it.
    ///
    /// The handle sees the index as it was when it was opened. It holds every table file open,
    /// whatever the writer deletes meanwhile; mind the system's limit of open files.
    ///
    /// # Errors
    ///
    /// As [`Index::open`], without the lock.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, &OpenOptions::new().read_only(true))
    }

    /// Opens an index with settings.
    ///
    /// # Errors
    ///
    /// As [`Index::open`], and [`Error::HeaderMismatch`] for what was expected and differs.
    pub fn open_with(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Self> {
        let access = if options.read_only { Access::Read } else { Access::Write };
        let mut plan = None;
        let store = Store::open(path.as_ref(), options.memory, access, |record| {
            let header = Header::of(record);
            header.require_width::<F>()?;
            options.require(&header)?;
            let built = plan_of(record)?;
            Ok(plan.insert(built).tables().len())
        })?;
        let plan = plan.expect("opening reads the header");
        Self::over(store, plan, options)
    }

    fn over(store: Store, plan: Plan, options: &OpenOptions) -> Result<Self> {
        let background = options.background_fold && !options.read_only;
        let core = Arc::new(Core::new(
            Header::of(store.header()),
            plan,
            options.costs,
            options.events.clone(),
        ));
        let store = Arc::new(store);
        let singles = fold::any_single(&store)?;
        let committer = Committer::new(Arc::clone(&store), Arc::clone(&core), singles);
        let shared = Arc::new(Shared { store, core, committer });
        let folder = if background { Some(Folder::spawn(&shared)?) } else { None };
        let index = Self { shared, folder };
        if options.resident > 0 {
            index.load_resident(options.resident)?;
        }
        Ok(index)
    }

    /// Freezes the present state for reading.
    ///
    /// # Errors
    ///
    /// Damage or failures of the store.
    pub fn reader(&self) -> Result<Reader<F>> {
        self.shared.committer.read()
    }

    /// Returns the fingerprint of a document, `None` when it is not stored.
    ///
    /// # Errors
    ///
    /// As [`Reader::get`].
    pub fn get(&self, key: &[u8]) -> Result<Option<F>> {
        self.reader()?.get(key)
    }

    /// Returns the encoded feature set of a document, `None` where none is stored.
    ///
    /// # Errors
    ///
    /// As [`Reader::features`].
    pub fn features(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.reader()?.features(key)
    }

    /// Finds every document within the distance, nearest first, then by key.
    ///
    /// # Errors
    ///
    /// As [`Reader::search`].
    pub fn search(&self, query: impl Into<Query<F>>) -> Result<Vec<Match<F>>> {
        self.reader()?.search(query)
    }

    /// Finds every distinct fingerprint within the distance, nearest first.
    ///
    /// # Errors
    ///
    /// As [`Reader::near`].
    pub fn near(&self, fingerprint: F, distance: u32) -> Result<Vec<Near<F>>> {
        self.reader()?.near(fingerprint, distance)
    }

    /// Searches and tells what was done, what it cost and what was expected.
    ///
    /// # Errors
    ///
    /// As [`Reader::search`].
    pub fn explain(&self, query: impl Into<Query<F>>) -> Result<Explanation<F>> {
        self.reader()?.explain(query)
    }

    /// Walks over all documents by rising key, as they are now.
    ///
    /// # Errors
    ///
    /// As [`Reader::documents`].
    pub fn documents(&self) -> Result<Documents<F>> {
        self.reader()?.documents()
    }

    /// Returns the number of stored documents.
    ///
    /// # Errors
    ///
    /// Damage or failures of the store.
    pub fn len(&self) -> Result<u64> {
        Ok(self.reader()?.len())
    }

    /// Returns true when no document is stored.
    ///
    /// # Errors
    ///
    /// Damage or failures of the store.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Returns what was settled when the index was made.
    pub fn header(&self) -> &Header {
        &self.shared.core.header
    }

    /// Returns the plan of the permutation tables.
    pub fn plan(&self) -> &Plan {
        &self.shared.core.plan
    }

    /// Returns the distance of searches that name none.
    pub fn distance(&self) -> u32 {
        self.shared.core.header.distance
    }

    /// Writes what is in memory to table files; the log already holds it.
    ///
    /// # Errors
    ///
    /// [`Error::ReadOnly`] and failures of the store.
    pub fn flush(&self) -> Result<()> {
        let Shared { store, core, .. } = &*self.shared;
        store.require_writable()?;
        let began = core.events.began();
        store.flush()?;
        core.events.ended(began, |took| Event::Flushed { took });
        Ok(())
    }
}

/// The header and plan that a new index gets.
pub(crate) fn new_header<F: Fingerprint>(
    options: &IndexOptions,
) -> Result<(store::codec::HeaderRecord, Plan)> {
    let distance = check_distance::<F>(options.distance.unwrap_or(DEFAULT_DISTANCE))?;
    let plan = match &options.plan {
        Some(plan) => plan.clone(),
        None => Plan::named("4", F::BITS)?,
    };
    if plan.bits() != F::BITS {
        return Err(Error::WidthMismatch { stored: plan.bits(), wanted: F::BITS });
    }
    plan.require(distance)?;
    let pipeline = options.pipeline.clone().unwrap_or_default();
    crate::text::require_resources(&pipeline, &options.resources).map_err(|_| {
        Error::InvalidOption {
            name: "pipeline",
            reason: "the descriptor names tables of the caller's; give the pipeline itself, by \
                     IndexOptions::text"
                .to_owned(),
        }
    })?;
    let keeps_features = options.keep_features.unwrap_or(false);
    Ok((store::header(F::BITS, distance, plan.to_string(), pipeline, keeps_features), plan))
}
