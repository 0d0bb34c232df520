//! Guards: compare each block of a mapped array with its checksum before its first use.
//!
//! Reading a billion members only to check them would take longer than the searches of many
//! programs. A search reads few blocks, and one that it meets first costs a page fault anyway.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::array::Section;

/// Bytes with one checksum: a page.
const BLOCK: usize = 4096;

/// Blocks whose state is in one word.
const WORD: usize = u64::BITS as usize;

/// The checksums of an array, and which of its blocks match.
#[derive(Debug)]
pub(super) struct Guard {
    sums: Section<u32>,
    /// A bit for each block that was compared and matches.
    intact: Vec<AtomicU64>,
    /// One more than the number of a block that does not match, else 0.
    damaged: AtomicU64,
}

impl Guard {
    /// Guards an array by the checksums of its blocks.
    pub(super) fn new(sums: Section<u32>) -> Self {
        let words = sums.as_slice().len().div_ceil(WORD);
        let intact = (0..words).map(|_| AtomicU64::new(0)).collect();
        Self { sums, intact, damaged: AtomicU64::new(0) }
    }

    /// Returns the number of checksums of an array of `bytes` bytes.
    pub(super) fn sums_of(bytes: usize) -> usize {
        bytes.div_ceil(BLOCK)
    }

    /// Returns the checksum of every block of an array.
    pub(super) fn sums(array: &[u8]) -> Vec<u32> {
        array.chunks(BLOCK).map(crc32fast::hash).collect()
    }

    /// Compares the blocks of a range of bytes that were not compared before.
    ///
    /// What was read of a damaged block must not be used: see [`Guard::damaged`].
    #[allow(clippy::inline_always)]
    #[inline(always)]
    pub(super) fn require(&self, array: &[u8], range: Range<usize>) {
        for block in range.start / BLOCK..range.end.div_ceil(BLOCK) {
            let known = self.intact[block / WORD].load(Ordering::Relaxed);
            if known >> (block % WORD) & 1 == 0 {
                self.compare(array, block);
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn compare(&self, array: &[u8], block: usize) {
        let start = block * BLOCK;
        let bytes = &array[start..array.len().min(start + BLOCK)];
        if crc32fast::hash(bytes) == self.sums.as_slice()[block] {
            self.intact[block / WORD].fetch_or(1 << (block % WORD), Ordering::Relaxed);
        } else {
            self.damaged.store(block as u64 + 1, Ordering::Relaxed);
        }
    }

    /// Returns a block that does not match, if any was met.
    pub(super) fn damaged(&self) -> Option<u64> {
        self.damaged.load(Ordering::Relaxed).checked_sub(1)
    }

    pub(super) fn bytes(&self) -> usize {
        self.intact.len() * size_of::<u64>() + size_of_val(self.sums.as_slice())
    }
}
