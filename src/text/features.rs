//! Features: a cleaned text is cut, and every n-gram gets its hash and its weight.
//!
//! Weights that grow with the number of occurrences need no counting: sums do not care whether a
//! feature comes three times or once with threefold weight. Only distinct features and levels do.

use super::dictionary::jieba;
use super::grams::Letters;
use super::ngrams::Tokens;
use super::options::Segment;
use super::pipeline::{Inner, Scratch};
use super::seen::{Hashes, Packed, Seen};
use super::weight_table::LoadedWeights;
use super::{grams, segment};
use crate::fingerprint::Fingerprint;
use crate::sketch::{SketchKind, Weights, feature_hash};

/// One feature on its way into a signature.
#[derive(Debug, Clone, Copy)]
pub(super) struct Feature<'t> {
    pub(super) bytes: &'t [u8],
    /// Its 64-bit hash.
    pub(super) hash: u64,
    pub(super) weight: i64,
}

impl Feature<'_> {
    /// Returns the hash at the fingerprint's width.
    #[inline]
    pub(super) fn widened<F: Fingerprint>(&self, seed: u64) -> F {
        if F::BITS > u64::BITS {
            feature_hash(self.bytes, seed)
        } else {
            F::truncate(u128::from(self.hash))
        }
    }
}

/// An occurrence of a feature that has to be counted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counted {
    hash: u64,
    first: usize,
    rarity: u32,
}

/// Takes the features of a text.
pub(super) trait Visit {
    /// Whether a feature's bytes are looked at, and not its hash alone.
    const BYTES: bool;

    fn feature(&mut self, feature: Feature<'_>);

    /// Takes features of weight 1, where bytes are not looked at.
    fn hashes(&mut self, hashes: &[u64]);
}

impl<T: FnMut(Feature<'_>)> Visit for T {
    const BYTES: bool = true;

    fn feature(&mut self, feature: Feature<'_>) {
        self(feature);
    }

    fn hashes(&mut self, hashes: &[u64]) {
        for &hash in hashes {
            self(Feature { bytes: &[], hash, weight: 1 });
        }
    }
}

/// Hashes that are handed on together.
const BATCH: usize = 128;

/// Visits the features of the text in the scratch.
pub(super) fn for_each(pipeline: &Inner, scratch: &mut Scratch, mut visit: impl Visit) {
    let Inner { options, ngram, lexicon, .. } = pipeline;
    let Scratch { normal, letters, packed, hashes, tokens, seen, counted, .. } = scratch;
    if matches!(options.sketch, SketchKind::Longest(_)) {
        return sentences(normal, tokens, options.seed, &mut visit);
    }
    let given = lexicon.given();
    let mut sift = Sift { weights: options.weights, given, seed: options.seed, seen, visit };
    match options.segment {
        Segment::Grams => {
            letters.read(normal);
            sift.begin(letters.len());
            if letters.is_ascii() && *ngram <= Letters::MAX_PACKED {
                hashes.begin(options.seed, *ngram);
                return sift.take_packed(letters, *ngram, packed, hashes);
            }
            let mut batch = sift.batch();
            letters.for_each_gram(*ngram, &mut |gram| batch.take(gram));
            batch.flush();
        }
        Segment::Raw => {
            sift.begin(normal.len());
            let mut batch = sift.batch();
            grams::for_each_raw(normal, *ngram, letters, &mut |gram| batch.take(gram));
            batch.flush();
        }
        Segment::Chars => {
            tokens.clear();
            segment::for_each_token(normal, options.segment, &jieba, &mut |token| {
                tokens.push(token, 0, false);
            });
            sift.begin(tokens.ngrams(*ngram));
            for first in 0..tokens.ngrams(*ngram) {
                sift.take(tokens.ngram(first, *ngram).as_bytes(), 0);
            }
        }
        Segment::Auto | Segment::Jieba | Segment::Words => {
            let alike = given.is_none() && !options.weights.needs_idf();
            if *ngram == 1 && alike {
                sift.begin(normal.len() / 4);
                let mut batch = sift.batch();
                lexicon.for_each_word(normal, options.segment, &mut |token, _| {
                    batch.take(token.as_bytes());
                });
                return batch.flush();
            }
            if *ngram == 1 && options.weights != Weights::Levels {
                sift.begin(normal.len() / 4);
                lexicon.for_each_word(normal, options.segment, &mut |token, rarity| {
                    sift.take(token.as_bytes(), rarity);
                });
                return;
            }
            tokens.clear();
            lexicon.for_each_word(normal, options.segment, &mut |token, rarity| {
                tokens.push(token, rarity, true);
            });
            if options.weights == Weights::Levels {
                return levels(tokens, *ngram, options.seed, counted, &mut sift.visit);
            }
            sift.begin(tokens.ngrams(*ngram));
            if alike {
                let mut batch = sift.batch();
                for first in 0..tokens.ngrams(*ngram) {
                    batch.take(tokens.ngram(first, *ngram).as_bytes());
                }
                return batch.flush();
            }
            for first in 0..tokens.ngrams(*ngram) {
                sift.take(tokens.ngram(first, *ngram).as_bytes(), tokens.rarity(first, *ngram));
            }
        }
    }
}

/// Weighs every occurrence, or every distinct feature once.
struct Sift<'s, V> {
    weights: Weights,
    /// The caller's own weights, which stand for the rarity.
    given: Option<&'s LoadedWeights>,
    seed: u64,
    seen: &'s mut Seen,
    visit: V,
}

