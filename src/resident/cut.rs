//! Cuts: a permuted fingerprint as bucket, head and tails, which lie in arrays of their own.
//!
//! All members of a bucket share its bits, so these are not stored. The next 32 bits, the head,
//! rule out nearly every candidate at small distances; the rest, in tails of 16 bits, is read only
//! where the head does not.

use crate::fingerprint::Fingerprint;

/// The most tails: 96 bits behind the head of a 128-bit fingerprint in a single bucket.
pub(super) const MAX_TAILS: usize = 6;

/// How many leading bits name the bucket, and how many tails follow the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    bucket_bits: u32,
    tails: usize,
}

/// The parts of one permuted fingerprint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) bucket: u32,
    pub(super) head: u32,
    pub(super) tails: [u16; MAX_TAILS],
}

impl Cut {
    /// The cut of no table.
    pub(super) const NONE: Self = Self { bucket_bits: 0, tails: 0 };

    /// Cuts fingerprints of width `F`; a bucket has at most 31 bits.
    pub(super) fn new<F: Fingerprint>(bucket_bits: u32) -> Self {
        let bucket_bits = bucket_bits.min(31).min(F::BITS - 1);
        let behind = F::BITS.saturating_sub(bucket_bits + u32::BITS);
        Self { bucket_bits, tails: behind.div_ceil(u16::BITS) as usize }
    }

    pub(super) fn bucket_bits(self) -> u32 {
        self.bucket_bits
    }

    pub(super) fn buckets(self) -> usize {
        1 << self.bucket_bits
    }

    /// Returns the bytes of a table of so many members.
    pub(super) fn bytes(self, members: u64) -> u64 {
        members * (4 + 2 * self.tails as u64) + 4 * self.buckets() as u64
    }

    pub(super) fn tails(self) -> usize {
        self.tails
    }

    #[allow(clippy::inline_always)]
    #[inline(always)]
    pub(super) fn parts<F: Fingerprint>(self, permuted: F) -> Parts {
        let mut parts = Parts {
            bucket: if self.bucket_bits == 0 {
                0
            } else {
                low(permuted >> (F::BITS - self.bucket_bits))
            },
            head: low((permuted << self.bucket_bits) >> (F::BITS - u32::BITS)),
            tails: [0; MAX_TAILS],
        };
        let mut at = self.bucket_bits + u32::BITS;
        for tail in parts.tails.iter_mut().take(self.tails) {
            *tail = low16((permuted << at) >> (F::BITS - u16::BITS));
            at += u16::BITS;
        }
        parts
    }

    /// Puts the parts together again.
    pub(super) fn join<F: Fingerprint>(self, parts: &Parts) -> F {
        let left = |value: u32, bits: u32, at: u32| {
            let aligned = u128::from(value) << (u128::BITS - bits);
            F::truncate((aligned >> at) >> (u128::BITS - F::BITS))
        };
        let mut joined = match self.bucket_bits {
            0 => F::ZERO,
            bits => left(parts.bucket, bits, 0),
        };
        joined = joined | left(parts.head, u32::BITS, self.bucket_bits);
        let mut at = self.bucket_bits + u32::BITS;
        for &tail in parts.tails.iter().take(self.tails) {
            joined = joined | left(u32::from(tail), u16::BITS, at);
            at += u16::BITS;
        }
        joined
    }
}

#[allow(clippy::inline_always)]
#[inline(always)]
fn low<F: Fingerprint>(fingerprint: F) -> u32 {
    u32::truncate(fingerprint.widen())
}

#[allow(clippy::inline_always, clippy::cast_possible_truncation)]
#[inline(always)]
fn low16<F: Fingerprint>(fingerprint: F) -> u16 {
    fingerprint.widen() as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comes_back<F: Fingerprint>() {
        let odd = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835_u128;
        for bucket_bits in 0..=31 {
            let cut = Cut::new::<F>(bucket_bits);
            let mut distances = 0;
            for x in 1..200_u128 {
                let (a, b) =
                    (F::truncate(odd.wrapping_mul(x)), F::truncate(odd.wrapping_mul(x * x + 1)));
                let (of_a, of_b) = (cut.parts(a), cut.parts(b));
                assert_eq!(cut.join::<F>(&of_a), a, "{bucket_bits} bits");
                let tails: u32 =
                    of_a.tails.iter().zip(of_b.tails).map(|(a, b)| (a ^ b).count_ones()).sum();
                let parts =
                    (of_a.bucket ^ of_b.bucket).count_ones() + (of_a.head ^ of_b.head).count_ones();
                assert_eq!(parts + tails, a.distance(b), "{bucket_bits} bits");
                distances += a.distance(b);
            }
            assert!(distances > 0);
        }
    }

    #[test]
    fn parts_keep_every_bit_of_every_width() {
        comes_back::<u32>();
        comes_back::<u64>();
        comes_back::<u128>();
    }
}
