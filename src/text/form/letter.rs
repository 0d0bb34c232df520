//! Letters: decoding and classes of characters, without a table look-up for common ones.
#![expect(clippy::indexing_slicing, reason = "callers pass offsets within the text")]

use super::unicode::table;

/// Bytes of the longest character.
pub(in crate::text) const WIDEST: usize = 4;

/// Returns the four bytes at an offset, with zeros after the end of the text.
#[inline]
pub(in crate::text) fn four(source: &[u8], at: usize) -> [u8; WIDEST] {
    let rest = &source[at..];
    rest.first_chunk().copied().unwrap_or_else(|| {
        let mut four = [0; WIDEST];
        four.iter_mut().zip(rest).for_each(|(slot, byte)| *slot = *byte);
        four
    })
}

/// Returns the first code point of valid UTF-8 and its length in bytes.
#[inline]
pub(in crate::text) fn decode([a, b, c, d]: [u8; WIDEST]) -> (usize, usize) {
    let tail = |byte: u8| usize::from(byte & 0x3f);
    match a {
        ..0x80 => (a.into(), 1),
        0x80..0xe0 => (usize::from(a & 0x1f) << 6 | tail(b), 2),
        0xe0..0xf0 => (usize::from(a & 0xf) << 12 | tail(b) << 6 | tail(c), 3),
        _ => (usize::from(a & 7) << 18 | tail(b) << 12 | tail(c) << 6 | tail(d), 4),
    }
}

/// Returns the first two characters at an offset, if each has three bytes and two more follow.
///
/// Also returns their bytes. Chinese, Japanese and Korean text is made of such pairs.
#[inline]
#[allow(clippy::cast_possible_truncation)] // masked at once
pub(in crate::text) fn pair(source: &[u8], at: usize) -> Option<([usize; 2], [u8; 8])> {
    const LEADS: u64 = 0xf000_00f0 << 32;
    let bytes = source.get(at..)?.first_chunk()?;
    let word = u64::from_be_bytes(*bytes);
    let code = |from: u32| {
        let three = (word >> from) as usize;
        (three & 0xf_0000) >> 4 | (three & 0x3f00) >> 2 | (three & 0x3f)
    };
    (word & LEADS == 0xe000_00e0 << 32).then(|| ([code(40), code(16)], *bytes))
}

/// Returns true for a letter or a digit of any script.
#[inline]
pub(in crate::text) fn is_letter(c: char) -> bool {
    match c {
        '\0'..='\u{7f}' => c.is_ascii_alphanumeric(),
        '\u{4e00}'..='\u{9fff}' => true,
        '\u{2000}'..='\u{206f}' | '\u{3000}'..='\u{3004}' | '\u{3008}'..='\u{3020}' => false,
        _ => table().class(c).is_letter(),
    }
}

/// Returns true for a letter of any script; false for digits.
#[inline]
pub(super) fn is_alphabetic(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_alphabetic() } else { table().class(c).is_alphabetic() }
}

/// Returns true for a character of a dense script, which counts as two letters.
#[inline]
pub(crate) fn is_dense(c: char) -> bool {
    match c {
        '\u{4e00}'..='\u{9fff}' => true,
        ..'\u{1100}' => false,
        _ => table().class(c).is_dense(),
    }
}

/// Counts the characters of a text; dense ones count as two.
pub(crate) fn letters(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    text.chars().map(|c| 1 + usize::from(is_dense(c))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::form::unicode::is_white;

    #[test]
    fn letters_are_those_of_unicode() {
        for c in '\0'..=char::MAX {
            assert_eq!(is_letter(c), c.is_alphanumeric(), "U+{:04X}", u32::from(c));
            assert_eq!(is_alphabetic(c), c.is_alphabetic(), "U+{:04X}", u32::from(c));
            assert_eq!(is_white(c), c.is_whitespace(), "U+{:04X}", u32::from(c));
        }
    }

    #[test]
    fn characters_of_dense_scripts_are_dense() {
        assert!("晴々カかㄅ가ꀀ㐀".chars().all(is_dense));
        assert!("aéжअأ。、ー9 ".chars().all(|c| !is_dense(c)));
    }
}
