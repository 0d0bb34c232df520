//! The kinds of checks, and how they are written and parsed.

use std::fmt;
use std::num::NonZeroU8;
use std::str::FromStr;

use super::by_length;
use crate::error::{Error, Result};

/// Largest weight of [`Verification::Zhou`].
const MAX_K: f64 = 100.0;

/// What a verification compares of two documents.
///
/// ```
/// use hamdex::verify::Verification;
/// use hamdex::verify::Evidence;
///
/// assert_eq!(Verification::None.needs(), Evidence::Nothing);
/// assert_eq!(Verification::Jaccard(0.8).needs(), Evidence::Features);
/// assert_eq!(Verification::Edit(0.9).needs(), Evidence::Text);
/// assert_eq!(Verification::Contains(0.9).needs(), Evidence::Phrases);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Evidence {
    /// Nothing; every pair passes.
    Nothing,
    /// Encoded feature sets, [`FeatureSet`](super::FeatureSet).
    Features,
    /// Cleaned texts, [`Pipeline::cleaned`](crate::Pipeline::cleaned).
    Text,
    /// Encoded phrases, [`PhraseSet`](super::PhraseSet).
    Phrases,
}

/// A check that candidates within the distance must pass.
///
/// Written `none`, `jaccard:T`, `zhou:K,T`, `edit:T`, `edit:S,L`, `edit:S,L,N` or `contains:T`.
/// Thresholds are inclusive.
///
/// ```
/// use hamdex::verify::Verification;
///
/// let verification: Verification = "zhou:3,2.4".parse()?;
/// assert_eq!(verification, Verification::Zhou { k: 3.0, threshold: 2.4 });
/// assert_eq!(verification.to_string(), "zhou:3,2.4");
/// assert!("jaccard:1.5".parse::<Verification>().is_err());
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub enum Verification {
    /// Accepts every candidate.
    #[default]
    None,
    /// Requires a share of common features, 0 to 1.
    Jaccard(f64),
    /// Requires a sum of rule and common features: 1 / (1 + distance) + k times Jaccard.
    ///
    /// Zhou, Computer and Modernization 2017-07.
    Zhou {
        /// Weight of the common features, 0 to 100; the paper uses 2 to 8.
        k: f64,
        /// Smallest sum that passes, at least 0; above 1 + k nothing passes.
        threshold: f64,
    },
    /// Requires an edit similarity of the cleaned texts, 0 to 1.
    Edit(f64),
    /// Requires an edit similarity that rises with the length of the longer text.
    ///
    /// From 200 to 1,600 letters the threshold rises evenly with every doubling, and the distance
    /// within which pairs are compared falls by three sixteenths. Chinese characters, kana and
    /// Hangul syllables count as two letters.
    EditByLength {
        /// Threshold of texts of up to 200 letters, 0 to 1.
        short: f64,
        /// Threshold of texts of 1,600 letters or more, 0 to 1.
        long: f64,
        /// Documents that repeat a word which is boilerplate, 2 to 255; `None` if no word is.
        ///
        /// Two documents that each repeat words that few others repeat, and not the same ones, do
        /// not pass; nor do they if two, four or eight times as many are few, up to 255. Words are
        /// counted over all documents of an [`EvidenceWriter`](super::EvidenceWriter), copies of
        /// one text once; two single texts have no boilerplate.
        boilerplate: Option<NonZeroU8>,
    },
    /// Requires a share of the smaller text's phrases to occur in the larger one, 0 to 1.
    ///
    /// The smaller one is removed; see [`PhraseSet`](super::PhraseSet). Candidates are within the
    /// distance, so texts of very different lengths are not compared.
    Contains(f64),
}

