//! Fingerprints: 32, 64 or 128 bits behind one sealed trait.
//!
//! Two documents are near-duplicates if their fingerprints differ in few bits. Bit 0 is the most
//! significant bit, as in the literature.

use std::fmt::{self, Debug, Display};
use std::hash::Hash;
use std::ops::{BitAnd, BitOr, BitXor, Not, Shl, Shr};

use crate::error::{Error, Result};

mod sealed {
    /// Restricts the trait to the three widths of the stored format.
    pub trait Sealed:
        rdst::RadixKey + bytemuck::Pod + bincode::Encode + bincode::Decode<()>
    {
    }
    impl Sealed for u32 {}
    impl Sealed for u64 {}
    impl Sealed for u128 {}
}

/// A SimHash fingerprint: an unsigned integer of 32, 64 or 128 bits.
///
/// ```
/// use hamdex::Fingerprint;
///
/// let a = u64::from_hex("00ff00ff00ff00ff")?;
/// assert_eq!(a.distance(a ^ 0b101), 2);
/// assert_eq!(a.hex().to_string(), "00ff00ff00ff00ff");
/// assert_eq!(u64::from_bytes(&a.to_bytes()), Some(a));
/// assert_eq!((u32::truncate(a.widen()), u32::high_mask(4)), (0x00ff_00ff, 0xf000_0000));
/// assert_eq!(1_u64.overflowing_sub(2), (u64::MAX, true));
/// # Ok::<(), hamdex::Error>(())
/// ```
pub trait Fingerprint:
    sealed::Sealed
    + Copy
    + Ord
    + Hash
    + Default
    + Debug
    + Send
    + Sync
    + 'static
    + BitXor<Output = Self>
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + Not<Output = Self>
    + Shl<u32, Output = Self>
    + Shr<u32, Output = Self>
{
    /// Width in bits.
    const BITS: u32;
    /// Width in bytes.
    const BYTES: usize;
    /// The fingerprint with all bits 0.
    const ZERO: Self;
    /// The fingerprint with all bits 1.
    const ONES: Self;
    /// The largest distance that a search accepts: a quarter of the width.
    const MAX_DISTANCE: u32 = Self::BITS / 4;
    /// Big-endian bytes, whose order is the numeric order.
    type Bytes: AsRef<[u8]> + Copy + Debug + Send + Sync;

    /// Returns the Hamming distance, which is the number of differing bits.
    fn distance(self, other: Self) -> u32;

    /// Returns the big-endian bytes of this fingerprint.
    fn to_bytes(self) -> Self::Bytes;

    /// Parses big-endian bytes; returns `None` unless the length is [`BYTES`](Self::BYTES).
    fn from_bytes(bytes: &[u8]) -> Option<Self>;

    /// Returns the low bits of a 128-bit number.
    fn truncate(wide: u128) -> Self;

    /// Returns the fingerprint, zero-extended to 128 bits.
    fn widen(self) -> u128;

    /// Returns a number of 128 bits in this width; refuses one that needs more bits.
    ///
    /// ```
    /// use hamdex::Fingerprint;
    ///
    /// assert_eq!(u32::narrow(7)?, 7);
    /// assert!(u32::narrow(1 << 32).is_err());
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidFingerprint`] for a number with more bits.
    fn narrow(wide: u128) -> Result<Self> {
        let narrow = Self::truncate(wide);
        if narrow.widen() == wide {
            return Ok(narrow);
        }
        let (input, reason) = (format!("{wide:x}"), "it has more bits");
        Err(Error::InvalidFingerprint { input, bits: Self::BITS, reason })
    }

    /// Subtracts with wrap-around; the flag is true if it borrowed.
    fn overflowing_sub(self, other: Self) -> (Self, bool);

    /// Returns a value that prints as fixed-width lower-case hexadecimal.
    fn hex(self) -> Hex<Self> {
        Hex(self)
    }

    /// Parses exactly `BITS / 4` hexadecimal digits in upper or lower case.
    ///
    /// # Errors
    ///
    /// Returns [`Error::InvalidFingerprint`] if the length is wrong or a character is not a digit.
    fn from_hex(text: &str) -> Result<Self> {
        let invalid =
            |reason| Error::InvalidFingerprint { input: text.to_owned(), bits: Self::BITS, reason };
        if !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(invalid("only hexadecimal digits are allowed"));
        }
        if text.len() != Self::BYTES * 2 {
            return Err(invalid("expected one digit for every four bits"));
        }
        u128::from_str_radix(text, 16)
            .map(Self::truncate)
            .map_err(|_| invalid("only hexadecimal digits are allowed"))
    }

    /// Returns the fingerprint whose `count` most significant bits are 1.
    ///
    /// A count above the width sets all bits.
    fn high_mask(count: u32) -> Self {
        match count {
            0 => Self::ZERO,
            n if n >= Self::BITS => Self::ONES,
            n => Self::ONES << (Self::BITS - n),
        }
    }
}

macro_rules! fingerprint {
    ($int:ty) => {
        impl Fingerprint for $int {
            const BITS: u32 = <$int>::BITS;
            const BYTES: usize = size_of::<$int>();
            const ZERO: Self = 0;
            const ONES: Self = <$int>::MAX;
            type Bytes = [u8; size_of::<$int>()];

            #[inline]
            fn distance(self, other: Self) -> u32 {
                (self ^ other).count_ones()
            }

            #[inline]
            fn to_bytes(self) -> Self::Bytes {
                self.to_be_bytes()
            }

            #[inline]
            fn from_bytes(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().ok().map(<$int>::from_be_bytes)
            }

            #[inline]
            #[allow(clippy::cast_possible_truncation, clippy::cast_lossless)]
            fn truncate(wide: u128) -> Self {
                wide as $int
            }

            #[inline]
            #[allow(clippy::cast_lossless)]
            fn widen(self) -> u128 {
                self as u128
            }

            #[inline]
            fn overflowing_sub(self, other: Self) -> (Self, bool) {
                <$int>::overflowing_sub(self, other)
            }
        }
    };
}

fingerprint!(u32);
fingerprint!(u64);
fingerprint!(u128);

/// A fingerprint that prints and parses as fixed-width lower-case hexadecimal.
///
/// Returned by [`Fingerprint::hex`].
///
/// ```
/// use hamdex::fingerprint::Hex;
/// use hamdex::Fingerprint;
///
/// assert_eq!(format!("{}", 0xab_u32.hex()), "000000ab");
/// let Hex(parsed) = "000000ab".parse::<Hex<u32>>()?;
/// assert_eq!(parsed, 0xab);
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hex<F>(pub F);

impl<F: Fingerprint> Display for Hex<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:0width$x}", self.0.widen(), width = F::BYTES * 2)
    }
}

