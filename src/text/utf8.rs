//! Decoding of valid UTF-8 without bounds checks for each character.
#![expect(clippy::indexing_slicing, reason = "callers pass offsets within the text")]

/// Bytes of the longest character.
pub(super) const WIDEST: usize = 4;

/// Returns the four bytes at an offset, with zeros after the end of the text.
#[inline]
pub(super) fn four(source: &[u8], at: usize) -> [u8; WIDEST] {
    let rest = &source[at..];
    rest.first_chunk().copied().unwrap_or_else(|| {
        let mut four = [0; WIDEST];
        four.iter_mut().zip(rest).for_each(|(slot, byte)| *slot = *byte);
        four
    })
}

/// Returns the first code point of valid UTF-8 and its length in bytes.
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
