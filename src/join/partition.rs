//! Partition: a permuted copy of a set, bucketed by leading bits.
//!
//! Each chunk of the set is partitioned separately within the second-level cache, so that memory is
//! only accessed sequentially. A bucket is one slice of each chunk.

use std::ops::Range;

use rayon::prelude::*;

use super::permutation::Permutation;
use crate::fingerprint::Fingerprint;
use crate::kernel::{self, Work};

/// Size of a chunk: half of a typical second-level cache.
const CHUNK_BYTES: usize = 512 << 10;
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

/// A permuted set in buckets.
pub(super) struct Partition<'a, F> {
    members: &'a [F],
    chunk: usize,
    buckets: usize,
    /// Start of each bucket within each chunk, and the end of the last bucket.
    starts: Vec<u32>,
}

impl<'a, F: Fingerprint> Partition<'a, F> {
    /// Writes the permuted members to `to`, which must be as long, bucketed by `bits` bits.
    pub(super) fn new(
        members: &[F],
        permutation: &Permutation<F>,
        bits: u32,
        to: &'a mut [F],
    ) -> Self {
        assert!((1..=BITS_MAX).contains(&bits), "{bits} bits of a bucket");
        assert_eq!(members.len(), to.len(), "the buffer is as long as the set");
        let buckets = 1_usize << bits;
        let tasks = 4 * rayon::current_num_threads();
        let chunk = (members.len() / tasks).clamp(CHUNK_MIN, CHUNK_BYTES / F::BYTES);
        let mut starts = vec![0; members.len().div_ceil(chunk) * (buckets + 1)];
        members
            .par_chunks(chunk)
            .zip(to.par_chunks_mut(chunk))
            .zip(starts.par_chunks_mut(buckets + 1))
            .for_each(|((from, to), starts)| {
                kernel::dispatch(Scatter { permutation, bits, from, to, starts });
            });
        Self { members: to, chunk, buckets, starts }
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
        self.starts
            .chunks_exact(self.buckets + 1)
            .map(move |starts| starts[bucket] as usize..starts[bucket + 1] as usize)
    }
}

/// Returns the bits `skipped..skipped + bits` as a number.
///
/// `bits` must be at least 1; 32 bits fit every machine's `usize`.
#[allow(clippy::inline_always, clippy::cast_possible_truncation)]
#[inline(always)]
pub(super) fn digit<F: Fingerprint>(member: F, skipped: u32, bits: u32) -> usize {
    debug_assert!((1..=32).contains(&bits) && skipped < F::BITS, "{skipped} {bits}");
    ((member << skipped) >> (F::BITS - bits)).widen() as usize
}

/// Permutes one chunk and sorts it by its leading bits.
struct Scatter<'a, F> {
    permutation: &'a Permutation<F>,
    bits: u32,
    from: &'a [F],
    to: &'a mut [F],
    starts: &'a mut [u32],
}

impl<F: Fingerprint> Work for Scatter<'_, F> {
    type Output = ();

    #[allow(clippy::inline_always)]
    #[inline(always)]
    fn run(self) {
        let Self { permutation, bits, from, to, starts } = self;
        permutation.for_each(from, |member| {
            starts[digit(member, 0, bits)] += 1;
        });
        exclusive_sums(starts);
        permutation.for_each(from, |member| {
            let next = &mut starts[digit(member, 0, bits)];
            to[*next as usize] = member;
            *next += 1;
        });
        // Each start now is the end of its bucket, which is the start of the next one.
        starts.rotate_right(1);
        starts[0] = 0;
        starts[1 << bits] = u32::try_from(from.len()).expect("a chunk fits into a cache");
    }
}

/// Replaces counts by the start of each range, as exclusive prefix sums.
#[allow(clippy::inline_always)]
#[inline(always)]
pub(super) fn exclusive_sums(counts: &mut [u32]) {
    let mut sum = 0;
    for count in counts {
        sum += std::mem::replace(count, sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::join::permutation::Span;

    fn buckets_hold_what_has_their_leading_bits<F: Fingerprint>(len: u64, bits: u32) {
        let members: Vec<F> = (0..len)
            .map(|at| u128::from(at.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
            .map(|word| F::truncate(word * 0x1_0001))
            .collect();
        let span = Span { start: 9, end: 9 + bits };
        let permutation = Permutation::leading_with(&[span]);
        let mut room = vec![F::ZERO; members.len()];
        let partition = Partition::new(&members, &permutation, bits, &mut room);
        let mut found = Vec::new();
        for bucket in 0..1 << bits {
            let before = found.len();
            for piece in partition.pieces(bucket) {
                assert!(piece.iter().all(|&member| digit(member, 0, bits) == bucket));
                found.extend_from_slice(piece);
            }
            assert_eq!(partition.len(bucket), found.len() - before);
        }
        let mut expected: Vec<F> = members.iter().map(|&f| permutation.apply(f)).collect();
        expected.sort_unstable();
        found.sort_unstable();
        assert!(found == expected, "{len} members, {bits} bits");
    }

    #[test]
    fn every_member_is_in_the_bucket_of_its_leading_bits() {
        for len in [0, 1, 31, 5000, 100_000] {
            for bits in [1, 4, 11] {
                buckets_hold_what_has_their_leading_bits::<u32>(len, bits);
                buckets_hold_what_has_their_leading_bits::<u64>(len, bits);
                buckets_hold_what_has_their_leading_bits::<u128>(len, bits);
            }
        }
    }
}
