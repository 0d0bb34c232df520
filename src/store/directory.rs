//! The index's directory: the files in it that are not the database's.

use std::fs::File;
use std::path::Path;

use crate::error::{Error, Result};

/// Locked for as long as a writing handle is open.
pub(super) const LOCK_FILE: &str = "hamdex.lock";

/// Stands in the directory until a new index is whole; what it marks may be begun again.
pub(super) const CREATING_FILE: &str = "hamdex.creating";

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
    let mark = path.join(CREATING_FILE);
    File::create(&mark).and_then(|mark| mark.sync_all()).map_err(|e| Error::io(&mark, e))?;
    for entry in std::fs::read_dir(path).map_err(|e| Error::io(path, e))? {
        let entry = entry.map_err(|e| Error::io(path, e))?;
        if entry.file_name() == LOCK_FILE || entry.file_name() == CREATING_FILE {
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
