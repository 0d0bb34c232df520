//! Character n-grams fitted to the script: letters in threes, Chinese characters in pairs.
//!
//! N-grams cross word borders, which count as one space, so that the order of words matters. A
//! Chinese character, kana or Hangul syllable counts as two letters, so their n-grams are half as
//! long. Short texts also need the single characters, because one changed character changes every
//! n-gram that holds it.
#![expect(clippy::indexing_slicing, reason = "there is room for every letter and for the end")]

use super::alphabet::{self, Alphabet};
use super::numbered::Lengths;
use crate::text::form::letter::{WIDEST, decode, four, pair};

/// Maps letters and digits to themselves, and all other bytes to a space.
static ASCII_LETTERS: [u8; 128] = ascii_letters();

const fn ascii_letters() -> [u8; 128] {
    let mut letters = [b' '; 128];
    let mut byte = 0_u8;
    while byte < 0x80 {
        if byte.is_ascii_alphanumeric() {
            letters[byte as usize] = byte;
        }
        byte += 1;
    }
    letters
}

/// The letters of a text with one space between words, and their offsets.
#[derive(Debug, Default)]
pub(in crate::text) struct Letters {
    /// The letters: the first `end` bytes.
    bytes: Vec<u8>,
    end: usize,
    /// One entry for each of the `len` letters and spaces, and [`AHEAD`] + 1 entries for the end.
    starts: Vec<Start>,
    len: usize,
    alphabet: Alphabet,
}

/// First byte of the first dense letters of three bytes.
const FIRST_OF_DENSE: u8 = 0xe3;

/// Entries that [`Numbered`](super::numbered::Numbered) may read after the last letter.
pub(super) const AHEAD: usize = 4;

/// The offset and the number of a letter.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Start(u64);

impl Start {
    /// Set in the numbers of dense letters.
    pub(super) const DENSE: u16 = 1 << 15;

