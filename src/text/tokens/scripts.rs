//! Scripts without spaces: Thai, Lao, Khmer, Burmese and Japanese are cut by word lists.
//!
//! The script of a character gives its language. Ideographs are Japanese if their sentence has
//! kana, else Chinese; so an edit changes the words of one sentence only. This module does not
//! affect text in other scripts.

use jieba_rs::Jieba;

use super::segment::{is_han, mixed};
use super::word_list::Language;
use super::words::for_each_word;
use crate::text::form::letter::is_letter;

/// Returns false only if [`for_each_of_any`] cuts the text into Chinese and Unicode words alone.
pub(super) fn may_occur(text: &str) -> bool {
    any_pair(text, |first, second| is_listed_pair(first, second) | is_kana_pair(first, second))
}

/// Returns false only if [`for_each_listed`] cuts the text into Unicode words alone.
pub(super) fn listed_may_occur(text: &str) -> bool {
    any_pair(text, is_listed_pair)
}

/// Returns true if two consecutive bytes satisfy `is_such`.
///
/// `is_such` must not branch, so that the compiler can vectorise the loop.
#[inline]
fn any_pair(text: &str, is_such: impl Fn(u8, u8) -> bool) -> bool {
    let any = |(first, second): (&[u8], &[u8])| {
        first
            .iter()
            .zip(second)
            .fold(false, |found, (&first, &second)| found | is_such(first, second))
    };
    let bytes = text.as_bytes();
    let next = bytes.get(1..).unwrap_or_default();
    !text.is_ascii() && bytes.chunks(LOOK).zip(next.chunks(LOOK)).any(any)
}

/// Bytes that are read between two checks of the result.
const LOOK: usize = 256;

/// Returns true if a Thai, Lao, Khmer or Burmese character may begin with these bytes.
#[inline]
fn is_listed_pair(first: u8, second: u8) -> bool {
    ((first == 0xe0) & matches!(second, 0xb8..=0xbb))
        | ((first == 0xe1) & matches!(second, 0x80..=0x82 | 0x9e..=0x9f))
        | ((first == 0xea) & matches!(second, 0xa7 | 0xa9))
}

/// Returns true if kana may begin with these bytes.
#[inline]
fn is_kana_pair(first: u8, second: u8) -> bool {
    (first == 0xe3) & matches!(second, 0x81..=0x83 | 0x87)
}

/// Calls `emit` with every word of a text: by lists in the four scripts, else by Unicode.
pub(super) fn for_each_listed<'t>(text: &'t str, emit: &mut impl FnMut(&'t str)) {
    let mut rest = text;
    while let Some((start, language)) = find(rest, language) {
        let (before, from) = rest.split_at(start);
        for_each_word(before, emit);
        rest = cut_run(from, |c| self::language(c) == Some(language), language, emit);
    }
    for_each_word(rest, emit);
}

/// Calls `emit` with every word of a text, each by the rule of its script.
pub(super) fn for_each_of_any<'t, 'd>(
    text: &'t str,
    jieba: &impl Fn() -> &'d Jieba,
    emit: &mut impl FnMut(&'t str),
) {
    if !any_pair(text, is_kana_pair) {
        return mixed(text, for_each_listed, jieba, emit);
    }
    let mut rest = text;
    while !rest.is_empty() {
        // Adjacent sentences of one language are cut together: one long cut is cheaper.
        let japanese = is_japanese(sentence(rest));
        let mut end = 0;
        while let Some(next) = rest.get(end..).filter(|next| !next.is_empty()).map(sentence)
            && is_japanese(next) == japanese
        {
            end += next.len();
        }
        let (alike, tail) = rest.split_at(end);
        if japanese {
            by_japanese(alike, emit);
        } else {
            mixed(alike, for_each_listed, jieba, emit);
        }
        rest = tail;
    }
}

/// Cuts ideographs and hiragana by the Japanese list, everything else as [`for_each_listed`].
fn by_japanese<'t>(text: &'t str, emit: &mut impl FnMut(&'t str)) {
    let mut rest = text;
    let known = |c| is_han(c) || is_hiragana(c);
    while let Some((start, ())) = find(rest, |c| known(c).then_some(())) {
        let (before, from) = rest.split_at(start);
        for_each_listed(before, emit);
        rest = cut_run(from, known, Language::Japanese, emit);
    }
    for_each_listed(rest, emit);
}

/// Cuts the characters of a language at the start of a text, and returns the rest of the text.
fn cut_run<'t>(
    text: &'t str,
    known: impl Fn(char) -> bool,
    language: Language,
    emit: &mut impl FnMut(&'t str),
) -> &'t str {
    let (run, rest) = text.split_at(text.find(|c| !known(c)).unwrap_or(text.len()));
    language.words().cut(run, &mut |word| {
        if word.contains(is_letter) {
            emit(word);
        }
    });
    rest
}

