//! Temporary files of this process: a list of them, for an end that runs no destructors.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

static MADE: Mutex<Vec<(PathBuf, Identity)>> = Mutex::new(Vec::new());

/// Device and number of a file, so that no other file of the same name is taken for it.
type Identity = (u64, u64);

/// Remembers a temporary file.
pub(crate) fn note(path: &Path, file: &File) {
    let Ok(found) = file.metadata() else { return };
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    made.push((path.to_path_buf(), identity(&found)));
}

/// Removes every temporary file of this process that is still there under its first name.
pub(crate) fn clear() {
    let made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    for (path, made) in made.iter() {
        if path.symlink_metadata().is_ok_and(|found| identity(&found) == *made) {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn identity(found: &std::fs::Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt;
    (found.dev(), found.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_files_that_were_noted_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for name in ["noted", "replaced", "renamed", "other"] {
            std::fs::write(path(name), name).unwrap();
        }
        for name in ["noted", "replaced", "renamed"] {
            note(&path(name), &File::open(path(name)).unwrap());
        }
        std::fs::rename(path("renamed"), path("result")).unwrap();
        // The old file stays open, so that its number is not given to the new one.
        let held = File::open(path("replaced")).unwrap();
        std::fs::remove_file(path("replaced")).unwrap();
        std::fs::write(path("replaced"), "by another process").unwrap();
        clear();
        drop(held);
        for (name, stays) in
            [("noted", false), ("replaced", true), ("result", true), ("other", true)]
        {
            assert_eq!(path(name).exists(), stays, "{name}");
        }
    }
}
