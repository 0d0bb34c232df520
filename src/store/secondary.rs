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

use super::log_records::LogRecords;
use super::seal::Bounds;
use super::settled::Stamp;
use super::tuning::Tuning;
use super::{
    Database, Db, HeaderRecord, Store, engine_error, families, read_header, require_database,
    require_meta, settled,
};
use crate::error::{Error, Result};

/// The extra state of a store that follows another process.
pub(super) struct Following {
    /// The MANIFEST when the store was opened.
    stamp: Option<Stamp>,
    /// How far the logs were checked.
    records: LogRecords,
    /// Directory of the engine's own text log.
    _scratch: TempDir,
}

impl Store {
    /// Opens the live generation as a secondary. Ignores an unfinished build.
    ///
    /// `scratch` is where the engine may write its own text log.
    pub(crate) fn open_secondary(
        path: &Path,
        scratch: Option<&Path>,
        memory: usize,
        tables: impl FnOnce(&HeaderRecord) -> Result<usize>,
    ) -> Result<Self> {
        require_database(path)?;
        let mut builder = tempfile::Builder::new();
        let builder = builder.prefix("hamdex-secondary-");
        let scratch = match scratch {
            Some(place) => builder.tempdir_in(place).map_err(|e| Error::io(place, e))?,
            None => builder.tempdir().map_err(|e| Error::io(std::env::temp_dir(), e))?,
        };
        let ((db, tuning, header), stamp) = settled::when_settled_at(path, || {
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
            Ok((db, tuning, header))
        })?;
        let mut store = Self {
            db: Database::Own(db),
            path: path.to_owned(),
            tables: tables(&header)?,
            header,
            generation: 0,
            tuning: Some(tuning),
            writable: false,
            seal: None,
            secondary: Some(Following { stamp, records: LogRecords::default(), _scratch: scratch }),
            _lock: None,
        };
        store.generation = store.state()?.generation;
        store.require_generation()?;
        Ok(store)
    }

    /// Applies what was written since. Returns false if the store must be opened again.
    ///
    /// After false or an error, the store must not be used.
    pub(crate) fn catch_up(&mut self) -> Result<bool> {
        require_database(&self.path)?;
        let same = |path: &Path, following: &Following| Stamp::of(path) == following.stamp;
        let Some(following) = self.secondary.as_mut().filter(|f| same(&self.path, f)) else {
            return Ok(false);
        };
        let bounds = Bounds::read(&self.path)?;
        following.records.require(&self.path)?;
        self.db.try_catch_up_with_primary().map_err(|e| engine_error("database", e))?;
        if !same(&self.path, following) {
            return Ok(false);
        }
        if let Some(bounds) = bounds {
            bounds.require_sequence(self.db.latest_sequence_number())?;
        }
        Ok(self.state()?.generation == self.generation)
    }

    /// Returns the number of the last change that the store holds.
    pub(crate) fn sequence(&self) -> u64 {
        self.db.latest_sequence_number()
    }
}
