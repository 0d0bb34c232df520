//! Fast path for simple characters: runs of text are normalised with one table lookup a character.
//!
//! Both normal forms copy characters that stay, replace one character by another, and stop at
//! characters that may compose. A table for each form names its simple characters.

use super::even::{CHINESE_BLOCK, even_ascii, even_chinese};
use super::letter::{decode, four};
use super::normalise::Folder;
use super::unicode::{Fold, Form};

/// A writer of a normal form.
pub(super) trait Simple<'o> {
    /// Whether the writer buffers characters until it is known what composes with them.
    ///
    /// If not, the last starter is left for the caller, together with what may compose.
    const BUFFERS: bool;

    /// Returns the form of the character with this code point.
    ///
    /// White space outside ASCII is not simple.
    fn form_of(&self, code: usize) -> Form;

    fn fold(&mut self) -> &mut Folder<'o>;

    /// Returns the combining class of the last character that was written.
    fn last(&mut self) -> &mut u32;

    /// Writes the buffered characters; called before a starter.
    fn flush(&mut self);

    /// Writes the prefix of simple characters and returns its length.
    ///
    /// White space in the prefix is single ASCII characters.
    #[inline]
    fn push_simple(&mut self, text: &str) -> usize {
        let bytes = text.as_bytes();
        // Characters that stay are copied run by run.
        let (mut begin, mut at, mut last, mut white) = (0, 0, *self.last(), false);
        let (mut starter, mut retry) = (0, 0);
        while let Some(&byte) = bytes.get(at) {
            if byte < 0x80 {
                // A single ASCII letter between other letters is not worth the call.
                let ascii = match (byte, bytes.get(at + 1)) {
                    (b'a'..=b'z' | b' ', Some(0x80..)) if !white => 1,
                    // The ASCII character that ended the run was a second blank.
                    _ if white => 0,
                    _ => even_ascii(bytes.split_at(at).1),
                };
                if ascii == 0 {
                    break;
                }
                at += ascii;
                (starter, last) = (at - 1, 0);
                white = matches!(bytes.get(starter), Some(b' ' | b'\n'));
                continue;
            }
            // Not at every character: a block that has others would be checked again and again.
            if (0xe3..=0xe9).contains(&byte) && at >= retry {
                let even = even_chinese(bytes.split_at(at).1);
                if even > 0 {
                    at += even;
                    let end = text[..at].chars().next_back();
                    starter = at - end.map_or(0, char::len_utf8);
                    (last, white) = (0, matches!(end, Some(' ' | '\n')));
                    continue;
                }
                retry = at + CHINESE_BLOCK;
            }
            let (code, width) = decode(four(bytes, at));
            let form = self.form_of(code);
            // A mark after white space has no base character.
            if form.is_inert() || (form.stays() && form.class() >= last && !white) {
                if form.is_inert() {
                    starter = at;
                }
                (at, last, white) = (at + width, form.class(), false);
                continue;
            }
            match form.fold() {
                Fold::One(to) if self.cannot_compose(to, bytes, at + width) => {
                    self.push_run(&text[begin..at]);
                    self.flush();
                    self.fold().push_letter(to);
                    last = 0;
                }
                Fold::Dropped => self.push_run(&text[begin..at]),
                Fold::Stays | Fold::MayCompose | Fold::White | Fold::One(_) | Fold::Many(_) => {
                    if !Self::BUFFERS {
                        at = starter.max(begin);
                    }
                    break;
                }
            }
            at += width;
            (begin, white) = (at, false);
        }
        self.push_run(&text[begin..at]);
        *self.last() = last;
        at
    }

    /// Returns true if `to`, the result of a fold, has nothing to compose with.
    #[inline]
    fn cannot_compose(&self, to: char, bytes: &[u8], next: usize) -> bool {
        if Self::BUFFERS {
            return self.form_of(to as usize).is_inert();
        }
        bytes.get(next).is_none_or(|&byte| {
            let form = || self.form_of(decode(four(bytes, next)).0);
            byte < 0x80
                || matches!((form().is_inert(), form().fold()), (true, _) | (_, Fold::One(_)))
        })
    }

    /// Writes characters that stay, and single white space.
    #[inline]
    fn push_run(&mut self, run: &str) {
        let (mut even, is_white) = (run, |byte: &u8| matches!(byte, b' ' | b'\n'));
        if run.is_empty() {
            return;
        }
        self.flush();
        if let Some(&byte) = run.as_bytes().first().filter(|byte| is_white(byte)) {
            self.fold().push(char::from(byte));
            even = &run[1..];
        }
        let after = even.as_bytes().last().copied().filter(is_white);
        even = &even[..even.len() - usize::from(after.is_some())];
        if !even.is_empty() {
            self.fold().push_even(even);
        }
        if let Some(byte) = after {
            self.fold().push(char::from(byte));
        }
    }
}
