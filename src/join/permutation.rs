//! Bit permutations that move chosen spans of a fingerprint to its front.
//!
//! A permutation is a bijection of bit positions, so it keeps distances and can be inverted.

use crate::fingerprint::Fingerprint;

/// Bit positions `start..end`, counted from the most significant bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: u32,
    pub(super) end: u32,
}

impl Span {
    pub(super) fn width(self) -> u32 {
        self.end - self.start
    }

    pub(super) fn mask<F: Fingerprint>(self) -> F {
        F::high_mask(self.end) & !F::high_mask(self.start)
    }
}

/// Bits that keep their order and move by the same number of positions.
#[derive(Debug, Clone, Copy)]
struct Shift<F> {
    mask: F,
    left: u32,
    right: u32,
}

impl<F: Fingerprint> Shift<F> {
    #[allow(clippy::inline_always)]
    #[inline(always)]
    fn apply(&self, fingerprint: F) -> F {
        ((fingerprint & self.mask) << self.left) >> self.right
    }
}

/// A bijection of bit positions, composed of shifts of whole spans.
#[derive(Debug, Clone)]
pub(super) struct Permutation<F> {
    shifts: Vec<Shift<F>>,
}

impl<F: Fingerprint> Permutation<F> {
    /// Moves the spans to the front, in their order; the other bits follow in theirs.
    ///
    /// The spans must be ascending and disjoint.
    pub(super) fn leading_with(spans: &[Span]) -> Self {
        let mut shifts = Vec::with_capacity(2 * spans.len() + 1);
        let mut front = 0;
        for span in spans {
            shifts.push(Shift { mask: span.mask(), left: span.start - front, right: 0 });
            front += span.width();
        }
        let mut from = 0;
        for span in spans.iter().copied().chain([Span { start: F::BITS, end: F::BITS }]) {
            let between = Span { start: from, end: span.start };
            if between.start < between.end {
                shifts.push(Shift { mask: between.mask(), left: 0, right: front - from });
                front += between.width();
            }
            from = span.end;
        }
        Self { shifts }
    }

    #[inline]
    pub(super) fn apply(&self, fingerprint: F) -> F {
        self.shifts.iter().fold(F::ZERO, |all, shift| all | shift.apply(fingerprint))
    }

    /// Calls `visit` with each permuted fingerprint, in order.
    ///
    /// Applies one shift to 32 members before the next, so that it vectorises.
    #[allow(clippy::inline_always)]
    #[inline(always)]
    pub(super) fn for_each(&self, from: &[F], mut visit: impl FnMut(F)) {
        let (blocks, rest) = from.as_chunks::<32>();
        for from in blocks {
            let mut permuted = [F::ZERO; 32];
            for shift in &self.shifts {
                for (permuted, &member) in permuted.iter_mut().zip(from) {
                    *permuted = *permuted | shift.apply(member);
                }
            }
            for permuted in permuted {
                visit(permuted);
            }
        }
        for &member in rest {
            visit(self.apply(member));
        }
    }

    pub(super) fn inverse(&self) -> Self {
        let back = |shift: &Shift<F>| Shift {
            mask: (shift.mask << shift.left) >> shift.right,
            left: shift.right,
            right: shift.left,
        };
        Self { shifts: self.shifts.iter().map(back).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moves_bits_as_a_list_would<F: Fingerprint>(spans: &[Span]) {
        let permutation = Permutation::<F>::leading_with(spans);
        let inverse = permutation.inverse();
        let led = |bit: &u32| spans.iter().any(|span| (span.start..span.end).contains(bit));
        let lead = spans.iter().flat_map(|span| span.start..span.end);
        let order: Vec<u32> = lead.chain((0..F::BITS).filter(|bit| !led(bit))).collect();
        assert_eq!(order.len(), F::BITS as usize);
        for (to, &from) in (0..).zip(&order) {
            let bit = |at: u32| Span { start: at, end: at + 1 }.mask::<F>();
            assert_eq!(permutation.apply(bit(from)), bit(to), "{spans:?} bit {from}");
            assert_eq!(inverse.apply(bit(to)), bit(from), "{spans:?} bit {from}");
        }
        let some: Vec<F> = (1..100).map(|x| F::truncate(x * 0x9e37_79b9_7f4a_7c15)).collect();
        let mut all = Vec::new();
        permutation.for_each(&some, |permuted| all.push(permuted));
        assert!(some.iter().map(|&from| permutation.apply(from)).eq(all));
    }

    #[test]
    fn spans_come_first_and_every_other_bit_keeps_its_order() {
        let span = |start, end| Span { start, end };
        for end in [1, 9, 32] {
            for start in [0, 1, 8, 31] {
                if start < end {
                    moves_bits_as_a_list_would::<u32>(&[span(start, end)]);
                    moves_bits_as_a_list_would::<u64>(&[span(start, end), span(40, 64)]);
                    moves_bits_as_a_list_would::<u128>(&[
                        span(start, end),
                        span(end, 64),
                        span(100, 127),
                    ]);
                }
            }
        }
        moves_bits_as_a_list_would::<u64>(&[]);
    }
}
