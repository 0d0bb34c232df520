//! 1-bit `MinHash`: the distance of two signatures estimates the Jaccard similarity of two sets.
//!
//! Each bit of a signature has its own permutation, and is one bit of the smallest member of the
//! permuted set. Two sets of Jaccard similarity J have the same smallest member with probability J;
//! otherwise its bit agrees with probability 1/2. So signatures differ in (1 - J) / 2 of their bits
//! on average.
//!
//! Broder, "On the resemblance and containment of documents", SEQUENCES 1997; Li and Koenig,
//! "b-Bit minwise hashing", WWW 2010.
// Inlining compiles the shared code for each instruction set.
#![allow(clippy::inline_always)]

use super::signature::Signature;
use crate::fingerprint::Fingerprint;
use crate::kernel::{self, Work};

/// Features of one batch, permuted together.
const BATCH: usize = 256;

/// Number of permutations: one for each bit of the widest signature.
const PERMUTATIONS: usize = 128;

/// The b-bit minwise hash of a feature set, with b = 1.
///
/// Weights are ignored, except that weight 0 adds nothing. Repeated features count once.
///
/// ```
/// use hamdex::Fingerprint;
/// use hamdex::sketch::{MinHash, Signature, feature_hash};
///
/// let sign = |words: std::ops::Range<u32>| {
///     let mut set = MinHash::<u128>::new();
///     words.for_each(|word| set.add(feature_hash(&word.to_be_bytes(), 0), 1));
///     set.signature().unwrap()
/// };
/// let (a, b) = (sign(0..900), sign(100..1000)); // a Jaccard similarity of 0.8
/// let estimate = 1.0 - 2.0 * f64::from(a.distance(b)) / 128.0;
/// assert!((estimate - 0.8).abs() < 0.2, "{estimate}");
/// ```
#[derive(Debug, Clone)]
pub struct MinHash<F> {
    smallest: [u32; PERMUTATIONS],
    pending: Vec<u32>,
    any: bool,
    width: std::marker::PhantomData<F>,
}

/// Permutations of 32-bit words: `(x ^ mask) * factor` with an odd factor.
#[derive(Debug, Clone, Copy)]
struct Permutations {
    masks: [u32; PERMUTATIONS],
    factors: [u32; PERMUTATIONS],
}

const TABLE: Permutations = permutations();

/// Draws the permutations by `SplitMix64` from state 0, at compile time.
#[allow(clippy::indexing_slicing, clippy::cast_possible_truncation)] // a loop at compile time, halves of a word
const fn permutations() -> Permutations {
    let mut table = Permutations { masks: [0; PERMUTATIONS], factors: [0; PERMUTATIONS] };
    let (mut state, mut at) = (0_u64, 0);
    while at < PERMUTATIONS {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^= word >> 31;
        table.masks[at] = word as u32;
        table.factors[at] = (word >> 32) as u32 | 1;
        at += 1;
    }
    table
}

impl<F: Fingerprint> MinHash<F> {
    /// Creates a signature of no features.
    pub fn new() -> Self {
        Self {
            smallest: [u32::MAX; PERMUTATIONS],
            pending: Vec::new(),
            any: false,
            width: std::marker::PhantomData,
        }
    }

    fn flush(&mut self) {
        kernel::dispatch(Lower {
            smallest: &mut self.smallest,
            words: &self.pending,
            bits: F::BITS,
        });
        self.pending.clear();
    }
}

impl<F: Fingerprint> Default for MinHash<F> {
    fn default() -> Self {
        Self::new()
    }
}

impl<F: Fingerprint> Signature<F> for MinHash<F> {
    #[inline]
    fn add(&mut self, feature: F, weight: i64) {
        if weight != 0 {
            self.any = true;
            #[allow(clippy::cast_possible_truncation)] // the low 32 bits of a hash are a hash
            self.pending.push(feature.widen() as u32);
            if self.pending.len() >= BATCH {
                self.flush();
            }
        }
    }