/// Returns the offset and result of the first character outside ASCII for which `found` is `Some`.
fn find<T>(text: &str, found: impl Fn(char) -> Option<T>) -> Option<(usize, T)> {
    let ascii = text.bytes().position(|byte| !byte.is_ascii())?;
    let rest = text.get(ascii..)?.char_indices();
    rest.filter(|(_, c)| !c.is_ascii()).find_map(|(at, c)| Some((ascii + at, found(c)?)))
}

/// Returns the first sentence of a text with its end: a line feed or one of 。, ! and ?.
fn sentence(text: &str) -> &str {
    text.split_inclusive(['\n', '。', '!', '?']).next().unwrap_or_default()
}

/// Returns true if a sentence has kana.
fn is_japanese(sentence: &str) -> bool {
    find(sentence, |c| (is_hiragana(c) || is_katakana(c)).then_some(())).is_some()
}

fn is_hiragana(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{309f}')
}

/// Returns true for katakana, without the middle dot and the long vowel of other scripts.
fn is_katakana(c: char) -> bool {
    matches!(c, '\u{30a1}'..='\u{30fa}' | '\u{30fd}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}')
}

/// Returns the language of a letter or mark of Thai, Lao, Khmer or Burmese.
///
/// These are the characters of line breaking class SA (UAX #14) in the four scripts.
fn language(c: char) -> Option<Language> {
    if c < '\u{e01}' {
        return None;
    }
    Some(match c {
        '\u{e01}'..='\u{e3a}' | '\u{e40}'..='\u{e4e}' => Language::Thai,
        '\u{e81}'..='\u{ebd}'
        | '\u{ec0}'..='\u{ec6}'
        | '\u{ec8}'..='\u{ece}'
        | '\u{edc}'..='\u{edf}' => Language::Lao,
        '\u{1780}'..='\u{17d3}' | '\u{17d7}' | '\u{17dc}' | '\u{17dd}' => Language::Khmer,
        '\u{1000}'..='\u{103f}'
        | '\u{1050}'..='\u{108f}'
        | '\u{109a}'..='\u{109f}'
        | '\u{a9e0}'..='\u{a9ef}'
        | '\u{a9fa}'..='\u{a9fe}'
        | '\u{aa60}'..='\u{aa7f}' => Language::Burmese,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::tokens::dictionary::jieba;
    use crate::text::tokens::segment::{Cutter, Parts, for_each_token};
    use crate::text::{Segment, normalise};

    fn cut(cutter: Cutter, text: &str) -> Vec<&str> {
        let mut words = Vec::new();
        for_each_token(text, cutter, &jieba, &mut |word| words.push(word));
        words
    }

    fn auto(text: &str) -> String {
        cut(Cutter::Auto2, &normalise(text)).join("|")
    }

    fn words(text: &str) -> String {
        cut(Cutter::Words2, &normalise(text)).join("|")
    }

    #[test]
    fn scripts_without_spaces_are_cut_into_words_among_others() {
        assert_eq!(auto("ภาษาไทย2024ปี, Thai!"), "ภาษา|ไทย|2024|ปี|thai");
        assert_eq!(auto("我来到ภาษาไทย北京"), "我|来到|ภาษา|ไทย|北京");
        assert_eq!(
            words("我们ภาษาไทย ພາສາລາວ, ភាសាខ្មែរ។ မြန်မာစာ။"),
            "我|们|ภาษา|ไทย|ພາສາ|ລາວ|ភាសាខ្មែរ|မြန်မာ|စာ"
        );
        // Marks without a letter are not words.
        assert_eq!(words("\u{e49} ฯ \u{e48}a"), "ฯ|a");
    }

    #[test]
    fn sentences_with_kana_are_japanese_and_others_chinese() {
        assert_eq!(auto("東京都のデータベース管理。"), "東京|都|の|データベース|管理");
        assert_eq!(
            auto("研究生命的起源。研究生命の起源!研究生命的起源"),
            "研究|生命|的|起源|研究生|命|の|起源|研究|生命|的|起源"
        );
        // Half-width kana are kana in normal form; a middle dot alone is not.
        assert!(is_japanese(&normalise("ｶﾀｶﾅ")));
        assert!(!is_japanese("约翰・史密斯"));
        let both = "他来到了网易杭研大厦\nこれはペンです";
        assert_eq!(auto(both), "他|来到|了|网易|杭研|大厦|これ|は|ペン|です");
    }

    #[test]
    fn unicode_words_of_japanese_stay_single_characters() {
        assert_eq!(words("東京都はデータ"), cut(Cutter::Words, "東京都はデータ").join("|"));
    }

    #[test]
    fn texts_of_other_scripts_are_cut_as_before() {
        let texts = "我来到北京清华大学 with 2 friends|don't panic: it's 3.14|привет, мир|가나다 라|\
            \u{10d0}\u{1c90}|བོད་སྐད|ᥖᥭᥰ ᦑᦺ|ꨌꩌ|a\u{301}b|ー・一|";
        for text in texts.split('|').map(normalise) {
            for (first, second) in [(Cutter::Auto, Cutter::Auto2), (Cutter::Words, Cutter::Words2)]
            {
                assert_eq!(cut(first, &text), cut(second, &text), "{text}");
            }
        }
    }

    #[test]
    fn no_character_of_a_listed_script_is_overlooked() {
        for c in '\0'..=char::MAX {
            let text = format!("{}{c}", "a".repeat(LOOK - 1));
            if language(c).is_some() {
                assert!(listed_may_occur(&text), "{c:?}");
            }
            if language(c).is_some() || is_hiragana(c) || is_katakana(c) {
                assert!(may_occur(&text), "{c:?}");
            }
        }
        assert!(!may_occur("我来到北京清华大学。don't panic, привет"));
    }

    #[test]
    fn sorted_texts_have_the_words_of_the_text() {
        let pieces =
            ["東京", "の", "ภาษาไทย", "。", "\n", "我来到北京", " ", "don't", "ペン", "\u{e49}"];
        let mut random = 11_u64;
        for length in 0..300 {
            let mut text = String::new();
            for _ in 0..length {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                text.push_str(pieces[(random >> 33) as usize % pieces.len()]);
            }
            let mut sorted = Vec::new();
            let mut parts = Parts::default();
            let cutter = Cutter::of(Segment::Auto, true);
            parts.sort(&text, cutter).for_each(&jieba, &mut |word| sorted.push(word));
            let mut whole = cut(cutter, &text);
            sorted.sort_unstable();
            whole.sort_unstable();
            assert_eq!(sorted, whole, "{text:?}");
        }
    }

    #[test]
    fn a_megabyte_without_spaces_is_cut_like_its_parts() {
        for (run, words) in [("ภาษาไทย", 2), ("東京都の", 3), ("データ。東京", 2)]
        {
            let run = normalise(run);
            let text = run.repeat(1_000_000 / run.len());
            let count = text.len() / run.len();
            assert_eq!(cut(Cutter::Auto2, &text).len(), words * count, "{run}");
        }
    }
}
