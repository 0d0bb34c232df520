//! Health, memory and events: what an open index does in the background and how much it uses.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Index;
use super::fold::{Folder, Merging};
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::store::Pressure;

/// State of the background work of an open index.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// State of the background merge.
    pub merging: Merging,
    /// Fingerprints added or removed since the last complete merge, roughly.
    pub unmerged: u64,
    /// Whether RocksDB stops all writes until files are compacted.
    pub writes_stopped: bool,
    /// Bytes per second to which RocksDB limits writes, or 0 for no limit.
    pub writes_slowed_to: u64,
    /// Number of failed flushes and compactions since opening.
    pub background_errors: u64,
    /// Number of running flushes.
    pub flushes: u64,
    /// Number of running compactions.
    pub compactions: u64,
    /// Bytes that compactions still have to rewrite, roughly.
    pub bytes_to_compact: u64,
}

/// Memory of an open index in bytes, by use.
///
/// The first three parts belong to RocksDB. The cache, the write buffers and unmerged fingerprints
/// share the budget of [`IndexOptions::memory`](crate::IndexOptions::memory). For an index in a
/// host's database these are the values of its families, and the cache is the host's.
///
/// ```
/// use hamdex::health::MemoryUsage;
/// # let directory = tempfile::tempdir().unwrap();
/// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
///
/// let usage: MemoryUsage = index.memory_usage()?;
/// assert!(usage.total() >= usage.block_cache);
/// assert_eq!(usage.resident, 0);
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUsage {
    /// Cached blocks of files.
    pub block_cache: u64,
    /// Ranges of tables and postings that searches have read, in place of blocks.
    pub ranges: u64,
    /// Writes that are in the log but not yet in a file.
    pub write_buffers: u64,
    /// Indexes and filters of open files, outside the cache.
    pub file_indexes: u64,
    /// Fingerprints held in memory for searches.
    pub resident: u64,
    /// Fingerprints in a mapped file, which processes share and the system can drop.
    pub resident_shared: u64,
    /// Fingerprints in memory that no merge has taken in yet.
    pub unmerged: u64,
}

impl MemoryUsage {
    /// Returns the sum of all parts in bytes, without what is shared.
    pub fn total(&self) -> u64 {
        let stored = self.block_cache + self.ranges + self.write_buffers + self.file_indexes;
        stored + self.resident + self.unmerged
    }
}

impl<F: Fingerprint> Index<F> {
    /// Returns the state of the background work, such as a failed merge.
    ///
    /// Takes microseconds and never blocks.
    ///
    /// ```
    /// use hamdex::health::Health;
    /// use hamdex::health::Merging;
    /// use hamdex::{Index, IndexOptions};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// let index = Index::<u64>::create(directory.path(), &IndexOptions::new())?;
    /// let health: Health = index.health()?;
    /// assert_eq!(health.merging, Merging::Off);
    /// assert_eq!(health.background_errors, 0);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns failures of the store.
    pub fn health(&self) -> Result<Health> {
        let Pressure {
            writes_stopped,
            writes_slowed_to,
            background_errors,
            flushes,
            compactions,
            bytes_to_compact,
        } = self.shared.store.pressure()?;
        Ok(Health {
            merging: self.folder.as_ref().map_or(Merging::Off, Folder::merging),
            unmerged: self.shared.committer.unmerged(),
            writes_stopped,
            writes_slowed_to,
            background_errors,
            flushes,
            compactions,
            bytes_to_compact,
        })
    }

