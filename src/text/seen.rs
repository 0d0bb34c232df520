//! Distinct hashes: a set that is cleared and filled again for every text.

/// A set of 64-bit feature hashes, by open addressing.
///
/// The hashes are well mixed already: their top bits choose the slot.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Slots of a power of two, at most half of them taken; zero is free.
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
        let slots = (2 * expected.min(1 << 14)).next_power_of_two().max(FEWEST);
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
        if 2 * self.len >= self.slots.len() {
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
    loop {
        let slot = slots[at];
        if slot == 0 {
            slots[at] = hash;
            return true;
        }
        if slot == hash {
            return false;
        }
        at = (at + 1) & mask;
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
}
