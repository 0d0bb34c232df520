//! Attached indexes: near-duplicates of a host's documents, in the host's own `RocksDB`.
//!
//! A service that keeps its documents in a `RocksDB` database would have to keep a separate
//! [`Index`] in step with them. An attached index is stored in families of the host's database, and
//! its changes are part of the host's [`WriteBatch`]. So a document and its entries are always
//! committed together, even if the process crashes.
//!
//! Requires the feature `rocksdb-interop`. [`rocksdb`] is the crate that the library itself links.
//! The database is a [`HostDb`], which is `rocksdb::DB` unless a program enables
//! `multi-threaded-cf`. Families are opened with the database and never created later. Any number
//! of threads may read and write.
//!
//! # What the host does
//!
//! The host opens the database with the families of [`Attached::families`], using the descriptors
//! returned or its own options. The families are named `hamdex.NAME.meta`, `.docs`, `.postings` and
//! `.table000` onwards; only the index may write to them. Batches go through the log. Without the
//! log (`disable_wal`) a crash may separate what was committed together, unless the database was
//! opened with `set_atomic_flush`.
//!
//! # Concurrent batches
//!
//! [`Staged`] is a list of operations and holds no lock. [`Attached::commit`] and
//! [`Attached::commit_with`] read the index, add its changes to the batch, and block conflicting
//! writers until the batch is written or dropped. So batches over the same keys, or over near
//! fingerprints, are committed one after the other, and each is atomic.
//!
//! # Limits of an attached index
//!
//! [`Attached::index`] provides searches, readers, joins, direct writes, merges, compaction, checks
//! and statistics as for any index. Operations on a whole database are left to the host:
//!
//! - [`Index::backup`], [`Index::checkpoint`] and [`Index::check_deep`] return [`Error::Attached`].
//! - There is no seal, so a truncated log cannot be distinguished from a power loss.
//! - There is no lock file, no [`Secondary`](crate::Secondary) and no bulk build.
//! - [`Index::compact`] and [`Index::merge`] compact only the index's families.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//!
//! use hamdex::interop::{Attached, HostDb, Staged, rocksdb};
//! use hamdex::{Durability, IndexOptions};
//! use rocksdb::{ColumnFamilyDescriptor, Options, WriteBatch};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! let settings = IndexOptions::new().distance(3);
//! let mut families = Attached::<u64>::families("pages", &settings)?;
//! families.push(ColumnFamilyDescriptor::new("html", Options::default()));
//! let mut options = Options::default();
//! options.create_if_missing(true);
//! options.create_missing_column_families(true);
//! let db = Arc::new(HostDb::open_cf_descriptors(&options, directory.path(), families)?);
//! let pages = Attached::<u64>::open_or_create(Arc::clone(&db), "pages", &settings)?;
//!
//! let mut batch = WriteBatch::default();
//! batch.put_cf(db.cf_handle("html").unwrap(), b"example.org/", b"<p>Hello");
//! let mut staged = Staged::new();
//! staged.insert(b"example.org/", 0b0111);
//! pages.commit(&staged, batch, Durability::Buffered)?;
//!
//! assert_eq!(pages.index().search(0b0001)?[0].key, b"example.org/");
//! # Ok(())
//! # }
//! ```

mod staged;

use std::sync::Arc;

pub use rocksdb;
use rocksdb::{ColumnFamilyDescriptor, SnapshotWithThreadMode, WriteBatch};

pub use self::staged::{Refusal, Staged, StagedReport};
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::index::{Durability, Index, IndexOptions, Reader, new_header};
use crate::store::{self, Store};

/// A host's database: its families are created at opening or through `&mut`.
///
/// ```
/// # use hamdex::{IndexOptions, interop::{Attached, HostDb, rocksdb::Options}};
/// # let directory = tempfile::tempdir()?;
/// let families = Attached::<u64>::families("pages", &IndexOptions::new())?;
/// let mut options = Options::default();
/// options.create_if_missing(true);
/// options.create_missing_column_families(true);
/// let db = HostDb::open_cf_descriptors(&options, directory.path(), families)?;
/// assert!(db.cf_handle("hamdex.pages.docs").is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type HostDb = rocksdb::DBWithThreadMode<rocksdb::SingleThreaded>;

/// An index in families of a host's database.
///
/// See the [module](self) for what the host has to do. Only one handle at a time can hold a name in
/// a database. Threads may share the handle, and it keeps the database open.
#[derive(Debug)]
pub struct Attached<F: Fingerprint> {
    index: Index<F>,
    db: Arc<HostDb>,
}

