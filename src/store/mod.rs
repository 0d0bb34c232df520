//! The store: families in one `RocksDB` database, written by atomic batches.
//!
//! Only this folder and `interop` name `RocksDB`. A generation is one complete set of `docs`,
//! `postings` and tables. One record in `meta` names the live generation, so a single write makes a
//! whole bulk build visible.
#![doc = include_str!("FORMAT.md")]

mod backup;
mod backup_record;
mod batch;
mod checkpoint;
pub(crate) mod codec;
mod create;
mod cursor;
mod database;
mod directory;
mod family;
mod files;
mod generation;
#[cfg(feature = "rocksdb-interop")]
mod host;
pub(crate) mod keys;
mod lock;
mod log_batches;
mod log_records;
mod meta;
mod pressure;
pub(crate) mod resources;
pub(crate) mod run;
mod salvage;
mod seal;
mod secondary;
mod settled;
mod sst;
mod staging;
mod tuning;
mod wreck;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rocksdb::{CompactOptions, ErrorKind, Options};
use tempfile::TempDir;

pub(crate) use backup::RestoreFrom;
pub(crate) use backup_record::{Record, Records};
pub(crate) use batch::Batch;
use codec::{HeaderRecord, Lane, State};
pub(crate) use cursor::{Cursor, Snapshot, View, counting_reads};
use database::Database;
pub(crate) use database::Db;
use directory::{CREATING_FILE, LOCK_FILE, Mark, exists};
pub(crate) use directory::{
    make as make_directory, rename as rename_durably, sync as sync_directory,
};
pub(crate) use family::Family;
pub(crate) use files::{read_files, read_some};
#[cfg(feature = "rocksdb-interop")]
pub(crate) use host::{HostBatch, HostSnapshot, descriptors};
use lock::Lock;
use log_records::LogRecords;
#[cfg(feature = "fuzzing")]
pub(crate) use meta::decode_header;
use meta::read_header;
pub(crate) use pressure::Pressure;
pub(crate) use salvage::Salvage;
pub use seal::SealState;
use seal::{Bounds, Seal};
use secondary::Following;
pub(crate) use sst::{LoneSstFile, SstBlock, SstFile, SstOptions};
use tuning::Tuning;
pub(crate) use tuning::{MIN_MEMORY, lower_compactions};

use crate::error::{Error, Result};
use crate::exclusion;
use crate::fail_point::fail_point;

/// Version of the stored format: keys, runs, records and the meaning of the header.
pub(crate) const FORMAT: u32 = 1;

const MAGIC: [u8; 6] = *b"hamdex";
const HEADER: &[u8] = b"header";
const STATE: &[u8] = b"state";

/// Keys of the lanes: separate document counts, so that concurrent batches do not share one.
const LANE_KEYS: [&[u8]; LANES] = [b"lane/0", b"lane/1", b"lane/2", b"lane/3"];

/// Number of batches that may add documents at the same time.
pub(crate) const LANES: usize = 4;

/// How a store is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Reads and writes. Refuses an index with an unfinished build.
    Write,
    /// Reads only: takes no lock and changes no file.
    Read,
    /// Writes for a bulk build. Accepts an unfinished build.
    Build,
}

/// An open database with the families of its live generation.
pub(crate) struct Store {
    db: Database,
    path: PathBuf,
    header: HeaderRecord,
    generation: u32,
    tables: usize,
    /// `None` in a host's database, whose families the host has opened.
    tuning: Option<Tuning>,
    writable: bool,
    /// `None` if read-only or in a host's database. Dropped after the database and before the lock.
    seal: Option<Seal>,
    /// `None` unless this store follows another process.
    secondary: Option<Following>,
    _lock: Option<Lock>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("path", &self.path)
            .field("generation", &self.generation)
            .finish_non_exhaustive()
    }
}

/// Separates corruption from all other errors that `RocksDB` reports.
fn engine_error(family: &str, error: rocksdb::Error) -> Error {
    if error.kind() == ErrorKind::Corruption {
        return Error::corrupt(family, error.into_string());
    }
    Error::Store { message: error.into_string() }
}

