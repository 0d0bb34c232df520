//! Normal form by `NFKC_Casefold`: one pass by a table, quick where nothing changes.
//!
//! Characters are folded one by one, which also drops what is not seen, and only then composed
//! (Unicode Standard Annex 15), so that normalising twice changes nothing more. Beyond Unicode's
//! folding, the points of Hebrew and Arabic are dropped and letters that stand for others folded.

use super::normalise::{Folder, even_ascii};
use super::unicode::{self, Fold, Form, Table};

/// Returns the text in the normal form `casefold-1`.
///
/// White space folds as in [`normalise`](super::normalise()). Characters that are not seen, points
/// and tatweel are dropped before accents are composed; a table pinned in this library says
/// which, so no compiler and no crate changes the form. One pass, some nanoseconds a character.
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

/// Writes the normal form `casefold-1` of `text` over what `out` holds.
pub(super) fn casefold_into(text: &str, out: &mut String) {
    let mut fold = Folder::new(out);
    fold.reserve(text.len());
    let mut writer = Writer { table: unicode::table(), fold, last: 0, waiting: Vec::new() };
    let mut rest = text;
    loop {
        let run = writer.even_prefix(rest);
        let (even, tail) = rest.split_at(run);
        writer.push_even(even);
        let Some(c) = tail.chars().next() else { break };
        writer.push(c);
        rest = tail.get(c.len_utf8()..).unwrap_or_default();
    }
    writer.settle();
}

struct Writer<'a> {
    table: &'static Table,
    fold: Folder<'a>,
    /// Combining class of the last character that was written; above all where some wait.
    last: u32,
    /// Decomposed characters that may compose, the first one a starter, and their classes.
    waiting: Vec<(u32, char)>,
}

/// Above all combining classes.
const WAITS: u32 = 256;

