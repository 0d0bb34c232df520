//! Character n-grams fitted to the script: letters in threes, Chinese characters in pairs.
//!
//! An n-gram runs over word borders, which count as one space, so that the order of words is
//! seen. A Chinese character, kana or Hangul syllable says as much as two or three letters: there
//! n-grams are half as long, and short texts need the single characters besides, because one
//! changed character changes every n-gram that it is in.

use super::letter::{is_dense, is_letter};
use super::unicode::table;

/// The letters of a text, one space between words, and where each one begins.
#[derive(Debug, Default)]
pub(super) struct Letters {
    bytes: Vec<u8>,
    /// One for every letter and space, and one for the end; empty where all is ASCII.
    starts: Vec<Start>,
}

/// What of a byte is kept: itself where it is a letter or digit, else a space.
static ASCII_LETTERS: [u8; 256] = ascii_letters();

const NOT_ASCII: u8 = 0;

#[allow(clippy::indexing_slicing)] // a loop over all of a table at compile time
const fn ascii_letters() -> [u8; 256] {
    let mut letters = [NOT_ASCII; 256];
    let mut byte = 0_u8;
    while byte < 0x80 {
        letters[byte as usize] = if byte.is_ascii_alphanumeric() { byte } else { b' ' };
        byte += 1;
    }
    letters
}

/// Where a letter begins, twice, and one more where it is dense.
#[derive(Debug, Clone, Copy)]
struct Start(usize);

impl Start {
    fn new(at: usize, dense: bool) -> Self {
        Self(at << 1 | usize::from(dense))
    }

    fn at(self) -> usize {
        self.0 >> 1
    }

    fn is_dense(self) -> bool {
        self.0 & 1 == 1
    }
}

impl Letters {
    /// Keeps the letters and digits of a normalised text.
    ///
    /// Marks that stand on a letter without being part of it are dropped, so that a text under a
    /// heap of them is still the same text.
    pub(super) fn read(&mut self, text: &str) {
        self.starts.clear();
        self.bytes.clear();
        self.bytes.resize(text.len() + 1, 0);
        let rest = self.read_ascii(text);
        if !rest.is_empty() {
            self.starts.extend((0..self.bytes.len()).map(|at| Start::new(at, false)));
            self.read_mixed(rest);
        }
        if self.bytes.last() == Some(&b' ') {
            self.bytes.pop();
            self.starts.pop();
        }
        if !self.starts.is_empty() {
            self.starts.push(Start::new(self.bytes.len(), false));
        }
    }

