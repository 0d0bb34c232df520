//! Inverse document frequencies of tokens, in whole steps.
//!
//! The table is jieba's, counted over Chinese text. A word that is not in the table gets the median
//! of the table. The most common English words, which are not in it either, get the rarity of the
//! most common Chinese words.

use std::sync::LazyLock;

use super::idf_table::{WordMap, word_hash};
use crate::sketch::IDF_SCALE;
use crate::text::tokens::dictionary;

/// Rarity of English stop words, in steps.
const STOP_WORD: u32 = IDF_SCALE;

/// The most common English words, as jieba lists them.
const STOP_WORDS: [&str; 31] = [
    "all", "an", "and", "are", "as", "at", "be", "by", "can", "for", "from", "has", "have", "if",
    "in", "is", "it", "not", "of", "on", "one", "or", "that", "the", "then", "this", "to", "we",
    "which", "with", "you",
];

/// Median of jieba's table, in steps.
const MEDIAN: u32 = 96;

/// Rarities of dictionary words by hash, in steps; words with the median rarity are left out.
static TABLE: LazyLock<WordMap<u16>> = LazyLock::new(|| {
    dictionary::entries(&dictionary::unpacked())
        .filter_map(|(word, _, rarity)| Some((word_hash(word), rarity?)))
        .collect()
});

/// Two-level cache of token rarities, kept from text to text.
#[derive(Debug, Default)]
pub(in crate::text) struct Rarities {
    /// Half a megabyte holds the words in daily use.
    near: Remembered<15>,
    /// Another megabyte, cheaper than looking up one word in five hundred in the table again.
    far: Remembered<16>,
}

impl Rarities {
    /// Returns the inverse document frequency of a token in steps of `1 / IDF_SCALE`, at least 1.
    ///
    /// `hash` is its [`word_hash`](super::idf_table::word_hash). Tokens with equal hashes are one
    /// feature, so the cache does not distinguish them either.
    #[inline]
    pub(in crate::text) fn idf(&mut self, token: &str, hash: u64) -> u32 {
        match self.near.get(hash) {
            0 => self.recall(token, hash),
            idf => idf,
        }
    }

    #[cold]
    fn recall(&mut self, token: &str, hash: u64) -> u32 {
        let mut idf = self.far.get(hash);
        if idf == 0 {
            idf = look_up(token, hash);
            self.far.put(hash, idf);
        }
        self.near.put(hash, idf);
        idf
    }
}

/// Cache of rarities by hash: the lowest bits of a hash choose a pair of slots.
#[derive(Debug, Default)]
struct Remembered<const BITS: u32> {
    /// The last two tokens of each pair: the hash, with the rarity in place of the lowest bits.
    pairs: Vec<[u64; 2]>,
}

impl<const BITS: u32> Remembered<BITS> {
    const LOW: u64 = (1 << BITS) - 1;

    #[allow(clippy::cast_possible_truncation)] // masked first
    fn pair(hash: u64) -> usize {
        (hash & Self::LOW) as usize
    }

    /// Returns the rarity of a token, or 0 if it is not cached.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // masked first
    fn get(&self, hash: u64) -> u32 {
        let known = |slot: u64| slot >> BITS == hash >> BITS;
        // The list is empty before the first token.
        let [first, second] = self.pairs.get(Self::pair(hash)).copied().unwrap_or_default();
        // Branchless: which of the two slots matches is unpredictable.
        let slot = if known(first) { first } else { second };
        if known(slot) { (slot & Self::LOW) as u32 } else { 0 }
    }

    #[expect(clippy::indexing_slicing, reason = "there is a pair for each value of the low bits")]
    fn put(&mut self, hash: u64, idf: u32) {
        self.pairs.resize(1 << BITS, [0; 2]);
        let [first, second] = &mut self.pairs[Self::pair(hash)];
        *second = std::mem::replace(first, hash & !Self::LOW | u64::from(idf));
    }
}

fn look_up(token: &str, hash: u64) -> u32 {
    if STOP_WORDS.contains(&token) {
        STOP_WORD
    } else if token.is_ascii() {
        MEDIAN
    } else {
        TABLE.get(&hash).map_or(MEDIAN, |&rarity| rarity.into())
    }
}

/// Returns a digest that changes when the table or its steps change.
pub(in crate::text) fn digest() -> u32 {
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
        crc.update(&look_up(word, word_hash(word)).to_be_bytes());
    }
    crc.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(word: &str) -> u32 {
        look_up(word, word_hash(word))
    }

    #[test]
    fn steps_follow_the_table() {
        assert_eq!(["的", "称", "飞碟"].map(steps), [7, 37, 85]);
    }

    #[test]
    fn words_outside_the_table_get_the_median_or_the_stop_word_rarity() {
        assert_eq!(steps("the"), STOP_WORD);
        assert_eq!(steps("hurricane"), MEDIAN);
        assert_eq!(steps("龘靐齉"), MEDIAN);
        assert_eq!(steps(""), MEDIAN);
        assert!(MEDIAN > steps("雇员"));
    }

    #[test]
    fn cached_rarities_equal_the_table_when_words_share_slots() {
        let mut rarities = Rarities::default();
        let mut idf = |word: &str| rarities.idf(word, word_hash(word));
        for _ in 0..2 {
            for word in ["的", "称", "飞碟", "the", "", "的"] {
                assert_eq!(idf(word), steps(word), "{word}");
            }
            // More words than there are slots.
            for n in 0..150_000 {
                assert_eq!(idf(&format!("w{n}")), MEDIAN);
            }
        }
    }

    #[test]
    fn golden_digest_holds_until_the_table_changes() {
        assert_eq!(digest(), 0xaffb_4925);
    }
}
