//! The normal form `casefold-1`: `NFKC_Casefold` and more, in one pass over the text.
//!
//! Characters are folded one by one, which drops invisible ones, and then composed (Unicode
//! Standard Annex 15), so that normalising twice equals normalising once. Beyond Unicode's folding,
//! the points of Hebrew and Arabic are dropped, and some letters are folded to others.
#![expect(clippy::indexing_slicing, reason = "indexes are those of the buffer")]

use super::normalise::Folder;
use super::simple::Simple;
use super::unicode::{self, Fold, Form, Table};

/// Returns the text in the normal form `casefold-1`.
///
/// Folds white space as [`normalise`](crate::text::normalise()) does. Drops invisible characters,
/// points and tatweel before composing accents. A table in this library defines the form, so no
/// update of the compiler or of a crate changes it. One pass, a few nanoseconds a character.
///
/// ```
/// use hamdex::text::casefold;
///
/// assert_eq!(casefold("STRASSE ΟΔΟΣ"), casefold("straße οδος"));
/// assert_eq!(casefold("cafe\u{ad}\u{301}"), "café");
/// assert_eq!(casefold("أَهْلًا"), casefold("اهلا"));
/// ```
pub fn casefold(text: &str) -> String {
    let mut out = String::new();
    casefold_into(text, &mut out);
    out
}

/// Replaces `out` by the normal form `casefold-1` of `text`.
pub(in crate::text) fn casefold_into(text: &str, out: &mut String) {
    let mut fold = Folder::new(out);
    fold.reserve(text.len());
    let mut writer = Writer { table: unicode::table(), fold, last: 0, buffer: Vec::new() };
    let mut rest = text;
    loop {
        let read = writer.push_simple(rest);
        let tail = &rest[read..];
        let Some(c) = tail.chars().next() else { break };
        writer.push(c);
        rest = &tail[c.len_utf8()..];
    }
    writer.flush();
}

struct Writer<'a> {
    table: &'static Table,
    fold: Folder<'a>,
    /// Combining class of the last character that was written, or [`BUFFERED`].
    last: u32,
    /// Classes and decomposed characters that may compose; the first one is a starter.
    buffer: Vec<(u32, char)>,
}

/// A value above all combining classes: some characters are buffered.
const BUFFERED: u32 = 256;

impl<'o> Simple<'o> for Writer<'o> {
    const BUFFERS: bool = true;

    #[inline]
    fn form_of(&self, code: usize) -> Form {
        self.table.form_of(code)
    }

    #[inline]
    fn fold(&mut self) -> &mut Folder<'o> {
        &mut self.fold
    }

    #[inline]
    fn last(&mut self) -> &mut u32 {
        &mut self.last
    }

    /// Composes and writes the buffered characters.
    #[inline]
    fn flush(&mut self) {
        if !self.buffer.is_empty() {
            self.compose();
        }
    }
}

impl Writer<'_> {
    /// Writes a character in its normal form.
    fn push(&mut self, c: char) {
        let form = self.table.form(c);
        match form.fold() {
            Fold::Dropped => {}
            Fold::White => self.push_white(c),
            Fold::One(c) => self.push_folded(c, self.table.form(c)),
            Fold::Many(number) => {
                for &c in self.table.sequence(number) {
                    self.push_folded(c, self.table.form(c));
                }
            }
            Fold::Stays | Fold::MayCompose => self.push_folded(c, form),
        }
    }

    fn push_white(&mut self, c: char) {
        self.flush();
        self.fold.push(c);
        self.last = 0;
    }

    /// Writes a character that is folded already.
    #[inline]
    fn push_folded(&mut self, c: char, form: Form) {
        let class = form.class();
        if form.stays() && class == 0 {
            self.flush();
        } else if form.fold() == Fold::White {
            return self.push_white(c);
        } else if !(class >= self.last && (form.stays() || !self.may_compose(c))) {
            return self.buffer(c);
        }
        self.fold.push_letter(c);
        self.last = class;
    }

    /// Returns true if a character may compose with the last characters written.
    fn may_compose(&self, c: char) -> bool {
        let Some(before) = self.fold.last() else { return false };
        // A mark that does not compose with a character may compose with its parts.
        self.last != 0
            || self.table.form(before).decomposes()
            || self.table.compose(before, c).is_some()
    }

    /// Buffers a character, until all marks of its starter are read.
    fn buffer(&mut self, c: char) {
        if self.last != BUFFERED {
            // Moves the starter and its marks from the output back to the buffer.
            while let Some(before) = self.fold.last() {
                self.fold.pop();
                let start = self.buffer.len();
                self.table.decompose(before, |c| self.buffer.push((self.table.form(c).class(), c)));
                self.buffer[start..].reverse();
                if self.table.form(before).class() == 0 {
                    break;
                }
            }
            self.buffer.reverse();
        }
        self.table.decompose(c, |c| self.buffer.push((self.table.form(c).class(), c)));
        self.last = BUFFERED;
    }

    fn compose(&mut self) {
        let mut buffer = std::mem::take(&mut self.buffer);
        for run in buffer.chunk_by_mut(|_, &(class, _)| class != 0) {
            run.sort_by_key(|&(class, _)| class);
        }
        // In place: compositions only shorten the buffer.
        let (mut starter, mut len, mut before) = (None::<usize>, 0, None);
        for at in 0..buffer.len() {
            let (class, c) = buffer[at];
            let free = before.is_none_or(|before| before < class);
            if let Some(starter) = starter.filter(|_| free)
                && let Some(composed) = self.table.compose(buffer[starter].1, c)
            {
                buffer[starter].1 = composed;
                continue;
            }
            if class == 0 {
                (starter, before) = (Some(len), None);
            } else {
                before = Some(class);
            }
            buffer[len] = (class, c);
            len += 1;
        }
        for &(class, c) in buffer.iter().take(len) {
            self.fold.push_letter(c);
            self.last = class;
        }
        buffer.clear();
        self.buffer = buffer;
    }
}