impl<F: Fingerprint> Attached<F> {
    /// Returns the families that a host has to open, with suitable settings.
    ///
    /// They share a block cache and write buffers within [`IndexOptions::memory`] bytes. The plan
    /// determines their number. A name consists of 1 to 64 ASCII letters, digits, `-` and `_`.
    ///
    /// ```
    /// use hamdex::IndexOptions;
    /// use hamdex::interop::Attached;
    ///
    /// let families = Attached::<u64>::families("pages", &IndexOptions::new())?;
    /// assert_eq!(families[0].name(), "hamdex.pages.meta");
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::InvalidOption`] if the name is invalid, and the errors of
    /// [`Index::create`] for invalid options.
    pub fn families(name: &str, options: &IndexOptions) -> Result<Vec<ColumnFamilyDescriptor>> {
        let (_, plan) = new_header::<F>(options)?;
        store::descriptors(name, plan.tables().len(), options.memory)
    }

    /// Creates a new, empty index in families that hold nothing.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use hamdex::interop::{Attached, HostDb, Staged, rocksdb};
    /// # use hamdex::{Durability, IndexOptions};
    /// # let directory = tempfile::tempdir()?;
    /// # let settings = IndexOptions::new();
    /// # let families = Attached::<u64>::families("pages", &settings)?;
    /// # let mut options = rocksdb::Options::default();
    /// # options.create_if_missing(true);
    /// # options.create_missing_column_families(true);
    /// # let db = Arc::new(HostDb::open_cf_descriptors(&options, directory.path(), families)?);
    /// let pages = Attached::<u64>::create(Arc::clone(&db), "pages", &settings)?;
    /// drop(pages);
    /// let pages = Attached::<u64>::open(db, "pages")?;
    /// assert!(pages.index().is_empty()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::MissingFamily`] if the database was opened without a family,
    /// [`Error::AlreadyExists`] if a family is not empty, [`Error::Locked`] if another handle holds
    /// the name, [`Error::HeaderMismatch`] if the families belong to a plan with more tables, and
    /// the errors of [`Index::create`] for invalid options.
    pub fn create(db: Arc<HostDb>, name: &str, options: &IndexOptions) -> Result<Self> {
        let index = Index::attach_new(Arc::clone(&db), name, options)?;
        Ok(Self { index, db })
    }

    /// Opens an existing index with the default settings.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Attached::open_with`].
    pub fn open(db: Arc<HostDb>, name: &str) -> Result<Self> {
        Self::open_with(db, name, &IndexOptions::new())
    }

    /// Opens an existing index with the given settings.
    ///
    /// The memory budget was fixed with the families, so [`IndexOptions::memory`] has no effect.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use hamdex::interop::{Attached, HostDb, rocksdb::Options};
    /// # use hamdex::{IndexOptions};
    /// # let directory = tempfile::tempdir()?;
    /// # let settings = IndexOptions::new();
    /// # let mut options = Options::default();
    /// # options.create_if_missing(true);
    /// # options.create_missing_column_families(true);
    /// # let families = Attached::<u64>::families("pages", &settings)?;
    /// # let db = Arc::new(HostDb::open_cf_descriptors(&options, directory.path(), families)?);
    /// drop(Attached::<u64>::create(Arc::clone(&db), "pages", &settings)?);
    /// let options = IndexOptions::new().background_merge(true);
    /// let pages = Attached::<u64>::open_with(db, "pages", &options)?;
    /// assert_eq!(pages.index().len()?, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::NotFound`] if no index was created, [`Error::WidthMismatch`] or
    /// [`Error::HeaderMismatch`] if the index or its families differ from what is expected,
    /// [`Error::MissingFamily`] if a family was not opened, [`Error::Locked`] if another handle
    /// holds the name, [`Error::FormatVersion`] for another format and [`Error::Corrupt`] for
    /// damage. Returns [`Error::Attached`] for read-only settings: how the database is opened is
    /// the host's decision.
    pub fn open_with(db: Arc<HostDb>, name: &str, options: &IndexOptions) -> Result<Self> {
        if options.read_only {
            return Err(Error::Attached { what: "open it for reading only" });
        }
        let index = Index::attach(Arc::clone(&db), name, options)?;
        Ok(Self { index, db })
    }

    /// Opens the index, or creates it if there is none.
    ///
    /// Distance, plan, pipeline and features in `options` must match an existing index.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Attached::open_with`] and [`Attached::create`].
    pub fn open_or_create(db: Arc<HostDb>, name: &str, options: &IndexOptions) -> Result<Self> {
        match Store::attached_header(&db, name)? {
            Some(_) => Self::open_with(db, name, options),
            None => Self::create(db, name, options),
        }
    }

    /// Returns the index, for everything except the host's batches.
    ///
    /// Writes through it go to the log at once, each in a separate batch.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use hamdex::interop::{Attached, HostDb, Staged, rocksdb};
    /// # use hamdex::{Durability, IndexOptions};
    /// # let directory = tempfile::tempdir()?;
    /// # let settings = IndexOptions::new();
    /// # let families = Attached::<u64>::families("pages", &settings)?;
    /// # let mut options = rocksdb::Options::default();
    /// # options.create_if_missing(true);
    /// # options.create_missing_column_families(true);
    /// # let db = Arc::new(HostDb::open_cf_descriptors(&options, directory.path(), families)?);
    /// # let pages = Attached::<u64>::create(Arc::clone(&db), "pages", &settings)?;
    /// pages.index().insert(b"example.org/", 0b0111)?;
    /// assert_eq!(pages.index().search(0b0001)?.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn index(&self) -> &Index<F> {
        &self.index
    }

    /// Returns the host's database.
    pub fn database(&self) -> &Arc<HostDb> {
        &self.db
    }

    /// Takes a snapshot of the whole database: the index's and the host's families.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use hamdex::interop::{Attached, HostDb, Staged, rocksdb};
    /// # use hamdex::{Durability, IndexOptions};
    /// # let directory = tempfile::tempdir()?;
    /// # let settings = IndexOptions::new();
    /// # let families = Attached::<u64>::families("pages", &settings)?;
    /// # let mut options = rocksdb::Options::default();
    /// # options.create_if_missing(true);
    /// # options.create_missing_column_families(true);
    /// # let db = Arc::new(HostDb::open_cf_descriptors(&options, directory.path(), families)?);
    /// # let pages = Attached::<u64>::create(Arc::clone(&db), "pages", &settings)?;
    /// let before = pages.freeze()?;
    /// let mut batch = rocksdb::WriteBatch::default();
    /// batch.put(b"example.org/", b"<p>Hello");
    /// let mut staged = Staged::new();
    /// staged.insert(b"example.org/", 0b0111);
    /// pages.commit(&staged, batch, Durability::Buffered)?;
    ///
    /// assert!(before.reader().is_empty());
    /// assert!(before.snapshot().get(b"example.org/")?.is_none());
    /// assert!(pages.database().get(b"example.org/")?.is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error on damage or a failure of the store.
    pub fn freeze(&self) -> Result<Frozen<F>> {
        self.index.reader().map(|reader| Frozen { reader })
    }

    /// Commits a host's batch and the staged changes atomically.
    ///
    /// Waits for conflicting writers, and for an fsync of the log if `durability` is synced.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use hamdex::interop::{Refusal, Staged, StagedReport};
    /// # use hamdex::interop::{Attached, HostDb, rocksdb::{Options, WriteBatch}};
    /// # let directory = tempfile::tempdir()?;
    /// # let settings = hamdex::IndexOptions::new();
    /// # let mut options = Options::default();
    /// # options.create_if_missing(true);
    /// # options.create_missing_column_families(true);
    /// # let families = Attached::<u64>::families("pages", &settings)?;
    /// # let db = Arc::new(HostDb::open_cf_descriptors(&options, directory.path(), families)?);
    /// # let pages = Attached::<u64>::create(db, "pages", &settings)?;
    /// # let (batch, buffered) = (WriteBatch::default(), hamdex::Durability::Buffered);
    ///
    /// let mut staged = Staged::new();
    /// staged.insert(b"page", 0xff);
    /// staged.insert_if_new(b"mirror", 0xfe, 3);
    /// let report: StagedReport<u64> = pages.commit(&staged, batch, buffered)?;
    /// assert_eq!((report.inserted, report.refused.len()), (1, 1));
    /// let refusal: &Refusal<u64> = &report.refused[0];
    /// assert_eq!((&refusal.key[..], &refusal.near.key[..]), (&b"mirror"[..], &b"page"[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Index::insert_batch`], and those of [`Index::insert_batch_if_new`]
    /// for [`Staged::insert_if_new`]. Then nothing was changed, except if the fsync failed: the
    /// change is visible and may not survive a power loss. The batch is consumed in any case.
    pub fn commit(
        &self,
        staged: &Staged<'_, F>,
        batch: WriteBatch,
        durability: Durability,
    ) -> Result<StagedReport<F>> {
        let report = self.commit_with(staged, batch, |ready| {
            self.index.write_host(ready.batch)?;
            Ok::<_, Error>(ready.report)
        })?;
        self.index.make_durable(durability)?;
        Ok(report)
    }

    /// Commits a host's batch and the staged changes through the host's own write.
    ///
    /// `write` receives the complete batch and the report of what was refused, and may add changes
    /// that depend on it. It must write the batch, or drop it to change nothing, before it returns.
    /// Until then no other writer changes the data that the batch was made from; a batch written
    /// later could undo changes of others. Returns the result of `write`.
    ///
    /// Batches that only add documents under other keys are committed concurrently; all others wait
    /// for their turn. `write` must not write to the same index or wait for threads that do: this
    /// deadlocks. It may commit to another index, so that two indexes change with one batch, if all
    /// threads nest them in the same order. Searches within `write` run only on its own thread.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use hamdex::interop::{Attached, HostDb, Ready, Staged, rocksdb};
    /// # use hamdex::IndexOptions;
    /// # use rocksdb::{Options, WriteBatch, WriteOptions};
    /// # let directory = tempfile::tempdir()?;
    /// # let settings = IndexOptions::new();
    /// # let families = Attached::<u64>::families("pages", &settings)?;
    /// # let mut options = Options::default();
    /// # options.create_if_missing(true);
    /// # options.create_missing_column_families(true);
    /// # let db = HostDb::open_cf_descriptors(&options, directory.path(), families)?;
    /// # let db = Arc::new(db);
    /// # let pages = Attached::<u64>::create(Arc::clone(&db), "pages", &settings)?;
    /// let mut staged = Staged::new();
    /// staged.insert_if_new(b"mirror.example/", 0b0001, 3);
    /// pages.commit_with(&staged, WriteBatch::default(), |mut ready: Ready<u64>| {
    ///     if ready.report.refused.is_empty() {
    ///         ready.batch.put(b"mirror.example/", b"<p>Hello");
    ///     }
    ///     db.write_opt(ready.batch, &WriteOptions::default())?;
    ///     Ok::<(), Box<dyn std::error::Error>>(())
    /// })?;
    /// assert_eq!(pages.index().len()?, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Attached::commit`] if `write` was not called, else those of `write`.
    pub fn commit_with<T, E: From<Error>>(
        &self,
        staged: &Staged<'_, F>,
        batch: WriteBatch,
        write: impl FnOnce(Ready<F>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.index.commit_steps(&staged.steps, batch, |done| {
            let report = staged.report(done.inserted, done.replaced, done.removed, done.refused);
            write(Ready { batch: done.batch, report })
        })
    }
}

