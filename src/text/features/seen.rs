//! Sets of distinct features, reused from text to text.
#![expect(
    clippy::indexing_slicing,
    reason = "sets have a slot for every hash, and lists for every n-gram"
)]

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::OnceLock;

use crate::sketch::feature_hash;

/// A set of 64-bit feature hashes, with open addressing.
///
/// The author of a text knows the hashes of its features and could choose words that collide.
/// Therefore the slot of a hash also depends on a random number of the process.
#[derive(Debug)]
pub(in crate::text) struct Seen {
    /// Slots; their number is a power of two, at most three quarters are used, 0 is free.
    slots: Vec<u64>,
    len: usize,
    /// Whether the hash 0, which looks like a free slot, is in the set.
    zero: bool,
    /// An odd factor, so that different hashes have different products.
    factor: u64,
}

impl Default for Seen {
    fn default() -> Self {
        static FACTOR: OnceLock<u64> = OnceLock::new();
        // The standard library's hasher is keyed with random numbers of the system.
        let factor = *FACTOR.get_or_init(|| RandomState::new().hash_one(0_u64) | 1);
        Self { slots: Vec::new(), len: 0, zero: false, factor }
    }
}

const FEWEST: usize = 256;

impl Seen {
    /// Clears the set and makes room for `expected` hashes, up to a limit.
    pub(in crate::text) fn reset(&mut self, expected: usize) {
        // Longer texts repeat features; the set grows on demand.
        let slots = (expected + expected / 4).min(1 << 15).next_power_of_two().max(FEWEST);
        self.slots.clear();
        self.slots.resize(slots, 0);
        (self.len, self.zero) = (0, false);
    }

    /// Adds a hash; returns true if it is new.
    #[inline]
    pub(in crate::text) fn insert(&mut self, hash: u64) -> bool {
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

    /// Shrinks a set larger than `bytes`.
    pub(in crate::text) fn release_above(&mut self, bytes: usize) {
        if self.slots.capacity() * size_of::<u64>() > bytes {
            *self = Self::default();
        }
    }
}

#[inline]
#[allow(clippy::cast_possible_truncation)] // masked at once
fn put(slots: &mut [u64], hash: u64, factor: u64) -> bool {
    let mask = slots.len() - 1;
    // The slot is in the highest bits of the product, which depend on all bits of the hash
    // (multiply-shift hashing; Dietzfelbinger and others, 1997).
    let unused = (slots.len() as u64).leading_zeros() + 1;
    let mut at = (hash.wrapping_mul(factor) >> unused) as usize & mask;
    // Branchless: whether the hash is new is unpredictable.
    while slots[at] != 0 && slots[at] != hash {
        at = (at + 1) & mask;
    }
    let new = slots[at] == 0;
    slots[at] = hash;
    new
}

/// The set of a text's short n-grams of small letters, digits and spaces, as a bitmap.
#[derive(Debug, Default)]
pub(in crate::text) struct Firsts {
    bits: Vec<u64>,
    /// Where the distinct n-grams begin: the first `len`.
    places: Vec<usize>,
    /// Hashes of the distinct n-grams.
    hashes: Vec<u64>,
    len: usize,
}

/// Number of small letters, digits and the space.
const LETTERS: u32 = 37;

/// Numbers of the letters by byte.
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
    /// Maximum length of an n-gram; the bitmap of all n-grams of four letters takes 230 kB.
    const MAX: usize = 4;

    /// Returns the hash of each distinct n-gram of `letters`, in order of first occurrence.
    pub(super) fn hashes<const N: usize>(&mut self, letters: &[u8], seed: u64) -> &[u64] {
        const { assert!(0 < N && N <= Self::MAX) };
        let possible = (0..N).fold(1, |all, _| all * LETTERS as usize);
        // One more entry, because each n-gram is written before it is known to be new.
        let most = letters.len().min(possible) + 1;
        let fit = |len: usize| most.max(len);
        self.bits.resize(possible.div_ceil(64).max(self.bits.len()), 0);
        self.places.resize(fit(self.places.len()), 0);
        self.hashes.resize(fit(self.hashes.len()), 0);
        let Self { bits, places, .. } = self;
        let (before, lasts) = letters.split_at(letters.len().min(N - 1));
        let (mut numbers, mut len) = ([0; N], 0);
        for &letter in before {
            roll(&mut numbers, letter);
        }
        for (at, &last) in lasts.iter().enumerate() {
            roll(&mut numbers, last);
            // Branchless: whether an n-gram is new is unpredictable.
            places[len] = at;
            len += usize::from(set(bits, numbers[N - 1] as usize));
        }
        self.len = len;
        self.hash::<N>(letters, seed)
    }

