//! Options: what an index is made with and how it is opened.

use std::path::PathBuf;

use super::Header;
use super::health::{Event, Events};
use crate::error::Result;
use crate::plan::{Costs, Plan};
use crate::text::{Pipeline, Resources};

/// Default memory budget of an open index: 512 MiB.
pub(crate) const DEFAULT_MEMORY: usize = 512 << 20;

/// Default distance: 3 bits, the literature's choice for 64-bit fingerprints of long text.
pub(crate) const DEFAULT_DISTANCE: u32 = 3;

/// Settings that a new index is made with.
///
/// ```
/// use hamdex::plan::Plan;
/// use hamdex::IndexOptions;
///
/// let options = IndexOptions::new().plan(Plan::named("10", 64)?).distance(3).memory(64 << 20);
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
        }
    }
}

impl IndexOptions {
    /// Starts from four tables, distance 3 and no pipeline.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the permutation tables. Default = four tables, each led by one block.
    pub fn plan(mut self, plan: Plan) -> Self {
        self.plan = Some(plan);
        self
    }

    /// Sets the distance of searches that name none. Default = 3.
    pub fn distance(mut self, bits: u32) -> Self {
        self.distance = Some(bits);
        self
    }

    /// Stores how fingerprints are made, so that other ways are refused. Default = empty.
    ///
    /// For fingerprints that come from outside, in the caller's own words; a [`Pipeline`] of
    /// this library is stored by [`IndexOptions::text`].
    pub fn pipeline(mut self, descriptor: impl Into<String>) -> Self {
        self.pipeline = Some(descriptor.into());
        self.resources = Resources::default();
        self
    }

    /// Stores the pipeline that makes the fingerprints, with the tables the caller gave it.
    ///
    /// [`Index::pipeline`](crate::Index::pipeline) rebuilds it from there.
    pub fn text(mut self, pipeline: &Pipeline) -> Self {
        self.pipeline = Some(pipeline.descriptor().to_owned());
        self.resources = pipeline.resources().clone();
        self
    }

    /// Keeps the feature set that comes with a document, for verification. Default = false.
    ///
    /// A set takes about 3 bytes a feature and 5 KiB at most; see
    /// [`FeatureSet`](crate::verify::FeatureSet).
    pub fn keep_features(mut self, yes: bool) -> Self {
        self.keep_features = Some(yes);
        self
    }

    /// Sets the bytes for block cache and write buffers. Default = 512 MiB.
    ///
    /// Below 16 MiB the budget counts as 16 MiB.
    pub fn memory(mut self, bytes: usize) -> Self {
        self.memory = bytes;
        self
    }

    /// Holds all fingerprints in memory for searching, within these bytes. Default = 0, not.
    ///
    /// On top of [`memory`](Self::memory); see
    /// [`Index::load_resident`](crate::Index::load_resident).
    pub fn resident(mut self, bytes: usize) -> Self {
        self.resident = bytes;
        self
    }
}

/// Settings that an existing index is opened with.
///
/// What is expected and differs from the header makes the opening fail with
/// [`Error::HeaderMismatch`](crate::Error::HeaderMismatch).
#[derive(Debug, Clone)]
#[must_use]
pub struct OpenOptions {
    pub(crate) memory: usize,
    pub(crate) resident: usize,
    pub(crate) costs: Costs,
    pub(crate) read_only: bool,
    pub(crate) plan: Option<String>,
    pub(crate) distance: Option<u32>,
    pub(crate) pipeline: Option<String>,
    pub(crate) background_fold: bool,
    pub(crate) scratch: Option<PathBuf>,
    pub(crate) events: Events,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            memory: DEFAULT_MEMORY,
            resident: 0,
            costs: Costs::default(),
            read_only: false,
            plan: None,
            distance: None,
            pipeline: None,
            background_fold: false,
            scratch: None,
            events: Events::default(),
        }
    }
}

impl OpenOptions {
    /// Starts from read and write access and no expectations.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the bytes for block cache and write buffers. Default = 512 MiB.
    pub fn memory(mut self, bytes: usize) -> Self {
        self.memory = bytes;
        self
    }

    /// Holds all fingerprints in memory for searching, within these bytes. Default = 0, not.
    ///
    /// On top of [`memory`](Self::memory); see
    /// [`Index::load_resident`](crate::Index::load_resident).
    pub fn resident(mut self, bytes: usize) -> Self {
        self.resident = bytes;
        self
    }

    /// Sets the prices by which searches choose their way. Default = those of a usual server.
    ///
    /// [`calibrate`](crate::inspect::calibrate()) measures them; answers are the same whatever they are.
    pub fn costs(mut self, costs: Costs) -> Self {
        self.costs = costs;
        self
    }

    /// Opens for reading only, beside a process that may write. Default = false.
    pub fn read_only(mut self, yes: bool) -> Self {
        self.read_only = yes;
        self
    }

    /// Demands the plan with these canonical words.
    pub fn expect_plan(mut self, plan: impl Into<String>) -> Self {
        self.plan = Some(plan.into());
        self
    }

    /// Demands this default distance.
    pub fn expect_distance(mut self, bits: u32) -> Self {
        self.distance = Some(bits);
        self
    }

    /// Demands the pipeline with this descriptor.
    pub fn expect_pipeline(mut self, descriptor: impl Into<String>) -> Self {
        self.pipeline = Some(descriptor.into());
        self
    }

    /// Sets where a [`Secondary`](crate::Secondary) keeps a log of its own.
    ///
    /// Default = the system's temporary directory; it goes when the secondary is dropped.
    pub fn scratch(mut self, directory: impl Into<PathBuf>) -> Self {
        self.scratch = Some(directory.into());
        self
    }

    /// Fails where the index is not what was expected.
    pub(super) fn require(&self, header: &Header) -> Result<()> {
        header.require(self.plan.clone(), self.distance, self.pipeline.clone(), None)
    }

    /// Folds single entries into runs on a thread of its own. Default = false.
    ///
    /// It begins once 65,536 documents are new and a 32nd of all, and rests three quarters of the
    /// time. [`Index::health`](crate::Index::health) shows how it fares.
    pub fn background_fold(mut self, yes: bool) -> Self {
        self.background_fold = yes;
        self
    }

    /// Sets what is called with every [`Event`](crate::health::Event). Default = nothing.
    ///
    /// It is called on the thread that met the event, which goes on when it returns; it may call
    /// the index. To be called from several threads at once.
    ///
    /// ```
    /// use hamdex::health::Event;
    /// use hamdex::{Index, IndexOptions, OpenOptions};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("pages");
    /// drop(Index::<u64>::create(&path, &IndexOptions::new())?);
    /// let (sender, events) = std::sync::mpsc::channel();
    /// let options = OpenOptions::new().on_event(move |event| {
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
}

/// What a write that was acknowledged survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// The end of the process, by kill -9 too, but not a loss of power.
    Buffered,
    /// A loss of power as well: one fsync of the log a call.
    #[default]
    Synced,
}