    #[inline]
    fn new(at: usize, number: u16) -> Self {
        Self((at as u64) << u16::BITS | u64::from(number))
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // it was an offset
    pub(super) fn at(self) -> usize {
        (self.0 >> u16::BITS) as usize
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // takes the low half
    pub(super) fn number(self) -> u16 {
        self.0 as u16
    }

    #[inline]
    pub(super) fn is_dense(self) -> bool {
        self.number() & Self::DENSE != 0
    }
}

/// How far a text was read, and what was written.
#[derive(Debug, Clone, Copy, Default)]
struct Read {
    /// Bytes of the text.
    at: usize,
    /// Bytes of letters.
    end: usize,
    /// Letters and spaces.
    len: usize,
    after_letter: bool,
}

impl Letters {
    /// Reads the letters and digits of a normalised text.
    ///
    /// Drops marks that are not letters, so that stacked marks do not change a text.
    pub(super) fn read(&mut self, text: &str) {
        // Whole words are written after the last letter.
        let room = text.len() + size_of::<u64>();
        if self.bytes.len() < room {
            self.bytes.resize(room, 0);
        }
        if text.is_ascii() {
            return self.read_ascii(text.as_bytes());
        }
        let source = text.as_bytes();
        let mut read = self.read_plain(source);
        if read.at < source.len() {
            read = self.read_numbered(text, read);
        }
        let Read { end, len, after_letter, .. } = read;
        let ends_word = usize::from(len > 0 && !after_letter);
        (self.len, self.end) = (len - ends_word, end - ends_word);
        let behind = self.starts.iter_mut().skip(self.len).take(AHEAD + 1);
        behind.for_each(|start| *start = Start::new(self.end, 0));
    }

    /// Reads up to the first letter that is not ASCII.
    ///
    /// Many texts have quotes or a sign of copyright, and no such letter.
    // Branchless: whether a word ends is unpredictable.
    #[allow(clippy::needless_bitwise_bool)]
    fn read_plain(&mut self, source: &[u8]) -> Read {
        let bytes = self.bytes.as_mut_slice();
        let (numbers, alphabet) = self.alphabet.begin();
        let Read { mut at, end: mut len, mut after_letter, .. } = Read::default();
        while at < source.len() {
            while let Some(&byte @ ..0x80) = source.get(at) {
                let letter = alphabet::of_ascii(byte) > alphabet::SPACE;
                bytes[len] = if letter { byte } else { b' ' };
                len += usize::from(letter | after_letter);
                (at, after_letter) = (at + 1, letter);
            }
            while let Some(0x80..) = source.get(at) {
                let (code, width) = decode(four(source, at));
                let number = alphabet.number(numbers, code, len);
                if number > alphabet::SPACE {
                    return Read { at, end: len, len, after_letter };
                }
                let apart = number == alphabet::APART;
                bytes[len] = b' ';
                len += usize::from(apart & after_letter);
                after_letter &= !apart;
                at += width;
            }
        }
        Read { at, end: len, len, after_letter }
    }

    /// Reads the rest of a text, and gives every letter an entry.
    // Branchless: whether a word ends is unpredictable.
    #[allow(clippy::needless_bitwise_bool)]
    fn read_numbered(&mut self, text: &str, read: Read) -> Read {
        let source = text.as_bytes();
        let room = read.len + text[read.at..].chars().count() + AHEAD + 1;
        if self.starts.len() < room {
            self.starts.resize(room, Start::default());
        }
        let (bytes, starts) = (self.bytes.as_mut_slice(), self.starts.as_mut_slice());
        for ((at, start), &byte) in starts.iter_mut().enumerate().zip(&bytes[..read.len]) {
            *start = Start::new(at, alphabet::of_ascii(byte));
        }
        let (numbers, alphabet) = self.alphabet.parts();
        let Read { mut at, mut end, mut len, mut after_letter } = read;
        while at < source.len() {
            while let Some(&byte @ ..0x80) = source.get(at) {
                let number = alphabet::of_ascii(byte);
                let letter = number > alphabet::SPACE;
                starts[len] = Start::new(end, number);
                bytes[end] = if letter { byte } else { b' ' };
                let kept = usize::from(letter | after_letter);
                (at, end, len, after_letter) = (at + 1, end + kept, len + kept, letter);
            }
            while let Some(&lead @ 0x80..) = source.get(at) {
                while lead >= FIRST_OF_DENSE
                    && let Some((codes, encoded)) = pair(source, at)
                    && let Some([first, second]) = alphabet.dense_pair(numbers, codes, len)
                {
                    starts[len] = Start::new(end, first);
                    starts[len + 1] = Start::new(end + 3, second);
                    bytes[end..end + encoded.len()].copy_from_slice(&encoded);
                    (at, end, len, after_letter) = (at + 6, end + 6, len + 2, true);
                }
                if source[at].is_ascii() {
                    break;
                }
                let encoded = four(source, at);
                let (code, width) = decode(encoded);
                let number = alphabet.number(numbers, code, len);
                let letter = number > alphabet::SPACE;
                let apart = number == alphabet::APART;
                let kept = letter | (apart & after_letter);
                starts[len] = Start::new(end, if letter { number } else { alphabet::SPACE });
                let written = if letter { encoded } else { [b' '; WIDEST] };
                bytes[end..end + WIDEST].copy_from_slice(&written);
                len += usize::from(kept);
                end += if letter { width } else { usize::from(kept) };
                after_letter = letter | (after_letter & !apart);
                at += width;
            }
        }
        Read { at, end, len, after_letter }
    }

    fn read_ascii(&mut self, text: &[u8]) {
        let bytes = self.bytes.as_mut_slice();
        let (mut len, mut after_letter) = (0, false);
        for &byte in text {
            let kept = ASCII_LETTERS[usize::from(byte)];
            bytes[len] = kept;
            let letter = kept != b' ';
            len += usize::from(letter | after_letter);
            after_letter = letter;
        }
        len -= usize::from(len > 0 && !after_letter);
        (self.len, self.end) = (len, len);
    }

    /// Returns the indexes of the first occurrences of the dense letters.
    pub(super) fn dense_firsts(&self) -> &[usize] {
        self.alphabet.dense_firsts()
    }

    fn starts(&self) -> &[Start] {
        &self.starts[..=self.len]
    }

    /// Returns the letters and their entries, if every letter has a number of its own.
    pub(super) fn numbered(&self) -> Option<(&[u8], &[Start])> {
        let starts = self.starts.get(..self.len + AHEAD + 1)?;
        self.alphabet.is_unique().then(|| (self.bytes(), starts))
    }

    /// Returns the numbers of the letters.
    pub(super) fn alphabet(&self) -> &Alphabet {
        &self.alphabet
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.end]
    }

    /// Calls `emit` with every n-gram fitted to the script, and with single dense characters.
    ///
    /// A text of fewer letters is one n-gram as a whole; an empty one has none.
    pub(super) fn for_each_gram<'t>(&'t self, n: usize, emit: &mut impl FnMut(&'t [u8])) {
        let Lengths { letters, dense, singles, .. } = lengths(n);
        self.for_each_of(letters, dense, singles && self.len() > 1, emit);
    }

    /// Calls `emit` with every n-gram of `n` letters, or of `dense_n` dense characters.
    ///
    /// A text of fewer letters is one n-gram as a whole; an empty one has none.
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
        if let Some(ascii) = self.ascii() {
            return windows(ascii, n, emit);
        }
        let (bytes, starts, letters) = (self.bytes(), self.starts(), self.len);
        // Fewer letters than an n-gram are one if no earlier n-gram includes them.
        let mut first = true;
        for (at, start) in starts.iter().enumerate().take(letters) {
            let gram = |n: usize, short: bool| {
                let end = starts.get(at + n).or_else(|| starts.last().filter(|_| short))?;
                Some(&bytes[start.at()..end.at()])
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

    /// Returns the number of letters and spaces.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the letters and spaces, if all are ASCII.
    pub(super) fn ascii(&self) -> Option<&[u8]> {
        (self.end == self.len).then(|| self.bytes())
    }

    /// Shrinks buffers larger than `bytes`.
    pub(in crate::text) fn release_above(&mut self, bytes: usize) {
        if self.bytes.capacity() > bytes {
            self.bytes = Vec::new();
        }
        if self.starts.capacity() * size_of::<Start>() > bytes {
            self.starts = Vec::new();
        }
    }
}

/// Maximum n-gram length with which single dense characters are features too.
const SINGLES: usize = 3;

/// Returns the lengths for n-grams of `n` letters, fitted to the script.
pub(super) fn lengths(n: usize) -> Lengths {
    let singles = (2..=SINGLES).contains(&n);
    Lengths { letters: n, dense: n.div_ceil(2), singles, shorter: false }
}

/// Calls `emit` with every n-gram of the unchanged text.
///
/// A text of fewer characters is one n-gram as a whole; an empty one has none.
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
    starts.extend(text.char_indices().map(|(at, _)| Start::new(at, 0)));
    starts.push(Start::new(text.len(), 0));
    let n = n.min(starts.len() - 1);
    for window in starts.windows(n + 1) {
        emit(&text.as_bytes()[window[0].at()..window[n].at()]);
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
    fn letters_are_cut_into_threes_across_word_borders() {
        assert_eq!(grams("to, be!", 3), ["to ", "o b", " be"]);
        assert_eq!(grams("né à", 3), ["né ", "é à"]);
        assert_eq!(grams("don't", 4), ["don ", "on t"]);
    }

    #[test]
    fn dense_scripts_are_cut_into_pairs_and_single_characters() {
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
    fn both_lengths_are_fitted_to_the_script() {
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
    fn letters_before_the_first_one_outside_ascii_are_read_like_those_after_it() {
        let text = "ab — “c”,\u{301} d7\u{301}";
        assert_eq!(grams(&format!("{text} é"), 3).join("|"), "ab |b c| c |c d| d7|d7 |7 é");
        let [before, after] = [format!("{text} é"), format!("é {text}")].map(|text| {
            let mut letters = Letters::default();
            letters.read(&text);
            let (bytes, starts) = letters.numbered().unwrap();
            let of = |start: &Start| (start.number(), bytes[start.at()]);
            starts[..letters.len()].iter().map(of).collect::<Vec<_>>()
        });
        assert_eq!(before[..before.len() - 2], after[2..]);
    }

    #[test]
    fn text_with_signs_and_no_other_letters_is_like_ascii() {
        let mut letters = Letters::default();
        letters.read("what was read before, été comme hiver, has more letters");
        letters.read("© a—b\u{301} “c”…");
        assert_eq!(letters.ascii(), Some(b"a b c".as_slice()));
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
