//! Spill files: checksummed temporary files of blocks.
//!
//! A block is returned only if its checksum matches, and a file is opened only if its trailer
//! matches its length. So damage is reported before any of it is used as data.
//!
//! ```text
//! file    = block* trailer
//! block   = length u32 | crc32 of the bytes u32 | bytes            (length > 0)
//! trailer = magic u32 | crc32 of the rest u32 | records u64 | length of the file u64
//! ```
//!
//! All numbers are big-endian.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::store::sync_directory;

const MAGIC: u32 = 0x6878_7370;
const BLOCK_HEADER: u64 = 8;
const TRAILER: u64 = 24;

/// Smallest and largest block that [`block_bytes`] chooses.
const BLOCK_RANGE: (usize, usize) = (4 << 10, 256 << 10);

/// Chooses a block size so that 64 blocks take half of a memory budget.
pub(crate) fn block_bytes(budget: usize) -> usize {
    (budget / 128).clamp(BLOCK_RANGE.0, BLOCK_RANGE.1)
}

/// A finished spill file, as a checkpoint records it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SpillFile {
    /// Path of the file.
    pub(crate) path: PathBuf,
    /// Number of records, or of fingerprints.
    pub(crate) records: u64,
    /// Length in bytes.
    pub(crate) bytes: u64,
}

/// A spill file that is removed with its owner unless a checkpoint names it.
#[derive(Debug)]
pub(crate) struct OwnedFile {
    pub(crate) file: SpillFile,
    pub(crate) kept: bool,
}

impl OwnedFile {
    /// Takes over a file that a checkpoint names.
    pub(crate) fn kept(file: SpillFile) -> Self {
        Self { file, kept: true }
    }
}

impl Drop for OwnedFile {
    fn drop(&mut self) {
        if !self.kept {
            // Ignore errors: the owner of the directory removes the remaining files.
            let _ = fs::remove_file(&self.file.path);
        }
    }
}

/// Writes blocks to a new spill file, which is removed unless it is finished.
#[derive(Debug)]
pub(crate) struct SpillWriter {
    handle: File,
    owned: OwnedFile,
}

impl SpillWriter {
    /// Creates the file, replacing one of the same name.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if that fails.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let handle = File::create(path).map_err(|e| Error::io(path, e))?;
        let file = SpillFile { path: path.to_path_buf(), records: 0, bytes: 0 };
        Ok(Self { handle, owned: OwnedFile { file, kept: false } })
    }

    /// Appends a block; skips an empty one.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if writing fails; [`Error::InvalidOption`] above 4 GiB.
    pub(crate) fn write_block(&mut self, block: &[u8]) -> Result<()> {
        if block.is_empty() {
            return Ok(());
        }
        let length = u32::try_from(block.len()).map_err(|_| Error::InvalidOption {
            name: "record",
            reason: format!("{} bytes exceed the limit of 4 GiB", block.len()),
        })?;
        let header = (u64::from(length) << 32) | u64::from(crc32fast::hash(block));
        self.write(&header.to_be_bytes())?;
        self.write(block)
    }

    /// Writes the trailer with the number of records; with `durable`, also syncs the file.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if writing fails.
    pub(crate) fn finish(mut self, records: u64, durable: bool) -> Result<OwnedFile> {
        self.owned.file.records = records;
        self.write(&encode_trailer(records, self.owned.file.bytes + TRAILER))?;
        if durable {
            let path = &self.owned.file.path;
            self.handle.sync_data().map_err(|e| Error::io(path, e))?;
            sync_parent(path)?;
        }
        Ok(self.owned)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.handle.write_all(bytes).map_err(|e| Error::io(&self.owned.file.path, e))?;
        self.owned.file.bytes += bytes.len() as u64;
        Ok(())
    }
}

/// Syncs the directory of a new file.
fn sync_parent(path: &Path) -> Result<()> {
    match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => sync_directory(parent),
        None => Ok(()),
    }
}

fn encode_trailer(records: u64, length: u64) -> [u8; 24] {
    let mut trailer = [0; 24];
    let (head, body) = trailer.split_at_mut(8);
    let (first, second) = body.split_at_mut(8);
    first.copy_from_slice(&records.to_be_bytes());
    second.copy_from_slice(&length.to_be_bytes());
    let head_value = (u64::from(MAGIC) << 32) | u64::from(crc32fast::hash(body));
    head.copy_from_slice(&head_value.to_be_bytes());
    trailer
}

/// Reads the blocks of a spill file in order and verifies each.
#[derive(Debug)]
pub(crate) struct SpillReader {
    handle: File,
    path: PathBuf,
    /// Bytes of blocks not yet read.
    remaining: u64,
    records: u64,
}

