//! Evidence: what verifications compare of every document, by kind and position.

use std::path::Path;

use hamdex::verify::Verification;
use hamdex::verify::{Evidence, EvidenceFile, EvidenceWriter};

use crate::failure::Result;
use crate::proof::{Proofs, Wanted};

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
            (&mut self.features, &proofs.features),
            (&mut self.texts, &proofs.text),
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
