//! Fingerprints: one type for all three widths, so that one set of functions is enough.

use hamdex::{Error, Fingerprint};

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
    pub(crate) fn of<F: Fingerprint>(fingerprint: F) -> Self {
        let value = fingerprint.widen();
        // The mask makes each half fit.
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

/// Returns the number of differing bits.
#[unsafe(no_mangle)]
pub extern "C" fn hamdex_distance(a: HamdexFingerprint, b: HamdexFingerprint) -> u32 {
    guard_or(u32::MAX, || a.value().distance(b.value()))
}

/// Runs an expression in which `$F` is the fingerprint type of that width.
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
                "fingerprints have 32, 64 or 128 bits, not {bits}"
            ))),
        }
    };
}
pub(crate) use for_width;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_is_split_into_halves_and_joined_again() {
        let wide = 0x0123_4567_89ab_cdef_0011_2233_4455_6677_u128;
        let made = HamdexFingerprint::of(wide);
        assert_eq!((made.high, made.low), (0x0123_4567_89ab_cdef, 0x0011_2233_4455_6677));
        assert_eq!(made.get::<u128>().unwrap(), wide);
        assert_eq!(HamdexFingerprint::of(u32::MAX).get::<u32>().unwrap(), u32::MAX);
        assert!(made.get::<u64>().is_err(), "a wide fingerprint is not truncated");
        assert!(HamdexFingerprint { high: 0, low: 1 << 32 }.get::<u32>().is_err());
        assert_eq!(hamdex_distance(made, HamdexFingerprint::of(wide ^ (1 << 100 | 1))), 2);
    }
}
