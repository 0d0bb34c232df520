//! Temporary files: results before they get their names, and files that only this run needs.
//!
//! Their names have a checksum, so that no file of the user's is mistaken for one. Each is locked
//! while its process lives; files that a killed process left are removed.

use std::fs::{File, Metadata};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tempfile::NamedTempFile;

use super::failure::{Failure, Result};
use super::output::Overwrite;

/// Begins the name of every temporary file.
const PREFIX: &str = ".hamdex-";

/// Age below which a file may be on its way to its lock.
const FRESH: Duration = Duration::from_secs(1);

/// Links that may follow one another.
const LINKS: usize = 40;

/// A file on its way to its name.
#[derive(Debug)]
pub struct Temporary {
    file: NamedTempFile,
    /// The name it will have, links followed.
    target: PathBuf,
    overwrite: Overwrite,
}

impl Write for Temporary {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Temporary {
    /// Waits until everything is on the disk.
    pub fn sync(&self) -> Result<()> {
        self.file.as_file().sync_all().map_err(|e| Failure::io(&self.target, e))
    }

    /// Gives the file its name.
    pub fn publish(self) -> Result<()> {
        let Self { file, target, overwrite } = self;
        let named = match overwrite {
            Overwrite::Allowed => file.persist(&target),
            Overwrite::Never => file.persist_noclobber(&target),
        };
        match named {
            Ok(file) => {
                // The name is as durable as the content once the directory is on the disk.
                let _ = file.unlock();
                match File::open(directory_of(&target)).and_then(|directory| directory.sync_all()) {
                    // A directory that can be written to need not be readable.
                    Err(error) if error.kind() != io::ErrorKind::PermissionDenied => {
                        Err(Failure::io(&target, error))
                    }
                    _ => Ok(()),
                }
            }
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
                Err(Failure::WouldOverwrite { path: target.display().to_string() })
            }
            Err(error) => Err(Failure::io(&target, error.error)),
        }
    }
}

/// Makes a file that is on its way to a name.
///
/// Results are for everybody whom the process's umask allows, unlike other temporary files; one
/// that takes the place of another has the mode and, if possible, the owner of that.
pub fn result(path: &Path, overwrite: Overwrite) -> Result<Temporary> {
    if path.is_dir() {
        return Err(Failure::refused(path, "is a directory; give the name of a file"));
    }
    let target = follow(path)?;
    let before = target.metadata().ok();
    if before.is_some() && overwrite == Overwrite::Never {
        return Err(Failure::WouldOverwrite { path: path.display().to_string() });
    }
    let directory = directory_of(&target);
    let mut builder = tempfile::Builder::new();
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let file = held(&builder, directory)?;
    if let Some(before) = before {
        take_over(file.as_file(), &before).map_err(|e| Failure::io(path, e))?;
    }
    Ok(Temporary { file, target, overwrite })
}

/// Creates a private file, which the system removes in the end.
pub fn private(directory: &Path) -> Result<NamedTempFile> {
    held(&tempfile::Builder::new(), directory)
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Follows symbolic links, the last of which may lead to nothing.
fn follow(path: &Path) -> Result<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..LINKS {
        let Ok(next) = path.read_link() else { return Ok(path) };
        path = path.parent().unwrap_or(Path::new("")).join(next);
    }
    Err(Failure::refused(path, "is a symbolic link that leads back to itself"))
}

fn take_over(file: &File, before: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};
    // Only the superuser can change owners; the mode decides for all others.
    let _ = fchown(file, Some(before.uid()), Some(before.gid()));
    file.set_permissions(before.permissions())
}

/// Creates a file that is locked while its process lives, and removes those of killed ones.
fn held(builder: &tempfile::Builder<'_, '_>, directory: &Path) -> Result<NamedTempFile> {
    clear_left(directory);
    let name = name(RandomState::new().hash_one(std::process::id()));
    let made = builder.clone().prefix(&name).rand_bytes(0).tempfile_in(directory);
    let file = made.map_err(|e| Failure::io(directory, e))?;
    note(file.path(), file.as_file());
    // Without locks, no process can see that this file was left.
    let _ = file.as_file().try_lock();
    Ok(file)
}

/// Returns the name of a temporary file: 16 digits and their checksum.
fn name(number: u64) -> String {
    let digits = format!("{number:016x}");
    let sum = sum(&digits);
    format!("{PREFIX}{digits}{sum:016x}")
}

