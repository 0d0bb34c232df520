//! Locks on directories: each is a locked file in the directory, released on drop.

use std::fs::{File, TryLockError};
use std::path::Path;

use super::directory::{LOCK_FILE, open_kept};
use crate::error::{Error, Result};

/// A locked directory. The OS releases the lock when the process exits.
///
/// A forked child shares its parent's locks until it exits or runs another program. So closing the
/// file does not always release the lock, and a child that drops an inherited lock must not release
/// it for its parent.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    process: u32,
}

impl Lock {
    /// Locks an index for writing.
    pub(super) fn of_index(path: &Path) -> Result<Self> {
        Self::alone(path, LOCK_FILE)
    }

    /// Locks a file in a directory exclusively.
    pub(super) fn alone(directory: &Path, name: &str) -> Result<Self> {
        let file = open_kept(&directory.join(name))?;
        let taken = file.try_lock();
        Self::taken(directory, file, taken)
    }

    /// Locks a file in a directory together with other readers.
    pub(super) fn shared(directory: &Path, file: File) -> Result<Self> {
        let taken = file.try_lock_shared();
        Self::taken(directory, file, taken)
    }

    fn taken(directory: &Path, file: File, taken: Result<(), TryLockError>) -> Result<Self> {
        match taken {
            Ok(()) => Ok(Self { file, process: std::process::id() }),
            Err(TryLockError::WouldBlock) => Err(Error::Locked { path: directory.to_owned() }),
            Err(TryLockError::Error(error)) => Err(Error::io(directory, error)),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            // Closing the file would release the lock, unless a forked child shares it.
            let _ = self.file.unlock();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_lock_is_free_though_a_child_of_a_fork_still_shares_it() {
        let directory = tempfile::tempdir().unwrap();
        let lock = Lock::of_index(directory.path()).unwrap();
        assert!(matches!(Lock::of_index(directory.path()), Err(Error::Locked { .. })));
        // A child of a fork shares the lock in the same way.
        let _of_child = lock.file.try_clone().unwrap();
        drop(lock);
        Lock::of_index(directory.path()).unwrap();
    }

    #[test]
    fn a_child_of_a_fork_does_not_give_back_what_its_parent_holds() {
        let directory = tempfile::tempdir().unwrap();
        let parent = Lock::of_index(directory.path()).unwrap();
        let child = Lock { file: parent.file.try_clone().unwrap(), process: parent.process + 1 };
        drop(child);
        assert!(matches!(Lock::of_index(directory.path()), Err(Error::Locked { .. })));
    }
}
