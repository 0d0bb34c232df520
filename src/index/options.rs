//! Options: the settings of an index and of a handle to it.

use std::path::PathBuf;

use super::Header;
use super::core::plan_of;
use super::health::{Event, Events};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::plan::{Costs, Plan};
use crate::store::codec::HeaderRecord;
use crate::text::{Pipeline, Resources};

/// Default memory budget of an open index: 512 MiB.
pub(crate) const DEFAULT_MEMORY: usize = 512 << 20;

/// Default distance: 3 bits, as in the literature for 64-bit fingerprints of long texts.
pub(crate) const DEFAULT_DISTANCE: u32 = 3;

/// Settings for creating or opening an index.
///
/// Plan, distance, pipeline and feature sets are settings of the index, fixed when it is created. If
/// you set one to open an existing index, opening fails with
/// [`Error::HeaderMismatch`](crate::Error::HeaderMismatch) unless the stored one is equal. All other
/// settings apply to the handle.
///
/// ```
/// use hamdex::plan::{Costs, Plan};
/// use hamdex::{Error, Index, IndexOptions};
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path().join("pages");
/// let options = IndexOptions::new().plan(Plan::named("10", 64)?).distance(3).memory(64 << 20);
/// drop(Index::<u64>::create(&path, &options)?);
/// let index = Index::<u64>::open_with(&path, &options.resident(1 << 20).costs(Costs::default()))?;
/// assert!(index.resident_bytes().is_some());
/// drop(index);
/// let opened = Index::<u64>::open_with(&path, &IndexOptions::new().distance(6));
/// assert!(matches!(opened, Err(Error::HeaderMismatch { what: "distance", .. })));
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct IndexOptions {
    pub(crate) plan: Option<Plan>,
    pub(crate) distance: Option<u32>,
    pub(crate) pipeline: Option<String>,
    pub(crate) keep_features: Option<bool>,
    pub(crate) resources: Resources,
    pub(crate) memory: usize,
    pub(crate) resident: usize,
    pub(crate) costs: Costs,
    pub(crate) read_only: bool,
    pub(crate) background_merge: bool,
    pub(crate) low_priority_compaction: bool,
    pub(crate) scratch: Option<PathBuf>,
    pub(crate) events: Events,
}

impl Default for IndexOptions {
    fn default() -> Self {
        Self {
            plan: None,
            distance: None,
            pipeline: None,
            keep_features: None,
            resources: Resources::default(),
            memory: DEFAULT_MEMORY,
            resident: 0,
            costs: Costs::default(),
            read_only: false,
            background_merge: false,
            low_priority_compaction: false,
            scratch: None,
            events: Events::default(),
        }
    }
}

impl IndexOptions {
    /// Creates options for four tables, distance 3 and no pipeline, or for any existing index.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the plan of the permutation tables. Default: four tables, each led by one block.
    pub fn plan(mut self, plan: Plan) -> Self {
        self.plan = Some(plan);
        self
    }

    /// Sets the default distance of searches in bits. Default: 3.
    pub fn distance(mut self, bits: u32) -> Self {
        self.distance = Some(bits);
        self
    }

    /// Sets the descriptor of the text pipeline, in the caller's words. Default: empty.
    ///
    /// For fingerprints made elsewhere: opening the index with another descriptor is then refused.
    /// For a [`Pipeline`] of this library use [`IndexOptions::text`].
    ///
    /// ```
    /// use hamdex::{Index, IndexOptions};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// let options = IndexOptions::new().pipeline("perceptual hash of images, v1");
    /// let index = Index::<u64>::create(directory.path(), &options)?;
    /// assert_eq!(index.header().pipeline, "perceptual hash of images, v1");
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn pipeline(mut self, descriptor: impl Into<String>) -> Self {
        self.pipeline = Some(descriptor.into());
        self.resources = Resources::default();
        self
    }