/// A database with all its families.
struct Opened {
    names: Vec<String>,
    tuning: Tuning,
    db: Db,
    /// The seal's bounds, which the files satisfied.
    bounds: Option<Bounds>,
}

/// Opens all families after checking the files and the log against the seal.
fn open_families(
    path: &Path,
    bounds: Option<Bounds>,
    memory: usize,
    read_only: bool,
    options: impl FnOnce(&Tuning) -> Options,
) -> Result<Opened> {
    let names = families(path)?;
    require_meta(path, &names)?;
    let tuning = Tuning::new(memory, names.len());
    let descriptors = names.iter().map(|name| tuning.descriptor(name));
    let options = options(&tuning);
    let db = if read_only {
        Db::open_cf_descriptors_read_only(&options, path, descriptors, false)
    } else {
        Db::open_cf_descriptors(&options, path, descriptors)
    }
    .map_err(|e| engine_error("database", e))?;
    if let Some(bounds) = &bounds {
        bounds.require_sequence(db.latest_sequence_number())?;
    }
    Ok(Opened { names, tuning, db, bounds })
}

impl Store {
    /// Opens the live generation. `tables` returns the number of tables of the header's plan.
    pub(crate) fn open(
        path: &Path,
        memory: usize,
        access: Access,
        tables: impl FnOnce(&HeaderRecord) -> Result<usize>,
    ) -> Result<Self> {
        require_database(path)?;
        let read_only = access == Access::Read;
        let lock = if read_only { None } else { Some(Lock::of_index(path)?) };
        let open = || {
            // Read before the database is opened: a concurrent writer only exceeds these bounds.
            let bounds = match Bounds::of_files(path) {
                // Another format may have another kind of seal: report the format instead.
                Err(error) => match Self::peek(path) {
                    Err(format @ Error::FormatVersion { .. }) => return Err(format),
                    _ => return Err(error),
                },
                bounds => bounds?,
            };
            let opened = open_families(path, bounds, memory, read_only, |tuning| {
                let mut options = tuning.database_as_it_is();
                if read_only {
                    // Keep all files open: a writer deletes files that it no longer needs.
                    options.set_max_open_files(-1);
                }
                options
            })?;
            let header = read_header(&opened.db, path)?;
            Ok((opened, header))
        };
        let (Opened { names, tuning, db, bounds }, header) =
            if read_only { settled::when_settled(path, open)? } else { open()? };
        let tables = tables(&header)?;
        fail_point!("open.recovered");
        if access == Access::Write {
            directory::remove_stage(path)?;
        }
        let seal = if read_only { None } else { Some(Seal::begin(path, bounds)?) };
        let mut store = Self {
            db: Database::Own(db),
            path: path.to_owned(),
            tables,
            header,
            generation: 0,
            tuning: Some(tuning),
            writable: !read_only,
            seal,
            secondary: None,
            _lock: lock,
        };
        store.generation = store.state()?.generation;
        if access != Access::Build && store.building()?.is_some() {
            return Err(Error::BuildUnfinished { path: path.to_owned() });
        }
        store.drop_stale_families(&names, access)?;
        store.require_generation()?;
        Ok(store)
    }

    /// Fails unless every family of the live generation exists.
    fn require_generation(&self) -> Result<()> {
        Family::of_generation(self.tables).try_for_each(|family| self.handle(family).map(drop))
    }

    /// Reads only the header, for any width.
    pub(crate) fn peek(path: &Path) -> Result<HeaderRecord> {
        Self::peek_resources(path, &[]).map(|(header, _)| header)
    }

    /// Reads the header and the named resources, for any width.
    pub(crate) fn peek_resources(
        path: &Path,
        names: &[&str],
    ) -> Result<(HeaderRecord, Vec<Option<Vec<u8>>>)> {
        require_database(path)?;
        settled::when_settled(path, || {
            // These records never change, so the beginning of a log is enough.
            let (families, cut) = families_of_cut(path)?;
            require_meta(path, &families)?;
            let meta = Family::Meta.name(0);
            let tuning = Tuning::new(MIN_MEMORY, 2);
            let descriptors = ["default", &meta].map(|name| tuning.descriptor(name));
            let db = Db::open_cf_descriptors_read_only(
                &tuning.database_as_it_is(),
                cut.as_ref().map_or(path, TempDir::path),
                descriptors,
                false,
            )
            .map_err(|e| engine_error("database", e))?;
            let header = read_header(&db, path)?;
            let handle =
                db.cf_handle(&meta).ok_or_else(|| Error::NotFound { path: path.to_owned() })?;
            let get = |key: &[u8]| db.get_cf(handle, key).map_err(|e| engine_error("meta", e));
            let found = names.iter().map(|name| resources::read(name, get));
            Ok((header, found.collect::<Result<_>>()?))
        })
    }

