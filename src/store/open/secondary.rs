//! Secondaries: a store that follows another process while it writes.
//!
//! The engine replays MANIFEST and log family by family, so a read during a replay may see half a
//! batch. A store is therefore advanced only through `&mut`, while it has no readers.
//!
//! It is advanced along the log alone, and replaced when the MANIFEST has changed. The engine would
//! continue, but it keeps what it had replayed into memory. If the writer flushed and deleted a log
//! before its records were read, they are in files, and the engine asks files after the older
//! records in memory. So a replaced value or a removed key would come back.

use std::path::Path;

use tempfile::TempDir;

use super::meta::{decode_header, read_header};
use super::opening::{Kind, families, require_database, require_meta};
use super::settled;
use super::settled::Stamp;
use super::tuning::Tuning;
use crate::error::{Error, Result};
use crate::store::data::overlay::PackedEnd;
use crate::store::disk::log_records::LogRecords;
use crate::store::disk::seal::Bounds;
use crate::store::{Database, Db, Family, HEADER, Opening, Role, Store, engine_error};

/// The extra state of a store that follows another process.
pub(in crate::store) struct Following {
    /// The MANIFEST when the store was opened.
    stamp: Option<Stamp>,
    /// How far the logs were checked.
    records: LogRecords,
    /// Directory of the engine's own text log.
    _scratch: TempDir,
}

impl Opening {
    /// Opens the database as a secondary. Ignores an unfinished build.
    ///
    /// `scratch` is where the engine may write its own text log.
    pub(crate) fn to_follow(path: &Path, scratch: Option<&Path>, memory: usize) -> Result<Self> {
        require_database(path)?;
        let mut builder = tempfile::Builder::new();
        let builder = builder.prefix("hamdex-secondary-");
        let scratch = match scratch {
            Some(place) => builder.tempdir_in(place).map_err(|e| Error::io(place, e))?,
            None => builder.tempdir().map_err(|e| Error::io(std::env::temp_dir(), e))?,
        };
        let ((db, header, cache), stamp) = settled::when_settled_at(path, || {
            let bounds = Bounds::of_files(path)?;
            let names = families(path)?;
            require_meta(path, &names)?;
            let tuning = Tuning::new(memory, names.len());
            let mut options = tuning.database_as_it_is();
            // Keep all files open: the writer deletes files that it no longer needs.
            options.set_max_open_files(-1);
            let families = names.iter().map(|name| tuning.descriptor(name));
            let db = Db::open_cf_descriptors_as_secondary(&options, path, scratch.path(), families)
                .map_err(|e| engine_error("database", e))?;
            if let Some(bounds) = bounds {
                bounds.require_sequence(db.latest_sequence_number())?;
            }
            let header = read_header(&db, path)?;
            Ok((db, header, Some(tuning.cache().clone())))
        })?;
        let following = Following { stamp, records: LogRecords::default(), _scratch: scratch };
        let kind = Kind::Follower(following);
        Ok(Self { db: Database::Own(db), path: path.to_owned(), header, cache, kind })
    }
}

impl Store {
    /// Applies what was written since. Returns false if the store must be opened again.
    ///
    /// After false or an error, the store must not be used.
    pub(crate) fn catch_up(&mut self) -> Result<bool> {
        require_database(&self.path)?;
        let same = |path: &Path, following: &Following| Stamp::of(path) == following.stamp;
        let Role::Follower(following) = &mut self.role else { return Ok(false) };
        if !same(&self.path, following) {
            return Ok(false);
        }
        let bounds = Bounds::read(&self.path)?;
        following.records.require(&self.path)?;
        self.packed_end = PackedEnd::default();
        let caught_up = self.db.try_catch_up_with_primary();
        // A switch of files may also be why it failed: the writer deletes the old ones.
        if !same(&self.path, following) {
            return Ok(false);
        }
        caught_up.map_err(|e| engine_error("database", e))?;
        if let Some(bounds) = bounds {
            bounds.require_sequence(self.db.latest_sequence_number())?;
        }
        let header = self.get(Family::Meta, HEADER)?;
        let same_header = match &header {
            Some(bytes) => decode_header(bytes)? == self.header,
            None => false,
        };
        Ok(same_header && self.state()?.generation == self.generation)
    }

    /// Returns the number of the last change that the store holds.
    pub(crate) fn sequence(&self) -> u64 {
        self.db.latest_sequence_number()
    }
}