impl Writer<'_> {
    /// Length of the prefix that is in normal form, but for capitals of ASCII.
    ///
    /// White space in it is single and of ASCII, and none stands at its ends.
    #[inline]
    fn even_prefix(&mut self, text: &str) -> usize {
        let bytes = text.as_bytes();
        if matches!(bytes.first(), None | Some(b' ' | b'\n')) {
            return 0;
        }
        let mut at = 0;
        let mut last = self.last;
        // Where an ASCII character ends the prefix, nothing but a space can stand before it.
        let mut white = false;
        loop {
            let before = at;
            while let Some(0xe5..=0xe9) = bytes.get(at) {
                at += 3;
            }
            if at > before {
                (last, white) = (0, false);
            }
            let c = match bytes.get(at..) {
                Some([ascii @ ..0x80, ..]) => {
                    // Single letters between others are not worth the call.
                    let ascii = match (*ascii, bytes.get(at + 1)) {
                        (b'a'..=b'z' | b' ', Some(0x80..)) if !white => 1,
                        _ if white => 0,
                        _ => even_ascii(bytes.get(at..).unwrap_or_default()),
                    };
                    if ascii == 0 {
                        break;
                    }
                    at += ascii;
                    white = matches!(bytes.get(at - 1), Some(b' ' | b'\n'));
                    last = 0;
                    continue;
                }
                Some([a @ 0xc0..0xe0, b, ..]) => u32::from(a & 0x1f) << 6 | u32::from(b & 0x3f),
                Some([a @ 0xe0..0xf0, b, c, ..]) => {
                    u32::from(a & 0xf) << 12 | u32::from(b & 0x3f) << 6 | u32::from(c & 0x3f)
                }
                Some([a, b, c, d, ..]) => {
                    u32::from(a & 7) << 18
                        | u32::from(b & 0x3f) << 12
                        | u32::from(c & 0x3f) << 6
                        | u32::from(d & 0x3f)
                }
                _ => break,
            };
            let Some(c) = char::from_u32(c) else { break };
            let form = self.table.form(c);
            let class = form.class();
            // A mark behind white space has nothing to stand on.
            if !form.stays() || (class != 0 && (class < last || white)) {
                break;
            }
            at += c.len_utf8();
            (last, white) = (class, false);
        }
        if at > 0 && !white {
            self.settle();
            self.last = last;
        } else if at > 1 {
            self.settle();
            self.last = 0;
        }
        at - usize::from(white)
    }

    fn push_even(&mut self, run: &str) {
        if !run.is_empty() {
            self.fold.push_even(run);
        }
    }

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
        self.settle();
        self.fold.push(c);
        self.last = 0;
    }

    /// Writes a character that folding leaves alone.
    #[inline]
    fn push_folded(&mut self, c: char, form: Form) {
        let class = form.class();
        if form.stays() && class == 0 {
            self.settle();
        } else if form.fold() == Fold::White {
            return self.push_white(c);
        } else if !(class >= self.last && (form.stays() || !self.may_compose(c))) {
            return self.wait(c);
        }
        self.fold.push_letter(c);
        self.last = class;
    }

    /// Returns true if a character may compose with what was written last.
    fn may_compose(&self, c: char) -> bool {
        let Some(before) = self.fold.last() else { return false };
        // A mark that does not compose with the whole may do so with its parts.
        self.last != 0
            || self.table.form(before).decomposes()
            || self.table.compose(before, c).is_some()
    }

    /// Lets a character wait for those that stand on the same starter.
    fn wait(&mut self, c: char) {
        if self.last != WAITS {
            // The starter and its marks are taken back.
            while let Some(before) = self.fold.last() {
                self.fold.pop();
                let start = self.waiting.len();
                self.table
                    .decompose(before, |c| self.waiting.push((self.table.form(c).class(), c)));
                self.waiting.get_mut(start..).unwrap_or_default().reverse();
                if self.table.form(before).class() == 0 {
                    break;
                }
            }
            self.waiting.reverse();
        }
        self.table.decompose(c, |c| self.waiting.push((self.table.form(c).class(), c)));
        self.last = WAITS;
    }

    /// Composes and writes what waits.
    #[inline]
    fn settle(&mut self) {
        if !self.waiting.is_empty() {
            self.compose();
        }
    }

    fn compose(&mut self) {
        let mut waiting = std::mem::take(&mut self.waiting);
        for run in waiting.chunk_by_mut(|_, &(class, _)| class != 0) {
            run.sort_by_key(|&(class, _)| class);
        }
        // Writes behind itself: what composes leaves a place free.
        let (mut starter, mut len, mut before) = (None, 0, None);
        for at in 0..waiting.len() {
            let Some(&(class, c)) = waiting.get(at) else { break };
            let free = before.is_none_or(|before| before < class);
            if let Some((_, first)) = starter.filter(|_| free).and_then(|at| waiting.get_mut(at))
                && let Some(composed) = self.table.compose(*first, c)
            {
                *first = composed;
                continue;
            }
            if class == 0 {
                (starter, before) = (Some(len), None);
            } else {
                before = Some(class);
            }
            if let Some(slot) = waiting.get_mut(len) {
                *slot = (class, c);
            }
            len += 1;
        }
        for &(class, c) in waiting.iter().take(len) {
            self.fold.push_letter(c);
            self.last = class;
        }
        waiting.clear();
        self.waiting = waiting;
    }
}

#[cfg(test)]
mod tests {
    use unicode_normalization::UnicodeNormalization;

    use super::*;

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
            ("Ｃａｆé ｶﾞ", "cafe\u{301} ガ"),
            ("\u{1112}\u{1161}\u{11ab}", "한"),
            ("a \u{a0}\u{3000} b \r\n\t c ", "a b\nc"),
        ] {
            assert_eq!(casefold(one), casefold(other), "{one:?}");
        }
        assert_eq!(casefold("e\u{ad}\u{301} x \u{301}"), "é x \u{301}");
        assert_eq!(casefold("가 A, Ж！"), "가 a, ж!");
    }

    #[test]
    fn twice_is_as_good_as_once_for_every_sequence() {
        let table = unicode::table();
        // Those that do something to others, and all the rest now and then.
        let odd: Vec<char> = ('\0'..=char::MAX)
            .filter(|&c| {
                let form = table.form(c);
                form.fold() != Fold::Stays || form.class() != 0 || form.decomposes()
            })
            .collect();
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
            // The dot over an i is no composition of the standard.
            if !once.contains('i') {
                assert_eq!(once.nfc().collect::<String>(), once, "{}", text.escape_unicode());
            }
        }
    }
}
