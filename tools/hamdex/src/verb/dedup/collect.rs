//! Collecting: the first pass keeps of every document what the choice needs, and no text.

use hamdex::Fingerprint;

use super::Keep;
use crate::failure::Result;
use crate::input::{Document, Reading, Rejects, Stamp};

/// Documents in the order of the inputs.
#[derive(Debug)]
pub(super) struct Documents<F> {
    pub(super) fingerprints: Vec<F>,
    /// Ordinal of each document's row over all inputs, rising.
    pub(super) origins: Vec<u64>,
    pub(super) ranks: Ranks,
}

/// What decides between the documents of a group.
#[derive(Debug)]
pub(super) enum Ranks {
    Order,
    Length(Vec<u64>),
    Newest(Vec<Stamp>),
}

impl<F> Documents<F> {
    pub(super) fn len(&self) -> usize {
        self.fingerprints.len()
    }

    /// Keeps the documents for which the test holds.
    pub(super) fn retain(&mut self, keep: impl Fn(usize) -> bool) {
        retain(&mut self.fingerprints, &keep);
        retain(&mut self.origins, &keep);
        match &mut self.ranks {
            Ranks::Order => {}
            Ranks::Length(lengths) => retain(lengths, &keep),
            Ranks::Newest(stamps) => retain(stamps, &keep),
        }
    }
}

fn retain<T>(values: &mut Vec<T>, keep: impl Fn(usize) -> bool) {
    let mut positions = 0..;
    values.retain(|_| positions.next().is_some_and(&keep));
}

/// The documents and how many files of directories were no text.
#[derive(Debug)]
pub(super) struct Collected<F> {
    pub(super) documents: Documents<F>,
    pub(super) binary: u64,
}

/// Reads all inputs once.
pub(super) fn collect<F: Fingerprint>(
    reading: &Reading<'_>,
    keep: &Keep,
    rejects: &mut Rejects,
) -> Result<Collected<F>> {
    let mut documents = Documents {
        fingerprints: Vec::new(),
        origins: Vec::new(),
        ranks: match keep {
            Keep::First => Ranks::Order,
            Keep::Longest => Ranks::Length(Vec::new()),
            Keep::Newest(_) => Ranks::Newest(Vec::new()),
        },
    };
    let totals = reading.run::<F>(rejects, &mut |document: Document<'_, F>| {
        documents.fingerprints.push(document.fingerprint);
        documents.origins.push(document.origin);
        match &mut documents.ranks {
            Ranks::Order => {}
            Ranks::Length(lengths) => lengths.push(document.length),
            Ranks::Newest(stamps) => stamps.push(document.stamp),
        }
        Ok(())
    })?;
    Ok(Collected { documents, binary: totals.binary })
}
