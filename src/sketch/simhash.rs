//! `SimHash`: weighted feature hashes become one fingerprint.
//!
//! Bit by bit, a feature adds its weight where its hash has a one and takes it away where it has
//! a zero; the fingerprint has a one where the sum is above zero. The sums are exact for any
//! number of features of any weight.
//!
//! Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002; Manku, Jain
//! and Das Sarma, "Detecting near-duplicates for web crawling", WWW 2007.

use crate::fingerprint::Fingerprint;

/// Counter planes: 2^64 features of weight 2^63 do not overflow them.
const PLANES: usize = 128;

/// Reduces weighted feature hashes to their `SimHash` fingerprint.
///
/// A sum of exactly zero gives a zero bit. `None` when there are no features, or none with a
/// weight other than 0: a text that says nothing is no near-duplicate of another such text.
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

/// The weighted sum of every bit position, built up feature by feature.
///
/// All positions are counted at once: plane `j` holds bit `j` of the count of every position,
/// and adding a hash is a carry-save addition over whole words, so no loop over bits is left.
///
/// ```
/// use hamdex::sketch::BitSums;
///
/// let mut sums = BitSums::<u32>::new();
/// sums.add(0b100101, 4);
/// sums.add(0b101011, 5);
/// let low: Vec<i128> = (26..32).map(|bit| sums.sum(bit)).collect();
/// assert_eq!(low, [9, -9, 1, -1, 1, 9]);
/// ```
#[derive(Clone)]
pub struct BitSums<F> {
    planes: [Plane<F>; PLANES],
    /// Planes from here on are all zero.
    used: usize,
    /// The sum of all weights without their signs.
    total: u128,
}

/// One binary digit of the counts, in two parts so that carries need not ripple at once.
#[derive(Clone, Copy)]
struct Plane<F> {
    digit: F,
    pending: Option<F>,
}

impl<F: Fingerprint> BitSums<F> {
    /// Starts with no features.
    pub fn new() -> Self {
        Self { planes: [Plane { digit: F::ZERO, pending: None }; PLANES], used: 0, total: 0 }
    }

    /// Adds one feature; a negative weight counts its zeros as ones.
    #[inline]
    pub fn add(&mut self, feature: F, weight: i64) {
        let ones = if weight < 0 { !feature } else { feature };
        let mut digits = weight.unsigned_abs();
        self.total += u128::from(digits);
        while digits != 0 {
            self.add_at(digits.trailing_zeros() as usize, ones);
            digits &= digits - 1;
        }
    }

    /// Adds `2^plane` to the count of every position that is set in `ones`.
    ///
    /// Every second word that reaches a plane passes one on to the next, so an addition takes one
    /// full adder on average however many features there are.
    #[inline]
    #[allow(clippy::indexing_slicing)] // weights below 2^63 carry no further than their 128-bit total
    fn add_at(&mut self, mut plane: usize, mut ones: F) {
        loop {
            let Plane { digit, pending } = &mut self.planes[plane];
            let Some(other) = pending.take() else {
                *pending = Some(ones);
                self.used = self.used.max(plane + 1);
                return;
            };
            let either = *digit ^ other;
            let carry = (*digit & other) | (either & ones);
            *digit = either ^ ones;
            ones = carry;
            plane += 1;
        }
    }

    /// Returns the sum at one bit position, 0 being the most significant.
    ///
    /// Positions at or above the width have the sum 0.
    pub fn sum(&self, bit: u32) -> i128 {
        if bit >= F::BITS {
            return 0;
        }
        let at = |word: F| (word >> (F::BITS - 1 - bit)).widen() & 1;
        let count = self.planes.iter().take(self.used).rev().fold(0_u128, |count, plane| {
            (count << 1) + at(plane.digit) + plane.pending.map_or(0, at)
        });
        // The count is at most the total, so the difference always fits.
        let (count, total) = (count.cast_signed(), self.total.cast_signed());
        count - (total - count)
    }

    /// Returns the fingerprint, or `None` without features of any weight.
    pub fn fingerprint(&self) -> Option<F> {
        if self.total == 0 {
            return None;
        }
        // A sum is above zero where the count is above half of the total. Comparing from the top
        // digit down settles every position at once.
        let half = self.total / 2;
        let (mut above, mut equal) = (F::ZERO, F::ONES);
        let digits = self.digits();
        for (plane, digit) in digits.iter().enumerate().take(self.used + 1).rev() {
            let wanted = if half >> plane & 1 == 1 { F::ONES } else { F::ZERO };
            above = above | (equal & *digit & !wanted);
            equal = equal & !(*digit ^ wanted);
        }
        Some(above)
    }

    /// Resolves the pending words into plain binary digits, one more than planes in use.
    fn digits(&self) -> [F; PLANES] {
        let mut digits = [F::ZERO; PLANES];
        let mut carry = F::ZERO;
        for (out, plane) in digits.iter_mut().zip(&self.planes).take(self.used + 1) {
            let pending = plane.pending.unwrap_or(F::ZERO);
            let either = plane.digit ^ pending;
            *out = either ^ carry;
            carry = (plane.digit & pending) | (either & carry);
        }
        digits
    }
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