    /// Returns the memory that the index uses, in bytes and by use.
    ///
    /// Takes microseconds and never blocks. Buffers of running calls are not included.
    ///
    /// ```
    /// use hamdex::{Index, IndexOptions};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// let index = Index::<u64>::create(directory.path(), &IndexOptions::new())?;
    /// let before = index.memory_usage()?;
    /// assert!(index.load_resident(1 << 20)?);
    /// assert!(index.memory_usage()?.total() > before.total());
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns failures of the store.
    pub fn memory_usage(&self) -> Result<MemoryUsage> {
        let (block_cache, write_buffers, file_indexes) = self.shared.store.memory_usage()?;
        let held = self.shared.committer.resident();
        let (all, shared) = held.map_or((0, 0), |held| (held.bytes(), held.shared_bytes()));
        let unmerged = self.shared.committer.unmerged_bytes() as u64;
        Ok(MemoryUsage {
            block_cache,
            ranges: self.shared.committer.range_bytes(),
            write_buffers,
            file_indexes,
            resident: (all - shared) as u64,
            resident_shared: shared as u64,
            unmerged,
        })
    }
}

/// Writes that take longer are reported as events.
const SLOW_WRITE: Duration = Duration::from_millis(100);

/// An event in an open index.
///
/// [`IndexOptions::on_event`](crate::IndexOptions::on_event) sets the receiver and has an example.
///
/// ```
/// use hamdex::health::Event;
/// use hamdex::{Index, IndexOptions};
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path().join("pages");
/// drop(Index::<u64>::create(&path, &IndexOptions::new())?);
/// let options = IndexOptions::new().on_event(|event| match event {
///     Event::MergeFailed { error } => eprintln!("the merge is retried: {error}"),
///     Event::SlowWrite { took } => eprintln!("a write took {took:?}"),
///     _ => {}
/// });
/// Index::<u64>::open_with(&path, &options)?.insert(b"page", 0xff)?;
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The background merge began a pass over all tables.
    MergeBegan,
    /// The background merge finished its pass.
    MergeEnded {
        /// Number of table entries merged into runs.
        merged: u64,
        /// Duration of the pass, including rests.
        took: Duration,
    },
    /// The background merge finished packing documents that were inserted after a bulk build.
    Packed {
        /// Duration of the repacking, including rests.
        took: Duration,
    },
    /// The background merge failed. It tries again, except after damage.
    MergeFailed {
        /// The error.
        error: &'a Error,
    },
    /// [`Index::flush`](crate::Index::flush) wrote the memory tables to table files.
    Flushed {
        /// Duration of the call.
        took: Duration,
    },
    /// A write took more than 100 ms from its turn to the log, without the fsync.
    ///
    /// Either RocksDB delays writes, or the disk is slow.
    SlowWrite {
        /// Duration of the write.
        took: Duration,
    },
    /// A [`Secondary`](crate::Secondary) caught up with the writer.
    CaughtUp {
        /// Whether the index had to be opened again, because the writer wrote table files.
        reopened: bool,
        /// Duration of the call.
        took: Duration,
    },
}

type Sink = dyn Fn(&Event<'_>) + Send + Sync;

/// The receiver of events, if any.
#[derive(Clone, Default)]
pub(crate) struct Events(Option<Arc<Sink>>);

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Events" } else { "no events" })
    }
}

/// Start time of something that may become an event. `None` without a receiver.
#[derive(Debug, Clone, Copy)]
pub(super) struct Began(Option<Instant>);

impl Events {
    pub(super) fn new(sink: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(sink)))
    }

    /// Passes an event to the receiver. The caller must hold no lock.
    pub(super) fn emit(&self, event: &Event<'_>) {
        if let Some(sink) = &self.0 {
            sink(event);
        }
    }

    pub(super) fn began(&self) -> Began {
        Began(self.0.is_some().then(Instant::now))
    }

    /// Passes an event with the time since `began` to the receiver.
    pub(super) fn ended<'e>(&self, Began(began): Began, event: impl FnOnce(Duration) -> Event<'e>) {
        if let Some(began) = began {
            self.emit(&event(began.elapsed()));
        }
    }

    /// Passes an event to the receiver if a write was slow.
    pub(super) fn wrote(&self, Began(began): Began) {
        if let Some(took) = began.map(|began| began.elapsed()).filter(|took| *took > SLOW_WRITE) {
            self.emit(&Event::SlowWrite { took });
        }
    }
}
