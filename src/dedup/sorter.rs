//! External sorting of short records of one length, and the unnamed files that hold them.
//!
//! Sorted runs go to one file without a name, so a kill leaves nothing behind. The sorters of bulk
//! builds have named files, because a build is resumed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use crate::error::{Error, Result};

/// Fewest records that are sorted together.
const LEAST: usize = 1 << 12;

/// Bytes between the file and its reader or writer.
const BUFFER: usize = 1 << 18;

/// Sorts records in bounded memory.
#[derive(Debug)]
pub(super) struct Sorter<const N: usize> {
    records: Vec<[u8; N]>,
    /// Records that memory may hold.
    most: usize,
    file: Spool,
    /// Where each run ends in the file.
    ends: Vec<u64>,
}

impl<const N: usize> Sorter<N> {
    /// Creates an empty sorter with an unnamed file for what exceeds `memory` bytes.
    pub(super) fn new(directory: Option<&Path>, memory: usize) -> Result<Self> {
        let file = Spool::new(directory)?;
        Ok(Self { records: Vec::new(), most: (memory / N).max(LEAST), file, ends: Vec::new() })
    }

    pub(super) fn push(&mut self, record: [u8; N]) -> Result<()> {
        let len = self.records.len();
        if len == self.most {
            self.spill()?;
        } else if len == self.records.capacity() {
            // Doubling beyond the limit would reserve unused memory.
            self.records.reserve_exact(len.max(LEAST).min(self.most - len));
        }
        self.records.push(record);
        Ok(())
    }

    fn spill(&mut self) -> Result<()> {
        self.records.par_sort_unstable();
        for block in self.records.chunks(LEAST) {
            self.file.write(block.as_flattened())?;
        }
        self.ends.push(self.file.len);
        self.records.clear();
        Ok(())
    }

    /// Sorts the rest and returns all records, ascending.
    pub(super) fn finish(mut self) -> Result<Sorted<N>> {
        if !self.ends.is_empty() {
            self.spill()?;
            self.records = Vec::new();
        }
        self.records.par_sort_unstable();
        let block = (self.most / self.ends.len().max(1)).clamp(1, LEAST);
        let mut runs = vec![Run { records: self.records, at: 0, next: 0, end: 0 }];
        let mut next = 0;
        for end in self.ends {
            runs.push(Run { records: Vec::new(), at: 0, next, end });
            next = end;
        }
        let mut sorted =
            Sorted { file: self.file.finish()?, block, runs, heads: BinaryHeap::new() };
        for (number, run) in sorted.runs.iter_mut().enumerate() {
            let head = run.next(&sorted.file, block)?;
            sorted.heads.extend(head.map(|record| Reverse((record, number))));
        }
        Ok(sorted)
    }
}

/// Records in ascending order.
#[derive(Debug)]
pub(super) struct Sorted<const N: usize> {
    file: Written,
    /// Records of a run that are read together.
    block: usize,
    runs: Vec<Run<N>>,
    /// The next record of each run, and the number of the run.
    heads: BinaryHeap<Reverse<([u8; N], usize)>>,
}

/// A part of the file, or of memory, in ascending order.
#[derive(Debug)]
struct Run<const N: usize> {
    records: Vec<[u8; N]>,
    at: usize,
    /// Where the records begin that are not read yet.
    next: u64,
    end: u64,
}

impl<const N: usize> Run<N> {
    fn next(&mut self, file: &Written, block: usize) -> Result<Option<[u8; N]>> {
        if self.at == self.records.len() && self.next < self.end {
            let left = (self.end - self.next) / N as u64;
            let count = usize::try_from(left).unwrap_or(usize::MAX).min(block);
            self.records.resize(count, [0; N]);
            file.read(self.next, self.records.as_flattened_mut())?;
            (self.at, self.next) = (0, self.next + (count * N) as u64);
        }
        let record = self.records.get(self.at).copied();
        self.at += usize::from(record.is_some());
        Ok(record)
    }
}

