//! Secret: a key for the hash of every feature.
//!
//! Anyone can compute a SimHash with a public hash, and construct texts whose fingerprints overload
//! one prefix or are near another document. With a keyed hash, nobody without the key can predict a
//! fingerprint. The hash of a feature passes through SipHash-2-4 (Aumasson and Bernstein,
//! *`SipHash`: a fast short-input PRF*, INDOCRYPT 2012). Features that collide before it still
//! count as one feature, which gains an attacker no more than repeating a feature.

use std::fmt;

use siphasher::{sip, sip128};

use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;

/// Minimum length of a secret, in bytes.
const SHORTEST: usize = 16;

/// The input of the digest, longer than the hash of any feature.
const DIGESTED: &[u8] = b"digest of a hamdex secret";

/// A secret key for feature hashes, at least 16 bytes long.
///
/// Fingerprints with different secrets, or with and without one, cannot be compared. An index
/// stores a digest of its secret, never the secret. Without the secret it can be searched by
/// fingerprint, but not by text.
///
/// ```
/// use hamdex::text::Secret;
/// use hamdex::{Pipeline, PipelineOptions};
///
/// let secret = Secret::from_bytes(b"6f1d0c9be2a8475393d4c07a51fe286b")?;
/// let keyed = Pipeline::new(&PipelineOptions::new().secret(secret))?;
/// let open = Pipeline::new(&PipelineOptions::new())?;
/// let text = "it will rain tomorrow";
/// assert_ne!(keyed.fingerprint::<u64>(text), open.fingerprint::<u64>(text));
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Secret {
    key: [u8; 16],
}

impl Secret {
    /// Creates a secret from the bytes of a file, hexadecimal or raw.
    ///
    /// An even number of hexadecimal digits, with optional white space around them, is decoded;
    /// any other bytes are used as they are. The first 16 bytes must be hard to guess, as from
    /// `openssl rand -hex 32` or `head -c 32 /dev/urandom`.
    ///
    /// # Errors
    ///
    /// Returns [`Error::InvalidOption`] for fewer than 16 bytes, or if the first 16 are all equal.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let decoded = unhex(bytes.trim_ascii());
        let bytes = decoded.as_deref().unwrap_or(bytes);
        let refused = |reason| Err(Error::InvalidOption { name: "secret", reason });
        let Some(first) = bytes.first_chunk::<SHORTEST>() else {
            return refused(format!("{} bytes are too few (minimum {SHORTEST})", bytes.len()));
        };
        if first.iter().all(|byte| Some(byte) == first.first()) {
            return refused("the first 16 bytes are all equal, not random".to_owned());
        }
        // The bytes after the first 16 are part of the key too.
        let key = sip128::SipHasher24::new_with_key(first).hash(bytes);
        Ok(Self { key: bytes_of(&key) })
    }

    /// Returns a digest, 32 hexadecimal digits, which does not reveal the secret.
    ///
    /// ```
    /// use hamdex::text::Secret;
    ///
    /// let secret = Secret::from_bytes(b"000102030405060708090a0b0c0d0e0f")?;
    /// assert_eq!(secret.digest(), "d1c4db3998206267dd592a6f6d7c797b");
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn digest(&self) -> String {
        let digest = sip128::SipHasher24::new_with_key(&self.key).hash(DIGESTED);
        format!("{:016x}{:016x}", digest.h1, digest.h2)
    }

    /// Returns the keyed hash of a feature, for fingerprints of up to 64 bits.
    #[inline]
    pub(super) fn keyed(&self, hash: u64) -> u64 {
        sip::SipHasher24::new_with_key(&self.key).hash(&hash.to_be_bytes())
    }

    /// Returns the keyed hash of a feature, for fingerprints of 128 bits.
    pub(super) fn keyed_wide<F: Fingerprint>(&self, hash: F) -> F {
        let bytes = hash.to_bytes();
        let keyed = sip128::SipHasher24::new_with_key(&self.key).hash(bytes.as_ref());
        F::truncate(u128::from(keyed.h1) << 64 | u128::from(keyed.h2))
    }
}

/// Prints the digest, so that logs do not reveal the secret.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Secret").field(&self.digest()).finish()
    }
}

fn bytes_of(hash: &sip128::Hash128) -> [u8; 16] {
    (u128::from(hash.h1) << 64 | u128::from(hash.h2)).to_be_bytes()
}

/// Decodes hexadecimal digits; returns `None` for anything else.
fn unhex(text: &[u8]) -> Option<Vec<u8>> {
    let (pairs, []) = text.as_chunks::<2>() else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(bytes: &[u8]) -> Secret {
        Secret::from_bytes(bytes).unwrap()
    }

    #[test]
    fn keyed_hashes_have_golden_values() {
        let secret = secret(b"000102030405060708090a0b0c0d0e0f");
        assert_eq!(secret.digest(), "d1c4db3998206267dd592a6f6d7c797b");
        assert_eq!(secret.keyed(0), 0x83bf_0481_0d56_860f);
        assert_eq!(secret.keyed_wide(1_u128), 0x8852_70f4_850b_25ec_e47d_0ceb_de41_267c);
    }

    #[test]
    fn hexadecimal_digits_stand_for_their_bytes() {
        let raw: Vec<u8> = (0..32).collect();
        let hex = "000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F";
        assert_eq!(secret(&raw), secret(hex.as_bytes()));
        assert_eq!(secret(&raw), secret(format!(" {hex}\n").as_bytes()));
        let odd = &hex.as_bytes()[1..];
        assert_eq!(secret(odd), secret(odd), "an odd number of digits is not decoded");
        assert_ne!(secret(odd), secret(&raw));
    }

    #[test]
    fn every_byte_of_a_secret_counts() {
        let raw: Vec<u8> = (100..140).collect();
        for at in 0..raw.len() {
            let mut other = raw.clone();
            other[at] ^= 1;
            assert_ne!(secret(&other).digest(), secret(&raw).digest(), "byte {at}");
        }
        assert_ne!(secret(&raw[..39]), secret(&raw));
    }

    #[test]
    fn short_and_empty_secrets_are_refused() {
        for bad in [&b""[..], b"fifteen bytes..", b"00112233445566778899aabbccddee", &[0; 64]] {
            let refused = Secret::from_bytes(bad);
            assert!(matches!(refused, Err(Error::InvalidOption { name: "secret", .. })), "{bad:?}");
        }
    }

    #[test]
    fn debug_output_does_not_show_the_secret() {
        let shown = format!("{:?}", secret(b"a secret of many letters"));
        assert_eq!(shown, format!("Secret(\"{}\")", secret(b"a secret of many letters").digest()));
    }
}