impl Verification {
    /// Returns the kind of evidence that this check compares.
    ///
    /// See [`Evidence`] for an example.
    ///
    /// ```
    /// use hamdex::verify::{Evidence, Verification};
    ///
    /// assert_eq!(Verification::None.needs(), Evidence::Nothing);
    /// assert_eq!(Verification::Edit(0.9).needs(), Evidence::Text);
    /// ```
    pub fn needs(self) -> Evidence {
        match self {
            Self::None => Evidence::Nothing,
            Self::Jaccard(_) | Self::Zhou { .. } => Evidence::Features,
            Self::Edit(_) | Self::EditByLength { .. } => Evidence::Text,
            Self::Contains(_) => Evidence::Phrases,
        }
    }

    /// Returns the largest distance of two documents at a step of length.
    pub(crate) fn reach(self, distance: u32, step: usize) -> u32 {
        match self {
            Self::EditByLength { .. } => by_length::reach(distance, step),
            Self::None
            | Self::Jaccard(_)
            | Self::Zhou { .. }
            | Self::Edit(_)
            | Self::Contains(_) => distance,
        }
    }

    /// Returns the number of documents from which words are boilerplate.
    ///
    /// ```
    /// let check: hamdex::verify::Verification = "edit:0.78,0.88,30".parse()?;
    /// assert_eq!(check.boilerplate().map(|documents| documents.get()), Some(30));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn boilerplate(self) -> Option<NonZeroU8> {
        match self {
            Self::EditByLength { boilerplate, .. } => boilerplate,
            Self::None
            | Self::Jaccard(_)
            | Self::Zhou { .. }
            | Self::Edit(_)
            | Self::Contains(_) => None,
        }
    }

    /// Returns an error if a threshold or weight is out of range.
    ///
    /// Parsed values are always valid; call this for values built by hand.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] with the allowed range.
    ///
    /// ```
    /// use hamdex::verify::Verification;
    ///
    /// assert!(Verification::Edit(0.9).validate().is_ok());
    /// assert!(Verification::Edit(90.0).validate().is_err());
    /// ```
    pub fn validate(self) -> Result<()> {
        let part = |kind: &str, threshold: f64| {
            if (0.0..=1.0).contains(&threshold) {
                return Ok(());
            }
            Err(invalid(format!("{kind} takes a threshold from 0 to 1, not {threshold}")))
        };
        match self {
            Self::Jaccard(threshold) => part("jaccard", threshold),
            Self::Edit(threshold) => part("edit", threshold),
            Self::Contains(threshold) => part("contains", threshold),
            Self::EditByLength { boilerplate: Some(NonZeroU8::MIN), .. } => {
                Err(invalid("boilerplate needs 2 to 255 documents with a word, not 1".to_owned()))
            }
            Self::EditByLength { short, long, .. } => {
                part("edit", short).and_then(|()| part("edit", long))
            }
            Self::Zhou { k, .. } if !(0.0..=MAX_K).contains(&k) => {
                Err(invalid(format!("zhou takes a weight from 0 to {MAX_K}, not {k}")))
            }
            Self::Zhou { threshold, .. } if !(threshold >= 0.0 && threshold.is_finite()) => {
                Err(invalid(format!("zhou takes a threshold of 0 or more, not {threshold}")))
            }
            Self::None | Self::Zhou { .. } => Ok(()),
        }
    }
}

fn invalid(reason: String) -> Error {
    Error::InvalidOption { name: "verify", reason }
}

impl fmt::Display for Verification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Jaccard(threshold) => write!(f, "jaccard:{threshold}"),
            Self::Zhou { k, threshold } => write!(f, "zhou:{k},{threshold}"),
            Self::Edit(threshold) => write!(f, "edit:{threshold}"),
            Self::EditByLength { short, long, boilerplate: None } => {
                write!(f, "edit:{short},{long}")
            }
            Self::EditByLength { short, long, boilerplate: Some(documents) } => {
                write!(f, "edit:{short},{long},{documents}")
            }
            Self::Contains(threshold) => write!(f, "contains:{threshold}"),
        }
    }
}

