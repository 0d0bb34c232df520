//! The index: stores documents on disk and returns every stored near-duplicate.
//!
//! Reads use snapshots and never wait for each other. Writes take turns. A turn covers reading what
//! is replaced and staging. It does not cover the fsync, which concurrent writers share, or a
//! search for near-duplicates; if all documents are new, it does not cover the log write either.
#![doc = include_str!("DURABILITY.md")]

#[cfg(feature = "rocksdb-interop")]
mod attached;
mod committer;
mod core;
mod fold;
mod health;
mod options;
mod pipeline;
mod read;
mod resident;
mod secondary;
mod upkeep;
mod write;

use std::path::Path;
use std::sync::Arc;

#[cfg(feature = "model")]
pub use self::committer::model;
use self::committer::{Builder, Committer};
use self::core::Core;
pub use self::core::Header;
pub(crate) use self::core::plan_of;
use self::fold::Folder;
pub use self::fold::{CompactReport, MergeReport, Merging};
pub use self::health::{Event, Health, MemoryUsage};
pub(crate) use self::options::DEFAULT_DISTANCE;
pub use self::options::{Durability, IndexOptions};
pub(crate) use self::read::check_features::Checker;
pub(crate) use self::read::deltas::Deltas;
pub use self::read::documents::Documents;
pub(crate) use self::read::parts::Parts;
pub(crate) use self::read::query::check_distance;
pub use self::read::query::{Explanation, Match, Query, SearchPath, TableExplanation};
pub use self::read::reader::Reader;
pub(crate) use self::read::sorted_sweep::targets;
pub use self::secondary::Secondary;
pub use self::upkeep::backup::{
    Backup, BackupInfo, BackupOptions, BackupReport, RestoreOptions, RestoreReport,
};
pub use self::upkeep::check::CheckReport;
use self::upkeep::repack::Packing;
pub use self::upkeep::shape::Sizes;
pub use self::upkeep::stats::{Stats, TableStats};
pub use self::write::BatchReport;
pub use self::write::new_document::{AsDocument, NewDocument};
#[cfg(feature = "rocksdb-interop")]
pub(crate) use self::write::steps::Step;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::plan::Plan;
use crate::resident::NearFingerprint;
use crate::store::{self, Access, Opening, Store};
use crate::sync::Mutex;

/// A durable index of fingerprints of one width.
///
/// A document is a key of 1 to 1024 bytes and a fingerprint; a key holds one document. Handles are
/// `Send` and `Sync`: any number of threads may search and write through one handle. Only one
/// process at a time may open an index for writing. Batches and large searches use the threads of
/// rayon's current pool, and calls may run inside that pool.
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

/// The state that the handle shares with its background thread.
#[derive(Debug)]
struct Shared<F: Fingerprint> {
    store: Arc<Store>,
    core: Arc<Core>,
    committer: Committer<F>,
    /// Held by the call that rewrites packs.
    repacking: Mutex<Option<Packing>>,
    /// Held by the call that saves resident fingerprints.
    saving: Mutex<()>,
}

impl<F: Fingerprint> Index<F> {
    /// Creates a new, empty index in a new or empty directory.
    ///
    /// ```
    /// use hamdex::{Error, Index, IndexOptions};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("pages");
    /// let index = Index::<u64>::create(&path, &IndexOptions::new().distance(6))?;
    /// assert_eq!(index.distance(), 6);
    /// let again = Index::<u64>::create(&path, &IndexOptions::new());
    /// assert!(matches!(again, Err(Error::AlreadyExists { .. })));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::AlreadyExists`] if the directory is not empty, [`Error::RestoreUnfinished`]
    /// if it holds an interrupted restore, [`Error::InvalidDistance`] or [`Error::IncompletePlan`]
    /// if the plan cannot answer the distance, and [`Error::Io`].
    pub fn create(path: impl AsRef<Path>, options: &IndexOptions) -> Result<Self> {
        let (header, plan) = new_header::<F>(options)?;
        let resources: Vec<_> = options.resources.parts().collect();
        let tables = plan.tables().len();
        let store = Store::create(path.as_ref(), header, &resources, tables, options.memory)?;
        Self::over(store, plan, options)
    }

