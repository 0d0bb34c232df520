//! UTF-8 that is known to be valid, read without looking for the ends of characters.
#![expect(clippy::indexing_slicing, reason = "callers ask for places within the text")]

/// Bytes of the longest character.
pub(super) const WIDEST: usize = 4;

/// The bytes of a text from an offset on, zeros behind its end.
#[inline]
pub(super) fn four(source: &[u8], at: usize) -> [u8; WIDEST] {
    let rest = &source[at..];
    rest.first_chunk().copied().unwrap_or_else(|| {
        let mut four = [0; WIDEST];
        four.iter_mut().zip(rest).for_each(|(slot, byte)| *slot = *byte);
        four
    })
}

/// The code point that valid UTF-8 begins with, and its length.
#[inline]
pub(super) fn decode([a, b, c, d]: [u8; WIDEST]) -> (usize, usize) {
    let tail = |byte: u8| usize::from(byte & 0x3f);
    match a {
        ..0x80 => (a.into(), 1),
        0x80..0xe0 => (usize::from(a & 0x1f) << 6 | tail(b), 2),
        0xe0..0xf0 => (usize::from(a & 0xf) << 12 | tail(b) << 6 | tail(c), 3),
        _ => (usize::from(a & 7) << 18 | tail(b) << 12 | tail(c) << 6 | tail(d), 4),
    }
}