    /// Drops families that a finished, killed or abandoned build left behind.
    fn drop_stale_families(&mut self, names: &[String], access: Access) -> Result<()> {
        if access != Access::Write {
            return Ok(());
        }
        let live: Vec<_> =
            Family::of_generation(self.tables).map(|f| f.name(self.generation)).collect();
        for name in names {
            if name != "default" && *name != Family::Meta.name(0) && !live.contains(name) {
                self.db.drop_family(name)?;
                fail_point!("open.dropped");
            }
        }
        Ok(())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn header(&self) -> &HeaderRecord {
        &self.header
    }

    pub(crate) fn tables(&self) -> usize {
        self.tables
    }

    pub(crate) fn require_writable(&self) -> Result<()> {
        if self.writable { Ok(()) } else { Err(Error::ReadOnly { path: self.path.clone() }) }
    }

    /// Fails in a host's database; `what` names what the host has to do instead.
    pub(crate) fn require_own(&self, what: &'static str) -> Result<()> {
        self.db.require_own(what)
    }

    /// Returns a number that changes if others may have written since.
    pub(crate) fn turn(&self) -> u64 {
        self.db.turn()
    }

    fn tuning(&self) -> Result<&Tuning> {
        self.tuning.as_ref().ok_or(Error::Attached { what: "make its families" })
    }

    fn handle(&self, family: Family) -> Result<&rocksdb::ColumnFamily> {
        let name = self.db.name(family, self.generation);
        self.db
            .cf_handle(&name)
            .ok_or_else(|| Error::corrupt(family.to_string(), format!("family {name} is missing")))
    }

    /// Fails unless the database reaches a sequence number.
    fn require_sequence(&self, sequence: u64) -> Result<()> {
        let found = self.db.latest_sequence_number();
        if found >= sequence {
            return Ok(());
        }
        let detail = format!("ends at change {found}, but {sequence} were copied");
        Err(Error::corrupt("log", detail))
    }

    /// Reads the counts that every batch updates.
    pub(crate) fn state(&self) -> Result<State> {
        State::read(|key| self.get(Family::Meta, key))
    }

    /// Reads how many documents were added through a lane.
    #[expect(clippy::indexing_slicing, reason = "the committer has as many lanes as keys")]
    pub(crate) fn lane(&self, lane: usize) -> Result<u64> {
        let key = LANE_KEYS[lane];
        match self.get(Family::Meta, key)? {
            Some(bytes) => codec::decode::<Lane>("meta", key, &bytes).map(|lane| lane.added),
            None => Ok(0),
        }
    }

    pub(crate) fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.db.get_cf(self.handle(family)?, key).map_err(|e| engine_error(&family.to_string(), e))
    }

    /// Reads several keys of one family, in the order given.
    pub(crate) fn get_many(&self, family: Family, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>> {
        self.db
            .batched_multi_get_cf(self.handle(family)?, keys.iter(), false)
            .into_iter()
            .map(|found| match found {
                Ok(value) => Ok(value.map(|slice| slice.to_vec())),
                Err(error) => Err(engine_error(&family.to_string(), error)),
            })
            .collect()
    }

    pub(crate) fn batch(&self) -> Result<Batch<'_>> {
        self.require_writable()?;
        Batch::new(self, rocksdb::WriteBatch::default())
    }

    /// Makes everything written so far survive a power loss. Waits for one fsync of the log.
    pub(crate) fn sync(&self) -> Result<()> {
        exclusion::require_none();
        let sequence = self.db.latest_sequence_number();
        self.db.flush_wal(true).map_err(|e| engine_error("log", e))?;
        self.seal.as_ref().map_or(Ok(()), |seal| seal.synced(sequence))
    }

