//! Digits: reads chosen bits of a fingerprint as one number; no bit moves.

use super::segment::{Segment, width};
use crate::fingerprint::Fingerprint;

/// The bits of one segment, moved to their place in the number.
#[derive(Debug, Clone, Copy)]
struct Step<F> {
    mask: F,
    right: u32,
    left: u32,
}

/// The bits of some segments, read as one number of up to 32 bits.
#[derive(Debug, Clone)]
pub(crate) struct Digits<F> {
    steps: Vec<Step<F>>,
    bits: u32,
}

impl<F: Fingerprint> Digits<F> {
    /// Reads disjoint segments; the first one gives the most significant bits.
    pub(crate) fn new(segments: &[Segment]) -> Self {
        let bits = width(segments);
        assert!(bits <= 32, "{bits} bits of a number");
        let mut below = bits;
        let steps = segments.iter().map(|segment| {
            below -= segment.len;
            let right = F::BITS - segment.end();
            let common = right.min(below);
            Step { mask: segment.mask_of(), right: right - common, left: below - common }
        });
        Self { steps: steps.collect(), bits }
    }

    /// Reads the bits `start..start + bits`.
    pub(crate) fn of_span(start: u32, bits: u32) -> Self {
        Self::new(&[Segment { start, len: bits }])
    }

    /// Returns the number of bits.
    pub(crate) fn bits(&self) -> u32 {
        self.bits
    }

    /// Returns true if the numbers of ascending members ascend.
    pub(crate) fn are_leading(&self) -> bool {
        let mask = self.steps.iter().fold(F::ZERO, |mask, step| mask | step.mask);
        self.steps.len() <= 1 && mask == F::high_mask(self.bits)
    }

    /// Returns the number of one member.
    pub(crate) fn of(&self, member: F) -> usize {
        self.steps.iter().fold(0, |number, step| number | step.of(member)) as usize
    }

    /// Calls `visit` with each member and its number, in order.
    ///
    /// Applies one step to 32 members before the next, so that it vectorises.
    #[allow(clippy::inline_always)]
    #[inline(always)]
    pub(crate) fn for_each(&self, members: &[F], mut visit: impl FnMut(F, usize)) {
        let (blocks, rest) = members.as_chunks::<32>();
        for block in blocks {
            let mut numbers = [0_u32; 32];
            for step in &self.steps {
                for (number, &member) in numbers.iter_mut().zip(block) {
                    *number |= step.of(member);
                }
            }
            for (&member, number) in block.iter().zip(numbers) {
                visit(member, number as usize);
            }
        }
        for &member in rest {
            visit(member, self.of(member));
        }
    }
}

impl<F: Fingerprint> Step<F> {
    #[allow(clippy::inline_always, clippy::cast_possible_truncation)]
    #[inline(always)]
    fn of(&self, member: F) -> u32 {
        (((member & self.mask) >> self.right) << self.left).widen() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads_bits_as_a_list_would<F: Fingerprint>(segments: &[Segment]) {
        let digits = Digits::<F>::new(segments);
        let order: Vec<u32> =
            segments.iter().flat_map(|segment| segment.start..segment.end()).collect();
        assert_eq!(digits.bits() as usize, order.len());
        for bit in 0..F::BITS {
            let member = Segment { start: bit, len: 1 }.mask_of::<F>();
            let place = order.iter().rev().position(|&at| at == bit);
            assert_eq!(digits.of(member), place.map_or(0, |at| 1 << at), "{segments:?} bit {bit}");
        }
        let some: Vec<F> = (1..100).map(|x| F::truncate(x * 0x9e37_79b9_7f4a_7c15)).collect();
        let mut all = Vec::new();
        digits.for_each(&some, |member, number| all.push((member, number)));
        assert!(some.iter().map(|&member| (member, digits.of(member))).eq(all));
    }

    #[test]
    fn segments_are_read_in_order() {
        let span = |start, end| Segment { start, len: end - start };
        for end in [1, 9, 20] {
            for start in [0, 1, 8, 19] {
                if start < end {
                    reads_bits_as_a_list_would::<u32>(&[span(start, end)]);
                    reads_bits_as_a_list_would::<u64>(&[span(start, end), span(60, 64)]);
                    reads_bits_as_a_list_would::<u128>(&[
                        span(start, end),
                        span(end, 24),
                        span(120, 127),
                    ]);
                }
            }
        }
        reads_bits_as_a_list_would::<u64>(&[]);
    }

    #[test]
    fn only_leading_bits_keep_the_order() {
        let span = |start, end| Segment { start, len: end - start };
        assert!(Digits::<u64>::new(&[span(0, 11)]).are_leading());
        assert!(!Digits::<u64>::new(&[span(1, 11)]).are_leading());
        assert!(!Digits::<u64>::new(&[span(0, 3), span(5, 7)]).are_leading());
    }
}
