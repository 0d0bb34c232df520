//! Evidence: what verifications compare of every document, by kind and position.

use std::path::Path;

use hamdex::Verification;
use hamdex::verify::{Evidence, EvidenceFile, EvidenceWriter};

use crate::failure::Result;
use crate::input::{Proofs, Wanted};

/// Collects the kinds of evidence that are wanted.
#[derive(Debug)]
pub(crate) struct Keeper {
    features: Option<EvidenceWriter>,
    texts: Option<EvidenceWriter>,
    kept: Kept,
}

/// Evidence of all documents, by kind.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub(crate) features: Option<EvidenceFile>,
    pub(crate) texts: Option<EvidenceFile>,
    /// Documents that brought a fingerprint and no text.
    pub(crate) without: u64,
}

impl Keeper {
    pub(crate) fn new(wanted: Wanted, directory: Option<&Path>) -> Result<Self> {
        let writer =
            |kind, wanted: bool| wanted.then(|| EvidenceWriter::new(kind, directory)).transpose();
        Ok(Self {
            features: writer(Evidence::Features, wanted.features)?,
            texts: writer(Evidence::Text, wanted.text)?,
            kept: Kept::default(),
        })
    }

    /// Appends the next document's evidence.
    pub(crate) fn push(&mut self, proofs: &Proofs) -> Result<()> {
        for (writer, proof) in
            [(&mut self.features, &proofs.features), (&mut self.texts, &proofs.text)]
        {
            writer.as_mut().map_or(Ok(()), |writer| writer.push(proof))?;
        }
        if self.features.is_some() || self.texts.is_some() {
            self.kept.without += u64::from(proofs.features.is_empty() && proofs.text.is_empty());
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<Kept> {
        Ok(Kept {
            features: self.features.map(EvidenceWriter::finish).transpose()?,
            texts: self.texts.map(EvidenceWriter::finish).transpose()?,
            ..self.kept
        })
    }
}

impl Kept {
    /// The evidence that a verification compares; `None` where it compares nothing.
    pub(crate) fn of(&self, verification: Verification) -> Option<&EvidenceFile> {
        match verification.needs() {
            Evidence::Nothing => None,
            Evidence::Features => self.features.as_ref(),
            Evidence::Text => self.texts.as_ref(),
        }
    }
}
