//! `SimHash`: computes one fingerprint from weighted feature hashes.
//!
//! For each bit, a feature adds its weight if its hash has a 1, and subtracts it if it has a 0. The
//! fingerprint has a 1 if the sum is above zero. The sums are exact for any number of features of
//! any weight.
//!
//! Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002; Manku, Jain
//! and Das Sarma, "Detecting near-duplicates for web crawling", WWW 2007.
#![expect(clippy::indexing_slicing, reason = "planes are numbered here, by bits of the weights")]
// Inlining compiles the shared code for each instruction set.
#![allow(clippy::inline_always)]

use super::signature::Signature;
use crate::fingerprint::Fingerprint;
use crate::kernel::{self, Work};

/// Number of counter planes, enough for 2^64 features of weight 2^63.
const PLANES: usize = 128;

/// Pending words of one plane that are added together.
const BATCH: usize = 1024;

/// Reduces weighted feature hashes to their `SimHash` fingerprint.
///
/// A sum of zero gives the bit 0. Returns `None` if all weights are 0 or there are no features, so
/// that texts without features are not near-duplicates of each other.
///
/// ```
/// use hamdex::sketch::simhash;
///
/// let features = [(0b100101_u64, 4), (0b101011, 5)];
/// assert_eq!(simhash(features), Some(0b101011));
/// assert_eq!(simhash::<u64>([]), None);
/// ```
pub fn simhash<F: Fingerprint>(features: impl IntoIterator<Item = (F, i64)>) -> Option<F> {
    let mut sums = BitSums::new();
    sums.extend(features);
    sums.fingerprint()
}

/// The weighted sum of every bit position over all features.
///
/// Plane `j` holds bit `j` of the count of every position. Words are pending in a list for each bit
/// of their weights, and are added in batches by a tree of carry-save adders (Harley and Seal),
/// without a loop over bits.
///
/// ```
/// use hamdex::sketch::BitSums;
///
/// let mut sums = BitSums::<u32>::new();
/// sums.add(0b100101, 4);
/// sums.add(0b101011, 5);
/// let low: Vec<i128> = (26..32).map(|bit| sums.sum(bit)).collect();
/// assert_eq!(low, [9, -9, 1, -1, 1, 9]);
/// sums.clear();
/// assert_eq!(sums.fingerprint(), None);
/// ```
#[derive(Clone)]
pub struct BitSums<F> {
    /// Binary digits of the counts, without pending words.
    planes: [F; PLANES],
    /// Number of used planes; all others are zero.
    used: usize,
    /// Words to be added at each plane.
    pending: Vec<Vec<F>>,
    /// Counts of features that were added together, lowest bit first; often empty.
    weighted: Vec<u64>,
    /// The sum of the absolute weights.
    total: u128,
}

impl<F: Fingerprint> BitSums<F> {
    /// Creates sums of zero, without any features.
    pub fn new() -> Self {
        Self {
            planes: [F::ZERO; PLANES],
            used: 0,
            pending: Vec::new(),
            weighted: Vec::new(),
            total: 0,
        }
    }

    /// Adds one feature; a negative weight inverts its bits.
    #[inline]
    pub fn add(&mut self, feature: F, weight: i64) {
        if weight == 1 {
            self.total += 1;
            return self.push(0, feature);
        }
        let ones = if weight < 0 { !feature } else { feature };
        let mut digits = weight.unsigned_abs();
        self.total += u128::from(digits);
        while digits != 0 {
            self.push(digits.trailing_zeros() as usize, ones);
            digits &= digits - 1;
        }
    }

    /// Removes all features and keeps the memory.
    pub fn clear(&mut self) {
        self.planes.iter_mut().take(self.used).for_each(|plane| *plane = F::ZERO);
        self.pending.iter_mut().for_each(Vec::clear);
        self.weighted.clear();
        (self.used, self.total) = (0, 0);
    }

    #[inline]
    fn push(&mut self, plane: usize, ones: F) {
        if self.pending.len() <= plane {
            self.pending.resize_with(plane + 1, Vec::new);
        }
        let pending = &mut self.pending[plane];
        pending.push(ones);
        if pending.len() >= BATCH {
            self.flush(plane);
        }
    }

    /// Adds the pending words of a plane to the counts.
    fn flush(&mut self, plane: usize) {
        let mut words = std::mem::take(&mut self.pending[plane]);
        kernel::dispatch(Flush { sums: self, plane, words: &mut words });
        words.clear();
        self.pending[plane] = words;
    }

