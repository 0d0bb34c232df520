//! Distinct features: sets that are cleared and filled again for every text.

/// A set of 64-bit feature hashes, by open addressing.
///
/// The hashes are well mixed already: their top bits choose the slot.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Slots of a power of two, at most three quarters of them taken; zero is free.
    slots: Vec<u64>,
    len: usize,
    /// The hash that looks like a free slot.
    zero: bool,
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
        let new = put(&mut self.slots, hash);
        self.len += usize::from(new);
        new
    }

    #[cold]
    fn grow(&mut self) {
        let mut slots = vec![0; (2 * self.slots.len()).max(FEWEST)];
        for &hash in self.slots.iter().filter(|&&hash| hash != 0) {
            put(&mut slots, hash);
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
#[allow(clippy::indexing_slicing)] // the slot is masked by a length that is a power of two
#[allow(clippy::cast_possible_truncation)] // masked at once
fn put(slots: &mut [u64], hash: u64) -> bool {
    let mask = slots.len() - 1;
    let mut at = (hash >> 32) as usize & mask;
    // Whether a hash is new cannot be foretold, so nothing branches on it.
    while slots[at] != 0 && slots[at] != hash {
        at = (at + 1) & mask;
    }
    let new = slots[at] == 0;
    slots[at] = hash;
    new
}

/// Words of four letters, digits and spaces, rounded up: 37^4 of the 2^24 there are.
const DISTINCT: usize = 1 << 21;

/// A set of 24-bit words, a bit for each, and where the first of each stood.
#[derive(Debug, Default)]
pub(super) struct Packed {
    bits: Vec<u64>,
    /// Word and position, as far as `len`; more room than ever needed.
    noted: Vec<(u32, usize)>,
    len: usize,
}

impl Packed {
    /// Makes room for so many words.
    pub(super) fn begin(&mut self, words: usize) {
        self.bits.resize(1 << (24 - 6), 0);
        let distinct = (words + 1).min(DISTINCT);
        self.noted.resize(distinct.max(self.noted.len()), (0, 0));
        self.len = 0;
    }

    /// Adds a word below 2^24, unless it is there.
    #[inline]
    pub(super) fn note(&mut self, at: usize, word: u32) {
        let (Some(bits), Some(noted)) =
            (self.bits.get_mut(word as usize >> 6), self.noted.get_mut(self.len))
        else {
            return;
        };
        // Whether a word is new cannot be foretold, so nothing branches on it.
        let bit = 1 << (word & 63);
        *noted = (word, at);
        self.len += usize::from(*bits & bit == 0);
        *bits |= bit;
    }

    /// Visits where each distinct word stood first, in order, and forgets them all.
    pub(super) fn drain(&mut self, mut visit: impl FnMut(usize, u32)) {
        for &(word, at) in self.noted.iter().take(self.len) {
            if let Some(bits) = self.bits.get_mut(word as usize >> 6) {
                *bits = 0;
            }
            visit(at, word);
        }
        self.len = 0;
    }

    /// Gives back memory that one huge text took.
    pub(super) fn release_above(&mut self, bytes: usize) {
        if self.noted.capacity() * size_of::<(u32, usize)>() > bytes {
            self.noted = Vec::new();
        }
    }
}

/// Hashes of packed n-grams, remembered from text to text.
#[derive(Debug, Default)]
pub(super) struct Hashes {
    /// Seed and n-gram length that the hashes are for.
    of: Option<(u64, usize)>,
    /// The last n-gram of those that share a slot, one more than its word, and its hash.
    slots: Vec<(u32, u64)>,
}

/// Slots of remembered hashes, a power of two; 1 MB, more n-grams than a language often has.
const SLOTS: usize = 1 << 16;

impl Hashes {
    /// Forgets what was remembered for another seed or length.
    pub(super) fn begin(&mut self, seed: u64, n: usize) {
        if self.of != Some((seed, n)) {
            self.of = Some((seed, n));
            self.slots.clear();
            self.slots.resize(SLOTS, (0, 0));
        }
    }

    /// Returns the hash of the n-gram with these letters.
    #[inline]
    pub(super) fn get(&mut self, word: u32, hash: impl FnOnce() -> u64) -> u64 {
        let at = (word.wrapping_mul(0x9e37_79b1) >> 16) as usize;
        match self.slots.get_mut(at) {
            Some((known, hash)) if *known == word + 1 => *hash,
            Some(slot) => {
                *slot = (word + 1, hash());
                slot.1
            }
            None => hash(),
        }
    }
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
        // Equal top bits all want one slot.
        assert!((1..300).all(|hash| seen.insert(hash)));
        assert!((0..300).all(|hash| !seen.insert(hash)));
    }

    #[test]
    fn the_first_of_equal_words_is_visited_in_every_text_anew() {
        let mut packed = Packed::default();
        for words in [vec![], vec![5, 5, (1 << 24) - 1, 5, 64, 0, 64], vec![5; 3]] {
            packed.begin(words.len());
            words.iter().enumerate().for_each(|(at, &word)| packed.note(at, word));
            let mut firsts = Vec::new();
            packed.drain(|at, _| firsts.push(at));
            let expected: Vec<usize> =
                (0..words.len()).filter(|&at| !words[..at].contains(&words[at])).collect();
            assert_eq!(firsts, expected);
        }
    }

    #[test]
    fn remembered_hashes_are_those_of_their_words_whatever_shares_a_slot() {
        let mut hashes = Hashes::default();
        for (seed, n) in [(0, 3), (1, 3), (1, 4)] {
            hashes.begin(seed, n);
            let hash = |word: u32| u64::from(word) * 31 + seed * 7 + n as u64;
            for word in (0..1 << 24).step_by(77).chain(0..5_000).chain((0..5_000).rev()) {
                assert_eq!(hashes.get(word, || hash(word)), hash(word));
            }
        }
    }
}
