//! Even text: prefixes without white space to fold, of characters that both normal forms keep.
//!
//! Whole blocks are checked without branches, which the compiler vectorises.
#![expect(clippy::indexing_slicing, reason = "tables have an entry for every byte")]
#![allow(clippy::needless_bitwise_bool)]

/// Returns the length of the ASCII prefix whose white space is single spaces and line feeds.
pub(super) fn even_ascii(bytes: &[u8]) -> usize {
    const BLOCK: usize = 32;
    let class = |byte: &u8| CLASSES[usize::from(*byte)];
    let is_even = |block: &[u8]| {
        let pairs = block.iter().zip(&block[1..]);
        !pairs.fold(false, |any, (&before, &byte)| {
            let odd = (byte >= 0x80) | is_odd_white(byte);
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
            before = class(&bytes[at - 1]);
        }
    }
    at
}

/// Bytes of a block of [`even_chinese`].
pub(super) const CHINESE_BLOCK: usize = 16;

/// Returns the length of a prefix of Chinese, kana and what [`even_ascii`] takes, or 0.
///
/// Checks whole blocks only, so the prefix may be longer.
pub(super) fn even_chinese(bytes: &[u8]) -> usize {
    // A character of three bytes that begins in the block, and white space, end after it.
    const AFTER: usize = 2;
    let is_even = |block: &[u8]| {
        let next = block[1..].iter().zip(&block[AFTER..]);
        !block.iter().zip(next).fold(false, |any, (&byte, (&second, &third))| {
            let chinese = within(byte, 0xe4..0xea);
            let odd = (byte >= 0xc0) & !chinese & !((byte == 0xe3) & is_even_kana(second, third));
            any | odd | is_odd_white(byte) | (is_white(byte) & is_white(second))
        })
    };
    let mut at = 0;
    while bytes.get(at..at + CHINESE_BLOCK + AFTER).is_some_and(is_even) {
        at += CHINESE_BLOCK;
    }
    at + bytes[at..].iter().take_while(|&&byte| byte & 0xc0 == 0x80).count()
}

/// Returns true for U+3001 to U+30FE without the voicing marks and letters that fold to others.
///
/// Takes the bytes after the first, which is 0xe3.
#[inline]
fn is_even_kana(second: u8, third: u8) -> bool {
    (second == 0x80) & within(third, 0x81..0xaa)
        | (second == 0x81)
        | (second == 0x82) & !within(third, 0x99..0xa0)
        | (second == 0x83) & (third != 0xbf)
}

#[inline]
const fn within(byte: u8, range: std::ops::Range<u8>) -> bool {
    byte.wrapping_sub(range.start) < range.end - range.start
}

/// Returns true for ASCII white space that is not even: tabs, and line breaks but line feeds.
#[inline]
const fn is_odd_white(byte: u8) -> bool {
    (byte == b'\t') | within(byte, 0x0b..0x0e)
}

/// Returns true if a byte is ASCII white space.
#[inline]
const fn is_white(byte: u8) -> bool {
    (byte == b' ') | within(byte, b'\t'..0x0e)
}

/// Classes of bytes: not white space, white space allowed singly, and bytes that end the run.
const EVEN: u8 = 0;
const WHITE: u8 = 1;
const STOP: u8 = 2;

static CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut classes = [STOP; 256];
    let mut byte = 0_u8;
    while byte < 0x80 {
        classes[byte as usize] = match (is_white(byte), is_odd_white(byte)) {
            (false, _) => EVEN,
            (true, false) => WHITE,
            (true, true) => STOP,
        };
        byte += 1;
    }
    classes
}

#[cfg(test)]
pub(super) mod tests {
    /// Returns texts with blocks of Chinese around a character.
    pub(in crate::text::form) fn blocks_around(c: char) -> [String; 2] {
        [
            format!("中{c}文字 文字文字{c}\u{3099}文字文字"),
            format!("中文字文字 文{c}{c}か文字文字文字"),
        ]
    }

    /// Returns texts whose blocks end at every place before and within what is not even.
    pub(in crate::text::form) fn blocks_that_end() -> Vec<String> {
        let odd =
            ["か\u{3099}", "e\u{301}", "  ", " \n", "\t", "，", "。", "ガ", "\u{3000}", "ﾞ", "Ｂ"];
        let text = |odd: &str, before: usize| {
            format!("中{}{odd}文字文字文字文字 文字", "x".repeat(before))
        };
        odd.into_iter().flat_map(|odd| (0..40).map(move |before| text(odd, before))).collect()
    }
}