    /// Opens an index for reading and writing.
    ///
    /// ```
    /// use hamdex::{Index, IndexOptions};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("pages");
    /// Index::<u64>::create(&path, &IndexOptions::new())?.insert(b"page", 0xff)?;
    /// let index = Index::<u64>::open(&path)?;
    /// assert_eq!(index.len()?, 1);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::NotFound`] if there is no index, [`Error::Locked`] if another handle has it
    /// open for writing, [`Error::WidthMismatch`] if it has another width,
    /// [`Error::BuildUnfinished`] or [`Error::RestoreUnfinished`] if it is incomplete, and
    /// [`Error::FormatVersion`] or [`Error::Corrupt`] if it cannot be read.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, &IndexOptions::new())
    }

    /// Opens an index read-only, even while another process writes to it.
    ///
    /// The handle shows the index as it was when it was opened. It keeps every table file open,
    /// even those that the writer deletes, so the limit of open files must allow it.
    ///
    /// ```
    /// use hamdex::{Error, Index, IndexOptions};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("pages");
    /// let writer = Index::<u64>::create(&path, &IndexOptions::new())?;
    /// let reader = Index::<u64>::open_read_only(&path)?;
    /// assert!(matches!(reader.insert(b"page", 0xff), Err(Error::ReadOnly { .. })));
    /// # drop(writer);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Index::open`], except [`Error::Locked`].
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, &IndexOptions::new().read_only(true))
    }

    /// Opens an index with the given settings.
    ///
    /// ```
    /// use hamdex::{Index, IndexOptions};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("pages");
    /// drop(Index::<u64>::create(&path, &IndexOptions::new())?);
    /// let options = IndexOptions::new().memory(64 << 20).distance(3);
    /// let index = Index::<u64>::open_with(&path, &options)?;
    /// # assert!(index.is_empty()?);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Index::open`], and [`Error::HeaderMismatch`] if a setting of the
    /// index differs from the stored one.
    pub fn open_with(path: impl AsRef<Path>, options: &IndexOptions) -> Result<Self> {
        let access = if options.read_only { Access::Read } else { Access::Write };
        let opening = Opening::new(path.as_ref(), options.memory, access)?;
        let plan = options.plan_of::<F>(opening.header())?;
        let store = opening.with_tables(plan.tables().len())?;
        Self::over(store, plan, options)
    }

    fn over(mut store: Store, plan: Plan, options: &IndexOptions) -> Result<Self> {
        let background = options.background_merge && !options.read_only;
        if options.low_priority_compaction && !options.read_only {
            store::lower_compactions()?;
        }
        if !options.read_only {
            committer::gather::<F>(&mut store, plan.tables())?;
        }
        let core = Arc::new(Core::new(
            Header::of(store.header()),
            plan,
            options.costs,
            options.events.clone(),
        ));
        let store = Arc::new(store);
        let builder = match (options.read_only, background) {
            (true, _) => Builder::Search,
            (false, true) => Builder::Background,
            (false, false) => Builder::Writers,
        };
        let budget = options.memory.max(store::MIN_MEMORY) / store::BESIDE_SHARE;
        let committer = Committer::open(Arc::clone(&store), Arc::clone(&core), builder, budget)?;
        let (repacking, saving) = (Mutex::default(), Mutex::default());
        let shared = Arc::new(Shared { store, core, committer, repacking, saving });
        let folder = if background { Some(Folder::spawn(&shared)?) } else { None };
        let index = Self { shared, folder };
        if options.resident > 0 {
            index.load_resident(options.resident)?;
        }
        Ok(index)
    }

    /// Returns a snapshot of the current state for reading.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
    /// let before = index.reader()?;
    /// index.insert(b"page", 0xff)?;
    /// assert_eq!((before.len(), index.len()?), (0, 1));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error on damage or a failure of the store.
    pub fn reader(&self) -> Result<Reader<F>> {
        self.shared.committer.read()
    }

    /// Returns the fingerprint of a document, or `None` if it is not stored.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
    /// index.insert(b"page", 0xff)?;
    /// assert_eq!(index.get(b"page")?, Some(0xff));
    /// assert_eq!(index.get(b"other")?, None);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Reader::get`].
    pub fn get(&self, key: &[u8]) -> Result<Option<F>> {
        self.reader()?.get(key)
    }

    /// Returns the encoded feature set of a document, or `None` if it has none.
    ///
    /// [`NewDocument`] has an example.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Reader::features`].
    pub fn features(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.reader()?.features(key)
    }

    /// Returns every document within the distance, nearest first, then by key.
    ///
    /// Reads the disk unless the fingerprints are resident. [`Query`] sets distance, limit and
    /// checks.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
    /// index.insert(b"first", 0b0000)?;
    /// index.insert(b"second", 0b0111)?;
    /// let matches = index.search(hamdex::Query::new(0b0001).distance(1))?;
    /// assert_eq!(matches.len(), 1);
    /// assert_eq!((&matches[0].key[..], matches[0].distance), (&b"first"[..], 1));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Reader::search`].
    pub fn search(&self, query: impl Into<Query<F>>) -> Result<Vec<Match<F>>> {
        self.reader()?.search(query)
    }

    /// Returns every distinct fingerprint within the distance, nearest first.
    ///
    /// Looks up no documents if none are unmerged, so this is the fastest search.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
    /// index.insert(b"first", 0b0000)?;
    /// index.insert(b"second", 0b0111)?;
    /// let near = index.near(0b0001, 1)?;
    /// assert_eq!((near.len(), near[0].fingerprint), (1, 0b0000));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Reader::near`].
    pub fn near(&self, fingerprint: F, distance: u32) -> Result<Vec<NearFingerprint<F>>> {
        self.reader()?.near(fingerprint, distance)
    }

    /// Searches, and reports expected and actual cost with the answer.
    ///
    /// Reads the store, also what [`Index::search`] would find in memory of earlier searches.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
    /// index.insert(b"page", 0xff)?;
    /// let explanation = index.explain(0xfe)?;
    /// assert_eq!(explanation.matches.len(), 1);
    /// println!("{} comparisons in {:?}", explanation.candidates, explanation.actual);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Reader::search`].
    pub fn explain(&self, query: impl Into<Query<F>>) -> Result<Explanation<F>> {
        self.reader()?.explain(query)
    }

    /// Iterates over all documents in ascending order of keys.
    ///
    /// The iterator reads a snapshot, so later writes do not show.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
    /// index.insert(b"b", 0xfe)?;
    /// index.insert(b"a", 0xff)?;
    /// let documents: Vec<_> = index.documents()?.collect::<Result<_, _>>()?;
    /// assert_eq!(documents, [(b"a".to_vec(), 0xff), (b"b".to_vec(), 0xfe)]);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Reader::documents`].
    pub fn documents(&self) -> Result<Documents<F>> {
        self.reader()?.documents()
    }

    /// Returns the number of stored documents.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
    /// index.insert(b"page", 0xff)?;
    /// assert_eq!(index.len()?, 1);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error on damage or a failure of the store.
    pub fn len(&self) -> Result<u64> {
        Ok(self.reader()?.len())
    }

    /// Returns true if no document is stored.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
    /// assert!(index.is_empty()?);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error on damage or a failure of the store.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Returns the settings that were fixed when the index was created.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
    /// assert_eq!((index.header().bits, index.header().distance), (64, 3));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn header(&self) -> &Header {
        &self.shared.core.header
    }

    /// Returns the plan of the permutation tables.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
    /// assert_eq!(index.plan().tables().len(), 4);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn plan(&self) -> &Plan {
        &self.shared.core.plan
    }

    /// Returns the default distance of searches, in bits.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
    /// assert_eq!(index.distance(), 3);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn distance(&self) -> u32 {
        self.shared.core.header.distance
    }

    /// Writes the memory tables to table files. The log already holds their content.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
    /// index.insert(b"page", 0xff)?;
    /// index.flush()?;
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::ReadOnly`] for a read-only handle, and failures of the store.
    pub fn flush(&self) -> Result<()> {
        let Shared { store, core, .. } = &*self.shared;
        store.require_writable()?;
        let began = core.events.began();
        store.flush()?;
        core.events.ended(began, |took| Event::Flushed { took });
        Ok(())
    }
}

/// Returns the header and the plan of a new index.
pub(crate) fn new_header<F: Fingerprint>(
    options: &IndexOptions,
) -> Result<(store::codec::HeaderRecord, Plan)> {
    if options.read_only {
        let reason = "a new index is opened for writing".to_owned();
        return Err(Error::InvalidOption { name: "read_only", reason });
    }
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
            reason: "the descriptor names tables of the caller; pass the pipeline itself to \
                     IndexOptions::text"
                .to_owned(),
        }
    })?;
    let keeps_features = options.keep_features.unwrap_or(false);
    Ok((store::header(F::BITS, distance, plan.to_string(), pipeline, keeps_features), plan))
}
