//! Copies: which texts have been prepared before, so that the words of one are cut once.
//!
//! Threads share a table of hashes. A text that is not found, because another one took its place,
//! is cut again; one that is found although it is new is cut by the writer. So no answer depends on
//! the order in which threads come, nor on what the table holds.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Number of hashes that the table holds, in 4 MiB.
const PLACES: usize = 1 << 19;

/// The latest texts that were prepared.
#[derive(Debug)]
pub(super) struct Copies {
    /// Upper halves of the hashes; the lower half selects the place.
    places: Vec<AtomicU64>,
    /// How many more may be remembered.
    room: AtomicUsize,
}

impl Copies {
    /// Creates an empty table for a writer that recognises copies of `known` texts.
    pub(super) fn new(known: usize) -> Self {
        let places = (0..PLACES).map(|_| AtomicU64::default()).collect();
        Self { places, room: AtomicUsize::new(known) }
    }

    /// Returns true if a text with this hash was passed before, and remembers it.
    ///
    /// May return false for such a text, and true for another one, which is rare.
    pub(super) fn meets(&self, hash: u128) -> bool {
        let (upper, lower) = ((hash >> 64) as u64, hash as usize);
        let place = self.places.get(lower % PLACES).expect("there are that many places");
        if place.load(Ordering::Relaxed) == upper {
            return true;
        }
        let take = |room: usize| room.checked_sub(1);
        if self.room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
            place.store(upper, Ordering::Relaxed);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_texts_are_met_again_up_to_the_limit() {
        let copies = Copies::new(3);
        let hashes = [1_u128, 2, 3, 4].map(|hash| hash << 64 | hash);
        assert_eq!(hashes.map(|hash| copies.meets(hash)), [false; 4]);
        assert_eq!(hashes.map(|hash| copies.meets(hash)), [true, true, true, false]);
        assert!(copies.meets(0), "an empty place, which is why writers ask again");
        let copies = Copies::new(8);
        let same_place = 1_u128 << 64 | PLACES as u128 | 1;
        assert!(!copies.meets(hashes[0]) && !copies.meets(same_place ^ 2 << 64));
        assert!(!copies.meets(hashes[0]), "another text took its place");
    }
}
