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
        let even = even_prefix(rest.as_bytes());
        let run = match even.max(white_prefix(rest.as_bytes())) {
            0 if is_plain(first) => first.len_utf8(),
            run => run,
        };
        let (head, tail) = rest.split_at(run);
        if run > 0 && tail.chars().next().is_none_or(is_plain) {
            fold.push_plain(head, even > 0);
            rest = tail;
            continue;
        }
        // A mark composes with the character before it, so that one is normalised with it.
        let held = head.chars().next_back().map_or(0, char::len_utf8);
        let (head, marked) = rest.split_at(run - held);
        fold.push_plain(head, even > 0);
        let mut after = marked.char_indices().skip(1);
        let end = after.find(|&(_, c)| is_plain(c)).map_or(marked.len(), |(at, _)| at);
        let (marked, tail) = marked.split_at(end);
        marked.nfkc().flat_map(char::to_lowercase).nfkc().for_each(|c| fold.push(c));
        rest = tail;
    }
}

/// Length of the prefix that is in normal form but for capitals of ASCII.
///
/// It neither begins nor ends with white space. All in it is [plain](is_plain); what it leaves
/// out of that is normalised all the same, only more slowly.
fn even_prefix(bytes: &[u8]) -> usize {
    if bytes.first().is_none_or(|&first| is_white(first)) {
        return 0;
    }
    let rest = |at| bytes.get(at..).unwrap_or_default();
    let mut at = 0;
    loop {
        at += even_ascii(rest(at));
        match even_wide(rest(at)) {
            0 => break,
            wide => at += wide,
        }
    }
    // White space at the end may go on behind it.
    let white = at.checked_sub(1).and_then(|last| bytes.get(last)).is_some_and(|&b| is_white(b));
    at - usize::from(white)
}

/// Length of the prefix that is ASCII whose white space is single spaces and line feeds.
pub(super) fn even_ascii(bytes: &[u8]) -> usize {
    const BLOCK: usize = 32;
    let class = |byte: &u8| CLASSES.get(usize::from(*byte)).copied().unwrap_or(STOP);
    // In long runs, blocks without a way out in the middle are looked at in wide steps.
    let is_even = |block: &[u8]| {
        let pairs = block.iter().zip(block.get(1..).unwrap_or_default());
        !pairs.fold(false, |any, (&before, &byte)| {
            let odd = matches!(byte, 0x80..|b'\t'| 0x0b..=b'\r');
            any | odd | (is_white(before) & is_white(byte))
        })
    };
    let (mut at, mut before) = (0, EVEN);
    while let Some(next) = bytes.get(at).map(class)
        && next & (before | STOP) == 0
    {
        (at, before) = (at + 1, next);
        if at % BLOCK == 0 {
            while bytes.get(at - 1..at + BLOCK).is_some_and(is_even) {
                at += BLOCK;
            }
            before = bytes.get(at - 1).map_or(STOP, class);
        }
    }
    at
}

/// Length of the prefix that is Chinese, its punctuation, or small letters of Western Europe.
fn even_wide(bytes: &[u8]) -> usize {
    let mut at = 0;
    loop {
        while let Some(0xe5..=0xe9) = bytes.get(at) {
            at += 3;
        }
        at += match bytes.get(at..) {
            Some(
                [0xe4, 0xb8..=0xbf, ..]
                | [0xe3, 0x80, 0x81..=0x82 | 0x88..=0x91, ..]
                | [0xe2, 0x80, 0x93..=0x94 | 0x98..=0x9d, ..],
            ) => 3,
            Some([0xc3, 0x9f..=0xbf, ..]) => 2,
            _ => break,
        };
    }
    at
}

/// Classes of bytes: no white space, white space that may stand alone, and what ends a run.
const EVEN: u8 = 0;
const WHITE: u8 = 1;
const STOP: u8 = 2;

static CLASSES: [u8; 256] = classes();

#[allow(clippy::indexing_slicing)] // a loop over all of a table at compile time
const fn classes() -> [u8; 256] {
    let mut classes = [STOP; 256];
    let mut byte = 0_u8;
    while byte < 0x80 {
        classes[byte as usize] = match byte {
            b' ' | b'\n' => WHITE,
            b'\t' | 0x0b..=b'\r' => STOP,
            _ => EVEN,
        };
        byte += 1;
    }
    classes
}

/// Length of the prefix that is white space of ASCII.
fn white_prefix(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|&&byte| is_white(byte)).count()
}

/// Tells whether a byte is white space of ASCII.
#[inline]
fn is_white(byte: u8) -> bool {
    (byte == b' ') | (byte.wrapping_sub(b'\t') < 5)
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

    /// Makes room for `bytes` more bytes.
    pub(super) fn reserve(&mut self, bytes: usize) {
        self.out.reserve(bytes);
    }

    /// The last character that was written, if no white space follows it.
    pub(super) fn last(&self) -> Option<char> {
        self.out.chars().next_back().filter(|_| self.gap.is_none())
    }

    /// Takes back the last character.
    pub(super) fn pop(&mut self) {
        self.out.pop();
    }

    /// Writes a character that is seen and no white space.
    #[inline]
    pub(super) fn push_letter(&mut self, c: char) {
        self.push_gap();
        self.out.push(c);
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

    /// Writes a run of plain characters; an even one has to be put in lower case at most.
    fn push_plain(&mut self, run: &str, even: bool) {
        if even && !run.is_empty() {
            self.push_even(run);
        } else {
            run.chars().for_each(|c| self.push(from_full_width(c)));
        }
    }

    /// Writes a run that neither begins nor ends with white space, in lower case of ASCII.
    #[inline]
    pub(super) fn push_even(&mut self, run: &str) {
        self.push_gap();
        let start = self.out.len();
        self.out.push_str(run);
        if let Some(written) = self.out.get_mut(start..) {
            written.make_ascii_lowercase();
        }
    }

    /// Writes the white space that came, now that something follows it.
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
        if c.is_whitespace() {
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
