//! Output: results become lines on standard output or in a file.
//!
//! A reader that closes its end (`| head -1`) is an ordinary end; any other failed write is an
//! error. A file gets its name when it is complete and on the disk, and replaces another one only
//! on request.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;

use flate2::write::GzEncoder;
use serde::Serialize;

use super::failure::{Failure, Result};
use super::host::Host;
use super::temporary::{self, Temporary};
use super::visible::visible_json;
use crate::sources::open::Compression;

/// How standard output is spelled.
const STDOUT: &str = "-";

/// Whether a file that exists may be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overwrite {
    #[default]
    Never,
    Allowed,
}

impl From<bool> for Overwrite {
    fn from(allowed: bool) -> Self {
        if allowed { Self::Allowed } else { Self::Never }
    }
}

/// Destination of a verb's results.
#[derive(Debug)]
pub struct Output {
    name: String,
    inner: Option<BufWriter<Target>>,
}

#[derive(Debug)]
enum Target {
    /// A terminal, on which progress may have to make room.
    Terminal(Arc<dyn Host>),
    Pipe(io::Stdout),
    /// A device or pipe named as the file to write.
    Special(File),
    /// A regular file, complete under its final name or not there at all.
    Renamed(Packer),
    /// The same, with nothing left to write.
    Ready(Temporary),
}

/// Compresses the file if its name requests it.
enum Packer {
    Plain(Temporary),
    Gzip(GzEncoder<Temporary>),
    Zstd(zstd::Encoder<'static, Temporary>),
}

impl std::fmt::Debug for Packer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Packer")
    }
}

impl Packer {
    fn new(file: Temporary, path: &Path) -> Result<Self> {
        match Compression::of_name(path) {
            None => Ok(Self::Plain(file)),
            Some(Compression::Gzip) => {
                Ok(Self::Gzip(GzEncoder::new(file, flate2::Compression::default())))
            }
            Some(Compression::Zstd) => {
                zstd::Encoder::new(file, 0).map(Self::Zstd).map_err(|e| Failure::io(path, e))
            }
            Some(Compression::Bzip2 | Compression::Xz | Compression::Lz4) => {
                Err(Failure::Usage(format!(
                    "{}: results can be compressed as .gz or .zst; choose one of these",
                    path.display()
                )))
            }
        }
    }

    fn finish(self) -> io::Result<Temporary> {
        match self {
            Self::Plain(file) => Ok(file),
            Self::Gzip(encoder) => encoder.finish(),
            Self::Zstd(encoder) => encoder.finish(),
        }
    }

    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Self::Plain(file) => file,
            Self::Gzip(encoder) => encoder,
            Self::Zstd(encoder) => encoder,
        }
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Terminal(host) => host.print(bytes).map(|()| bytes.len()),
            Self::Pipe(stdout) => stdout.write(bytes),
            Self::Special(file) => file.write(bytes),
            Self::Renamed(packer) => packer.writer().write(bytes),
            Self::Ready(_) => Err(io::Error::other("nothing may follow the end")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Terminal(_) | Self::Ready(_) => Ok(()),
            Self::Pipe(stdout) => stdout.flush(),
            Self::Special(file) => file.flush(),
            Self::Renamed(packer) => packer.writer().flush(),
        }
    }
}

impl Output {
    pub fn stdout(host: &dyn Host) -> Self {
        let stdout = io::stdout();
        let target = if stdout.is_terminal() {
            Target::Terminal(host.share())
        } else {
            Target::Pipe(stdout)
        };
        Self { name: "standard output".to_owned(), inner: Some(buffered(target)) }
    }

    /// Writes to a file that gets its name only when everything is in it.
    pub fn file(path: &Path, overwrite: Overwrite) -> Result<Self> {
        let name = path.display().to_string();
        let special = path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir());
        let target = if special {
            let file = File::options().write(true).open(path).map_err(|e| Failure::io(path, e))?;
            Target::Special(file)
        } else {
            Target::Renamed(Packer::new(temporary::result(path, overwrite)?, path)?)
        };
        Ok(Self { name, inner: Some(buffered(target)) })
    }

    /// Opens standard output, or the file if one is named.
    pub fn open(file: Option<&Path>, host: &dyn Host, overwrite: Overwrite) -> Result<Self> {
        match file {
            None => Ok(Self::stdout(host)),
            Some(path) if is_stdout(path) => Ok(Self::stdout(host)),
            Some(path) => Self::file(path, overwrite),
        }
    }

    /// Returns the name of the file, or that of standard output.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Writes one value as a line of JSON.
    pub fn json(&mut self, value: &impl Serialize) -> Result<()> {
        if self.is_terminal() {
            let json = serde_json::to_string(value).map_err(|e| self.failed(e.into()))?;
            return self.with(|out| writeln!(out, "{}", visible_json(&json)));
        }
        self.with(|out| {
            serde_json::to_writer(&mut *out, value)?;
            out.write_all(b"\n")
        })
    }

    /// Returns whether a person reads this, so that ids have to be shown by [`visible`](super::visible::visible).
    pub fn is_terminal(&self) -> bool {
        self.inner.as_ref().is_some_and(|inner| matches!(inner.get_ref(), Target::Terminal(_)))
    }

    /// Writes through the buffer; failures name the output.
    pub fn with(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        let Some(inner) = &mut self.inner else { return Err(Failure::OutputClosed) };
        match write(inner) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Flushes the buffer, for a waiting reader.
    pub fn flush(&mut self) -> Result<()> {
        self.with(|out| out.flush())
    }

    /// Writes everything out; a file is then complete and on the disk, but has no name yet.
    pub fn prepare(&mut self) -> Result<()> {
        let Some(inner) = self.inner.take() else { return Ok(()) };
        match inner.into_inner() {
            Ok(Target::Renamed(packer)) => {
                let file = packer.finish().map_err(|e| Failure::io(&self.name, e))?;
                file.sync()?;
                self.inner = Some(buffered(Target::Ready(file)));
                Ok(())
            }
            Ok(mut target) => {
                target.flush().map_err(|e| self.failed(e))?;
                self.inner = Some(buffered(target));
                Ok(())
            }
            Err(error) => {
                let (error, inner) = error.into_parts();
                // Dropping the buffer would try the failed write again.
                let _ = inner.into_parts();
                Err(self.failed(error))
            }
        }
    }

    /// Writes everything out and, for a file, gives it its name.
    pub fn finish(mut self) -> Result<()> {
        self.prepare()?;
        let Some(inner) = self.inner.take() else { return Ok(()) };
        match inner.into_inner() {
            Ok(Target::Ready(file)) => file.publish(),
            _ => Ok(()),
        }
    }

    fn failed(&mut self, error: io::Error) -> Failure {
        if let Some(inner) = self.inner.take() {
            let _ = inner.into_parts();
        }
        Failure::of_write(&self.name, error)
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.inner {
            Some(inner) => inner.write(bytes),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.as_mut().map_or(Ok(()), Write::flush)
    }
}

/// Returns true if a path means standard output.
pub fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == STDOUT
}

fn buffered(target: Target) -> BufWriter<Target> {
    BufWriter::with_capacity(1 << 16, target)
}
