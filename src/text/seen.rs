//! Distinct features: sets that are cleared and filled again for every text.
#![expect(
    clippy::indexing_slicing,
    reason = "sets have a place for every hash, and lists for every n-gram"
)]

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::OnceLock;

use crate::sketch::feature_hash;

/// A set of 64-bit feature hashes, by open addressing.
///
/// Whoever makes up a text knows the hashes of its features, and could choose words that all want
/// the same slots; so the slot depends on a random number of the process as well. What is in the
/// set does not.
#[derive(Debug)]
pub(super) struct Seen {
    /// Slots of a power of two, at most three quarters of them taken; zero is free.
    slots: Vec<u64>,
    len: usize,
    /// The hash that looks like a free slot.
    zero: bool,
    /// Odd, so that the product of no two hashes is equal.
    factor: u64,
}

impl Default for Seen {
    fn default() -> Self {
        static FACTOR: OnceLock<u64> = OnceLock::new();
        // The standard library's hasher is keyed by the system's random numbers.
        let factor = *FACTOR.get_or_init(|| RandomState::new().hash_one(0_u64) | 1);
        Self { slots: Vec::new(), len: 0, zero: false, factor }
    }
}

const FEWEST: usize = 256;

impl Seen {
    /// Forgets all and makes room for so many hashes, if they are not too many.
    pub(super) fn reset(&mut self, expected: usize) {
        // A larger text repeats itself: the set grows when it has to.
        let slots = (expected + expected / 4).min(1 << 15).next_power_of_two().max(FEWEST);
        self.slots.clear();
        self.slots.resize(slots, 0);
        (self.len, self.zero) = (0, false);
    }

    /// Adds a hash; true when it was not there.
    #[inline]
    pub(super) fn insert(&mut self, hash: u64) -> bool {
        if hash == 0 {
            return !std::mem::replace(&mut self.zero, true);
        }
        if 4 * self.len >= 3 * self.slots.len() {
            self.grow();
        }
        let new = put(&mut self.slots, hash, self.factor);
        self.len += usize::from(new);
        new
    }

    #[cold]
    fn grow(&mut self) {
        let mut slots = vec![0; (2 * self.slots.len()).max(FEWEST)];
        for &hash in self.slots.iter().filter(|&&hash| hash != 0) {
            put(&mut slots, hash, self.factor);
        }
        self.slots = slots;
    }

    /// Gives back memory that one huge text took.
    pub(super) fn release_above(&mut self, bytes: usize) {
        if self.slots.capacity() * size_of::<u64>() > bytes {
            *self = Self::default();
        }
    }
}

#[inline]
#[allow(clippy::cast_possible_truncation)] // masked at once
fn put(slots: &mut [u64], hash: u64, factor: u64) -> bool {
    let mask = slots.len() - 1;
    // The uppermost bits of the product, which depend on all of the hash (multiply-shift hashing;
    // Dietzfelbinger and others, 1997).
    let unused = (slots.len() as u64).leading_zeros() + 1;
    let mut at = (hash.wrapping_mul(factor) >> unused) as usize & mask;
    // Whether a hash is new cannot be foretold, so nothing branches on it.
    while slots[at] != 0 && slots[at] != hash {
        at = (at + 1) & mask;
    }
    let new = slots[at] == 0;
    slots[at] = hash;
    new
}

/// The set of a text's short n-grams of small letters, digits and spaces: a bit for each there is.
#[derive(Debug, Default)]
pub(super) struct Firsts {
    bits: Vec<u64>,
    /// Numbers of the distinct n-grams, and their hashes.
    numbers: Vec<u32>,
    hashes: Vec<u64>,
}

/// Letters, digits and the space.
const LETTERS: u32 = 37;

/// Numbers of the letters.
static NUMBERS: [u8; 256] = numbers();

const fn numbers() -> [u8; 256] {
    let mut numbers = [0; 256];
    let (mut byte, mut number) = (0_u8, 0);
    while byte < 0x80 {
        if byte == b' ' || byte.is_ascii_digit() || byte.is_ascii_lowercase() {
            numbers[byte as usize] = number;
            number += 1;
        }
        byte += 1;
    }
    numbers
}

impl Firsts {
    /// The longest n-gram there is a bit for; all of four letters take 230 kB.
    const MAX: usize = 4;

