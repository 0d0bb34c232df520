//! Evidence: what verifications compare of a document, made with its fingerprint and kept by position.

use std::num::NonZeroU8;
use std::path::Path;

use hamdex::Fingerprint;
use hamdex::text::{Pipeline, Sketch};
use hamdex::verify::{
    BOILERPLATE_DOCUMENTS, Evidence, EvidenceFile, EvidencePreparer, EvidenceWriter, FeatureSet,
    PhraseSet, PreparedEvidence, Verification,
};

use crate::face::failure::Result;

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
    pub text: String,
    /// An encoded set of phrases.
    pub phrases: Vec<u8>,
    /// The evidence that the sink's verification needs, which then is in no other field.
    pub prepared: Option<PreparedEvidence<'static>>,
}

impl Proofs {
    /// Returns the bytes of all kinds.
    pub(crate) fn len(&self) -> usize {
        let prepared = self.prepared.as_ref().map_or(0, PreparedEvidence::memory_usage);
        self.features.len() + self.text.len() + self.phrases.len() + prepared
    }

    /// Returns the kind of evidence that the verification needs.
    pub fn evidence(&self) -> &[u8] {
        if let Some(prepared) = &self.prepared {
            return prepared.evidence();
        }
        let kinds = [self.features.as_slice(), self.text.as_bytes(), &self.phrases];
        kinds.into_iter().find(|kind| !kind.is_empty()).unwrap_or_default()
    }

    /// Prepares the evidence that the verification needs, and takes it.
    pub(crate) fn prepare(&mut self, preparer: &EvidencePreparer) {
        let prepared = match preparer.kind() {
            Evidence::Features => preparer.prepare(std::mem::take(&mut self.features)),
            Evidence::Text => preparer.prepare_text(std::mem::take(&mut self.text)),
            Evidence::Phrases => preparer.prepare(std::mem::take(&mut self.phrases)),
            Evidence::Nothing | _ => return,
        };
        self.prepared = Some(prepared.expect("it was made as the verification needs it"));
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
            proofs.text = cleaned;
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
            text.clone_into(&mut proofs.text);
        }
        Some((sketch, proofs))
    }
}

/// Collects the kinds of evidence that are wanted.
#[derive(Debug)]
pub struct Keeper {
    features: Option<EvidenceWriter>,
    texts: Option<EvidenceWriter>,
    phrases: Option<EvidenceWriter>,
    kept: Kept,
}

/// Evidence of all documents, by kind.
#[derive(Debug, Default)]
pub struct Kept {
    pub features: Option<EvidenceFile>,
    pub texts: Option<EvidenceFile>,
    pub phrases: Option<EvidenceFile>,
    /// Documents that brought a fingerprint and no text.
    pub without: u64,
}

impl Keeper {
    /// Creates a keeper; each kind may take `memory` bytes.
    pub fn new(wanted: Wanted, directory: Option<&Path>, memory: usize) -> Result<Self> {
        let writer = |kind, wanted: bool| {
            let writer = wanted.then(|| EvidenceWriter::new(kind, directory)).transpose();
            writer.map(|writer| writer.map(|writer| writer.memory(memory)))
        };
        let texts = writer(Evidence::Text, wanted.text)?;
        Ok(Self {
            features: writer(Evidence::Features, wanted.features)?,
            texts: texts.map(|texts| texts.boilerplate(wanted.boilerplate)),
            phrases: writer(Evidence::Phrases, wanted.phrases)?,
            kept: Kept::default(),
        })
    }

    /// Appends the next document's evidence.
    pub fn push(&mut self, proofs: &Proofs) -> Result<()> {
        let mut kept = false;
        for (writer, proof) in [
            (&mut self.features, proofs.features.as_slice()),
            (&mut self.texts, proofs.text.as_bytes()),
            (&mut self.phrases, &proofs.phrases),
        ] {
            let Some(writer) = writer else { continue };
            writer.push(proof)?;
            kept = true;
        }
        self.kept.without += u64::from(kept && proofs.evidence().is_empty());
        Ok(())
    }

    pub fn finish(self) -> Result<Kept> {
        Ok(Kept {
            features: self.features.map(EvidenceWriter::finish).transpose()?,
            texts: self.texts.map(EvidenceWriter::finish).transpose()?,
            phrases: self.phrases.map(EvidenceWriter::finish).transpose()?,
            ..self.kept
        })
    }
}

impl Kept {
    /// Returns the evidence that a verification compares; `None` if it compares nothing.
    pub fn of(&self, verification: Verification) -> Option<&EvidenceFile> {
        match verification.needs() {
            Evidence::Features => self.features.as_ref(),
            Evidence::Text => self.texts.as_ref(),
            Evidence::Phrases => self.phrases.as_ref(),
            Evidence::Nothing | _ => None,
        }
    }
}
