//! Inverse document frequencies: a token becomes its rarity in whole steps.
//!
//! The table is jieba's, counted over Chinese text. A word it does not hold is as rare as the
//! median of the table; the commonest English words, which it does not hold either, are taken
//! to be as common as the commonest Chinese ones.

use std::cell::RefCell;
use std::sync::OnceLock;

use jieba_rs::{DEFAULT_STOP_WORDS, KeywordExtract, KeywordExtractConfig, TfIdf};
use xxhash_rust::xxh3::xxh3_64;

use super::dictionary::jieba;
use crate::sketch::IDF_SCALE;

/// Tokens a thread remembers, a power of two; 1 MB, the words of a language in daily use.
const REMEMBERED: usize = 1 << 16;

/// Steps for words that carry no subject of their own.
const STOP_WORD: u32 = IDF_SCALE;

static TABLE: OnceLock<Table> = OnceLock::new();

thread_local! {
    static SEEN: RefCell<Vec<Remembered>> = const { RefCell::new(Vec::new()) };
}

/// The last token of those that share a slot.
#[derive(Debug, Clone, Copy, Default)]
struct Remembered {
    /// Tokens of one hash are one feature, so they need not be told apart here either.
    hash: u64,
    idf: u32,
}

struct Table {
    words: TfIdf,
    median: u32,
}

impl Table {
    fn load() -> Self {
        let mut words = TfIdf::default();
        *words.config_mut() = KeywordExtractConfig::builder()
            .set_stop_words(std::collections::BTreeSet::new())
            .min_keyword_length(1)
            .use_hmm(false)
            .build();
        let median = lookup(&words, "zzzz").unwrap_or(10 * IDF_SCALE);
        Self { words, median }
    }
}

fn table() -> &'static Table {
    TABLE.get_or_init(Table::load)
}

/// Asks the table for one word by having it extract the keywords of a text that is this word.
fn lookup(words: &TfIdf, token: &str) -> Option<u32> {
    let found = words.extract_keywords(jieba(), token, 1, Vec::new()).pop()?;
    // A word that the dictionary cuts apart has no entry of its own.
    (found.keyword == token).then(|| quantise(found.weight))
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // clamped first
fn quantise(idf: f64) -> u32 {
    (idf * f64::from(IDF_SCALE)).round().clamp(1.0, 1024.0) as u32
}

/// Returns the inverse document frequency of a token in steps of `1 / IDF_SCALE`, at least 1.
pub(super) fn idf(token: &str) -> u32 {
    let hash = xxh3_64(token.as_bytes());
    SEEN.with_borrow_mut(|seen| {
        if seen.is_empty() {
            seen.resize(REMEMBERED, Remembered::default());
        }
        #[allow(clippy::cast_possible_truncation)] // masked at once
        let slot = seen.get_mut(hash as usize & (REMEMBERED - 1));
        match slot {
            Some(slot) if slot.hash == hash && slot.idf > 0 => slot.idf,
            Some(slot) => {
                *slot = Remembered { hash, idf: look_up(token) };
                slot.idf
            }
            None => look_up(token),
        }
    })
}

fn look_up(token: &str) -> u32 {
    let table = table();
    if DEFAULT_STOP_WORDS.contains(token) {
        STOP_WORD
    } else if token.is_ascii() {
        table.median
    } else {
        lookup(&table.words, token).unwrap_or(table.median)
    }
}

/// Returns a digest that changes when the table or its steps change.
pub(super) fn digest() -> u32 {
    const PROBE: [&str; 16] = [
        "的",
        "你",
        "有",
        "美国",
        "称",
        "看见",
        "妈妈",
        "灰色",
        "雇员",
        "飞碟",
        "外星人",
        "云计算",
        "计算机",
        "the",
        "simhash",
        "劳动防护",
    ];
    let mut crc = crc32fast::Hasher::new();
    for word in PROBE {
        crc.update(&idf(word).to_be_bytes());
    }
    crc.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_follow_the_table() {
        assert_eq!(["的", "称", "飞碟"].map(idf), [7, 37, 85]);
        assert_eq!(idf("的"), 7, "the second time from memory");
    }

    #[test]
    fn words_outside_the_table_get_the_median_or_count_as_stop_words() {
        assert_eq!(idf("the"), STOP_WORD);
        assert_eq!(idf("hurricane"), table().median);
        assert_eq!(idf("龘靐齉"), table().median);
        assert_eq!(idf(""), table().median);
        assert!(table().median > idf("雇员"));
    }

    #[test]
    fn golden_digest_holds_until_the_table_changes() {
        assert_eq!(digest(), 0xaffb_4925);
    }
}