    /// Reads up to the first character that is not ASCII and returns the rest.
    fn read_ascii<'t>(&mut self, text: &'t str) -> &'t str {
        let (mut len, mut read, mut after_letter) = (0, 0, false);
        for &byte in text.as_bytes() {
            let kept = ASCII_LETTERS.get(usize::from(byte)).copied().unwrap_or(NOT_ASCII);
            if kept == NOT_ASCII {
                break;
            }
            // Without branches: whether a word ends cannot be foretold.
            if let Some(slot) = self.bytes.get_mut(len) {
                *slot = kept;
            }
            let letter = kept != b' ';
            len += usize::from(letter | after_letter);
            after_letter = letter;
            read += 1;
        }
        self.bytes.truncate(len);
        text.get(read..).unwrap_or_default()
    }

    fn read_mixed(&mut self, text: &str) {
        let mut after_letter = self.bytes.last().is_some_and(|&last| last != b' ');
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let start = self.bytes.len();
            if is_letter(c) {
                self.starts.push(Start::new(start, is_dense(c)));
                // Most characters are of one length or the other.
                match *rest.as_bytes() {
                    [a @ 0..0x80, ..] => self.bytes.push(a),
                    [a @ 0xe0..0xf0, b, c, ..] => self.bytes.extend_from_slice(&[a, b, c]),
                    _ => self.bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
                }
                after_letter = true;
            } else if after_letter && (c.is_ascii() || !table().class(c).is_mark()) {
                self.starts.push(Start::new(start, false));
                self.bytes.push(b' ');
                after_letter = false;
            }
            rest = rest.get(c.len_utf8()..).unwrap_or_default();
        }
    }

    /// Calls `emit` with every n-gram fitted to the script, single dense characters besides.
    ///
    /// A text of fewer letters is one n-gram as a whole, an empty one has none.
    pub(super) fn for_each_gram<'t>(&'t self, n: usize, emit: &mut impl FnMut(&'t [u8])) {
        let singles = (2..=SINGLES).contains(&n) && self.len() > 1;
        self.for_each_of(n, n.div_ceil(2), singles, emit);
    }

    /// Calls `emit` with every n-gram of `n` letters, or of `dense_n` dense characters.
    ///
    /// A text of fewer letters is one n-gram as a whole, an empty one has none.
    pub(super) fn for_each_fitted<'t>(
        &'t self,
        n: usize,
        dense_n: usize,
        emit: &mut impl FnMut(&'t [u8]),
    ) {
        self.for_each_of(n, dense_n, false, emit);
    }

    fn for_each_of<'t>(
        &'t self,
        n: usize,
        dense_n: usize,
        singles: bool,
        emit: &mut impl FnMut(&'t [u8]),
    ) {
        let (bytes, starts) = (self.bytes.as_slice(), self.starts.as_slice());
        let Some(letters) = starts.len().checked_sub(1) else {
            return windows(bytes, n, emit);
        };
        // Letters too few for an n-gram are one all the same where nothing before takes them in.
        let mut first = true;
        for (at, start) in starts.iter().enumerate().take(letters) {
            let gram = |n: usize, short: bool| {
                let end = starts.get(at + n).or_else(|| starts.last().filter(|_| short))?;
                bytes.get(start.at()..end.at())
            };
            if start.is_dense() {
                if singles {
                    gram(1, false).into_iter().for_each(&mut *emit);
                }
                if dense_n > 0 {
                    gram(dense_n, at == 0).into_iter().for_each(&mut *emit);
                }
            } else {
                let short = at == 0 || (first && letters - at >= dense_n.max(1));
                gram(n, short).into_iter().for_each(&mut *emit);
            }
            first = start.is_dense();
        }
    }

    /// Number of letters and spaces.
    pub(super) fn len(&self) -> usize {
        self.starts.len().checked_sub(1).unwrap_or(self.bytes.len())
    }

    /// The letters and spaces, if every one is ASCII.
    pub(super) fn ascii(&self) -> Option<&[u8]> {
        self.starts.is_empty().then_some(&self.bytes)
    }

    /// Gives back memory that one huge text took.
    pub(super) fn release_above(&mut self, bytes: usize) {
        if self.bytes.capacity() > bytes {
            self.bytes = Vec::new();
        }
        if self.starts.capacity() * size_of::<Start>() > bytes {
            self.starts = Vec::new();
        }
    }
}

/// The longest n-gram beside which single dense characters count too.
const SINGLES: usize = 3;

/// Calls `emit` with every n-gram of the text exactly as it is.
///
/// A text of fewer characters is one n-gram as a whole, an empty one has none.
pub(super) fn for_each_raw<'t>(
    text: &'t str,
    n: usize,
    spare: &mut Letters,
    emit: &mut impl FnMut(&'t [u8]),
) {
    if text.is_ascii() {
        return windows(text.as_bytes(), n, emit);
    }
    let starts = &mut spare.starts;
    starts.clear();
    starts.extend(text.char_indices().map(|(at, _)| Start::new(at, false)));
    starts.push(Start::new(text.len(), false));
    let n = n.min(starts.len() - 1);
    for window in starts.windows(n + 1) {
        if let (Some(start), Some(end)) = (window.first(), window.last())
            && let Some(gram) = text.as_bytes().get(start.at()..end.at())
        {
            emit(gram);
        }
    }
}

