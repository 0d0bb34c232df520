//! Word lists: cuts text without spaces into the longest words of its language's list.
//!
//! `tables/words.zst` is part of this library, so that an update of a crate changes no words. It
//! holds the dictionaries of `icu_segmenter_data` 2.4.0 (Unicode-3.0) in normal form; of the
//! Japanese one only words of ideographs and hiragana, because no others are looked up. Each
//! [`Language`] is one zstd frame, in the order of the enum. A frame holds sorted words, one a
//! line: a letter for the number of characters shared with the previous word (`A` for none), and
//! the remaining characters.
//!
//! The result is that of `icu_segmenter` by dictionary, without its crates.
#![expect(clippy::indexing_slicing, reason = "nodes are numbered here")]

use std::sync::LazyLock;

use zstd::zstd_safe::find_frame_compressed_size;

/// A language with a word list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::text) enum Language {
    Thai,
    Lao,
    Khmer,
    Burmese,
    Japanese,
}

static PACKED: &[u8] = include_bytes!("../tables/words.zst");

static LISTS: [LazyLock<WordList>; 5] = [
    LazyLock::new(|| WordList::unpacked(Language::Thai)),
    LazyLock::new(|| WordList::unpacked(Language::Lao)),
    LazyLock::new(|| WordList::unpacked(Language::Khmer)),
    LazyLock::new(|| WordList::unpacked(Language::Burmese)),
    LazyLock::new(|| WordList::unpacked(Language::Japanese)),
];

impl Language {
    /// Returns the words of the language; the first call loads them.
    pub(super) fn words(self) -> &'static WordList {
        let [thai, lao, khmer, burmese, japanese] = &LISTS;
        match self {
            Self::Thai => thai,
            Self::Lao => lao,
            Self::Khmer => khmer,
            Self::Burmese => burmese,
            Self::Japanese => japanese,
        }
    }

    /// Returns the digest of all lists for descriptors, with or without the Japanese one.
    ///
    /// A constant, because computing it would unpack the lists; a test compares the two.
    pub(in crate::text) fn digest(with_japanese: bool) -> u32 {
        if with_japanese { 0x8d83_b1de } else { 0xc88e_ed27 }
    }

    /// Unpacks the lines of the list.
    fn lines(self) -> String {
        let mut rest = PACKED;
        for _ in 0..self as usize {
            let size = find_frame_compressed_size(rest).expect("every list is a frame");
            rest = &rest[size..];
        }
        let size = find_frame_compressed_size(rest).expect("every list is a frame");
        let bytes = zstd::decode_all(&rest[..size]);
        String::from_utf8(bytes.expect("the list was packed by zstd")).expect("the list is text")
    }
}

/// Decodes the lines of a list to its words.
fn words(lines: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for line in lines.lines() {
        let (count, rest) = line.split_at(1);
        let shared = count.as_bytes()[0] - b'A';
        let before = words.last().map_or("", String::as_str);
        let shared = before.char_indices().nth(shared.into()).map_or(before.len(), |(at, _)| at);
        words.push(format!("{}{rest}", &before[..shared]));
    }
    words
}

/// The words as a trie over characters, with nodes in breadth-first order.
#[derive(Debug)]
pub(super) struct WordList {
    /// The node of each first character, by code point; 0 for none.
    roots: Vec<u32>,
    /// The last character of each node.
    letters: Vec<char>,
    /// For each node, twice the number of its first child, plus 1 if the node is a word.
    ///
    /// One more entry marks the end of the last node's children.
    children: Vec<u32>,
}

impl WordList {
    fn unpacked(language: Language) -> Self {
        Self::of(&words(&language.lines()))
    }

    /// Builds the trie of sorted words.
    fn of(words: &[String]) -> Self {
        let mut list = Self { roots: Vec::new(), letters: vec!['\0'], children: Vec::new() };
        // For each node, the range of its words and the length of its prefix in bytes.
        let mut nodes = vec![(0..words.len(), 0)];
        let number = |at: usize| u32::try_from(at).expect("a list has few words");
        while let Some((below, depth)) = nodes.get(list.children.len()).cloned() {
            let rest = |word: &String| word.get(depth..).and_then(|rest| rest.chars().next());
            let mut at = below.start;
            let is_word = words.get(at).is_some_and(|word| word.len() == depth);
            at += usize::from(is_word);
            list.children.push(2 * number(nodes.len()) + u32::from(is_word));
            while let Some(letter) =
                words.get(at..below.end).and_then(|words| words.first()).and_then(rest)
            {
                let alike = words[at..below.end].partition_point(|word| rest(word) == Some(letter));
                if depth == 0 {
                    list.roots.resize(letter as usize, 0);
                    list.roots.push(number(nodes.len()));
                }
                nodes.push((at..at + alike, depth + letter.len_utf8()));
                list.letters.push(letter);
                at += alike;
            }
        }
        list.children.push(2 * number(nodes.len()));
        list
    }

