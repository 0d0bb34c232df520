//! Weights: combine the count and the rarity of a feature into one integer.
//!
//! With integers, sums are exact and do not depend on the order.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// Number of steps per unit of inverse document frequency.
///
/// Eighths are fine enough for the words of a language, and keep a weight within seven bits before
/// it is multiplied by a count.
pub const IDF_SCALE: u32 = 8;

/// The method that weights a feature in the bit sums.
///
/// ```
/// use hamdex::sketch::{IDF_SCALE, Weights};
///
/// let idf = 10 * IDF_SCALE; // a rare word
/// assert_eq!(Weights::Uniform.weight(3, idf), 1);
/// assert_eq!(Weights::Tf.weight(3, idf), 3);
/// assert_eq!(Weights::TfIdf.weight(3, idf), 240);
/// assert_eq!(Weights::Levels.weight(3, idf), 5);
/// assert_eq!("tfidf".parse::<Weights>()?, Weights::TfIdf);
/// assert!(Weights::TfIdf.needs_idf() && !Weights::Tf.needs_idf());
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Weights {
    /// Every distinct feature counts once.
    Uniform,
    /// A feature counts as often as it occurs.
    #[default]
    Tf,
    /// Occurrences times inverse document frequency, in steps of `1 / IDF_SCALE`.
    TfIdf,
    /// Five levels, from 1 for words of most documents to 5 for rare words.
    Levels,
}

impl Weights {
    const NAMES: [(&str, Self); 4] = [
        ("uniform", Self::Uniform),
        ("tf", Self::Tf),
        ("tfidf", Self::TfIdf),
        ("levels", Self::Levels),
    ];

    /// Returns true if [`Weights::weight`] uses the inverse document frequency.
    pub fn needs_idf(self) -> bool {
        matches!(self, Self::TfIdf | Self::Levels)
    }

    /// Returns the weight of a feature that occurs `count` times.
    ///
    /// `idf` is the inverse document frequency in steps of `1 / IDF_SCALE`; it is ignored unless
    /// [`Weights::needs_idf`] returns true. If `count` is not 0, the weight is at least 1.
    #[inline]
    pub fn weight(self, count: u32, idf: u32) -> i64 {
        match self {
            Self::Uniform => 1,
            Self::Tf => i64::from(count),
            Self::TfIdf => i64::from(count) * i64::from(idf.max(1)),
            Self::Levels => level(count, idf),
        }
    }
}

/// Maps TF-IDF to the levels 1 to 5.
///
/// Occurrences count by their logarithm, because forty occurrences say little more about the
/// subject than four. In the jieba table, 的 has 0.9, 称 4.6, 看见 5.1, 雇员 9.1 and 飞碟 10.7, which
/// become the levels 1, 2, 3, 4 and 5.
fn level(count: u32, idf: u32) -> i64 {
    const BOUNDS: [u32; 4] = [3 * IDF_SCALE, 5 * IDF_SCALE, 7 * IDF_SCALE, 10 * IDF_SCALE];
    let halves = 2 + count.max(1).ilog2();
    let score = u64::from(idf) * u64::from(halves) / 2;
    BOUNDS.iter().fold(1, |level, &bound| level + i64::from(score >= u64::from(bound)))
}

impl fmt::Display for Weights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES.iter().find(|(_, weights)| weights == self).map(|(name, _)| *name);
        f.write_str(name.expect("every kind of weights has a name"))
    }
}

impl FromStr for Weights {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::NAMES.iter().find(|(name, _)| *name == text).map(|&(_, weights)| weights).ok_or_else(
            || Error::InvalidOption {
                name: "weights",
                reason: format!("unknown value \"{text}\"; use uniform, tf, tfidf or levels"),
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_rise_with_rarity_and_stay_within_one_to_five() {
        let level = |count, idf| Weights::Levels.weight(count, idf);
        assert_eq!([7, 37, 41, 73, 85].map(|idf| level(1, idf)), [1, 2, 3, 4, 5]);
        assert_eq!(level(1, 0), 1);
        assert_eq!(level(u32::MAX, u32::MAX), 5);
        for idf in 0..200 {
            assert!(level(1, idf) <= level(1, idf + 1), "idf {idf}");
            assert!(level(1, idf) <= level(2, idf), "idf {idf}");
        }
    }

    #[test]
    fn extreme_counts_do_not_overflow() {
        assert_eq!(Weights::TfIdf.weight(u32::MAX, 0), i64::from(u32::MAX));
        assert!(Weights::TfIdf.weight(u32::MAX, u32::MAX / 2) > 0);
    }

    #[test]
    fn names_parse_back_and_others_are_refused() {
        for (name, weights) in Weights::NAMES {
            assert_eq!(weights.to_string(), name);
            assert_eq!(name.parse::<Weights>().unwrap(), weights);
        }
        assert!(matches!(
            "TF".parse::<Weights>(),
            Err(Error::InvalidOption { name: "weights", .. })
        ));
    }
}
