//! Proofs: what a verification compares of a document, made beside its fingerprint.

use hamdex::text::{Pipeline, Sketch};
use hamdex::verify::{Evidence, FeatureSet};
use hamdex::{Fingerprint, Verification};

/// Kinds of evidence to make.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) features: bool,
    pub(crate) text: bool,
    /// The text as it came, instead of the cleaned one.
    pub(crate) source: bool,
}

impl Wanted {
    pub(crate) const NOTHING: Self = Self { features: false, text: false, source: false };
    pub(crate) const FEATURES: Self = Self { features: true, text: false, source: false };
    pub(crate) const ALL: Self = Self { features: true, text: true, source: false };
    pub(crate) const SOURCE: Self = Self { features: false, text: false, source: true };

    /// What a verification compares.
    pub(crate) fn by(verification: Verification) -> Self {
        let needs = verification.needs();
        Self { features: needs == Evidence::Features, text: needs == Evidence::Text, source: false }
    }
}

/// Evidence of one document; empty where none is wanted or there is no text.
#[derive(Debug, Default)]
pub(crate) struct Proofs {
    /// An encoded feature set.
    pub(crate) features: Vec<u8>,
    /// The cleaned text.
    pub(crate) text: Vec<u8>,
}

impl Proofs {
    /// The one kind of evidence that a verification wanted.
    pub(crate) fn evidence(&self) -> &[u8] {
        if self.features.is_empty() { &self.text } else { &self.features }
    }

    /// Fingerprints a text and makes what is wanted of it; `None` for one without features.
    pub(crate) fn with_sketch<F: Fingerprint>(
        wanted: Wanted,
        pipeline: &Pipeline,
        text: &str,
    ) -> Option<(Sketch<F>, Self)> {
        let mut proofs = Self::default();
        let sketch = if wanted.text {
            let (sketch, cleaned) = pipeline.fingerprint_and_cleaned(text);
            proofs.text = cleaned.into_bytes();
            sketch?
        } else {
            pipeline.fingerprint(text)?
        };
        if wanted.features {
            proofs.features = FeatureSet::of_text(pipeline, text).encode();
        }
        if wanted.source {
            proofs.text = text.as_bytes().to_vec();
        }
        Some((sketch, proofs))
    }
}
