//! Letters: classes of characters, without a table look-up for common ones.

use super::unicode::table;

/// Returns true for a letter or a digit of any script.
#[inline]
pub(super) fn is_letter(c: char) -> bool {
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
    use super::super::unicode::is_white;
    use super::*;

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
