//! One permutation table in memory: a directory of buckets over columns of members.

use std::ops::Range;

use super::BLOCK_BITS;
use super::array::{Array, Section};
use super::cut::{Cut, Parts};
use super::guard::Guard;
use crate::fingerprint::Fingerprint;
use crate::kernel::{self, LANES};
use crate::pages::Pages;

/// Size of a cache line, and the maximum number of prefetched lines of a bucket.
const LINE: usize = 64;
const LINES_AHEAD: usize = 128;

#[derive(Debug)]
pub(super) struct Table {
    cut: Cut,
    /// Number of leading bits of the first column that select a cell within a bucket.
    cell_bits: u32,
    /// Start of each cell, and the end of the last.
    starts: Array<u32>,
    /// All columns, one after another.
    columns: Array<u16>,
    /// Checks the columns of a mapped file.
    guard: Option<Guard>,
}

impl Table {
    /// Sorts fewer than 2^32 distinct fingerprints into buckets.
    pub(super) fn build<F: Fingerprint>(cut: Cut, cell_bits: u32, members: &[F]) -> Self {
        let mut starts = Pages::<u32>::zeroed(cut.buckets() + 1);
        let stride = Self::stride(members.len());
        let mut columns = Pages::<u16>::zeroed(stride * cut.columns());
        {
            // Counts are stored two places on, so that filling the buckets leaves each start in
            // place.
            let starts = starts.as_mut_slice();
            for &member in members {
                let bucket = cut.parts(member).bucket as usize;
                // The last bucket has no next one whose start its members shift.
                if let Some(count) = starts.get_mut(bucket + 2) {
                    *count += 1;
                }
            }
            let mut sum = 0;
            for start in starts.iter_mut() {
                sum += *start;
                *start = sum;
            }
            let columns = columns.as_mut_slice();
            for &member in members {
                let parts = cut.parts(member);
                let next = &mut starts[parts.bucket as usize + 1];
                let at = *next as usize;
                *next += 1;
                for (column, part) in parts.columns.iter().take(cut.columns()).enumerate() {
                    columns[column * stride + at] = *part;
                }
            }
        }
        if cell_bits > 0 {
            starts = sort_into_cells(cut, cell_bits, starts.as_slice(), columns.as_mut_slice());
        }
        let (starts, columns) = (Array::Own(starts), Array::Own(columns));
        Self { cut, cell_bits, starts, columns, guard: None }
    }

    /// Makes a table of the arrays of a file; `None` if its directory does not fit `len` members.
    pub(super) fn saved(
        cut: Cut,
        cell_bits: u32,
        len: usize,
        (starts, columns): (Section<u32>, Section<u16>),
        guard: Guard,
    ) -> Option<Self> {
        let places = starts.as_slice();
        let fits = places.is_sorted() && places.last().is_some_and(|&end| end as usize == len);
        let (starts, columns) = (Array::Saved(starts), Array::Saved(columns));
        fits.then_some(Self { cut, cell_bits, starts, columns, guard: Some(guard) })
    }

    /// Returns the number of bits that select a bucket, and of those that select a cell in it.
    pub(super) fn directory(&self) -> (u32, u32) {
        (self.cut.bucket_bits(), self.cell_bits)
    }

    /// Returns the directory and the columns.
    pub(super) fn arrays(&self) -> (&[u32], &[u16]) {
        (self.starts.as_slice(), self.columns.as_slice())
    }

    /// Returns the number of starts of a table, and the length of one of its columns.
    pub(super) fn lengths(cut: Cut, cell_bits: u32, members: usize) -> (usize, usize) {
        ((cut.buckets() << cell_bits) + 1, Self::stride(members))
    }

    /// Returns the length of a column, which has padding.
    fn stride(members: usize) -> usize {
        members + LANES
    }

    /// Compares all columns with their checksums.
    pub(super) fn require_all(&self) {
        let columns = self.columns();
        columns.require(&(0..columns.stride), 0..self.cut.columns());
    }

    /// Returns a block of the columns that does not match its checksum, if any was met.
    pub(super) fn damaged(&self) -> Option<u64> {
        self.guard.as_ref().and_then(Guard::damaged)
    }
}