/// A batch ready to be written, within [`Attached::commit_with`].
#[non_exhaustive]
pub struct Ready<F> {
    /// The host's changes, followed by the index's.
    pub batch: WriteBatch,
    /// The changes of the index.
    pub report: StagedReport<F>,
}

impl<F: Fingerprint> std::fmt::Debug for Ready<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ready").field("report", &self.report).finish_non_exhaustive()
    }
}

/// A snapshot of a host's database, including the index.
///
/// It consists of a [`Reader`] of the index and a snapshot of the host's families, both of the same
/// moment. It keeps the space of data that is removed later.
///
/// ```
/// # use std::sync::Arc;
/// use hamdex::interop::Frozen;
/// # use hamdex::interop::{Attached, HostDb, rocksdb::Options};
/// # let directory = tempfile::tempdir()?;
/// # let settings = hamdex::IndexOptions::new();
/// # let mut options = Options::default();
/// # options.create_if_missing(true);
/// # options.create_missing_column_families(true);
/// # let families = Attached::<u64>::families("pages", &settings)?;
/// # let db = Arc::new(HostDb::open_cf_descriptors(&options, directory.path(), families)?);
/// # let pages = Attached::<u64>::create(Arc::clone(&db), "pages", &settings)?;
///
/// let frozen: Frozen<u64> = pages.freeze()?;
/// pages.index().insert(b"example.org/", 0b0111)?;
/// db.put(b"example.org/", b"<p>Hello")?;
/// assert!(frozen.reader().is_empty());
/// assert!(frozen.snapshot().get(b"example.org/")?.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Frozen<F> {
    reader: Reader<F>,
}

impl<F: Fingerprint> Frozen<F> {
    /// Returns the index at that moment.
    pub fn reader(&self) -> &Reader<F> {
        &self.reader
    }

    /// Returns the snapshot, for reading the host's own families.
    pub fn snapshot(&self) -> &SnapshotWithThreadMode<'_, HostDb> {
        self.reader.host_snapshot().expect("an attached index reads by snapshots")
    }
}