impl<V: Visit> Sift<'_, V> {
    fn begin(&mut self, expected: usize) {
        if self.weights == Weights::Uniform {
            self.seen.reset(expected);
        }
    }

    #[inline]
    fn take(&mut self, bytes: &[u8], rarity: u32) {
        let hash = feature_hash(bytes, self.seed);
        let weight = match self.given {
            None => self.weights.weight(1, rarity),
            Some(given) => i64::from(given.feature(bytes).unwrap_or(rarity)),
        };
        // A feature of weight 0 is none.
        if weight == 0 {
            return;
        }
        if self.weights != Weights::Uniform || self.seen.insert(hash) {
            self.visit.feature(Feature { bytes, hash, weight });
        }
    }
}

impl<V: Visit> Sift<'_, V> {
    /// Takes n-grams of ASCII letters; repeats are told, and most hashes known, by their letters.
    fn take_packed(
        &mut self,
        letters: &Letters,
        n: usize,
        packed: &mut Packed,
        hashes: &mut Hashes,
    ) {
        let (seed, uniform) = (self.seed, self.weights == Weights::Uniform);
        let mut batch = Batch { distinct: None, ..self.batch() };
        let mut take = |at: usize, word: u32| {
            let bytes = letters.ascii_gram(at, n);
            batch.take_hashed(bytes, hashes.get(word, || feature_hash(bytes, seed)));
        };
        if uniform {
            packed.begin(letters.len());
            letters.for_each_packed(n, &mut |at, word| packed.note(at, word));
            packed.drain(take);
        } else {
            letters.for_each_packed(n, &mut take);
        }
        batch.flush();
    }

    /// Begins with n-grams of characters, which all weigh 1.
    fn batch(&mut self) -> Batch<'_, V> {
        Batch {
            seed: self.seed,
            distinct: (self.weights == Weights::Uniform).then_some(&mut *self.seen),
            visit: &mut self.visit,
            hashes: [0; BATCH],
            len: 0,
        }
    }
}

/// N-grams on their way, by their hashes alone where nobody asks for more.
struct Batch<'s, V> {
    seed: u64,
    /// What came already, where each feature counts once.
    distinct: Option<&'s mut Seen>,
    visit: &'s mut V,
    hashes: [u64; BATCH],
    len: usize,
}

impl<V: Visit> Batch<'_, V> {
    #[inline]
    fn take(&mut self, bytes: &[u8]) {
        self.take_hashed(bytes, feature_hash(bytes, self.seed));
    }

    #[inline]
    fn take_hashed(&mut self, bytes: &[u8], hash: u64) {
        let new = self.distinct.as_mut().is_none_or(|seen| seen.insert(hash));
        if V::BYTES {
            if new {
                self.visit.feature(Feature { bytes, hash, weight: 1 });
            }
            return;
        }
        if let Some(slot) = self.hashes.get_mut(self.len) {
            *slot = hash;
            self.len += usize::from(new);
        }
        if self.len == BATCH {
            self.flush();
        }
    }

    fn flush(&mut self) {
        self.visit.hashes(self.hashes.get(..self.len).unwrap_or_default());
        self.len = 0;
    }
}

/// Counts every feature first: levels do not grow with each occurrence.
fn levels(
    tokens: &Tokens,
    n: usize,
    seed: u64,
    counted: &mut Vec<Counted>,
    visit: &mut impl Visit,
) {
    counted.clear();
    counted.extend((0..tokens.ngrams(n)).map(|first| {
        let hash = feature_hash(tokens.ngram(first, n).as_bytes(), seed);
        Counted { hash, first, rarity: tokens.rarity(first, n) }
    }));
    counted.sort_unstable_by_key(|counted| (counted.hash, counted.first));
    for same in counted.chunk_by(|a, b| a.hash == b.hash) {
        let Some(&Counted { hash, first, rarity }) = same.first() else { continue };
        let count = u32::try_from(same.len()).unwrap_or(u32::MAX);
        let weight = Weights::Levels.weight(count, rarity);
        visit.feature(Feature { bytes: tokens.ngram(first, n).as_bytes(), hash, weight });
    }
}

/// Takes whole sentences, their letters alone, weighed by how many they have.
fn sentences(text: &str, spare: &mut Tokens, seed: u64, visit: &mut impl Visit) {
    segment::for_each_sentence(text, &mut |sentence| {
        spare.clear();
        for letter in sentence.char_indices().filter(|(_, c)| c.is_alphanumeric()) {
            let (at, c) = letter;
            spare.push(sentence.get(at..at + c.len_utf8()).unwrap_or_default(), 0, false);
        }
        let letters = spare.len();
        if letters > 0 {
            let bytes = spare.ngram(0, letters).as_bytes();
            let weight = i64::try_from(letters).unwrap_or(i64::MAX);
            visit.feature(Feature { bytes, hash: feature_hash(bytes, seed), weight });
        }
    });
}
