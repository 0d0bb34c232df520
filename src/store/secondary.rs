//! Secondaries: a store that reads along while another process writes.
//!
//! The engine replays MANIFEST and log family by family, so what is read during a replay may hold
//! half a batch. A store is therefore only moved on while nobody else has it (`&mut`).
//!
//! It is moved on along the log alone, and given up when the MANIFEST has changed. The engine
//! would go on then, but keeps what it had replayed into memory: records of a log that the
//! writer flushed and deleted before they were read lie in files, which are asked after the older
//! records in memory, so that a replaced value, or a removed key, comes back.

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

/// What a store that reads along has besides.
pub(super) struct Following {
    /// The MANIFEST that it was opened with.
    stamp: Option<Stamp>,
    /// How far the logs can be read.
    records: LogRecords,
    /// Where the engine keeps a log of its own.
    _scratch: TempDir,
}

impl Store {
    /// Opens the live generation for reading along; an unfinished build is passed over.
    ///
    /// `scratch` is where the engine may write a log of its own.
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
            // All files are held open: the writer deletes what it does not need any more.
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

    /// Takes in what was written since; false when it has to be opened anew.
    ///
    /// After that, and after an error, the store is of no use.
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

    /// Number of the last change that it holds.
    pub(crate) fn sequence(&self) -> u64 {
        self.db.latest_sequence_number()
    }
}
