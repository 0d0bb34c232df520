//! The jieba dictionary: loaded once per process, with the caller's words once per pipeline.
//!
//! `tables/jieba.zst` is part of this library, so that an update of the crate changes no words. It
//! is made from `dict.txt` and `idf.txt` of jieba-rs 0.11.0 (MIT): one line for each word of
//! `dict.txt`, in its order, with `word frequency [rarity]`. Descriptors name the dictionary by a
//! digest of its behaviour, and the caller's words by a digest of their bytes.

use std::fmt::Write;
use std::sync::{Arc, LazyLock};

use jieba_rs::Jieba;

use crate::error::{Error, Result};
use crate::text::form::normalise::normalise;
use crate::text::form::simplified::simplify;

static JIEBA: LazyLock<Jieba> = LazyLock::new(|| {
    let mut jieba = Jieba::empty();
    for (word, frequency, _) in entries(&unpacked()) {
        jieba.add_word(word, Some(frequency), None);
    }
    jieba
});

/// Unpacks the lines of `tables/jieba.zst`.
pub(in crate::text) fn unpacked() -> String {
    let bytes = zstd::decode_all(include_bytes!("../tables/jieba.zst").as_slice())
        .expect("the table was packed by zstd");
    String::from_utf8(bytes).expect("the table is text")
}

/// Returns words with their frequencies, and their rarities if these differ from the median.
pub(in crate::text) fn entries(table: &str) -> impl Iterator<Item = (&str, usize, Option<u16>)> {
    table.lines().filter_map(|line| {
        let mut fields = line.split(' ');
        let (word, frequency) = (fields.next()?, fields.next()?.parse().ok()?);
        Some((word, frequency, fields.next().and_then(|rarity| rarity.parse().ok())))
    })
}

/// Returns the shared dictionary; the first call loads it.
pub(in crate::text) fn jieba() -> &'static Jieba {
    &JIEBA
}

/// The caller's words for jieba, in addition to its dictionary.
///
/// One word a line, in jieba's format: `word [frequency [tag]]`. Without a frequency, a word gets
/// the lowest one that keeps it whole. A word with frequency 0 is never cut as a word. Words are
/// normalised as texts are. A word that mixes Chinese with other letters is found only with
/// [`Segment::Jieba`](crate::text::Segment::Jieba).
///
/// ```
/// use hamdex::text::{Dictionary, Pipeline};
/// use hamdex::PipelineOptions;
///
/// let words = Dictionary::parse("海量指纹 10 n\n")?;
/// assert_eq!(words.as_str(), "海量指纹 10 n\n");
/// let options = PipelineOptions::new().dictionary(words);
/// let features = Pipeline::new(&options)?.features("海量指纹");
/// assert_eq!(features[0].text, "海量指纹");
///
/// assert!(Dictionary::parse("云计算\n指纹 3 n x").unwrap_err().to_string().contains("line 2"));
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dictionary(Arc<str>);

impl Dictionary {
    /// Parses a dictionary; skips blank lines.
    ///
    /// # Errors
    ///
    /// Returns [`Error::InvalidLine`] for the first line that does not parse.
    pub fn parse(text: &str) -> Result<Self> {
        let mut out = String::new();
        for (line, number) in text.lines().zip(1..) {
            let entry = Entry::parse(line).map_err(|reason| Error::InvalidLine {
                what: "dictionary",
                line: number,
                reason,
            })?;
            if let Some(entry) = entry {
                entry.write(&mut out);
            }
        }
        Ok(Self(out.into()))
    }

    /// Returns the words in normal form, one a line.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Restores a dictionary from the text that [`Dictionary::as_str`] returned.
    pub(in crate::text) fn stored(text: &str) -> Self {
        Self(text.into())
    }

    /// Returns the shared dictionary with these words added, in their order.
    pub(in crate::text) fn load(&self, simplified: bool) -> Jieba {
        let mut jieba = jieba().clone();
        for entry in self.0.lines().filter_map(|line| Entry::parse(line).ok().flatten()) {
            let word = if simplified { simplify(&entry.word) } else { entry.word };
            let frequency = entry.frequency.and_then(|frequency| usize::try_from(frequency).ok());
            jieba.add_word(&word, frequency, Some(entry.tag));
        }
        jieba
    }
}

/// One line of a dictionary.
struct Entry<'a> {
    word: String,
    frequency: Option<u32>,
    tag: &'a str,
}

