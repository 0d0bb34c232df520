//! Unicode words: cuts text by UAX #29, with fast paths for ASCII, Chinese characters and hiragana.
//!
//! Nearly all words of alphabetic text are ASCII between blanks. For these, the rules of the annex
//! reduce to a table of a few byte classes. Each character of a Chinese text is a word.

use unicode_segmentation::UnicodeSegmentation;

use crate::text::form::letter::is_dense;

/// The effect of an ASCII character on the word around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    Digit,
    /// The underscore joins letters and digits.
    Joins,
    /// A colon joins letters.
    JoinsLetters,
    /// Comma and semicolon join digits.
    JoinsDigits,
    /// Full stop and apostrophe join letters with letters, and digits with digits.
    JoinsEither,
    Other,
}

const CLASSES: [Class; 128] = classes();

#[allow(clippy::indexing_slicing)] // a loop over all of a table at compile time
const fn classes() -> [Class; 128] {
    let mut classes = [Class::Other; 128];
    let mut byte = 0_u8;
    while byte < 128 {
        classes[byte as usize] = match byte {
            b'a'..=b'z' | b'A'..=b'Z' => Class::Letter,
            b'0'..=b'9' => Class::Digit,
            b'_' => Class::Joins,
            b':' => Class::JoinsLetters,
            b',' | b';' => Class::JoinsDigits,
            b'.' | b'\'' => Class::JoinsEither,
            _ => Class::Other,
        };
        byte += 1;
    }
    classes
}

/// Calls `emit` with every word of a text, in order.
pub(super) fn for_each_word<'t>(text: &'t str, emit: &mut impl FnMut(&'t str)) {
    let first_foreign = |bytes: &[u8]| bytes.iter().position(|byte| !byte.is_ascii());
    for_each_part(text, first_foreign, |part, is_foreign| {
        if is_foreign {
            foreign_words(part, emit);
        } else {
            ascii_words(part, emit);
        }
    });
}

fn foreign_words<'t>(part: &'t str, emit: &mut impl FnMut(&'t str)) {
    let mut rest = part;
    while let Some(start) = first_pair(rest) {
        let (before, run) = rest.split_at(start);
        before.unicode_words().for_each(&mut *emit);
        let ends = run.char_indices().take_while(|&(_, c)| is_alone(c)).map(|(at, _)| at).skip(1);
        let mut from = 0;
        for end in ends {
            emit(&run[from..end]);
            from = end;
        }
        // A mark that follows belongs to the last character.
        rest = &run[from..];
    }
    rest.unicode_words().for_each(emit);
}

/// Returns where the first two characters are that are words each.
fn first_pair(text: &str) -> Option<usize> {
    let mut before = None;
    text.char_indices().find_map(|(at, c)| {
        let alone = is_alone(c).then_some(at);
        std::mem::replace(&mut before, alone).filter(|_| alone.is_some())
    })
}

/// Returns true for characters that are words unless a mark follows: hiragana and Chinese ones.
fn is_alone(c: char) -> bool {
    matches!(c, '\u{4e00}'..='\u{9fff}' | '\u{3041}'..='\u{3096}' | '\u{3400}'..='\u{4dbf}')
}

/// Calls `each` with the parts of a text, in order, and whether a part has a foreign character.
///
/// `first_foreign` returns where the first one is. Parts end at blanks or at the ends of the text.
#[inline]
pub(super) fn for_each_part<'t>(
    text: &'t str,
    first_foreign: impl Fn(&[u8]) -> Option<usize>,
    mut each: impl FnMut(&'t str, bool),
) {
    let mut rest = text;
    while let Some(foreign) = first_foreign(rest.as_bytes()) {
        // A character affects only the text up to the nearest blanks.
        let (before, after) = rest.as_bytes().split_at(foreign);
        let start = before.iter().rposition(|&byte| is_blank(byte)).map_or(0, |blank| blank + 1);
        let end = after.iter().position(|&byte| is_blank(byte)).map_or(rest.len(), |n| foreign + n);
        let (head, tail) = rest.split_at(end);
        let (plain, piece) = head.split_at(start);
        each(plain, false);
        each(piece, true);
        rest = tail;
    }
    each(rest, false);
}

