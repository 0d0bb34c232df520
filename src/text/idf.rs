//! Inverse document frequencies: a token becomes its rarity in whole steps.
//!
//! The table is jieba's, counted over Chinese text. A word it does not hold is as rare as the
//! median of the table; the commonest English words, which it does not hold either, are taken
//! to be as common as the commonest Chinese ones.

use std::sync::OnceLock;

use jieba_rs::{DEFAULT_STOP_WORDS, KeywordExtract, KeywordExtractConfig, TfIdf};

use super::dictionary::jieba;
use crate::sketch::IDF_SCALE;

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
    /// In half a megabyte are the words in daily use.
    near: Remembered<15>,
    /// Another megabyte is cheaper than to ask the table again for one word in five hundred.
    far: Remembered<16>,
}

impl Rarities {
    /// Returns the inverse document frequency of a token in steps of `1 / IDF_SCALE`, at least 1.
    ///
    /// `hash` is its [`word_hash`](super::idf_table::word_hash). Tokens of one hash are one
    /// feature, so they need not be told apart here either.
    #[inline]
    pub(super) fn idf(&mut self, token: &str, hash: u64) -> u32 {
        match self.near.get(hash) {
            0 => self.recall(token, hash),
            idf => idf,
        }
    }

    #[cold]
    fn recall(&mut self, token: &str, hash: u64) -> u32 {
        let mut idf = self.far.get(hash);
        if idf == 0 {
            idf = look_up(token);
            self.far.put(hash, idf);
        }
        self.near.put(hash, idf);
        idf
    }
}

/// Rarities by hash; its lowest bits choose a pair of slots.
#[derive(Debug, Default)]
struct Remembered<const BITS: u32> {
    /// The last two tokens of those that share a pair: the hash of each, its rarity in place of
    /// the bits that chose the pair.
    pairs: Vec<[u64; 2]>,
}

impl<const BITS: u32> Remembered<BITS> {
    const LOW: u64 = (1 << BITS) - 1;

    #[allow(clippy::cast_possible_truncation)] // masked first
    fn pair(hash: u64) -> usize {
        (hash & Self::LOW) as usize
    }

    /// Returns the rarity of a token, 0 for an unknown one.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // masked first
    fn get(&self, hash: u64) -> u32 {
        let known = |slot: u64| slot >> BITS == hash >> BITS;
        let [first, second] = self.pairs.get(Self::pair(hash)).copied().unwrap_or_default();
        // Which of the two it is cannot be foretold, so nothing branches on it.
        let slot = if known(first) { first } else { second };
        if known(slot) { (slot & Self::LOW) as u32 } else { 0 }
    }

    fn put(&mut self, hash: u64, idf: u32) {
        self.pairs.resize(1 << BITS, [0; 2]);
        if let Some([first, second]) = self.pairs.get_mut(Self::pair(hash)) {
            *second = std::mem::replace(first, hash & !Self::LOW | u64::from(idf));
        }
    }
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
    use super::super::idf_table::word_hash;
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
        let mut idf = |word: &str| rarities.idf(word, word_hash(word));
        for _ in 0..2 {
            for word in ["的", "称", "飞碟", "the", "", "的"] {
                assert_eq!(idf(word), look_up(word), "{word}");
            }
            // More words than there are slots.
            for n in 0..150_000 {
                assert_eq!(idf(&format!("w{n}")), table().median);
            }
        }
    }

    #[test]
    fn golden_digest_holds_until_the_table_changes() {
        assert_eq!(digest(), 0xaffb_4925);
    }
}
