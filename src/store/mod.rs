//! The store: families in one `RocksDB` database, written by atomic batches.
//!
//! Only this folder and `interop` name `RocksDB`. A generation is one complete set of `docs`,
//! `postings` and tables. One record in `meta` names the live generation, so a single write makes a
//! whole bulk build visible.
#![doc = include_str!("FORMAT.md")]

mod bytes;
mod data;
mod disk;
mod open;
mod recovery;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rocksdb::{CompactOptions, ErrorKind};

use bytes::codec::{HeaderRecord, Lane, State};
pub(crate) use bytes::{codec, delta_run, keys, pack, run};
pub(crate) use data::batch::{Batch, Detached};
pub(crate) use data::cursor::{Cursor, Snapshot, counting_reads};
#[cfg(test)]
pub(crate) use data::cursor::{counting_cached, counting_deleted};
pub(crate) use data::generation::Family;
pub(crate) use data::obsolete::Obsolete;
use data::overlay::{PackedEnd, Packs};
pub(crate) use data::repack::Repacking;
pub(crate) use data::resources;
pub(crate) use data::view::{Postings, Runs, View};
use disk::database_id::DatabaseId;
use disk::directory::Lock;
pub(crate) use disk::directory::{
    STATE_DIR, make as make_directory, rename as rename_durably, sync as sync_directory,
    write_whole,
};
pub(crate) use disk::files::read_files;
#[cfg(feature = "distributed")]
pub(crate) use disk::files::read_some;
use disk::seal::Seal;
pub use disk::seal::SealState;
#[cfg(feature = "distributed")]
pub(crate) use disk::sst::LoneSstFile;
pub(crate) use disk::sst::{SstBlock, SstFile, SstOptions};
use open::database::Database;
pub(crate) use open::database::Db;
#[cfg(feature = "rocksdb-interop")]
pub(crate) use open::host::{HostBatch, HostSnapshot, descriptors};
#[cfg(feature = "fuzzing")]
pub(crate) use open::meta::decode_header;
pub(crate) use open::opening::{Access, Opening};
use open::opening::{Opened, open_families, require_database};
use open::secondary::Following;
use open::tuning::Tuning;
pub(crate) use open::tuning::{BESIDE_SHARE, BlockCache, MIN_MEMORY, Pressure, lower_compactions};
pub(crate) use recovery::backup::{
    DONE, PENDING, RestoreFrom, SETTINGS, StateCopy, restore_state, state_in,
};
pub(crate) use recovery::backup_record::{Record, Records};
pub(crate) use recovery::salvage::Salvage;

use crate::error::{Error, Result, StoreErrorKind};
use crate::exclusion;

/// Version of the stored format: keys, runs, records and the meaning of the header.
pub(crate) const FORMAT: u32 = 7;

/// Version of an index that has packs.
pub(crate) const PACKED_FORMAT: u32 = 8;

/// The first version, in which every table has its delta entries. With packs it is 2.
pub(crate) const FIRST_FORMAT: u32 = 1;

/// The first version in which only the first table has delta entries. With packs it is 4.
const GATHERED_FORMAT: u32 = 3;

/// The first version in which all delta entries are in delta runs. With packs it is 8.
const NUMBERED_FORMAT: u32 = 7;

/// Returns the format of a new index with or without packs.
fn current_format(packed: bool) -> u32 {
    if packed { PACKED_FORMAT } else { FORMAT }
}

/// Returns true if an index of this format has packs.
fn has_packs(format: u32) -> bool {
    format.is_multiple_of(2)
}

const MAGIC: [u8; 6] = *b"hamdex";
const HEADER: &[u8] = b"header";
const STATE: &[u8] = b"state";

/// Keys of the lanes: separate document counts, so that concurrent batches do not share one.
const LANE_KEYS: [&[u8]; LANES] = [b"lane/0", b"lane/1", b"lane/2", b"lane/3"];

/// Number of batches that may add documents at the same time.
pub(crate) const LANES: usize = 4;

/// An open database with the families of its live generation.
pub(crate) struct Store {
    db: Database,
    path: PathBuf,
    header: HeaderRecord,
    generation: u32,
    tables: usize,
    packed_end: PackedEnd,
    /// `None` in a host's database.
    cache: Option<BlockCache>,
    /// Dropped after the database.
    role: Role,
}

/// What a store may do with its database, and what it holds for that.
enum Role {
    /// Writes, makes backups and runs builds. No other process writes.
    Primary {
        /// Begins every batch.
        id: DatabaseId,
        tuning: Tuning,
        /// Dropped before the lock.
        seal: Seal,
        _lock: Lock,
    },
    /// Reads files that it keeps open, and shows the state of its opening.
    Reader,
    /// Reads, and advances along the log of another process.
    Follower(Following),
    /// Reads and writes families of a host's database.
    #[cfg(feature = "rocksdb-interop")]
    Guest,
}