    /// Returns the child of a node for a character.
    #[inline]
    fn child(&self, node: u32, letter: char) -> Option<u32> {
        if node == 0 {
            return self.roots.get(letter as usize).copied().filter(|&root| root > 0);
        }
        let (first, end) = (self.first_child(node), self.first_child(node + 1));
        let children = &self.letters[first as usize..end as usize];
        let at = children.binary_search(&letter).ok()?;
        Some(first + u32::try_from(at).expect("nodes have numbers of 32 bits"))
    }

    #[inline]
    fn first_child(&self, node: u32) -> u32 {
        self.children[node as usize] / 2
    }

    #[inline]
    fn is_word(&self, node: u32) -> bool {
        self.children[node as usize] % 2 == 1
    }

    /// Calls `emit` with the words of a text and the pieces between them, in order.
    ///
    /// Linear in the length of the text, because no word has more than 33 characters.
    #[inline]
    pub(super) fn cut<'t>(&self, run: &'t str, emit: &mut impl FnMut(&'t str)) {
        let mut rest = run;
        while !rest.is_empty() {
            let (word, tail) = rest.split_at(self.longest(rest));
            emit(word);
            rest = tail;
        }
    }

    /// Returns the length of the longest word at the start of a text, in bytes.
    ///
    /// If there is no word, returns the length of the text that was read to decide this. Both end
    /// at a boundary.
    #[inline]
    fn longest(&self, text: &str) -> usize {
        let (mut node, mut word) = (0, 0);
        for (at, letter) in text.char_indices() {
            let end = at + letter.len_utf8();
            let found = self.child(node, letter);
            if let Some(child) = found {
                node = child;
                let is_word = self.is_word(child) && is_boundary(text, end);
                if is_word {
                    word = end;
                }
                let is_last = self.first_child(child) == self.first_child(child + 1);
                if !is_last {
                    continue;
                }
            }
            if word > 0 {
                return word;
            }
            let rest = text[end..].char_indices();
            let boundary = rest.map(|(at, _)| end + at).find(|&at| is_boundary(text, at));
            return boundary.unwrap_or(text.len());
        }
        if word > 0 { word } else { text.len() }
    }
}

/// Returns true if an offset does not split a grapheme cluster.
///
/// Clusters are those of Unicode 17 (UAX #29) within the scripts of the lists. The AM of Thai and
/// Lao, which the normal form decomposes, is still one cluster.
#[inline]
fn is_boundary(text: &str, at: usize) -> bool {
    let (before, after) = text.split_at(at);
    let Some(next) = after.chars().next() else { return true };
    !extends(next)
        && match before.chars().next_back() {
            Some('\u{e4d}') => next != '\u{e32}',
            Some('\u{ecd}') => next != '\u{eb2}',
            Some('\u{1039}' | '\u{17d2}') => !is_stacked(next),
            _ => true,
        }
}

/// Returns true for a mark that extends the character before it.
fn extends(c: char) -> bool {
    matches!(c, '\u{e31}' | '\u{e33}'..='\u{e3a}' | '\u{e47}'..='\u{e4e}'
        | '\u{eb1}' | '\u{eb3}'..='\u{ebc}' | '\u{ec8}'..='\u{ece}'
        | '\u{102d}'..='\u{1037}' | '\u{1039}'..='\u{103e}' | '\u{1056}'..='\u{1059}'
        | '\u{105e}'..='\u{1060}' | '\u{1071}'..='\u{1074}' | '\u{1082}' | '\u{1084}'..='\u{1086}'
        | '\u{108d}' | '\u{109d}' | '\u{17b4}'..='\u{17d3}' | '\u{17dd}'
        | '\u{3099}' | '\u{309a}' | '\u{a9e5}' | '\u{aa7c}')
}

