//! Documents that the overlay of a snapshot stores, as a filter in memory.
//!
//! A Bloom filter with one hash (Bloom, CACM 1970): it may also hold others, and never lacks one.

use xxhash_rust::xxh3::xxh3_64;

use super::cursor::{self, Snapshot};
use super::overlay::REMOVED;
use super::walk::Walk;
use crate::error::Result;
use crate::store::Family;
use crate::store::bytes::pack::PACKED_KEY;

/// Bits for each document: one in eight others is held too.
const BITS: u64 = 8;
/// Least and most bits of a filter. The most are 64 MiB.
const SIZES: std::ops::RangeInclusive<u64> = 1 << 16..=1 << 29;
/// Entries that one step reads.
const ENTRIES: usize = 1 << 14;

/// The documents, while they are being read and afterwards.
pub(super) struct Unpacked {
    filter: Filter,
    walk: Walk,
}

impl Unpacked {
    /// Prepares for about this many documents.
    pub(super) fn sized(documents: u64) -> Self {
        Self { filter: Filter::sized(documents), walk: Walk::over(Family::Docs) }
    }

    /// Reads some of the overlay. Returns false once it has read all of it.
    pub(super) fn read(&mut self, snapshot: &Snapshot) -> Result<bool> {
        let Self { filter, walk } = self;
        let options = snapshot.of_state(cursor::passing());
        walk.step(snapshot.store(), options, ENTRIES, |key, value| {
            if let Ok(key) = <[u8; PACKED_KEY]>::try_from(key)
                && value != REMOVED
            {
                filter.hold(u64::from_be_bytes(key));
            }
            Ok(true)
        })
    }

    /// Returns false if the overlay does not store the document.
    pub(super) fn may_hold(&self, key: u64) -> bool {
        self.filter.may_hold(key)
    }
}

struct Filter {
    words: Vec<u64>,
}

impl Filter {
    fn sized(documents: u64) -> Self {
        let bits = documents.saturating_mul(BITS).clamp(*SIZES.start(), *SIZES.end());
        let words = bits.next_power_of_two() / u64::from(u64::BITS);
        let words = usize::try_from(words).expect("it has at most 64 MiB");
        Self { words: vec![0; words] }
    }

    fn hold(&mut self, key: u64) {
        let (word, bit) = self.place(key);
        if let Some(word) = self.words.get_mut(word) {
            *word |= bit;
        }
    }

    fn may_hold(&self, key: u64) -> bool {
        let (word, bit) = self.place(key);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    /// Returns the word and the bit of a key.
    fn place(&self, key: u64) -> (usize, u64) {
        let hash = xxh3_64(&key.to_be_bytes());
        // The number of words is a power of two.
        let word = (hash >> 6) & (self.words.len() as u64 - 1);
        (usize::try_from(word).expect("it is an index"), 1 << (hash & 63))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_hold_every_document_and_few_others() {
        for documents in [0, 1, 5000, 100_000] {
            let mut filter = Filter::sized(documents);
            (0..documents).for_each(|key| filter.hold(3 * key));
            assert!((0..documents).all(|key| filter.may_hold(3 * key)));
            let others = (0..10_000).filter(|key| filter.may_hold(3 * key + 1)).count();
            assert!(others < 1300, "{documents}: {others}");
        }
    }
}