impl<const N: usize> Iterator for Sorted<N> {
    type Item = Result<[u8; N]>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut head = self.heads.peek_mut()?;
        let Reverse((record, number)) = *head;
        match self.runs.get_mut(number)?.next(&self.file, self.block) {
            Ok(Some(next)) => *head = Reverse((next, number)),
            Ok(None) => drop(PeekMut::pop(head)),
            Err(error) => return Some(Err(error)),
        }
        Some(Ok(record))
    }
}

/// An unnamed file being written.
#[derive(Debug)]
pub(super) struct Spool {
    file: BufWriter<File>,
    /// Names the file in errors.
    name: PathBuf,
    len: u64,
}

impl Spool {
    pub(super) fn new(directory: Option<&Path>) -> Result<Self> {
        let directory = directory.map_or_else(std::env::temp_dir, Path::to_path_buf);
        let file = tempfile::tempfile_in(&directory).map_err(|e| Error::io(&directory, e))?;
        let name = format!("temporary file in {}", directory.display()).into();
        Ok(Self { file: BufWriter::with_capacity(BUFFER, file), name, len: 0 })
    }

    /// Appends bytes and returns their offset.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<u64> {
        self.file.write_all(bytes).map_err(|e| Error::io(&self.name, e))?;
        let offset = self.len;
        self.len += bytes.len() as u64;
        Ok(offset)
    }

    pub(super) fn finish(self) -> Result<Written> {
        let Self { file, name, .. } = self;
        let file = file.into_inner().map_err(|e| Error::io(&name, e.into_error()))?;
        Ok(Written { file, name })
    }
}

/// The file once it is complete.
#[derive(Debug)]
pub(super) struct Written {
    file: File,
    name: PathBuf,
}

impl Written {
    /// Reads bytes at an offset, from any thread.
    pub(super) fn read(&self, offset: u64, to: &mut [u8]) -> Result<()> {
        self.file.read_exact_at(to, offset).map_err(|e| Error::io(&self.name, e))
    }

    /// Reads from the beginning; one reader at a time.
    pub(super) fn rewound(&self) -> Result<Reader<'_>> {
        (&self.file).rewind().map_err(|e| Error::io(&self.name, e))?;
        Ok(Reader { file: BufReader::with_capacity(BUFFER, &self.file), name: &self.name })
    }
}

/// Reads the file from its beginning to its end.
pub(super) struct Reader<'a> {
    file: BufReader<&'a File>,
    name: &'a Path,
}

impl Reader<'_> {
    /// Reads the next bytes.
    pub(super) fn next<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.file.read_exact(&mut bytes).map_err(|e| Error::io(self.name, e))?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_sorted_alike_in_memory_and_in_a_file() {
        let seed = 8;
        let mut rng = fastrand::Rng::with_seed(seed);
        for count in [0, 1, LEAST, LEAST + 1, 10 * LEAST + 7] {
            let records: Vec<[u8; 8]> =
                (0..count).map(|_| rng.u64(..count as u64).to_be_bytes()).collect();
            for memory in [0, 3 * LEAST * 8, usize::MAX] {
                let mut sorter = Sorter::new(None, memory).unwrap();
                records.iter().try_for_each(|record| sorter.push(*record)).unwrap();
                assert!(sorter.records.capacity() <= sorter.most, "seed {seed}: {count}");
                let sorted: Vec<[u8; 8]> = sorter.finish().unwrap().map(Result::unwrap).collect();
                let mut expected = records.clone();
                expected.sort_unstable();
                assert!(sorted == expected, "seed {seed}: {count} {memory}");
            }
        }
    }

    #[test]
    fn an_absent_directory_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let absent = directory.path().join("absent");
        let refused = Sorter::<8>::new(Some(&absent), 0).unwrap_err();
        assert!(matches!(refused, Error::Io { path, .. } if path == absent));
    }
}
