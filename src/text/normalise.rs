//! Normal form: spellings that read alike become the same characters.
//!
//! Unicode NFKC (full-width forms, ligatures, composed accents), lower case, white space folded,
//! invisible characters dropped. Normalising twice changes nothing more.

use unicode_normalization::UnicodeNormalization;

/// Returns the text in its normal form.
///
/// A run of white space becomes one space, or one line feed if it holds a line break, so that
/// lines stay apart for cleaning; both ends are trimmed.
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

/// Writes the normal form of `text` over what `out` holds.
pub(super) fn normalise_into(text: &str, out: &mut String) {
    let mut fold = Folder::new(out);
    fold.out.reserve(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let run = match ascii_prefix(rest).max(han_prefix(rest)) {
            0 if is_plain(first) => first.len_utf8(),
            run => run,
        };
        let (head, tail) = rest.split_at(run);
        if run > 0 && tail.chars().next().is_none_or(is_plain) {
            fold.push_plain(head);
            rest = tail;
            continue;
        }
        // A mark composes with the character before it, so that one is normalised with it.
        let held = head.chars().next_back().map_or(0, char::len_utf8);
        let (head, marked) = rest.split_at(run - held);
        fold.push_plain(head);
        let mut after = marked.char_indices().skip(1);
        let end = after.find(|&(_, c)| is_plain(c)).map_or(marked.len(), |(at, _)| at);
        let (marked, tail) = marked.split_at(end);
        marked.nfkc().flat_map(char::to_lowercase).nfkc().for_each(|c| fold.push(c));
        rest = tail;
    }
}

/// Length of the prefix that is ASCII.
fn ascii_prefix(text: &str) -> usize {
    let bytes = text.as_bytes();
    if bytes.first().is_none_or(|first| !first.is_ascii()) {
        return 0;
    }
    // Whole blocks are told at a glance.
    let blocks = bytes.chunks_exact(64).take_while(|block| block.is_ascii()).count() * 64;
    let rest = bytes.get(blocks..).unwrap_or_default();
    blocks + rest.iter().position(|byte| !byte.is_ascii()).unwrap_or(rest.len())
}

/// Length of the prefix that is Chinese characters of the main block, told by their first bytes.
fn han_prefix(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&first) = bytes.get(at)
        && matches!(first, 0xe4..=0xe9)
        && (first > 0xe4 || bytes.get(at + 1).is_some_and(|&second| second >= 0xb8))
    {
        at += 3;
    }
    at
}

/// Tells whether all white space in ASCII is single spaces and line feeds.
fn is_folded(bytes: &[u8]) -> bool {
    let is_white = |byte: u8| (byte == b' ') | (byte.wrapping_sub(b'\t') < 5);
    let next = bytes.get(1..).unwrap_or_default();
    // Without a way out in the middle the loop is done in wide steps.
    !bytes.iter().zip(next).fold(false, |other, (&byte, &next)| {
        let odd = matches!(byte, b'\t' | 0x0b..=b'\r');
        other | odd | (is_white(byte) & is_white(next))
    })
}

/// Tells whether NFKC leaves a character alone, or only narrows it, unless a mark follows.
///
/// These few ranges are nearly all of Chinese and European text and take the quick way.
#[inline]
fn is_plain(c: char) -> bool {
    matches!(c, '\0'..='\u{7f}' | '\u{4e00}'..='\u{9fff}' | '\u{3001}'..='\u{3002}'
        | '\u{3008}'..='\u{3011}' | '\u{2013}'..='\u{2014}' | '\u{2018}'..='\u{201d}'
        | '\u{b7}' | '\u{df}'..='\u{ff}' | '\u{430}'..='\u{45f}' | '\u{ff01}'..='\u{ff5e}')
}

#[inline]
fn from_full_width(c: char) -> char {
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        other => other,
    }
    .to_ascii_lowercase()
}

/// Characters that are not seen: they come with copying and tell nothing.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{fe00}'
            ..='\u{fe0f}'
    )
}

/// Writes characters, folding white space between them and dropping it at both ends.
pub(super) struct Folder<'a> {
    out: &'a mut String,
    gap: Option<char>,
}

impl<'a> Folder<'a> {
    pub(super) fn new(out: &'a mut String) -> Self {
        out.clear();
        Self { out, gap: None }
    }

    /// What was written, without the white space that may follow.
    pub(super) fn text(&self) -> &str {
        self.out
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.out.truncate(len);
        self.gap = None;
    }

    pub(super) fn clear(&mut self) {
        self.truncate(0);
    }

    /// Writes a line that is in normal form already.
    pub(super) fn push_folded(&mut self, line: &str) {
        let mut chars = line.chars();
        if let Some(first) = chars.next() {
            self.push(first);
            self.out.push_str(chars.as_str());
        }
    }

    /// Writes a run of ASCII, of Chinese characters, or one other plain character.
    fn push_plain(&mut self, run: &str) {
        match run.as_bytes().first() {
            None => {}
            Some(0..0x80) => self.push_ascii(run),
            Some(0xe4..=0xe9) => self.push_run(run),
            Some(_) => run.chars().for_each(|c| self.push(from_full_width(c))),
        }
    }

    /// Writes ASCII, block by block where its white space is folded already.
    fn push_ascii(&mut self, text: &str) {
        const BLOCK: usize = 256;
        let mut rest = text;
        while !rest.is_empty() {
            let (block, tail) = rest.split_at(rest.len().min(BLOCK));
            rest = tail;
            let inner = block.trim_start();
            let (head, inner) = block.split_at(block.len() - inner.len());
            let (inner, end) = inner.split_at(inner.trim_end().len());
            head.chars().for_each(|c| self.push(c));
            if is_folded(inner.as_bytes()) {
                self.push_words(inner);
            } else {
                inner.chars().for_each(|c| self.push(c.to_ascii_lowercase()));
            }
            end.chars().for_each(|c| self.push(c));
        }
    }

    /// Writes ASCII whose white space is folded, in lower case; it begins and ends with a word.
    fn push_words(&mut self, words: &str) {
        self.push_run(words);
        let start = self.out.len() - words.len();
        if let Some(written) = self.out.get_mut(start..) {
            written.make_ascii_lowercase();
        }
    }

    /// Writes what is in normal form already and neither begins nor ends with white space.
    fn push_run(&mut self, run: &str) {
        if run.is_empty() {
            return;
        }
        if let Some(gap) = self.gap.take()
            && !self.out.is_empty()
        {
            self.out.push(gap);
        }
        self.out.push_str(run);
    }

    #[inline]
    pub(super) fn push(&mut self, c: char) {
        if c.is_whitespace() {
            let breaks =
                matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}'..='\u{2029}');
            if breaks || self.gap.is_none() {
                self.gap = Some(if breaks { '\n' } else { ' ' });
            }
        } else if !is_invisible(c) {
            if let Some(gap) = self.gap.take()
                && !self.out.is_empty()
            {
                self.out.push(gap);
            }
            self.out.push(c);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn quick_way_equals_plain_nfkc_for_every_character_before_a_mark() {
        for c in (0..=0x0001_ffff).filter_map(char::from_u32) {
            let text = format!("a{c}\u{301}é{c}中{c}b");
            let expected: String =
                text.nfkc().flat_map(char::to_lowercase).nfkc().collect::<String>();
            let mut folded = String::new();
            let mut fold = Folder::new(&mut folded);
            expected.chars().for_each(|c| fold.push(c));
            assert_eq!(normalise(&text), folded, "{c:?} U+{:04X}", u32::from(c));
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
