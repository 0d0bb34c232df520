//! Centre: compares every bit with its usual share in a corpus instead of a half.
//!
//! The n-grams that all texts of a language share bias the same bits of all fingerprints in one
//! direction. Compared with a half, these bits carry little information, and some buckets of every
//! table are skewed. Compared with its usual share, each bit is 1 in half of the texts.
//!
//! Balanced bits: Weiss, Torralba and Fergus, "Spectral hashing", NIPS 2008, section 2; centring:
//! Gong and Lazebnik, "Iterative quantization", CVPR 2011, section 2.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::sketch::SketchKind;

mod learn;

/// First bytes of a stored centre.
const MAGIC: &[u8; 8] = b"hamctr/1";

/// Bits of the hash for fingerprints of 32 and 64 bits.
const NARROW: usize = 64;

/// Bits of both hashes: 64, and 128 for fingerprints of 128 bits.
const BITS: usize = NARROW + 128;

/// Returns an error if the sketch has no bit sums.
pub(in crate::text) fn of_simhash(sketch: SketchKind) -> Result<()> {
    if sketch == SketchKind::SimHash {
        return Ok(());
    }
    let reason = format!("sketch {sketch} has no bit sums; use simhash");
    Err(Error::InvalidOption { name: "centre", reason })
}

/// The usual share of each fingerprint bit in a corpus.
///
/// With a centre, a bit of a [`SketchKind::SimHash`](crate::text::SketchKind::SimHash) fingerprint is 1
/// if more than its usual share of a text's features sets it, instead of more than a half.
/// [`Centre::learn`] learns the shares for fingerprints of 32, 64 and 128 bits.
///
/// Fingerprints with different centres cannot be compared. Therefore a centre is a part of the
/// pipeline: an index stores it, and the descriptor names its digest. 400 bytes, cheap to clone.
///
/// ```
/// use hamdex::text::{Centre, Pipeline};
/// use hamdex::PipelineOptions;
///
/// let plain = PipelineOptions::preset("page")?;
/// let word = |n: u64| format!("{:x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
/// let texts: Vec<String> =
///     (1..100).map(|n| format!("the {} of {}", word(n), word(n + 100))).collect();
/// let centre = Centre::learn(&Pipeline::new(&plain)?, &texts)?.expect("they differ");
/// let centred = Pipeline::new(&plain.centre(centre.clone()))?;
/// assert!(centred.descriptor().contains(";centre="));
/// assert_eq!(Centre::from_bytes(&centre.to_bytes())?, centre);
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Centre {
    /// Usual shares minus a half, in units of 1/65,536, least significant bit of each hash first.
    offsets: Arc<[i16; BITS]>,
}

impl Centre {
    /// Returns the centre that changes no fingerprint.
    #[cfg(test)]
    pub(in crate::text) fn of_halves() -> Self {
        Self { offsets: Arc::new([0; BITS]) }
    }

    /// Returns the offsets for a width of fingerprints, least significant bit first.
    pub(in crate::text) fn offsets<F: Fingerprint>(&self) -> &[i16] {
        let (narrow, wide) = self.offsets.split_at(NARROW);
        // A narrower fingerprint is the low end of the 64-bit hash.
        if F::BITS > u64::BITS { wide } else { narrow }
    }

    /// Encodes the centre; [`Centre::from_bytes`] decodes it.
    ///
    /// Big-endian: `hamctr/1`, 64 offsets of the 64-bit hash and 128 of the 128-bit hash in 2
    /// bytes each, least significant bit first, and a CRC-32 of all bytes before it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        self.offsets.iter().for_each(|offset| out.extend_from_slice(&offset.to_be_bytes()));
        out.extend_from_slice(&crc32fast::hash(&out).to_be_bytes());
        out
    }

    /// Decodes the bytes that [`Centre::to_bytes`] returned.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Corrupt`] for any other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let damaged = |detail| Error::corrupt("centre", detail);
        let (body, sum) = bytes.split_last_chunk::<4>().ok_or_else(|| damaged("is cut short"))?;
        let Some(rest) = body.strip_prefix(MAGIC) else {
            return Err(damaged("does not begin with \"hamctr/1\""));
        };
        if crc32fast::hash(body) != u32::from_be_bytes(*sum) {
            return Err(damaged("checksum does not match"));
        }
        let (offsets, end) = rest.as_chunks::<2>();
        let offsets: Vec<i16> = offsets.iter().map(|&bytes| i16::from_be_bytes(bytes)).collect();
        match <[i16; BITS]>::try_from(offsets) {
            Ok(offsets) if end.is_empty() => Ok(Self { offsets: Arc::new(offsets) }),
            _ => Err(damaged("does not hold 192 offsets")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_round_trip_and_damage_is_reported() {
        let mut offsets = [0; BITS];
        offsets.iter_mut().zip(-96..).for_each(|(offset, n)| *offset = n * 341);
        let centre = Centre { offsets: Arc::new(offsets) };
        let bytes = centre.to_bytes();
        assert_eq!(bytes.len(), 8 + 2 * BITS + 4);
        assert_eq!(Centre::from_bytes(&bytes).unwrap(), centre);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(matches!(Centre::from_bytes(&damaged), Err(Error::Corrupt { .. })), "{at}");
            let cut = Centre::from_bytes(&bytes[..at]);
            assert!(matches!(cut, Err(Error::Corrupt { .. })), "{at}");
        }
        let mut long = bytes[..bytes.len() - 4].to_vec();
        long.push(0);
        long.extend_from_slice(&crc32fast::hash(&long).to_be_bytes());
        assert!(matches!(Centre::from_bytes(&long), Err(Error::Corrupt { .. })));
    }

    #[test]
    fn each_width_has_the_offsets_of_its_hash() {
        let mut offsets = [0; BITS];
        offsets.iter_mut().zip(0..).for_each(|(offset, n)| *offset = n);
        let centre = Centre { offsets: Arc::new(offsets) };
        assert_eq!(centre.offsets::<u32>()[..32], centre.offsets::<u64>()[..32]);
        assert_eq!(centre.offsets::<u64>(), (0..64).collect::<Vec<i16>>());
        assert_eq!(centre.offsets::<u128>(), (64..192).collect::<Vec<i16>>());
    }
}
