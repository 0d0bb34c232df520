//! Backups: copies the files that no earlier backup has, and restores a backup atomically.
//!
//! Writers and readers continue during a backup.

use std::collections::HashSet;
use std::fs::File;
use std::path::Path;

use rocksdb::backup::{BackupEngine, BackupEngineOptions, RestoreOptions};
use rocksdb::{Env, ErrorKind};

use super::backup_record::{BACKUP_LOCK, Record, Records};
use super::directory::{Lock, STAGE_DIR, exists, make, remove_stage};
use super::staging::Staging;
use super::tuning::MIN_MEMORY;
use super::{Access, HeaderRecord, Opening, Store, engine_error};
use crate::error::{Error, Result};
use crate::fail_point::fail_point;

/// Result of a backup.
#[derive(Debug)]
pub(crate) struct BackedUp {
    pub(crate) record: Record,
    pub(crate) copied_files: u64,
    pub(crate) copied_bytes: u64,
    /// Ids of older backups that were removed.
    pub(crate) removed: Vec<u32>,
}

impl Store {
    /// Adds a backup to a directory, then removes all but the newest `keep`.
    ///
    /// A read-only store backs up a linked copy of its files, because the engine cannot keep
    /// another process from deleting them.
    pub(crate) fn back_up(
        &self,
        directory: &Path,
        keep: Option<u32>,
        tables: impl FnOnce(&HeaderRecord) -> Result<usize>,
    ) -> Result<BackedUp> {
        self.require_own("back it up")?;
        require_outside(&self.path, directory)?;
        let _lock = begin(directory)?;
        fail_point!("backup.begun");
        if self.role.seal().is_some() {
            let done = self.back_up_locked(directory, keep)?;
            self.follow()?;
            return Ok(done);
        }
        let stage = directory.join(STAGE_DIR);
        let sequence = self.copy_to(&stage)?;
        let copy = Opening::new(&stage, MIN_MEMORY, Access::Write)?;
        let tables = tables(copy.header())?;
        let copy = copy.with_tables(tables)?;
        copy.require_sequence(sequence)?;
        let done = copy.back_up_locked(directory, keep)?;
        drop(copy);
        remove_stage(directory)?;
        Ok(done)
    }

    fn back_up_locked(&self, directory: &Path, keep: Option<u32>) -> Result<BackedUp> {
        let before = match Records::open(directory) {
            Ok(records) => records.ids()?,
            Err(_) => Vec::new(),
        };
        let shared = names(&directory.join("shared_checksum"))?;
        let mut engine = engine(directory)?;
        // Flush first: data in memory becomes files that later backups share.
        engine.create_new_backup_flush(&*self.db, true).map_err(|e| engine_error("backup", e))?;
        fail_point!("backup.copied");
        let records = Records::open(directory)?;
        let record = records.read(None)?;
        let copied = record.files.iter().filter(|file| {
            let name = file.path.strip_prefix("shared_checksum/");
            name.is_none_or(|name| !shared.contains(name))
        });
        let (mut copied_files, mut copied_bytes) = (0, 0);
        for file in copied {
            if let Err(error) = records.verify(&record, file) {
                records.forget(record.id)?;
                return Err(error);
            }
            copied_files += 1;
            copied_bytes += file.bytes;
        }
        fail_point!("backup.verified");
        // Without a limit this only removes what an interrupted backup left.
        engine
            .purge_old_backups(keep.map_or(u32::MAX as usize, |keep| keep as usize))
            .map_err(|e| engine_error("backup", e))?;
        fail_point!("backup.purged");
        let after = kept(&records, keep)?;
        let removed = before.into_iter().filter(|id| !after.contains(id)).collect();
        Ok(BackedUp { record, copied_files, copied_bytes, removed })
    }
}