/// Calls `emit` with every word of a text, in order; each dense character is one word.
pub(in crate::text) fn for_each_single<'t>(text: &'t str, emit: &mut impl FnMut(&'t str)) {
    for_each_word(text, &mut |word| {
        if word.is_ascii() {
            return emit(word);
        }
        let mut rest = word;
        while let Some((at, dense)) = rest.char_indices().find(|&(_, c)| is_dense(c)) {
            let (before, from) = rest.split_at(at);
            let (single, after) = from.split_at(dense.len_utf8());
            [before, single].into_iter().filter(|part| !part.is_empty()).for_each(&mut *emit);
            rest = after;
        }
        if !rest.is_empty() {
            emit(rest);
        }
    });
}

/// Returns true if a word is a letter of a script without spaces between words.
///
/// UAX #29 leaves these scripts to dictionaries (line breaking class SA) and splits their letters:
/// Thai, Lao, Burmese, Khmer and related scripts.
pub(in crate::text) fn is_part(word: &str) -> bool {
    let first = word.chars().next().filter(|c| *c >= '\u{e00}');
    first.is_some_and(|c| {
        matches!(c, '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
            | '\u{1950}'..='\u{19df}' | '\u{1a20}'..='\u{1aaf}' | '\u{a9e0}'..='\u{a9ff}'
            | '\u{aa60}'..='\u{aadf}')
    })
}

/// Returns true for a blank, which always ends a word.
#[inline]
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

#[inline]
fn class(byte: Option<&u8>) -> Class {
    byte.and_then(|&byte| CLASSES.get(usize::from(byte))).copied().unwrap_or(Class::Other)
}

/// Returns the length of the prefix of letters, digits and underscores.
#[inline]
fn run(bytes: &[u8]) -> usize {
    let in_word = |byte| matches!(class(Some(byte)), Class::Letter | Class::Digit | Class::Joins);
    bytes.iter().position(|byte| !in_word(byte)).unwrap_or(bytes.len())
}

fn ascii_words<'t>(text: &'t str, emit: &mut impl FnMut(&'t str)) {
    let bytes = text.as_bytes();
    let rest = |at| bytes.split_at(at).1;
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        at += run(rest(at));
        if at == start {
            at += 1;
            continue;
        }
        while let next @ (Class::JoinsLetters | Class::JoinsDigits | Class::JoinsEither) =
            class(bytes.get(at))
        {
            let bridged = match (class(bytes.get(at - 1)), class(bytes.get(at + 1))) {
                (Class::Letter, Class::Letter) => next != Class::JoinsDigits,
                (Class::Digit, Class::Digit) => next != Class::JoinsLetters,
                _ => false,
            };
            if !bridged {
                break;
            }
            at += 1 + run(rest(at + 1));
        }
        // Underscores alone are not a word.
        let word = &text[start..at];
        if class(bytes.get(start)) != Class::Joins || word.bytes().any(|byte| byte != b'_') {
            emit(word);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        let mut words = Vec::new();
        for_each_word(text, &mut |word| words.push(word));
        words
    }

    fn by_the_annex(text: &str) -> Vec<&str> {
        // A stray combining letter includes the blank before it in its word.
        text.unicode_words().map(str::trim).collect()
    }

    #[test]
    fn words_are_those_of_the_annex_for_every_short_ascii_text() {
        let alphabet = b"aZ9_:,.;'- ";
        for length in 0..6_u32 {
            for n in 0..alphabet.len().pow(length) {
                let mut rest = n;
                let text: String = (0..length)
                    .map(|_| {
                        let c = char::from(alphabet[rest % alphabet.len()]);
                        rest /= alphabet.len();
                        c
                    })
                    .collect();
                assert_eq!(words(&text), by_the_annex(&text), "{text:?}");
            }
        }
    }

    #[test]
    fn words_are_those_of_the_annex_around_every_other_character() {
        for c in (0x80..0x0003_0000).filter_map(char::from_u32).filter(|c| !c.is_whitespace()) {
            let text = format!("don't 3.5 {c} a{c}b {c}{c}x 1{c} a.{c}");
            assert_eq!(words(&text), by_the_annex(&text), "{text:?}");
            let text = format!("晴天{c}天の晴{c}の_晴れ'{c}{c}天x晴天.{c}9天の{c} 天天{c}");
            assert_eq!(words(&text), by_the_annex(&text), "{text:?}");
        }
    }
}