    fn signature(&mut self) -> Option<F> {
        if !self.any {
            return None;
        }
        self.flush();
        // The smallest word has zeros on top; one more factor moves an unbiased bit there.
        let bit = |word: &u32| F::truncate(u128::from(word.wrapping_mul(0x85eb_ca6b) >> 31));
        let words = self.smallest.iter().take(F::BITS as usize);
        Some(words.fold(F::ZERO, |bits, word| (bits << 1) | bit(word)))
    }

    fn clear(&mut self) {
        self.smallest = [u32::MAX; PERMUTATIONS];
        self.pending.clear();
        self.any = false;
    }
}

/// Updates the smallest member under every permutation.
struct Lower<'a> {
    smallest: &'a mut [u32; PERMUTATIONS],
    words: &'a [u32],
    bits: u32,
}

impl Work for Lower<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        match self.bits {
            32 => lower::<32>(self.smallest, self.words),
            64 => lower::<64>(self.smallest, self.words),
            _ => lower::<128>(self.smallest, self.words),
        }
    }
}

#[inline(always)]
fn lower<const N: usize>(smallest: &mut [u32; PERMUTATIONS], words: &[u32]) {
    const { assert!(N <= PERMUTATIONS) };
    let smallest = smallest.first_chunk_mut::<N>().expect("checked above");
    let masks = TABLE.masks.first_chunk::<N>().expect("checked above");
    let factors = TABLE.factors.first_chunk::<N>().expect("checked above");
    for &word in words {
        for ((least, &mask), &factor) in smallest.iter_mut().zip(masks).zip(factors) {
            *least = (*least).min((word ^ mask).wrapping_mul(factor));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sketch::feature_hash;

    fn sign<F: Fingerprint>(words: impl Iterator<Item = u64>) -> F {
        let mut set = MinHash::<F>::new();
        words.for_each(|word| set.add(feature_hash(&word.to_be_bytes(), 0), 1));
        set.signature().unwrap()
    }

    #[test]
    fn golden_signatures_hold_for_every_width() {
        assert_eq!(sign::<u32>(0..300), 0x9765_5a9d);
        assert_eq!(sign::<u64>(0..300), 0x9765_5a9d_163f_5ed1);
        assert_eq!(sign::<u128>(0..300), 0xcbe4_7fb8_fe72_a324_e6da_cc4a_d969_6538);
    }

    #[test]
    fn distance_follows_half_of_the_jaccard_distance() {
        for shared in [0_u64, 250, 500, 800, 950, 1000] {
            let trials = 200;
            let mut differing = 0;
            for trial in 0..trials {
                let base = trial * 10_000;
                let ours = sign::<u64>(base..base + 1000);
                let theirs =
                    sign::<u64>((base..base + shared).chain(base + 5000..base + 6000 - shared));
                differing += ours.distance(theirs);
            }
            let jaccard = shared as f64 / (2000 - shared) as f64;
            let (expected, bits) = ((1.0 - jaccard) / 2.0, f64::from(64 * 200));
            let found = f64::from(differing) / bits;
            // Five standard deviations of that number of coin flips.
            let allowed = 5.0 * (expected * (1.0 - expected) / bits).sqrt();
            assert!((found - expected).abs() <= allowed, "{shared}: {found} for {expected}");
        }
    }

    #[test]
    fn repeats_weights_and_order_do_not_matter() {
        let forward: u64 = sign(0..700);
        assert_eq!(sign::<u64>((0..700).rev().chain(5..9)), forward);
        let mut weighted = MinHash::<u64>::new();
        for word in 0..700_u64 {
            weighted.add(feature_hash(&word.to_be_bytes(), 0), 9);
        }
        weighted.add(0, 0);
        assert_eq!(weighted.signature(), Some(forward));
        weighted.clear();
        assert_eq!(weighted.signature(), None);
    }
}