    /// Seals what the database added to its MANIFEST since the last call, usually nothing.
    pub(crate) fn follow(&self) -> Result<()> {
        self.seal.as_ref().map_or(Ok(()), Seal::follow)
    }

    /// Writes the memory tables to files.
    pub(crate) fn flush(&self) -> Result<()> {
        let mut families = vec![self.handle(Family::Meta)?];
        for family in Family::of_generation(self.tables) {
            families.push(self.handle(family)?);
        }
        self.db
            .flush_cfs_opt(&families, &rocksdb::FlushOptions::default())
            .map_err(|e| engine_error("database", e))?;
        self.follow()
    }

    /// Compacts a key range of a family, which frees the space of deleted entries.
    pub(crate) fn compact(
        &self,
        family: Family,
        from: Option<&[u8]>,
        to: Option<&[u8]>,
    ) -> Result<()> {
        let mut options = CompactOptions::default();
        // Otherwise files of concurrent writers pile up until RocksDB delays writes.
        options.set_exclusive_manual_compaction(false);
        self.db.compact_range_cf_opt(self.handle(family)?, from, to, &options);
        self.follow()
    }

    /// Opens a cursor for one pass over a family, without filling the cache.
    pub(crate) fn sweep(&self, family: Family) -> Result<Cursor<'_>> {
        let iterator = self.db.raw_iterator_cf_opt(self.handle(family)?, cursor::sweeping());
        let mut cursor = Cursor::new(iterator, family);
        cursor.seek(&[]);
        Ok(cursor)
    }

    /// Returns options for SST files of a family, shared by the writers of a build.
    pub(crate) fn sst_options(&self, family: Family) -> Result<SstOptions> {
        let name = family.name(self.generation);
        Ok(SstOptions::new(self.tuning()?.family(&name), family))
    }

    /// Takes a snapshot of the current state.
    pub(crate) fn snapshot(self: &Arc<Self>) -> Arc<Snapshot> {
        cursor::snapshot(Arc::clone(self))
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // Sync and seal the rest of the log, so that later damage to it is detected. If this fails,
        // nothing is lost that was acknowledged as synced.
        if let Some(seal) = &self.seal
            && self.sync().is_ok()
        {
            seal.end();
        }
    }
}

/// Builds the header of a new index.
pub(crate) fn header(
    bits: u32,
    distance: u32,
    plan: String,
    pipeline: String,
    keeps_features: bool,
) -> HeaderRecord {
    HeaderRecord { magic: MAGIC, format: FORMAT, bits, distance, plan, pipeline, keeps_features }
}

fn require_database(path: &Path) -> Result<()> {
    match Mark::of(path)? {
        Some(Mark::Restoring) => Err(Error::RestoreUnfinished { path: path.to_owned() }),
        None if exists(path, "CURRENT")? => Ok(()),
        _ => Err(Error::NotFound { path: path.to_owned() }),
    }
}

/// Lists the families of a database, after checking that its logs can be read.
fn families(path: &Path) -> Result<Vec<String>> {
    LogRecords::default().require(path)?;
    Db::list_cf(&Options::default(), path).map_err(|e| engine_error("meta", e))
}

/// As [`families`], but truncates an unreadable log in a directory of links.
fn families_of_cut(path: &Path) -> Result<(Vec<String>, Option<TempDir>)> {
    let error = match families(path) {
        Ok(names) => return Ok((names, None)),
        Err(error) => error,
    };
    let cut = log_records::cut_short(path)?.ok_or(error)?;
    Ok((families(cut.path())?, Some(cut)))
}

fn require_meta(path: &Path, families: &[String]) -> Result<()> {
    if families.contains(&Family::Meta.name(0)) {
        return Ok(());
    }
    Err(no_index(path, "the manifest names no family of an index"))
}

/// Distinguishes a damaged index from another program's database, which has no lock file of hamdex.
fn no_index(path: &Path, detail: &str) -> Error {
    match exists(path, LOCK_FILE) {
        Ok(true) => Error::corrupt("meta", detail),
        Ok(false) => Error::NotFound { path: path.to_owned() },
        Err(error) => error,
    }
}
