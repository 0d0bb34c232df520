//! Features: cuts a cleaned text into n-grams, each with its hash and weight.
//!
//! Weights that are proportional to the number of occurrences need no counting: in the bit sums,
//! three occurrences equal one with threefold weight. Only distinct features and levels are
//! counted.

pub(super) mod alphabet;
pub(super) mod batch;
pub(super) mod grams;
pub(super) mod ngrams;
pub(super) mod numbered;
pub(super) mod seen;
pub(super) mod sift;

use self::batch::Batch;
use self::ngrams::Tokens;
use self::numbered::Lengths;
use self::sift::Sift;
use crate::fingerprint::Fingerprint;
use crate::sketch::{SketchKind, Weights, feature_hash};
use crate::text::form::letter::is_letter;
use crate::text::pipeline::{Inner, Scratch};
use crate::text::rarity::idf_table::{WORD_SEED, word_hash};
use crate::text::tokens::dictionary::jieba;
use crate::text::tokens::segment;
use crate::text::tokens::segment::{Cutter, Segment, Uncut};

/// One feature of a text.
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

/// An occurrence of a feature whose occurrences are counted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counted {
    hash: u64,
    first: usize,
    rarity: u32,
}

/// A visitor of the features of a text.
pub(super) trait Visit {
    /// Whether the visitor reads a feature's bytes, not only its hash.
    const BYTES: bool;

