//! Reading beside a writer: an opening is valid only if no file was switched meanwhile.
//!
//! A writer that flushes or recovers first names its new files in the MANIFEST, then deletes the
//! log with the same records. A reader between the two steps would miss these records. The name or
//! length of the MANIFEST reveals it.
//!
//! A writer at full speed switches files many times a second, and an opening that reads its logs
//! takes longer than that. Linking its files takes milliseconds, so a reader that was disturbed a
//! few times opens a view: a directory of links, which nobody changes.

use std::fs::{copy, hard_link};
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use crate::error::{Error, Result, StoreErrorKind};
use crate::store::disk::directory::{LOCK_FILE, VIEW_DIR, clear};
use crate::store::disk::seal::SEAL_FILE;
use crate::store::disk::switch;

/// Number of attempts while a writer keeps switching files.
const ATTEMPTS: u32 = 200;

/// Number of attempts before a view is opened.
const DIRECT_ATTEMPTS: u32 = 4;

/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(10);

/// Opens the files of an index, or a view of them if a writer keeps switching files.
///
/// `open` receives the directory to open. All that it opens later must be open when it returns,
/// because a view is removed then. A directory that does not allow a view is opened directly.
///
/// # Errors
///
/// Those of [`when_settled`].
pub(super) fn open_settled<T>(path: &Path, open: impl Fn(&Path) -> Result<T>) -> Result<T> {
    // A reader changes nothing in the index, but may finish what it needs in its view.
    if switch::torn(path)?.is_some()
        && let Some(view) = view(path)?
    {
        switch::undo(view.path())?;
        return open(view.path());
    }
    for _ in 0..DIRECT_ATTEMPTS {
        if let Some((opened, _)) = attempt(path, || open(path)) {
            return opened;
        }
        std::thread::sleep(PAUSE);
    }
    match view(path)? {
        Some(view) => open(view.path()),
        None => when_settled(path, || open(path)),
    }
}

/// Repeats `open` until the files are the same before and after it.
///
/// # Errors
///
/// Returns the error of `open` if the files did not change during it, and [`Error::Store`] if they
/// changed at every attempt. Gives up after 200 attempts and pauses of two seconds in all.
pub(in crate::store) fn when_settled<T>(path: &Path, open: impl Fn() -> Result<T>) -> Result<T> {
    when_settled_at(path, open).map(|(opened, _)| opened)
}

/// Like [`when_settled`], and also returns which files these were.
pub(super) fn when_settled_at<T>(
    path: &Path,
    open: impl Fn() -> Result<T>,
) -> Result<(T, Option<Stamp>)> {
    for _ in 0..ATTEMPTS {
        if let Some((opened, stamp)) = attempt(path, &open) {
            return opened.map(|opened| (opened, stamp));
        }
        std::thread::sleep(PAUSE);
    }
    let message = "the index changed at every attempt to open it".to_owned();
    Err(Error::Store { kind: StoreErrorKind::Busy, message })
}

/// Calls `open` once. `None` if the files changed during it.
fn attempt<T>(path: &Path, open: impl FnOnce() -> T) -> Option<(T, Option<Stamp>)> {
    let before = Stamp::of(path);
    let opened = open();
    (Stamp::of(path) == before).then_some((opened, before))
}