    /// Returns the hash of each distinct n-gram of `letters`, in order of where it stands first.
    pub(super) fn hashes<const N: usize>(&mut self, letters: &[u8], seed: u64) -> &[u64] {
        const { assert!(N <= Self::MAX) };
        let there_are = (0..N).fold(1, |all, _| all * LETTERS as usize);
        // All are noted, and the next one takes the place of one that is not new.
        let most = letters.len().min(there_are) + 1;
        let fit = |len: usize| most.max(len);
        self.bits.resize(there_are.div_ceil(64).max(self.bits.len()), 0);
        self.numbers.resize(fit(self.numbers.len()), 0);
        self.hashes.resize(fit(self.hashes.len()), 0);
        let Self { bits, numbers, hashes } = self;
        let mut len = 0;
        for gram in letters.windows(N).filter_map(<[u8]>::first_chunk::<N>) {
            let number = number(gram);
            let bits = &mut bits[number as usize >> 6];
            // Whether an n-gram is new cannot be foretold, so nothing branches on it.
            let bit = 1 << (number & 63);
            (numbers[len], hashes[len]) = (number, feature_hash(gram, seed));
            len += usize::from(*bits & bit == 0);
            *bits |= bit;
        }
        for &number in numbers.iter().take(len) {
            bits[number as usize >> 6] = 0;
        }
        &hashes[..len]
    }

    /// Gives back memory that one huge text took.
    pub(super) fn release_above(&mut self, bytes: usize) {
        if self.hashes.capacity() * size_of::<u64>() > bytes {
            (self.numbers, self.hashes) = (Vec::new(), Vec::new());
        }
    }
}

/// Returns the number of an n-gram among all of its length.
#[inline]
fn number<const N: usize>(gram: &[u8; N]) -> u32 {
    let number = |&byte: &u8| NUMBERS[usize::from(byte)];
    gram.iter().fold(0, |all, byte| all * LETTERS + u32::from(number(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_equal_hashes_is_new_whatever_the_size() {
        let mut seen = Seen::default();
        assert!(seen.insert(7), "usable before any reset");
        for expected in [0, 1, 100_000] {
            seen.reset(expected);
            for hash in (0..5_000_u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)) {
                assert!(seen.insert(hash));
                assert!(!seen.insert(hash));
            }
        }
        seen.reset(1);
        assert!(seen.insert(0) && !seen.insert(0));
        assert!((1..300).all(|hash| seen.insert(hash)));
        assert!((0..300).all(|hash| !seen.insert(hash)));
    }

    #[test]
    fn chosen_hashes_do_not_want_the_same_slots() {
        // Equal in all bits but a few, wherever these are: some would share a slot by each of them.
        for shift in [0, 16, 32, 47] {
            let mut seen = Seen::default();
            let chosen = || (1..=50_000_u64).map(|hash| hash << shift);
            assert!(chosen().all(|hash| seen.insert(hash)));
            let slots = seen.slots.len();
            let (mut run, mut longest) = (0, 0);
            for slot in seen.slots.iter().chain(&seen.slots).take(2 * slots) {
                run = if *slot == 0 { 0 } else { run + 1 };
                longest = longest.max(run);
            }
            // All of them would be one run; at random the longest has some hundreds.
            assert!(longest < 10_000, "shift {shift}, factor {:x}: {longest}", seen.factor);
        }
    }

    #[test]
    fn the_first_of_equal_grams_is_hashed_in_every_text_anew() {
        fn check<const N: usize>(firsts: &mut Firsts, letters: &[u8]) {
            let mut expected: Vec<u64> = Vec::new();
            for hash in letters.windows(N).map(|gram| feature_hash(gram, 5)) {
                if !expected.contains(&hash) {
                    expected.push(hash);
                }
            }
            assert_eq!(firsts.hashes::<N>(letters, 5), expected, "{N}");
        }
        let mut firsts = Firsts::default();
        for letters in ["", "a", "aaaaaa", "zzzz 9999 zzzz", "the theory of 10 things", "abcdefgh"]
        {
            for _ in 0..2 {
                check::<1>(&mut firsts, letters.as_bytes());
                check::<2>(&mut firsts, letters.as_bytes());
                check::<3>(&mut firsts, letters.as_bytes());
                check::<4>(&mut firsts, letters.as_bytes());
            }
        }
    }

    #[test]
    fn every_letter_has_its_number() {
        let letters = b" 0123456789abcdefghijklmnopqrstuvwxyz";
        assert_eq!(letters.len(), LETTERS as usize);
        let all: Vec<u32> = letters.iter().map(|&byte| number(&[byte])).collect();
        assert_eq!(all, (0..LETTERS).collect::<Vec<_>>());
    }
}