    /// Adds the counts of features that were added together to the planes.
    fn flush_weighted(&mut self) {
        let weighted = std::mem::take(&mut self.weighted);
        let any = weighted.iter().fold(0, |any, &count| any | count);
        for plane in 0..(u64::BITS - any.leading_zeros()) as usize {
            let digit = |word, &count: &u64| word << 1 | u128::from(count >> plane & 1);
            self.carry_in(plane, F::truncate(weighted.iter().rev().fold(0, digit)));
        }
        self.weighted = weighted;
        self.weighted.clear();
    }

    /// Adds `2^plane` to the count of every position that is set in `ones`.
    ///
    /// Carries stay within the planes, because the total fits in 128 bits.
    #[inline(always)]
    fn carry_in(&mut self, mut plane: usize, mut ones: F) {
        while ones != F::ZERO {
            let digit = self.planes[plane];
            self.planes[plane] = digit ^ ones;
            ones = digit & ones;
            plane += 1;
        }
        self.used = self.used.max(plane);
    }

    /// Returns the sum at one bit position, 0 being the most significant.
    ///
    /// Positions beyond the width have the sum 0.
    pub fn sum(&self, bit: u32) -> i128 {
        if bit >= F::BITS {
            return 0;
        }
        let at = |word: F| (word >> (F::BITS - 1 - bit)).widen() & 1;
        let planes = self.planes.iter().take(self.used).rev();
        let counted = planes.fold(0_u128, |count, &plane| (count << 1) + at(plane));
        let of_plane = |(words, plane): (&Vec<F>, u32)| {
            words.iter().map(|&word| at(word)).sum::<u128>() << plane
        };
        let pending: u128 = self.pending.iter().zip(0..).map(of_plane).sum();
        // The list is often empty.
        let weighted = self.weighted.get((F::BITS - 1 - bit) as usize).copied().unwrap_or(0);
        // The count is at most the total, so the difference always fits.
        let count = counted + pending + u128::from(weighted);
        let (count, total) = (count.cast_signed(), self.total.cast_signed());
        count - (total - count)
    }

    /// Returns the fingerprint; `None` without features of any weight.
    ///
    /// ```
    /// use hamdex::sketch::BitSums;
    ///
    /// let mut sums = BitSums::<u32>::new();
    /// assert_eq!(sums.fingerprint(), None);
    /// sums.extend([(0b100101, 4), (0b101011, 5)]);
    /// assert_eq!(sums.fingerprint(), Some(0b101011));
    /// ```
    pub fn fingerprint(&self) -> Option<F> {
        self.clone().signature()
    }

    /// Returns the share of the total weight that sets each bit, least significant bit first.
    ///
    /// In units of 1/65,536, rounded down; `None` if all weights are 0 or there are no features.
    pub(crate) fn shares(&mut self) -> Option<Vec<u16>> {
        if self.total == 0 {
            return None;
        }
        self.flush_all();
        let at = |word: F, bit: u32| (word >> bit).widen() & 1;
        let count = |bit| {
            let planes = self.planes.iter().take(self.used).rev();
            planes.fold(0_u128, |count, &plane| (count << 1) + at(plane, bit))
        };
        // For totals of 2^112 and more, drops low digits, which are below the unit of a share.
        let spare = u128::BITS - self.total.leading_zeros();
        let shift = spare.saturating_sub(u128::BITS - HALF_BITS - 1);
        let total = (self.total >> shift).max(1);
        let share = |bit| ((count(bit) >> shift) << (HALF_BITS + 1)) / total;
        // The full weight, 65,536 units, does not fit in 16 bits.
        Some((0..F::BITS).map(|bit| u16::try_from(share(bit)).unwrap_or(u16::MAX)).collect())
    }

    /// Returns the fingerprint with each bit compared with its usual share instead of a half.
    ///
    /// A bit is 1 if its count is above `1/2 + offset/65,536` of the total weight; the comparison
    /// is exact. `offsets` has at least one number for each bit, least significant bit first.
    /// Offsets shrink with the weight ([`shrunk`]). If all are 0, this is [`BitSums::fingerprint`].
    pub(crate) fn signature_above(&mut self, offsets: &[i16]) -> Option<F> {
        let total = self.total;
        let trust = trust(total);
        // The total is split, because its product with 16 more bits does not fit.
        let (high, low) = (total >> (HALF_BITS + 1), total & 0xffff);
        let (mut digits, mut wanted) = (0, [F::ZERO; PLANES]);
        debug_assert!(offsets.len() >= F::BITS as usize, "every bit has an offset");
        for (bit, &offset) in (0..F::BITS).zip(offsets) {
            let part = u128::from(shrunk(offset, trust).abs_diff(-(1 << HALF_BITS)));
            let threshold = high * part + ((low * part) >> (HALF_BITS + 1));
            let planes = (u128::BITS - threshold.leading_zeros()) as usize;
            let one = F::truncate(1 << bit);
            for (plane, wanted) in wanted.iter_mut().enumerate().take(planes) {
                if threshold >> plane & 1 == 1 {
                    *wanted = *wanted | one;
                }
            }
            digits = digits.max(planes);
        }
        self.compare(digits, |plane| wanted[plane])
    }

