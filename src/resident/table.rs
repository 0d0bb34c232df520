//! One permutation table in memory: a directory of buckets over sliced members.

use std::ops::Range;

use super::BLOCK_BITS;
use super::cut::{Cut, Parts};
use crate::fingerprint::Fingerprint;
use crate::kernel::{self, LANES};
use crate::pages::Pages;

/// The bytes of a cache line, and the most lines of a bucket that are asked for ahead of reading.
const LINE: usize = 64;
const LINES_AHEAD: usize = 128;

#[derive(Debug)]
pub(super) struct Table {
    cut: Cut,
    /// The members of a bucket lie in cells, by so many leading bits of the first column.
    cell_bits: u32,
    /// Where each cell begins; one more entry than there are cells.
    starts: Pages<u32>,
    /// Column after column.
    columns: Pages<u16>,
}

impl Table {
    /// Sorts distinct fingerprints, fewer than 2^32, into buckets.
    pub(super) fn build<F: Fingerprint>(cut: Cut, cell_bits: u32, members: &[F]) -> Self {
        let mut starts = Pages::<u32>::zeroed(cut.buckets() + 1);
        let stride = members.len() + LANES;
        let mut columns = Pages::<u16>::zeroed(stride * cut.columns());
        {
            // Counted two places on, so that filling moves each start to where it belongs.
            let starts = starts.as_mut_slice();
            for &member in members {
                let bucket = cut.parts(member).bucket as usize;
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
                let Some(next) = starts.get_mut(parts.bucket as usize + 1) else { continue };
                let at = *next as usize;
                *next += 1;
                for (column, part) in parts.columns.iter().take(cut.columns()).enumerate() {
                    if let Some(place) = columns.get_mut(column * stride + at) {
                        *place = *part;
                    }
                }
            }
        }
        if cell_bits > 0 {
            starts = sort_into_cells(cut, cell_bits, starts.as_slice(), columns.as_mut_slice());
        }
        Self { cut, cell_bits, starts, columns }
    }
}

/// Sorts the members of each bucket by cell, and returns where each cell begins.
///
/// A bucket fits into the first caches, so this costs less than as many buckets would.
fn sort_into_cells(cut: Cut, cell_bits: u32, buckets: &[u32], columns: &mut [u16]) -> Pages<u32> {
    let cells = 1 << cell_bits;
    let mut starts = Pages::<u32>::zeroed((cut.buckets() << cell_bits) + 1);
    let places = starts.as_mut_slice();
    let stride = columns.len() / cut.columns().max(1);
    let (mut next, mut order, mut sorted) = (vec![0_u32; cells], Vec::new(), Vec::new());
    let cell_of = |member: u16| usize::from(member >> (BLOCK_BITS - cell_bits));
    for (bucket, ends) in buckets.windows(2).enumerate() {
        let &[start, end] = ends else { continue };
        let (start, end) = (start as usize, end as usize);
        let keys = columns.get(start..end).unwrap_or_default();
        next.fill(0);
        for &member in keys {
            if let Some(count) = next.get_mut(cell_of(member)) {
                *count += 1;
            }
        }
        let mut sum = 0;
        let of_bucket = places.get_mut(bucket << cell_bits..).unwrap_or_default();
        for (place, next) in of_bucket.iter_mut().zip(&mut next) {
            let count = std::mem::replace(next, sum);
            *place = u32::try_from(start).unwrap_or(u32::MAX) + sum;
            sum += count;
        }
        order.clear();
        order.extend(keys.iter().map(|&member| {
            next.get_mut(cell_of(member)).map_or(0, |next| {
                *next += 1;
                *next - 1
            })
        }));
        for column in columns.chunks_exact_mut(stride) {
            let members = column.get_mut(start..end).unwrap_or_default();
            sorted.clear();
            sorted.resize(members.len(), 0);
            for (&member, &to) in members.iter().zip(&order) {
                if let Some(place) = sorted.get_mut(to as usize) {
                    *place = member;
                }
            }
            members.copy_from_slice(&sorted);
        }
    }
    if let (Some(last), Some(&end)) = (places.last_mut(), buckets.last()) {
        *last = end;
    }
    starts
}

