//! The engine: documents come in one after another, decisions come out at the end.

use rayon::prelude::*;

use super::decisions::Decisions;
use super::groups::labels;
use super::order::best_first;
use super::settings::Settings;
use super::stored::Stored;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::index::Index;
use crate::progress::Progress;
use crate::text::Pipeline;
use crate::verify::{Evidence, EvidenceFile, EvidenceWriter};

/// Texts that are read together, on all threads; what is made of them waits in memory.
const BATCH: usize = 1024;

/// Collects documents and decides which of them to keep.
///
/// `R` ranks documents against each other: of a group the highest is kept, of equals the one that
/// was pushed first. Without ranks that is the first of all.
///
/// ```
/// use hamdex::dedup::{Decision, Dedup, Settings};
///
/// // The newest version is kept.
/// let mut dedup = Dedup::<u64, &str>::new(&Settings::new(2))?;
/// for (fingerprint, date) in [(0b0001, "2021-05-01"), (0xffff, "2020-01-01"), (0b0011, "2023-02-03")] {
///     dedup.push(fingerprint, &[], date)?;
/// }
/// let decisions = dedup.finish(&())?;
/// let first = Decision::Duplicate { kept: 2, distance: 1, similarity: None, cluster: 1 };
/// assert_eq!(decisions.of(0), first);
/// assert_eq!(decisions.kept(), 2);
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug)]
pub struct Dedup<F, R = ()> {
    settings: Settings,
    fingerprints: Vec<F>,
    ranks: Vec<R>,
    /// `None` where nothing is verified.
    evidence: Option<EvidenceWriter>,
    unverifiable: u64,
}

impl<F: Fingerprint, R: Ord + Sync> Dedup<F, R> {
    /// Begins a deduplication; a verification makes a temporary file.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidDistance`] if the distance is above a quarter of the width.
    /// - [`Error::Io`] where no temporary file can be made.
    pub fn new(settings: &Settings) -> Result<Self> {
        let (distance, bits, max) = (settings.distance, F::BITS, F::MAX_DISTANCE);
        if distance > max {
            return Err(Error::InvalidDistance { distance, bits, max });
        }
        let verifies = settings.verification.needs() != Evidence::Nothing;
        let evidence =
            verifies.then(|| EvidenceWriter::new(settings.tmp.as_deref())).transpose()?;
        Ok(Self {
            settings: settings.clone(),
            fingerprints: Vec::new(),
            ranks: Vec::new(),
            evidence,
            unverifiable: 0,
        })
    }

    /// Takes the next document and returns its position, counted from 0.
    ///
    /// `evidence` is that of [`Verification::evidence`](crate::Verification::evidence), empty for
    /// a document without a text; such a one is near equal fingerprints without text alone, where
    /// anything is verified.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidOption`] for more than `u32::MAX` documents.
    /// - [`Error::Io`] where the temporary file does not take the evidence.
    pub fn push(&mut self, fingerprint: F, evidence: &[u8], rank: R) -> Result<u32> {
        let position = u32::try_from(self.fingerprints.len())
            .ok()
            .filter(|&position| position < u32::MAX)
            .ok_or_else(|| Error::InvalidOption {
                name: "documents",
                reason: format!("more than {} are too many", u32::MAX),
            })?;
        if let Some(writer) = &mut self.evidence {
            writer.push(evidence)?;
            self.unverifiable += u64::from(evidence.is_empty());
        }
        self.fingerprints.push(fingerprint);
        self.ranks.push(rank);
        Ok(position)
    }

    /// Returns the number of documents so far.
    pub fn len(&self) -> usize {
        self.fingerprints.len()
    }

    /// Returns true before the first document.
    pub fn is_empty(&self) -> bool {
        self.fingerprints.is_empty()
    }

    /// Returns the number of documents that came without evidence and cannot be verified.
    pub fn unverifiable(&self) -> u64 {
        self.unverifiable
    }

    /// Groups the documents and decides what to keep of each group.
    ///
    /// With [`Linkage::Representative`](crate::join::Linkage::Representative) every duplicate has
    /// passed the verification with the document that is kept. The answer does not depend on the
    /// number of threads.
    ///
    /// # Errors
    ///
    /// - [`Error::Cancelled`] once the progress sink asks to stop.
    /// - [`Error::Io`] where the temporary file cannot be read.
    /// - [`Error::Corrupt`] for evidence that is of another verification.
    pub fn finish(self, progress: &dyn Progress) -> Result<Decisions<F>> {
        self.decide(None, progress)
    }

    /// Decides as [`finish`](Self::finish), and removes whatever is near a stored document first.
    ///
    /// What is near a stored document belongs to no group.
    ///
    /// # Errors
    ///
    /// Those of [`finish`](Self::finish), and of [`Index::search_batch`].
    pub fn finish_against(self, index: &Index<F>, progress: &dyn Progress) -> Result<Decisions<F>> {
        self.decide(Some(index), progress)
    }

    fn decide(self, index: Option<&Index<F>>, progress: &dyn Progress) -> Result<Decisions<F>> {
        let Self { settings, fingerprints, ranks, evidence, .. } = self;
        let evidence = evidence.map(EvidenceWriter::finish).transpose()?;
        let evidence: Option<&EvidenceFile> = evidence.as_ref();
        let stored = match index {
            Some(index) => Stored::search(index, &fingerprints, evidence, &settings, progress)?,
            None => Stored::default(),
        };
        let out: &(dyn Fn(u32) -> bool + Sync) = &|position| stored.holds(position);
        let order = best_first(&ranks, (stored.len() > 0).then_some(out));
        drop(ranks);
        let labels = labels(&fingerprints, evidence, &settings, order.as_deref(), progress)?;
        drop(order);
        Decisions::new(fingerprints, &labels, stored, (evidence, settings.verification), progress)
    }
}

impl<F: Fingerprint> Dedup<F> {
    /// Takes texts, on all threads, and returns the position of each.
    ///
    /// `None` stands for a text without features, which is no document: nothing can be said of
    /// what it is near to.
    ///
    /// # Errors
    ///
    /// Those of [`push`](Self::push); texts before the one that failed were taken.
    pub fn push_texts<T: AsRef<str> + Sync>(
        &mut self,
        pipeline: &Pipeline,
        texts: &[T],
    ) -> Result<Vec<Option<u32>>> {
        let verification = self.settings.verification;
        let mut positions = Vec::with_capacity(texts.len());
        for batch in texts.chunks(BATCH) {
            let make = |text: &T| {
                let sketch = pipeline.fingerprint::<F>(text.as_ref())?;
                Some((sketch.fingerprint, verification.evidence(pipeline, text.as_ref())))
            };
            let made: Vec<Option<(F, Vec<u8>)>> = batch.par_iter().map(make).collect();
            for made in made {
                positions.push(match made {
                    Some((fingerprint, evidence)) => Some(self.push(fingerprint, &evidence, ())?),
                    None => None,
                });
            }
        }
        Ok(positions)
    }
}

#[cfg(test)]
mod tests;
