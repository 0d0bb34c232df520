//! Partition: a copy of a set, bucketed by chosen bits.
//!
//! Each chunk of the set is partitioned separately within the second-level cache, so that memory is
//! only accessed sequentially. A bucket is one slice of each chunk.

use std::ops::{AddAssign, Range};

use rayon::prelude::*;

use crate::bits::Digits;
use crate::fingerprint::Fingerprint;
use crate::kernel::{self, Work};

/// Size of a chunk: half of a typical second-level cache.
const CHUNK_BYTES: usize = 512 << 10;
/// Members between prefetches: at most a cache line.
const LINE: usize = 4;
/// Minimum members of a task.
const CHUNK_MIN: usize = 4 << 10;
/// Maximum bits of a bucket number, so that its slices stay longer than a cache line.
pub(super) const BITS_MAX: u32 = 11;

/// Members of a bucket; with their copy they fill half of a second-level cache.
pub(super) const BUCKET: usize = 32 << 10;
/// Smaller sets are partitioned and compared on the calling thread.
pub(super) const PARALLEL_MIN: usize = 8 << 10;

/// Returns the number of bits that a set is partitioned by.
pub(super) fn bits_for(len: usize) -> u32 {
    let by_cache = (len / BUCKET).checked_ilog2().unwrap_or(0);
    let by_threads = if len < PARALLEL_MIN { 1 } else { 4 };
    by_cache.clamp(by_threads, BITS_MAX)
}

/// A set in buckets.
pub(super) struct Partition<'a, F> {
    members: &'a [F],
    chunk: usize,
    chunks: usize,
    /// Start of each bucket within each chunk, and the end of the last bucket; chunks are adjacent.
    starts: Vec<usize>,
}

impl<'a, F: Fingerprint> Partition<'a, F> {
    /// Buckets the members by their digits.
    ///
    /// Writes them to `to`, which must be as long, unless they are sorted by the digits already.
    pub(super) fn new(members: &'a [F], digits: &Digits<F>, to: &'a mut [F]) -> Self {
        let bits = digits.bits();
        assert!((1..=BITS_MAX).contains(&bits), "{bits} bits of a bucket");
        assert_eq!(members.len(), to.len(), "the buffer is as long as the set");
        let buckets = 1_usize << bits;
        if digits.are_leading() && members.is_sorted() {
            let start = |bucket| members.partition_point(|&member| digits.of(member) < bucket);
            let starts = (0..=buckets).map(start).collect();
            return Self { members, chunk: members.len().max(1), chunks: 1, starts };
        }
        let tasks = 4 * rayon::current_num_threads();
        let chunk = (members.len() / tasks).clamp(CHUNK_MIN, CHUNK_BYTES / F::BYTES);
        let chunks = members.len().div_ceil(chunk).max(1);
        let mut by_chunk = vec![0; chunks * (buckets + 1)];
        members
            .par_chunks(chunk)
            .zip(to.par_chunks_mut(chunk))
            .zip(by_chunk.par_chunks_mut(buckets + 1))
            .for_each(|((from, to), starts)| {
                kernel::dispatch(Scatter { digits, from, to, starts });
            });
        // A bucket is read from all chunks, so its starts are adjacent.
        let mut starts = vec![0; by_chunk.len()];
        starts.par_chunks_mut(chunks).enumerate().with_min_len(64).for_each(|(bucket, starts)| {
            for (start, of_chunk) in starts.iter_mut().zip(by_chunk.chunks_exact(buckets + 1)) {
                *start = of_chunk[bucket];
            }
        });
        Self { members: to, chunk, chunks, starts }
    }

    /// Returns the number of members of a bucket.
    pub(super) fn len(&self, bucket: usize) -> usize {
        self.ranges(bucket).map(|range| range.len()).sum()
    }

    /// Returns the slices of a bucket; some may be empty.
    pub(super) fn pieces(&self, bucket: usize) -> impl Iterator<Item = &'a [F]> + Clone {
        let chunks = self.members.chunks(self.chunk);
        chunks.zip(self.ranges(bucket)).map(|(chunk, range)| &chunk[range])
    }

    fn ranges(&self, bucket: usize) -> impl Iterator<Item = Range<usize>> + Clone {
        let row = |bucket: usize| &self.starts[bucket * self.chunks..][..self.chunks];
        row(bucket).iter().zip(row(bucket + 1)).map(|(&start, &end)| start..end)
    }
}

/// Sorts one chunk by its digits.
struct Scatter<'a, F> {
    digits: &'a Digits<F>,
    from: &'a [F],
    to: &'a mut [F],
    starts: &'a mut [usize],
}

impl<F: Fingerprint> Work for Scatter<'_, F> {
    type Output = ();

    #[allow(clippy::inline_always)]
    #[inline(always)]
    fn run(self) {
        let Self { digits, from, to, starts } = self;
        let mut at = 0;
        digits.for_each(from, |_, digit| {
            // The members are written in no order, so the processor would wait for every line.
            if at % LINE == 0 {
                kernel::prefetch(to, at);
            }
            at += 1;
            starts[digit] += 1;
        });
        exclusive_sums(starts);
        digits.for_each(from, |member, digit| {
            let next = &mut starts[digit];
            to[*next] = member;
            *next += 1;
        });
        // Each start now is the end of its bucket, which is the start of the next one.
        starts.rotate_right(1);
        starts[0] = 0;
        starts[1 << digits.bits()] = from.len();
    }
}

/// Replaces counts by the start of each range, as exclusive prefix sums.
#[allow(clippy::inline_always)]
#[inline(always)]
pub(super) fn exclusive_sums<N: AddAssign + Copy + Default>(counts: &mut [N]) {
    let mut sum = N::default();
    for count in counts {
        sum += std::mem::replace(count, sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::Segment;

    fn buckets_hold_what_has_their_digits<F: Fingerprint>(
        mut members: Vec<F>,
        segments: &[Segment],
    ) {
        let digits = Digits::new(segments);
        let mut room = vec![F::ZERO; members.len()];
        let partition = Partition::new(&members, &digits, &mut room);
        let mut found = Vec::new();
        for bucket in 0..1 << digits.bits() {
            let before = found.len();
            for piece in partition.pieces(bucket) {
                assert!(piece.iter().all(|&member| digits.of(member) == bucket));
                found.extend_from_slice(piece);
            }
            assert_eq!(partition.len(bucket), found.len() - before);
        }
        members.sort_unstable();
        found.sort_unstable();
        assert!(found == members, "{} members, {segments:?}", members.len());
    }

    fn members_are_in_the_bucket_of_their_digits<F: Fingerprint>() {
        for len in [0_u64, 1, 31, 5000, 100_000] {
            let word = |at: u64| u128::from(at.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let members: Vec<F> = (0..len).map(|at| F::truncate(word(at) * 0x1_0001)).collect();
            let mut sorted = members.clone();
            sorted.sort_unstable();
            for bits in [1, 4, 11] {
                let leading = [Segment { start: 0, len: bits }];
                buckets_hold_what_has_their_digits(members.clone(), &leading);
                buckets_hold_what_has_their_digits(sorted.clone(), &leading);
                let apart = [Segment { start: 3, len: 1 }, Segment { start: 9, len: bits - 1 }];
                buckets_hold_what_has_their_digits(sorted.clone(), &apart);
            }
        }
    }

    #[test]
    fn every_member_is_in_the_bucket_of_its_digits() {
        members_are_in_the_bucket_of_their_digits::<u32>();
        members_are_in_the_bucket_of_their_digits::<u64>();
        members_are_in_the_bucket_of_their_digits::<u128>();
    }
}
