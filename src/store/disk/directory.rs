//! The index's directory: the files that do not belong to the database, and its lock.

use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::time::Duration;

use super::seal::SEAL_FILE;
use crate::error::{Error, Result};
use crate::store::data::moment::{NEW_RESIDENT_FILE, RESIDENT_FILE};

/// Locked while a writing handle is open.
pub(in crate::store) const LOCK_FILE: &str = "hamdex.lock";

/// Exists while an index is being created in the directory or moved into it.
pub(in crate::store) const CREATING_FILE: &str = "hamdex.creating";

/// Temporary name of [`CREATING_FILE`] until it is written.
const NEW_MARK: &str = "hamdex.creating.tmp";

/// Subdirectory of the target in which a copy of an index is prepared.
pub(in crate::store) const STAGE_DIR: &str = "hamdex.stage";

/// Directory of a deduplication's state, which copies of the index take along.
pub(crate) const STATE_DIR: &str = "dedup.state";

/// Beginning of the names of directories of links that readers open; see `settled`.
pub(in crate::store) const VIEW_DIR: &str = "hamdex.view-";

/// Age above which a view is that of a killed reader. An opening takes seconds.
const STALE_VIEW: Duration = Duration::from_hours(1);

/// Content of the mark for a copy of an index. The mark of a new index is empty.
const RESTORING: &[u8] = b"restoring\n";

/// Why a directory does not hold a complete index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum Mark {
    /// A new, empty index is being created. The next creation starts again.
    Creating,
    /// A copy with documents is being placed. Only another copy may start again.
    Restoring,
}

impl Mark {
    /// Reads the mark of a directory. `None` if no creation is unfinished.
    pub(in crate::store) fn of(path: &Path) -> Result<Option<Self>> {
        let mark = path.join(CREATING_FILE);
        match fs::read(&mark) {
            Ok(bytes) if bytes.is_empty() => Ok(Some(Self::Creating)),
            Ok(_) => Ok(Some(Self::Restoring)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            // The path itself is a file.
            Err(error) if error.kind() == ErrorKind::NotADirectory => Ok(None),
            Err(error) => Err(Error::io(&mark, error)),
        }
    }
}

pub(in crate::store) fn exists(path: &Path, name: &str) -> Result<bool> {
    path.join(name).try_exists().map_err(|e| Error::io(path, e))
}

/// Creates a directory and its parents, all of which survive a power loss.
pub(crate) fn make(path: &Path) -> Result<()> {
    let above = match path.parent() {
        Some(above) if above.as_os_str().is_empty() => Path::new("."),
        Some(above) => above,
        None => return Ok(()),
    };
    match fs::create_dir(path) {
        Err(error) if error.kind() == ErrorKind::NotFound && !above.is_dir() => {
            make(above)?;
            return make(path);
        }
        // Its creator may not have synced it.
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => (),
        made => made.map_err(|e| Error::io(path, e))?,
    }
    match sync(above) {
        // A directory without read permission cannot be synced.
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::PermissionDenied => Ok(()),
        synced => synced,
    }
}

/// Fails unless the directory is empty or holds an interrupted attempt of the same kind.
pub(in crate::store) fn require_vacant(path: &Path, mark: Mark) -> Result<()> {
    match Mark::of(path)? {
        Some(Mark::Restoring) if mark == Mark::Creating => {
            return Err(Error::RestoreUnfinished { path: path.to_owned() });
        }
        Some(_) => return Ok(()),
        None => (),
    }
    for entry in fs::read_dir(path).map_err(|e| Error::io(path, e))? {
        let entry = entry.map_err(|e| Error::io(path, e))?;
        if entry.file_name() != LOCK_FILE && entry.file_name() != NEW_MARK {
            return Err(Error::AlreadyExists { path: path.to_owned() });
        }
    }
    Ok(())
}

/// Marks the directory and removes what an earlier attempt left. The caller holds the lock.
pub(in crate::store) fn begin_creation(path: &Path, mark: Mark) -> Result<()> {
    require_vacant(path, mark)?;
    mark_creation(path, mark)?;
    clear(path, &[LOCK_FILE, CREATING_FILE])
}

/// Marks the directory as incomplete, whatever else it contains.
pub(super) fn mark_creation(path: &Path, mark: Mark) -> Result<()> {
    let (place, new) = (path.join(CREATING_FILE), path.join(NEW_MARK));
    let content = if mark == Mark::Restoring { RESTORING } else { b"" };
    // A partly written mark would mean that there is nothing to lose.
    write_whole(&new, &place, content)
}

/// Removes the files of an index, except those in `kept`. Other files stay.
pub(in crate::store) fn clear(path: &Path, kept: &[&str]) -> Result<()> {
    for entry in fs::read_dir(path).map_err(|e| Error::io(path, e))? {
        let entry = entry.map_err(|e| Error::io(path, e))?;
        let kind = entry.file_type().map_err(|e| Error::io(path, e))?;
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| !kept.contains(name)) else { continue };
        let path = entry.path();
        let removed = match kind.is_dir() {
            true if is_own_directory(name) => fs::remove_dir_all(&path),
            false if is_own_file(name) => fs::remove_file(&path),
            _ => continue,
        };
        removed.map_err(|e| Error::io(&path, e))?;
    }
    Ok(())
}

