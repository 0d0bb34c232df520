//! The engine: takes documents one after another and decides at the end.
#![expect(clippy::indexing_slicing, reason = "labels are positions, as grouping made them")]

mod texts;

use super::decisions::{Decisions, measuring};
use super::groups::labelled;
use super::order::{Excluded, best_first};
use super::settings::DedupOptions;
use super::stored::{OwnKey, Search, Stored};
use super::target::Target;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::index::Index;
use crate::join::{Labelled, Similarities};
use crate::progress::Progress;
use crate::verify::{
    Evidence, EvidenceFile, EvidencePreparer, EvidenceWriter, PreparedEvidence, Verification,
};

/// Collects documents and decides which of them to keep.
///
/// `R` ranks documents: of each group the one with the highest rank is kept, and ties go to the one
/// pushed first. Without ranks (`()`) the first document is kept. With
/// [`Verification::Contains`](crate::verify::Verification::Contains) the largest document is kept,
/// and ranks decide only between equally large ones.
///
/// ```
/// use hamdex::dedup::{Decision, Dedup, DedupOptions};
///
/// // The newest version is kept.
/// let mut dedup = Dedup::<u64, &str>::new(&DedupOptions::new(2))?;
/// let versions = [(0b0001, "2021-05-01"), (0xffff, "2020-01-01"), (0b0011, "2023-02-03")];
/// for (fingerprint, date) in versions {
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
    settings: DedupOptions,
    fingerprints: Vec<F>,
    ranks: Vec<R>,
    /// `None` if nothing is verified.
    evidence: Option<EvidenceWriter>,
    unverifiable: u64,
    excluded: Excluded,
    /// Documents to leave; `None` leaves what the settings leave.
    leave: Option<u32>,
}

impl<F: Fingerprint, R: Ord + Sync> Dedup<F, R> {
    /// Starts a deduplication; with a verification, creates a temporary file.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidDistance`] if the distance is above a quarter of the width.
    /// - [`Error::Io`] if the temporary file cannot be created.
    pub fn new(settings: &DedupOptions) -> Result<Self> {
        let (distance, bits, max) = (settings.distance, F::BITS, F::MAX_DISTANCE);
        if distance > max {
            return Err(Error::InvalidDistance { distance, bits, max });
        }
        let verification = settings.verification;
        let kind = verification.needs();
        let writer = || {
            let writer = EvidenceWriter::new(kind, settings.tmp.as_deref())?;
            let writer = writer.memory(settings.evidence_memory());
            Ok::<_, Error>(writer.boilerplate(verification.boilerplate()))
        };
        let evidence = (kind != Evidence::Nothing).then(writer).transpose()?;
        Ok(Self {
            settings: settings.clone(),
            fingerprints: Vec::new(),
            ranks: Vec::new(),
            evidence,
            unverifiable: 0,
            excluded: Excluded::default(),
            leave: None,
        })
    }

