//! Cuts: split a fingerprint into a bucket and columns of 16 bits.
//!
//! The blocks of a fingerprint form a ring, and a table begins at its own block. All members of a
//! bucket share its bits, so these are not stored. The first column is the next block, which alone
//! rejects nearly every candidate (see [`radii`](super::radii)).

use super::BLOCK_BITS;
use crate::fingerprint::Fingerprint;

/// Maximum number of columns: 7 blocks at 128 bits, and the remainder of a small bucket's block.
pub(super) const MAX_COLUMNS: usize = 8;

/// Where the ring is cut, and how many leading bits select the bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    /// Number of bits before the table's block.
    turn: u32,
    bucket_bits: u32,
    columns: usize,
}

/// The parts of one fingerprint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) bucket: u32,
    pub(super) columns: [u16; MAX_COLUMNS],
}

impl Cut {
    /// The cut of an empty table.
    pub(super) const NONE: Self = Self { turn: 0, bucket_bits: 0, columns: 0 };

    /// Cuts fingerprints of width `F` at a block; bucket bits are limited to one block.
    pub(super) fn new<F: Fingerprint>(block: u32, bucket_bits: u32) -> Self {
        let bucket_bits = bucket_bits.clamp(1, BLOCK_BITS);
        let others = (F::BITS / BLOCK_BITS - 1) as usize;
        let columns = others + usize::from(bucket_bits < BLOCK_BITS);
        Self { turn: block * BLOCK_BITS % F::BITS, bucket_bits, columns }
    }

    pub(super) fn bucket_bits(self) -> u32 {
        self.bucket_bits
    }

    pub(super) fn buckets(self) -> usize {
        1 << self.bucket_bits
    }

    pub(super) fn columns(self) -> usize {
        self.columns
    }

    /// Returns the column with the remainder of the table's block, `None` if the bucket is all of
    /// it.
    pub(super) fn rest(self) -> Option<usize> {
        (self.bucket_bits < BLOCK_BITS).then(|| self.columns - 1)
    }

    /// Joins a bucket and the remainder into the table's block.
    #[allow(clippy::inline_always)]
    #[inline(always)]
    pub(super) fn own(self, bucket: u32, rest: u16) -> u16 {
        low(bucket << (BLOCK_BITS - self.bucket_bits) | u32::from(rest) >> self.bucket_bits)
    }

    /// Returns the bucket of a table's block.
    pub(super) fn bucket(self, own: u16) -> u32 {
        u32::from(own) >> (BLOCK_BITS - self.bucket_bits)
    }

    /// Returns the table's block of some parts.
    pub(super) fn own_of(self, parts: &Parts) -> u16 {
        // If the bucket is the whole block, there is no remainder.
        self.own(parts.bucket, self.rest().map_or(0, |column| parts.columns[column]))
    }

    #[allow(clippy::inline_always)]
    #[inline(always)]
    pub(super) fn parts<F: Fingerprint>(self, fingerprint: F) -> Parts {
        let turned = turned(fingerprint, self.turn);
        let own = low(turned >> (F::BITS - BLOCK_BITS));
        let mut parts = Parts {
            bucket: u32::from(own) >> (BLOCK_BITS - self.bucket_bits),
            columns: [0; MAX_COLUMNS],
        };
        let mut right = F::BITS - BLOCK_BITS;
        for column in &mut parts.columns {
            if right == 0 {
                // All other blocks are done; the last column is the remainder of the table's block.
                *column = low(u32::from(own) << self.bucket_bits);
                break;
            }
            right -= BLOCK_BITS;
            *column = low(turned >> right);
        }
        parts
    }

    /// Joins the parts into the fingerprint.
    pub(super) fn join<F: Fingerprint>(self, parts: &Parts) -> F {
        let others = (F::BITS / BLOCK_BITS - 1) as usize;
        let blocks = parts.columns.iter().take(others).map(|&column| u128::from(column));
        let own = u128::from(self.own_of(parts));
        let joined = blocks.fold(own, |joined, block| joined << BLOCK_BITS | block);
        turned(F::truncate(joined), (F::BITS - self.turn) % F::BITS)
    }
}

/// Rotates the fingerprint left by `bits`, which is below the width.
#[allow(clippy::inline_always)]
#[inline(always)]
fn turned<F: Fingerprint>(fingerprint: F, bits: u32) -> F {
    match bits {
        0 => fingerprint,
        bits => fingerprint << bits | fingerprint >> (F::BITS - bits),
    }
}

#[allow(clippy::inline_always, clippy::cast_possible_truncation)]
#[inline(always)]
fn low<F: Fingerprint>(fingerprint: F) -> u16 {
    fingerprint.widen() as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts_join_again<F: Fingerprint>() {
        let odd = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835_u128;
        for block in 0..F::BITS / BLOCK_BITS {
            for bucket_bits in 1..=BLOCK_BITS {
                let cut = Cut::new::<F>(block, bucket_bits);
                for x in 1..200_u128 {
                    let (a, b) = (
                        F::truncate(odd.wrapping_mul(x)),
                        F::truncate(odd.wrapping_mul(x * x + 1)),
                    );
                    let (of_a, of_b) = (cut.parts(a), cut.parts(b));
                    assert_eq!(cut.join::<F>(&of_a), a, "block {block}, {bucket_bits} bits");
                    assert_eq!(cut.bucket(cut.own_of(&of_a)), of_a.bucket, "{bucket_bits}");
                    let lead = F::high_mask(bucket_bits) >> (block * BLOCK_BITS);
                    let apart = (of_a.bucket ^ of_b.bucket).count_ones();
                    assert_eq!(apart, (a & lead).distance(b & lead), "{block}, {bucket_bits}");
                    let columns = of_a.columns.iter().zip(of_b.columns).take(cut.columns());
                    let columns: u32 = columns.map(|(a, b)| (a ^ b).count_ones()).sum();
                    assert_eq!(apart + columns, a.distance(b), "block {block}, {bucket_bits}");
                }
            }
        }
    }

    #[test]
    fn parts_keep_every_bit_of_every_width() {
        parts_join_again::<u32>();
        parts_join_again::<u64>();
        parts_join_again::<u128>();
    }

    #[test]
    fn the_first_column_is_the_next_block_of_the_ring() {
        let cut = |block| Cut::new::<u64>(block, BLOCK_BITS);
        let fingerprint = 0x0123_4567_89ab_cdef_u64;
        assert_eq!(cut(0).parts(fingerprint).bucket, 0x0123);
        assert_eq!(cut(0).parts(fingerprint).columns[..3], [0x4567, 0x89ab, 0xcdef]);
        assert_eq!(cut(3).parts(fingerprint).bucket, 0xcdef);
        assert_eq!(cut(3).parts(fingerprint).columns[..3], [0x0123, 0x4567, 0x89ab]);
    }
}