    /// Sets the pipeline that makes the fingerprints, including the caller's tables.
    ///
    /// [`Index::pipeline`](crate::Index::pipeline) rebuilds it from the index.
    ///
    /// ```
    /// use hamdex::{Index, IndexOptions, Pipeline, PipelineOptions};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// let pipeline = Pipeline::new(&PipelineOptions::preset("post")?)?;
    /// let index = Index::<u64>::create(directory.path(), &IndexOptions::new().text(&pipeline))?;
    /// assert_eq!(index.header().pipeline, pipeline.descriptor());
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn text(mut self, pipeline: &Pipeline) -> Self {
        self.pipeline = Some(pipeline.descriptor().to_owned());
        self.resources = pipeline.resources().clone();
        self
    }

    /// Stores the feature sets of documents, for verification. Default: false.
    ///
    /// A set takes about 3 bytes per feature, and at most 5 KiB. See
    /// [`FeatureSet`](crate::verify::FeatureSet).
    ///
    /// ```
    /// use hamdex::{Index, IndexOptions};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// let options = IndexOptions::new().keep_features(true);
    /// let index = Index::<u64>::create(directory.path(), &options)?;
    /// assert!(index.header().keeps_features);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn keep_features(mut self, yes: bool) -> Self {
        self.keep_features = Some(yes);
        self
    }

    /// Sets the memory for block cache, write buffers and unmerged fingerprints in bytes.
    ///
    /// Default: 512 MiB. At least 16 MiB are used. An eighth is for unmerged fingerprints: 8 bytes
    /// for each of 64 bits, and 24 with tables. Writers merge before it is full. A handle that only
    /// reads, with less memory than a writer had, may have to read all of them at each search. Up to
    /// half of the block cache is for ranges of tables and packed postings that searches have read: with
    /// them a search at distance 3 takes a fifth to a half of the time. Those of a whole index of 64
    /// bits and four tables take some 40 bytes a document, and 25 for postings. None are kept while
    /// merges are at work.
    ///
    /// A process that searches and inserts takes at most 160 MiB more, of which some 40 MiB are the
    /// program itself, and about a quarter of this while it merges. Tested with up to 100 million
    /// documents, random and crafted. Resident fingerprints, joins and long answers are extra.
    ///
    /// Memory that glibc's `malloc` keeps for the thread that freed it is extra too. A cache of
    /// blocks that many threads fill and empty leaves much of it: with 1 GiB, after minutes of
    /// searches and inserts, 0.5 GB. With jemalloc, which `hamdex` has on Linux, there is none, and
    /// searches beside writers are faster. A program links it, or starts with it in `LD_PRELOAD`.
    pub fn memory(mut self, bytes: usize) -> Self {
        self.memory = bytes;
        self
    }

    /// Sets the memory for resident fingerprints in bytes. Default: 0, not resident.
    ///
    /// Resident fingerprints make searches faster. This is in addition to [`memory`](Self::memory).
    /// See [`Index::load_resident`](crate::Index::load_resident).
    pub fn resident(mut self, bytes: usize) -> Self {
        self.resident = bytes;
        self
    }

    /// Sets the costs by which searches choose their path. Default: those of a typical server.
    ///
    /// [`calibrate`](crate::inspect::calibrate()) measures them. They never change an answer.
    pub fn costs(mut self, costs: Costs) -> Self {
        self.costs = costs;
        self
    }

    /// Opens read-only, beside a process that may write. Default: false.
    ///
    /// [`Index::create`](crate::Index::create) refuses it.
    ///
    /// ```
    /// use hamdex::{Error, Index, IndexOptions};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("pages");
    /// drop(Index::<u64>::create(&path, &IndexOptions::new())?);
    /// let index = Index::<u64>::open_with(&path, &IndexOptions::new().read_only(true))?;
    /// assert!(matches!(index.insert(b"page", 0xff), Err(Error::ReadOnly { .. })));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn read_only(mut self, yes: bool) -> Self {
        self.read_only = yes;
        self
    }

    /// Sets where a [`Secondary`](crate::Secondary) keeps its own log.
    ///
    /// Default: the system's temporary directory. The log is removed when the secondary is dropped.
    /// [`Secondary::open_with`](crate::Secondary::open_with) has an example.
    ///
    /// ```
    /// use hamdex::{Index, IndexOptions, Secondary};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("pages");
    /// let writer = Index::<u64>::create(&path, &IndexOptions::new())?;
    /// let options = IndexOptions::new().scratch(directory.path());
    /// let secondary = Secondary::<u64>::open_with(&path, &options)?;
    /// assert!(secondary.reader()?.is_empty());
    /// # drop(writer);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn scratch(mut self, directory: impl Into<PathBuf>) -> Self {
        self.scratch = Some(directory.into());
        self
    }

    /// Returns the plan of a header whose width is right and that meets the expectations.
    pub(super) fn plan_of<F: Fingerprint>(&self, record: &HeaderRecord) -> Result<Plan> {
        let header = Header::of(record);
        header.require_width::<F>()?;
        self.require(&header)?;
        plan_of(record)
    }

    /// Merges delta entries into runs in a background thread. Default: false.
    ///
    /// A merge begins after 65,536 new or removed documents, or an eighth of all if that is more. It
    /// rests seven eighths of the time, and less if writes are ahead of it. In an index of a bulk build
    /// with packs, the thread also packs documents, once those that were inserted, replaced or removed
    /// since are half as many as all, in the memory that [`Index::compact`](crate::Index::compact)
    /// takes. [`Index::health`](crate::Index::health) reports its state. Without the thread, writes
    /// merge once unmerged fingerprints take a 16th of the memory, and beside a thread that falls
    /// behind, once they take a tenth: some of them take milliseconds longer.
    pub fn background_merge(mut self, yes: bool) -> Self {
        self.background_merge = yes;
        self
    }

    /// Runs compactions at the lowest CPU priority. Default: false.
    ///
    /// On a machine whose CPUs are busy, searches then wait less for compactions; compactions take
    /// longer. If searches and writes never leave CPU time for them, new files pile up until writes
    /// wait for seconds. `RocksDB` has one pool of such threads per process, so this applies to all
    /// databases of the process, until it exits. Ignored when reading only.
    ///
    /// ```
    /// use hamdex::{Index, IndexOptions};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("pages");
    /// drop(Index::<u64>::create(&path, &IndexOptions::new())?);
    /// let options = IndexOptions::new().background_merge(true).low_priority_compaction(true);
    /// let index = Index::<u64>::open_with(&path, &options)?;
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn low_priority_compaction(mut self, yes: bool) -> Self {
        self.low_priority_compaction = yes;
        self
    }

    /// Sets the receiver of every [`Event`](crate::health::Event). Default: none.
    ///
    /// It is called on the thread where the event occurred, which waits until it returns. Several
    /// threads may call it at once. It may use the index.
    ///
    /// ```
    /// use hamdex::health::Event;
    /// use hamdex::{Index, IndexOptions};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("pages");
    /// drop(Index::<u64>::create(&path, &IndexOptions::new())?);
    /// let (sender, events) = std::sync::mpsc::channel();
    /// let options = IndexOptions::new().on_event(move |event| {
    ///     if let Event::Flushed { took } = event {
    ///         let _ = sender.send(*took);
    ///     }
    /// });
    /// Index::<u64>::open_with(&path, &options)?.flush()?;
    /// assert_eq!(events.try_iter().count(), 1);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn on_event(mut self, sink: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        self.events = Events::new(sink);
        self
    }

    /// Returns [`Error::HeaderMismatch`](crate::Error::HeaderMismatch) if a stored setting differs.
    pub(crate) fn require(&self, header: &Header) -> Result<()> {
        let plan = self.plan.as_ref().map(ToString::to_string);
        header.require(plan, self.distance, self.pipeline.clone(), self.keep_features)
    }
}

/// What an acknowledged write survives.
///
/// ```
/// # let directory = tempfile::tempdir().unwrap();
/// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
/// use hamdex::Durability;
///
/// index.insert_batch(&[(b"a", 0xff_u64)], Durability::Buffered)?;
/// index.insert_batch(&[(b"b", 0xfe_u64)], Durability::Synced)?; // both survive a power loss now
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Durability {
    /// The end of the process, even by kill -9, but not a power loss.
    Buffered,
    /// A power loss as well. Costs one fsync of the log per call.
    #[default]
    Synced,
}