/// Returns true for file names that an index or its database uses.
fn is_own_file(name: &str) -> bool {
    let ends = [".sst", ".log", ".dbtmp", ".blob"];
    let numbered = |name: &str| {
        ends.iter().any(|end| {
            let number = name.strip_suffix(end);
            number.is_some_and(|n| !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()))
        })
    };
    ["CURRENT", "IDENTITY", "LOCK", "LOG"].contains(&name)
        || ["MANIFEST-", "OPTIONS-", "LOG.old"].iter().any(|start| name.starts_with(start))
        || [LOCK_FILE, SEAL_FILE, CREATING_FILE, NEW_MARK].contains(&name)
        || [RESIDENT_FILE, NEW_RESIDENT_FILE].contains(&name)
        || numbered(name)
}

/// Returns true for directory names that an index uses. `bulk` is that of builds.
fn is_own_directory(name: &str) -> bool {
    let is_stage = name == STAGE_DIR || name.strip_prefix(STAGE_DIR) == Some(".tmp");
    is_stage || name == "bulk" || name == STATE_DIR || name.starts_with(VIEW_DIR)
}

/// Removes what an interrupted copy left. The caller holds the lock, so no copy is running.
pub(in crate::store) fn remove_stage(path: &Path) -> Result<()> {
    for stage in [path.join(STAGE_DIR), path.join(format!("{STAGE_DIR}.tmp"))] {
        gone(&stage, fs::remove_dir_all(&stage))?;
    }
    Ok(())
}

/// Removes the fingerprints that a killed process was saving. The caller holds the lock.
pub(in crate::store) fn remove_unsaved(path: &Path) -> Result<()> {
    let unsaved = path.join(NEW_RESIDENT_FILE);
    gone(&unsaved, fs::remove_file(&unsaved))
}

/// Fails unless what was removed is gone, or was not there.
fn gone(path: &Path, removed: std::io::Result<()>) -> Result<()> {
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io(path, error)),
        _ => Ok(()),
    }
}

/// Removes views that killed readers left.
pub(in crate::store) fn remove_stale_views(path: &Path) -> Result<()> {
    for entry in fs::read_dir(path).map_err(|e| Error::io(path, e))? {
        let entry = entry.map_err(|e| Error::io(path, e))?;
        if !entry.file_name().to_str().is_some_and(|name| name.starts_with(VIEW_DIR)) {
            continue;
        }
        let modified = entry.metadata().and_then(|view| view.modified());
        let is_stale = modified.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > STALE_VIEW));
        // A view of another user stays; it costs space and nothing else.
        if is_stale
            && let Err(error) = fs::remove_dir_all(entry.path())
            && ![ErrorKind::NotFound, ErrorKind::PermissionDenied].contains(&error.kind())
        {
            return Err(Error::io(entry.path(), error));
        }
    }
    Ok(())
}

/// Writes a file under another name first, so that a power loss leaves all of it or nothing.
pub(crate) fn write_whole(new: &Path, place: &Path, bytes: &[u8]) -> Result<()> {
    File::create(new)
        .and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        })
        .map_err(|e| Error::io(new, e))?;
    rename(new, place)
}

/// Copies a file and syncs the copy.
pub(in crate::store) fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::copy(from, to)?;
    File::open(to)?.sync_all()
}

/// Renames a file so that the new name survives a power loss.
pub(crate) fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).map_err(|e| Error::io(to, e))?;
    to.parent().map_or(Ok(()), sync)
}

