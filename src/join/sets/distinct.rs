//! Distinct: sorts fingerprints and removes repeated ones.

use std::borrow::Cow;

use rayon::prelude::*;

use super::groups;
use super::partition::{self, Partition};
use crate::bits::Digits;
use crate::fingerprint::Fingerprint;
use crate::pages::Pages;

/// Smaller inputs are sorted on one thread, before other threads would have started.
const PARALLEL_MIN: usize = 16 << 10;
/// A bucket this many times its even share is sorted by comparison.
const SKEWED: usize = 8;

/// Sorts and deduplicates; borrows the input if it is strictly ascending already.
pub(in crate::join) fn distinct<F: Fingerprint>(fps: &[F]) -> Cow<'_, [F]> {
    if fps.is_sorted_by(|a, b| a < b) {
        return Cow::Borrowed(fps);
    }
    if fps.len() < PARALLEL_MIN {
        let mut sorted = fps.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        return Cow::Owned(sorted);
    }
    Cow::Owned(sort_distinct(fps))
}

fn sort_distinct<F: Fingerprint>(fps: &[F]) -> Vec<F> {
    let bits = partition::bits_for(fps.len());
    let mut room = Pages::zeroed(fps.len());
    let partition = Partition::new(fps, &Digits::of_span(0, bits), room.as_mut_slice());
    let mut sorted = vec![F::ZERO; fps.len()];
    let mut rest = sorted.as_mut_slice();
    let mut buckets = Vec::new();
    for bucket in 0..1_usize << bits {
        let (to, behind) = rest.split_at_mut(partition.len(bucket));
        buckets.push((bucket, to));
        rest = behind;
    }
    let average = fps.len() >> bits;
    let kept: Vec<(usize, usize)> = buckets
        .into_par_iter()
        .with_max_len(1)
        .map_init(Buffers::<F>::default, |buffers, (bucket, to)| {
            let pieces = partition.pieces(bucket);
            if to.len() > average * SKEWED {
                groups::gather(pieces, &mut buffers.0);
                to.copy_from_slice(&buffers.0);
                to.par_sort_unstable();
            } else {
                sort(pieces, bits, to, buffers);
            }
            (to.len(), drop_repeated(to))
        })
        .collect();
    let (mut from, mut end) = (0, 0);
    for (len, kept) in kept {
        if from != end {
            sorted.copy_within(from..from + kept, end);
        }
        from += len;
        end += kept;
    }
    sorted.truncate(end);
    sorted
}

/// The gathered members of a bucket, and the ends of its groups.
type Buffers<F> = (Vec<F>, Vec<u32>);

/// Sorts a bucket in groups of a few members.
fn sort<'p, F: Fingerprint>(
    pieces: impl Iterator<Item = &'p [F]>,
    skipped: u32,
    to: &mut [F],
    (gathered, ends): &mut Buffers<F>,
) {
    let bits = (to.len() / 4).checked_ilog2().unwrap_or(0).min(groups::BITS_MAX);
    groups::gather(pieces, gathered);
    groups::group(gathered, &Digits::of_span(skipped, bits), to, ends);
    let mut start = 0;
    for &end in ends.iter() {
        to[start..end as usize].sort_unstable();
        start = end as usize;
    }
}

/// Moves the distinct members to the front and returns their number.
fn drop_repeated<F: Fingerprint>(sorted: &mut [F]) -> usize {
    if sorted.is_sorted_by(|a, b| a < b) {
        return sorted.len();
    }
    let Some(&first) = sorted.first() else { return 0 };
    let mut last = first;
    let mut kept = 1;
    for at in 1..sorted.len() {
        let next = sorted[at];
        if next != last {
            sorted[kept] = next;
            kept += 1;
        }
        last = next;
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_every_shape_are_sorted_and_deduplicated() {
        let word = |at: u64| (at ^ (at << 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for len in [0, 1, 2, 1000, PARALLEL_MIN as u64, 100_000] {
            for (name, shape) in [
                ("even", (|x| x) as fn(u64) -> u64),
                ("repeated", |x| x % 5000),
                ("one", |_| 7),
                ("one prefix", |x| x >> 20),
                ("two prefixes", |x| (x >> 20) | (x << 63)),
            ] {
                let set: Vec<u64> = (0..len).map(|at| shape(word(at))).collect();
                let mut expected = set.clone();
                expected.sort_unstable();
                expected.dedup();
                assert!(distinct(&set) == expected, "{name} {len}");
                let widen = |x: &u64| u128::from(*x) << 50;
                let wide: Vec<u128> = set.iter().map(widen).collect();
                assert!(
                    distinct(&wide).iter().copied().eq(expected.iter().map(widen)),
                    "{name} {len}"
                );
            }
        }
    }
}