impl FromStr for Verification {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let unknown = || {
            invalid(format!(
                "\"{text}\" is not a check: use none, jaccard:T, zhou:K,T, edit:T, edit:S,L, \
                 edit:S,L,N or contains:T, such as jaccard:0.8"
            ))
        };
        let number = |digits: &str| digits.trim().parse::<f64>().map_err(|_| unknown());
        let verification = match text.split_once(':') {
            None if text == "none" => Self::None,
            Some(("jaccard", threshold)) => Self::Jaccard(number(threshold)?),
            Some(("contains", threshold)) => Self::Contains(number(threshold)?),
            Some(("edit", thresholds)) => match thresholds.split_once(',') {
                None => Self::Edit(number(thresholds)?),
                Some((short, rest)) => {
                    let (long, documents) = match rest.split_once(',') {
                        None => (rest, None),
                        Some((long, documents)) => (long, Some(documents)),
                    };
                    let boilerplate = documents.map(boilerplate).transpose()?;
                    Self::EditByLength { short: number(short)?, long: number(long)?, boilerplate }
                }
            },
            Some(("zhou", both)) => {
                let (k, threshold) = both.split_once(',').ok_or_else(unknown)?;
                Self::Zhou { k: number(k)?, threshold: number(threshold)? }
            }
            _ => return Err(unknown()),
        };
        verification.validate()?;
        Ok(verification)
    }
}

/// Parses the number of documents from which a word is boilerplate.
fn boilerplate(digits: &str) -> Result<NonZeroU8> {
    let documents = digits.trim().parse::<NonZeroU8>().ok().filter(|documents| documents.get() > 1);
    documents.ok_or_else(|| {
        invalid(format!("edit:S,L,N needs a number of documents N from 2 to 255, not {digits}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_parsed_as_they_are_written() {
        for words in [
            "none",
            "jaccard:0.8",
            "jaccard:0",
            "zhou:3,2.4",
            "zhou:0,0",
            "edit:1",
            "edit:0.8,0.9",
            "edit:0.8,0.9,30",
            "contains:0.95",
        ] {
            assert_eq!(words.parse::<Verification>().unwrap().to_string(), words);
        }
    }

    #[test]
    fn invalid_checks_are_refused_with_the_reason() {
        for (words, reason) in [
            ("", "is not a check"),
            ("jaccard", "is not a check"),
            ("jaccard:", "is not a check"),
            ("jaccard:x", "is not a check"),
            ("cosine:0.5", "is not a check"),
            ("zhou:3", "is not a check"),
            ("zhou:3,2,1", "is not a check"),
            ("jaccard:1.01", "from 0 to 1, not 1.01"),
            ("jaccard:NaN", "from 0 to 1, not NaN"),
            ("edit:0.8,", "is not a check"),
            ("edit:0.8,2", "from 0 to 1, not 2"),
            ("edit:0.8,0.9,", "N from 2 to 255"),
            ("edit:0.8,0.9,1", "N from 2 to 255"),
            ("edit:0.8,0.9,256", "N from 2 to 255"),
            ("edit:0.8,0.9,30,1", "N from 2 to 255"),
            ("edit:-0.1", "from 0 to 1, not -0.1"),
            ("contains", "is not a check"),
            ("contains:0.8,0.9", "is not a check"),
            ("contains:1.2", "from 0 to 1, not 1.2"),
            ("zhou:101,1", "from 0 to 100, not 101"),
            ("zhou:-1,1", "from 0 to 100, not -1"),
            ("zhou:3,-1", "0 or more, not -1"),
            ("zhou:3,inf", "0 or more, not inf"),
        ] {
            match words.parse::<Verification>() {
                Err(Error::InvalidOption { name: "verify", reason: found }) => {
                    assert!(found.contains(reason), "{words}: {found}");
                }
                other => panic!("{words}: {other:?}"),
            }
        }
    }
}
