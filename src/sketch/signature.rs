//! Signatures: the interface of all methods that reduce features to one word.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;

/// A method that reduces weighted features to one word.
///
/// Equal features with equal weights give equal signatures in any order. The meaning of the Hamming
/// distance of two signatures depends on the method: see [`SketchKind`].
///
/// ```
/// use hamdex::sketch::{BitSums, MinHash, Signature};
///
/// fn sign(mut method: impl Signature<u64>, features: &[u64]) -> Option<u64> {
///     features.iter().for_each(|&feature| method.add(feature, 1));
///     method.signature()
/// }
///
/// assert_eq!(sign(BitSums::new(), &[7]), Some(7));
/// assert_eq!(sign(BitSums::new(), &[]), None);
/// assert_eq!(sign(MinHash::new(), &[1, 2]), sign(MinHash::new(), &[2, 1, 2]));
///
/// let mut sums = BitSums::<u64>::new();
/// sums.add_all([7, 7].into_iter());
/// sums.add_weighted([(0, 3)].into_iter());
/// assert_eq!(sums.signature(), Some(0));
/// Signature::clear(&mut sums);
/// assert_eq!(sums.signature(), None);
/// ```
pub trait Signature<F: Fingerprint> {
    /// Adds one feature, given by its hash; weight 0 adds nothing.
    fn add(&mut self, feature: F, weight: i64);

    /// Adds features of weight 1.
    fn add_all(&mut self, features: impl Iterator<Item = F>)
    where
        Self: Sized,
    {
        features.for_each(|feature| self.add(feature, 1));
    }

    /// Adds features with their weights.
    fn add_weighted(&mut self, features: impl Iterator<Item = (F, u32)> + Clone)
    where
        Self: Sized,
    {
        features.for_each(|(feature, weight)| self.add(feature, weight.into()));
    }

    /// Returns the signature; `None` if all weights are 0 or there are no features.
    fn signature(&mut self) -> Option<F>;

    /// Removes all features and keeps the memory.
    fn clear(&mut self);
}

/// The method that computes a fingerprint from the features of a text.
///
/// Parsed from `simhash`, `minhash` or `longest:N`.
///
/// ```
/// use hamdex::sketch::SketchKind;
///
/// assert_eq!("longest:3".parse::<SketchKind>()?, SketchKind::Longest(3));
/// assert_eq!(SketchKind::MinHash.to_string(), "minhash");
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum SketchKind {
    /// Distance grows with the angle between weighted feature vectors; see
    /// [`BitSums`](super::BitSums).
    #[default]
    SimHash,
    /// Distance estimates the Jaccard similarity of feature sets; see [`MinHash`](super::MinHash).
    MinHash,
    /// Equal if the given number of longest sentences are; see [`Longest`](super::Longest).
    Longest(u32),
}

impl SketchKind {
    /// Maximum number of sentences for [`SketchKind::Longest`].
    pub const MAX_LONGEST: u32 = 64;
}

impl fmt::Display for SketchKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SimHash => f.write_str("simhash"),
            Self::MinHash => f.write_str("minhash"),
            Self::Longest(sentences) => write!(f, "longest:{sentences}"),
        }
    }
}

impl FromStr for SketchKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let sentences = |count: &str| {
            // Only one spelling of each number, because descriptors are compared as text.
            let plain = !count.starts_with(['0', '+']);
            count.parse().ok().filter(|count| plain && *count <= Self::MAX_LONGEST)
        };
        let known = match text {
            "simhash" => Some(Self::SimHash),
            "minhash" => Some(Self::MinHash),
            _ => text.strip_prefix("longest:").and_then(sentences).map(Self::Longest),
        };
        known.ok_or_else(|| Error::InvalidOption {
            name: "sketch",
            reason: format!(
                "unknown value \"{text}\"; use simhash, minhash or longest:N with N from 1 to {}",
                Self::MAX_LONGEST
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_back_and_others_are_refused() {
        for name in ["simhash", "minhash", "longest:1", "longest:64"] {
            assert_eq!(name.parse::<SketchKind>().unwrap().to_string(), name);
        }
        for bad in ["", "MinHash", "longest", "longest:", "longest:0", "longest:03", "longest:65"] {
            assert!(
                matches!(
                    bad.parse::<SketchKind>(),
                    Err(Error::InvalidOption { name: "sketch", .. })
                ),
                "{bad}"
            );
        }
    }
}
