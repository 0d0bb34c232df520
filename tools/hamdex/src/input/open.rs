//! Opening files: compressed or plain, they become one stream of bytes that counts progress.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use flate2::bufread::MultiGzDecoder;

use crate::failure::{Failure, Result};

/// Bytes read from the system at once.
pub(super) const BUFFER: usize = 1 << 18;

const GZIP: &str = "gz";

/// Largest window of a Zstandard frame, 128 MiB, as zstd itself takes it unasked.
///
/// A frame of nine bytes may ask for 2 GiB; whoever knows where a file comes from can allow it.
pub(super) const WINDOW_LOG: u32 = 27;

/// A stream of bytes whose buffer tells whether reading on may have to wait.
pub(crate) type Reader = BufReader<Box<dyn Read + Send>>;

pub(super) fn buffered(reader: impl Read + Send + 'static) -> Reader {
    BufReader::with_capacity(BUFFER, Box::new(reader))
}

/// Something that is made piece by piece.
pub(super) trait Pieces {
    /// Appends the next piece to an empty buffer; false at the end.
    fn next_into(&mut self, buffer: &mut Vec<u8>) -> io::Result<bool>;
}

/// Reads pieces, one after another, as one stream of bytes.
pub(super) fn joined(pieces: impl Pieces + Send + 'static) -> Reader {
    buffered(Joined { pieces, piece: io::Cursor::default() })
}

struct Joined<P> {
    pieces: P,
    piece: io::Cursor<Vec<u8>>,
}

impl<P: Pieces> Read for Joined<P> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.piece.read(to)?;
            if read > 0 || to.is_empty() {
                return Ok(read);
            }
            self.piece.set_position(0);
            let buffer = self.piece.get_mut();
            buffer.clear();
            if !self.pieces.next_into(buffer)? {
                return Ok(0);
            }
        }
    }
}

/// Counts the bytes that come from the disk, compressed or not, over all sources.
#[derive(Debug, Clone, Default)]
pub(super) struct Meter(Arc<AtomicU64>);

impl Meter {
    pub(super) fn bytes(&self) -> u64 {
        self.0.load(Relaxed)
    }

    pub(super) fn add(&self, bytes: u64) {
        self.0.fetch_add(bytes, Relaxed);
    }
}

struct Counted {
    file: File,
    meter: Meter,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.meter.add(read as u64);
        Ok(read)
    }
}

/// Opens a regular file, decompressed according to its extension.
pub(super) fn counted(path: &Path, meter: &Meter) -> Result<Reader> {
    let file = File::open(path).map_err(|e| Failure::io(path, e))?;
    decompressed(path, Counted { file, meter: meter.clone() })
}

/// Opens a regular file as it is.
pub(super) fn as_it_is(path: &Path, meter: &Meter) -> Result<Reader> {
    let file = File::open(path).map_err(|e| Failure::io(path, e))?;
    Ok(buffered(Counted { file, meter: meter.clone() }))
}

/// Wraps a reader with the decompressor that the extension asks for.
pub(super) fn decompressed(path: &Path, reader: impl Read + Send + 'static) -> Result<Reader> {
    let plain = match compression(path) {
        None => return Ok(buffered(reader)),
        Some(_) => BufReader::with_capacity(BUFFER, reader),
    };
    if compression(path) == Some(GZIP) {
        // Several members after one another are one file, as gzip itself has it.
        return Ok(buffered(MultiGzDecoder::new(plain)));
    }
    let decoder = zstd::Decoder::with_buffer(plain).and_then(|mut decoder| {
        decoder.window_log_max(WINDOW_LOG)?;
        Ok(decoder)
    });
    decoder.map(|decoder| buffered(Windowed(decoder))).map_err(|e| Failure::io(path, e))
}

/// Tells what to do about a frame whose window is too large.
struct Windowed<R>(R);

impl<R: Read> Read for Windowed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|error| {
            if !error.to_string().contains("too much memory") {
                return error;
            }
            let told = "needs a window above 128 MiB; 'zstd -dc --long=31 FILE' writes it into a \
                        pipe, and - reads that";
            io::Error::new(error.kind(), told)
        })
    }
}

fn compression(path: &Path) -> Option<&'static str> {
    let extension = path.extension().and_then(OsStr::to_str)?;
    [GZIP, "zst"].into_iter().find(|known| extension.eq_ignore_ascii_case(known))
}

/// Drops the extension of the compression.
pub(super) fn without_compression(path: &Path) -> PathBuf {
    if compression(path).is_some() { path.with_extension("") } else { path.to_path_buf() }
}

/// Tells by its extension whether a file is HTML.
pub(crate) fn is_html(name: &str) -> bool {
    let plain = without_compression(Path::new(name));
    let extension = plain.extension().and_then(OsStr::to_str).unwrap_or_default();
    ["html", "htm", "xhtml"].iter().any(|known| extension.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_is_told_by_extension() {
        for name in ["a.html", "b/c.HTM", "d.xhtml.gz"] {
            assert!(is_html(name), "{name}");
        }
        for name in ["html", "a.txt", "a.html.txt", ""] {
            assert!(!is_html(name), "{name}");
        }
    }
}
