//! The index's directory: the files in it that are not the database's.

use std::fs::File;
use std::path::Path;

use crate::error::{Error, Result};

/// Locked for as long as a writing handle is open.
pub(super) const LOCK_FILE: &str = "hamdex.lock";

/// Stands in the directory until a new index is whole; what it marks may be begun again.
pub(super) const CREATING_FILE: &str = "hamdex.creating";

/// An index that is being made, within the directory that it will fill.
pub(super) const STAGE_DIR: &str = "hamdex.stage";

pub(super) fn exists(path: &Path, name: &str) -> Result<bool> {
    path.join(name).try_exists().map_err(|e| Error::io(path, e))
}

/// Fails unless the directory is empty or holds the rest of a creation that was cut short.
pub(super) fn require_vacant(path: &Path) -> Result<()> {
    if exists(path, CREATING_FILE)? {
        return Ok(());
    }
    for entry in std::fs::read_dir(path).map_err(|e| Error::io(path, e))? {
        let entry = entry.map_err(|e| Error::io(path, e))?;
        if entry.file_name() != LOCK_FILE {
            return Err(Error::AlreadyExists { path: path.to_owned() });
        }
    }
    Ok(())
}

/// Marks the directory and clears what an earlier creation left; the lock is held.
pub(super) fn begin_creation(path: &Path) -> Result<()> {
    require_vacant(path)?;
    mark_creation(path)?;
    clear(path, &[LOCK_FILE, CREATING_FILE])
}

/// Marks the directory as no index, whatever else is in it.
pub(super) fn mark_creation(path: &Path) -> Result<()> {
    let mark = path.join(CREATING_FILE);
    File::create(&mark).and_then(|mark| mark.sync_all()).map_err(|e| Error::io(&mark, e))
}

/// Removes everything but some names.
pub(super) fn clear(path: &Path, kept: &[&str]) -> Result<()> {
    for entry in std::fs::read_dir(path).map_err(|e| Error::io(path, e))? {
        let entry = entry.map_err(|e| Error::io(path, e))?;
        if kept.iter().any(|name| entry.file_name() == *name) {
            continue;
        }
        let path = entry.path();
        let removed = if path.is_dir() {
            std::fs::remove_dir_all(&path)
        } else {
            std::fs::remove_file(&path)
        };
        removed.map_err(|e| Error::io(&path, e))?;
    }
    Ok(())
}

/// Removes what an interrupted copy left; nobody else makes one while the lock is held.
pub(super) fn remove_stage(path: &Path) -> Result<()> {
    for name in [STAGE_DIR.to_owned(), format!("{STAGE_DIR}.tmp")] {
        let stage = path.join(name);
        match std::fs::remove_dir_all(&stage) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io(&stage, error));
            }
            _ => (),
        }
    }
    Ok(())
}

/// Makes the names in a directory survive a loss of power.
pub(super) fn sync(path: &Path) -> Result<()> {
    File::open(path).and_then(|directory| directory.sync_all()).map_err(|e| Error::io(path, e))
}

/// Opens a file for writing and leaves what it holds; an empty one is made where there is none.
pub(super) fn open_kept(name: &Path) -> Result<File> {
    let mut options = File::options();
    options.create(true).truncate(false).write(true);
    options.open(name).map_err(|e| Error::io(name, e))
}
