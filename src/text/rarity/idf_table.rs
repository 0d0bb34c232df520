//! Learnt rarities: a table from words to inverse document frequencies, in whole steps.
//!
//! The table holds 64-bit hashes instead of words. A million words take nine megabytes, and the
//! table does not reveal the texts.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::sketch::feature_hash;

/// First bytes of a stored table; the digit is the version of the layout.
const MAGIC: &[u8; 8] = b"hamidf/1";

/// Bytes before the words: magic, documents, rarest step, words.
const HEAD: usize = 8 + 8 + 1 + 8;

/// Bytes of a word: hash and step.
const ENTRY: usize = 9;

/// A hasher that returns the key: word hashes are uniform already.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// A map from the hashes of words.
pub(super) type WordMap<V> = HashMap<u64, V, BuildHasherDefault<Spread>>;

/// Seed of word hashes.
pub(in crate::text) const WORD_SEED: u64 = 0;

/// Returns the hash of a word.
#[inline]
pub(in crate::text) fn word_hash(word: &str) -> u64 {
    feature_hash(word.as_bytes(), WORD_SEED)
}

/// Inverse document frequencies of words, learnt from the caller's texts.
///
/// Frequencies are in steps of [`1 / IDF_SCALE`](crate::sketch::IDF_SCALE), from 1 for a word in
/// every document. A word that is not in the table is as rare as the rarest word in it.
///
/// ```
/// use hamdex::text::{IdfLearner, IdfTable, Pipeline};
/// use hamdex::PipelineOptions;
///
/// let pipeline = Pipeline::new(&PipelineOptions::preset("code")?)?;
/// let mut learner = IdfLearner::new();
/// learner.add(&pipeline, "the saucer landed");
/// learner.add(&pipeline, "the pilots left");
/// let table = learner.finish();
/// assert_eq!((table.documents(), table.words()), (2, 1)); // "the"; all others are the rarest
/// assert!(table.step("the") < table.step("saucer"));
/// assert_eq!(IdfTable::from_bytes(&table.to_bytes())?, table);
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct IdfTable {
    documents: u64,
    rarest: u8,
    steps: Arc<WordMap<u8>>,
}

impl IdfTable {
    /// Creates a table without the rarest words, which need no entry.
    pub(super) fn new(documents: u64, rarest: u8, mut steps: WordMap<u8>) -> Self {
        steps.retain(|_, step| *step < rarest);
        Self { documents, rarest: rarest.max(1), steps: Arc::new(steps) }
    }

    /// Returns the number of documents that the table was learnt from.
    pub fn documents(&self) -> u64 {
        self.documents
    }

    /// Returns the number of words in the table, which excludes the rarest.
    pub fn words(&self) -> usize {
        self.steps.len()
    }

    /// Returns the inverse document frequency of a word in steps.
    ///
    /// A step is `1 / IDF_SCALE`; the result is at least 1.
    pub fn step(&self, word: &str) -> u32 {
        self.step_of(word_hash(word))
    }

    /// Returns [`IdfTable::step`] of the word with this [hash](word_hash).
    #[inline]
    pub(in crate::text) fn step_of(&self, hash: u64) -> u32 {
        u32::from(self.steps.get(&hash).copied().unwrap_or(self.rarest))
    }

    /// Encodes the table; [`IdfTable::from_bytes`] decodes it.
    ///
    /// Big-endian: `hamidf/1`, the number of documents in 8 bytes, the rarest step in 1, the number
    /// of words in 8; for each word its hash in 8 (XXH3-64, ascending) and its step in 1; and a
    /// CRC-32 of all bytes before it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEAD + ENTRY * self.steps.len() + 4);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&self.documents.to_be_bytes());
        out.push(self.rarest);
        out.extend_from_slice(&(self.steps.len() as u64).to_be_bytes());
        let mut steps: Vec<_> = self.steps.iter().map(|(&hash, &step)| (hash, step)).collect();
        steps.sort_unstable();
        for (hash, step) in steps {
            out.extend_from_slice(&hash.to_be_bytes());
            out.push(step);
        }
        out.extend_from_slice(&crc32fast::hash(&out).to_be_bytes());
        out
    }

    /// Decodes the bytes that [`IdfTable::to_bytes`] returned.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Corrupt`] for any other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::decode(bytes).map_err(|detail| Error::corrupt("IDF table", detail))
    }

    fn decode(bytes: &[u8]) -> Result<Self, &'static str> {
        let Some(rest) = bytes.strip_prefix(MAGIC) else {
            return Err("does not begin with \"hamidf/1\"");
        };
        let Some((body, sum)) = bytes.split_last_chunk::<4>() else { return Err("is cut short") };
        if crc32fast::hash(body) != u32::from_be_bytes(*sum) {
            return Err("checksum does not match");
        }
        let head = rest.split_first_chunk::<8>().and_then(|(documents, rest)| {
            let (&rarest, rest) = rest.split_first()?;
            let (words, rest) = rest.split_first_chunk::<8>()?;
            Some((u64::from_be_bytes(*documents), rarest, u64::from_be_bytes(*words), rest))
        });
        let (documents, rarest, words, rest) = head.ok_or("is cut short")?;
        let (entries, end) = rest.as_chunks::<ENTRY>();
        if end.len() != 4 || entries.len() as u64 != words || rarest == 0 {
            return Err("does not hold the number of words in its head");
        }
        let mut steps = WordMap::default();
        steps.reserve(entries.len());
        for entry in entries {
            let &[hash @ .., step] = entry;
            if step == 0 || step >= rarest {
                return Err("holds a step out of range");
            }
            steps.insert(u64::from_be_bytes(hash), step);
        }
        Ok(Self { documents, rarest, steps: Arc::new(steps) })
    }
}

impl std::fmt::Debug for IdfTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IdfTable")
            .field("documents", &self.documents)
            .field("words", &self.words())
            .field("rarest", &self.rarest)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> IdfTable {
        let words = [("the", 1), ("美国", 20), ("rare", 40), ("rarer", 41)];
        let steps = words.iter().map(|&(word, step)| (word_hash(word), step)).collect();
        IdfTable::new(100, 40, steps)
    }

    #[test]
    fn words_have_their_step_and_all_others_the_rarest() {
        let table = table();
        assert_eq!(
            ["the", "美国", "rare", "rarer", "unheard of"].map(|word| table.step(word)),
            [1, 20, 40, 40, 40]
        );
        assert_eq!((table.documents(), table.words()), (100, 2));
    }

    #[test]
    fn tables_round_trip_and_have_golden_bytes() {
        let bytes = table().to_bytes();
        assert_eq!(bytes.len(), HEAD + 2 * ENTRY + 4);
        assert_eq!(bytes[..17], *b"hamidf/1\0\0\0\0\0\0\0\x64\x28");
        assert_eq!(IdfTable::from_bytes(&bytes).unwrap(), table());
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_damage() {
        let bytes = table().to_bytes();
        for bit in 0..bytes.len() * 8 {
            let mut bad = bytes.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(IdfTable::from_bytes(&bad), Err(Error::Corrupt { .. })), "{bit}");
        }
        for len in 0..bytes.len() {
            assert!(matches!(IdfTable::from_bytes(&bytes[..len]), Err(Error::Corrupt { .. })));
        }
    }
}