impl<F: Fingerprint> Debug for Hex<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

impl<F: Fingerprint> std::str::FromStr for Hex<F> {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        F::from_hex(text).map(Hex)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_the_differing_bits() {
        assert_eq!(0b10101_u32.distance(0b00110), 3);
        assert_eq!(u64::ZERO.distance(u64::ONES), 64);
        assert_eq!(u128::ZERO.distance(u128::ONES), 128);
    }

    #[test]
    fn hex_keeps_leading_zeros_and_parses_back() {
        assert_eq!(0xab_u32.hex().to_string(), "000000ab");
        assert_eq!(u64::from_hex("00000000000000AB").unwrap(), 0xab);
        let wide = 0x0123_4567_89ab_cdef_0011_2233_4455_6677_u128;
        assert_eq!(u128::from_hex(&wide.hex().to_string()).unwrap(), wide);
    }

    #[test]
    fn parsing_rejects_wrong_lengths_signs_and_letters() {
        for bad in ["", "ab", "+0000000000000ab", "00000000000000zz", "0x000000000000ab", "é"] {
            assert!(
                matches!(u64::from_hex(bad), Err(Error::InvalidFingerprint { bits: 64, .. })),
                "{bad}"
            );
        }
    }

    #[test]
    fn big_endian_bytes_sort_as_numbers() {
        assert!(1_u64.to_bytes() < 256_u64.to_bytes());
        assert_eq!(u64::from_bytes(&[0; 7]), None);
        assert_eq!(u32::from_bytes(&7_u32.to_bytes()), Some(7));
    }

    #[test]
    fn high_masks_count_from_the_most_significant_bit() {
        assert_eq!(u32::high_mask(0), 0);
        assert_eq!(u32::high_mask(1), 0x8000_0000);
        assert_eq!(u64::high_mask(64), u64::MAX);
        assert_eq!(u128::high_mask(200), u128::MAX);
    }
}