/// Returns the 64-bit FNV-1a of a prefix and the digits, unique to this program.
fn sum(digits: &str) -> u64 {
    let bytes = b"temporary file of hamdex: ".iter().chain(digits.as_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |sum: u64, &byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn is_ours(name: &str) -> bool {
    let number = name.strip_prefix(PREFIX).and_then(|rest| rest.get(..16));
    let number = number.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    number.is_some_and(|number| self::name(number) == name)
}

/// Removes temporary files whose process was killed, if possible.
fn clear_left(directory: &Path) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_str().is_some_and(is_ours);
        let Ok(found) = entry.metadata() else { continue };
        let age = found.modified().ok().and_then(|written| written.elapsed().ok());
        if !ours || !found.is_file() || age.is_none_or(|age| age < FRESH) {
            continue;
        }
        if File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

static MADE: Mutex<Vec<(PathBuf, Identity)>> = Mutex::new(Vec::new());

/// Device and number of a file, which distinguish it from another of the same name.
type Identity = (u64, u64);

/// Remembers a temporary file.
fn note(path: &Path, file: &File) {
    if let Ok(found) = file.metadata() {
        remember(path, &found);
    }
}

/// Remembers a directory that this process made for its results.
pub fn note_directory(path: &Path) {
    if let Ok(found) = path.symlink_metadata() {
        remember(path, &found);
    }
}

fn remember(path: &Path, found: &Metadata) {
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    made.push((path.to_path_buf(), identity(found)));
}

/// Removes every temporary file of this process, for an end that runs no destructors,
/// if it is still there under its first name, and the directories that it noted, if empty.
pub fn clear() {
    let made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    for (path, made) in made.iter().rev() {
        let Ok(found) = path.symlink_metadata() else { continue };
        if identity(&found) == *made {
            let remove = if found.is_dir() { std::fs::remove_dir } else { std::fs::remove_file };
            let _ = remove(path);
        }
    }
}

fn identity(found: &Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt;
    (found.dev(), found.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_nobody_holds_and_nobody_else_names_are_cleared() {
        let directory = tempfile::tempdir().unwrap();
        let old = std::time::SystemTime::now() - Duration::from_mins(1);
        let (left, fresh) = (name(7), name(8));
        let own = private(directory.path()).unwrap();
        own.as_file().set_modified(old).unwrap();
        let foreign = [".hamdex-seed", ".hamdex-0000000000000007", "kept.jsonl"];
        for name in foreign.iter().copied().chain([left.as_str(), fresh.as_str()]) {
            std::fs::write(directory.path().join(name), "x").unwrap();
        }
        for name in foreign.iter().copied().chain([left.as_str()]) {
            let file = File::options().write(true).open(directory.path().join(name)).unwrap();
            file.set_modified(old).unwrap();
        }
        let next = private(directory.path()).unwrap();
        assert!(own.path().exists() && next.path().exists());
        assert!(!directory.path().join(&left).exists());
        for name in foreign.iter().copied().chain([fresh.as_str()]) {
            assert!(directory.path().join(name).exists(), "{name}");
        }
    }

    #[test]
    fn a_file_is_replaced_on_request_only() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        std::fs::write(&path, "old").unwrap();
        assert!(matches!(result(&path, Overwrite::Never), Err(Failure::WouldOverwrite { .. })));
        let late = directory.path().join("b");
        let file = result(&late, Overwrite::Never).unwrap();
        std::fs::write(&late, "of another program").unwrap();
        assert!(matches!(file.publish(), Err(Failure::WouldOverwrite { .. })));
        assert_eq!(std::fs::read_to_string(&late).unwrap(), "of another program");
        result(&path, Overwrite::Allowed).unwrap().publish().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "");
    }

    #[test]
    fn links_are_followed_and_modes_kept() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::create_dir(at("far")).unwrap();
        std::fs::write(at("far/file"), "old").unwrap();
        std::fs::set_permissions(at("far/file"), PermissionsExt::from_mode(0o640)).unwrap();
        symlink("far/file", at("link")).unwrap();
        symlink("far/none", at("dangling")).unwrap();
        symlink("circle", at("circle")).unwrap();
        for (link, target) in [("link", "far/file"), ("dangling", "far/none")] {
            let mut file = result(&at(link), Overwrite::Allowed).unwrap();
            assert_eq!(file.file.path().parent(), Some(&*at("far")));
            file.write_all(b"new").unwrap();
            file.publish().unwrap();
            assert!(at(link).symlink_metadata().unwrap().is_symlink());
            assert_eq!(std::fs::read_to_string(at(target)).unwrap(), "new");
        }
        assert_eq!(at("far/file").metadata().unwrap().permissions().mode() & 0o777, 0o640);
        assert!(result(&at("circle"), Overwrite::Allowed).is_err());
    }

    #[test]
    fn only_what_was_noted_is_removed() {
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
        for name in ["empty", "with results"] {
            std::fs::create_dir(path(name)).unwrap();
            note_directory(&path(name));
        }
        std::fs::write(path("with results/kept"), "x").unwrap();
        let inner = path("empty/file");
        std::fs::write(&inner, "x").unwrap();
        note(&inner, &File::open(&inner).unwrap());
        clear();
        drop(held);
        for (name, stays) in
            [("noted", false), ("replaced", true), ("result", true), ("other", true)]
                .into_iter()
                .chain([("empty", false), ("with results", true)])
        {
            assert_eq!(path(name).exists(), stays, "{name}");
        }
    }
}