    fn feature(&mut self, feature: Feature<'_>);

    /// Visits features of weight 1; called only if `BYTES` is false.
    fn hashes(&mut self, hashes: &[u64]);

    /// Visits features and their weights; called only if `BYTES` is false.
    fn weighted(&mut self, hashes: &[u64], weights: &[u32]);
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

    fn weighted(&mut self, hashes: &[u64], weights: &[u32]) {
        for (&hash, &weight) in hashes.iter().zip(weights) {
            self(Feature { bytes: &[], hash, weight: weight.into() });
        }
    }
}

/// Visits the features of the text in the scratch.
pub(super) fn for_each<T: Visit>(pipeline: &Inner, scratch: &mut Scratch, mut visit: T) {
    let Inner { options, ngram, lexicon, .. } = pipeline;
    let Scratch {
        normal, letters, firsts, numbered, parts, tokens, seen, counted, rarities, ..
    } = scratch;
    let (n, seed) = (*ngram, options.seed);
    if matches!(options.sketch, SketchKind::Longest(_)) {
        return sentences(normal, tokens, seed, &mut visit);
    }
    let mut sift = Sift::new(options.weights, lexicon.given(), seed, seen, visit);
    match options.segment {
        Segment::Grams => {
            letters.read(normal);
            let lengths = grams::lengths(n);
            if letters.ascii().is_some_and(|ascii| sift.take_ascii(ascii, n, firsts)) {
            } else if !T::BYTES && lengths.are_supported(letters) {
                numbered.take(letters, lengths, &mut sift);
            } else {
                sift.begin(letters.len());
                letters.for_each_gram(n, &mut |gram| sift.take(gram, |_| 0));
            }
        }
        Segment::Mixed => {
            letters.read(normal);
            let (dense, shorter) = (n.div_ceil(2), n.saturating_sub(1));
            let lengths = Lengths { letters: n, dense, singles: false, shorter: true };
            if let Some(ascii) = letters.ascii()
                && sift.take_ascii(ascii, n, firsts)
            {
                sift.count_double();
                sift.take_shorter(ascii, shorter, firsts);
            } else if !T::BYTES && lengths.are_supported(letters) {
                numbered.take(letters, lengths, &mut sift);
            } else {
                sift.begin(2 * letters.len());
                letters.for_each_fitted(n, dense, &mut |gram| sift.take(gram, |_| 0));
                sift.count_double();
                letters.for_each_fitted(shorter, dense - 1, &mut |gram| sift.take(gram, |_| 0));
            }
        }
        Segment::Raw => {
            if !normal.is_ascii() || !sift.take_bytes(normal.as_bytes(), n) {
                sift.begin(normal.len());
                grams::for_each_raw(normal, n, letters, &mut |gram| sift.take(gram, |_| 0));
            }
        }
        Segment::Chars => {
            tokens.clear(false);
            segment::for_each_token(normal, Cutter::Letters, &jieba, &mut |token| {
                tokens.push_alike(token);
            });
            sift.begin(tokens.ngrams(n));
            for first in 0..tokens.ngrams(n) {
                sift.take(tokens.ngram(first, n), |_| 0);
            }
        }
        // Single words are hashed in place.
        Segment::Auto | Segment::Jieba | Segment::Words
            if n == 1 && options.weights != Weights::Levels =>
        {
            sift.begin(normal.len() / 4);
            let words = parts.sort(normal, options.cutter());
            if !lexicon.weighs() {
                lexicon.for_each_word(words, &mut |word| sift.take(word.as_bytes(), |_| 0));
                return sift.flush();
            }
            let mut take = |words: &[&str]| {
                sift.take_words(words, |word, hash| {
                    let hash = || if seed == WORD_SEED { hash } else { word_hash(word) };
                    // Weight 0 drops the word.
                    lexicon.rarity(word, hash, rarities).unwrap_or(0)
                });
            };
            let mut batch = Batch::default();
            lexicon.for_each_word(words, &mut |word| batch.push(word, &mut take));
            batch.flush(&mut take);
        }
        Segment::Auto | Segment::Jieba | Segment::Words => {
            tokens.clear(true);
            let words = Uncut::Whole(normal, options.cutter());
            if !lexicon.weighs() && options.weights != Weights::Levels {
                lexicon.for_each_word(words, &mut |word| tokens.push_alike(word));
                sift.begin(tokens.ngrams(n));
                for first in 0..tokens.ngrams(n) {
                    sift.take(tokens.ngram(first, n), |_| 0);
                }
                return sift.flush();
            }
            lexicon.for_each_word(words, &mut |word| {
                if let Some(rarity) = lexicon.rarity(word, || word_hash(word), rarities) {
                    tokens.push(word, rarity);
                }
            });
            if options.weights == Weights::Levels {
                return levels(tokens, n, seed, counted, &mut sift.visit);
            }
            sift.begin(tokens.ngrams(n));
            for first in 0..tokens.ngrams(n) {
                sift.take(tokens.ngram(first, n), |_| tokens.rarity(first, n));
            }
        }
    }
    sift.flush();
}

/// Visits the features by levels, after counting them: levels are not proportional to counts.
fn levels(
    tokens: &Tokens,
    n: usize,
    seed: u64,
    counted: &mut Vec<Counted>,
    visit: &mut impl Visit,
) {
    counted.clear();
    counted.extend((0..tokens.ngrams(n)).map(|first| {
        let hash = feature_hash(tokens.ngram(first, n), seed);
        Counted { hash, first, rarity: tokens.rarity(first, n) }
    }));
    counted.sort_unstable_by_key(|counted| (counted.hash, counted.first));
    for same in counted.chunk_by(|a, b| a.hash == b.hash) {
        let &Counted { hash, first, rarity } = same.first().expect("a chunk is not empty");
        let count = u32::try_from(same.len()).unwrap_or(u32::MAX);
        let weight = Weights::Levels.weight(count, rarity);
        visit.feature(Feature { bytes: tokens.ngram(first, n), hash, weight });
    }
}

/// Visits whole sentences, reduced to their letters and weighted by their number.
fn sentences(text: &str, spare: &mut Tokens, seed: u64, visit: &mut impl Visit) {
    segment::for_each_sentence(text, &mut |sentence| {
        spare.clear(false);
        for letter in sentence.char_indices().filter(|(_, c)| is_letter(*c)) {
            let (at, c) = letter;
            spare.push(&sentence[at..at + c.len_utf8()], 0);
        }
        let letters = spare.len();
        if letters > 0 {
            let bytes = spare.ngram(0, letters);
            let weight =
                i64::try_from(letters).expect("a text in memory has fewer than 2^63 letters");
            visit.feature(Feature { bytes, hash: feature_hash(bytes, seed), weight });
        }
    });
}
