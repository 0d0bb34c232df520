//! Copies beside an index: backups, a checkpoint and restored indexes.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use fastrand::Rng;
use hamdex::any::AnyIndex;
use hamdex::backup::{Backup, BackupOptions, RestoreOptions};
use hamdex::{Error, IndexOptions, Result};

use crate::oracle::{Model, compare, documents, verify};
use crate::report::{Finding, Verdict};
use crate::setup::{Handle, Setup};

/// Number of backups to keep.
const KEPT: u32 = 2;

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(end);
    name.into()
}

fn backups(path: &Path) -> PathBuf {
    beside(path, ".backups")
}

fn clear(path: &Path) -> Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::Io { path: path.to_owned(), source: error })
        }
        _ => Ok(()),
    }
}

/// Ends of the names of an index and of all copies beside it.
const ENDS: [&str; 5] = ["", ".backups", ".checkpoint", ".old", ".restored"];

/// Renames an index with a finding and all copies beside it, so that the next run begins without.
pub(crate) fn set_aside(path: &Path, number: u64) {
    for end in ENDS {
        // Most copies are not there.
        let _ = std::fs::rename(beside(path, end), beside(path, &format!(".{number}{end}")));
    }
}

/// Removes an index and all copies beside it.
pub(crate) fn remove(path: &Path) {
    for end in ENDS {
        // Anything left is removed with the working directory.
        let _ = std::fs::remove_dir_all(beside(path, end));
    }
}

/// Backs up an index, every second time through a read-only handle.
pub(crate) fn back_up(index: &Handle, path: &Path, number: u64) -> Result<()> {
    let options = BackupOptions::new().keep(KEPT);
    let report = if (number / crate::operation::CYCLE).is_multiple_of(2) {
        index.own()?.backup_with(backups(path), &options)?
    } else {
        let options = options.clone();
        AnyIndex::open_with(path, &IndexOptions::new().read_only(true))?
            .backup_with(backups(path), &options)?
    };
    Backup::open(backups(path))?.verify(Some(report.id), &()).map(drop)
}

/// Restores the newest backup over its index, or over an interrupted restore.
pub(crate) fn restore(path: &Path) -> Result<()> {
    let options = RestoreOptions::new().replace(true);
    Backup::open(backups(path))?.restore_with(path, &options).map(drop)
}

/// Replaces the checkpoint by a new one.
pub(crate) fn checkpoint(index: &Handle, path: &Path) -> Result<()> {
    let (target, old) = (beside(path, ".checkpoint"), beside(path, ".old"));
    // Renamed before it is deleted, so that a kill does not leave a part of it under its name.
    clear(&old)?;
    if let Err(error) = std::fs::rename(&target, &old)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        return Err(Error::Io { path: target, source: error });
    }
    clear(&old)?;
    index.checkpoint(&target)
}

/// Checks the copies after a kill; returns true if there is a backup.
///
/// `held` are the documents of the last acknowledged backup; a newer backup equals the index.
pub(crate) fn look(
    setup: Setup,
    path: &Path,
    held: Option<&Model>,
    model: &Model,
    rng: &mut Rng,
) -> Verdict<bool> {
    let target = beside(path, ".checkpoint");
    match setup.open(&target) {
        Err(Error::NotFound { .. } | Error::RestoreUnfinished { .. }) => (),
        // It may be old, but must be complete.
        opened => {
            let index = opened?;
            verify(&index, &documents(&index)?, rng).map_err(|f| f.within("checkpoint"))?;
        }
    }
    clear(&target)?;
    let backup = match Backup::open(backups(path)) {
        Err(Error::NoBackup { .. }) => {
            return match held {
                Some(_) => Err(Finding::lost("the directory of backups has no backup")),
                None => Ok(false),
            };
        }
        opened => opened?,
    };
    let list = backup.list()?;
    if let Some(damaged) = list.iter().find_map(|info| info.damage.as_ref()) {
        return Err(Finding::wrong(format!("a backup is damaged: {damaged}")));
    }
    if list.is_empty() {
        return match held {
            Some(_) => Err(Finding::lost("an acknowledged backup is gone")),
            None => Ok(false),
        };
    }
    let restored = beside(path, ".restored");
    backup.restore(&restored)?;
    let index = setup.open(&restored)?;
    let stored = documents(&index)?;
    let expected = if stored == *model { model } else { held.unwrap_or(model) };
    compare(&stored, expected).map_err(|found| found.within("restored"))?;
    verify(&index, &stored, rng).map_err(|found| found.within("restored"))?;
    drop(index);
    clear(&restored)?;
    Ok(true)
}

/// Fails unless an acknowledged backup can be restored, whatever a newer one lacks.
pub(crate) fn held(setup: Setup, path: &Path, id: u32, held: &Model, rng: &mut Rng) -> Verdict {
    let restored = beside(path, ".restored");
    Backup::open(backups(path))?.restore_with(&restored, &RestoreOptions::new().id(id))?;
    let index = setup.open(&restored)?;
    verify(&index, held, rng).map_err(|found| found.within("restored"))?;
    drop(index);
    clear(&restored)?;
    Ok(())
}
