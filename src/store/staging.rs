//! Staging: a whole index is made beside the place that it takes at the end.
//!
//! The stage is a directory within the target. Until everything in it is written, synced and
//! was opened once, the target stays what it was; then its files take the place of the old ones
//! under the mark of a creation, so that a half of them never opens.

use std::path::{Path, PathBuf};

use super::directory::{
    CREATING_FILE, LOCK_FILE, Mark, STAGE_DIR, begin_creation, clear, exists, make, mark_creation,
    remove_stage, require_vacant, sync,
};
use super::lock::Lock;
use super::tuning::MIN_MEMORY;
use super::{Access, HeaderRecord, Store};
use crate::error::{Error, Result};
use crate::fail_point::fail_point;

/// What a target was found as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Absent,
    Empty,
    Index,
}

/// A directory that is about to become an index.
pub(super) struct Staging {
    target: PathBuf,
    found: Found,
    placed: bool,
    _lock: Lock,
}

impl Staging {
    /// Takes a directory that is absent or empty, or an index that may be replaced.
    ///
    /// # Errors
    ///
    /// [`Error::AlreadyExists`] for anything else, [`Error::Locked`] for an index in use.
    pub(super) fn begin(target: &Path, replace: bool) -> Result<Self> {
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
            // Looked at again: another process may have held the lock meanwhile.
            begin_creation(target, Mark::Restoring)?;
        }
        fail_point!("stage.begun");
        Ok(staging)
    }

    /// Where the index is to be made; the directory does not exist yet.
    pub(super) fn stage(&self) -> PathBuf {
        self.target.join(STAGE_DIR)
    }

    /// Opens what was made, to recover and to seal it; returns the documents that it holds.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] unless it goes as far as the sequence number.
    pub(super) fn settle(
        &self,
        sequence: u64,
        tables: impl FnOnce(&HeaderRecord) -> Result<usize>,
    ) -> Result<u64> {
        let store = Store::open(&self.stage(), MIN_MEMORY, Access::Write, tables)?;
        store.require_sequence(sequence)?;
        Ok(store.state()?.documents)
    }

    /// Puts the stage's files in the place of what the target held.
    pub(super) fn place(mut self) -> Result<()> {
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
    /// Leaves the target as it was found; what cannot be removed is cleared by the next attempt.
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
