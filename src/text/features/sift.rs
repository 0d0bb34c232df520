//! Sifting: keeps the occurrences of features that count, and weights them.
#![expect(clippy::indexing_slicing, reason = "full lists are flushed at once")]

use super::batch;
use super::grams::Start;
use super::seen::{Firsts, Seen};
use super::{Feature, Visit};
use crate::sketch::{Weights, feature_hash};
use crate::text::rarity::weight_table::LoadedWeights;

/// Hashes of one batch.
pub(super) const BATCH: usize = 128;

/// A filter that weights every occurrence, or every distinct feature once, in batches.
pub(super) struct Sift<'s, V> {
    weights: Weights,
    /// The caller's weights, which replace rarities.
    given: Option<&'s LoadedWeights>,
    /// Whether every occurrence has the same weight.
    alike: bool,
    /// That weight: 1, or more for features that count more than once.
    times: u32,
    seed: u64,
    /// The features seen so far, if each one counts once.
    distinct: Option<&'s mut Seen>,
    pub(super) visit: V,
    hashes: [u64; BATCH],
    /// The weights of `hashes`; unused if `alike`.
    hash_weights: [u32; BATCH],
    len: usize,
}

impl<'s, V: Visit> Sift<'s, V> {
    pub(super) fn new(
        weights: Weights,
        given: Option<&'s LoadedWeights>,
        seed: u64,
        seen: &'s mut Seen,
        visit: V,
    ) -> Self {
        Self {
            weights,
            given,
            alike: given.is_none() && !weights.needs_idf(),
            times: 1,
            seed,
            distinct: (weights == Weights::Uniform).then_some(seen),
            visit,
            hashes: [0; BATCH],
            hash_weights: [0; BATCH],
            len: 0,
        }
    }

    /// Clears the distinct features and makes room for `expected`.
    pub(super) fn begin(&mut self, expected: usize) {
        if let Some(seen) = &mut self.distinct {
            seen.reset(expected);
        }
    }

    /// Doubles the common weight of all following features.
    pub(super) fn count_double(&mut self) {
        self.flush();
        self.times = 2;
    }

    #[inline]
    pub(super) fn take(&mut self, bytes: &[u8], rarity: impl FnOnce(u64) -> u32) {
        let hash = feature_hash(bytes, self.seed);
        if self.alike {
            let new = self.is_new(hash);
            self.pass_on(bytes, hash, self.times, new);
        } else {
            self.take_weighed(bytes, hash, rarity(hash));
        }
    }

    /// Takes words as features, weighted by their rarity.
    pub(super) fn take_words(&mut self, words: &[&str], mut rarity: impl FnMut(&str, u64) -> u32) {
        let (mut hashes, mut rarities) = ([0; batch::SIZE], [0; batch::SIZE]);
        for words in words.chunks(batch::SIZE) {
            for (slot, word) in hashes.iter_mut().zip(words) {
                *slot = feature_hash(word.as_bytes(), self.seed);
            }
            let hashed = words.iter().zip(hashes);
            for (slot, (word, hash)) in rarities.iter_mut().zip(hashed.clone()) {
                *slot = rarity(word, hash);
            }
            for ((word, hash), rarity) in hashed.zip(rarities) {
                self.take_weighed(word.as_bytes(), hash, rarity);
            }
        }
    }

    #[inline]
    fn take_weighed(&mut self, bytes: &[u8], hash: u64, rarity: u32) {
        let weight = match self.given {
            Some(given) => given.feature(bytes).unwrap_or(rarity),
            None => u32::try_from(self.weights.weight(1, rarity)).unwrap_or(u32::MAX),
        };
        // Weight 0 drops the feature.
        let new = weight > 0 && self.is_new(hash);
        self.hash_weights[self.len] = weight;
        self.pass_on(bytes, hash, weight, new);
    }

    #[inline]
    fn is_new(&mut self, hash: u64) -> bool {
        self.distinct.as_mut().is_none_or(|seen| seen.insert(hash))
    }

