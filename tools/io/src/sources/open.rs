//! Opening files: compressed or plain, they become one stream of bytes that counts progress.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::MultiGzDecoder;
use liblzma::bufread::XzDecoder;
use liblzma::stream::{CONCATENATED, Stream};
use lz4_flex::frame::FrameDecoder;

use crate::face::failure::{Failure, Result};

/// Bytes read from the system at once.
pub(crate) const BUFFER: usize = 1 << 18;

/// Largest window of a Zstandard frame, 128 MiB: the default limit of zstd.
///
/// A frame of nine bytes may request 2 GiB. A user that trusts a file can allow it.
pub(crate) const WINDOW_LOG: u32 = 27;

/// Largest memory of an xz stream in bytes, as of a dictionary of 128 MiB.
const XZ_MEMORY: u64 = 160 << 20;

/// A stream of bytes that reports whether the next read may block.
pub(crate) type Reader = BufReader<Box<dyn Read + Send>>;

pub(crate) fn buffered(reader: impl Read + Send + 'static) -> Reader {
    BufReader::with_capacity(BUFFER, Box::new(reader))
}

/// Something that is made piece by piece.
pub(crate) trait Pieces {
    /// Appends the next piece to an empty buffer; false at the end.
    fn next_into(&mut self, buffer: &mut Vec<u8>) -> io::Result<bool>;
}

/// Reads pieces, one after another, as one stream of bytes.
pub(crate) fn joined(pieces: impl Pieces + Send + 'static) -> Reader {
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

/// Counts the bytes read from the disk, compressed or not, over all sources.
#[derive(Debug, Clone, Default)]
pub(crate) struct Meter(Arc<AtomicU64>);

impl Meter {
    pub(crate) fn bytes(&self) -> u64 {
        self.0.load(Relaxed)
    }

    pub(crate) fn add(&self, bytes: u64) {
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

/// Opens a regular file, decompressed.
pub(crate) fn counted(
    path: &Path,
    compression: Option<Compression>,
    meter: &Meter,
) -> Result<Reader> {
    let file = File::open(path).map_err(|e| Failure::io(path, e))?;
    decompressed(path, compression, Counted { file, meter: meter.clone() })
}

/// Opens a regular file as it is.
pub(crate) fn as_it_is(path: &Path, meter: &Meter) -> io::Result<Reader> {
    let file = File::open(path)?;
    Ok(buffered(Counted { file, meter: meter.clone() }))
}

/// Wraps a reader with a decompressor.
pub(crate) fn decompressed(
    path: &Path,
    compression: Option<Compression>,
    reader: impl Read + Send + 'static,
) -> Result<Reader> {
    let Some(compression) = compression else { return Ok(buffered(reader)) };
    let packed = BufReader::with_capacity(BUFFER, reader);
    Ok(match compression {
        // Several members in sequence are one file, by the formats of gzip and bzip2.
        Compression::Gzip => buffered(MultiGzDecoder::new(packed)),
        Compression::Bzip2 => buffered(MultiBzDecoder::new(packed)),
        Compression::Xz => {
            let stream = Stream::new_stream_decoder(XZ_MEMORY, CONCATENATED)
                .map_err(|e| Failure::io(path, e.into()))?;
            buffered(XzDecoder::new_stream(packed, stream))
        }
        Compression::Lz4 => buffered(Lz4 { decoder: FrameDecoder::new(packed) }),
        Compression::Zstd => {
            let decoder = zstd::Decoder::with_buffer(packed).and_then(|mut decoder| {
                decoder.window_log_max(WINDOW_LOG)?;
                Ok(decoder)
            });
            decoder.map(|decoder| buffered(Windowed(decoder))).map_err(|e| Failure::io(path, e))?
        }
    })
}

/// Reads the frames of LZ4 one after another, as one file.
struct Lz4<R: Read> {
    decoder: FrameDecoder<R>,
}

impl<R: Read> Read for Lz4<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if to.is_empty() {
            return Ok(0);
        }
        // The end of a frame reads as zero bytes, and so does the end of the file.
        match self.decoder.read(to)? {
            0 => self.decoder.read(to),
            read => Ok(read),
        }
    }
}

/// Returns what to do about a frame whose window is too large.
struct Windowed<R>(R);

impl<R: Read> Read for Windowed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|error| {
            if !error.to_string().contains("too much memory") {
                return error;
            }
            let told = "needs a window above 128 MiB; decompress it with 'zstd -dc --long=31 \
                        FILE' and read the pipe with -";
            io::Error::new(error.kind(), told)
        })
    }
}

/// How a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    Gzip,
    Zstd,
    Bzip2,
    Xz,
    Lz4,
}

impl Compression {
    /// Every way with its extension and the bytes that such a file begins with.
    const ALL: [(Self, &str, &[u8]); 5] = [
        (Self::Gzip, "gz", &[0x1f, 0x8b]),
        (Self::Zstd, "zst", &[0x28, 0xb5, 0x2f, 0xfd]),
        (Self::Bzip2, "bz2", b"BZh"),
        (Self::Xz, "xz", &[0xfd, b'7', b'z', b'X', b'Z', 0]),
        (Self::Lz4, "lz4", &[0x04, 0x22, 0x4d, 0x18]),
    ];

    /// Returns the compression that the extension names.
    pub fn of_name(path: &Path) -> Option<Self> {
        let extension = path.extension().and_then(OsStr::to_str)?;
        let known = Self::ALL.iter().find(|(_, name, _)| extension.eq_ignore_ascii_case(name));
        known.map(|&(compression, ..)| compression)
    }

    /// Returns the compression that the first bytes of a file have.
    pub(crate) fn of_bytes(head: &[u8]) -> Option<Self> {
        let known = Self::ALL.iter().find(|(.., magic)| head.starts_with(magic));
        known.map(|&(compression, ..)| compression)
    }
}

/// Drops the extension of the compression.
pub fn without_compression(path: &Path) -> PathBuf {
    if Compression::of_name(path).is_some() { path.with_extension("") } else { path.to_path_buf() }
}

/// Returns true if the extension is one of HTML.
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
