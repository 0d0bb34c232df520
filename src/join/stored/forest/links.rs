//! Links: pairs of a join, sorted outside memory, without most of those that others make redundant.

use std::path::Path;

use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::join::clusters::Directory;
use crate::join::{Pair, UnionFind};
use crate::sort::{RecordSorter, Sorted};

/// Least and most bytes that sort pairs.
const MEMORY: (usize, usize) = (1 << 20, 1 << 30);

/// Where pairs are sorted, and within which memory.
#[derive(Clone, Copy)]
pub(super) struct Sorting<'a> {
    directory: &'a Path,
    memory: usize,
}

impl<'a> Sorting<'a> {
    /// Takes a quarter of the memory of a spanning forest.
    pub(super) fn new(directory: &'a Path, memory: usize) -> Self {
        Self { directory, memory: (memory / 4).clamp(MEMORY.0, MEMORY.1) }
    }

    pub(super) fn memory(self) -> usize {
        self.memory
    }

    pub(super) fn sorter(self, name: &str) -> RecordSorter {
        RecordSorter::new(self.directory, self.memory / 2, name)
    }
}

/// Collects pairs in blocks, and sorts them by the smaller fingerprint.
pub(super) struct Links<F> {
    block: Vec<[F; 2]>,
    /// Most pairs of a block.
    limit: usize,
    sorter: RecordSorter,
    documents: u64,
}

impl<F: Fingerprint> Links<F> {
    pub(super) fn new(sorting: Sorting<'_>, documents: u64) -> Self {
        // A block, its fingerprints in order, their directory and sets take less than half.
        let limit = sorting.memory / 16 / F::BYTES;
        Self { block: Vec::new(), limit, sorter: sorting.sorter("pairs"), documents }
    }

    pub(super) fn add(&mut self, pairs: &[Pair<F>]) -> Result<()> {
        self.block.extend(pairs.iter().map(|pair| [pair.a, pair.b]));
        if self.block.len() >= self.limit { self.spill() } else { Ok(()) }
    }

    /// Passes a full block on, or reduces it where the pairs have become more than the documents.
    fn spill(&mut self) -> Result<()> {
        if self.sorter.len() + self.block.len() as u64 > self.documents {
            reduce(&mut self.block);
            // What is left may connect with the pairs to come.
            if self.block.len() < self.limit / 2 {
                return Ok(());
            }
        }
        self.pass()
    }

    fn pass(&mut self) -> Result<()> {
        for [a, b] in self.block.drain(..) {
            self.sorter.push(a.to_bytes().as_ref(), b.to_bytes().as_ref())?;
        }
        Ok(())
    }

    /// Returns pairs that connect the same fingerprints as all.
    pub(super) fn finish(mut self) -> Result<Sorted> {
        self.pass()?;
        self.block = Vec::new();
        self.sorter.finish()
    }
}

/// Removes the pairs that the pairs before them connect already.
///
/// Sorts on this thread: the caller holds a lock for which other tasks of the pool wait.
fn reduce<F: Fingerprint>(pairs: &mut Vec<[F; 2]>) {
    let mut members: Vec<F> = pairs.as_flattened().to_vec();
    members.sort_unstable();
    members.dedup();
    let directory = Directory::new(&members);
    let count = u32::try_from(members.len()).expect("a block has fewer fingerprints");
    let mut sets = UnionFind::new(count);
    pairs.retain(|&[a, b]| sets.union(directory.place(a), directory.place(b)));
}
