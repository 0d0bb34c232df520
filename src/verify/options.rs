//! The kinds of checks: words of the command line become a check with its thresholds.

use std::fmt;
use std::num::NonZeroU8;
use std::str::FromStr;

use super::by_length;
use crate::error::{Error, Result};

/// The largest weight that [`Verification::Zhou`] gives the features shared.
const MAX_K: f64 = 100.0;

/// What a verification compares of two documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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

/// A check that candidates within the distance have to pass.
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
pub enum Verification {
    /// Lets every candidate pass.
    #[default]
    None,
    /// Asks for a part of the features to be shared, 0 to 1.
    Jaccard(f64),
    /// Adds nearness and features shared: 1 / (1 + distance) + k times Jaccard.
    ///
    /// Zhou, Computer and Modernization 2017-07.
    Zhou {
        /// Weight of the features shared, 0 to 100; the paper takes 2 to 8.
        k: f64,
        /// Least sum, 0 or more; above 1 + k nothing passes.
        threshold: f64,
    },
    /// Asks for an edit similarity of the cleaned texts, 0 to 1.
    Edit(f64),
    /// Asks for an edit similarity that rises with the length of the longer text.
    ///
    /// From 200 to 1,600 letters the threshold rises by equal parts with every doubling, and the
    /// distance within which pairs are compared falls by three sixteenths. Chinese characters, kana
    /// and Hangul count as two letters.
    EditByLength {
        /// Threshold of texts of up to 200 letters, 0 to 1.
        short: f64,
        /// Threshold of texts of 1,600 letters and more, 0 to 1.
        long: f64,
        /// Documents from which a line that they have is boilerplate; `None` counts every line.
        ///
        /// Where a fifth of a pair is boilerplate, what is left has to be alike too: it needs an
        /// edit similarity of 0.8. Lines are counted over all documents of an
        /// [`EvidenceWriter`](super::EvidenceWriter), copies of one text once; two texts alone have
        /// no boilerplate.
        boilerplate: Option<NonZeroU8>,
    },
    /// Asks for a part of the smaller text's phrases to occur in the larger one, 0 to 1.
    ///
    /// What goes by it is always the smaller one; see [`PhraseSet`](super::PhraseSet). Candidates
    /// come from the distance, so texts of very different lengths do not get so far.
    Contains(f64),
}

impl Verification {
    /// Tells what has to be known of two documents.
    pub fn needs(self) -> Evidence {
        match self {
            Self::None => Evidence::Nothing,
            Self::Jaccard(_) | Self::Zhou { .. } => Evidence::Features,
            Self::Edit(_) | Self::EditByLength { .. } => Evidence::Text,
            Self::Contains(_) => Evidence::Phrases,
        }
    }

    /// Returns the largest distance of two documents, that many steps of length up.
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

    /// Returns the documents from which a line of theirs is boilerplate to this check.
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

    /// Refuses thresholds and weights outside their ranges.
    ///
    /// Values that were parsed hold; this is for those put together by hand.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] with what is allowed.
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
            Self::EditByLength { boilerplate: Some(NonZeroU8::MIN), .. } => Err(invalid(
                "lines of one document are no boilerplate, of 2 to 255 they may be".to_owned(),
            )),
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
                "\"{text}\" is none of none, jaccard:T, zhou:K,T, edit:T, edit:S,L, edit:S,L,N, contains:T, such as \
                 jaccard:0.8 or zhou:3,2.4"
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

/// Reads the number of documents whose common lines are boilerplate.
fn boilerplate(digits: &str) -> Result<NonZeroU8> {
    let documents = digits.trim().parse::<NonZeroU8>().ok().filter(|documents| documents.get() > 1);
    documents.ok_or_else(|| {
        invalid(format!(
            "edit:S,L,N takes lines of N documents for boilerplate, N from 2 to 255, not {digits}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_read_back_as_they_are_written() {
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
    fn other_words_are_refused_with_the_reason() {
        for (words, reason) in [
            ("", "none of none"),
            ("jaccard", "none of none"),
            ("jaccard:", "none of none"),
            ("jaccard:x", "none of none"),
            ("cosine:0.5", "none of none"),
            ("zhou:3", "none of none"),
            ("zhou:3,2,1", "none of none"),
            ("jaccard:1.01", "from 0 to 1, not 1.01"),
            ("jaccard:NaN", "from 0 to 1, not NaN"),
            ("edit:0.8,", "none of none"),
            ("edit:0.8,2", "from 0 to 1, not 2"),
            ("edit:0.8,0.9,", "N from 2 to 255"),
            ("edit:0.8,0.9,1", "N from 2 to 255"),
            ("edit:0.8,0.9,256", "N from 2 to 255"),
            ("edit:0.8,0.9,30,1", "N from 2 to 255"),
            ("edit:-0.1", "from 0 to 1, not -0.1"),
            ("contains", "none of none"),
            ("contains:0.8,0.9", "none of none"),
            ("contains:1.2", "from 0 to 1, not 1.2"),
            ("zhou:101,1", "from 0 to 100, not 101"),
            ("zhou:-1,1", "from 0 to 100, not -1"),
            ("zhou:3,-1", "0 or more, not -1"),
            ("zhou:3,inf", "0 or more, not inf"),
        ] {
            match words.parse::<Verification>() {
                Err(Error::InvalidOption { name: "verify", reason: told }) => {
                    assert!(told.contains(reason), "{words}: {told}");
                }
                other => panic!("{words}: {other:?}"),
            }
        }
    }
}
