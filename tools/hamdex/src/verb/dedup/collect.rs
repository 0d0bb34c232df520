//! Collecting: the first pass keeps of every document what the choice needs, and no text.

use hamdex::dedup::{Decisions, Dedup, Settings};
use hamdex::{Fingerprint, Index, Progress};

use super::Keep;
use crate::failure::Result;
use crate::input::{Document, Passed, Reading, Rejects, Stamp};

/// Documents in the order of the inputs.
#[derive(Debug)]
pub(super) struct Documents<F> {
    ranked: Ranked<F>,
    /// Ordinal of each document's row over all inputs, rising.
    origins: Vec<u64>,
}

/// Documents by what decides between those of a group.
#[derive(Debug)]
enum Ranked<F> {
    Order(Dedup<F>),
    Length(Dedup<F, u64>),
    Newest(Dedup<F, Stamp>),
}

impl<F: Fingerprint> Documents<F> {
    fn new(keep: &Keep, settings: &Settings) -> Result<Self> {
        let ranked = match keep {
            Keep::First => Ranked::Order(Dedup::new(settings)?),
            Keep::Longest => Ranked::Length(Dedup::new(settings)?),
            Keep::Newest(_) => Ranked::Newest(Dedup::new(settings)?),
        };
        Ok(Self { ranked, origins: Vec::new() })
    }

    fn push(&mut self, document: Document<'_, F>) -> Result<()> {
        let Document { fingerprint, proofs, length, stamp, origin, .. } = document;
        let evidence = proofs.evidence();
        match &mut self.ranked {
            Ranked::Order(dedup) => dedup.push(fingerprint, evidence, ())?,
            Ranked::Length(dedup) => dedup.push(fingerprint, evidence, length)?,
            Ranked::Newest(dedup) => dedup.push(fingerprint, evidence, stamp)?,
        };
        self.origins.push(origin);
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.origins.len()
    }

    /// Documents that brought a fingerprint and no text, where texts are compared.
    pub(super) fn without(&self) -> u64 {
        match &self.ranked {
            Ranked::Order(dedup) => dedup.unverifiable(),
            Ranked::Length(dedup) => dedup.unverifiable(),
            Ranked::Newest(dedup) => dedup.unverifiable(),
        }
    }

    /// Decides what becomes of every document.
    pub(super) fn decide(
        self,
        against: Option<&Index<F>>,
        progress: &dyn Progress,
    ) -> Result<Choice<F>> {
        let decisions = match self.ranked {
            Ranked::Order(dedup) => finish(dedup, against, progress)?,
            Ranked::Length(dedup) => finish(dedup, against, progress)?,
            Ranked::Newest(dedup) => finish(dedup, against, progress)?,
        };
        Ok(Choice { decisions, origins: self.origins })
    }
}

fn finish<F: Fingerprint, R: Ord + Sync>(
    dedup: Dedup<F, R>,
    against: Option<&Index<F>>,
    progress: &dyn Progress,
) -> hamdex::Result<Decisions<F>> {
    match against {
        Some(index) => dedup.finish_against(index, progress),
        None => dedup.finish(progress),
    }
}

/// What becomes of every document, and which row it is.
#[derive(Debug)]
pub(super) struct Choice<F> {
    pub(super) decisions: Decisions<F>,
    /// Ordinal of each document's row over all inputs, rising.
    pub(super) origins: Vec<u64>,
}

/// The documents and how much else there was.
#[derive(Debug)]
pub(super) struct Collected<F> {
    pub(super) documents: Documents<F>,
    /// Files of directories that are no text.
    pub(super) binary: u64,
    pub(super) passed: Passed,
}

/// Reads all inputs once.
pub(super) fn collect<F: Fingerprint>(
    reading: &Reading<'_>,
    keep: &Keep,
    settings: &Settings,
    rejects: &mut Rejects,
) -> Result<Collected<F>> {
    let mut documents = Documents::new(keep, settings)?;
    let totals =
        reading.run::<F>(rejects, &mut |document: Document<'_, F>| documents.push(document))?;
    Ok(Collected { documents, binary: totals.binary, passed: totals.passed })
}
