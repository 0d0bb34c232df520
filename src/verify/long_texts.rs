//! A cache of what is computed from texts, because pages are compared with the same pages again.
#![expect(clippy::indexing_slicing, reason = "places are those of cached values")]

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use super::edit::LongText;
use crate::error::Result;

/// Parts of the cache, each with its own lock.
const SHARDS: usize = 16;

/// Long texts and their chunks.
pub(super) type LongTexts = Cache<LongText<'static>>;

/// A value that a cache can hold.
pub(super) trait Cached {
    /// Returns the bytes that the value takes in a cache.
    fn bytes(&self) -> usize;
}

impl Cached for LongText<'static> {
    fn bytes(&self) -> usize {
        LongText::bytes(self)
    }
}

/// Values by the digest of the evidence that they are computed from.
#[derive(Debug)]
pub(super) struct Cache<T> {
    shards: [Mutex<Shard<T>>; SHARDS],
    /// Most bytes of values that a shard holds.
    bytes: usize,
}

#[derive(Debug)]
struct Shard<T> {
    values: Vec<(u64, Arc<T>)>,
    places: HashMap<u64, usize, BuildHasherDefault<AsItIs>>,
    bytes: usize,
    /// State of the generator that picks the value to evict. Random eviction has no access order
    /// that always misses.
    next: u64,
}

/// Hashes a digest to itself: it is a hash already, under a seed that nobody knows.
#[derive(Debug, Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn write(&mut self, bytes: &[u8]) {
        unreachable!("{} bytes are no digest", bytes.len());
    }

    fn write_u64(&mut self, digest: u64) {
        self.0 = digest;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl<T> Default for Shard<T> {
    fn default() -> Self {
        Self { values: Vec::new(), places: HashMap::default(), bytes: 0, next: 0 }
    }
}

impl<T: Cached> Cache<T> {
    /// Creates a cache of `bytes` bytes.
    pub(super) fn new(bytes: usize) -> Self {
        Self { shards: std::array::from_fn(|_| Mutex::default()), bytes: bytes / SHARDS }
    }

    /// Returns the value of a digest, making it unless it is cached.
    pub(super) fn get(&self, digest: u64, make: impl FnOnce() -> Result<T>) -> Result<Arc<T>> {
        // Bits from the middle, because maps use those at both ends.
        let part = (digest >> 28) % SHARDS as u64;
        let part = usize::try_from(part).expect("below the number of shards");
        let shard = &self.shards[part];
        let lock = || shard.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(digest) {
            return Ok(known);
        }
        let value = Arc::new(make()?);
        lock().insert(digest, &value, self.bytes);
        Ok(value)
    }
}

impl<T: Cached> Shard<T> {
    fn get(&self, digest: u64) -> Option<Arc<T>> {
        let place = *self.places.get(&digest)?;
        Some(Arc::clone(&self.values[place].1))
    }

    fn insert(&mut self, digest: u64, value: &Arc<T>, most: usize) {
        let bytes = value.bytes();
        // Another thread may have inserted it in the meantime.
        if bytes > most / 4 || self.places.contains_key(&digest) {
            return;
        }
        while self.bytes + bytes > most && !self.values.is_empty() {
            self.remove_any();
        }
        self.places.insert(digest, self.values.len());
        self.values.push((digest, Arc::clone(value)));
        self.bytes += bytes;
    }

    fn remove_any(&mut self) {
        self.next = self.next.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let place = usize::try_from(self.next >> 33).expect("31 bits") % self.values.len();
        let (digest, value) = self.values.swap_remove(place);
        self.places.remove(&digest);
        self.bytes -= value.bytes();
        if let Some((moved, _)) = self.values.get(place) {
            self.places.insert(*moved, place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: usize = 16 << 20;

    #[test]
    fn the_cache_stays_within_its_bytes_and_reads_cached_texts_once() {
        let texts = LongTexts::new(BYTES);
        let long = "晴 ".repeat(20_000);
        let mut reads = 0;
        for piece in (0..300_u64).chain(0..300) {
            // Digests spread over the shards.
            let text = texts.get(piece.wrapping_mul(0x9e37_79b9_7f4a_7c15), || {
                reads += 1;
                Ok(LongText::new(format!("{piece} {long}")))
            });
            assert!(text.unwrap().text.starts_with(&format!("{piece} ")));
        }
        assert!((301..600).contains(&reads), "{reads}");
        for shard in texts.shards {
            let shard = shard.into_inner().unwrap();
            assert_eq!(shard.bytes, shard.values.iter().map(|(_, text)| text.bytes()).sum());
            assert!(shard.bytes <= BYTES / SHARDS && shard.bytes > BYTES / SHARDS * 3 / 4);
            assert_eq!(shard.places.len(), shard.values.len());
        }
    }

    #[test]
    fn a_text_that_cannot_be_read_is_not_cached() {
        let texts = LongTexts::new(BYTES);
        assert!(texts.get(7, || Err(crate::Error::Cancelled)).is_err());
        let seven = || Ok(LongText::new("seven".to_owned()));
        assert_eq!(texts.get(7, seven).unwrap().text, "seven");
        assert_eq!(texts.get(7, || Err(crate::Error::Cancelled)).unwrap().text, "seven");
    }
}
