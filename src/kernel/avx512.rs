//! [`Lanes`] in AVX-512: one instruction counts the bits of a column of 32 members.
//!
//! Compilers do not emit this instruction themselves. Without it, searching 10 million members at
//! distance 12 took four times as long.

use std::arch::x86_64::{
    __m512i, _mm512_add_epi16, _mm512_cmple_epu16_mask, _mm512_cmple_epu32_mask,
    _mm512_loadu_si512, _mm512_popcnt_epi16, _mm512_popcnt_epi32, _mm512_set1_epi16,
    _mm512_set1_epi32, _mm512_xor_si512,
};

use super::lanes::{BESIDE, LANES, Lanes, ROWS, WORDS};

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

    #[inline(always)]
    fn load(self, block: &[u32; WORDS]) -> __m512i {
        let Self(()) = self;
        // SAFETY: `self` proves the instruction; the block holds the 64 bytes that are read.
        unsafe { _mm512_loadu_si512(block.as_ptr().cast()) }
    }

    #[inline(always)]
    fn splat(self, word: u32) -> __m512i {
        let Self(()) = self;
        // SAFETY: `self` proves the instruction.
        unsafe { _mm512_set1_epi32(word.cast_signed()) }
    }

    /// Returns a mask of the words that are within the distance of the other one.
    #[inline(always)]
    fn compare(self, words: __m512i, others: __m512i, distance: u32) -> u16 {
        let distance = self.splat(distance);
        // SAFETY: `self` proves the instructions.
        unsafe {
            let differing = _mm512_popcnt_epi32(_mm512_xor_si512(words, others));
            _mm512_cmple_epu32_mask(differing, distance)
        }
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

    #[inline(always)]
    fn any_near(self, [a, b, c, d]: [u32; ROWS], block: &[u32; WORDS], distance: u32) -> bool {
        let block = self.load(block);
        let near = self.compare(block, self.splat(a), distance);
        let near = near | self.compare(block, self.splat(b), distance);
        let near = near | self.compare(block, self.splat(c), distance);
        near | self.compare(block, self.splat(d), distance) != 0
    }

    #[inline(always)]
    fn any_beside(self, words: &[u32; BESIDE], distance: u32) -> bool {
        let [_, second @ .., _, _] = words;
        let [_, _, third @ .., _] = words;
        let ([first @ .., _, _, _], [_, _, _, fourth @ ..]) = (words, words);
        let first = self.load(first);
        let near = self.compare(first, self.load(second), distance);
        let near = near | self.compare(first, self.load(third), distance);
        near | self.compare(first, self.load(fourth), distance) != 0
    }

    #[inline(always)]
    fn near(self, rows: [u32; ROWS], block: &[u32; WORDS], distance: u32) -> u64 {
        let block = self.load(block);
        let mut mask = 0;
        for row in rows.into_iter().rev() {
            mask = mask << WORDS | u64::from(self.compare(block, self.splat(row), distance));
        }
        mask
    }
}
