//! One permutation table in memory: a directory of buckets over sliced members.

use std::ops::Range;

use rayon::prelude::*;
use rdst::RadixSort;

use super::cut::{Cut, Parts};
use crate::fingerprint::Fingerprint;
use crate::kernel::{self, LANES};
use crate::pages::Pages;
use crate::plan::Permutation;

/// The bytes of a cache line, and the most lines of a bucket that are asked for ahead of reading.
const LINE: usize = 64;
const LINES_AHEAD: usize = 128;

/// Members that a thread permutes in turn.
const CHUNK: usize = 1 << 14;

#[derive(Debug)]
pub(super) struct Table {
    permutation: Permutation,
    cut: Cut,
    /// Where each bucket begins; one more entry than there are buckets.
    starts: Pages<u32>,
    heads: Pages<u32>,
    /// Column after column.
    tails: Pages<u16>,
}

impl Table {
    /// Sorts distinct fingerprints, fewer than 2^32, into buckets.
    pub(super) fn build<F: Fingerprint>(
        permutation: Permutation,
        bucket_bits: u32,
        members: &[F],
    ) -> Self {
        let cut = Cut::new::<F>(bucket_bits);
        let mut starts = Pages::<u32>::zeroed(cut.buckets() + 1);
        let mut heads = Pages::<u32>::zeroed(members.len() + LANES);
        let stride = members.len() + LANES;
        let mut tails = Pages::<u16>::zeroed(stride * cut.tails());
        {
            // Counted two places on, so that filling moves each start to where it belongs.
            let starts = starts.as_mut_slice();
            for &member in members {
                let bucket = cut.parts(permutation.apply(member)).bucket as usize;
                if let Some(count) = starts.get_mut(bucket + 2) {
                    *count += 1;
                }
            }
            let mut sum = 0;
            for start in starts.iter_mut() {
                sum += *start;
                *start = sum;
            }
            let heads = heads.as_mut_slice();
            let tails = tails.as_mut_slice();
            for &member in members {
                let parts = cut.parts(permutation.apply(member));
                let Some(next) = starts.get_mut(parts.bucket as usize + 1) else { continue };
                let at = *next as usize;
                *next += 1;
                if let Some(head) = heads.get_mut(at) {
                    *head = parts.head;
                }
                for (column, tail) in parts.tails.iter().take(cut.tails()).enumerate() {
                    if let Some(place) = tails.get_mut(column * stride + at) {
                        *place = *tail;
                    }
                }
            }
        }
        Self { permutation, cut, starts, heads, tails }
    }
}

impl Table {
    /// [`Table::build`] by all threads, in room for a copy of the members.
    ///
    /// Sorting pays where buckets are so many that each member would be put into a cold one.
    pub(super) fn build_sorted<F: Fingerprint>(
        permutation: Permutation,
        bucket_bits: u32,
        members: &[F],
        permuted: &mut [F],
    ) -> Self {
        let cut = Cut::new::<F>(bucket_bits);
        let pieces = permuted.par_chunks_mut(CHUNK).zip(members.par_chunks(CHUNK));
        pieces.for_each(|(to, from)| permutation.apply_all(from, to));
        permuted.radix_sort_unstable();
        let stride = members.len() + LANES;
        let mut starts = Pages::<u32>::zeroed(cut.buckets() + 1);
        let mut heads = Pages::<u32>::zeroed(stride);
        let mut tails = Pages::<u16>::zeroed(stride * cut.tails());
        let permuted = &*permuted;
        // Members from a position on, searched for in a part of the directory that one thread has.
        let directory = starts.as_mut_slice().par_chunks_mut(CHUNK).enumerate();
        directory.for_each(|(chunk, starts)| {
            let bucket_of = |member: &F| cut.parts(*member).bucket as usize;
            let first = chunk * CHUNK;
            let mut at = permuted.partition_point(|member| bucket_of(member) < first);
            for (bucket, start) in (first..).zip(starts) {
                let rest = permuted.get(at..).unwrap_or_default();
                at += rest.iter().take_while(|member| bucket_of(member) < bucket).count();
                *start = u32::try_from(at).unwrap_or(u32::MAX);
            }
        });
        let heads_of = heads.as_mut_slice().par_iter_mut().zip(permuted);
        heads_of.for_each(|(head, &member)| *head = cut.parts(member).head);
        let columns = tails.as_mut_slice().par_chunks_mut(stride).enumerate();
        columns.for_each(|(column, tails)| {
            for (to, &member) in tails.iter_mut().zip(permuted) {
                *to = cut.parts(member).tails.get(column).copied().unwrap_or_default();
            }
        });
        Self { permutation, cut, starts, heads, tails }
    }
}

