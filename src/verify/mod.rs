//! Verification: checks candidates that are near by fingerprint against what the documents share.
//!
//! Fingerprints of short texts collide, their words do not. A check after the search compares the
//! evidence of two documents and accepts or rejects the pair. Evidence is a [`FeatureSet`], a
//! [`PhraseSet`] or the cleaned text.
#![doc = include_str!("VERIFY.md")]

pub(crate) mod by_length;
mod edit;
mod evidence_file;
mod evidence_writer;
mod feature_set;
mod length_class;
mod long_texts;
mod options;
mod outline;
mod phrase_set;
mod piece;
mod prepared;
mod rule;
pub(crate) mod spilled;
mod varint;
mod words;

use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::progress::{self, Progress};
use crate::text::{Pipeline, Sketch};

pub use edit::edit_similarity;
pub use evidence_file::EvidenceFile;
pub use evidence_writer::EvidenceWriter;
pub use feature_set::{FeatureSet, KEPT_FEATURES};
pub use options::{Evidence, Verification};
pub(crate) use outline::BigramOutline;
pub use phrase_set::{Extent, PhraseSet};
pub use prepared::{EvidencePreparer, PreparedEvidence};
pub use rule::{DuplicateRule, Linkage};
pub use words::BOILERPLATE_DOCUMENTS;

impl Verification {
    /// Computes the evidence of a text that this check compares.
    ///
    /// Returns an encoded [`FeatureSet`] or [`PhraseSet`], the cleaned text as UTF-8, or nothing,
    /// depending on [`needs`](Self::needs). See [`check`](Self::check) for an example.
    pub fn evidence(self, pipeline: &Pipeline, text: &str) -> Vec<u8> {
        match self.needs() {
            Evidence::Nothing => Vec::new(),
            Evidence::Features => FeatureSet::of_text(pipeline, text).encode(),
            Evidence::Text => pipeline.cleaned(text).into_bytes(),
            Evidence::Phrases => PhraseSet::of_text(pipeline, text).encode(),
        }
    }

    /// Computes the fingerprint of a text and its [`evidence`](Self::evidence) in one pass.
    ///
    /// Returns `None` if the text has no features.
    pub(crate) fn fingerprint_and_evidence<F: Fingerprint>(
        self,
        pipeline: &Pipeline,
        text: &str,
    ) -> Option<(Sketch<F>, Vec<u8>)> {
        if self.needs() == Evidence::Text {
            let (sketch, cleaned) = pipeline.fingerprint_and_cleaned(text);
            return Some((sketch?, cleaned.into_bytes()));
        }
        let sketch = pipeline.fingerprint(text)?;
        Some((sketch, self.evidence(pipeline, text)))
    }

    /// Returns the similarity of a pair if it passes.
    ///
    /// `distance` is the Hamming distance of the fingerprints; `a` and `b` are the
    /// [`evidence`](Self::evidence) of the documents, in any order. The similarity is
    ///
    /// - with `Jaccard`, the share of features that both documents have, 0 to 1;
    /// - with `Edit` and `EditByLength`, the edit similarity, 0 to 1;
    /// - with `Contains`, the share of the smaller document's phrases in the larger one, 0 to 1;
    /// - with `Zhou`, 1 / (1 + distance) + k times the Jaccard similarity (Zhou, Computer and
    ///   Modernization 2017-07);
    /// - with `None`, 1 / (1 + distance); every pair passes.
    ///
    /// Two documents do not show what is boilerplate, so only [`EvidenceFile::check`] excludes it.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if evidence does not decode.
    ///
    /// ```
    /// use hamdex::verify::Verification;
    /// use hamdex::{Pipeline, PipelineOptions};
    ///
    /// let pipeline = Pipeline::new(&PipelineOptions::preset("post")?)?;
    /// let verification: Verification = "jaccard:0.5".parse()?;
    /// let rain = verification.evidence(&pipeline, "it will rain tomorrow, take a coat");
    /// let coat = verification.evidence(&pipeline, "it will rain tomorrow, take your coat");
    /// let football = verification.evidence(&pipeline, "the match ended two to nothing");
    /// assert!(verification.check(3, &rain, &coat)?.is_some());
    /// assert_eq!(verification.check(3, &rain, &football)?, None);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn check(self, distance: u32, a: &[u8], b: &[u8]) -> Result<Option<f64>> {
        self.check_while(distance, a, b, &())
    }

    /// Does what [`check`](Self::check) does, and checks for cancellation between pieces of long
    /// texts.
    pub(crate) fn check_while(
        self,
        distance: u32,
        a: &[u8],
        b: &[u8],
        progress: &dyn Progress,
    ) -> Result<Option<f64>> {
        let near = 1.0 / (1.0 + f64::from(distance));
        let check_cancelled = || progress::check(progress);
        let (similarity, threshold) = match self {
            Self::None => (near, 0.0),
            Self::Jaccard(threshold) => (feature_set::jaccard_encoded(a, b)?, threshold),
            Self::Zhou { k, threshold } => {
                (near + k * feature_set::jaccard_encoded(a, b)?, threshold)
            }
            Self::Edit(_) | Self::EditByLength { .. } => {
                let (a, b) = (utf8(a)?, utf8(b)?);
                let threshold = self.edit_threshold(|| by_length::step(a, b));
                let threshold = threshold.expect("edits have a threshold");
                return edit::similarity_while(a, b, threshold, &check_cancelled);
            }
            Self::Contains(threshold) => {
                return phrase_set::containment_encoded(a, b, threshold);
            }
        };
        Ok((similarity >= threshold).then_some(similarity))
    }
}

