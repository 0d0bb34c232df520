//! Proofs: the evidence of a document, made together with its fingerprint.

use std::num::NonZeroU8;

use hamdex::Fingerprint;
use hamdex::text::{Pipeline, Sketch};
use hamdex::verify::Verification;
use hamdex::verify::{BOILERPLATE_DOCUMENTS, Evidence, FeatureSet, PhraseSet};

/// Kinds of evidence to make.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // kinds of which any may be wanted
pub struct Wanted {
    pub features: bool,
    pub text: bool,
    pub phrases: bool,
    /// The text as it came, instead of the cleaned one.
    pub source: bool,
    /// Documents from which a line is boilerplate to the check.
    pub boilerplate: Option<NonZeroU8>,
}

impl Wanted {
    pub const NOTHING: Self =
        Self { features: false, text: false, phrases: false, source: false, boilerplate: None };
    pub const FEATURES: Self = Self { features: true, ..Self::NOTHING };
    pub const ALL: Self =
        Self { text: true, boilerplate: Some(BOILERPLATE_DOCUMENTS), ..Self::FEATURES };
    pub const SOURCE: Self = Self { source: true, ..Self::NOTHING };

    /// Returns what a verification needs from every document.
    pub fn by(verification: Verification) -> Self {
        let needs = |evidence| verification.needs() == evidence;
        Self {
            features: needs(Evidence::Features),
            text: needs(Evidence::Text),
            phrases: needs(Evidence::Phrases),
            source: false,
            boilerplate: verification.boilerplate(),
        }
    }
}

/// Evidence of one document; empty if no evidence is wanted or there is no text.
#[derive(Debug, Default)]
pub struct Proofs {
    /// An encoded feature set.
    pub features: Vec<u8>,
    /// The cleaned text.
    pub text: Vec<u8>,
    /// An encoded set of phrases.
    pub phrases: Vec<u8>,
}

impl Proofs {
    /// Returns the bytes of all kinds.
    pub(crate) fn len(&self) -> usize {
        self.features.len() + self.text.len() + self.phrases.len()
    }

    /// Returns the kind of evidence that the verification needs.
    pub fn evidence(&self) -> &[u8] {
        let kinds = [&self.features, &self.text, &self.phrases];
        kinds.into_iter().find(|kind| !kind.is_empty()).map_or(&[], Vec::as_slice)
    }

    /// Fingerprints a text and extracts the requested evidence; `None` without features.
    pub fn with_sketch<F: Fingerprint>(
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
        if wanted.phrases {
            proofs.phrases = PhraseSet::of_text(pipeline, text).encode();
        }
        if wanted.source {
            proofs.text = text.as_bytes().to_vec();
        }
        Some((sketch, proofs))
    }
}
