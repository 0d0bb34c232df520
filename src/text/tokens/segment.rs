//! Segmentation: splits normalised text into tokens, in order.
//!
//! A token has at least one letter or digit and no white space. Punctuation is not a token.

use std::fmt;
use std::str::FromStr;

use jieba_rs::Jieba;
use unicode_segmentation::UnicodeSegmentation;

use super::dictionary;
use super::scripts;
use super::words::for_each_word;
use crate::error::{Error, Result};
use crate::text::form::letter::is_letter;
use crate::text::pipeline::release;

/// The way to cut a text into tokens.
///
/// ```
/// use hamdex::text::{Segment, tokens};
///
/// let words: Segment = "words".parse()?;
/// assert_eq!(tokens("it's 3.14", words), ["it's", "3.14"]);
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Segment {
    /// Words of every script: Chinese by jieba, others by word lists or by Unicode words.
    ///
    /// Word lists cut Thai, Lao, Khmer and Burmese, and the ideographs and hiragana of Japanese. A
    /// sentence with kana is Japanese, one without is Chinese. Descriptors name `auto-2` and the
    /// digest of the lists. The first version, `auto`, has no lists: jieba cuts all ideographs.
    #[default]
    Auto,
    /// Jieba for the whole text, which keeps `v1.2` and `foo_bar` whole.
    Jieba,
    /// Unicode words (UAX #29); Thai, Lao, Khmer and Burmese by word lists.
    ///
    /// Each ideograph and each hiragana is a word. Descriptors name `words-2` and the digest of the
    /// lists. The first version, `words`, has no lists: each letter of the four scripts is a word.
    /// The preset `code` uses the first version.
    Words,
    /// Single letters and digits, for character n-grams.
    Chars,
    /// Character n-grams fitted to the script, with words separated by one space.
    ///
    /// N letters of an alphabet. Half as many, rounded up, of Chinese characters, kana and Hangul,
    /// because each of these has the weight of two letters; up to N = 3, single ones too.
    Grams,
    /// Character n-grams of two lengths, fitted to the script; the shorter ones count double.
    ///
    /// N and N - 1 letters of an alphabet; half as many of each, rounded up, of Chinese characters,
    /// kana and Hangul. A changed letter changes fewer of the shorter n-grams, which helps short
    /// texts. The longer ones decide in long texts, because most of them are different.
    Mixed,
    /// Character n-grams of the text as it is.
    ///
    /// The text is not normalised or cleaned: every character counts, including white space.
    Raw,
}

impl Segment {
    pub(in crate::text) const NAMES: [(&str, Self); 7] = [
        ("auto", Self::Auto),
        ("jieba", Self::Jieba),
        ("words", Self::Words),
        ("chars", Self::Chars),
        ("grams", Self::Grams),
        ("mixed", Self::Mixed),
        ("raw", Self::Raw),
    ];

    pub(in crate::text) fn needs_dictionary(self) -> bool {
        matches!(self, Self::Auto | Self::Jieba)
    }

    /// Returns true if there is a version that cuts by word lists.
    pub(in crate::text) fn has_lists(self) -> bool {
        matches!(self, Self::Auto | Self::Words)
    }

    /// Returns true if tokens are words, which a dictionary can hold.
    pub(in crate::text) fn is_words(self) -> bool {
        matches!(self, Self::Auto | Self::Jieba | Self::Words)
    }

    /// Returns the default n-gram length: one word, or three characters.
    pub(in crate::text) fn default_ngram(self) -> u32 {
        if self.is_words() { 1 } else { 3 }
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES.iter().find(|(_, segment)| segment == self).map(|(name, _)| *name);
        f.write_str(name.expect("every segmenter has a name"))
    }
}

impl FromStr for Segment {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::NAMES.iter().find(|(name, _)| *name == text).map(|&(_, segment)| segment).ok_or_else(
            || Error::InvalidOption {
                name: "segment",
                reason: format!(
                    "unknown value \"{text}\"; use auto, jieba, words, chars, grams, mixed or raw"
                ),
            },
        )
    }
}

