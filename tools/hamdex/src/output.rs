//! Output: results become lines on standard output or in a file.
//!
//! A reader that goes away (`| head -1`) is an ordinary end; any other failed write is an error.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use tempfile::NamedTempFile;

use crate::console::Console;
use crate::failure::{Failure, Result};

/// Where a verb's results go.
#[derive(Debug)]
pub(crate) struct Output {
    name: String,
    inner: Option<BufWriter<Target>>,
}

#[derive(Debug)]
enum Target {
    /// The console, where a progress bar may have to step aside.
    Terminal(Console),
    Pipe(io::Stdout),
    /// A device or pipe named as the file to write.
    Special(File),
    /// A regular file, complete under its final name or not there at all.
    Renamed(NamedTempFile, PathBuf),
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Terminal(console) => console
                .aside(|| {
                    let mut stdout = io::stdout();
                    stdout.write_all(bytes)?;
                    stdout.flush()
                })
                .map(|()| bytes.len()),
            Self::Pipe(stdout) => stdout.write(bytes),
            Self::Special(file) => file.write(bytes),
            Self::Renamed(file, _) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Terminal(_) => Ok(()),
            Self::Pipe(stdout) => stdout.flush(),
            Self::Special(file) => file.flush(),
            Self::Renamed(file, _) => file.flush(),
        }
    }
}

impl Output {
    pub(crate) fn stdout(console: &Console) -> Self {
        let stdout = io::stdout();
        let target = if stdout.is_terminal() {
            Target::Terminal(console.clone())
        } else {
            Target::Pipe(stdout)
        };
        Self { name: "standard output".to_owned(), inner: Some(buffered(target)) }
    }

    /// Writes to a file that gets its name only when everything is in it.
    pub(crate) fn file(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let special = path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir());
        let target = if special {
            Target::Special(
                File::options().write(true).open(path).map_err(|e| Failure::io(path, e))?,
            )
        } else if path.is_dir() {
            return Err(Failure::file(path, "is a directory; name a file to write"));
        } else {
            let directory = match path.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent,
                _ => Path::new("."),
            };
            let file = temporary(directory)?;
            Target::Renamed(file, path.to_path_buf())
        };
        Ok(Self { name, inner: Some(buffered(target)) })
    }

    /// Standard output, or the file if one is named.
    pub(crate) fn open(file: Option<&Path>, console: &Console) -> Result<Self> {
        file.map_or_else(|| Ok(Self::stdout(console)), Self::file)
    }

    /// Writes one value as a line of JSON.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<()> {
        self.with(|out| {
            serde_json::to_writer(&mut *out, value)?;
            out.write_all(b"\n")
        })
    }

    /// Writes through the buffer; failures name the output.
    pub(crate) fn with(
        &mut self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<()> {
        let Some(inner) = &mut self.inner else { return Err(Failure::OutputClosed) };
        match write(inner) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Hands on what is buffered, for a reader that waits for it.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.with(|out| out.flush())
    }

    /// Writes everything out and, for a file, gives it its name.
    pub(crate) fn finish(mut self) -> Result<()> {
        let Some(inner) = self.inner.take() else { return Ok(()) };
        match inner.into_inner() {
            Ok(Target::Renamed(file, path)) => {
                file.persist(&path).map(drop).map_err(|e| Failure::io(&path, e.error))
            }
            Ok(mut target) => target.flush().map_err(|e| self.failed(e)),
            Err(error) => {
                let (error, inner) = error.into_parts();
                // Dropping the buffer would try the failed write again.
                let _ = inner.into_parts();
                Err(self.failed(error))
            }
        }
    }

    fn failed(&mut self, error: io::Error) -> Failure {
        if let Some(inner) = self.inner.take() {
            let _ = inner.into_parts();
        }
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failure::OutputClosed;
        }
        Failure::Io { path: self.name.clone(), source: error }
    }
}

fn buffered(target: Target) -> BufWriter<Target> {
    BufWriter::with_capacity(1 << 16, target)
}

/// Begins the name of every temporary file that has one.
const PREFIX: &str = ".hamdex-";

/// Age below which a file may be on its way to its lock.
const FRESH: Duration = Duration::from_secs(1);

/// Makes a file that is on its way to a name in this directory.
///
/// Results are for everybody whom the process's umask allows, unlike other temporary files.
pub(crate) fn temporary(directory: &Path) -> Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    held(&mut builder, directory)
}

/// Makes a file for nobody else, that is gone in the end.
pub(crate) fn private(directory: &Path) -> Result<NamedTempFile> {
    held(&mut tempfile::Builder::new(), directory)
}

/// Makes a file that is locked as long as its process lives, and clears what killed ones left.
fn held(builder: &mut tempfile::Builder<'_, '_>, directory: &Path) -> Result<NamedTempFile> {
    clear_left(directory);
    let file =
        builder.prefix(PREFIX).tempfile_in(directory).map_err(|e| Failure::io(directory, e))?;
    // Where files cannot be locked, nobody can tell that this one is left, either.
    let _ = file.as_file().try_lock();
    Ok(file)
}

/// Removes temporary files whose process was killed; one that cannot be removed is let be.
fn clear_left(directory: &Path) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let named = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let Ok(found) = entry.metadata() else { continue };
        let age = found.modified().ok().and_then(|written| written.elapsed().ok());
        if !named || !found.is_file() || age.is_none_or(|age| age < FRESH) {
            continue;
        }
        if File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_nobody_holds_are_cleared() {
        let directory = tempfile::tempdir().unwrap();
        let old = std::time::SystemTime::now() - Duration::from_mins(1);
        let (own, left) =
            (private(directory.path()).unwrap(), directory.path().join(".hamdex-left"));
        own.as_file().set_modified(old).unwrap();
        for name in [".hamdex-left", ".hamdex-fresh", "kept.jsonl"] {
            std::fs::write(directory.path().join(name), "x").unwrap();
        }
        for name in [".hamdex-left", "kept.jsonl"] {
            let file = File::options().write(true).open(directory.path().join(name)).unwrap();
            file.set_modified(old).unwrap();
        }
        let next = temporary(directory.path()).unwrap();
        assert!(own.path().exists() && next.path().exists());
        assert!(!left.exists());
        for name in [".hamdex-fresh", "kept.jsonl"] {
            assert!(directory.path().join(name).exists(), "{name}");
        }
    }
}
