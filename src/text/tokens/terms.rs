//! Terms: words of any script, and windows of scripts without spaces.
//!
//! Most text is ASCII and letters of Latin, Greek and Cyrillic. In these a term is a run of letters,
//! digits and underscores, and UAX #29 need not be asked.
#![expect(clippy::indexing_slicing, reason = "the table has an entry for every byte")]

use super::words::{for_each_part, for_each_single, is_part};
use crate::text::form::letter::is_dense;

/// A byte of a letter or of a digit, which makes a run a word.
const WORD: u8 = 1;
const DIGIT: u8 = 2;
const UNDERSCORE: u8 = 4;

/// What each byte is in text of ASCII and plain letters; 0 is outside terms.
static KINDS: [u8; 256] = kinds();

const fn kinds() -> [u8; 256] {
    let mut kinds = [0; 256];
    let mut byte = 0_u8;
    loop {
        kinds[byte as usize] = match byte {
            b'0'..=b'9' => WORD | DIGIT,
            b'_' => UNDERSCORE,
            b'a'..=b'z' | b'A'..=b'Z' | 0x80.. => WORD,
            _ => 0,
        };
        if byte == u8::MAX {
            return kinds;
        }
        byte += 1;
    }
}

/// What a term looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TermKind {
    Word,
    /// It has a digit and no underscore, such as a number.
    Code,
    /// Its letters are joined by an underscore, as in names of programs.
    Name,
}

impl TermKind {
    fn new(term: &str, kinds: u8) -> Self {
        if kinds & UNDERSCORE == 0 {
            return if kinds & DIGIT == 0 { Self::Word } else { Self::Code };
        }
        let inner = term.trim_matches('_');
        let is_name = inner.contains('_') && !inner.starts_with(|c: char| c.is_ascii_digit());
        if is_name { Self::Name } else { Self::Word }
    }
}

/// Calls `emit` with every term of a text and its kind.
///
/// Scripts without spaces are cut into overlapping windows of two dense characters, or of four
/// letters of a script such as Thai, which are about as specific as a word. Words that punctuation
/// joins, such as `std.io`, are taken apart.
pub(crate) fn for_each_term<'t>(text: &'t str, emit: &mut impl FnMut(&'t str, TermKind)) {
    for_each_part(text, first_foreign, |part, is_foreign| {
        if !is_foreign {
            return plain_terms(part, emit);
        }
        terms_of_any(part, &mut |term| {
            let kinds = term.bytes().fold(0, |kinds, byte| kinds | KINDS[usize::from(byte)]);
            emit(term, TermKind::new(term, kinds));
        });
    });
}

/// Bytes that are skipped together if all are ASCII.
const TOGETHER: usize = 32;

/// Returns where the first character is that is neither ASCII nor a plain letter.
fn first_foreign(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let next = bytes.get(at + 1).copied().unwrap_or_default();
        at += match byte {
            // ASCII comes in long runs.
            ..0x80 => match bytes[at..].first_chunk::<TOGETHER>() {
                Some(run) if run.is_ascii() => TOGETHER,
                _ => 1,
            },
            0xc3..=0xd4 if is_plain_letter(byte, next) => 2,
            _ => return Some(at),
        };
    }
    None
}

/// Returns true for the two bytes of a letter of Latin, Greek or Cyrillic.
///
/// Of their blocks, these are the ranges with letters only (category `ALetter` of the annex).
fn is_plain_letter(first: u8, second: u8) -> bool {
    match u32::from(first & 0x1f) << 6 | u32::from(second & 0x3f) {
        // The signs of multiplication and division.
        0xd7 | 0xf7 => false,
        0xc0..=0x24f => true,
        code => {
            matches!(code, 0x388..=0x38a | 0x38e..=0x3a1 | 0x3a3..=0x3f5)
                || matches!(code, 0x3f7..=0x481 | 0x48a..=0x52f)
        }
    }
}

