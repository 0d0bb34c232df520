//! [`Lanes`] in AVX2: counts bits by looking up nibbles.

use std::arch::x86_64::{
    __m256i, _mm256_add_epi8, _mm256_add_epi16, _mm256_and_si256, _mm256_cmpgt_epi16,
    _mm256_loadu_si256, _mm256_maddubs_epi16, _mm256_movemask_epi8, _mm256_packs_epi16,
    _mm256_permute4x64_epi64, _mm256_set1_epi8, _mm256_set1_epi16, _mm256_setr_epi8,
    _mm256_shuffle_epi8, _mm256_srli_epi16, _mm256_xor_si256,
};

use super::lanes::{LANES, Lanes};

/// Proof that the machine has AVX2.
#[derive(Debug, Clone, Copy)]
pub(super) struct Avx2(());

#[allow(clippy::inline_always)]
impl Avx2 {
    /// # Safety
    ///
    /// The machine must have AVX2.
    #[inline(always)]
    pub(super) unsafe fn assume() -> Self {
        Self(())
    }

    /// Counts the differing bits of 16 members.
    #[inline(always)]
    fn count(self, column: &[u16; 16], query: u16) -> __m256i {
        let Self(()) = self;
        // SAFETY: `self` proves the instructions; the column holds the 32 bytes that are read.
        unsafe {
            let column = _mm256_loadu_si256(column.as_ptr().cast());
            let differing = _mm256_xor_si256(column, _mm256_set1_epi16(query.cast_signed()));
            let bits = _mm256_setr_epi8(
                0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, //
                0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,
            );
            let half = _mm256_set1_epi8(0x0f);
            let low = _mm256_and_si256(differing, half);
            let high = _mm256_and_si256(_mm256_srli_epi16::<4>(differing), half);
            let of_bytes =
                _mm256_add_epi8(_mm256_shuffle_epi8(bits, low), _mm256_shuffle_epi8(bits, high));
            _mm256_maddubs_epi16(of_bytes, _mm256_set1_epi8(1))
        }
    }
}

#[allow(clippy::inline_always)]
impl Lanes for Avx2 {
    type Sums = [__m256i; 2];

    #[inline(always)]
    fn sums(self, column: &[u16; LANES], query: u16) -> Self::Sums {
        let (halves, _) = column.as_chunks();
        let [low, high] = halves else { unreachable!("32 members are two halves") };
        [self.count(low, query), self.count(high, query)]
    }

    #[inline(always)]
    fn add(self, [low, high]: Self::Sums, column: &[u16; LANES], query: u16) -> Self::Sums {
        let [of_low, of_high] = self.sums(column, query);
        // SAFETY: `self` proves the instructions.
        unsafe { [_mm256_add_epi16(low, of_low), _mm256_add_epi16(high, of_high)] }
    }

    #[inline(always)]
    fn within(self, [low, high]: Self::Sums, threshold: u32) -> u32 {
        let threshold = i16::try_from(threshold).unwrap_or(i16::MAX);
        // SAFETY: `self` proves the instructions.
        unsafe {
            let threshold = _mm256_set1_epi16(threshold);
            let low = _mm256_cmpgt_epi16(low, threshold);
            let high = _mm256_cmpgt_epi16(high, threshold);
            // Packing works within 128-bit halves, which swaps the middle quarters.
            let beyond = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi16(low, high));
            !_mm256_movemask_epi8(beyond).cast_unsigned()
        }
    }
}
