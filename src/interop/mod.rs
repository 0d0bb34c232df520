//! Attached indexes: near-duplicates of a host's documents, in the host's own `RocksDB`.
//!
//! A service that keeps its documents in a `RocksDB` database has two stores to keep in step as
//! soon as an [`Index`] stands beside it. Attached, the index lives in families of the host's
//! database, and its changes go into the host's [`WriteBatch`]: a document and its entries are
//! committed together, or neither is, whatever happens in between.
//!
//! Only with the feature `rocksdb-interop`; [`rocksdb`] is the crate that the library itself is
//! linked with. The database is a [`HostDb`], the plain `rocksdb::DB` unless a program asks for
//! `multi-threaded-cf`: families are opened with it and never made behind its back, while reads
//! and writes may come from any number of threads.
//!
//! # What the host does
//!
//! It opens the database with the families of [`Attached::families`], by the descriptors given
//! or with options of its own. The families are named `hamdex.NAME.meta`, `.docs`, `.postings`
//! and `.table000` onwards; nobody else may write to them. Batches go through the log; without
//! it (`disable_wal`) a crash may part what was committed together, unless the database was
//! opened with `set_atomic_flush`.
//!
//! # Two batches at once
//!
//! What is staged is a list ([`Staged`]) that locks nothing. Only [`Attached::commit`] and
//! [`Attached::commit_with`] read the index, add its changes to the batch and hold off whoever
//! could make them untrue, until the batch is written or dropped. So batches over the same keys,
//! or over near fingerprints, are committed one after the other, and each is whole.
//!
//! # What an attached index lacks
//!
//! Searches, readers, joins, direct writes, fold, compaction, check and statistics are those of
//! any index, by [`Attached::index`]. What belongs to a database as a whole stays with the host:
//! [`Index::backup`], [`Index::checkpoint`] and [`Index::check_deep`] fail with
//! [`Error::Attached`], there is no seal that would tell a cut log from
//! a loss of power, no lock file, no [`Secondary`](crate::Secondary), and no bulk build, which
//! takes whole generations of families. [`Index::compact`] and a fold's end compact the index's
//! own families alone.
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
use crate::index::{Durability, Header, Index, IndexOptions, OpenOptions, Reader, new_header};
use crate::store::{self, Store};

/// A host's database: one whose families are made at opening or through `&mut`.
pub type HostDb = rocksdb::DBWithThreadMode<rocksdb::SingleThreaded>;

/// An index in families of a host's database.
///
/// See the [module](self) for what the host has to do. One handle at a time holds a name of a
/// database; it may be shared by threads, and keeps the database open.
#[derive(Debug)]
pub struct Attached<F: Fingerprint> {
    index: Index<F>,
    db: Arc<HostDb>,
}

impl<F: Fingerprint> Attached<F> {
    /// Names the families that a host has to open, with settings that fit them.
    ///
    /// They share a block cache and write buffers within [`IndexOptions::memory`]; the plan
    /// settles how many there are. A name has 1 to 64 letters, digits, `-` and `_`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] for another name, and as [`Index::create`] for the options.
    pub fn families(name: &str, options: &IndexOptions) -> Result<Vec<ColumnFamilyDescriptor>> {
        let (_, plan) = new_header::<F>(options)?;
        store::descriptors(name, plan.tables().len(), options.memory)
    }

    /// Makes a new, empty index in families that hold nothing.
    ///
    /// # Errors
    ///
    /// [`Error::MissingFamily`] where the database was opened without them,
    /// [`Error::AlreadyExists`] where an index or anything else is in them, [`Error::Locked`]
    /// while another handle holds the name, [`Error::HeaderMismatch`] for families of a plan with
    /// more tables, and as [`Index::create`] for the options.
    pub fn create(db: Arc<HostDb>, name: &str, options: &IndexOptions) -> Result<Self> {
        let index = Index::attach_new(Arc::clone(&db), name, options)?;
        Ok(Self { index, db })
    }

    /// Opens an index that was made before.
    ///
    /// # Errors
    ///
    /// As [`Attached::open_with`].
    pub fn open(db: Arc<HostDb>, name: &str) -> Result<Self> {
        Self::open_with(db, name, &OpenOptions::new())
    }