/// Links and copies the files of an index into a directory within it.
///
/// Logs are linked too: what a writer appends later is the end of the log to a reader. `None` if
/// the directory cannot be created or its file system has no links.
fn view(path: &Path) -> Result<Option<TempDir>> {
    let Ok(view) = tempfile::Builder::new().prefix(VIEW_DIR).tempdir_in(path) else {
        return Ok(None);
    };
    let linked = when_settled(path, || {
        clear(view.path(), &[])?;
        take_files(path, |kind, from| {
            let to = view.path().join(from.file_name().unwrap_or_default());
            match kind {
                FileKind::Table | FileKind::Log => hard_link(from, to),
                FileKind::Other | FileKind::Own => copy(from, to).map(drop),
            }
        })
    });
    match linked {
        Ok(()) => Ok(Some(view)),
        Err(Error::Io { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The kinds of files in an index's directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum FileKind {
    /// Never changes, so a link keeps it even if a writer deletes it.
    Table,
    /// Only grows.
    Log,
    /// Another file of the database.
    Other,
    /// A file of the index beside the database.
    Own,
}

/// Calls `take` for each file of an index.
///
/// What it took is valid only if no file was switched meanwhile: otherwise a log may be missing
/// whose records the MANIFEST does not have in a table file.
pub(in crate::store) fn take_files(
    path: &Path,
    take: impl Fn(FileKind, &Path) -> std::io::Result<()>,
) -> Result<()> {
    for entry in std::fs::read_dir(path).map_err(|e| Error::io(path, e))? {
        let file = entry.map_err(|e| Error::io(path, e))?.path();
        let Some(name) = file.file_name().and_then(|name| name.to_str()) else { continue };
        let starts = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
        let kind = match file.extension().and_then(|extension| extension.to_str()) {
            Some("sst") => FileKind::Table,
            Some("log") => FileKind::Log,
            _ if starts(&["MANIFEST-", "OPTIONS-", "CURRENT"]) => FileKind::Other,
            _ if [SEAL_FILE, LOCK_FILE].contains(&name) => FileKind::Own,
            _ => continue,
        };
        take(kind, &file).map_err(|e| Error::io(&file, e))?;
    }
    Ok(())
}

/// Name and length of the current MANIFEST.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp(String, u64);

impl Stamp {
    /// Reads name and length. Returns `None` if a file is missing.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let current = std::fs::read_to_string(path.join("CURRENT")).ok()?;
        let length = std::fs::metadata(path.join(current.trim_end())).ok()?.len();
        Some(Self(current, length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{Index, IndexOptions};

    /// Returns the names of views in an index's directory.
    fn views(path: &Path) -> usize {
        let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name());
        entries.filter(|name| name.to_str().unwrap().starts_with(VIEW_DIR)).count()
    }

    #[test]
    fn a_reader_opens_beside_a_writer_that_switches_files_at_every_attempt() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("index");
        let index = Index::<u64>::create(&path, &IndexOptions::new()).unwrap();
        let written = std::cell::Cell::new(0_u64);
        let opened = open_settled(&path, |directory| {
            // Each flush switches the log and appends to the MANIFEST.
            for _ in 0..3 {
                index.insert(&written.get().to_be_bytes(), written.get()).unwrap();
                written.set(written.get() + 1);
                index.flush().unwrap();
            }
            let reader = Index::<u64>::open_read_only(directory).unwrap();
            Ok((directory.to_owned(), reader))
        });
        let (directory, reader) = opened.unwrap();
        assert!(directory != path && directory.starts_with(&path) && !directory.exists());
        assert_eq!(views(&path), 0);
        index.merge(&()).unwrap();
        index.compact().unwrap();
        // A view holds what was written before it was made, and no half of what came later.
        let before = u64::from(DIRECT_ATTEMPTS) * 3;
        assert!((before..=written.get()).contains(&reader.len().unwrap()));
        for number in 0..before {
            assert_eq!(reader.get(&number.to_be_bytes()).unwrap(), Some(number));
        }
    }

    #[test]
    fn a_directory_without_disturbance_is_opened_directly() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("index");
        drop(Index::<u64>::create(&path, &IndexOptions::new()).unwrap());
        let opened = open_settled(&path, |directory| Ok(directory.to_owned())).unwrap();
        assert_eq!(opened, path);
    }

    #[test]
    fn old_views_of_killed_readers_are_removed_by_the_next_writer() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("index");
        drop(Index::<u64>::create(&path, &IndexOptions::new()).unwrap());
        for (name, age) in [("old", 7200), ("new", 60)] {
            let view = path.join(format!("{VIEW_DIR}{name}"));
            std::fs::create_dir(&view).unwrap();
            let modified = std::time::SystemTime::now() - Duration::from_secs(age);
            std::fs::File::open(&view).unwrap().set_modified(modified).unwrap();
        }
        drop(Index::<u64>::open_read_only(&path).unwrap());
        assert_eq!(views(&path), 2);
        drop(Index::<u64>::open(&path).unwrap());
        assert_eq!(views(&path), 1);
        assert!(path.join(format!("{VIEW_DIR}new")).exists());
    }
}
