//! Locks on directories, each held by a file within and given back when dropped.

use std::fs::{File, TryLockError};
use std::path::Path;

use super::directory::{LOCK_FILE, open_kept};
use crate::error::{Error, Result};

/// A directory taken by this process; the system gives it back when the process ends.
///
/// A child of a fork shares the locks of its parent for as long as it lives or until it runs
/// another program. So closing the file is not enough to give a lock back, and a child that drops
/// what it was born with must not give back what its parent still holds.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    process: u32,
}

impl Lock {
    /// Takes an index for writing.
    pub(super) fn of_index(path: &Path) -> Result<Self> {
        Self::alone(path, LOCK_FILE)
    }

    /// Takes a directory by a file in it that nobody else may have taken.
    pub(super) fn alone(directory: &Path, name: &str) -> Result<Self> {
        let file = open_kept(&directory.join(name))?;
        let taken = file.try_lock();
        Self::taken(directory, file, taken)
    }

    /// Takes a directory by a file in it that others share.
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
            // Closing the file comes next and does the same unless a child has it too.
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
        // Shares the lock as the copy in a child does.
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
