//! Staging: a complete index is prepared in a directory and then moved into place. And checkpoints:
//! a copy of the database at one moment, made of hard links where possible.
//!
//! The stage is a directory within the target. The target does not change until everything in the
//! stage is written, synced and was opened once. Then the stage's files replace the old ones. A
//! mark prevents that half of them opens.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rocksdb::checkpoint::Checkpoint;

use super::directory::{
    CREATING_FILE, LOCK_FILE, Lock, Mark, STAGE_DIR, begin_creation, clear, copy, exists, make,
    mark_creation, remove_stage, require_vacant, sync,
};
use super::seal::Bounds;
use crate::error::{Error, Result};
use crate::fail_point::fail_point;
use crate::store::open::settled::{self, FileKind, take_files};
use crate::store::open::tuning::MIN_MEMORY;
use crate::store::{Access, HeaderRecord, Opening, Store, engine_error};

/// State of the target before staging.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Absent,
    Empty,
    Index,
}

/// A directory that will become an index.
pub(in crate::store) struct Staging {
    target: PathBuf,
    found: Found,
    placed: bool,
    _lock: Lock,
}

impl Staging {
    /// Locks a target that is absent, empty or an index that may be replaced.
    ///
    /// # Errors
    ///
    /// Returns [`Error::AlreadyExists`] for any other target, and [`Error::Locked`] if the index is
    /// in use.
    pub(in crate::store) fn begin(target: &Path, replace: bool) -> Result<Self> {
        let there = target.try_exists().map_err(|e| Error::io(target, e))?;
        make(target)?;
        let found = match require_vacant(target, Mark::Restoring) {
            Ok(()) if there => Found::Empty,
            Ok(()) => Found::Absent,
            Err(Error::AlreadyExists { .. }) if replace && exists(target, LOCK_FILE)? => {
                Found::Index
            }
            Err(error) => return Err(error),
        };
        let lock = Lock::of_index(target)?;
        let staging = Self { target: target.to_owned(), found, placed: false, _lock: lock };
        if found == Found::Index {
            remove_stage(target)?;
        } else {
            // Check again: another process may have held the lock meanwhile.
            begin_creation(target, Mark::Restoring)?;
        }
        fail_point!("stage.begun");
        Ok(staging)
    }

    /// Returns the path of the stage, which does not exist yet.
    pub(in crate::store) fn stage(&self) -> PathBuf {
        self.target.join(STAGE_DIR)
    }

    /// Opens the prepared index, which recovers and seals it, and returns its number of documents.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Corrupt`] if it does not reach the sequence number.
    pub(in crate::store) fn recover(
        &self,
        sequence: u64,
        tables: impl FnOnce(&HeaderRecord) -> Result<usize>,
    ) -> Result<u64> {
        let opening = Opening::new(&self.stage(), MIN_MEMORY, Access::Write)?;
        let tables = tables(opening.header())?;
        let store = opening.with_tables(tables)?;
        store.require_sequence(sequence)?;
        Ok(store.state()?.documents)
    }

    /// Replaces the files of the target by those of the stage.
    pub(in crate::store) fn place(mut self) -> Result<()> {
        let stage = self.stage();
        sync(&stage)?;
        fail_point!("stage.settled");
        mark_creation(&self.target, Mark::Restoring)?;
        fail_point!("stage.marked");
        clear(&self.target, &[LOCK_FILE, CREATING_FILE, STAGE_DIR])?;
        fail_point!("stage.cleared");
        for entry in std::fs::read_dir(&stage).map_err(|e| Error::io(&stage, e))? {
            let entry = entry.map_err(|e| Error::io(&stage, e))?;
            if entry.file_name() != LOCK_FILE {
                let place = self.target.join(entry.file_name());
                std::fs::rename(entry.path(), &place).map_err(|e| Error::io(&place, e))?;
                fail_point!("stage.moving");
            }
        }
        remove_stage(&self.target)?;
        sync(&self.target)?;
        fail_point!("stage.moved");
        let mark = self.target.join(CREATING_FILE);
        std::fs::remove_file(&mark).map_err(|e| Error::io(&mark, e))?;
        self.placed = true;
        sync(&self.target)
    }
}

impl Drop for Staging {
    /// Restores the target's initial state. The next attempt removes what could not be removed.
    fn drop(&mut self) {
        if self.placed {
            return;
        }
        let _ = match self.found {
            Found::Absent => clear(&self.target, &[]).and_then(|()| {
                std::fs::remove_dir(&self.target).map_err(|error| Error::io(&self.target, error))
            }),
            Found::Empty => clear(&self.target, &[LOCK_FILE]),
            Found::Index => remove_stage(&self.target),
        };
    }
}

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
    pub(in crate::store) fn copy_to(&self, stage: &Path) -> Result<u64> {
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