/// Sorts the members of each bucket by cell and returns the start of each cell.
///
/// A bucket fits the first caches, so this is cheaper than sorting into as many buckets.
fn sort_into_cells(cut: Cut, cell_bits: u32, buckets: &[u32], columns: &mut [u16]) -> Pages<u32> {
    let cells = 1 << cell_bits;
    let mut starts = Pages::<u32>::zeroed((cut.buckets() << cell_bits) + 1);
    let places = starts.as_mut_slice();
    let stride = columns.len() / cut.columns().max(1);
    let (mut next, mut order, mut sorted) = (vec![0_u32; cells], Vec::new(), Vec::new());
    let cell_of = |member: u16| usize::from(member >> (BLOCK_BITS - cell_bits));
    for (bucket, ends) in buckets.windows(2).enumerate() {
        let (first, end) = (ends[0], ends[1] as usize);
        let start = first as usize;
        let keys = &columns[start..end];
        next.fill(0);
        for &member in keys {
            next[cell_of(member)] += 1;
        }
        let mut sum = 0;
        let of_bucket = &mut places[bucket << cell_bits..][..cells];
        for (place, next) in of_bucket.iter_mut().zip(&mut next) {
            let count = std::mem::replace(next, sum);
            *place = first + sum;
            sum += count;
        }
        order.clear();
        order.extend(keys.iter().map(|&member| {
            let next = &mut next[cell_of(member)];
            *next += 1;
            *next - 1
        }));
        for column in columns.chunks_exact_mut(stride) {
            let members = &mut column[start..end];
            sorted.clear();
            sorted.resize(members.len(), 0);
            for (&member, &to) in members.iter().zip(&order) {
                sorted[to as usize] = member;
            }
            members.copy_from_slice(&sorted);
        }
    }
    places[cut.buckets() << cell_bits] = buckets[cut.buckets()];
    starts
}

/// The arrays of a table as slices, borrowed for a search.
#[derive(Debug, Clone, Copy)]
pub(super) struct Columns<'a> {
    cut: Cut,
    cell_bits: u32,
    stride: usize,
    starts: &'a [u32],
    members: &'a [u16],
    guard: Option<&'a Guard>,
}

impl Table {
    pub(super) fn columns(&self) -> Columns<'_> {
        let columns = self.columns.as_slice();
        Columns {
            cut: self.cut,
            cell_bits: self.cell_bits,
            stride: columns.len() / self.cut.columns().max(1),
            starts: self.starts.as_slice(),
            members: columns,
            guard: self.guard.as_ref(),
        }
    }

    pub(super) fn cut(&self) -> Cut {
        self.cut
    }

    /// Returns all members, bucket by bucket.
    pub(super) fn members<F: Fingerprint>(&self) -> Vec<F> {
        let columns = self.columns();
        let buckets = (0..=u32::MAX).take(self.cut.buckets());
        buckets
            .flat_map(|bucket| columns.range(bucket).map(move |at| (bucket, at)))
            .map(|(bucket, at)| self.cut.join(&columns.member(bucket, at)))
            .collect()
    }

    /// Returns the table's block of each member as a column, with padding.
    pub(super) fn own_blocks(&self) -> Pages<u16> {
        let columns = self.columns();
        let rest = |at: usize| {
            // If the bucket is the whole block, there is no remainder.
            self.cut.rest().map_or(0, |column| columns.members[column * columns.stride + at])
        };
        let mut own = Pages::zeroed(columns.stride);
        let places = own.as_mut_slice();
        for bucket in (0..=u32::MAX).take(self.cut.buckets()) {
            for at in columns.range(bucket) {
                places[at] = self.cut.own(bucket, rest(at));
            }
        }
        own
    }

    /// Returns the number of members of each bucket, in order.
    pub(super) fn bucket_sizes(&self) -> impl Iterator<Item = u64> {
        let columns = self.columns();
        let buckets = (0..=u32::MAX).take(self.cut.buckets());
        buckets.map(move |bucket| columns.range(bucket).len() as u64)
    }

    /// Returns true if reading the whole bucket is faster than reading `cells` of its `all` cells.
    ///
    /// A bucket is contiguous in memory, and without cells it is its only cell.
    #[allow(clippy::inline_always)]
    #[inline(always)]
    pub(super) fn reads_whole(cells: usize, all: usize) -> bool {
        cells * 4 > all
    }

    /// Returns the size of the table, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let guard = self.guard.as_ref().map_or(0, Guard::bytes);
        self.starts.bytes() + self.columns.bytes() + guard
    }

    /// Returns the size of a table of `members` members, in bytes.
    pub(super) fn bytes_of(cut: Cut, cell_bits: u32, members: u64) -> u64 {
        let cells = (cut.buckets() as u64) << cell_bits;
        members * 2 * cut.columns() as u64 + 4 * cells
    }
}