    /// Returns what [`hashes`](Self::hashes) would, for n-grams of one letter less than last time.
    ///
    /// Each of these that is new begins a longer one that is new, except for the last one.
    pub(super) fn shorter<const N: usize>(&mut self, letters: &[u8], seed: u64) -> &[u64] {
        const { assert!(0 < N && N < Self::MAX) };
        let Self { bits, places, len: longer, .. } = self;
        if let Some(last) = letters.len().checked_sub(N) {
            places[*longer] = last;
            *longer += 1;
        }
        let mut len = 0;
        for place in 0..*longer {
            let at = places[place];
            let gram = letters[at..].first_chunk::<N>().expect("an n-gram begins here");
            places[len] = at;
            len += usize::from(set(bits, number(gram) as usize));
        }
        self.len = len;
        self.hash::<N>(letters, seed)
    }

    /// Hashes the distinct n-grams and clears their bits.
    ///
    /// Last, because most n-grams of a long text are repeated, and a hash costs more than a bit.
    fn hash<const N: usize>(&mut self, letters: &[u8], seed: u64) -> &[u64] {
        let Self { bits, places, hashes, len } = self;
        for (hash, &at) in hashes.iter_mut().zip(&places[..*len]) {
            let gram = letters[at..].first_chunk::<N>().expect("an n-gram begins here");
            *hash = feature_hash(gram, seed);
            bits[number(gram) as usize >> 6] = 0;
        }
        &hashes[..*len]
    }

    /// Shrinks lists larger than `bytes`.
    pub(in crate::text) fn release_above(&mut self, bytes: usize) {
        if self.hashes.capacity() * size_of::<u64>() > bytes {
            (self.places, self.hashes, self.len) = (Vec::new(), Vec::new(), 0);
        }
    }
}

/// Sets a bit; returns true if it was not set.
#[inline]
fn set(bits: &mut [u64], bit: usize) -> bool {
    let word = &mut bits[bit / 64];
    let new = *word >> (bit % 64) & 1 == 0;
    *word |= 1 << (bit % 64);
    new
}

/// Returns the number of an n-gram among all n-grams of its length.
#[inline]
fn number<const N: usize>(gram: &[u8; N]) -> u32 {
    let mut numbers = [0; N];
    for &letter in gram {
        roll(&mut numbers, letter);
    }
    numbers[N - 1]
}

/// Appends a letter to the n-grams of every length up to `N` that end with the last letter.
#[inline]
fn roll<const N: usize>(numbers: &mut [u32; N], letter: u8) {
    let letter = u32::from(NUMBERS[usize::from(letter)]);
    for length in (1..N).rev() {
        numbers[length] = numbers[length - 1] * LETTERS + letter;
    }
    numbers[0] = letter;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_of_equal_hashes_is_new_at_every_size() {
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
    fn chosen_hashes_do_not_collide() {
        // The hashes differ only in bits from `shift` on.
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
            // Collisions would form one run; at random the longest run is a few hundred.
            assert!(longest < 10_000, "shift {shift}, factor {:x}: {longest}", seen.factor);
        }
    }

    #[test]
    fn each_text_returns_the_first_of_equal_grams() {
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
    fn shorter_grams_are_those_of_a_second_look() {
        fn check<const N: usize, const M: usize>(firsts: &mut Firsts, letters: &[u8]) {
            firsts.hashes::<N>(letters, 5);
            let shorter = firsts.shorter::<M>(letters, 5).to_vec();
            assert_eq!(shorter, firsts.hashes::<M>(letters, 5), "{M}: {letters:?}");
        }
        let seed = 8;
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut firsts = Firsts::default();
        for len in (0..40).chain([1000, 100_000]) {
            let alphabet = &b" abcdefghijklmnopqrstuvwxyz0123456789"[..rng.usize(1..=37)];
            let letters: Vec<u8> = (0..len).map(|_| *rng.choice(alphabet).unwrap()).collect();
            check::<4, 3>(&mut firsts, &letters);
            check::<3, 2>(&mut firsts, &letters);
            check::<2, 1>(&mut firsts, &letters);
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