impl Verification {
    /// Returns the edit similarity that texts at a step of length need to pass.
    ///
    /// Returns `None` if the check does not compare edits.
    fn edit_threshold(self, step: impl FnOnce() -> usize) -> Option<f64> {
        match self {
            Self::Edit(threshold) => Some(threshold),
            Self::EditByLength { short, long, .. } => {
                Some(by_length::threshold(short, long, step()))
            }
            Self::None | Self::Jaccard(_) | Self::Zhou { .. } | Self::Contains(_) => None,
        }
    }
}

/// Hashes evidence, so that equal documents are recognised without a check.
///
/// ```
/// use hamdex::verify::digest;
///
/// assert_eq!(digest(b"sunny days"), digest(b"sunny days"));
/// assert_ne!(digest(b"sunny days"), digest(b"sunny day"));
/// ```
pub fn digest(evidence: &[u8]) -> u64 {
    xxh3_64(evidence)
}

fn utf8(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes)
        .map_err(|error| Error::corrupt("evidence", format!("text is not UTF-8: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::PipelineOptions;

    const RAIN: &str = "tomorrow it will rain, so take a coat and an umbrella";
    const COAT: &str = "tomorrow it will rain, so take a coat and an umbrella!!";
    const GAME: &str = "the game ended two to nothing";

    #[test]
    fn similarities_equal_the_worked_examples() {
        let a = FeatureSet::from_hashes(&[1 << 40, 2 << 40, 3 << 40]).encode();
        let b = FeatureSet::from_hashes(&[2 << 40, 3 << 40, 4 << 40]).encode();
        assert_eq!(Verification::Jaccard(0.5).check(9, &a, &b).unwrap(), Some(0.5));
        assert_eq!(Verification::Jaccard(0.51).check(9, &a, &b).unwrap(), None);
        let zhou = |threshold| Verification::Zhou { k: 3.0, threshold };
        assert_eq!(zhou(1.75).check(3, &a, &b).unwrap(), Some(1.75));
        assert_eq!(zhou(1.76).check(3, &a, &b).unwrap(), None);
        assert_eq!(Verification::None.check(3, &a, &[]).unwrap(), Some(0.25));
        let edit = Verification::Edit(0.9);
        assert_eq!(edit.check(3, b"0123456789", b"012345678x").unwrap(), Some(0.9));
        assert_eq!(edit.check(3, b"0123456789", b"01234567xx").unwrap(), None);
    }

    #[test]
    fn every_check_distinguishes_similar_texts_from_others() {
        let pipeline = Pipeline::new(&PipelineOptions::preset("post").unwrap()).unwrap();
        for words in ["jaccard:0.8", "zhou:3,2.4", "edit:0.9"] {
            let check: Verification = words.parse().unwrap();
            let [rain, coat, game] = [RAIN, COAT, GAME].map(|t| check.evidence(&pipeline, t));
            assert!(check.check(0, &rain, &coat).unwrap().is_some(), "{words}");
            assert_eq!(check.check(0, &rain, &game).unwrap(), None, "{words}");
        }
    }

    #[test]
    fn evidence_that_does_not_decode_is_damage() {
        let good = FeatureSet::from_hashes(&[1 << 40]).encode();
        for check in [Verification::Jaccard(0.0), Verification::Zhou { k: 1.0, threshold: 0.0 }] {
            for (a, b) in [(&good[..], &[][..]), (&[0xff], &good)] {
                let refused = check.check(0, a, b);
                assert!(matches!(refused, Err(Error::Corrupt { .. })), "{refused:?}");
            }
        }
        let refused = Verification::Edit(0.0).check(0, &[0xff], b"a");
        assert!(matches!(refused, Err(Error::Corrupt { .. })));
    }
}