/// One version of a segmentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::text) enum Cutter {
    /// Chinese by jieba, everything else by Unicode words.
    Auto,
    /// As `Auto`, with word lists for Japanese and other scripts without spaces.
    Auto2,
    Jieba,
    /// Unicode words.
    Words,
    /// As `Words`, with word lists for Thai, Lao, Khmer and Burmese.
    Words2,
    Letters,
}

impl Cutter {
    /// Returns the version of a segmentation with or without word lists.
    pub(in crate::text) fn of(segment: Segment, lists: bool) -> Self {
        match segment {
            Segment::Auto if lists => Self::Auto2,
            Segment::Auto => Self::Auto,
            Segment::Jieba => Self::Jieba,
            Segment::Words if lists => Self::Words2,
            Segment::Words => Self::Words,
            Segment::Chars | Segment::Grams | Segment::Mixed | Segment::Raw => Self::Letters,
        }
    }
}

/// Returns the tokens of a normalised text in order.
///
/// [`Segment::Grams`], [`Segment::Mixed`] and [`Segment::Raw`] have no words: their tokens are
/// single letters and digits.
///
/// ```
/// use hamdex::text::{Segment, tokens};
///
/// let words = tokens("我来到北京清华大学 with 2 friends", Segment::Auto);
/// assert_eq!(words, ["我", "来到", "北京", "清华大学", "with", "2", "friends"]);
/// assert_eq!(tokens("a,b。", Segment::Chars), ["a", "b"]);
/// ```
pub fn tokens(text: &str, segment: Segment) -> Vec<&str> {
    let mut out = Vec::new();
    let cutter = Cutter::of(segment, true);
    for_each_token(text, cutter, &dictionary::jieba, &mut |token| out.push(token));
    out
}

