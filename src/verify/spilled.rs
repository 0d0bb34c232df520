//! Spilled bytes: the first ones in memory, the others in an unnamed file.

use std::fs::File;
use std::io::{BufReader, BufWriter, Chain, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// Parts by which hashes are separated.
const PARTS: usize = 64;

/// Bytes of a hash and its number.
const ENTRY: usize = 20;

/// Bytes of a part that are written together.
const BLOCK: usize = 1024 * ENTRY;

/// Bytes between a file and its reader or writer.
const BUFFER: usize = 1 << 18;

/// Bytes being appended, up to a limit in memory.
#[derive(Debug)]
pub(crate) struct SpillingBytes {
    held: Vec<u8>,
    limit: usize,
    file: BufWriter<File>,
    /// Names the file in errors.
    name: PathBuf,
    len: u64,
}

impl SpillingBytes {
    /// Creates an unnamed file for what exceeds `limit`; `None` is the system's directory.
    pub(crate) fn new(directory: Option<&Path>, limit: usize) -> Result<Self> {
        let directory = directory.map_or_else(std::env::temp_dir, Path::to_path_buf);
        let file = tempfile::tempfile_in(&directory).map_err(|e| Error::io(&directory, e))?;
        let name = format!("temporary file in {}", directory.display()).into();
        let file = BufWriter::with_capacity(BUFFER, file);
        Ok(Self { held: Vec::new(), limit, file, name, len: 0 })
    }

    /// Changes how many bytes stay in memory; call it before anything is pushed.
    pub(crate) fn limit(&mut self, bytes: usize) {
        self.limit = bytes;
    }

    /// Appends bytes and returns their offset.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<u64> {
        let start = self.len;
        // Once some are in the file, all later ones go there too, so that offsets rise.
        let fits = self.held.len().saturating_add(bytes.len()) <= self.limit;
        if fits && self.held.len() as u64 == start {
            self.held.extend_from_slice(bytes);
        } else {
            self.file.write_all(bytes).map_err(|e| Error::io(&self.name, e))?;
        }
        self.len += bytes.len() as u64;
        Ok(start)
    }

    /// Returns the number of bytes.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Writes the rest and makes the bytes readable.
    pub(crate) fn finish(self) -> Result<SpilledBytes> {
        let Self { held, file, name, .. } = self;
        let file = file.into_inner().map_err(|e| Error::io(&name, e.into_error()))?;
        Ok(SpilledBytes { held, file, name })
    }
}

/// Bytes that are complete, readable in any order and from many threads.
#[derive(Debug)]
pub(crate) struct SpilledBytes {
    held: Vec<u8>,
    file: File,
    name: PathBuf,
}

impl SpilledBytes {
    /// Borrows bytes that are in memory, or reads them into the buffer.
    pub(crate) fn get<'a>(
        &'a self,
        start: u64,
        len: usize,
        buffer: &'a mut Vec<u8>,
    ) -> Result<&'a [u8]> {
        if let Some(held) = self.held(start, len) {
            return Ok(held);
        }
        buffer.clear();
        buffer.resize(len, 0);
        self.read(start, buffer)?;
        Ok(buffer)
    }

    /// Copies bytes; they must have been pushed together, or all be in the file.
    pub(crate) fn read(&self, start: u64, to: &mut [u8]) -> Result<()> {
        if let Some(held) = self.held(start, to.len()) {
            to.copy_from_slice(held);
            return Ok(());
        }
        let offset = start.saturating_sub(self.held.len() as u64);
        self.file.read_exact_at(to, offset).map_err(|e| Error::io(&self.name, e))
    }

    /// Reads all bytes in order.
    pub(crate) fn reader(&self) -> SpilledReader<'_> {
        let rest = BufReader::with_capacity(BUFFER, Rest { file: &self.file, at: 0 });
        SpilledReader { bytes: self.held.as_slice().chain(rest), name: &self.name }
    }

    /// Borrows bytes if they are in memory.
    pub(crate) fn held(&self, start: u64, len: usize) -> Option<&[u8]> {
        let start = usize::try_from(start).ok()?;
        self.held.get(start..start.checked_add(len)?)
    }
}

/// Reads spilled bytes from the first to the last.
pub(crate) struct SpilledReader<'a> {
    bytes: Chain<&'a [u8], BufReader<Rest<'a>>>,
    name: &'a Path,
}

impl SpilledReader<'_> {
    /// Reads the next bytes.
    pub(crate) fn next<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.bytes.read_exact(&mut bytes).map_err(|e| Error::io(self.name, e))?;
        Ok(bytes)
    }
}

/// A file that is read without moving its position, which readers share.
struct Rest<'a> {
    file: &'a File,
    at: u64,
}

