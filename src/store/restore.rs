//! Restoring: a backup becomes an index, whole or not at all.

use std::path::Path;

use rocksdb::ErrorKind;
use rocksdb::backup::RestoreOptions;

use super::backup::{engine, require_outside, share};
use super::backup_record::{Record, Records};
use super::staging::Staging;
use super::{HeaderRecord, engine_error};
use crate::error::{Error, Result};
use crate::fail_point::fail_point;

/// What is to be restored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RestoreFrom<'a> {
    /// The directory of backups.
    pub(crate) directory: &'a Path,
    /// The newest without one.
    pub(crate) id: Option<u32>,
    /// Whether an index in the target is given up for it.
    pub(crate) replace: bool,
}

/// What became of it.
#[derive(Debug)]
pub(crate) struct Restored {
    pub(crate) record: Record,
    pub(crate) documents: u64,
}

impl RestoreFrom<'_> {
    /// Copies the backup's files, opens them once and puts them in place.
    ///
    /// The target changes only when all of this was done but the last step.
    pub(crate) fn restore(
        self,
        target: &Path,
        tables: impl FnOnce(&HeaderRecord) -> Result<usize>,
    ) -> Result<Restored> {
        let _lock = share(self.directory)?;
        let record = Records::open(self.directory)?.read(self.id)?;
        require_outside(target, self.directory)?;
        let staging = Staging::begin(target, self.replace)?;
        let stage = staging.stage();
        engine(self.directory)?
            .restore_from_backup(&stage, &stage, &RestoreOptions::default(), record.id)
            .map_err(|error| failure(record.id, error))?;
        fail_point!("restore.copied");
        let documents = staging.settle(record.sequence, tables)?;
        staging.place()?;
        Ok(Restored { record, documents })
    }
}

/// The engine knows no backup of a record that it could not read.
fn failure(id: u32, error: rocksdb::Error) -> Error {
    if error.kind() == ErrorKind::NotFound {
        return Error::corrupt(format!("backup {id}"), error.into_string());
    }
    engine_error(&format!("backup {id}"), error)
}