    /// Adds the next document and returns its position, counted from 0.
    ///
    /// `evidence` is what [`Verification::evidence`](crate::verify::Verification::evidence)
    /// returns, or empty for a document without text. If anything is verified, a document without
    /// text is a duplicate only of documents without text that have an equal fingerprint.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidOption`] if there are more than `u32::MAX` documents.
    /// - [`Error::Io`] if the evidence cannot be written to the temporary file.
    ///
    /// ```
    /// use hamdex::verify::Verification;
    /// use hamdex::dedup::{Dedup, DedupOptions};
    ///
    /// let mut dedup = Dedup::<u64>::new(&DedupOptions::new(3).verify(Verification::Edit(0.9)))?;
    /// assert_eq!(dedup.push(7, b"the same text in two places", ())?, 0);
    /// assert_eq!(dedup.push(7, b"", ())?, 1);
    /// assert_eq!((dedup.len(), dedup.unverifiable()), (2, 1));
    /// assert_eq!(dedup.finish(&())?.kept(), 2);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn push(&mut self, fingerprint: F, evidence: &[u8], rank: R) -> Result<u32> {
        let prepare = |preparer: EvidencePreparer| preparer.prepare(evidence);
        let evidence = self.preparer().map(prepare).transpose()?;
        self.push_prepared(fingerprint, evidence, rank)
    }

    /// Returns what prepares evidence on other threads; `None` if nothing is verified.
    ///
    /// ```
    /// use hamdex::dedup::{Dedup, DedupOptions};
    /// use hamdex::verify::Verification;
    ///
    /// let mut dedup = Dedup::<u64>::new(&DedupOptions::new(3).verify(Verification::Edit(0.9)))?;
    /// let preparer = dedup.preparer().expect("a verification needs evidence");
    /// for text in ["rain in the night", "rain in the night"] {
    ///     // This may take place on any thread.
    ///     let evidence = preparer.prepare(text.as_bytes())?;
    ///     dedup.push_prepared(7, Some(evidence), ())?;
    /// }
    /// assert_eq!(dedup.finish(&())?.kept(), 1);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn preparer(&self) -> Option<EvidencePreparer> {
        self.evidence.as_ref().map(EvidenceWriter::preparer)
    }

    /// Adds the next document as [`push`](Self::push) does, with evidence that is prepared.
    ///
    /// `None` is a document without text.
    ///
    /// # Errors
    ///
    /// Those of [`push`](Self::push); [`Error::InvalidOption`] also if the evidence was prepared by
    /// the preparer of another deduplication.
    pub fn push_prepared(
        &mut self,
        fingerprint: F,
        evidence: Option<PreparedEvidence<'_>>,
        rank: R,
    ) -> Result<u32> {
        let position = u32::try_from(self.fingerprints.len())
            .ok()
            .filter(|&position| position < u32::MAX)
            .ok_or_else(|| Error::InvalidOption {
                name: "documents",
                reason: format!("at most {} are supported", u32::MAX),
            })?;
        let has_text = evidence.as_ref().is_some_and(|e| !e.evidence().is_empty());
        match (&mut self.evidence, evidence) {
            (Some(writer), Some(evidence)) => writer.push_prepared(evidence)?,
            (Some(writer), None) => writer.push(&[])?,
            (None, None) => {}
            (None, Some(_)) => {
                let reason = "was prepared for another deduplication".to_owned();
                return Err(Error::InvalidOption { name: "evidence", reason });
            }
        }
        self.unverifiable += u64::from(self.evidence.is_some() && !has_text);
        self.fingerprints.push(fingerprint);
        self.ranks.push(rank);
        Ok(position)
    }

    /// Excludes a document, for instance one removed for another reason.
    ///
    /// It is a duplicate of no document, and no document is a duplicate of it. Its decision is
    /// [`Decision::Kept`](super::Decision::Kept) without a cluster, and [`Decisions::kept`]
    /// includes it. Takes one bit of memory per document.
    ///
    /// ```
    /// use hamdex::dedup::{Decision, Dedup, DedupOptions};
    ///
    /// let mut dedup = Dedup::<u64>::new(&DedupOptions::new(1))?;
    /// let positions: Vec<u32> =
    ///     [7, 7, 6].into_iter().map(|f| dedup.push(f, &[], ())).collect::<Result<_, _>>()?;
    /// dedup.exclude(positions[0]);
    /// assert_eq!(dedup.excluded(), 1);
    /// let decisions = dedup.finish(&())?;
    /// assert_eq!(decisions.of(0), Decision::Kept { cluster: None });
    /// assert_eq!(decisions.of(1), Decision::Kept { cluster: Some(1) });
    /// assert!(matches!(decisions.of(2), Decision::Duplicate { kept: 1, .. }));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn exclude(&mut self, position: u32) {
        if (position as usize) < self.fingerprints.len() {
            self.excluded.add(position);
        }
    }

    /// Returns the number of excluded documents.
    pub fn excluded(&self) -> usize {
        self.excluded.len()
    }

    /// Removes the closest duplicates only, until this number of documents is left.
    ///
    /// The settings are the widest that is removed: if they leave more documents than that, those
    /// are left. Groups have representatives, whatever the linkage. Thresholds rise in 128 equal
    /// steps from those of the settings to equality, without a verification the distance falls,
    /// and a document goes before another one if it still passes with a kept document at a higher
    /// step; within a step by similarity to that document, then by distance, then the one that is
    /// less to be kept. Documents that are excluded or near a stored one are not left. The same
    /// documents give the same answer, which takes up to nine times as long to find.
    ///
    /// ```
    /// use hamdex::dedup::{Decision, Dedup, DedupOptions};
    ///
    /// let mut dedup = Dedup::<u64>::new(&DedupOptions::new(3))?;
    /// for fingerprint in [0b0000, 0b0111, 0b0001, 0b0000] {
    ///     dedup.push(fingerprint, &[], ())?;
    /// }
    /// dedup.leave_at_least(2);
    /// let decisions = dedup.finish(&())?;
    /// assert_eq!(decisions.kept(), 2);
    /// // The one that differs most came back.
    /// assert!(matches!(decisions.of(1), Decision::Kept { .. }));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn leave_at_least(&mut self, documents: u32) {
        self.leave = Some(documents);
    }

    pub(super) fn settings(&self) -> &DedupOptions {
        &self.settings
    }

    pub(super) fn fingerprints(&self) -> &[F] {
        &self.fingerprints
    }

    /// Returns the number of documents pushed so far.
    ///
    /// ```
    /// # use hamdex::dedup::{Dedup, DedupOptions};
    /// let mut dedup = Dedup::<u64>::new(&DedupOptions::new(3))?;
    /// assert!(dedup.is_empty());
    /// dedup.push(7, b"", ())?;
    /// assert_eq!(dedup.len(), 1);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn len(&self) -> usize {
        self.fingerprints.len()
    }

    /// Returns true if no document was pushed.
    pub fn is_empty(&self) -> bool {
        self.fingerprints.is_empty()
    }

    /// Returns the number of documents without evidence, which cannot be verified.
    pub fn unverifiable(&self) -> u64 {
        self.unverifiable
    }

    /// Groups the documents and decides which of each group to keep.
    ///
    /// With [`Linkage::Representative`](crate::join::Linkage::Representative) every duplicate is
    /// within the distance of the kept document and passed the verification with it. The result
    /// does not depend on the number of threads.
    ///
    /// # Errors
    ///
    /// - [`Error::Cancelled`] once the progress sink asks to stop.
    /// - [`Error::Io`] if the temporary file cannot be read.
    /// - [`Error::Corrupt`] if evidence was made for another verification.
    pub fn finish(self, progress: &dyn Progress) -> Result<Decisions<F>> {
        self.decide(None, progress)
    }

    /// Decides like [`finish`](Self::finish), but first removes documents near a stored one.
    ///
    /// A removed document joins no group.
    ///
    /// # Errors
    ///
    /// Those of [`finish`](Self::finish) and [`Index::search_batch`].
    ///
    /// ```
    /// use hamdex::dedup::{Dedup, DedupOptions};
    /// use hamdex::{Index, IndexOptions};
    ///
    /// let directory = tempfile::tempdir()?;
    /// let index = Index::<u64>::create(directory.path(), &IndexOptions::new())?;
    /// index.insert(b"monday", 0b0001)?;
    /// let mut dedup = Dedup::<u64>::new(&DedupOptions::new(1))?;
    /// dedup.push(0b0011, &[], ())?;
    /// let decisions = dedup.finish_against(&index, &())?;
    /// assert_eq!((decisions.kept(), decisions.near_stored()), (0, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn finish_against(self, index: &Index<F>, progress: &dyn Progress) -> Result<Decisions<F>> {
        self.decide(Some((index, None)), progress)
    }

    /// Decides like [`finish_against`](Self::finish_against), ignoring each document's own record.
    ///
    /// `own` returns the [`key_hash`](super::key_hash) of the document's key in the index, or
    /// `None` if it has none. The stored document with that key is skipped; the nearest other one
    /// counts.
    ///
    /// # Errors
    ///
    /// Those of [`finish_against`](Self::finish_against).
    ///
    /// ```
    /// use hamdex::dedup::{self, Decision, Dedup, DedupOptions};
    /// use hamdex::{Index, IndexOptions};
    ///
    /// let directory = tempfile::tempdir()?;
    /// let index = Index::<u64>::create(directory.path(), &IndexOptions::new())?;
    /// index.insert(b"monday", 0b0001)?;
    /// index.insert(b"tuesday", 0xffff)?;
    /// let keys = ["tuesday", "wednesday"];
    /// let mut dedup = Dedup::<u64>::new(&DedupOptions::new(1))?;
    /// dedup.push(0xffff, &[], ())?;
    /// dedup.push(0b0011, &[], ())?;
    /// let own = |at: u32| keys.get(at as usize).map(|key| dedup::key_hash(key.as_bytes()));
    /// let decisions = dedup.finish_against_others(&index, &own, &())?;
    /// assert_eq!(decisions.of(0), Decision::Kept { cluster: None });
    /// assert!(matches!(decisions.of(1), Decision::Stored { key: b"monday", .. }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn finish_against_others(
        self,
        index: &Index<F>,
        own: &OwnKey<'_>,
        progress: &dyn Progress,
    ) -> Result<Decisions<F>> {
        self.decide(Some((index, Some(own))), progress)
    }

    fn decide(
        self,
        against: Option<(&Index<F>, Option<&OwnKey<'_>>)>,
        progress: &dyn Progress,
    ) -> Result<Decisions<F>> {
        let Self { settings, fingerprints, ranks, evidence, excluded, leave, .. } = self;
        let evidence = evidence.map(EvidenceWriter::finish).transpose()?;
        let evidence: Option<&EvidenceFile> = evidence.as_ref();
        let stored = match against {
            Some((index, own)) => {
                let search = Search { index, own, evidence, settings: &settings };
                search.run(&fingerprints, &excluded, progress)?
            }
            None => Stored::default(),
        };
        let out: &(dyn Fn(u32) -> bool + Sync) =
            &|position| stored.holds(position) || excluded.holds(position);
        let some_out = stored.len() > 0 || !excluded.is_empty();
        let order = best_first(&ranks, some_out.then_some(out));
        drop(ranks);
        let labels = if let Some(documents) = leave {
            let (fingerprints, settings) = (&fingerprints[..], &settings);
            let target = Target { fingerprints, evidence, settings, progress };
            target.labelled(order.as_deref(), documents)?
        } else {
            let all = (order.as_deref(), u32::MAX);
            labelled(&fingerprints, evidence, &settings, all, progress)?
        };
        drop(order);
        Decisions::new(fingerprints, labels, stored, (evidence, settings.verification), progress)
    }
}

