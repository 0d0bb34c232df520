//! Alphabet: the letters of one text get numbers in the order in which they come.
#![expect(
    clippy::indexing_slicing,
    reason = "there is a number for every character, and for every byte of ASCII"
)]

use super::grams::Start;
use super::letter::{is_dense, is_letter};
use super::unicode::table;

/// What no character met so far has.
pub(super) const UNMET: u16 = 0;
/// What is no letter and ends a word.
pub(super) const APART: u16 = 1;
/// A mark without meaning of its own.
const MARK: u16 = 2;
/// The space between words, and less than the number of any letter.
pub(super) const SPACE: u16 = 3;

/// The number of the last letter of ASCII: digits and both cases.
const LAST_OF_ASCII: u16 = SPACE + 36;

/// Numbers of ASCII: its small letters and digits have one in every text.
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

/// The number of an ASCII character of a normalised text.
#[inline]
pub(super) fn of_ascii(byte: u8) -> u16 {
    ASCII[usize::from(byte)]
}

/// The letters of one text.
#[derive(Debug, Default)]
pub(super) struct Alphabet {
    /// Number of every character; dense letters have their own, with [`Start::DENSE`] set.
    numbers: Vec<u16>,
    letters: Met,
}

/// The letters that were met.
#[derive(Debug, Default)]
pub(super) struct Met {
    codes: Vec<usize>,
    /// The last number of a letter that is not dense.
    last: u16,
    /// The number of the last dense letter; more than fit if some share a number.
    dense: u16,
}

impl Alphabet {
    /// Forgets all letters, and returns the numbers of all characters and what meets new ones.
    pub(super) fn begin(&mut self) -> (&mut [u16], &mut Met) {
        let Self { numbers, letters } = self;
        if numbers.is_empty() {
            // Zeros take no memory before they are written.
            *numbers = vec![UNMET; char::MAX as usize + 1];
        }
        for code in letters.codes.drain(..) {
            numbers[code] = UNMET;
        }
        (letters.last, letters.dense) = (LAST_OF_ASCII, 0);
        (numbers, letters)
    }

    /// Whether every letter has a number that no other has.
    pub(super) fn is_apart(&self) -> bool {
        self.letters.last <= MOST && self.letters.dense <= MOST
    }

    /// The greatest number of a letter that is not dense.
    pub(super) fn greatest(&self) -> u16 {
        self.letters.last
    }

    /// How many dense letters there are.
    pub(super) fn dense(&self) -> u16 {
        self.letters.dense
    }
}

impl Met {
    /// Numbers a character that is not ASCII, by its code point.
    #[inline(never)]
    pub(super) fn meet(&mut self, numbers: &mut [u16], code: usize) -> u16 {
        let c = u32::try_from(code).ok().and_then(char::from_u32).expect("the text is UTF-8");
        let number = match c {
            _ if !is_letter(c) && table().class(c).is_mark() => MARK,
            _ if !is_letter(c) => APART,
            _ if is_dense(c) => {
                self.dense = (self.dense + 1).min(MOST + 1);
                Start::DENSE | self.dense.min(MOST)
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

/// Most letters of a kind that get a number of their own.
const MOST: u16 = Start::DENSE - 2;