/// Returns true for a consonant that stacks below another one after a virama or a coeng.
fn is_stacked(c: char) -> bool {
    matches!(c, '\u{1000}'..='\u{102a}' | '\u{103f}' | '\u{1050}'..='\u{1055}'
        | '\u{105a}'..='\u{105d}' | '\u{1061}' | '\u{1065}' | '\u{1066}' | '\u{106e}'..='\u{1070}'
        | '\u{1075}'..='\u{1081}' | '\u{108e}' | '\u{1780}'..='\u{17b3}'
        | '\u{a9e0}'..='\u{a9e4}' | '\u{a9e7}'..='\u{a9ef}' | '\u{a9fa}'..='\u{a9fe}'
        | '\u{aa60}'..='\u{aa6f}' | '\u{aa71}'..='\u{aa73}' | '\u{aa7a}' | '\u{aa7e}' | '\u{aa7f}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{casefold, normalise};

    const LANGUAGES: [Language; 5] =
        [Language::Thai, Language::Lao, Language::Khmer, Language::Burmese, Language::Japanese];

    fn cut(language: Language, text: &str) -> String {
        let mut words = Vec::new();
        language.words().cut(text, &mut |word| words.push(word));
        words.join("|")
    }

    #[test]
    fn golden_digests_hold_until_a_list_changes() {
        let mut crc = crc32fast::Hasher::new();
        let digests = LANGUAGES.map(|language| {
            crc.update(language.lines().as_bytes());
            crc.clone().finalize()
        });
        assert_eq!(digests[3], Language::digest(false));
        assert_eq!(digests[4], Language::digest(true));
    }

    #[test]
    fn lists_are_sorted_words_in_normal_form() {
        let counts = LANGUAGES.map(|language| {
            let words = words(&language.lines());
            assert!(words.is_sorted_by(|a, b| a < b), "{language:?}");
            for word in &words {
                assert_eq!(normalise(word), *word, "{language:?}");
                assert_eq!(casefold(word), *word, "{language:?}");
                assert!(word.chars().count() <= 33, "{word}");
            }
            words.len()
        });
        assert_eq!(counts, [26_383, 30_505, 81_025, 41_120, 293_890]);
    }

    #[test]
    fn every_word_of_a_list_is_cut_whole() {
        for language in LANGUAGES {
            for word in words(&language.lines()) {
                assert_eq!(language.words().longest(&word), word.len(), "{word}");
            }
        }
    }

    #[test]
    fn text_without_blanks_is_cut_into_words() {
        let normal = |language, text| cut(language, &normalise(text));
        assert_eq!(normal(Language::Thai, "ภาษาไทยภาษาไทย"), "ภาษา|ไทย|ภาษา|ไทย");
        assert_eq!(normal(Language::Lao, "ພາສາລາວພາສາລາວ"), "ພາສາ|ລາວ|ພາສາ|ລາວ");
        assert_eq!(normal(Language::Khmer, "ភាសាខ្មែរភាសាខ្មែរ"), "ភាសាខ្មែរ|ភាសាខ្មែរ");
        assert_eq!(normal(Language::Burmese, "မြန်မာစာမြန်မာစာ"), "မြန်မာ|စာ|မြန်မာ|စာ");
        assert_eq!(normal(Language::Japanese, "東京都は大きい"), "東京|都|は|大きい");
        // The normal form decomposes the vowel of น้ำ; the list has the decomposed word.
        assert_eq!(normal(Language::Thai, "น้ำดื่ม"), normalise("น้ำ") + "|" + "ดื่ม");
    }

    #[test]
    fn unknown_text_is_cut_between_grapheme_clusters() {
        // A mark stays with its letter, and a stacked consonant with the one above it.
        assert_eq!(cut(Language::Thai, "ฮฮ\u{e49}ฮ\u{e49}"), "ฮฮ\u{e49}|ฮ\u{e49}");
        assert_eq!(cut(Language::Thai, "\u{e49}"), "\u{e49}");
        assert_eq!(cut(Language::Khmer, "ឝ\u{17d2}ឝ"), "ឝ\u{17d2}ឝ");
        assert_eq!(cut(Language::Thai, ""), "");
    }

    #[test]
    fn a_long_run_is_cut_like_its_parts() {
        let word = normalise("ภาษาไทย");
        let mut words = 0;
        Language::Thai.words().cut(&word.repeat(50_000), &mut |_| words += 1);
        assert_eq!(words, 100_000);
    }
}
