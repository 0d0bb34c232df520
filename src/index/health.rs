//! Health, memory and events: what an open index does by itself, takes and meets.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Index;
use super::fold::{Folder, Folding};
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::store::Pressure;

/// What goes on behind the calls of an open index.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// What the background fold is doing.
    pub folding: Folding,
    /// Fingerprints added since the last whole fold, roughly; at opening it is not known how many.
    pub unfolded: Option<u64>,
    /// Whether RocksDB holds back all writes until files are compacted.
    pub writes_stopped: bool,
    /// Bytes a second that RocksDB slows writes down to; 0 if it does not.
    pub writes_slowed_to: u64,
    /// Flushes and compactions that failed since opening.
    pub background_errors: u64,
    /// Flushes that run at the moment.
    pub flushes: u64,
    /// Compactions that run at the moment.
    pub compactions: u64,
    /// Bytes that compactions still have to rewrite, roughly.
    pub bytes_to_compact: u64,
}

/// Bytes of memory that an open index takes, by use.
///
/// The first three are RocksDB's; the cache and the write buffers share what
/// [`OpenOptions::memory`](crate::OpenOptions::memory) gives. Of an index in a host's database they
/// are those of its families, and the cache is the host's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUsage {
    /// Blocks of files that are held for later reads.
    pub block_cache: u64,
    /// Writes that are in the log and in no file yet.
    pub write_buffers: u64,
    /// Indexes and filters of open files, beside the cache.
    pub file_indexes: u64,
    /// Fingerprints held for searching in memory.
    pub resident: u64,
}

impl MemoryUsage {
    /// Returns the sum of all parts.
    pub fn total(&self) -> u64 {
        self.block_cache + self.write_buffers + self.file_indexes + self.resident
    }
}

impl<F: Fingerprint> Index<F> {
    /// Returns what goes on behind the calls, such as a fold that failed.
    ///
    /// Takes microseconds, and waits for nobody.
    ///
    /// # Errors
    ///
    /// Failures of the store.
    ///
    /// ```
    /// use hamdex::health::Folding;
    /// use hamdex::{Index, IndexOptions};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// let index = Index::<u64>::create(directory.path(), &IndexOptions::new())?;
    /// let health = index.health()?;
    /// assert_eq!(health.folding, Folding::Off);
    /// assert_eq!(health.background_errors, 0);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
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
            folding: self.folder.as_ref().map_or(Folding::Off, Folder::folding),
            unfolded: self.shared.committer.unfolded(),
            writes_stopped,
            writes_slowed_to,
            background_errors,
            flushes,
            compactions,
            bytes_to_compact,
        })
    }

    /// Returns the bytes of memory that the index takes, by use.
    ///
    /// Takes microseconds, and waits for nobody. Buffers of running calls are not counted.
    ///
    /// # Errors
    ///
    /// Failures of the store.
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
    pub fn memory_usage(&self) -> Result<MemoryUsage> {
        let (block_cache, write_buffers, file_indexes) = self.shared.store.memory_usage()?;
        let resident = self.resident_bytes().unwrap_or(0) as u64;
        Ok(MemoryUsage { block_cache, write_buffers, file_indexes, resident })
    }
}

/// A write that takes longer is an event.
const SLOW_WRITE: Duration = Duration::from_millis(100);

/// Something that an open index did or met.
///
/// See [`OpenOptions::on_event`](crate::OpenOptions::on_event).
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The background fold begins a pass over all tables.
    FoldBegan,
    /// The background fold ended its pass.
    FoldEnded {
        /// Table entries that became members of runs.
        folded: u64,
        /// Time since it began, rests included.
        took: Duration,
    },
    /// The background fold failed; it tries again unless it met damage.
    FoldFailed {
        /// What it met.
        error: &'a Error,
    },
    /// What was in memory was written to table files, at a call of
    /// [`Index::flush`](crate::Index::flush).
    Flushed {
        /// Time of the call.
        took: Duration,
    },
    /// A write took more than 100 ms from its turn to the log: RocksDB holds writes back, or the
    /// disk is slow. An fsync is not counted.
    SlowWrite {
        /// Time of the write.
        took: Duration,
    },
    /// A [`Secondary`](crate::Secondary) took in what was written.
    CaughtUp {
        /// Whether it had to open the index anew, for the writer wrote table files.
        reopened: bool,
        /// Time of the call.
        took: Duration,
    },
}

type Sink = dyn Fn(&Event<'_>) + Send + Sync;

/// Who is handed the events, if anybody.
#[derive(Clone, Default)]
pub(crate) struct Events(Option<Arc<Sink>>);

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Events" } else { "no events" })
    }
}

/// When something began that may become an event; `None` if nobody wants to know.
#[derive(Debug, Clone, Copy)]
pub(super) struct Began(Option<Instant>);

impl Events {
    pub(super) fn new(sink: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(sink)))
    }

    /// Hands an event over; the caller holds no lock.
    pub(super) fn tell(&self, event: &Event<'_>) {
        if let Some(sink) = &self.0 {
            sink(event);
        }
    }

    pub(super) fn began(&self) -> Began {
        Began(self.0.is_some().then(Instant::now))
    }

    /// Hands over what became of something, with the time it took.
    pub(super) fn ended<'e>(&self, Began(began): Began, event: impl FnOnce(Duration) -> Event<'e>) {
        if let Some(began) = began {
            self.tell(&event(began.elapsed()));
        }
    }

    /// Hands over a write that took long.
    pub(super) fn wrote(&self, Began(began): Began) {
        if let Some(took) = began.map(|began| began.elapsed()).filter(|took| *took > SLOW_WRITE) {
            self.tell(&Event::SlowWrite { took });
        }
    }
}
