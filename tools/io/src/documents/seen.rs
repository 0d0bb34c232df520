//! Ids seen so far: a new key becomes known, a known one is a duplicate.
//!
//! A key takes 16 bytes, a hash whose accidental collisions are negligible. Positions of raw
//! fingerprints are in order and take none.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash, Hasher, RandomState};

use super::key;

/// The keys of one run's inputs.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    hashes: HashSet<u128, BuildHasherDefault<Passed>>,
    seeds: Seeds,
    /// Positions below this one were raw fingerprints.
    positions: u64,
}

impl Seen {
    /// Notes a key; returns false when it was there already.
    pub(crate) fn insert(&mut self, key: &[u8]) -> bool {
        if let Ok(number) = key.try_into().map(u64::from_be_bytes)
            && number < self.positions
        {
            return false;
        }
        self.hashes.insert(self.hash(key))
    }

    /// Notes the next raw position; returns false when a row has its number already.
    pub(crate) fn insert_position(&mut self, position: u64) -> bool {
        self.positions = position + 1;
        self.hashes.is_empty() || !self.hashes.contains(&self.hash(&key::of_number(position)))
    }

    fn hash(&self, key: &[u8]) -> u128 {
        self.seeds.hash(key)
    }
}

/// Makes 16 bytes of a value, alike for equal values within one run.
#[derive(Debug, Default)]
pub(crate) struct Seeds(RandomState, RandomState);

impl Seeds {
    pub(crate) fn hash(&self, value: impl Hash) -> u128 {
        let (high, low) = (self.0.hash_one(&value), self.1.hash_one(&value));
        u128::from(high) << 64 | u128::from(low)
    }

    /// Hashes a value as JSON; equal texts with other escapes are equal.
    pub(crate) fn json(&self, value: &str) -> u128 {
        match serde_json::from_str::<Cow<'_, str>>(value) {
            Ok(text) => self.text(&text),
            Err(_) => self.hash((false, value)),
        }
    }

    pub(crate) fn text(&self, text: &str) -> u128 {
        self.hash((true, text))
    }
}

/// Takes half of a key that is a hash already.
#[derive(Debug, Default)]
struct Passed(u64);

impl Hasher for Passed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        self.0 = hasher.finish();
    }

    #[allow(clippy::cast_possible_truncation)] // half of a hash is a hash
    fn write_u128(&mut self, hash: u128) {
        self.0 = hash as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_new_once() {
        let mut seen = Seen::default();
        assert!(seen.insert(b"a"));
        assert!(seen.insert(b"b"));
        assert!(!seen.insert(b"a"));
    }

    #[test]
    fn values_are_equal_as_json_means_them() {
        let seeds = Seeds::default();
        assert_eq!(seeds.json("\"\\u0061\""), seeds.text("a"));
        assert_ne!(seeds.json("1"), seeds.text("1"));
        assert_eq!(seeds.json("1"), seeds.json("1"));
    }

    #[test]
    fn raw_positions_and_numbers_are_the_same_keys() {
        let mut seen = Seen::default();
        assert!(seen.insert(&key::of_number(1)));
        assert!(seen.insert_position(0));
        assert!(!seen.insert_position(1));
        assert!(!seen.insert(&key::of_number(0)));
        assert!(seen.insert(&key::of_number(2)));
    }
}
