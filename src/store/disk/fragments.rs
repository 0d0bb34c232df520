//! Fragments: walks the blocks of a log or a MANIFEST.
//!
//! Both consist of blocks of 32 KiB, and a block of fragments: a checksum of four bytes, a length
//! of two, a type of one, and the data. A record is one fragment, or several in a row.
//!
//! Source: `db/log_format.h` of `RocksDB` 11.8.

/// Bytes of a block.
pub(in crate::store) const BLOCK: usize = 32 << 10;

/// Bytes of a fragment's header.
pub(super) const HEADER: usize = 7;

/// Types of fragments: a whole record, and its beginning, middle and end.
pub(in crate::store) const FULL: u8 = 1;
pub(in crate::store) const FIRST: u8 = 2;
pub(in crate::store) const MIDDLE: u8 = 3;
pub(in crate::store) const LAST: u8 = 4;

/// A fragment whose header is complete.
pub(in crate::store) struct Fragment<'a> {
    /// Its offset in the block.
    pub(in crate::store) at: usize,
    pub(in crate::store) kind: u8,
    /// Its data.
    pub(in crate::store) stored: Result<&'a [u8], Broken>,
}

/// Why the data of a fragment cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum Broken {
    /// It would end behind the bytes of the block.
    Cut,
    /// Its checksum differs.
    Damaged,
}

/// The fragments of a block, up to the first broken one or space that was never written.
pub(in crate::store) struct Fragments<'a> {
    block: &'a [u8],
    at: usize,
}

impl<'a> Fragments<'a> {
    pub(in crate::store) fn of(block: &'a [u8]) -> Self {
        Self { block, at: 0 }
    }
}

impl<'a> Iterator for Fragments<'a> {
    type Item = Fragment<'a>;

    fn next(&mut self) -> Option<Fragment<'a>> {
        let at = self.at;
        let (&[c0, c1, c2, c3, low, high, kind], rest) =
            self.block.get(at..)?.split_first_chunk::<HEADER>()?;
        let length = usize::from(low) | usize::from(high) << 8;
        if kind == 0 && length == 0 {
            return None;
        }
        let expected = [c3, c2, c1, c0].iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte));
        let stored = match rest.get(..length) {
            None => Err(Broken::Cut),
            Some(stored) if checksum_of(kind, stored) != expected => Err(Broken::Damaged),
            Some(stored) => Ok(stored),
        };
        self.at = if stored.is_ok() { at + HEADER + length } else { self.block.len() };
        Some(Fragment { at, kind, stored })
    }
}

/// Returns the masked checksum of a fragment, as its header stores it.
fn checksum_of(kind: u8, stored: &[u8]) -> u32 {
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&[kind]), stored);
    checksum.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// Encodes a fragment.
#[cfg(test)]
pub(super) fn encoded(kind: u8, stored: &[u8]) -> Vec<u8> {
    let mut checksum = checksum_of(kind, stored).to_be_bytes();
    checksum.reverse();
    let length = u16::try_from(stored.len()).unwrap();
    let [high, low] = length.to_be_bytes();
    [&checksum[..], &[low, high, kind], stored].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Offset, type and data of a fragment.
    type Found<'a> = (usize, u8, Result<&'a [u8], Broken>);

    fn found(block: &[u8]) -> Vec<Found<'_>> {
        Fragments::of(block).map(|fragment| (fragment.at, fragment.kind, fragment.stored)).collect()
    }

    #[test]
    fn a_block_is_walked_up_to_its_first_broken_fragment() {
        let one = encoded(FULL, b"one");
        let two = encoded(LAST, &[7; 300]);
        let both = [&one[..], &two].concat();
        let whole = vec![(0, FULL, Ok(&b"one"[..])), (one.len(), LAST, Ok(&[7; 300][..]))];
        assert_eq!(found(&both), whole);
        assert_eq!(found(&[&both[..], &[0; 50]].concat()), whole, "space that was never written");
        for length in one.len()..both.len() {
            let cut = found(both.split_at(length).0);
            let last = cut.last().unwrap();
            match length - one.len() {
                ..HEADER => assert_eq!(cut, whole[..1], "{length}"),
                _ => assert_eq!(*last, (one.len(), LAST, Err(Broken::Cut)), "{length}"),
            }
        }
        for at in [0, HEADER - 1, HEADER] {
            let mut damaged = both.clone();
            damaged[at] ^= 1;
            let found = found(&damaged);
            assert_eq!((found.len(), found[0].2), (1, Err(Broken::Damaged)), "byte {at}");
        }
    }
}
