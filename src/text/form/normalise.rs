//! Normal form: maps spellings that read alike to the same characters.
//!
//! Unicode NFKC (full-width forms, ligatures, composed accents), lower case, folded white space, no
//! invisible characters. Normalising twice equals normalising once.
use std::sync::LazyLock;

use unicode_normalization::char::canonical_combining_class;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};

use super::simple::Simple;
use super::unicode::{Fold, Form, is_white};

/// Returns the text in NFKC, in lower case, with folded white space.
///
/// A run of white space becomes one space, or one line feed if it holds a line break, because
/// cleaning works on lines. Both ends are trimmed, and invisible characters are dropped.
///
/// ```
/// use hamdex::text::normalise;
///
/// assert_eq!(normalise("  ＳｉｍＨａｓｈ,\t\u{200b}去重！ "), "simhash, 去重!");
/// assert_eq!(normalise("one\r\n\r\n two"), "one\ntwo");
/// ```
pub fn normalise(text: &str) -> String {
    let mut out = String::new();
    normalise_into(text, &mut out);
    out
}

/// Replaces `out` by the normal form of `text`.
pub(in crate::text) fn normalise_into(text: &str, out: &mut String) {
    let fold = Folder::new(out);
    fold.out.reserve(text.len());
    let mut writer = Writer { fold, last: 0 };
    let mut rest = text;
    loop {
        let read = writer.push_simple(rest);
        rest = &rest[read..];
        let mut after = rest.char_indices();
        let Some((_, first)) = after.next() else { break };
        // A sequence that may compose ends before the next starter.
        let end = after.find(|&(_, c)| is_starter(c)).map_or(rest.len(), |(at, _)| at);
        let (piece, tail) = rest.split_at(end);
        if first.is_ascii() && end == 1 {
            writer.fold.push(first.to_ascii_lowercase());
        } else {
            piece.nfkc().flat_map(char::to_lowercase).nfkc().for_each(|c| writer.fold.push(c));
        }
        writer.last = 0;
        rest = tail;
    }
}

struct Writer<'o> {
    fold: Folder<'o>,
    last: u32,
}

impl<'o> Simple<'o> for Writer<'o> {
    const BUFFERS: bool = false;

    #[inline]
    fn form_of(&self, code: usize) -> Form {
        form_of(code)
    }

    #[inline]
    fn fold(&mut self) -> &mut Folder<'o> {
        &mut self.fold
    }

    #[inline]
    fn last(&mut self) -> &mut u32 {
        &mut self.last
    }

    #[inline]
    fn flush(&mut self) {}
}

/// Forms of the characters below U+10000; Chinese is handled in [`form_of`].
static FORMS: LazyLock<Vec<Form>> = LazyLock::new(|| {
    ('\0'..='\u{ffff}').fold(Vec::new(), |mut forms, c| {
        forms.resize(c as usize, Form::may_compose());
        forms.push(form(c));
        forms
    })
});

#[inline]
fn form_of(code: usize) -> Form {
    match code {
        // Chinese, and pictographs with skin tones.
        0x4e00..=0x9fff | 0x1f300..=0x1faff => Form::staying(0),
        _ => FORMS.get(code).copied().unwrap_or(Form::may_compose()),
    }
}

/// Returns the form of a single character, from the same tables as the slow path.
fn form(c: char) -> Form {
    let class = canonical_combining_class(c);
    let stays = |c: char| is_nfkc_quick(std::iter::once(c)) == IsNormalized::Yes;
    let mut small = c.to_lowercase();
    let to = match c {
        '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' => return Form::staying(0),
        '\u{ff01}'..='\u{ff5e}' => from_full_width(c),
        _ if is_white(c) || !stays(c) => return Form::may_compose(),
        _ if is_invisible(c) && class == 0 => return Form::dropped(),
        _ => match (small.next(), small.next()) {
            (Some(small), None) => small,
            _ => return Form::may_compose(),
        },
    };
    if to == c {
        Form::staying(class)
    } else if class == 0 && stays(to) && canonical_combining_class(to) == 0 {
        Form::one(to)
    } else {
        Form::may_compose()
    }
}

/// Returns true if a character never composes with one before it.
fn is_starter(c: char) -> bool {
    let form = form_of(c as usize);
    c.is_ascii() || form.is_inert() || matches!(form.fold(), Fold::One(_))
}

#[inline]
fn from_full_width(c: char) -> char {
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).expect("it is ASCII"),
        other => other,
    }
    .to_ascii_lowercase()
}

/// Returns true for invisible characters, which are often copied by accident.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{fe00}'
            ..='\u{fe0f}'
    )
}

/// A writer that folds white space between characters and drops it at both ends.
pub(super) struct Folder<'a> {
    out: &'a mut String,
    gap: Option<char>,
}

impl<'a> Folder<'a> {
    pub(super) fn new(out: &'a mut String) -> Self {
        out.clear();
        Self { out, gap: None }
    }

    /// Returns the text written so far, without pending white space.
    pub(super) fn text(&self) -> &str {
        self.out
    }

