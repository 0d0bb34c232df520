//! Probe masks: the flips of a prefix that are probed.

use std::iter::FusedIterator;

use crate::bits::low_ones;

/// Returns every mask of at most `radius` bits among `prefix_bits`, fewest bits first.
///
/// The masks are low-aligned: they flip a prefix that is in the low `prefix_bits` bits of a number.
/// Each mask is returned once; the first is 0; masks with the same number of bits ascend. A radius
/// above the prefix length is treated as that length. Prefixes have at most 128 bits. Allocates
/// nothing.
///
/// ```
/// use hamdex::plan::probe_masks;
///
/// let masks: Vec<u128> = probe_masks(3, 2).collect();
/// assert_eq!(masks, [0b000, 0b001, 0b010, 0b100, 0b011, 0b101, 0b110]);
/// ```
pub fn probe_masks(prefix_bits: u32, radius: u32) -> ProbeMasks {
    let prefix_bits = prefix_bits.min(u128::BITS);
    ProbeMasks { next: Some(0), flips: 0, radius: radius.min(prefix_bits), prefix_bits }
}

/// Iterator over the flips of a prefix, returned by [`probe_masks`].
///
/// ```
/// use hamdex::plan::{ProbeMasks, probe_masks};
///
/// let masks: ProbeMasks = probe_masks(16, 1);
/// assert_eq!(masks.count(), 17);
/// ```
#[derive(Debug, Clone)]
pub struct ProbeMasks {
    next: Option<u128>,
    flips: u32,
    radius: u32,
    prefix_bits: u32,
}

impl Iterator for ProbeMasks {
    type Item = u128;

    #[inline]
    fn next(&mut self) -> Option<u128> {
        let mask = self.next?;
        self.next =
            following(mask).filter(|&next| next <= low_ones(self.prefix_bits)).or_else(|| {
                (self.flips < self.radius).then(|| {
                    self.flips += 1;
                    low_ones(self.flips)
                })
            });
        Some(mask)
    }
}

impl FusedIterator for ProbeMasks {}

/// Returns the next larger number with as many bits set (Gosper), if it fits 128 bits.
fn following(mask: u128) -> Option<u128> {
    let lowest = mask & mask.wrapping_neg();
    let carried = mask.checked_add(lowest).filter(|_| mask != 0)?;
    Some(carried | ((mask ^ carried) >> 2 >> lowest.trailing_zeros()))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::bits::ball;

    #[test]
    fn radius_zero_gives_the_prefix_itself() {
        for prefix_bits in [0, 1, 16, 64, 128] {
            assert_eq!(probe_masks(prefix_bits, 0).collect::<Vec<_>>(), [0]);
        }
        assert_eq!(probe_masks(0, 5).collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn every_flip_is_returned_once_and_nearest_first() {
        for prefix_bits in 0..=12 {
            for radius in 0..=14 {
                let masks: Vec<u128> = probe_masks(prefix_bits, radius).collect();
                let distinct: HashSet<u128> = masks.iter().copied().collect();
                assert_eq!(masks.len(), distinct.len(), "{prefix_bits} {radius}");
                let wanted = (0..1_u128 << prefix_bits).filter(|m| m.count_ones() <= radius);
                assert_eq!(distinct, wanted.collect::<HashSet<_>>(), "{prefix_bits} {radius}");
                let keys = masks.iter().map(|mask| (mask.count_ones(), mask));
                assert!(keys.is_sorted(), "{prefix_bits} {radius}");
            }
        }
    }

    #[test]
    fn wide_prefixes_end_at_their_last_bit() {
        for (prefix_bits, radius) in [(127, 2), (128, 1), (128, 2), (128, 3), (64, 3)] {
            let wanted = ball(prefix_bits, radius);
            let masks: Vec<u128> = probe_masks(prefix_bits, radius).collect();
            assert_eq!(masks.len() as u64, wanted, "{prefix_bits} {radius}");
            assert!(masks.iter().all(|mask| mask.count_ones() <= radius));
            assert!(masks.iter().all(|&mask| mask <= low_ones(prefix_bits)));
        }
    }
}
