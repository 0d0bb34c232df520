//! Prefix sort: a set becomes a permuted copy in which equal leads stand together.
//!
//! Only the bytes of the lead are sorted; the order within a group does not matter.

use rayon::prelude::*;
use rdst::{RadixKey, RadixSort};

use super::blocks::Table;
use crate::fingerprint::Fingerprint;

/// Below this a set is permuted and sorted by the thread that has it.
const PARALLEL_MIN: usize = 1 << 14;

/// A fingerprint that is sorted by its first bytes only.
#[derive(Clone, Copy)]
struct Prefix<F, const BYTES_SORTED: usize>(F);

impl<F: Fingerprint, const BYTES_SORTED: usize> RadixKey for Prefix<F, BYTES_SORTED> {
    const LEVELS: usize = BYTES_SORTED;

    #[inline]
    fn get_level(&self, level: usize) -> u8 {
        self.0.get_level(F::BYTES - BYTES_SORTED + level)
    }
}

/// Returns the permuted members, sorted by as many bits as lead the table.
///
/// Takes a second copy of the set while it sorts.
pub(super) fn by_lead<F: Fingerprint>(members: &[F], table: &Table<F>) -> Vec<F> {
    match table.lead {
        0..=8 => by_bytes::<F, 1>(members, table),
        9..=16 => by_bytes::<F, 2>(members, table),
        17..=24 => by_bytes::<F, 3>(members, table),
        _ => by_bytes::<F, 4>(members, table),
    }
}

fn by_bytes<F: Fingerprint, const N: usize>(members: &[F], table: &Table<F>) -> Vec<F> {
    let parallel = members.len() >= PARALLEL_MIN;
    let mut prefixes = vec![Prefix::<F, N>(F::ZERO); members.len()];
    if parallel {
        let part = PARALLEL_MIN / 4;
        let parts = members.par_chunks(part).zip(prefixes.par_chunks_mut(part));
        parts.for_each(|(from, to)| table.permutation.apply_all(from, to, Prefix));
    } else {
        table.permutation.apply_all(members, &mut prefixes, Prefix);
    }
    let sort = prefixes.radix_sort_builder();
    if parallel {
        sort.sort();
    } else {
        sort.with_single_threaded_tuner().with_parallel(false).sort();
    }
    prefixes.into_iter().map(|prefix| prefix.0).collect()
}