impl<F: Fingerprint, R: Ord + Sync> Dedup<F, R> {
    /// Decides like [`finish`](Self::finish), after documents that are always kept.
    ///
    /// `kept` yields their keys, fingerprints and evidence, in the order in which they were kept.
    /// They precede all pushed documents, regardless of rank, and have no decision: a duplicate of
    /// one of them is [`Decision::Stored`](super::Decision::Stored). Also returns the evidence of
    /// the documents by position; `None` if nothing is verified.
    pub(super) fn finish_behind(
        self,
        kept: impl Iterator<Item = Result<(Vec<u8>, F, Vec<u8>)>>,
        progress: &dyn Progress,
    ) -> Result<(Decisions<F>, Option<EvidenceFile>)> {
        let Self { settings, mut fingerprints, ranks, mut evidence, excluded, leave, .. } = self;
        if leave.is_some() {
            let reason = "documents that come later would change what is left".to_owned();
            return Err(Error::InvalidOption { name: "leave_at_least", reason });
        }
        let own = fingerprints.len();
        let mut keys = Vec::new();
        for document in kept {
            let (key, fingerprint, proof) = document?;
            keys.push(key);
            fingerprints.push(fingerprint);
            if let Some(writer) = &mut evidence {
                writer.push(&proof)?;
            }
        }
        let evidence = evidence.map(EvidenceWriter::finish).transpose()?;
        let out: &(dyn Fn(u32) -> bool + Sync) = &|position| excluded.holds(position);
        let ranked = best_first(&ranks, Some(out)).expect("exclusion makes an order");
        drop(ranks);
        let first = u32::try_from(own).expect("positions have 32 bits");
        let order: Vec<u32> = (first..).take(keys.len()).chain(ranked).collect();
        let Labelled { mut labels, similarities } =
            labelled(&fingerprints, evidence.as_ref(), &settings, (Some(&order), first), progress)?;
        drop(order);
        let of_kept = Behind { first, keys: &keys, fingerprints: &fingerprints };
        let verified = (evidence.as_ref(), settings.verification);
        labels.truncate(own);
        let stored = of_kept.take_out(&mut labels, &similarities, verified, progress)?;
        fingerprints.truncate(own);
        let labelled = Labelled { labels, similarities };
        let decisions = Decisions::new(fingerprints, labelled, stored, verified, progress)?;
        Ok((decisions, evidence))
    }
}

