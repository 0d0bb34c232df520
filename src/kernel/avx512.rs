//! [`Lanes`] by AVX-512: one instruction counts the bits of 16 heads or of 32 tails.
//!
//! Compilers find the instructions for heads by themselves, but not those for tails: searching
//! 10 million members at distance 12 took four times as long.

use std::arch::x86_64::{
    __m512i, _mm512_add_epi16, _mm512_castsi256_si512, _mm512_cmple_epu16_mask,
    _mm512_cmple_epu32_mask, _mm512_cvtepi32_epi16, _mm512_inserti64x4, _mm512_loadu_si512,
    _mm512_popcnt_epi16, _mm512_popcnt_epi32, _mm512_set1_epi16, _mm512_set1_epi32,
    _mm512_storeu_si512, _mm512_xor_si512,
};

use super::lanes::{LANES, Lanes};

/// Proof that the machine has AVX-512 F, BW, VL, VPOPCNTDQ and BITALG.
#[derive(Debug, Clone, Copy)]
pub(super) struct Avx512(());

#[allow(clippy::inline_always)]
impl Avx512 {
    /// # Safety
    ///
    /// The machine has all of these instruction sets.
    #[inline(always)]
    pub(super) unsafe fn assume() -> Self {
        Self(())
    }

    /// Returns the bit counts of heads 0 to 15 and 16 to 31, each differing from the query.
    #[inline(always)]
    #[allow(clippy::unused_self)]
    fn counts(self, heads: &[u32; LANES], head: u32) -> (__m512i, __m512i) {
        let (low, high) = heads.split_at(LANES / 2);
        // SAFETY: `self` proves the instructions; both halves hold the 64 bytes that are read.
        unsafe {
            let head = _mm512_set1_epi32(head.cast_signed());
            let low = _mm512_loadu_si512(low.as_ptr().cast());
            let high = _mm512_loadu_si512(high.as_ptr().cast());
            (
                _mm512_popcnt_epi32(_mm512_xor_si512(low, head)),
                _mm512_popcnt_epi32(_mm512_xor_si512(high, head)),
            )
        }
    }
}

#[allow(clippy::inline_always)]
impl Lanes for Avx512 {
    type Sums = __m512i;

    #[inline(always)]
    fn near(self, heads: &[u32; LANES], head: u32, threshold: u32) -> u32 {
        let (low, high) = self.counts(heads, head);
        // SAFETY: `self` proves the instructions.
        unsafe {
            let threshold = _mm512_set1_epi32(threshold.cast_signed());
            let low = _mm512_cmple_epu32_mask(low, threshold);
            let high = _mm512_cmple_epu32_mask(high, threshold);
            u32::from(low) | u32::from(high) << 16
        }
    }

    #[inline(always)]
    fn sums(self, heads: &[u32; LANES], head: u32) -> __m512i {
        let (low, high) = self.counts(heads, head);
        // SAFETY: `self` proves the instructions.
        unsafe {
            let low = _mm512_castsi256_si512(_mm512_cvtepi32_epi16(low));
            _mm512_inserti64x4::<1>(low, _mm512_cvtepi32_epi16(high))
        }
    }

    #[inline(always)]
    fn add(self, sums: __m512i, tails: &[u16; LANES], tail: u16) -> __m512i {
        // SAFETY: `self` proves the instructions; the tails hold the 64 bytes that are read.
        unsafe {
            let tails = _mm512_loadu_si512(tails.as_ptr().cast());
            let differing = _mm512_xor_si512(tails, _mm512_set1_epi16(tail.cast_signed()));
            _mm512_add_epi16(sums, _mm512_popcnt_epi16(differing))
        }
    }

    #[inline(always)]
    fn within(self, sums: __m512i, threshold: u32) -> u32 {
        let threshold = i16::try_from(threshold).unwrap_or(i16::MAX);
        // SAFETY: `self` proves the instructions.
        unsafe { _mm512_cmple_epu16_mask(sums, _mm512_set1_epi16(threshold)) }
    }

    #[inline(always)]
    fn distances(self, sums: __m512i) -> [u16; LANES] {
        let mut distances = [0; LANES];
        // SAFETY: `self` proves the instructions; the array holds the 64 bytes that are written.
        unsafe { _mm512_storeu_si512(distances.as_mut_ptr().cast(), sums) };
        distances
    }
}
