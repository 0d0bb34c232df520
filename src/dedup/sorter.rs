//! External sorting of short records of one length.
//!
//! Sorted runs go to one file without a name, so a kill leaves nothing behind. The sorters of bulk
//! builds have named files, because a build is resumed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::path::Path;

use rayon::prelude::*;

use crate::error::Result;
use crate::verify::spilled::{SpilledBytes, SpillingBytes};

/// Fewest records that are sorted together.
const LEAST: usize = 1 << 12;

/// Sorts records in bounded memory.
#[derive(Debug)]
pub(super) struct Sorter<const N: usize> {
    records: Vec<[u8; N]>,
    /// Records that memory may hold.
    most: usize,
    file: SpillingBytes,
    /// Where each run ends in the file.
    ends: Vec<u64>,
}

impl<const N: usize> Sorter<N> {
    /// Creates an empty sorter with an unnamed file for what exceeds `memory` bytes.
    pub(super) fn new(directory: Option<&Path>, memory: usize) -> Result<Self> {
        let file = SpillingBytes::new(directory, 0)?;
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
            self.file.push(block.as_flattened())?;
        }
        self.ends.push(self.file.len());
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
    file: SpilledBytes,
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
    fn next(&mut self, file: &SpilledBytes, block: usize) -> Result<Option<[u8; N]>> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

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