/// Returns the remaining backups, after removing damaged ones that the engine cannot remove.
fn kept(records: &Records, keep: Option<u32>) -> Result<Vec<u32>> {
    let mut ids = records.ids()?;
    let Some(keep) = keep else { return Ok(ids) };
    let sound: Vec<_> = ids.iter().copied().filter(|id| records.read(Some(*id)).is_ok()).collect();
    let oldest = sound.len().checked_sub(keep as usize).and_then(|at| sound.get(at)).copied();
    for id in ids.clone().into_iter().filter(|id| oldest.is_some_and(|oldest| *id < oldest)) {
        records.forget(id)?;
        ids.retain(|kept| *kept != id);
    }
    Ok(ids)
}

/// Opens the engine over a directory.
fn engine(directory: &Path) -> Result<BackupEngine> {
    let fail = |error| engine_error("backup", error);
    let options = BackupEngineOptions::new(directory).map_err(fail)?;
    let env = Env::new().map_err(fail)?;
    BackupEngine::open(&options, &env).map_err(fail)
}

/// Locks a directory of backups, or an empty one, and removes what an interrupted backup left.
fn begin(directory: &Path) -> Result<Lock> {
    make(directory)?;
    if !exists(directory, BACKUP_LOCK)? && !names(directory)?.is_empty() {
        return Err(Error::AlreadyExists { path: directory.to_owned() });
    }
    let lock = Lock::alone(directory, BACKUP_LOCK)?;
    remove_stage(directory)?;
    Ok(lock)
}

/// Prevents the removal of backups while they are read. `None` if there is no lock file.
fn share(directory: &Path) -> Result<Option<Lock>> {
    let name = directory.join(BACKUP_LOCK);
    match File::open(&name) {
        Ok(file) => Lock::shared(directory, file).map(Some),
        // The directory was copied without the lock file, or the engine alone created it.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io(&name, error)),
    }
}

/// Fails if one directory contains the other: clearing one would remove the other.
fn require_outside(index: &Path, backups: &Path) -> Result<()> {
    let whole = |path: &Path| std::path::absolute(path).map_err(|e| Error::io(path, e));
    let found = |path: &Path| path.canonicalize().or_else(|_| whole(path));
    let (one, other) = (found(index)?, found(backups)?);
    if one.starts_with(&other) || other.starts_with(&one) {
        let (index, backups) = (index.display(), backups.display());
        let reason = format!("{index} and {backups} must not contain each other");
        return Err(Error::InvalidOption { name: "directory", reason });
    }
    Ok(())
}

/// Returns the names in a directory, or nothing if it does not exist.
fn names(directory: &Path) -> Result<HashSet<String>> {
    match std::fs::read_dir(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(HashSet::new()),
        entries => entries
            .map_err(|e| Error::io(directory, e))?
            .map(|entry| {
                let entry = entry.map_err(|e| Error::io(directory, e))?;
                Ok(entry.file_name().to_string_lossy().into_owned())
            })
            .collect(),
    }
}

/// Which backup to restore.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RestoreFrom<'a> {
    /// The directory of backups.
    pub(crate) directory: &'a Path,
    /// The backup's id; `None` for the newest.
    pub(crate) id: Option<u32>,
    /// Whether an existing index in the target is replaced.
    pub(crate) replace: bool,
}

/// Result of a restore.
#[derive(Debug)]
pub(crate) struct Restored {
    pub(crate) record: Record,
    pub(crate) documents: u64,
}

impl RestoreFrom<'_> {
    /// Copies the files of a backup, opens them once and moves them to the target.
    ///
    /// The target does not change before the files are copied and were opened without an error.
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
        let documents = staging.recover(record.sequence, tables)?;
        staging.place()?;
        Ok(Restored { record, documents })
    }
}

/// The engine does not know a backup whose record it could not read.
fn failure(id: u32, error: rocksdb::Error) -> Error {
    if error.kind() == ErrorKind::NotFound {
        return Error::corrupt(format!("backup {id}"), error.into_string());
    }
    engine_error(&format!("backup {id}"), error)
}