/// The arrays of a table as plain slices, borrowed for a search.
#[derive(Debug, Clone, Copy)]
pub(super) struct Columns<'a> {
    cut: Cut,
    starts: &'a [u32],
    heads: &'a [u32],
    tails: &'a [u16],
}

impl Table {
    pub(super) fn columns(&self) -> Columns<'_> {
        Columns {
            cut: self.cut,
            starts: self.starts.as_slice(),
            heads: self.heads.as_slice(),
            tails: self.tails.as_slice(),
        }
    }

    pub(super) fn cut(&self) -> Cut {
        self.cut
    }

    pub(super) fn parts<F: Fingerprint>(&self, fingerprint: F) -> Parts {
        self.cut.parts(self.permutation.apply(fingerprint))
    }

    /// Puts a member together again.
    pub(super) fn join<F: Fingerprint>(&self, parts: &Parts) -> F {
        self.permutation.invert(self.cut.join(parts))
    }

    /// Returns all members, bucket by bucket.
    pub(super) fn members<F: Fingerprint>(&self) -> Vec<F> {
        let columns = self.columns();
        let buckets = (0..=u32::MAX).take(self.cut.buckets());
        buckets
            .flat_map(|bucket| columns.range(bucket).map(move |at| (bucket, at)))
            .map(|(bucket, at)| self.join(&columns.member(bucket, at)))
            .collect()
    }

    /// Returns how many members the largest bucket has.
    pub(super) fn largest_bucket(&self) -> usize {
        let ends = self.starts.as_slice().iter().skip(1);
        let sizes = ends.zip(self.starts.as_slice()).map(|(end, start)| end - start);
        sizes.max().unwrap_or(0) as usize
    }

    /// Returns the bytes that the table takes.
    pub(super) fn bytes(&self) -> usize {
        self.starts.bytes() + self.heads.bytes() + self.tails.bytes()
    }
}

#[allow(clippy::inline_always)]
impl Columns<'_> {
    /// Columns without members.
    pub(super) const EMPTY: Self = Self { cut: Cut::NONE, starts: &[], heads: &[], tails: &[] };

    /// Returns where the members of a bucket lie.
    #[inline(always)]
    pub(super) fn range(&self, bucket: u32) -> Range<usize> {
        let bucket = bucket as usize;
        match self.starts.get(bucket..bucket + 2) {
            Some(&[start, end]) => start as usize..end as usize,
            _ => 0..0,
        }
    }

    /// Asks for the place of a bucket before it is read.
    #[inline(always)]
    pub(super) fn prefetch_start(&self, bucket: u32) {
        kernel::prefetch(self.starts, bucket as usize);
    }

    /// Asks for the heads of some members before they are read, and the tails as well if `deep`.
    #[inline(always)]
    pub(super) fn prefetch(&self, range: &Range<usize>, deep: bool) {
        ask(self.heads, range);
        if deep {
            self.prefetch_tails(range);
        }
    }

    /// Asks for the tails of some members before they are read.
    #[inline(always)]
    pub(super) fn prefetch_tails(&self, range: &Range<usize>) {
        for column in 0..self.cut.tails() {
            let start = self.tail_at(column, range.start);
            ask(self.tails, &(start..start + range.len()));
        }
    }

    /// Returns the heads of so many members as are compared at once.
    #[inline(always)]
    pub(super) fn heads(&self, at: usize) -> Option<&[u32; LANES]> {
        self.heads.get(at..)?.first_chunk()
    }

    /// Returns the tails of so many members as are compared at once.
    #[inline(always)]
    pub(super) fn tails(&self, column: usize, at: usize) -> Option<&[u16; LANES]> {
        self.tails.get(self.tail_at(column, at)..)?.first_chunk()
    }

    #[inline(always)]
    pub(super) fn cut(&self) -> Cut {
        self.cut
    }

    /// Returns the parts of a member of a bucket.
    pub(super) fn member(&self, bucket: u32, at: usize) -> Parts {
        let mut parts = Parts { bucket, ..Parts::default() };
        parts.head = self.heads.get(at).copied().unwrap_or_default();
        for (column, part) in parts.tails.iter_mut().take(self.cut.tails()).enumerate() {
            *part = self.tails.get(self.tail_at(column, at)).copied().unwrap_or_default();
        }
        parts
    }

    #[inline(always)]
    fn tail_at(&self, column: usize, at: usize) -> usize {
        column * self.heads.len() + at
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