impl SpillReader {
    /// Opens a file and compares its trailer with its length.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if reading fails; [`Error::Corrupt`] if the file is truncated or foreign.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let io = |e| Error::io(path, e);
        let mut handle = File::open(path).map_err(io)?;
        let length = handle.metadata().map_err(io)?.len();
        let Some(remaining) = length.checked_sub(TRAILER) else {
            return Err(damage(path, format!("{length} bytes are shorter than a trailer")));
        };
        handle.seek(SeekFrom::Start(remaining)).map_err(io)?;
        let mut trailer = [0; 24];
        handle.read_exact(&mut trailer).map_err(io)?;
        handle.rewind().map_err(io)?;
        let records = trailer[8..].first_chunk().expect("the trailer has 24 bytes");
        let records = u64::from_be_bytes(*records);
        if trailer != encode_trailer(records, length) {
            return Err(damage(path, "the trailer does not match the file".to_owned()));
        }
        Ok(Self { handle, path: path.to_path_buf(), remaining, records })
    }

    /// Opens a file of a checkpoint and verifies that it is the same file.
    ///
    /// # Errors
    ///
    /// Those of [`SpillReader::open`]; [`Error::Corrupt`] if records or length differ.
    pub(crate) fn open_named(file: &SpillFile) -> Result<Self> {
        let reader = Self::open(&file.path)?;
        let bytes = reader.remaining + TRAILER;
        if reader.records == file.records && bytes == file.bytes {
            return Ok(reader);
        }
        Err(damage(
            &file.path,
            format!(
                "{} records in {bytes} bytes, expected {} in {}",
                reader.records, file.records, file.bytes
            ),
        ))
    }

    /// Replaces `block` with the next one; returns false after the last.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if reading fails; [`Error::Corrupt`] if the checksum does not match.
    pub(crate) fn next_block(&mut self, block: &mut Vec<u8>) -> Result<bool> {
        block.clear();
        if self.remaining == 0 {
            return Ok(false);
        }
        let mut header = [0; 8];
        let Some(rest) = self.remaining.checked_sub(BLOCK_HEADER) else {
            return Err(self.corrupt("a block header is truncated"));
        };
        self.read(&mut header)?;
        let header = u64::from_be_bytes(header);
        let length = header >> 32;
        // A damaged length must not cause an allocation larger than the file.
        let Some(remaining) = rest.checked_sub(length).filter(|_| length > 0) else {
            return Err(self.corrupt("a block is longer than the file"));
        };
        let length = usize::try_from(length).map_err(|_| self.corrupt("a block is too long"))?;
        block.resize(length, 0);
        self.read(block)?;
        if u64::from(crc32fast::hash(block)) != header & u64::from(u32::MAX) {
            block.clear();
            return Err(self.corrupt("the checksum of a block does not match"));
        }
        self.remaining = remaining;
        Ok(true)
    }

    /// Returns true if all blocks were read.
    pub(crate) fn is_at_end(&self) -> bool {
        self.remaining == 0
    }

    /// Returns the number of records according to the trailer.
    pub(crate) fn records(&self) -> u64 {
        self.records
    }

    /// Creates an error for damage in this file.
    pub(crate) fn corrupt(&self, detail: &str) -> Error {
        damage(&self.path, detail.to_owned())
    }

    fn read(&mut self, into: &mut [u8]) -> Result<()> {
        self.handle.read_exact(into).map_err(|e| Error::io(&self.path, e))
    }
}

fn damage(path: &Path, detail: String) -> Error {
    Error::corrupt(path.display().to_string(), detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(dir: &Path) -> SpillFile {
        let mut writer = SpillWriter::create(&dir.join("a.run")).unwrap();
        for block in [b"first".as_slice(), b"", b"second block"] {
            writer.write_block(block).unwrap();
        }
        let mut owned = writer.finish(2, true).unwrap();
        owned.kept = true;
        owned.file.clone()
    }

    fn read(file: &SpillFile) -> Result<Vec<u8>> {
        let mut reader = SpillReader::open_named(file)?;
        let (mut all, mut block) = (Vec::new(), Vec::new());
        while reader.next_block(&mut block)? {
            all.extend_from_slice(&block);
        }
        Ok(all)
    }

    #[test]
    fn blocks_read_back_in_order_and_have_the_documented_layout() {
        let dir = tempfile::tempdir().unwrap();
        let file = written(dir.path());
        assert_eq!(read(&file).unwrap(), b"firstsecond block");
        let bytes = fs::read(&file.path).unwrap();
        assert_eq!(bytes.len() as u64, file.bytes);
        assert_eq!(bytes[..4], [0, 0, 0, 5]);
        assert_eq!(bytes[8..13], *b"first");
        assert_eq!(bytes[33..37], *b"hxsp");
        assert_eq!(bytes[41..49], 2_u64.to_be_bytes());
    }

    #[test]
    fn every_flipped_bit_and_every_truncation_is_damage() {
        let dir = tempfile::tempdir().unwrap();
        let file = written(dir.path());
        let good = fs::read(&file.path).unwrap();
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            fs::write(&file.path, bad).unwrap();
            assert!(matches!(read(&file), Err(Error::Corrupt { .. })), "bit {bit}");
        }
        for length in 0..good.len() {
            fs::write(&file.path, &good[..length]).unwrap();
            assert!(matches!(read(&file), Err(Error::Corrupt { .. })), "cut to {length}");
        }
    }

    #[test]
    fn a_file_that_differs_from_the_named_one_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = written(dir.path());
        let other = SpillFile { records: 3, ..file.clone() };
        assert!(matches!(read(&other), Err(Error::Corrupt { .. })));
        let missing = SpillFile { path: dir.path().join("b.run"), ..file };
        assert!(matches!(read(&missing), Err(Error::Io { path, .. }) if path == missing.path));
    }

    #[test]
    fn an_unfinished_file_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.run");
        drop(SpillWriter::create(&path).unwrap());
        assert!(!path.exists());
    }
}
