//! Fingerprints of three widths in one type, so that there is one set of functions.

use hamdex::{Error, Fingerprint};

use crate::border::{Result, guard_or};
use crate::error::Failure;

/// A fingerprint of 32, 64 or 128 bits, in the low bits of a number of 128.
///
/// What the width leaves over is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct HamdexFingerprint {
    /// The upper 64 of 128 bits; 0 for narrower fingerprints.
    pub high: u64,
    /// The lower 64 bits.
    pub low: u64,
}

impl HamdexFingerprint {
    pub(crate) fn of<F: Fingerprint>(fingerprint: F) -> Self {
        let value = fingerprint.widen();
        // The masks keep each half within its width.
        let half = |value: u128| u64::try_from(value & u128::from(u64::MAX)).unwrap_or_default();
        Self { high: half(value >> 64), low: half(value) }
    }

    fn value(self) -> u128 {
        u128::from(self.high) << 64 | u128::from(self.low)
    }

    pub(crate) fn get<F: Fingerprint>(self) -> Result<F> {
        let fingerprint = F::truncate(self.value());
        if fingerprint.widen() == self.value() {
            return Ok(fingerprint);
        }
        Err(Failure::Library(Error::InvalidFingerprint {
            input: format!("{:x}", self.value()),
            bits: F::BITS,
            reason: "it has more bits",
        }))
    }
}

/// Returns the number of bits that differ.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_distance(a: HamdexFingerprint, b: HamdexFingerprint) -> u32 {
    guard_or(u32::MAX, || a.value().distance(b.value()))
}

/// Runs an expression with `$F` standing for the fingerprint type of that many bits.
macro_rules! for_width {
    ($bits:expr, $F:ident => $body:expr) => {
        match $bits {
            32 => {
                type $F = u32;
                $body
            }
            64 => {
                type $F = u64;
                $body
            }
            128 => {
                type $F = u128;
                $body
            }
            bits => Err($crate::error::Failure::Argument(format!(
                "fingerprints have 32, 64 or 128 bits, asked for {bits}"
            ))),
        }
    };
}
pub(crate) use for_width;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_goes_through_both_halves_and_back() {
        let wide = 0x0123_4567_89ab_cdef_0011_2233_4455_6677_u128;
        let made = HamdexFingerprint::of(wide);
        assert_eq!((made.high, made.low), (0x0123_4567_89ab_cdef, 0x0011_2233_4455_6677));
        assert_eq!(made.get::<u128>().unwrap(), wide);
        assert_eq!(HamdexFingerprint::of(u32::MAX).get::<u32>().unwrap(), u32::MAX);
        assert!(made.get::<u64>().is_err(), "the upper half is not dropped in silence");
        assert!(HamdexFingerprint { high: 0, low: 1 << 32 }.get::<u32>().is_err());
        assert_eq!(hamdex_distance(made, HamdexFingerprint::of(wide ^ (1 << 100 | 1))), 2);
    }
}