impl Role {
    fn is_writable(&self) -> bool {
        match self {
            Self::Primary { .. } => true,
            #[cfg(feature = "rocksdb-interop")]
            Self::Guest => true,
            Self::Reader | Self::Follower(_) => false,
        }
    }

    /// Returns whether other handles of a host may write too.
    fn is_guest(&self) -> bool {
        match self {
            #[cfg(feature = "rocksdb-interop")]
            Self::Guest => true,
            Self::Primary { .. } | Self::Reader | Self::Follower(_) => false,
        }
    }

    /// Returns the seal that covers what is written; only a primary has one.
    fn seal(&self) -> Option<&Seal> {
        if let Self::Primary { seal, .. } = self { Some(seal) } else { None }
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("path", &self.path)
            .field("generation", &self.generation)
            .finish_non_exhaustive()
    }
}

/// Separates damage from all other errors that `RocksDB` reports.
///
/// `RocksDB` reports a missing file as an I/O error if `CURRENT` names it, and if it is a table that
/// is opened only when it is read, as some are with many tables.
fn engine_error(family: &str, error: rocksdb::Error) -> Error {
    let (kind, message) = (error.kind(), error.into_string());
    let is_missing = kind == ErrorKind::IOError && names_missing_file(&message);
    if kind == ErrorKind::Corruption || is_missing {
        return Error::corrupt(family, message);
    }
    Error::Store { kind: kind_of(&kind, &message), message }
}

fn kind_of(kind: &ErrorKind, message: &str) -> StoreErrorKind {
    match kind {
        ErrorKind::IOError if message.contains("No space left on device") => {
            StoreErrorKind::NoSpace
        }
        ErrorKind::IOError => StoreErrorKind::Io,
        ErrorKind::Busy
        | ErrorKind::TryAgain
        | ErrorKind::TimedOut
        | ErrorKind::Aborted
        | ErrorKind::Incomplete
        | ErrorKind::MergeInProgress => StoreErrorKind::Busy,
        ErrorKind::NotFound
        | ErrorKind::Corruption
        | ErrorKind::NotSupported
        | ErrorKind::InvalidArgument
        | ErrorKind::ShutdownInProgress
        | ErrorKind::Expired
        | ErrorKind::CompactionTooLarge
        | ErrorKind::ColumnFamilyDropped
        | ErrorKind::Unknown => StoreErrorKind::Other,
    }
}

/// Returns whether a message says that a file of the database does not exist.
fn names_missing_file(message: &str) -> bool {
    message.match_indices(": No such file or directory").any(|(end, _)| {
        let path = Path::new(message.get(..end).unwrap_or_default());
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        name.ends_with(b".sst") || name.starts_with(b"MANIFEST-")
    })
}

