//! Segments: files with the documents that a shard kept, either complete or absent.
//!
//! A segment has its records, each with a checksum; the end offset of each record, 8 bytes
//! big-endian; the foot; the length of the foot, 4 bytes; and a mark. A file without the mark is
//! truncated.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bincode::{Decode, Encode};

use crate::error::{Error, Result};
use crate::store::codec;
pub(super) use crate::store::{DONE, PENDING};

/// Last bytes of every segment; the digit is the version of the layout.
const MARK: &[u8; 8] = b"hamdexS1";
/// Key that the checksum of the foot covers.
const KEY: &[u8] = b"dedup segment";
/// Name of segments in errors.
pub(super) const FAMILY: &str = "dedup state";

/// Extension of segments that are being written.
pub(super) const WRITTEN: &str = "part";

/// A kept document.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(super) struct Record {
    /// Big-endian bytes.
    pub(super) fingerprint: Vec<u8>,
    pub(super) label: String,
    pub(super) place: String,
    /// What the verification compares.
    pub(super) evidence: Vec<u8>,
}

/// Metadata of a segment, stored at its end.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(super) struct Foot {
    /// Number of the first document.
    pub(super) first: u64,
    pub(super) count: u64,
    pub(super) input: String,
    pub(super) content: String,
    /// Absolute paths, as bytes: where the results were written, and their final path.
    pub(super) results: Option<(Vec<u8>, Vec<u8>)>,
}

/// A segment that is being written.
pub(super) struct Writer {
    file: BufWriter<File>,
    path: PathBuf,
    first: u64,
    ends: Vec<u64>,
    buffer: Vec<u8>,
}

impl Writer {
    /// Creates the file, replacing a truncated one.
    pub(super) fn create(path: PathBuf, first: u64) -> Result<Self> {
        let file = File::create(&path).map_err(|e| Error::io(&path, e))?;
        let file = BufWriter::with_capacity(1 << 18, file);
        Ok(Self { file, path, first, ends: Vec::new(), buffer: Vec::new() })
    }

    pub(super) fn push(&mut self, record: &Record) -> Result<()> {
        let number = self.first + self.ends.len() as u64;
        codec::encode_into(&mut self.buffer, &number.to_be_bytes(), record);
        self.file.write_all(&self.buffer).map_err(|e| Error::io(&self.path, e))?;
        let before = self.ends.last().copied().unwrap_or(0);
        self.ends.push(before + self.buffer.len() as u64);
        Ok(())
    }

    /// Writes offsets, foot and mark, and syncs the file.
    pub(super) fn finish(mut self, foot: &Foot) -> Result<()> {
        let written = self.write_end(foot);
        written.map_err(|e| Error::io(&self.path, e))
    }

    fn write_end(&mut self, foot: &Foot) -> std::io::Result<()> {
        for end in &self.ends {
            self.file.write_all(&end.to_be_bytes())?;
        }
        let foot = codec::encode(KEY, foot);
        let len = u32::try_from(foot.len()).map_err(std::io::Error::other)?;
        self.file.write_all(&foot)?;
        self.file.write_all(&len.to_be_bytes())?;
        self.file.write_all(MARK)?;
        self.file.flush()?;
        self.file.get_ref().sync_all()
    }
}

/// A complete segment.
pub(super) struct Segment {
    file: File,
    path: PathBuf,
    pub(super) foot: Foot,
    /// Offset of the end of the records, where the table of end offsets starts.
    table: u64,
}