/// Documents that are always kept; their positions follow those of the pushed ones.
struct Behind<'a, F> {
    /// Position of the first of them.
    first: u32,
    keys: &'a [Vec<u8>],
    fingerprints: &'a [F],
}

impl<F: Fingerprint> Behind<'_, F> {
    /// Finds the documents that belong to one of these, and removes them from all groups.
    fn take_out(
        &self,
        labels: &mut [u32],
        similarities: &Similarities,
        (evidence, verification): (Option<&EvidenceFile>, Verification),
        progress: &dyn Progress,
    ) -> Result<Stored> {
        let mut stored = Stored::default();
        for (label, position) in labels.iter_mut().zip(0..) {
            let Some(at) = label.checked_sub(self.first) else { continue };
            let (a, b) = (position as usize, *label as usize);
            let distance = self.fingerprints[a].distance(self.fingerprints[b]);
            let known = similarities.get(position);
            let similarity = match evidence {
                Some(evidence) if known.is_none() => {
                    evidence.check_while(measuring(verification), (distance, a, b), progress)?
                }
                Some(_) => known,
                None => None,
            };
            let key = &self.keys[at as usize];
            stored.push(position, (key, distance, similarity));
            *label = position;
        }
        Ok(stored)
    }
}

#[cfg(test)]
mod tests;
