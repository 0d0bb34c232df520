//! Copies beside an index: its backups, its checkpoint and what is restored of them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use fastrand::Rng;
use hamdex::backup::{Backup, BackupOptions, RestoreOptions};
use hamdex::{Error, Index, Result};

use crate::operation::open;
use crate::oracle::{Model, compare, documents, verify};
use crate::report::{Finding, Verdict};

/// Backups that are kept.
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

/// Takes an index away, and all that lies beside it.
pub(crate) fn remove(path: &Path) {
    for end in ["", ".backups", ".checkpoint", ".old", ".restored"] {
        // What cannot be removed goes with the whole directory.
        let _ = std::fs::remove_dir_all(beside(path, end));
    }
}

/// Backs an index up, every second time through a handle for reading.
pub(crate) fn back_up(index: &Index<u64>, path: &Path, number: u64) -> Result<()> {
    let options = BackupOptions::new().keep(KEPT);
    let report = if (number / crate::operation::CYCLE).is_multiple_of(2) {
        index.backup_with(backups(path), &options)?
    } else {
        let options = options.clone();
        Index::<u64>::open_read_only(path)?.backup_with(backups(path), &options)?
    };
    Backup::open(backups(path))?.verify(Some(report.id), &()).map(drop)
}

/// Puts the newest backup in the place of its index, or of what an earlier attempt left.
pub(crate) fn restore(path: &Path) -> Result<()> {
    let options = RestoreOptions::new().replace(true);
    Backup::open(backups(path))?.restore_with(path, &options).map(drop)
}

/// Makes a checkpoint in the place of the last one.
pub(crate) fn checkpoint(index: &Index<u64>, path: &Path) -> Result<()> {
    let (target, old) = (beside(path, ".checkpoint"), beside(path, ".old"));
    // Moved first: a kill must not leave a half of it in its place.
    clear(&old)?;
    if let Err(error) = std::fs::rename(&target, &old)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        return Err(Error::Io { path: target, source: error });
    }
    clear(&old)?;
    index.checkpoint(&target)
}

/// Looks at the copies after a kill; true when there was a backup.
///
/// `held` is what the last backup that was told of holds; one made since holds what the index does.
pub(crate) fn look(
    path: &Path,
    held: Option<&Model>,
    model: &Model,
    rng: &mut Rng,
) -> Verdict<bool> {
    let target = beside(path, ".checkpoint");
    match open(&target) {
        Err(Error::NotFound { .. } | Error::RestoreUnfinished { .. }) => (),
        // Of now or of some time ago; in any case whole.
        opened => {
            let index = opened?;
            verify(&index, &documents(&index)?, rng).map_err(|f| f.within("checkpoint"))?;
        }
    }
    clear(&target)?;
    let backup = match Backup::open(backups(path)) {
        Err(Error::NoBackup { .. }) => {
            return match held {
                Some(_) => Err(Finding::lost("the directory of backups holds none")),
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
            Some(_) => Err(Finding::lost("a backup that was told of is gone")),
            None => Ok(false),
        };
    }
    let restored = beside(path, ".restored");
    backup.restore(&restored)?;
    let index = open(&restored)?;
    let stored = documents(&index)?;
    let expected = if stored == *model { model } else { held.unwrap_or(model) };
    compare(&stored, expected).map_err(|found| found.within("restored"))?;
    verify(&index, &stored, rng).map_err(|found| found.within("restored"))?;
    drop(index);
    clear(&restored)?;
    Ok(true)
}