    /// Makes room for `bytes` more bytes.
    pub(super) fn reserve(&mut self, bytes: usize) {
        self.out.reserve(bytes);
    }

    /// Returns the last character, if no white space follows it.
    pub(super) fn last(&self) -> Option<char> {
        self.out.chars().next_back().filter(|_| self.gap.is_none())
    }

    /// Removes the last character.
    pub(super) fn pop(&mut self) {
        self.out.pop();
    }

    /// Writes a visible character that is not white space.
    #[inline]
    pub(super) fn push_letter(&mut self, c: char) {
        self.push_gap();
        self.out.push(c);
    }

    /// Writes visible characters without white space.
    #[inline]
    pub(super) fn push_seen(&mut self, run: &str) {
        self.push_gap();
        self.out.push_str(run);
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.out.truncate(len);
        self.gap = None;
    }

    pub(super) fn clear(&mut self) {
        self.truncate(0);
    }

    /// Writes a line that is already in normal form.
    pub(super) fn push_folded(&mut self, line: &str) {
        let mut chars = line.chars();
        if let Some(first) = chars.next() {
            self.push(first);
            self.out.push_str(chars.as_str());
        }
    }

    /// Writes a run with its ASCII in lower case; it must not begin or end with white space.
    #[inline]
    pub(super) fn push_even(&mut self, run: &str) {
        self.push_gap();
        let start = self.out.len();
        self.out.push_str(run);
        self.out[start..].make_ascii_lowercase();
    }

    /// Writes the pending white space before another character.
    #[inline]
    fn push_gap(&mut self) {
        if let Some(gap) = self.gap.take()
            && !self.out.is_empty()
        {
            self.out.push(gap);
        }
    }

    #[inline]
    pub(super) fn push(&mut self, c: char) {
        if is_white(c) {
            let breaks =
                matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}'..='\u{2029}');
            if breaks || self.gap.is_none() {
                self.gap = Some(if breaks { '\n' } else { ' ' });
            }
        } else if !is_invisible(c) {
            self.push_gap();
            self.out.push(c);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::form::even::tests::{blocks_around, blocks_that_end};

    #[test]
    fn forms_that_read_alike_become_equal() {
        assert_eq!(normalise("Ｃａｆé"), normalise("cafe\u{301}"));
        assert_eq!(normalise("ﬁne ①㍿ ｶﾞ"), "fine 1株式会社 ガ");
        assert_eq!(normalise("ΑΣ ÀÉ İ"), "ας àé i\u{307}".replace('ς', "σ"));
        assert_eq!(normalise("今天，是：晴天。"), "今天,是:晴天。");
    }

    #[test]
    fn white_space_folds_and_ends_are_trimmed() {
        assert_eq!(normalise(""), "");
        assert_eq!(normalise(" \u{3000}\n "), "");
        assert_eq!(normalise("a \u{a0}\u{3000} b \r\n\t c"), "a b\nc");
        assert_eq!(normalise("a\u{200b}b\u{feff}\u{ad}c"), "abc");
    }

    /// Returns the normal form by its definition.
    fn plain(text: &str) -> String {
        let mut folded = String::new();
        let mut fold = Folder::new(&mut folded);
        text.nfkc().flat_map(char::to_lowercase).nfkc().for_each(|c| fold.push(c));
        folded
    }

    #[test]
    fn fast_path_equals_plain_nfkc_for_every_character_before_a_mark() {
        for c in (0..=0x0001_ffff).filter_map(char::from_u32) {
            let text = format!("a{c}\u{301}é{c}中{c}b");
            for text in std::iter::once(text).chain(blocks_around(c)) {
                assert_eq!(normalise(&text), plain(&text), "{c:?} U+{:04X}", u32::from(c));
            }
        }
    }

    #[test]
    fn blocks_of_chinese_end_anywhere() {
        for text in blocks_that_end() {
            assert_eq!(normalise(&text), plain(&text), "{}", text.escape_unicode());
        }
    }

    #[test]
    fn fast_path_equals_plain_nfkc_for_every_sequence() {
        let odd: Vec<char> = ('\0'..='\u{1ffff}')
            .filter(|&c| form_of(c as usize) != Form::staying(0) || c.is_ascii())
            .collect();
        let usual: Vec<char> = "aZ  \n\teé中가яΣกЙｶ\u{301}\u{323}\u{200c}\u{ad}".chars().collect();
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..300_000 {
            let text: String = (0..random.usize(..9))
                .map(|_| {
                    let chars = if random.bool() { &usual } else { &odd };
                    chars[random.usize(..chars.len())]
                })
                .collect();
            assert_eq!(normalise(&text), plain(&text), "{}", text.escape_unicode());
        }
    }

    #[test]
    fn normalising_twice_changes_nothing_more() {
        for c in (0..=0x0001_ffff).filter_map(char::from_u32) {
            let once = normalise(&format!("x{c}y"));
            assert_eq!(normalise(&once), once, "{c:?} U+{:04X}", u32::from(c));
        }
    }
}
