//! Alphabet of one text: numbers its letters in order of first occurrence.
#![expect(
    clippy::indexing_slicing,
    reason = "the tables have an entry for every character and every ASCII byte"
)]

use super::grams::Start;
use crate::text::form::letter::{is_dense, is_letter};
use crate::text::form::unicode::table;

/// Number of characters not seen in this text yet.
const UNMET: u16 = 0;
/// Number of characters that are not letters and end a word.
pub(super) const APART: u16 = 1;
/// Number of marks, which are dropped.
const MARK: u16 = 2;
/// Number of the space between words; the numbers of all letters are higher.
pub(super) const SPACE: u16 = 3;

/// The highest number of an ASCII letter or digit.
const LAST_OF_ASCII: u16 = SPACE + 36;

/// Numbers of ASCII characters: digits and small letters have a fixed one, all others are spaces.
static ASCII: [u16; 128] = ascii();

const fn ascii() -> [u16; 128] {
    let mut numbers = [SPACE; 128];
    let (mut byte, mut number) = (0_u8, SPACE);
    while byte < 0x80 {
        if byte.is_ascii_digit() || byte.is_ascii_lowercase() {
            number += 1;
            numbers[byte as usize] = number;
        }
        byte += 1;
    }
    numbers
}

/// Returns the number of an ASCII character of a normalised text.
#[inline]
pub(super) fn of_ascii(byte: u8) -> u16 {
    ASCII[usize::from(byte)]
}

/// The letters of one text and their numbers.
#[derive(Debug, Default)]
pub(super) struct Alphabet {
    /// The number of every character; dense letters have [`Start::DENSE`] set.
    numbers: Vec<u16>,
    letters: Met,
}

/// The letters seen so far.
#[derive(Debug, Default)]
pub(super) struct Met {
    codes: Vec<usize>,
    /// For each dense letter, the index of its first occurrence.
    dense_firsts: Vec<usize>,
    /// The highest number of a letter that is not dense; above [`MOST`] if some share a number.
    last: u16,
}

impl Alphabet {
    /// Clears the alphabet; returns the numbers and the list that adds new letters.
    pub(super) fn begin(&mut self) -> (&mut [u16], &mut Met) {
        let Self { numbers, letters } = self;
        if numbers.is_empty() {
            // Zeroed pages take no memory until they are written.
            *numbers = vec![UNMET; char::MAX as usize + 1];
        }
        for code in letters.codes.drain(..) {
            numbers[code] = UNMET;
        }
        letters.last = LAST_OF_ASCII;
        letters.dense_firsts.clear();
        self.parts()
    }

    /// Returns the numbers and the list, without clearing them.
    pub(super) fn parts(&mut self) -> (&mut [u16], &mut Met) {
        (&mut self.numbers, &mut self.letters)
    }

    /// Returns true if every letter has a number of its own.
    pub(super) fn is_unique(&self) -> bool {
        self.letters.last <= MOST && self.letters.dense() <= MOST
    }

    /// Returns the highest number of a letter that is not dense.
    pub(super) fn greatest(&self) -> u16 {
        self.letters.last
    }

    /// Returns the indexes of the first occurrences of the dense letters.
    pub(super) fn dense_firsts(&self) -> &[usize] {
        &self.letters.dense_firsts
    }

    /// Returns the number of dense letters.
    pub(super) fn dense(&self) -> u16 {
        self.letters.dense()
    }
}

impl Met {
    /// Returns the number of a character outside ASCII, given by its code point.
    ///
    /// `index` is that of its entry, if it is a letter.
    #[inline]
    pub(super) fn number(&mut self, numbers: &mut [u16], code: usize, index: usize) -> u16 {
        match numbers[code] {
            UNMET => self.meet(numbers, code, index),
            number => number,
        }
    }

    /// Returns the number of dense letters; above [`MOST`] if some share a number.
    fn dense(&self) -> u16 {
        u16::try_from(self.dense_firsts.len()).map_or(MOST + 1, |dense| dense.min(MOST + 1))
    }

    /// Returns the numbers of two characters, if both are dense letters.
    #[inline]
    pub(super) fn dense_pair(
        &mut self,
        numbers: &mut [u16],
        [first, second]: [usize; 2],
        index: usize,
    ) -> Option<[u16; 2]> {
        let dense = |number: u16| (number & Start::DENSE != 0).then_some(number);
        let first = dense(self.number(numbers, first, index))?;
        // After a character that is no letter, the index of the second would be another one.
        let second = dense(self.number(numbers, second, index + 1))?;
        Some([first, second])
    }

    /// Assigns a number to a character outside ASCII, given by its code point.
    #[inline(never)]
    fn meet(&mut self, numbers: &mut [u16], code: usize, index: usize) -> u16 {
        let c = u32::try_from(code).ok().and_then(char::from_u32).expect("the text is UTF-8");
        let number = match c {
            _ if !is_letter(c) && table().class(c).is_mark() => MARK,
            _ if !is_letter(c) => APART,
            _ if is_dense(c) => {
                self.dense_firsts.push(index);
                Start::DENSE | self.dense().min(MOST)
            }
            _ => {
                self.last = (self.last + 1).min(MOST + 1);
                self.last.min(MOST)
            }
        };
        numbers[code] = number;
        self.codes.push(code);
        number
    }
}

/// Highest number that is not shared by several letters.
const MOST: u16 = Start::DENSE - 2;
