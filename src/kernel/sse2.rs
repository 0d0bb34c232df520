//! [`Lanes`] by SSE2, which every x86-64 processor has: bits are counted in pairs, fours, bytes.
//!
//! Where the code is left to the compiler, searches at distance 3 and 8 take three times as long.

use std::arch::x86_64::{
    __m128i, _mm_add_epi8, _mm_add_epi16, _mm_and_si128, _mm_cmpeq_epi8, _mm_loadu_si128,
    _mm_movemask_epi8, _mm_packs_epi16, _mm_set1_epi8, _mm_set1_epi16, _mm_setzero_si128,
    _mm_srli_epi16, _mm_sub_epi8, _mm_subs_epu16, _mm_xor_si128,
};

use super::lanes::{LANES, Lanes};

/// Thresholds up to which bits are taken away one by one, which is less work than counting them.
const FEW: u32 = 4;

/// SSE2, a part of x86-64 itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sse2;

#[allow(clippy::inline_always)]
impl Sse2 {
    /// Returns the bits in which 8 members differ from the query.
    #[inline(always)]
    fn differing(column: &[u16; 8], aim: u16) -> __m128i {
        // SAFETY: every processor of the target has SSE2; the column holds the 16 bytes read.
        unsafe {
            let column = _mm_loadu_si128(column.as_ptr().cast());
            _mm_xor_si128(column, _mm_set1_epi16(aim.cast_signed()))
        }
    }

    /// Counts the bits of 8 members.
    #[inline(always)]
    fn count(differing: __m128i) -> __m128i {
        // SAFETY: every processor of the target has SSE2.
        unsafe {
            let odd = _mm_and_si128(_mm_srli_epi16::<1>(differing), _mm_set1_epi8(0x55));
            let pairs = _mm_sub_epi8(differing, odd);
            let two = _mm_set1_epi8(0x33);
            let high = _mm_and_si128(_mm_srli_epi16::<2>(pairs), two);
            let fours = _mm_add_epi8(_mm_and_si128(pairs, two), high);
            let bytes = _mm_add_epi8(fours, _mm_srli_epi16::<4>(fours));
            let bytes = _mm_and_si128(bytes, _mm_set1_epi8(0x0f));
            let low = _mm_and_si128(bytes, _mm_set1_epi16(0xff));
            _mm_add_epi16(low, _mm_srli_epi16::<8>(bytes))
        }
    }

    /// Returns a bit for each member of which nothing is left.
    ///
    /// Packed first and compared then: a packed comparison is taken apart by the compiler, bit by
    /// bit, which made searches two times slower.
    #[inline(always)]
    fn nothing_left([a, b, c, d]: [__m128i; 4]) -> u32 {
        // SAFETY: every processor of the target has SSE2.
        unsafe {
            let nothing = _mm_setzero_si128();
            let low = _mm_cmpeq_epi8(_mm_packs_epi16(a, b), nothing);
            let high = _mm_cmpeq_epi8(_mm_packs_epi16(c, d), nothing);
            let high = _mm_movemask_epi8(high).cast_unsigned();
            _mm_movemask_epi8(low).cast_unsigned() | high << 16
        }
    }
}

#[allow(clippy::inline_always)]
impl Lanes for Sse2 {
    const WIDE: bool = false;

    type Sums = [__m128i; 4];

    #[inline(always)]
    fn sums(self, column: &[u16; LANES], aim: u16) -> Self::Sums {
        quarters(column).map(|column| Self::count(Self::differing(column, aim)))
    }

    #[inline(always)]
    fn add(self, sums: Self::Sums, column: &[u16; LANES], aim: u16) -> Self::Sums {
        let mut of_column = self.sums(column, aim);
        for (of, sum) in of_column.iter_mut().zip(sums) {
            // SAFETY: every processor of the target has SSE2.
            *of = unsafe { _mm_add_epi16(*of, sum) };
        }
        of_column
    }

    #[inline(always)]
    fn within(self, sums: Self::Sums, threshold: u32) -> u32 {
        let threshold = i16::try_from(threshold).unwrap_or(i16::MAX);
        // SAFETY: every processor of the target has SSE2.
        let beyond = sums.map(|sums| unsafe { _mm_subs_epu16(sums, _mm_set1_epi16(threshold)) });
        Self::nothing_left(beyond)
    }

    #[inline(always)]
    fn first_within(self, column: &[u16; LANES], aim: u16, threshold: u32) -> u32 {
        if threshold > FEW {
            return self.within(self.sums(column, aim), threshold);
        }
        let mut left = quarters(column).map(|column| Self::differing(column, aim));
        for _ in 0..threshold {
            // SAFETY: every processor of the target has SSE2.
            left = left.map(|x| unsafe { _mm_and_si128(x, _mm_add_epi16(x, _mm_set1_epi16(-1))) });
        }
        Self::nothing_left(left)
    }
}

#[allow(clippy::inline_always)]
#[inline(always)]
fn quarters(column: &[u16; LANES]) -> [&[u16; 8]; 4] {
    let (quarters, _) = column.as_chunks();
    let [a, b, c, d] = quarters else { unreachable!("32 members are four quarters") };
    [a, b, c, d]
}
