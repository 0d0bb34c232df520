//! Unicode words: text is cut as UAX #29 has it, plain ASCII by a rule of its own.
//!
//! Nearly all words of alphabetic text are ASCII between blanks. There the rules of the annex
//! come down to a few classes of bytes, told by a table.

use unicode_segmentation::UnicodeSegmentation;

/// What an ASCII character does to the word that it stands in.
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
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let mut ascii = true;
        while let Some(&byte) = bytes.get(at)
            && !is_blank(byte)
        {
            ascii &= byte.is_ascii();
            at += 1;
        }
        let Some(piece) = text.get(start..at) else { return };
        at += 1;
        if ascii {
            ascii_words(piece, emit);
        } else {
            piece.unicode_words().for_each(&mut *emit);
        }
    }
}

/// Blanks end a word whatever stands around them.
#[inline]
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

#[inline]
fn class(byte: Option<&u8>) -> Class {
    byte.and_then(|&byte| CLASSES.get(usize::from(byte))).copied().unwrap_or(Class::Other)
}

fn ascii_words<'t>(piece: &'t str, emit: &mut impl FnMut(&'t str)) {
    let bytes = piece.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let mut last = class(bytes.get(at));
        at += 1;
        if !matches!(last, Class::Letter | Class::Digit | Class::Joins) {
            continue;
        }
        let mut says = last != Class::Joins;
        loop {
            let next = class(bytes.get(at));
            let after = class(bytes.get(at + 1));
            let bridged = matches!(
                (last, next, after),
                (Class::Letter, Class::JoinsLetters | Class::JoinsEither, Class::Letter)
                    | (Class::Digit, Class::JoinsDigits | Class::JoinsEither, Class::Digit)
            );
            if matches!(next, Class::Letter | Class::Digit | Class::Joins) {
                says |= next != Class::Joins;
                last = next;
                at += 1;
            } else if bridged {
                last = after;
                at += 2;
            } else {
                break;
            }
        }
        if says && let Some(word) = piece.get(start..at) {
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
        // A stray combining letter takes the blank before it into its word.
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
        }
    }
}