impl Store {
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
        if self.role.is_writable() {
            Ok(())
        } else {
            Err(Error::ReadOnly { path: self.path.clone() })
        }
    }

    /// Fails in a host's database; `what` names what the host has to do instead.
    pub(crate) fn require_own(&self, what: &'static str) -> Result<()> {
        self.db.require_own(what)
    }

    /// Returns a number that changes if others may have written since.
    pub(crate) fn turn(&self) -> u64 {
        self.db.turn()
    }

    /// Returns the cache of blocks, unless it is a host's.
    pub(crate) fn cache(&self) -> Option<&BlockCache> {
        self.cache.as_ref()
    }

    /// Returns the settings of new families; only a primary makes some.
    fn tuning(&self) -> Result<&Tuning> {
        match &self.role {
            Role::Primary { tuning, .. } => Ok(tuning),
            Role::Reader | Role::Follower(_) => Err(Error::ReadOnly { path: self.path.clone() }),
            #[cfg(feature = "rocksdb-interop")]
            Role::Guest => Err(Error::Attached { what: "make its families" }),
        }
    }

    /// Fails unless every family of the live generation exists.
    fn require_generation(&self) -> Result<()> {
        self.families().try_for_each(|family| self.handle(family).map(drop))
    }

    /// Returns every family of the live generation.
    pub(crate) fn families(&self) -> impl Iterator<Item = Family> + use<> {
        let packs = [Family::Docs, Family::Postings].map(|family| family.packs(&self.header));
        Family::of_generation(self.tables).chain(packs.into_iter().flatten())
    }

    /// Returns the packs beneath a family, if there are any.
    fn packs(&self, family: Family) -> Result<Option<Packs<'_>>> {
        let Some(packed) = family.packs(&self.header) else { return Ok(None) };
        let packs = Packs::new(&self.db, self.handle(packed)?, packed, self.header.bits);
        let knows_end = packed == Family::DocPacks && !self.role.is_guest();
        Ok(Some(if knows_end { packs.up_to(&self.packed_end) } else { packs }))
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

    /// Returns how many tables, from the first on, may have delta entries that are stored alone.
    pub(crate) fn tables_with_deltas(&self) -> usize {
        match self.header.format {
            ..GATHERED_FORMAT => self.tables,
            GATHERED_FORMAT..NUMBERED_FORMAT => 1,
            NUMBERED_FORMAT.. => 0,
        }
    }

    /// States the present format, in one write with what it needs, unless it is stated.
    ///
    /// This write drops all delta entries that are stored alone, and `stage` adds delta runs that say
    /// the same as those of the first table.
    pub(crate) fn raise_format(
        &mut self,
        stage: impl FnOnce(&Self, &mut Batch<'_>) -> Result<()>,
    ) -> Result<()> {
        let format = current_format(has_packs(self.header.format));
        if self.header.format == format {
            return Ok(());
        }
        let header = HeaderRecord { format, ..self.header.clone() };
        let mut batch = self.batch()?;
        batch.put_header(&header);
        stage(self, &mut batch)?;
        for table in 0..self.tables_with_deltas() {
            batch.delete_deltas(table)?;
        }
        batch.commit()?;
        self.header = header;
        Ok(())
    }

    /// Returns a number above those of all delta runs.
    pub(crate) fn next_delta_run(&self) -> Result<u64> {
        let table = Family::Table(0);
        let mut entries =
            self.db.raw_iterator_cf_opt(self.handle(table)?, data::cursor::in_order());
        entries.seek_to_last();
        entries.status().map_err(|e| engine_error(&table.to_string(), e))?;
        match entries.key().map(delta_run::Name::of).transpose()?.flatten() {
            None => Ok(0),
            Some(delta_run::Name { number, .. }) => number.checked_add(1).ok_or_else(|| {
                Error::corrupt(table.to_string(), format!("delta run has the number {number}"))
            }),
        }
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
            Some(bytes) => bytes::codec::decode::<Lane>("meta", key, &bytes).map(|lane| lane.added),
            None => Ok(0),
        }
    }

    pub(crate) fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let found = self.db.get_cf(self.handle(family)?, key);
        let found = found.map_err(|e| engine_error(&family.to_string(), e))?;
        data::overlay::value(self.packs(family)?, &mut None, data::cursor::in_order, key, found)
    }

    /// Reads several keys of one family, in the order given.
    pub(crate) fn get_many(&self, family: Family, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>> {
        let packs = self.packs(family)?;
        let mut base = None;
        let found = self.db.batched_multi_get_cf(self.handle(family)?, keys.iter(), false);
        keys.iter()
            .zip(found)
            .map(|(key, found)| {
                let found = found.map_err(|e| engine_error(&family.to_string(), e))?;
                let found = found.map(|slice| slice.to_vec());
                data::overlay::value(packs, &mut base, data::cursor::in_order, key, found)
            })
            .collect()
    }

    pub(crate) fn batch(&self) -> Result<Batch<'_>> {
        self.require_writable()?;
        let mut writes = rocksdb::WriteBatch::default();
        if let Role::Primary { id, .. } = &self.role {
            id.sign(&mut writes);
        }
        Batch::new(self, writes)
    }

    /// Makes everything written so far survive a power loss. Waits for one fsync of the log.
    pub(crate) fn sync(&self) -> Result<()> {
        exclusion::require_none();
        let sequence = self.db.latest_sequence_number();
        self.db.flush_wal(true).map_err(|e| engine_error("log", e))?;
        self.role.seal().map_or(Ok(()), |seal| seal.synced(sequence))
    }

    /// Seals what the database added to its MANIFEST since the last call, usually nothing.
    pub(crate) fn follow(&self) -> Result<()> {
        self.role.seal().map_or(Ok(()), Seal::follow)
    }

    /// Writes the memory tables to files.
    pub(crate) fn flush(&self) -> Result<()> {
        let mut families = vec![self.handle(Family::Meta)?];
        for family in self.families() {
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
        let iterator = self.db.raw_iterator_cf_opt(self.handle(family)?, data::cursor::sweeping());
        let base = self.packs(family)?.map(|packs| packs.base(data::cursor::sweeping()));
        let mut cursor = Cursor::new(iterator, family, base);
        cursor.seek(&[]);
        Ok(cursor)
    }

    /// Returns options for SST files of a family, shared by the writers of a build.
    pub(crate) fn sst_options(&self, family: Family) -> Result<SstOptions> {
        let name = family.name(self.generation);
        Ok(SstOptions::new(self.tuning()?.last_level(&name), family))
    }

    /// Takes a snapshot of the current state.
    pub(crate) fn snapshot(self: &Arc<Self>) -> Arc<Snapshot> {
        data::cursor::snapshot(Arc::clone(self))
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // Sync and seal the rest of the log, so that later damage to it is detected. If this fails,
        // nothing is lost that was acknowledged as synced.
        if let Some(seal) = self.role.seal()
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
