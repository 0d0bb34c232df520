//! Cutting: the terms of a text, which are its words and pairs of adjacent words, as hashes.
#![expect(clippy::indexing_slicing, reason = "there is a place for every hash")]

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use xxhash_rust::xxh3::xxh3_64;

use super::repetitions::{Repetitions, Terms};
use crate::text::{TermKind, for_each_term};

/// Bytes of a text for each distinct word or pair of words that it probably has.
const BYTES_PER_TERM: usize = 6;

/// Characters of a text from which a name counts even if it is not repeated.
const NAMED: usize = 200;

/// Terms that are known to be boilerplate, which are most occurrences: 64 KiB.
const COMMON: usize = 1 << 14;

/// Terms that are boilerplate; of those with equal last bits, the one noted last.
///
/// Whether a thread finds a term here depends on time, and no answer does: a term that is boilerplate
/// stays it, and is left out when two texts are compared.
#[derive(Debug)]
pub(super) struct CommonTerms(Box<[AtomicU32]>);

impl CommonTerms {
    pub(super) fn new() -> Self {
        // At first, terms that belong elsewhere.
        Self((1..).take(COMMON).map(AtomicU32::new).collect())
    }

    pub(super) fn note(&self, term: u32) {
        self.0[term as usize % COMMON].store(term, Ordering::Relaxed);
    }

    /// Returns true for most terms that are boilerplate, without a look at their counters.
    #[inline]
    fn has(&self, term: u32) -> bool {
        self.0[term as usize % COMMON].load(Ordering::Relaxed) == term
    }
}

/// Words, and pairs of adjacent words, that a text repeats.
///
/// Each ascending, without numbers, codes and most of what is boilerplate already. Of long texts,
/// the words include another hash of each name.
#[derive(Debug)]
pub(in crate::verify) struct TextTerms(pub(super) [Box<[u32]>; 2]);

impl TextTerms {
    /// Returns the size in bytes.
    pub(in crate::verify) fn bytes(&self) -> usize {
        let Self([words, pairs]) = self;
        size_of_val(&**words) + size_of_val(&**pairs)
    }
}

/// Cuts texts into terms, on any number of threads.
#[derive(Debug)]
pub(in crate::verify) struct TermCutter {
    common: Arc<CommonTerms>,
    /// What no thread uses just now.
    tables: Mutex<Vec<Tables>>,
}

/// Memory that is used for one text after another.
#[derive(Debug, Default)]
struct Tables {
    repetitions: Repetitions,
    words: Terms,
    pairs: Terms,
}

impl TermCutter {
    pub(super) fn new(common: Arc<CommonTerms>) -> Self {
        Self { common, tables: Mutex::default() }
    }

    pub(in crate::verify) fn cut(&self, text: &str) -> TextTerms {
        let unused = || self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tables = unused().pop().unwrap_or_default();
        let terms = tables.cut(text, &self.common);
        unused().push(tables);
        terms
    }
}

impl Tables {
    /// Leaves out terms of `common` at once: they stay boilerplate, and most occurrences are theirs.
    fn cut(&mut self, text: &str, common: &CommonTerms) -> TextTerms {
        let Self { repetitions, words, pairs } = self;
        repetitions.reset(text.len() / BYTES_PER_TERM);
        words.repeated.clear();
        pairs.repeated.clear();
        let mut add = |hash: u64, to: &mut Terms| {
            let term = folded(hash);
            repetitions.add(term, !common.has(term), to);
        };
        let mut before = None;
        let is_long = text.chars().nth(NAMED - 1).is_some();
        for_each_term(text, &mut |word, kind| {
            // Numbers and codes differ between the messages of a template.
            if kind == TermKind::Code {
                before = None;
                return;
            }
            let hash = xxh3_64(word.as_bytes());
            add(hash, words);
            if kind == TermKind::Name && is_long {
                // The page of a function may have its name once. Added twice, it is a repeated word.
                (0..2).for_each(|_| add(hash.rotate_left(11), words));
            }
            if let Some(before) = before.replace(hash) {
                add(pair(before, hash), pairs);
            }
        });
        repetitions.finish(words);
        repetitions.finish(pairs);
        TextTerms([words, pairs].map(|terms| {
            terms.repeated.sort_unstable();
            terms.repeated.as_slice().into()
        }))
    }
}

/// Returns the hash of two words, which depends on their order.
#[inline]
fn pair(first: u64, second: u64) -> u64 {
    let mixed = (first.rotate_left(23) ^ second).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 32)
}

/// Returns half a hash: enough to tell the terms of two texts apart, and for the place of counters.
#[inline]
fn folded(hash: u64) -> u32 {
    u32::try_from((hash ^ (hash >> 32)) & u64::from(u32::MAX)).expect("half of the bits")
}