    /// Takes the n-grams of ASCII letters; returns false if they are long or bytes are needed.
    pub(super) fn take_ascii(&mut self, letters: &[u8], n: usize, firsts: &mut Firsts) -> bool {
        if self.distinct.is_none() {
            return self.take_bytes(letters, n);
        }
        let hashes = match n {
            _ if V::BYTES || letters.len() < n => return false,
            1 => firsts.hashes::<1>(letters, self.seed),
            2 => firsts.hashes::<2>(letters, self.seed),
            3 => firsts.hashes::<3>(letters, self.seed),
            4 => firsts.hashes::<4>(letters, self.seed),
            _ => return false,
        };
        visit_alike(&mut self.visit, hashes, self.times);
        true
    }

    /// Takes the n-grams of one letter less, after those of ASCII letters were taken.
    pub(super) fn take_shorter(&mut self, letters: &[u8], n: usize, firsts: &mut Firsts) {
        if self.distinct.is_none() {
            self.take_bytes(letters, n);
            return;
        }
        let hashes = match n {
            1 => firsts.shorter::<1>(letters, self.seed),
            2 => firsts.shorter::<2>(letters, self.seed),
            3 => firsts.shorter::<3>(letters, self.seed),
            _ => return,
        };
        visit_alike(&mut self.visit, hashes, self.times);
    }

    /// Returns true if repeated features count once.
    pub(super) fn is_distinct(&self) -> bool {
        self.distinct.is_some()
    }

    /// Takes n-grams of letters, each the index of its first letter times 8, plus its length.
    pub(super) fn take_found(
        &mut self,
        (bytes, starts): (&[u8], &[Start]),
        found: &[usize],
        times: u32,
    ) {
        let hashes = &mut self.hashes[..found.len()];
        for (slot, found) in hashes.iter_mut().zip(found) {
            let (first, length) = (found >> 3, found & 7);
            let gram = &bytes[starts[first].at()..starts[first + length].at()];
            // With a length known at compile time, the hash is a few instructions.
            *slot = match gram.len() {
                3 => hash::<3>(gram, self.seed),
                6 => hash::<6>(gram, self.seed),
                _ => feature_hash(gram, self.seed),
            };
        }
        visit_alike(&mut self.visit, hashes, times);
    }

    /// Takes every n-gram of bytes.
    ///
    /// Returns false if they are long, bytes are needed, or repeats count once.
    pub(super) fn take_bytes(&mut self, bytes: &[u8], n: usize) -> bool {
        // With a length known at compile time, the hash is a few instructions.
        match n {
            _ if V::BYTES || self.distinct.is_some() || bytes.len() < n => return false,
            1 => self.take_windows::<1>(bytes),
            2 => self.take_windows::<2>(bytes),
            3 => self.take_windows::<3>(bytes),
            4 => self.take_windows::<4>(bytes),
            _ => return false,
        }
        true
    }

    fn take_windows<const N: usize>(&mut self, bytes: &[u8]) {
        let mut grams = bytes.windows(N).filter_map(<[u8]>::first_chunk::<N>);
        loop {
            self.len = 0;
            for (slot, gram) in self.hashes.iter_mut().zip(&mut grams) {
                *slot = feature_hash(gram, self.seed);
                self.len += 1;
            }
            if self.len == 0 {
                return;
            }
            self.flush();
        }
    }

    /// Passes a feature on if it is new.
    #[inline]
    fn pass_on(&mut self, bytes: &[u8], hash: u64, weight: u32, new: bool) {
        if V::BYTES {
            if new {
                self.visit.feature(Feature { bytes, hash, weight: weight.into() });
            }
            return;
        }
        // Branchless: whether a feature is new is unpredictable.
        self.hashes[self.len] = hash;
        self.len += usize::from(new);
        if self.len == BATCH {
            self.flush();
        }
    }

    pub(super) fn flush(&mut self) {
        let hashes = &self.hashes[..self.len];
        if self.alike {
            visit_alike(&mut self.visit, hashes, self.times);
        } else {
            self.visit.weighted(hashes, &self.hash_weights[..self.len]);
        }
        self.len = 0;
    }
}

#[inline]
fn hash<const N: usize>(gram: &[u8], seed: u64) -> u64 {
    let gram: &[u8; N] = gram.first_chunk().expect("it has this length");
    feature_hash(gram, seed)
}

/// Visits features of one weight.
fn visit_alike(visit: &mut impl Visit, hashes: &[u64], times: u32) {
    if times == 1 {
        return visit.hashes(hashes);
    }
    let weights = [times; BATCH];
    for hashes in hashes.chunks(BATCH) {
        visit.weighted(hashes, &weights[..hashes.len()]);
    }
}