#[allow(clippy::inline_always)]
impl Columns<'_> {
    /// Columns without members.
    pub(super) const EMPTY: Self =
        Self { cut: Cut::NONE, cell_bits: 0, stride: 0, starts: &[], members: &[], guard: None };

    /// Returns the range of the members of a bucket.
    #[inline(always)]
    pub(super) fn range(&self, bucket: u32) -> Range<usize> {
        let first = (bucket as usize) << self.cell_bits;
        let end = first + (1 << self.cell_bits);
        self.starts[first] as usize..self.starts[end] as usize
    }

    /// Returns the range of the members of one cell of a bucket.
    #[inline(always)]
    pub(super) fn cell(&self, bucket: u32, cell: u32) -> Range<usize> {
        let at = ((bucket as usize) << self.cell_bits) + cell as usize;
        let ends = &self.starts[at..at + 2];
        ends[0] as usize..ends[1] as usize
    }

    /// Returns the cell that a fingerprint belongs to within its bucket.
    #[inline(always)]
    pub(super) fn cell_of(&self, target: &Parts) -> u32 {
        u32::from(target.columns[0]) >> (BLOCK_BITS - self.cell_bits)
    }

    /// Returns the ranges of some cells of a bucket; cells are given by their flips.
    #[inline(always)]
    pub(super) fn ranges<'m>(
        &self,
        bucket: u32,
        target: &Parts,
        cells: &'m [u32],
    ) -> Ranges<'_, 'm> {
        let whole = Table::reads_whole(cells.len(), 1 << self.cell_bits);
        let cells = if whole { &[0] } else { cells };
        Ranges { columns: self, bucket, own: self.cell_of(target), whole, cells: cells.iter() }
    }

    /// Prefetches the directory entries of a bucket if it has cells.
    #[inline(always)]
    pub(super) fn prefetch_cells<F: Fingerprint>(&self, fingerprint: F) {
        if self.cell_bits > 0 {
            let first = (self.cut.parts(fingerprint).bucket as usize) << self.cell_bits;
            prefetch_lines(self.starts, &(first..first + (1 << self.cell_bits)));
        }
    }

    /// Prefetches some columns of a range of members.
    #[inline(always)]
    pub(super) fn prefetch(&self, range: &Range<usize>, columns: Range<usize>) {
        for column in columns {
            let start = column * self.stride + range.start;
            prefetch_lines(self.members, &(start..start + range.len()));
        }
    }

    /// Compares some columns of a range of members with their checksums, if they are in a file.
    ///
    /// Every other method that reads members expects this; damage is reported after the search.
    #[inline(always)]
    pub(super) fn require(&self, range: &Range<usize>, columns: Range<usize>) {
        let Some(guard) = self.guard.filter(|_| !range.is_empty()) else { return };
        let array = bytemuck::cast_slice(self.members);
        for column in columns {
            let start = size_of::<u16>() * (column * self.stride + range.start);
            guard.require(array, start..start + size_of::<u16>() * range.len());
        }
    }

    /// Returns one column of as many members as are compared at once.
    #[inline(always)]
    pub(super) fn column(&self, column: usize, at: usize) -> &[u16; LANES] {
        debug_assert!(column < self.cut.columns() && at + LANES <= self.stride, "{column} {at}");
        let members = self.members[column * self.stride + at..].first_chunk();
        members.expect("a column has padding")
    }

    /// Returns one column in groups that are compared at once; the last may include padding.
    ///
    /// Empty if the table has no such column.
    #[inline(always)]
    pub(super) fn chunks(&self, column: usize, start: usize, count: usize) -> &[[u16; LANES]] {
        if column >= self.cut.columns() {
            return &[];
        }
        debug_assert!(start + count * LANES <= self.stride, "{start} {count}");
        &self.members[column * self.stride + start..].as_chunks().0[..count]
    }

    #[inline(always)]
    pub(super) fn cut(&self) -> Cut {
        self.cut
    }

    /// Returns the parts of a member of a bucket.
    pub(super) fn member(&self, bucket: u32, at: usize) -> Parts {
        let mut parts = Parts { bucket, ..Parts::default() };
        for (column, part) in parts.columns.iter_mut().take(self.cut.columns()).enumerate() {
            *part = self.members[column * self.stride + at];
        }
        parts
    }
}

/// Prefetches the cache lines of `range`, up to where the hardware prefetcher takes over.
#[allow(clippy::inline_always)]
#[inline(always)]
fn prefetch_lines<T>(items: &[T], range: &Range<usize>) {
    let step = LINE / size_of::<T>();
    for line in 0..(range.len().div_ceil(step) + 1).min(LINES_AHEAD) {
        kernel::prefetch(items, range.start + line * step);
    }
}

/// The ranges of some cells of a bucket, or of the whole bucket.
pub(super) struct Ranges<'a, 'm> {
    columns: &'a Columns<'a>,
    bucket: u32,
    own: u32,
    whole: bool,
    cells: std::slice::Iter<'m, u32>,
}

#[allow(clippy::inline_always)]
impl Iterator for Ranges<'_, '_> {
    type Item = Range<usize>;

    #[inline(always)]
    fn next(&mut self) -> Option<Range<usize>> {
        let flips = self.cells.next()?;
        Some(if self.whole {
            self.columns.range(self.bucket)
        } else {
            self.columns.cell(self.bucket, self.own ^ flips)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(cell_bits: u32) -> Table {
        let odd = 0x9e37_79b9_7f4a_7c15_u64;
        let mut members: Vec<u64> = (0..1000_u64).map(|at| at.wrapping_mul(odd)).collect();
        members.sort_unstable();
        Table::build(Cut::new::<u64>(0, 4), cell_bits, &members)
    }

    #[test]
    #[should_panic(expected = "index out of bounds")]
    fn a_bucket_after_the_last_panics() {
        let _ = table(0).columns().range(16);
    }

    #[test]
    #[should_panic(expected = "out of range for slice")]
    fn a_cell_after_the_last_panics() {
        let _ = table(3).columns().cell(15, 8);
    }

    #[test]
    #[should_panic(expected = "0 1001")]
    fn reading_past_the_end_of_a_column_panics() {
        let _ = table(0).columns().column(0, 1001);
    }
}
