//! Chains: the maximum distance of a match after each block of the ring.
//!
//! Every block has a need: its radius plus one, or zero if it is not probed. The needs sum to more
//! than the distance, so a match differs in fewer bits than the needs sum to. Then the ring has a
//! block from which on the match stays below the needs: for every `l`, the first `l` blocks differ
//! in fewer bits than they need (the cycle lemma; Qin and Xiao, *Pigeonring*, VLDB 2018). So a
//! table may drop a candidate after any column that is too far, long before the distance is
//! exceeded; another table finds it.

use super::BLOCK_BITS;
use super::cut::{Cut, MAX_COLUMNS};
use super::radii::Radii;
use crate::fingerprint::Fingerprint;

/// `LIKELY[i]`: the distance at which at least one of 32 random members survives column `i` with
/// probability 1/2.
const LIKELY: [u32; MAX_COLUMNS] = [4, 10, 17, 24, 31, 38, 45, 53];

/// The conditions that one table sets for a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chain {
    /// Maximum number of differing bits up to each column, including the bucket's bits.
    pub(super) within: [u32; MAX_COLUMNS],
    /// How many columns to prefetch together, for each number of flips.
    ahead: [u8; BLOCK_BITS as usize + 1],
}

impl Default for &Chain {
    fn default() -> Self {
        static NONE: Chain =
            Chain { within: [0; MAX_COLUMNS], ahead: [1; BLOCK_BITS as usize + 1] };
        &NONE
    }
}

impl Chain {
    fn new(within: [u32; MAX_COLUMNS], columns: usize, radius: u32) -> Self {
        let mut ahead = [1; BLOCK_BITS as usize + 1];
        for (flips, ahead) in (0..=radius).zip(&mut ahead) {
            let near = within.iter().zip(LIKELY).take(columns.saturating_sub(1));
            let passed =
                near.take_while(|&(&within, likely)| within.saturating_sub(flips) >= likely);
            *ahead += u8::try_from(passed.count()).expect("there are at most eight columns");
        }
        Self { within, ahead }
    }

    /// Returns the maximum difference in the first column of a bucket at `flips` flips.
    #[allow(clippy::inline_always)]
    #[inline(always)]
    pub(super) fn first(&self, flips: u32) -> u32 {
        self.within[0].saturating_sub(flips)
    }

    /// Returns true if the table finds a member that differs from the query in these bits.
    pub(super) fn finds<F: Fingerprint>(
        &self,
        cut: Cut,
        radius: Option<u32>,
        differing: F,
    ) -> bool {
        let Some(radius) = radius else { return false };
        let parts = cut.parts(differing);
        let mut sum = parts.bucket.count_ones();
        let columns = parts.columns.iter().zip(self.within).take(cut.columns());
        sum <= radius
            && columns.fold(true, |passes, (column, within)| {
                sum += column.count_ones();
                passes && sum <= within
            })
    }

    /// Returns how many columns of a bucket are prefetched before the first is compared.
    #[allow(clippy::inline_always)]
    #[inline(always)]
    pub(super) fn ahead(&self, flips: u32) -> usize {
        usize::from(self.ahead[flips as usize])
    }
}

/// The radii of all tables, and the chains that follow from them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Route {
    pub(super) radii: Radii,
    pub(super) distance: u32,
    pub(super) chains: Vec<Chain>,
}

impl Route {
    /// Computes the chains of the tables that begin at each block of a ring.
    pub(super) fn new(radii: Radii, blocks: usize, columns: usize, distance: u32) -> Self {
        let chain = |block: usize| {
            let mut within = [distance; MAX_COLUMNS];
            let mut needed = radii.need(block);
            for (step, within) in (1..blocks).zip(&mut within) {
                needed += radii.need((block + step) % blocks);
                *within = needed.saturating_sub(1).min(distance);
            }
            Chain::new(within, columns, radii.of(block).unwrap_or(0))
        };
        Self { radii, distance, chains: (0..blocks).map(chain).collect() }
    }

    /// Returns the route of a scan, which compares all columns of every candidate.
    pub(super) fn of_scan(columns: usize, distance: u32) -> Self {
        let chain = Chain::new([distance; MAX_COLUMNS], columns, distance);
        Self { radii: Radii::default(), distance, chains: vec![chain] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `check` with every way to distribute up to `left` differing bits over the blocks.
    fn spreads(blocks: usize, left: u32, so_far: &mut Vec<u32>, check: &mut impl FnMut(&[u32])) {
        if so_far.len() == blocks {
            return check(so_far);
        }
        for bits in 0..=left.min(BLOCK_BITS) {
            so_far.push(bits);
            spreads(blocks, left - bits, so_far, check);
            so_far.pop();
        }
    }

    #[test]
    fn every_match_passes_the_chain_of_some_table() {
        let radii_of = [
            (2, 1, vec![Some(0), Some(0)]),
            (2, 5, vec![Some(3), Some(1)]),
            (4, 3, vec![Some(0); 4]),
            (4, 10, vec![Some(2), Some(2), Some(2), Some(1)]),
            (4, 7, vec![None, Some(4), None, Some(2)]),
            (4, 6, vec![Some(3), Some(2)]),
            (8, 9, vec![Some(1), Some(1), Some(0), Some(0), Some(0), Some(0), Some(0), Some(0)]),
            (8, 8, vec![Some(4), None, Some(3)]),
        ];
        let (mut all, mut dropped) = (0, 0);
        for (blocks, distance, of_tables) in radii_of {
            let radii = Radii::new(&of_tables);
            let route = Route::new(radii, blocks, blocks - 1, distance);
            spreads(blocks, distance, &mut Vec::new(), &mut |bits| {
                let passes = |block: usize| {
                    let Some(radius) = route.radii.of(block) else { return false };
                    let mut sum = bits[block];
                    sum <= radius
                        && (1..blocks).zip(route.chains[block].within).all(|(step, within)| {
                            sum += bits[(block + step) % blocks];
                            sum <= within
                        })
                };
                assert!((0..blocks).any(passes), "{bits:?} within {distance} by {route:?}");
                let found = |block: &usize| route.radii.of(*block) >= Some(bits[*block]);
                all += (0..blocks).filter(found).count();
                dropped += (0..blocks).filter(found).filter(|&block| !passes(block)).count();
            });
        }
        assert!(all > 0 && dropped * 4 > all, "{dropped} of {all} dropped by at least one table");
    }

    #[test]
    fn columns_that_most_members_reach_are_prefetched_together() {
        let radii = Radii::new(&[Some(0); 4]);
        assert_eq!(Route::new(radii, 4, 3, 3).chains[0].ahead(0), 1);
        let scan = &Route::of_scan(3, 20).chains[0];
        assert_eq!((scan.ahead(0), scan.ahead(8), scan.ahead(16)), (3, 3, 2));
    }
}
