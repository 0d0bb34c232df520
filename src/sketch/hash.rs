//! Feature hash: hashes the bytes of one feature to the width of the fingerprint.
//!
//! XXH3 has full avalanche: even two-character words set all bits evenly. A weaker hash would leave
//! the decision to its low bits. Stored fingerprints depend on every bit, so the golden vectors
//! below must never change.

use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128_with_seed};

use crate::fingerprint::Fingerprint;

/// Hashes one feature to the width of the fingerprint.
///
/// 64 bits are XXH3-64 with `seed`, 32 bits are its low half, 128 bits are XXH3-128.
///
/// ```
/// use hamdex::sketch::feature_hash;
///
/// let wide = feature_hash::<u64>("美国".as_bytes(), 0);
/// assert_eq!(u64::from(feature_hash::<u32>("美国".as_bytes(), 0)), wide & 0xffff_ffff);
/// assert_ne!(wide, feature_hash::<u64>("美国".as_bytes(), 1));
/// ```
#[inline]
pub fn feature_hash<F: Fingerprint>(feature: &[u8], seed: u64) -> F {
    if F::BITS > u64::BITS {
        F::truncate(xxh3_128_with_seed(feature, seed))
    } else {
        F::truncate(u128::from(xxh3_64_with_seed(feature, seed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_vectors_hold_for_every_width() {
        assert_eq!(feature_hash::<u64>(b"", 0), 0x2d06_8005_38d3_94c2);
        assert_eq!(feature_hash::<u64>("美国".as_bytes(), 0), 0x5e17_3a6c_1a77_2783);
        assert_eq!(feature_hash::<u64>("美国".as_bytes(), 7), 0x1402_1573_3e5d_f02a);
        assert_eq!(feature_hash::<u32>("美国".as_bytes(), 0), 0x1a77_2783);
        assert_eq!(feature_hash::<u128>(b"", 0), 0x99aa_06d3_0147_98d8_6001_c324_468d_497f);
        assert_eq!(
            feature_hash::<u128>("美国".as_bytes(), 0),
            0x88fd_c72a_cf11_66ef_ed52_dc41_7834_2c10
        );
    }

    #[test]
    fn every_bit_is_balanced_over_two_character_words() {
        let words = 20_000_u32;
        let mut ones = [0_u32; 128];
        for n in 0..words {
            let first = char::from_u32(0x4e00 + n / 141).unwrap();
            let second = char::from_u32(0x4e00 + 37 * (n % 141)).unwrap();
            let hash = feature_hash::<u128>(format!("{first}{second}").as_bytes(), 0);
            let narrow = feature_hash::<u64>(format!("{first}{second}").as_bytes(), 0);
            for (bit, count) in ones.iter_mut().enumerate() {
                let source = if bit < 64 { u128::from(narrow) } else { hash };
                *count += u32::from(source >> bit & 1 == 1);
            }
        }
        // Five standard deviations of a fair coin: sqrt(20,000) / 2 = 70.7.
        for (bit, count) in ones.into_iter().enumerate() {
            assert!(count.abs_diff(words / 2) < 354, "bit {bit} is set {count} times of {words}");
        }
    }
}
