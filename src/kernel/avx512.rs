//! [`Lanes`] in AVX-512: one instruction counts the bits of a column of 32 members.
//!
//! Compilers do not emit this instruction themselves. Without it, searching 10 million members at
//! distance 12 took four times as long.

use std::arch::x86_64::{
    __m512i, _mm512_add_epi16, _mm512_cmple_epu16_mask, _mm512_loadu_si512, _mm512_popcnt_epi16,
    _mm512_set1_epi16, _mm512_xor_si512,
};

use super::lanes::{LANES, Lanes};

/// Proof that the machine has AVX-512 F, BW, VL, VPOPCNTDQ and BITALG.
#[derive(Debug, Clone, Copy)]
pub(super) struct Avx512(());

#[allow(clippy::inline_always)]
impl Avx512 {
    /// # Safety
    ///
    /// The machine must have all of these instruction sets.
    #[inline(always)]
    pub(super) unsafe fn assume() -> Self {
        Self(())
    }
}

#[allow(clippy::inline_always)]
impl Lanes for Avx512 {
    type Sums = __m512i;

    #[inline(always)]
    fn sums(self, column: &[u16; LANES], query: u16) -> __m512i {
        // SAFETY: `self` proves the instructions; the column holds the 64 bytes that are read.
        unsafe {
            let column = _mm512_loadu_si512(column.as_ptr().cast());
            let differing = _mm512_xor_si512(column, _mm512_set1_epi16(query.cast_signed()));
            _mm512_popcnt_epi16(differing)
        }
    }

    #[inline(always)]
    fn add(self, sums: __m512i, column: &[u16; LANES], query: u16) -> __m512i {
        let of_column = self.sums(column, query);
        // SAFETY: `self` proves the instructions.
        unsafe { _mm512_add_epi16(sums, of_column) }
    }

    #[inline(always)]
    fn within(self, sums: __m512i, threshold: u32) -> u32 {
        let threshold = i16::try_from(threshold).unwrap_or(i16::MAX);
        // SAFETY: `self` proves the instructions.
        unsafe { _mm512_cmple_epu16_mask(sums, _mm512_set1_epi16(threshold)) }
    }
}