    /// Adds everything pending to the counts.
    fn flush_all(&mut self) {
        (0..self.pending.len()).for_each(|plane| self.flush(plane));
        self.flush_weighted();
    }

    /// Returns the bits whose counts are above their thresholds.
    ///
    /// `wanted` returns the binary digits of all thresholds at one of `digits` planes.
    #[inline]
    fn compare(&mut self, digits: usize, wanted: impl Fn(usize) -> F) -> Option<F> {
        if self.total == 0 {
            return None;
        }
        self.flush_all();
        // Compares all positions at once, from the top digit down.
        let top = self.used.max(digits);
        let (mut above, mut equal) = (F::ZERO, F::ONES);
        for (plane, &digit) in self.planes.iter().enumerate().take(top).rev() {
            let wanted = wanted(plane);
            above = above | (equal & digit & !wanted);
            equal = equal & !(digit ^ wanted);
        }
        Some(above)
    }
}

/// Binary digits of a half in units of 2^-16, the unit of offsets.
const HALF_BITS: u32 = 15;

/// Weight at which half of an offset is used.
///
/// In a few features the usual share hardly shows, and the full offset would flip bits that near
/// texts share. In a page it dominates.
const DOUBT: u128 = 128;

/// Returns the part of an offset to use for a total weight, in units of 1/65,536.
fn trust(total: u128) -> i32 {
    let total = total.min(1 << 64);
    i32::try_from((total << (HALF_BITS + 1)) / (total + DOUBT)).expect("65,536 parts at most")
}

/// Returns that part of an offset, rounded down.
fn shrunk(offset: i16, trust: i32) -> i32 {
    let part = (i64::from(offset) * i64::from(trust)) >> (HALF_BITS + 1);
    i32::try_from(part).expect("a part of an offset is no larger")
}

impl<F: Fingerprint> Signature<F> for BitSums<F> {
    #[inline]
    fn add(&mut self, feature: F, weight: i64) {
        Self::add(self, feature, weight);
    }

    fn add_all(&mut self, features: impl Iterator<Item = F>) {
        if self.pending.is_empty() {
            self.pending.push(Vec::new());
        }
        let pending = &mut self.pending[0];
        let before = pending.len();
        pending.extend(features);
        let (added, full) = (pending.len() - before, pending.len() >= BATCH);
        self.total += added as u128;
        if full {
            self.flush(0);
        }
    }

    fn add_weighted(&mut self, features: impl Iterator<Item = (F, u32)> + Clone) {
        let (mut count, mut any) = (0, 0);
        for (_, weight) in features.clone() {
            self.total += u128::from(weight);
            (count, any) = (count + 1, any | weight);
        }
        let bits = u32::BITS - any.leading_zeros();
        if count >= MANY && bits + (count.ilog2() + 1) <= u32::BITS {
            self.weighted.resize(F::BITS as usize, 0);
            return kernel::dispatch(AddWeighted { features, counts: &mut self.weighted });
        }
        let planes = bits as usize;
        if self.pending.len() < planes {
            self.pending.resize_with(planes, Vec::new);
        }
        for plane in 0..planes {
            let pending = &mut self.pending[plane];
            let mut len = pending.len();
            pending.resize(len + count, F::ZERO);
            for (feature, weight) in features.clone() {
                // Branchless: the bits of a weight are unpredictable.
                pending[len] = feature;
                len += usize::from(weight >> plane & 1 == 1);
            }
            pending.truncate(len);
            if len >= BATCH {
                self.flush(plane);
            }
        }
    }

    fn signature(&mut self) -> Option<F> {
        // A sum is above zero if the count is above half of the total.
        let half = self.total / 2;
        let digits = (u128::BITS - half.leading_zeros()) as usize;
        self.compare(digits, |plane| if half >> plane & 1 == 1 { F::ONES } else { F::ZERO })
    }

    fn clear(&mut self) {
        Self::clear(self);
    }
}