impl<'a> Entry<'a> {
    /// Parses a line; returns `None` if it is blank.
    fn parse(line: &'a str) -> Result<Option<Self>, String> {
        let mut fields = line.split_whitespace();
        let Some(word) = fields.next().map(normalise) else { return Ok(None) };
        let mut next = fields.next();
        let mut entry = Self { word, frequency: None, tag: "" };
        if entry.word.is_empty() {
            // The field is a byte order mark or another invisible character.
            return if next.is_none() { Ok(None) } else { Err("the word is empty".to_owned()) };
        }
        if entry.word.contains(char::is_whitespace) {
            return Err(format!("\"{}\" is not one word in normal form", entry.word));
        }
        if let Some(field) = next
            && field.starts_with(|c: char| !c.is_ascii_lowercase())
        {
            let frequency = field.parse().map_err(|_| {
                format!("frequency \"{field}\" is not a whole number from 0 to {}", u32::MAX)
            })?;
            entry.frequency = Some(frequency);
            next = fields.next();
        }
        if let Some(field) = next {
            let is_tag = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if !field.chars().all(is_tag) {
                return Err(format!(
                    "tag \"{field}\" has other characters than letters and digits"
                ));
            }
            entry.tag = field;
        }
        match fields.next() {
            Some(more) => {
                Err(format!("unexpected \"{more}\"; a line is a word, its frequency and its tag"))
            }
            None => Ok(Some(entry)),
        }
    }

    fn write(&self, out: &mut String) {
        out.push_str(&self.word);
        if let Some(frequency) = self.frequency {
            // Writing to a string cannot fail.
            let _ = write!(out, " {frequency}");
        }
        if !self.tag.is_empty() {
            let _ = write!(out, " {}", self.tag);
        }
        out.push('\n');
    }
}

/// Text with known and ambiguous words, names that only the hidden Markov model joins, other
/// scripts, and characters outside the main block.
const PROBE: &str = "小明硕士毕业于中国科学院计算所后在日本京都大学深造他来到了网易杭研大厦\
    南京市长江大桥研究生命的起源结婚的和尚未结婚的工信处女干事每月经过下属科室都要亲口交代\
    李小福是创新办主任也是云计算方面的专家韩玉赏鉴乒乓球拍卖完了永和服装饰品有限公司\
    長春市長春節講話臺灣大學繁體字㐀𠀀外星人開著T恤和卡拉OK去第3届2026年微博转发";

/// Returns a digest of the dictionary and of the segmenter.
///
/// It covers behaviour, the cut of a fixed text and the frequencies of its words, because the
/// segmenter does not expose its words.
pub(in crate::text) fn digest() -> u32 {
    let jieba = jieba();
    let mut crc = crc32fast::Hasher::new();
    for hmm in [false, true] {
        for token in jieba.cut(PROBE, hmm) {
            crc.update(token.word.as_bytes());
            crc.update(&[0xff]);
            let frequency = jieba.suggest_freq(token.word) as u64;
            crc.update(&frequency.to_be_bytes());
        }
    }
    crc.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::refused;

    fn cut(dictionary: &str, text: &str) -> Vec<String> {
        let jieba = Dictionary::parse(dictionary).unwrap().load(false);
        jieba.cut(text, true).into_iter().map(|token| token.word.to_owned()).collect()
    }

    #[test]
    fn every_line_of_the_table_is_an_entry() {
        let table = unpacked();
        assert_eq!(entries(&table).count(), 349_045);
        assert_eq!(table.lines().count(), 349_045);
        assert_eq!(entries(&table).filter(|(.., rarity)| rarity.is_some()).count(), 233_945);
        assert_eq!(crc32fast::hash(table.as_bytes()), 0x4acc_0c5b);
    }

    #[test]
    fn golden_digest_holds_until_the_dictionary_changes() {
        assert_eq!(digest(), 0x30e2_eaf6);
    }

    #[test]
    fn other_words_give_another_digest() {
        let mut other = jieba().clone();
        other.add_word("下属科室", None, None);
        assert_ne!(other.cut(PROBE, true), jieba().cut(PROBE, true));
    }

    #[test]
    fn own_words_are_kept_whole_and_forbidden_ones_are_not() {
        let text = "李小福是创新办主任";
        assert!(!cut("", text).contains(&"创新办".to_owned()));
        for line in ["创新办", "创新办 3", "创新办 3 i", "创新办 nz", "\u{feff}创新办\r"]
        {
            assert!(cut(line, text).contains(&"创新办".to_owned()), "{line}");
        }
        assert!(cut("", "外星人").contains(&"外星人".to_owned()));
        assert!(!cut("外星人 0", "外星人").contains(&"外星人".to_owned()));
        assert_eq!(cut("我 0\n们 0\n我们 0", "我们").concat(), "我们");
        assert_eq!(cut("超 4294967295\n级 4294967295", "超级").concat(), "超级");
    }

    #[test]
    fn words_are_brought_into_the_form_of_texts() {
        let dictionary = Dictionary::parse("ＣＴ扫描 5 N\n\n云计算\n").unwrap();
        assert_eq!(dictionary.as_str(), "ct扫描 5 N\n云计算\n");
        let traditional = Dictionary::parse("創新辦").unwrap().load(true);
        assert!(traditional.has_word("创新办"));
    }

    #[test]
    fn wrong_lines_are_named() {
        let cases = [
            ("云计算 x3!", 1, "tag"),
            ("云计算\n创新办 -1 n", 2, "frequency"),
            ("云计算 1 n n", 1, "unexpected"),
            ("\n\n云计算 4294967296", 3, "frequency"),
            ("\u{200b} 3", 1, "empty"),
            ("a\u{a8}b 3", 1, "one word"),
        ];
        refused::check("dictionary", Dictionary::parse, &cases);
    }
}
