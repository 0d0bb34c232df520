//! Seen: keys so far, by hashes whose accidental collisions may be neglected.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, RandomState};

/// The row at which each key was seen, 24 bytes each.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    rows: HashMap<u128, u64>,
    seeds: (RandomState, RandomState),
}

impl Seen {
    /// Notes a key, unless it is there; returns the row that had it before.
    pub(crate) fn insert(&mut self, key: &[u8], row: u64) -> Option<u64> {
        match self.rows.entry(hash(&self.seeds, key)) {
            Entry::Occupied(there) => Some(*there.get()),
            Entry::Vacant(free) => {
                free.insert(row);
                None
            }
        }
    }

    /// Notes a key at a row, also if it was seen at another one.
    pub(crate) fn replace(&mut self, key: &[u8], row: u64) {
        self.rows.insert(hash(&self.seeds, key), row);
    }
}

fn hash(seeds: &(RandomState, RandomState), key: &[u8]) -> u128 {
    let (high, low) = (seeds.0.hash_one(key), seeds.1.hash_one(key));
    u128::from(high) << 64 | u128::from(low)
}