/// The addition of many words at one plane.
struct Flush<'a, F> {
    sums: &'a mut BitSums<F>,
    plane: usize,
    words: &'a mut Vec<F>,
}

impl<F: Fingerprint> Work for Flush<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { sums, plane, words } = self;
        // Zeros complete the last block and add nothing.
        words.resize(words.len().next_multiple_of(BLOCK), F::ZERO);
        let (wide, rest) = words.split_at(words.len() - words.len() % (BLOCK * LANES));
        add_blocks::<F, LANES>(sums, plane, wide);
        add_blocks::<F, 1>(sums, plane, rest);
    }
}

/// Minimum number of features for which adding them together is faster.
const MANY: usize = 64;

/// The addition of many weights to the counts of bits; their sum fits in 32 bits.
struct AddWeighted<'a, I> {
    features: I,
    counts: &'a mut [u64],
}

impl<F: Fingerprint, I: Iterator<Item = (F, u32)> + Clone> Work for AddWeighted<'_, I> {
    type Output = ();

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // reads 32 bits at a time
    fn run(self) {
        let (parts, _) = self.counts.as_chunks_mut::<32>();
        for (shift, counts) in (0..).step_by(32).zip(parts) {
            let mut sums = [0_u32; 32];
            for (feature, weight) in self.features.clone() {
                let bits = (feature >> shift).widen() as u32;
                for (bit, sum) in sums.iter_mut().enumerate() {
                    *sum += if bits & 1 << bit == 0 { 0 } else { weight };
                }
            }
            for (count, sum) in counts.iter_mut().zip(sums) {
                *count += u64::from(sum);
            }
        }
    }
}

/// Input words of one tree of adders.
const BLOCK: usize = 16;

/// Number of parallel trees, as wide as the widest vectors.
const LANES: usize = 8;

#[inline(always)]
fn add_blocks<F: Fingerprint, const N: usize>(sums: &mut BitSums<F>, plane: usize, words: &[F]) {
    let (rows, _) = words.as_chunks::<N>();
    let (blocks, _) = rows.as_chunks::<BLOCK>();
    if blocks.is_empty() {
        return;
    }
    let zero = [F::ZERO; N];
    let (mut ones, mut twos, mut fours, mut eights) = (zero, zero, zero, zero);
    for block in blocks {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = block;
        let (twos_a, twos_b) = (add(&mut ones, a, b), add(&mut ones, c, d));
        let fours_a = add(&mut twos, &twos_a, &twos_b);
        let (twos_a, twos_b) = (add(&mut ones, e, f), add(&mut ones, g, h));
        let fours_b = add(&mut twos, &twos_a, &twos_b);
        let eights_a = add(&mut fours, &fours_a, &fours_b);
        let (twos_a, twos_b) = (add(&mut ones, i, j), add(&mut ones, k, l));
        let fours_a = add(&mut twos, &twos_a, &twos_b);
        let (twos_a, twos_b) = (add(&mut ones, m, n), add(&mut ones, o, p));
        let fours_b = add(&mut twos, &twos_a, &twos_b);
        let eights_b = add(&mut fours, &fours_a, &fours_b);
        let sixteens = add(&mut eights, &eights_a, &eights_b);
        for word in sixteens {
            sums.carry_in(plane + 4, word);
        }
    }
    for (digits, plane) in [ones, twos, fours, eights].into_iter().zip(plane..) {
        for word in digits {
            sums.carry_in(plane, word);
        }
    }
}

/// Adds two words to a sum at each position and returns the carries.
#[inline(always)]
fn add<F: Fingerprint, const N: usize>(sum: &mut [F; N], a: &[F; N], b: &[F; N]) -> [F; N] {
    let mut carry = [F::ZERO; N];
    for (((sum, carry), &a), &b) in sum.iter_mut().zip(&mut carry).zip(a).zip(b) {
        let either = *sum ^ a;
        *carry = (*sum & a) | (either & b);
        *sum = either ^ b;
    }
    carry
}

impl<F: Fingerprint> Default for BitSums<F> {
    fn default() -> Self {
        Self::new()
    }
}

impl<F: Fingerprint> Extend<(F, i64)> for BitSums<F> {
    fn extend<T: IntoIterator<Item = (F, i64)>>(&mut self, features: T) {
        for (feature, weight) in features {
            self.add(feature, weight);
        }
    }
}

impl<F: Fingerprint> std::fmt::Debug for BitSums<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries((0..F::BITS).map(|bit| self.sum(bit))).finish()
    }
}

#[cfg(test)]
mod tests;