impl Segment {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let fail = |e| Error::io(path, e);
        let file = File::open(path).map_err(fail)?;
        let bytes = file.metadata().map_err(fail)?.len();
        let damaged = || Error::corrupt(FAMILY, format!("{} is truncated", path.display()));
        let tail = bytes.checked_sub(12).ok_or_else(damaged)?;
        let mut end = [0; 12];
        file.read_exact_at(&mut end, tail).map_err(fail)?;
        let [a, b, c, d, mark @ ..] = end;
        if mark != *MARK {
            return Err(damaged());
        }
        let len = u64::from(u32::from_be_bytes([a, b, c, d]));
        let start = tail.checked_sub(len).ok_or_else(damaged)?;
        let mut foot = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
        file.read_exact_at(&mut foot, start).map_err(fail)?;
        let foot: Foot = codec::decode(FAMILY, KEY, &foot)?;
        let ends = foot.count.checked_mul(8).and_then(|bytes| start.checked_sub(bytes));
        let table = ends.ok_or_else(damaged)?;
        Ok(Self { file, path: path.to_owned(), foot, table })
    }

    /// Reads the document with a number.
    pub(super) fn record(&self, number: u64) -> Result<Record> {
        let damaged = || {
            let path = self.path.display();
            Error::corrupt(FAMILY, format!("{path}: document {number} is not in this file"))
        };
        let at = number.checked_sub(self.foot.first).filter(|&at| at < self.foot.count);
        let at = at.ok_or_else(damaged)?;
        let start = match at.checked_sub(1) {
            None => 0,
            Some(before) => self.end(before)?,
        };
        let end = self.end(at)?;
        if start > end || end > self.table {
            return Err(damaged());
        }
        let len = usize::try_from(end - start).map_err(|_| damaged())?;
        let mut bytes = vec![0; len];
        self.read(&mut bytes, start)?;
        codec::decode(FAMILY, &number.to_be_bytes(), &bytes)
    }

    /// Reads the end offset of the record at a position.
    fn end(&self, at: u64) -> Result<u64> {
        let mut end = [0; 8];
        self.read(&mut end, self.table + at * 8)?;
        Ok(u64::from_be_bytes(end))
    }

    fn read(&self, bytes: &mut [u8], offset: u64) -> Result<()> {
        self.file.read_exact_at(bytes, offset).map_err(|e| Error::io(&self.path, e))
    }
}

/// Returns the numbers and extensions of the segments in a directory.
pub(super) fn numbers(directory: &Path) -> Result<Vec<(u64, &'static str)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(|e| Error::io(directory, e))? {
        let name = entry.map_err(|e| Error::io(directory, e))?.file_name();
        let Some((number, extension)) = name.to_str().and_then(|name| name.split_once('.')) else {
            continue;
        };
        let extension = [WRITTEN, PENDING, DONE].into_iter().find(|known| *known == extension);
        if let (Ok(number), Some(extension)) = (number.parse(), extension) {
            found.push((number, extension));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(name: &str) -> Record {
        Record {
            fingerprint: vec![7; 8],
            label: format!("\"{name}\""),
            place: format!("{name}:1"),
            evidence: name.repeat(100).into_bytes(),
        }
    }

    fn written(path: &Path) -> Foot {
        let foot = Foot {
            first: 5,
            count: 3,
            input: "a.jsonl".to_owned(),
            content: "1".to_owned(),
            results: Some((b"/x/.part".to_vec(), b"/x/a.jsonl".to_vec())),
        };
        let mut writer = Writer::create(path.to_owned(), 5).unwrap();
        for name in ["a", "", "ccc"] {
            writer.push(&record(name)).unwrap();
        }
        writer.finish(&foot).unwrap();
        foot
    }

    #[test]
    fn records_are_found_by_their_numbers() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("1");
        let foot = written(&path);
        let segment = Segment::open(&path).unwrap();
        assert_eq!(segment.foot, foot);
        for (number, name) in [(7, "ccc"), (5, "a"), (6, "")] {
            assert_eq!(segment.record(number).unwrap(), record(name));
        }
        assert!(matches!(segment.record(8), Err(Error::Corrupt { .. })));
        assert!(matches!(segment.record(4), Err(Error::Corrupt { .. })));
    }

    #[test]
    fn every_cut_and_every_changed_byte_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("1");
        written(&path);
        let whole = std::fs::read(&path).unwrap();
        let all = |bytes: &[u8]| -> Result<Vec<Record>> {
            std::fs::write(&path, bytes).unwrap();
            let segment = Segment::open(&path)?;
            (5..8).map(|number| segment.record(number)).collect()
        };
        all(&whole).unwrap();
        for len in 0..whole.len() {
            let error = all(&whole[..len]).unwrap_err();
            assert!(matches!(error, Error::Corrupt { .. }), "{len}: {error}");
        }
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0x10;
            let error = all(&changed).unwrap_err();
            assert!(matches!(error, Error::Corrupt { .. }), "{at}: {error}");
        }
    }
}