/// The arrays of a table as plain slices, borrowed for a search.
#[derive(Debug, Clone, Copy)]
pub(super) struct Columns<'a> {
    cut: Cut,
    cell_bits: u32,
    stride: usize,
    starts: &'a [u32],
    members: &'a [u16],
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

    /// Returns the own block of each member as a column, and some places to spare.
    pub(super) fn own_blocks(&self) -> Pages<u16> {
        let columns = self.columns();
        let rest = |at: usize| {
            let place = self.cut.rest().map(|column| column * columns.stride + at);
            place.and_then(|place| columns.members.get(place)).copied().unwrap_or(0)
        };
        let mut own = Pages::zeroed(columns.stride);
        let places = own.as_mut_slice();
        for bucket in (0..=u32::MAX).take(self.cut.buckets()) {
            let range = columns.range(bucket);
            let of_bucket = places.get_mut(range.clone()).unwrap_or_default();
            for (place, at) in of_bucket.iter_mut().zip(range) {
                *place = self.cut.own(bucket, rest(at));
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

    /// Returns true if `cells` of a bucket's `all` cells are read slower than the whole bucket, which
    /// lies in order; without cells it is the only one.
    #[allow(clippy::inline_always)]
    #[inline(always)]
    pub(super) fn reads_whole(cells: usize, all: usize) -> bool {
        cells * 4 > all
    }

    /// Returns the bytes that the table takes.
    pub(super) fn bytes(&self) -> usize {
        self.starts.bytes() + self.columns.bytes()
    }

    /// Returns the bytes that a table of so many members takes.
    pub(super) fn bytes_of(cut: Cut, cell_bits: u32, members: u64) -> u64 {
        let cells = (cut.buckets() as u64) << cell_bits;
        members * 2 * cut.columns() as u64 + 4 * cells
    }
}

#[allow(clippy::inline_always)]
impl Columns<'_> {
    /// Columns without members.
    pub(super) const EMPTY: Self =
        Self { cut: Cut::NONE, cell_bits: 0, stride: 0, starts: &[], members: &[] };

    /// Returns where the members of a bucket lie.
    #[inline(always)]
    pub(super) fn range(&self, bucket: u32) -> Range<usize> {
        let first = (bucket as usize) << self.cell_bits;
        let start = self.starts.get(first).copied().unwrap_or(0);
        let end = self.starts.get(first + (1 << self.cell_bits)).copied().unwrap_or(start);
        start as usize..end as usize
    }

    /// Returns where the members of one cell of a bucket lie.
    #[inline(always)]
    pub(super) fn cell(&self, bucket: u32, cell: u32) -> Range<usize> {
        let at = ((bucket as usize) << self.cell_bits) + cell as usize;
        match self.starts.get(at..at + 2) {
            Some(&[start, end]) => start as usize..end as usize,
            _ => 0..0,
        }
    }

    /// Returns the cell of its bucket that a fingerprint belongs to.
    #[inline(always)]
    pub(super) fn cell_of(&self, aim: &Parts) -> u32 {
        let first = aim.columns.first().copied().unwrap_or(0);
        u32::from(first) >> (BLOCK_BITS - self.cell_bits)
    }

    /// Returns where members of a bucket in some cells lie; cells are given by their flips.
    #[inline(always)]
    pub(super) fn ranges<'m>(&self, bucket: u32, aim: &Parts, cells: &'m [u32]) -> Ranges<'_, 'm> {
        let whole = Table::reads_whole(cells.len(), 1 << self.cell_bits);
        let cells = if whole { &[0] } else { cells };
        Ranges { columns: self, bucket, own: self.cell_of(aim), whole, cells: cells.iter() }
    }

    /// Asks for the place of a bucket before it is read, where it has cells.
    #[inline(always)]
    pub(super) fn prefetch_cells<F: Fingerprint>(&self, fingerprint: F) {
        if self.cell_bits > 0 {
            let first = (self.cut.parts(fingerprint).bucket as usize) << self.cell_bits;
            ask(self.starts, &(first..first + (1 << self.cell_bits)));
        }
    }

    /// Asks for some columns of members before they are read.
    #[inline(always)]
    pub(super) fn prefetch(&self, range: &Range<usize>, columns: Range<usize>) {
        for column in columns {
            let start = column * self.stride + range.start;
            ask(self.members, &(start..start + range.len()));
        }
    }

    /// Returns a column of so many members as are compared at once.
    #[inline(always)]
    pub(super) fn column(&self, column: usize, at: usize) -> Option<&[u16; LANES]> {
        self.members.get(column * self.stride + at..)?.first_chunk()
    }

    /// Returns a column of some members in groups that are compared at once; the last may reach
    /// beyond the members. Empty where there is no such column.
    #[inline(always)]
    pub(super) fn chunks(&self, column: usize, start: usize, count: usize) -> &[[u16; LANES]] {
        let members = self.members.get(column * self.stride + start..).unwrap_or_default();
        members.as_chunks().0.get(..count).unwrap_or_default()
    }

    #[inline(always)]
    pub(super) fn cut(&self) -> Cut {
        self.cut
    }

    /// Returns the parts of a member of a bucket.
    pub(super) fn member(&self, bucket: u32, at: usize) -> Parts {
        let mut parts = Parts { bucket, ..Parts::default() };
        for (column, part) in parts.columns.iter_mut().take(self.cut.columns()).enumerate() {
            *part = self.members.get(column * self.stride + at).copied().unwrap_or_default();
        }
        parts
    }
}

/// Asks for every line of some items, as far as a processor fetches ahead by itself later on.
#[allow(clippy::inline_always)]
#[inline(always)]
fn ask<T>(items: &[T], range: &Range<usize>) {
    let step = LINE / size_of::<T>();
    for line in 0..(range.len().div_ceil(step) + 1).min(LINES_AHEAD) {
        kernel::prefetch(items, range.start + line * step);
    }
}

/// Where members of a bucket lie: each of some cells, or all of it at once.
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