impl Read for Rest<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read_at(to, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// Hashes with numbers, on disk, to find the first number of each hash in little memory.
#[derive(Debug)]
pub(super) struct Hashes {
    bytes: SpillingBytes,
    /// What is not written yet, by part.
    pending: Vec<Vec<u8>>,
    /// Offsets of the blocks of each part.
    blocks: Vec<Vec<u64>>,
    last: u32,
}

impl Hashes {
    pub(super) fn new(directory: Option<&Path>) -> Result<Self> {
        Ok(Self {
            bytes: SpillingBytes::new(directory, 0)?,
            pending: vec![Vec::new(); PARTS],
            blocks: vec![Vec::new(); PARTS],
            last: 0,
        })
    }

    pub(super) fn push(&mut self, hash: u128, number: u32) -> Result<()> {
        let part = usize::try_from(hash % PARTS as u128).expect("below the number of parts");
        let pending = self.pending.get_mut(part).expect("one for each part");
        let blocks = self.blocks.get_mut(part).expect("one for each part");
        pending.extend_from_slice(&hash.to_be_bytes());
        pending.extend_from_slice(&number.to_be_bytes());
        if pending.len() == BLOCK {
            blocks.push(self.bytes.push(pending)?);
            pending.clear();
        }
        self.last = self.last.max(number);
        Ok(())
    }

    /// Returns the first number of each hash, as a set.
    ///
    /// Takes 24 bytes of memory for a 64th of the hashes, and a bit per number.
    pub(super) fn firsts(self) -> Result<Bits> {
        let Self { bytes, pending, blocks, last } = self;
        let bytes = bytes.finish()?;
        let mut firsts = Bits::new(last);
        let (mut buffer, mut entries) = (Vec::new(), Vec::new());
        for (pending, blocks) in pending.iter().zip(blocks) {
            entries.clear();
            let mut add = |bytes: &[u8]| {
                let (whole, rest) = bytes.as_chunks::<ENTRY>();
                debug_assert!(rest.is_empty(), "blocks hold whole entries");
                entries.extend_from_slice(whole);
            };
            add(pending);
            for start in blocks {
                add(bytes.get(start, BLOCK, &mut buffer)?);
            }
            // Big-endian, so that the first entry of a hash has its smallest number.
            entries.sort_unstable();
            entries.dedup_by(|a, b| a.first_chunk::<16>() == b.first_chunk::<16>());
            for number in entries.iter().filter_map(|entry| entry.last_chunk()) {
                firsts.set(u32::from_be_bytes(*number));
            }
        }
        Ok(firsts)
    }
}

/// A set of numbers, one bit each.
#[derive(Debug)]
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    /// Creates an empty set of numbers up to `last`.
    pub(crate) fn new(last: u32) -> Self {
        Self(vec![0; last as usize / 64 + 1])
    }

    pub(crate) fn set(&mut self, number: u32) {
        let word = self.0.get_mut(number as usize / 64).expect("no number exceeds the last");
        *word |= 1 << (number % 64);
    }

    pub(crate) fn has(&self, number: u32) -> bool {
        self.0.get(number as usize / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// Returns the numbers of the set, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        let words = (0_u32..).step_by(64).zip(&self.0);
        words.flat_map(|(first, &word)| {
            (0..64).filter_map(move |bit| (word >> bit & 1 == 1).then_some(first + bit))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_read_back_the_same_for_any_limit() {
        for limit in [0, 1, 5, 9, usize::MAX] {
            let mut bytes = SpillingBytes::new(None, limit).unwrap();
            let pieces: [&[u8]; 5] = [b"one", b"", b"two", b"a long one", b"x"];
            let starts = pieces.map(|piece| bytes.push(piece).unwrap());
            let bytes = bytes.finish().unwrap();
            assert!(bytes.held.len() <= limit);
            for (piece, start) in pieces.iter().zip(starts) {
                let mut buffer = Vec::new();
                assert_eq!(bytes.get(start, piece.len(), &mut buffer).unwrap(), *piece, "{limit}");
            }
            let (mut one, mut other) = (bytes.reader(), bytes.reader());
            assert_eq!((one.next().unwrap(), other.next().unwrap()), (*b"onetwo", *b"onet"));
            assert_eq!(&one.next::<11>().unwrap(), b"a long onex", "{limit}");
            assert!(matches!(one.next::<1>(), Err(Error::Io { .. })), "{limit}");
        }
    }

    #[test]
    fn the_first_number_of_each_hash_is_found() {
        let mut hashes = Hashes::new(None).unwrap();
        for number in 0..200_000_u32 {
            let value = u128::from(number % 70_001);
            hashes.push((value << 64) | (value * 3), number).unwrap();
        }
        let firsts = hashes.firsts().unwrap();
        assert!(firsts.iter().eq(0..70_001));
        assert!(firsts.has(70_000) && !firsts.has(70_001) && !firsts.has(u32::MAX));
    }

    #[test]
    fn an_absent_directory_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let absent = directory.path().join("absent");
        let refused = SpillingBytes::new(Some(&absent), 0).unwrap_err();
        assert!(matches!(refused, Error::Io { path, .. } if path == absent));
    }
}