/// Cuts text of ASCII and plain letters.
fn plain_terms<'t>(text: &'t str, emit: &mut impl FnMut(&'t str, TermKind)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let (start, mut kinds) = (at, 0);
        while let Some(&byte) = bytes.get(at)
            && KINDS[usize::from(byte)] != 0
        {
            kinds |= KINDS[usize::from(byte)];
            at += 1;
        }
        // Underscores alone are not a word.
        if kinds & WORD != 0 {
            let term = &text[start..at];
            emit(term, TermKind::new(term, kinds));
        }
        at += 1;
    }
}

/// Cuts text of any characters by the annex.
fn terms_of_any<'t>(text: &'t str, emit: &mut impl FnMut(&'t str)) {
    let (mut run, mut window) = (0..0, 0);
    for_each_single(text, &mut |word| {
        let start = word.as_ptr().addr() - text.as_ptr().addr();
        let width = match word.chars().next() {
            Some(first) if first.is_ascii() => 0,
            Some(first) if is_dense(first) => 2,
            Some(_) if is_part(word) => 4,
            _ => 0,
        };
        if width == 0 || width != window || start != run.end {
            emit_windows(&text[run.clone()], window, emit);
            (run, window) = (start..start, width);
        }
        if width == 0 {
            let joins = |c: char| c.is_ascii_punctuation() && c != '_';
            word.split(joins).filter(|word| !word.is_empty()).for_each(&mut *emit);
        } else {
            run.end = start + word.len();
        }
    });
    emit_windows(&text[run], window, emit);
}

/// Calls `emit` with every window of a run, or with all of a shorter run.
fn emit_windows<'t>(run: &'t str, window: usize, emit: &mut impl FnMut(&'t str)) {
    if run.is_empty() {
        return;
    }
    let starts = run.char_indices().map(|(at, _)| at);
    let ends = run.char_indices().map(|(at, _)| at).chain([run.len()]).skip(window);
    let mut emitted = false;
    for (start, end) in starts.zip(ends) {
        emit(&run[start..end]);
        emitted = true;
    }
    if !emitted {
        emit(run);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> Vec<&str> {
        let mut terms = Vec::new();
        for_each_term(text, &mut |term, _| terms.push(term));
        terms
    }

    #[test]
    fn terms_with_a_digit_are_codes_and_joined_letters_are_names() {
        let of = |text, kind| {
            let mut terms = Vec::new();
            for_each_term(text, &mut |term, is| terms.extend((is == kind).then_some(term)));
            terms
        };
        let text = "a 1200 read_u8 x7k2 _ é9 晴7 __init__ é_é 1_000 用_中_z __a_1 _b";
        assert_eq!(of(text, TermKind::Code), ["1200", "x7k2", "é9", "7"]);
        assert_eq!(of(text, TermKind::Name), ["read_u8", "é_é", "__a_1"]);
        assert!(of(text, TermKind::Word).starts_with(&["a", "晴", "__init__", "1_000"]));
    }

    #[test]
    fn terms_are_words_and_windows_of_scripts_without_spaces() {
        let terms = |text| terms(text).join("|");
        assert_eq!(terms("read_file of std.io, 3.5 times"), "read_file|of|std|io|3|5|times");
        assert_eq!(terms("今天天气 晴"), "今天|天天|天气|晴");
        assert_eq!(terms("用rust写的 привет"), "用|rust|写的|привет");
        assert_eq!(terms("สวัสดี 晴天กข"), "สวัส|วัสด|ัสดี|晴天|กข");
        assert_eq!(terms("el niño l’été __ _a_"), "el|niño|l’été|_a_");
        assert_eq!(terms(""), "");
    }

    #[test]
    fn terms_of_plain_text_are_those_of_the_annex() {
        fn by_the_annex(text: &str) -> Vec<&str> {
            let mut terms = Vec::new();
            terms_of_any(text, &mut |term| terms.push(term));
            terms
        }
        for c in (0..0x3000).filter_map(char::from_u32) {
            let text = format!("don't 3.5 {c} a{c}b {c}{c}_x 1{c}2 a.{c}:{c} _{c}_ {c}'9");
            assert_eq!(terms(&text), by_the_annex(&text), "{text:?}");
        }
    }
}
