//! A cache of long texts and their chunks, because pages are compared with the same pages again.
#![expect(clippy::indexing_slicing, reason = "places are those of cached texts")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::edit::LongText;
use crate::error::Result;

/// Parts of the cache, each with its own lock.
const SHARDS: usize = 16;

/// Texts by number of their piece of evidence.
#[derive(Debug)]
pub(super) struct LongTexts {
    shards: [Mutex<Shard>; SHARDS],
    /// Most bytes of texts and chunks that a shard caches.
    bytes: usize,
}

#[derive(Debug, Default)]
struct Shard {
    texts: Vec<(u32, Arc<LongText<'static>>)>,
    places: HashMap<u32, usize>,
    bytes: usize,
    /// State of the generator that picks the text to evict. Random eviction has no access order
    /// that always misses.
    next: u64,
}

impl LongTexts {
    /// Creates a cache of `bytes` bytes of texts and chunks.
    pub(super) fn new(bytes: usize) -> Self {
        Self { shards: Default::default(), bytes: bytes / SHARDS }
    }

    /// Returns the text of a piece, reading and chunking it unless it is cached.
    pub(super) fn get(
        &self,
        piece: u32,
        read: impl FnOnce() -> Result<String>,
    ) -> Result<Arc<LongText<'static>>> {
        let shard = &self.shards[piece as usize % SHARDS];
        let lock = || shard.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(piece) {
            return Ok(known);
        }
        let text = Arc::new(LongText::new(read()?));
        lock().insert(piece, &text, self.bytes);
        Ok(text)
    }
}

impl Shard {
    fn get(&self, piece: u32) -> Option<Arc<LongText<'static>>> {
        let place = *self.places.get(&piece)?;
        Some(Arc::clone(&self.texts[place].1))
    }

    fn insert(&mut self, piece: u32, text: &Arc<LongText<'static>>, most: usize) {
        let bytes = text.bytes();
        // Another thread may have inserted it in the meantime.
        if bytes > most / 4 || self.places.contains_key(&piece) {
            return;
        }
        while self.bytes + bytes > most && !self.texts.is_empty() {
            self.remove_any();
        }
        self.places.insert(piece, self.texts.len());
        self.texts.push((piece, Arc::clone(text)));
        self.bytes += bytes;
    }

    fn remove_any(&mut self) {
        self.next = self.next.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let place = usize::try_from(self.next >> 33).expect("31 bits") % self.texts.len();
        let (piece, text) = self.texts.swap_remove(place);
        self.places.remove(&piece);
        self.bytes -= text.bytes();
        if let Some((moved, _)) = self.texts.get(place) {
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
        for piece in (0..300).chain(0..300) {
            let text = texts.get(piece, || {
                reads += 1;
                Ok(format!("{piece} {long}"))
            });
            assert!(text.unwrap().text.starts_with(&format!("{piece} ")));
        }
        assert!((301..600).contains(&reads), "{reads}");
        for shard in texts.shards {
            let shard = shard.into_inner().unwrap();
            assert_eq!(shard.bytes, shard.texts.iter().map(|(_, text)| text.bytes()).sum());
            assert!(shard.bytes <= BYTES / SHARDS && shard.bytes > BYTES / SHARDS * 3 / 4);
            assert_eq!(shard.places.len(), shard.texts.len());
        }
    }

    #[test]
    fn a_text_that_cannot_be_read_is_not_cached() {
        let texts = LongTexts::new(BYTES);
        assert!(texts.get(7, || Err(crate::Error::Cancelled)).is_err());
        assert_eq!(texts.get(7, || Ok("seven".to_owned())).unwrap().text, "seven");
        assert_eq!(texts.get(7, || Err(crate::Error::Cancelled)).unwrap().text, "seven");
    }
}
