//! Seen keys, stored as 128-bit hashes whose accidental collisions can be neglected.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, RandomState};

/// The row at which each key was first seen; 24 bytes per key.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    rows: HashMap<u128, u64>,
    seeds: (RandomState, RandomState),
}

impl Seen {
    /// Inserts a key; returns the row of an earlier equal key, which stays.
    pub(crate) fn insert(&mut self, key: &[u8], row: u64) -> Option<u64> {
        match self.rows.entry(hash(&self.seeds, key)) {
            Entry::Occupied(there) => Some(*there.get()),
            Entry::Vacant(free) => {
                free.insert(row);
                None
            }
        }
    }

    /// Inserts a key at a row, replacing an earlier one.
    pub(crate) fn replace(&mut self, key: &[u8], row: u64) {
        self.rows.insert(hash(&self.seeds, key), row);
    }
}

fn hash(seeds: &(RandomState, RandomState), key: &[u8]) -> u128 {
    let (high, low) = (seeds.0.hash_one(key), seeds.1.hash_one(key));
    u128::from(high) << 64 | u128::from(low)
}
