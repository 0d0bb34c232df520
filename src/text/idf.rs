//! Inverse document frequencies: a token becomes its rarity in whole steps.
//!
//! The table is jieba's, counted over Chinese text. A word it does not hold is as rare as the
//! median of the table; the commonest English words, which it does not hold either, are taken
//! to be as common as the commonest Chinese ones.

use std::sync::OnceLock;

use jieba_rs::{DEFAULT_STOP_WORDS, KeywordExtract, KeywordExtractConfig, TfIdf};
use xxhash_rust::xxh3::xxh3_64;

use super::dictionary::jieba;
use crate::sketch::IDF_SCALE;

/// Tokens that are remembered: 512 kB, the words of a language in daily use.
const REMEMBERED: usize = 1 << SLOT_BITS;

const SLOT_BITS: u32 = 16;

/// Steps for words that carry no subject of their own.
const STOP_WORD: u32 = IDF_SCALE;

static TABLE: OnceLock<Table> = OnceLock::new();

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

/// Rarities of tokens, remembered from text to text.
#[derive(Debug, Default)]
pub(super) struct Rarities {
    /// Of the tokens that share a slot the last one: its hash, the rarity in place of the bits
    /// that chose the slot.
    slots: Vec<u64>,
}

impl Rarities {
    /// Returns the inverse document frequency of a token in steps of `1 / IDF_SCALE`, at least 1.
    ///
    /// Tokens of one hash are one feature, so they need not be told apart here either.
    #[inline]
    pub(super) fn idf(&mut self, token: &str) -> u32 {
        let hash = xxh3_64(token.as_bytes());
        #[allow(clippy::cast_possible_truncation)] // masked at once
        let slot = hash as usize & (REMEMBERED - 1);
        match self.slots.get(slot) {
            // A rarity is at least 1, so nothing is found in a slot that was never filled.
            Some(&slot) if slot >> SLOT_BITS == hash >> SLOT_BITS && rarity(slot) > 0 => {
                rarity(slot)
            }
            _ => self.look_up(token, hash, slot),
        }
    }

    #[cold]
    fn look_up(&mut self, token: &str, hash: u64, slot: usize) -> u32 {
        let idf = look_up(token);
        self.slots.resize(REMEMBERED, 0);
        if let Some(slot) = self.slots.get_mut(slot) {
            *slot = hash >> SLOT_BITS << SLOT_BITS | u64::from(idf);
        }
        idf
    }
}

/// Returns the rarity that a slot holds.
#[allow(clippy::cast_possible_truncation)] // masked at once
fn rarity(slot: u64) -> u32 {
    slot as u32 & ((1 << SLOT_BITS) - 1)
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
        crc.update(&look_up(word).to_be_bytes());
    }
    crc.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_follow_the_table() {
        assert_eq!(["的", "称", "飞碟"].map(look_up), [7, 37, 85]);
    }

    #[test]
    fn words_outside_the_table_get_the_median_or_count_as_stop_words() {
        assert_eq!(look_up("the"), STOP_WORD);
        assert_eq!(look_up("hurricane"), table().median);
        assert_eq!(look_up("龘靐齉"), table().median);
        assert_eq!(look_up(""), table().median);
        assert!(table().median > look_up("雇员"));
    }

    #[test]
    fn remembered_rarities_are_those_of_the_table_whatever_shares_a_slot() {
        let mut rarities = Rarities::default();
        for _ in 0..2 {
            for word in ["的", "称", "飞碟", "the", ""] {
                assert_eq!(rarities.idf(word), look_up(word), "{word}");
            }
            // More words than there are slots.
            for n in 0..REMEMBERED + 1000 {
                assert_eq!(rarities.idf(&format!("w{n}")), table().median);
            }
        }
    }

    #[test]
    fn golden_digest_holds_until_the_table_changes() {
        assert_eq!(digest(), 0xaffb_4925);
    }
}