/// Calls `emit` with each token of a normalised text.
///
/// `jieba` is called only if the text needs the dictionary, because loading it is slow.
pub(in crate::text) fn for_each_token<'t, 'd>(
    text: &'t str,
    cutter: Cutter,
    jieba: &impl Fn() -> &'d Jieba,
    emit: &mut impl FnMut(&'t str),
) {
    match cutter {
        Cutter::Auto2 if scripts::may_occur(text) => scripts::for_each_of_any(text, jieba, emit),
        Cutter::Auto | Cutter::Auto2 => mixed(text, for_each_word, jieba, emit),
        Cutter::Jieba => cut(jieba(), text, emit),
        Cutter::Words2 if scripts::listed_may_occur(text) => scripts::for_each_listed(text, emit),
        Cutter::Words | Cutter::Words2 => for_each_word(text, emit),
        Cutter::Letters => text
            .char_indices()
            .filter(|&(_, c)| is_letter(c))
            .filter_map(|(at, c)| text.get(at..at + c.len_utf8()))
            .for_each(emit),
    }
}

/// Cuts runs of Chinese by the dictionary and the text between them by `words`.
pub(super) fn mixed<'t, 'd, E: FnMut(&'t str)>(
    text: &'t str,
    words: impl Fn(&'t str, &mut E),
    jieba: &impl Fn() -> &'d Jieba,
    emit: &mut E,
) {
    let mut rest = text;
    while let Some(start) = find_han(rest) {
        let (other, han) = rest.split_at(start);
        words(other, emit);
        // Punctuation stays in the run: one long cut is cheaper than many short ones.
        let end = han_prefix(han);
        let (han, tail) = han.split_at(end);
        cut(jieba(), han, emit);
        rest = tail;
    }
    words(rest, emit);
}

/// A normalised text that is to be cut.
#[derive(Debug, Clone, Copy)]
pub(in crate::text) enum Uncut<'t> {
    /// The text in its order.
    Whole(&'t str, Cutter),
    /// All runs of Chinese, concatenated, and all text between them, for [`Cutter::Auto`].
    ///
    /// A few long cuts by the dictionary are cheaper than many short ones.
    Sorted { other: &'t str, han: &'t str },
}

/// Buffers for the parts of a text.
#[derive(Debug, Default)]
pub(in crate::text) struct Parts {
    other: String,
    han: String,
}

impl Parts {
    /// Separates Chinese from the rest of a text if that makes cutting cheaper.
    ///
    /// The tokens are the same, in another order.
    pub(in crate::text) fn sort<'t>(&'t mut self, text: &'t str, cutter: Cutter) -> Uncut<'t> {
        let sorted = match cutter {
            Cutter::Auto => true,
            Cutter::Auto2 => !scripts::may_occur(text),
            Cutter::Jieba | Cutter::Words | Cutter::Words2 | Cutter::Letters => false,
        };
        if !sorted {
            return Uncut::Whole(text, cutter);
        }
        let Self { other, han } = self;
        other.clear();
        han.clear();
        let mut rest = text;
        while let Some(start) = find_han(rest) {
            let (before, run) = rest.split_at(start);
            let (run, tail) = run.split_at(han_prefix(run));
            // Neither Unicode's words nor jieba's continue after a line feed.
            other.push_str(before);
            other.push('\n');
            han.push_str(run.trim_end_matches(is_separator));
            han.push('\n');
            rest = tail;
        }
        if han.is_empty() {
            return Uncut::Whole(text, Cutter::Words);
        }
        other.push_str(rest);
        Uncut::Sorted { other, han }
    }

    /// Shrinks buffers larger than `bytes`.
    pub(in crate::text) fn release_above(&mut self, bytes: usize) {
        release(&mut self.other, bytes);
        release(&mut self.han, bytes);
    }
}

impl<'t> Uncut<'t> {
    /// Calls `emit` with each token.
    #[inline]
    pub(in crate::text) fn for_each<'d>(
        self,
        jieba: &impl Fn() -> &'d Jieba,
        emit: &mut impl FnMut(&'t str),
    ) {
        match self {
            Self::Whole(text, Cutter::Words) => for_each_word(text, emit),
            Self::Whole(text, cutter) => for_each_token(text, cutter, jieba, emit),
            Self::Sorted { other, han } => {
                for_each_word(other, emit);
                cut_lines(jieba(), han, emit);
            }
        }
    }
}

/// Cuts lines of Chinese, several lines at a time.
fn cut_lines<'t>(jieba: &Jieba, lines: &'t str, emit: &mut impl FnMut(&'t str)) {
    let mut rest = lines;
    while !rest.is_empty() {
        // The tokens of one cut should stay in the L1 cache until they are read.
        let line = rest.bytes().skip(CUT).position(|byte| byte == b'\n');
        let (part, tail) = rest.split_at(line.map_or(rest.len(), |end| CUT + end + 1));
        cut(jieba, part, emit);
        rest = tail;
    }
}

/// Minimum number of bytes of one cut, which then continues to the end of the line.
const CUT: usize = 1 << 10;

/// Returns true if jieba separates a character from any text around it.
fn is_separator(c: char) -> bool {
    !is_letter(c) && !is_han(c) && !matches!(c, '+' | '#' | '&' | '.' | '_' | '%' | '-')
}

/// Returns the offset of the first Chinese ideograph.
fn find_han(text: &str) -> Option<usize> {
    let ascii = text.bytes().position(|byte| !byte.is_ascii())?;
    let found = text.get(ascii..)?.find(is_han)?;
    Some(ascii + found)
}

/// Returns the length of the prefix without letters of other scripts.
fn han_prefix(text: &str) -> usize {
    let mut at = 0;
    loop {
        // The first byte identifies most Chinese characters.
        while let Some(0xe5..=0xe9) = text.as_bytes().get(at) {
            at += 3;
        }
        match text.as_bytes().get(at..) {
            Some([0xe4, 0xb8..=0xbf, ..] | [0xe3, 0x80, 0x81..=0x82, ..]) => {
                at += 3;
                continue;
            }
            Some([ascii @ ..0x80, ..]) if ascii.is_ascii_alphanumeric() => return at,
            Some([..0x80, ..]) => {
                at += 1;
                continue;
            }
            _ => {}
        }
        match text.get(at..).and_then(|rest| rest.chars().next()) {
            Some(c) if is_han(c) || !is_letter(c) => at += c.len_utf8(),
            _ => return at,
        }
    }
}

/// Calls `emit` with each sentence of a text, by Unicode rules (UAX #29).
pub(in crate::text) fn for_each_sentence<'t>(text: &'t str, emit: &mut impl FnMut(&'t str)) {
    text.split('\n').flat_map(str::unicode_sentences).for_each(emit);
}

fn cut<'t>(jieba: &Jieba, text: &'t str, emit: &mut impl FnMut(&'t str)) {
    for token in jieba.cut(text, true) {
        if token.word.chars().any(is_letter) {
            emit(token.word);
        }
    }
}

/// Returns true for a Chinese ideograph, extensions included.
#[inline]
pub(in crate::text) fn is_han(c: char) -> bool {
    matches!(c, '\u{4e00}'..='\u{9fff}' | '\u{3005}' | '\u{3007}' | '\u{3400}'..='\u{4dbf}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}')
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [Segment; 4] = [Segment::Auto, Segment::Jieba, Segment::Words, Segment::Chars];

    #[test]
    fn scripts_are_cut_each_by_its_own_rule() {
        let auto = |text| tokens(text, Segment::Auto);
        assert_eq!(
            auto("美国\"51区\"雇员称,内部有飞碟"),
            ["美国", "51", "区", "雇员", "称", "内部", "有", "飞碟"]
        );
        assert_eq!(auto("don't panic: it's 3.14"), ["don't", "panic", "it's", "3.14"]);
        assert_eq!(auto("rust语言hello世界"), ["rust", "语言", "hello", "世界"]);
        assert_eq!(auto("привет, мир"), ["привет", "мир"]);
        assert_eq!(tokens("版本v1.2", Segment::Jieba), ["版本", "v1.2"]);
        assert_eq!(tokens("我们 a", Segment::Words), ["我", "们", "a"]);
        assert_eq!(tokens("我 ab1!", Segment::Chars), ["我", "a", "b", "1"]);
    }

    #[test]
    fn unknown_names_are_joined_by_the_hidden_markov_model() {
        assert!(tokens("他来到了网易杭研大厦", Segment::Auto).contains(&"杭研"));
    }

    #[test]
    fn nothing_and_punctuation_give_no_tokens() {
        for kind in KINDS {
            for text in ["", " ", "。", "...!?", "——“”【】\n", "😀"] {
                assert_eq!(tokens(text, kind), [""; 0], "{kind:?} {text:?}");
            }
        }
    }

    #[test]
    fn sorted_texts_have_the_tokens_of_the_text() {
        let jieba = dictionary::jieba;
        let pieces =
            "我来到北京|杭研|。|,|.|-|+#|&_%| |\n|don't|3.14|é|人\u{fa6e}|\u{301}|々|𠀀|一.一|😀";
        let pieces: Vec<&str> = pieces.split('|').collect();
        let mut parts = Parts::default();
        let mut random = 7_u64;
        for length in (0..400).chain([5_000]) {
            let mut text = String::new();
            for _ in 0..length {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                text.push_str(pieces[(random >> 33) as usize % pieces.len()]);
            }
            let mut sorted = Vec::new();
            parts.sort(&text, Cutter::Auto2).for_each(&jieba, &mut |token| sorted.push(token));
            sorted.sort_unstable();
            let mut whole = tokens(&text, Segment::Auto);
            whole.sort_unstable();
            assert_eq!(sorted, whole, "{text:?}");
        }
    }

    #[test]
    fn tokens_have_a_letter_or_digit_and_no_white_space() {
        let all: String = (0..=0x0003_ffff).filter_map(char::from_u32).collect();
        for kind in KINDS {
            for text in [all.as_str(), &crate::text::normalise(&all)] {
                for token in tokens(text, kind) {
                    assert!(token.contains(char::is_alphanumeric), "{kind:?} {token:?}");
                    assert!(!token.contains(char::is_whitespace), "{kind:?} {token:?}");
                    assert!(!token.contains('\u{1f}'), "{kind:?} {token:?}");
                }
            }
        }
    }
}
