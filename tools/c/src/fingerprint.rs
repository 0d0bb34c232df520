//! Fingerprints: one type for all three widths, so that one set of functions is enough.

use hamdex::{Error, Fingerprint, for_width};

use crate::border::{Result, guard_or};
use crate::error::Failure;

/// A fingerprint of 32, 64 or 128 bits, in the low bits of a 128-bit number.
///
/// Bits above the width are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct HamdexFingerprint {
    /// The upper 64 of 128 bits; 0 for narrower fingerprints.
    pub high: u64,
    /// The lower 64 bits.
    pub low: u64,
}

impl HamdexFingerprint {
    pub(crate) fn of(value: u128) -> Self {
        // The masks keep each half within its width.
        let half = |value: u128| u64::try_from(value & u128::from(u64::MAX)).unwrap_or_default();
        Self { high: half(value >> 64), low: half(value) }
    }

    /// The number; an index refuses one that has more bits than its width.
    pub(crate) fn value(self) -> u128 {
        u128::from(self.high) << 64 | u128::from(self.low)
    }
}

/// Returns the number of differing bits.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_distance(a: HamdexFingerprint, b: HamdexFingerprint) -> u32 {
    guard_or(u32::MAX, || a.value().distance(b.value()))
}

/// Refuses widths that there are not.
pub(crate) fn supported(bits: u32) -> Result<u32> {
    let unsupported =
        || Failure::Argument(format!("fingerprints have 32, 64 or 128 bits, not {bits}"));
    for_width!(bits, F => Ok::<_, Error>(F::BITS)).map_err(|_| unsupported())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_goes_through_both_halves_and_back() {
        let wide = 0x0123_4567_89ab_cdef_0011_2233_4455_6677_u128;
        let made = HamdexFingerprint::of(wide);
        assert_eq!((made.high, made.low), (0x0123_4567_89ab_cdef, 0x0011_2233_4455_6677));
        assert_eq!(made.value(), wide);
        assert_eq!(HamdexFingerprint::of(u128::from(u32::MAX)).low, 0xffff_ffff);
        assert_eq!(hamdex_distance(made, HamdexFingerprint::of(wide ^ (1 << 100 | 1))), 2);
    }
}
