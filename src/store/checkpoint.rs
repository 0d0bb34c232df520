//! Checkpoints: a copy of the database at one moment, made of hard links where possible.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

use rocksdb::checkpoint::Checkpoint;

use super::directory::clear;
use super::seal::Bounds;
use super::settled::{self, FileKind, take_files};
use super::staging::Staging;
use super::{HeaderRecord, Store, engine_error};
use crate::error::{Error, Result};
use crate::fail_point::fail_point;

impl Store {
    /// Creates a copy that opens as a separate index, in a new or empty directory.
    pub(crate) fn checkpoint(
        &self,
        target: &Path,
        tables: impl FnOnce(&HeaderRecord) -> Result<usize>,
    ) -> Result<()> {
        self.require_own("make a checkpoint of it")?;
        let staging = Staging::begin(target, false)?;
        let sequence = self.copy_to(&staging.stage())?;
        fail_point!("checkpoint.copied");
        staging.recover(sequence, tables)?;
        staging.place()
    }

    /// Copies the database's files and returns the least sequence number that they reach.
    pub(super) fn copy_to(&self, stage: &Path) -> Result<u64> {
        let sequence = self.db.latest_sequence_number();
        if self.role.seal().is_none() {
            return link_beside_writer(&self.path, stage).map(|sealed| sealed.max(sequence));
        }
        Checkpoint::new(&*self.db)
            .and_then(|checkpoint| checkpoint.create_checkpoint(stage))
            .map_err(|e| engine_error("database", e))?;
        self.follow()?;
        Ok(sequence)
    }
}

/// Copies a database that another process may be writing to.
///
/// Table files are linked, all other files are copied.
fn link_beside_writer(path: &Path, stage: &Path) -> Result<u64> {
    std::fs::create_dir_all(stage).map_err(|e| Error::io(stage, e))?;
    let sequence = Bounds::of_files(path)?.map_or(0, |bounds| bounds.sequence());
    settled::when_settled(path, || {
        clear(stage, &[])?;
        take_files(path, |kind, from| {
            let to = stage.join(from.file_name().unwrap_or_default());
            match kind {
                FileKind::Table => link(from, &to),
                FileKind::Log | FileKind::Other => copy(from, &to),
                FileKind::Own => Ok(()),
            }
        })
    })?;
    Ok(sequence)
}

fn link(from: &Path, to: &Path) -> std::io::Result<()> {
    match std::fs::hard_link(from, to) {
        Err(error) if error.kind() != ErrorKind::NotFound => copy(from, to),
        linked => linked,
    }
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::copy(from, to)?;
    File::open(to)?.sync_all()
}