/// Makes the names in a directory survive a power loss.
pub(crate) fn sync(path: &Path) -> Result<()> {
    #[cfg(test)]
    tests::SYNCED.with_borrow_mut(|synced| synced.push(path.to_owned()));
    File::open(path).and_then(|directory| directory.sync_all()).map_err(|e| Error::io(path, e))
}

/// Opens a file for writing without truncating it. Creates it if missing.
pub(super) fn open_kept(name: &Path) -> Result<File> {
    let mut options = File::options();
    options.create(true).truncate(false).write(true);
    options.open(name).map_err(|e| Error::io(name, e))
}

/// A locked directory. The OS releases the lock when the process exits.
///
/// A forked child shares its parent's locks until it exits or runs another program. So closing the
/// file does not always release the lock, and a child that drops an inherited lock must not release
/// it for its parent.
#[derive(Debug)]
pub(in crate::store) struct Lock {
    file: File,
    process: u32,
}

impl Lock {
    /// Locks an index for writing.
    pub(in crate::store) fn of_index(path: &Path) -> Result<Self> {
        Self::alone(path, LOCK_FILE)
    }

    /// Locks a file in a directory exclusively.
    pub(in crate::store) fn alone(directory: &Path, name: &str) -> Result<Self> {
        let file = open_kept(&directory.join(name))?;
        let taken = file.try_lock();
        Self::taken(directory, file, taken)
    }

    /// Locks a file in a directory together with other readers.
    pub(in crate::store) fn shared(directory: &Path, file: File) -> Result<Self> {
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
    use std::cell::RefCell;
    use std::path::PathBuf;

    use super::*;
    use crate::index::{Index, IndexOptions};

    thread_local! {
        /// Directories that this thread has synced.
        pub(super) static SYNCED: RefCell<Vec<PathBuf>> = const { RefCell::new(Vec::new()) };
    }

    fn synced_by(body: impl FnOnce()) -> Vec<PathBuf> {
        SYNCED.take();
        body();
        SYNCED.take()
    }

    #[test]
    fn every_directory_that_is_made_is_synced_in_the_one_above_it() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        let mut index = None;
        let synced = synced_by(|| {
            let options = IndexOptions::new();
            index = Some(Index::<u64>::create(path("a/b/index"), &options).unwrap());
        });
        for above in [place.path(), &path("a"), &path("a/b"), &path("a/b/index")] {
            assert!(synced.iter().any(|path| path == above), "{} in {synced:?}", above.display());
        }
        let index = index.unwrap();
        let synced = synced_by(|| drop(index.backup(path("c/backups")).unwrap()));
        assert!(synced.contains(&path("c")), "{synced:?}");
        let synced = synced_by(|| index.checkpoint(path("d/copy")).unwrap());
        assert!(synced.contains(&path("d")), "{synced:?}");
        // An earlier attempt may have stopped after creating the directory, or before its mark.
        std::fs::create_dir(path("made")).unwrap();
        let synced = synced_by(|| make(&path("made")).unwrap());
        assert_eq!(synced, [place.path()]);
        std::fs::write(path("made").join(NEW_MARK), []).unwrap();
        drop(Index::<u64>::create(path("made"), &IndexOptions::new()).unwrap());
        assert!(!path("made").join(NEW_MARK).exists());
    }

    #[test]
    fn clearing_takes_the_files_of_an_index_and_no_others() {
        let place = tempfile::tempdir().unwrap();
        let own = ["000012.sst", "000013.log", "CURRENT", "LOG.old.17", "hamdex.seal", "LOCK"];
        let others = ["notes.txt", "photo.log", "x.sst", "hamdex", ".sst", "MANIFEST"];
        for name in own.iter().chain(&others) {
            std::fs::write(place.path().join(name), "x").unwrap();
        }
        for name in ["bulk", "hamdex.stage", "hamdex.stage.tmp", "mine", "7.sst"] {
            std::fs::create_dir(place.path().join(name)).unwrap();
            std::fs::write(place.path().join(name).join("file"), "x").unwrap();
        }
        clear(place.path(), &["LOCK"]).unwrap();
        let mut left: Vec<_> = std::fs::read_dir(place.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        let mut kept = [&others[..], &["LOCK", "mine", "7.sst"]].concat();
        kept.sort_unstable();
        assert_eq!(left, kept);
    }

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