#[cfg(test)]
mod tests {
    use unicode_normalization::UnicodeNormalization;

    use super::*;
    use crate::text::form::even::tests::{blocks_around, blocks_that_end};

    #[test]
    fn spellings_that_read_alike_become_equal() {
        for (one, other) in [
            ("e\u{ad}\u{301}", "é"),
            ("e\u{200b}\u{301}", "é"),
            ("ΟΔΟΣ", "οδος"),
            ("Straße STRASSE", "STRASSE straße"),
            ("İstanbul ISPARTA", "istanbul ısparta"),
            ("i\u{307}", "i"),
            ("الرَّحْمٰنِ", "الرحمن"),
            ("العـــربية", "العربيه"),
            ("أحمد إلى آخر", "احمد الي اخر"),
            ("שָׁלוֹם", "שלום"),
            ("می\u{200c}خواهم", "ميخواهم"),
            ("क्\u{200d}ष", "क्ष"),
            ("☀\u{fe0f} a\u{2060}b\u{34f}c\u{180e}d", "☀ abcd"),
            ("\u{1e9e} ΣΑΣ ςσ", "ss σας σς"),
            ("İIıi", "iiii"),
            ("بِسْــمِ اللَّهِ", "بسم الله"),
            ("בְּרֵאשִׁית", "בראשית"),
            ("Ｃａｆé ｶﾞ", "cafe\u{301} ガ"),
            ("\u{1112}\u{1161}\u{11ab}", "한"),
            ("a \u{a0}\u{3000} b \r\n\t c ", "a b\nc"),
        ] {
            assert_eq!(casefold(one), casefold(other), "{one:?}");
        }
        assert_eq!(casefold("e\u{ad}\u{301} x \u{301}"), "é x \u{301}");
        assert_eq!(casefold("가 A, Ж！"), "가 a, ж!");
    }

    /// Returns the normal form, computed without the fast path.
    fn plain(text: &str) -> String {
        let mut out = String::new();
        let fold = Folder::new(&mut out);
        let mut writer = Writer { table: unicode::table(), fold, last: 0, buffer: Vec::new() };
        text.chars().for_each(|c| writer.push(c));
        writer.flush();
        out
    }

    /// Returns the characters that are not simple.
    fn odd() -> Vec<char> {
        let table = unicode::table();
        let is_odd = |&c: &char| {
            let form = table.form(c);
            form.fold() != Fold::Stays || form.class() != 0 || form.decomposes()
        };
        ('\0'..=char::MAX).filter(is_odd).collect()
    }

    #[test]
    fn fast_path_equals_the_form_character_by_character() {
        let odd = odd();
        let usual: Vec<char> = "aZ  \n\teé中가яΣกЙｶ\u{301}\u{323}\u{200c}\u{ad}".chars().collect();
        let mut random = fastrand::Rng::with_seed(9);
        for c in '\0'..=char::MAX {
            let text = format!("a{c} {c}\u{301}é{c}中{c}B");
            for text in std::iter::once(text).chain(blocks_around(c)) {
                assert_eq!(casefold(&text), plain(&text), "{}", text.escape_unicode());
            }
        }
        for _ in 0..300_000 {
            let text: String = (0..random.usize(..9))
                .map(|_| {
                    let chars = if random.bool() { &usual } else { &odd };
                    chars[random.usize(..chars.len())]
                })
                .collect();
            assert_eq!(casefold(&text), plain(&text), "{}", text.escape_unicode());
        }
    }

    #[test]
    fn blocks_of_chinese_end_anywhere() {
        for text in blocks_that_end() {
            assert_eq!(casefold(&text), plain(&text), "{}", text.escape_unicode());
        }
    }

    #[test]
    fn twice_equals_once_around_marks_and_invisible_characters() {
        let marks =
            "\u{301}\u{323}\u{307}\u{345}\u{5b0}\u{64b}\u{653}\u{93c}\u{94d}\u{3099}\u{1161}";
        let unseen = ["", "\u{ad}", "\u{200c}", "\u{200d}", "\u{34f}", "\u{fe0f}"];
        for c in odd().into_iter().chain(('\0'..=char::MAX).step_by(13)) {
            for mark in marks.chars() {
                for unseen in unseen {
                    for text in [format!("{c}{unseen}{mark}"), format!("{mark}{unseen}{c}{mark}")] {
                        let once = casefold(&text);
                        assert_eq!(casefold(&once), once, "{}", text.escape_unicode());
                        let seen = casefold(&text.replace(unseen, ""));
                        assert!(unseen.is_empty() || once == seen, "{}", text.escape_unicode());
                    }
                }
            }
        }
    }

    #[test]
    fn twice_equals_once_for_every_sequence() {
        let odd = odd();
        let mut random = 7_u64;
        let mut next = |below: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) as usize % below
        };
        for _ in 0..200_000 {
            let text: String = (0..=next(8))
                .map(|_| match next(8) {
                    0 => 'e',
                    1 => ' ',
                    2 => 'i',
                    3 => char::from_u32(u32::try_from(next(0x0011_0000)).unwrap()).unwrap_or('x'),
                    _ => odd[next(odd.len())],
                })
                .collect();
            let once = casefold(&text);
            assert_eq!(casefold(&once), once, "{}", text.escape_unicode());
            // The dot over an i is not a composition of the standard.
            if !once.contains('i') {
                assert_eq!(once.nfc().collect::<String>(), once, "{}", text.escape_unicode());
            }
        }
    }
}