    /// Opens an index that was made before, with settings.
    ///
    /// The memory budget is that of the families, so [`OpenOptions::memory`] says nothing here.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] where none was made, [`Error::WidthMismatch`],
    /// [`Error::HeaderMismatch`] for what was expected and differs and for families of a plan
    /// with more tables, [`Error::MissingFamily`], [`Error::Locked`] while another handle holds
    /// the name, [`Error::FormatVersion`] and [`Error::Corrupt`]; [`Error::Attached`] for
    /// settings that open for reading only, which is the host's to settle.
    pub fn open_with(db: Arc<HostDb>, name: &str, options: &OpenOptions) -> Result<Self> {
        if options.read_only {
            return Err(Error::Attached { what: "open it for reading only" });
        }
        let index = Index::attach(Arc::clone(&db), name, options)?;
        Ok(Self { index, db })
    }

    /// Opens the index, or makes it where none was made.
    ///
    /// Distance, plan, pipeline and features that the options name have to be those of an index
    /// that is there.
    ///
    /// # Errors
    ///
    /// As [`Attached::open_with`] and [`Attached::create`].
    pub fn open_or_create(db: Arc<HostDb>, name: &str, options: &IndexOptions) -> Result<Self> {
        let Some(record) = Store::attached_header(&db, name)? else {
            return Self::create(db, name, options);
        };
        let header = Header::of(&record);
        header.require_width::<F>()?;
        header.require(
            options.plan.as_ref().map(ToString::to_string),
            options.distance,
            options.pipeline.clone(),
            options.keep_features,
        )?;
        Self::open_with(db, name, &OpenOptions::new().resident(options.resident))
    }

    /// Returns the index, for everything but batches of the host's.
    ///
    /// What is written through it goes to the log at once, in a batch of its own.
    pub fn index(&self) -> &Index<F> {
        &self.index
    }

    /// Returns the host's database.
    pub fn database(&self) -> &Arc<HostDb> {
        &self.db
    }

    /// Freezes the whole database, the index's families and the host's, at one moment.
    ///
    /// # Errors
    ///
    /// Damage or failures of the store.
    pub fn freeze(&self) -> Result<Frozen<F>> {
        self.index.reader().map(|reader| Frozen { reader })
    }

    /// Commits a host's batch and what was staged, all or nothing.
    ///
    /// # Errors
    ///
    /// As [`Index::insert_batch`] and, for [`Staged::insert_if_new`],
    /// [`Index::insert_batch_if_new`]; then nothing was changed, except that after a failed fsync
    /// the change is visible and may not survive a loss of power. The batch is gone either way.
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
        self.index.settle(durability)?;
        Ok(report)
    }

    /// Commits a host's batch and what was staged by a write of the host's own.
    ///
    /// `write` gets the batch with everything in it, and learns what was refused before it adds
    /// changes that depend on it. It has to write the batch, or drop it and with it everything,
    /// before it returns: from the staging until then no other writer changes what the entries
    /// were made by, and a batch that is written later may undo what came in between. What it
    /// returns is returned.
    ///
    /// Batches that only add documents under other keys are committed side by side; all others
    /// wait for their turn. `write` must not write to the same index, which would wait for
    /// itself, nor wait for other threads that do. It may commit to another one, so that two
    /// indexes change with one batch; all threads have to nest them in the same order. Searches
    /// within `write` are made on its own thread alone.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use hamdex::interop::{Attached, HostDb, Staged, rocksdb};
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
    /// pages.commit_with(&staged, WriteBatch::default(), |mut ready| {
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
    /// As [`Attached::commit`] before `write` is called, and what it returns.
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

/// A batch that is ready to be written, within [`Attached::commit_with`].
pub struct Ready<F> {
    /// The host's changes, and behind them the index's.
    pub batch: WriteBatch,
    /// What the index's changes are.
    pub report: StagedReport<F>,
}

impl<F: Fingerprint> std::fmt::Debug for Ready<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ready").field("report", &self.report).finish_non_exhaustive()
    }
}

/// One moment of a host's database: a [`Reader`] of the index and a snapshot of the rest.
///
/// What is read through both belongs together. It keeps the space of what is removed meanwhile.
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