#[inline]
fn windows<'t>(bytes: &'t [u8], n: usize, emit: &mut impl FnMut(&'t [u8])) {
    if bytes.len() < n {
        Some(bytes).filter(|bytes| !bytes.is_empty()).into_iter().for_each(emit);
    } else {
        bytes.windows(n.max(1)).for_each(emit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grams(text: &str, n: usize) -> Vec<String> {
        let mut letters = Letters::default();
        letters.read(text);
        let mut out = Vec::new();
        letters.for_each_gram(n, &mut |gram| out.push(String::from_utf8(gram.to_vec()).unwrap()));
        out
    }

    fn raw(text: &str, n: usize) -> Vec<String> {
        let mut out = Vec::new();
        for_each_raw(text, n, &mut Letters::default(), &mut |gram| {
            out.push(String::from_utf8(gram.to_vec()).unwrap());
        });
        out
    }

    #[test]
    fn letters_come_in_threes_over_word_borders() {
        assert_eq!(grams("to, be!", 3), ["to ", "o b", " be"]);
        assert_eq!(grams("né à", 3), ["né ", "é à"]);
        assert_eq!(grams("don't", 4), ["don ", "on t"]);
    }

    #[test]
    fn dense_scripts_come_in_pairs_and_beside_threes_singly() {
        assert_eq!(grams("晴天。好", 4), ["晴天", "天 ", " 好"]);
        assert_eq!(grams("晴天", 3), ["晴", "晴天", "天"]);
        assert_eq!(grams("晴 天", 3), ["晴", "晴 ", " 天", "天"]);
        assert_eq!(grams("天ab", 3), ["天", "天a", "ab"]);
        assert_eq!(grams("ab天c", 3), ["ab天", "b天c", "天", "天c"]);
        assert_eq!(grams("가나", 4), ["가나"]);
        assert_eq!(grams("かな", 4), ["かな"]);
        assert_eq!(grams("晴天好", 5), ["晴天好"]);
    }

    #[test]
    fn two_lengths_are_fitted_each() {
        let fitted = |text: &str, n: usize, dense: usize| {
            let mut letters = Letters::default();
            letters.read(text);
            let mut out = Vec::new();
            letters.for_each_fitted(n, dense, &mut |gram| {
                out.push(String::from_utf8(gram.to_vec()).unwrap());
            });
            out
        };
        assert_eq!(fitted("晴天ab", 3, 2), ["晴天", "天a", "ab"]);
        assert_eq!(fitted("晴天ab", 2, 1), ["晴", "天", "ab"]);
        assert_eq!(fitted("晴天ab", 1, 0), ["a", "b"]);
        assert_eq!(fitted("to be", 2, 1), ["to", "o ", " b", "be"]);
        assert_eq!(fitted("né", 3, 2), ["né"]);
    }

    #[test]
    fn text_of_fewer_letters_is_one_gram_and_an_empty_one_none() {
        assert_eq!(grams("ab", 3), ["ab"]);
        assert_eq!(grams("é", 3), ["é"]);
        assert_eq!(grams("晴", 3), ["晴"]);
        assert_eq!(grams("晴", 4), ["晴"]);
        for text in ["", "…", "?!", "\u{301}"] {
            assert_eq!(grams(text, 3), [""; 0], "{text}");
        }
    }

    #[test]
    fn stray_marks_change_nothing() {
        assert_eq!(grams("z\u{334}a\u{338}\u{334}l", 3), ["zal"]);
        assert_eq!(grams("क्षमा", 9).len(), 1);
    }

    #[test]
    fn raw_grams_are_windows_over_all_characters() {
        assert_eq!(raw("A b", 2), ["A ", " b"]);
        assert_eq!(raw("a。\n", 2), ["a。", "。\n"]);
        assert_eq!(raw("晴", 3), ["晴"]);
        assert_eq!(raw("", 3), [""; 0]);
        assert_eq!(raw("ab", 3), ["ab"]);
    }
}
