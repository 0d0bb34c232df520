//! Segments: ranges of adjacent bit positions.

use crate::fingerprint::Fingerprint;

/// A range of adjacent bit positions, counted from the most significant.
///
/// ```
/// use hamdex::plan::{Permutation, Segment};
///
/// let halves = vec![Segment { start: 16, len: 16 }, Segment { start: 0, len: 16 }];
/// assert_eq!(Permutation::new(32, halves)?.segments().len(), 2);
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Segment {
    /// First position; 0 is the most significant bit.
    pub start: u32,
    /// Number of positions, at least 1.
    pub len: u32,
}

impl Segment {
    /// Returns the position after the last one, saturating.
    pub(crate) fn end(self) -> u32 {
        self.start.saturating_add(self.len)
    }

    /// Returns the segment's bits as a mask of `bits` bits; the segment must fit.
    pub(crate) fn mask(self, bits: u32) -> u128 {
        low_ones(self.len) << (bits - self.end()).min(u128::BITS - 1)
    }

    /// Returns the segment's bits as a mask of fingerprints.
    pub(crate) fn mask_of<F: Fingerprint>(self) -> F {
        F::high_mask(self.end()) & !F::high_mask(self.start)
    }
}

/// Returns the number whose `count` lowest bits are set.
pub(crate) fn low_ones(count: u32) -> u128 {
    match count {
        0 => 0,
        n if n >= u128::BITS => u128::MAX,
        n => u128::MAX >> (u128::BITS - n),
    }
}

/// Returns the number of positions of some segments.
pub(crate) fn width(segments: &[Segment]) -> u32 {
    segments.iter().map(|segment| segment.len).sum()
}

/// Splits segments after their first `bits` positions.
pub(crate) fn split(segments: &[Segment], mut bits: u32) -> (Vec<Segment>, Vec<Segment>) {
    let (mut first, mut rest) = (Vec::new(), Vec::new());
    for &Segment { start, len } in segments {
        let taken = len.min(bits);
        bits -= taken;
        first.push(Segment { start, len: taken });
        rest.push(Segment { start: start + taken, len: len - taken });
    }
    first.retain(|segment| segment.len > 0);
    rest.retain(|segment| segment.len > 0);
    (first, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_split_after_any_position() {
        let segments = [Segment { start: 3, len: 2 }, Segment { start: 9, len: 3 }];
        for bits in 0..=5 {
            let (first, rest) = split(&segments, bits);
            assert_eq!((width(&first), width(&rest)), (bits, 5 - bits));
            let positions = |segments: &[Segment]| -> Vec<u32> {
                segments.iter().flat_map(|segment| segment.start..segment.end()).collect()
            };
            assert_eq!([positions(&first), positions(&rest)].concat(), positions(&segments));
        }
    }

    #[test]
    fn masks_of_every_width_have_the_same_positions() {
        for (start, len) in [(0, 1), (0, 32), (31, 1), (5, 20)] {
            let segment = Segment { start, len };
            assert_eq!(u128::from(segment.mask_of::<u32>()), segment.mask(32));
            assert_eq!(u128::from(segment.mask_of::<u64>()), segment.mask(64));
            assert_eq!(segment.mask_of::<u128>(), segment.mask(128));
        }
    }
}
