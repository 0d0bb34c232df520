//! Joins over an index: near fingerprints become pairs and groups of documents.

use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use super::diameter::{Diameter, diameter};
use super::directory::Directory;
use super::pairing::{Documents, Pairing, Side, Sink};
use super::postings::{Held, Postings};
use super::{JoinOptions, Pair, checked, join, join_sources, source};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::index::{Checker, Index, Reader, check_distance};
use crate::progress::{self, Progress};
use crate::verify::Nearness;

/// Fingerprints whose documents are looked at by one task.
const EQUAL_CHUNK: usize = 1 << 12;

/// Two documents whose fingerprints lie within the distance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DocumentPair<'a> {
    /// The smaller key; across two indexes that of the first one.
    pub a: &'a [u8],
    /// The larger key; across two indexes that of the other one.
    pub b: &'a [u8],
    /// How many bits their fingerprints differ.
    pub distance: u32,
    /// How much they are like each other, where a check was asked for.
    pub similarity: Option<f64>,
}

/// Documents that are linked by near-duplicates, directly or through others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    /// Keys of its two or more documents, rising.
    pub keys: Vec<Vec<u8>>,
    /// The largest distance between two of its fingerprints.
    pub diameter: Diameter,
}

/// What is called with every pair.
pub(super) type Visit<'a> = dyn FnMut(DocumentPair<'_>) -> Result<()> + Send + 'a;

impl<F: Fingerprint> Index<F> {
    /// Visits all pairs of near documents, each once.
    ///
    /// As [`Reader::pairs`], over the present state.
    ///
    /// # Errors
    ///
    /// As [`Reader::pairs`].
    pub fn pairs(
        &self,
        near: impl Into<Nearness>,
        progress: &dyn Progress,
        visit: &mut Visit<'_>,
    ) -> Result<u64> {
        self.reader()?.pairs(near, progress, visit)
    }

    /// Groups documents that are linked by near-duplicates.
    ///
    /// As [`Reader::clusters`], over the present state.
    ///
    /// # Errors
    ///
    /// As [`Reader::clusters`].
    pub fn clusters(
        &self,
        near: impl Into<Nearness>,
        progress: &dyn Progress,
    ) -> Result<Vec<Cluster>> {
        self.reader()?.clusters(near, progress)
    }
}

impl<F: Fingerprint> Reader<F> {
    /// Visits all pairs of near documents, each once, and counts them.
    ///
    /// `near` is a distance, or a [`Nearness`] with a check of the stored features that pairs
    /// have to pass, or with a bound of memory. Pairs come in no particular order. Within that
    /// bound, fingerprints and keys are held in memory: about forty bytes and the key for each
    /// document at 64 bits. Otherwise the postings are read once for every part of the join, and
    /// keys are read as pairs are found. Documents that share a fingerprint are paired too, so a
    /// million copies of a page are half a trillion pairs; clusters tell the same in a million
    /// keys.
    ///
    /// # Errors
    ///
    /// [`InvalidDistance`](crate::Error::InvalidDistance),
    /// [`Cancelled`](crate::Error::Cancelled), what `visit` returns, and damage or failures of
    /// the store; with a check also [`NoFeatureSets`](crate::Error::NoFeatureSets),
    /// [`NoFeatureSet`](crate::Error::NoFeatureSet) and
    /// [`InvalidOption`](crate::Error::InvalidOption) as [`Reader::search`].
    pub fn pairs(
        &self,
        near: impl Into<Nearness>,
        progress: &dyn Progress,
        visit: &mut Visit<'_>,
    ) -> Result<u64> {
        let Nearness { distance, verification, memory, .. } = near.into();
        check_distance::<F>(distance)?;
        let checker = Checker::new(self.snapshot(), self.header(), verification)?;
        let postings = Postings::new(self, progress);
        let held = self.held(&postings, memory)?;
        let sink = Mutex::new(Sink::new(visit, true));
        let side = Side { documents: Documents::of(self, held.as_ref()), checker };
        let pairing = Pairing { ours: &side, theirs: &side, sink: &sink };
        if let Some(held) = &held {
            progress.begin("pairing equal fingerprints", Some(held.fingerprints.len() as u64));
            let chunks = held.fingerprints.par_chunks(EQUAL_CHUNK).enumerate();
            chunks.try_for_each(|(chunk, fingerprints)| {
                progress::check(progress)?;
                for (at, &fingerprint) in (chunk * EQUAL_CHUNK..).zip(fingerprints) {
                    if held.documents_at(at).len() > 1 {
                        pairing.equal(fingerprint, progress)?;
                    }
                }
                progress.advance(fingerprints.len() as u64);
                Ok(())
            })?;
            let near = |pairs: &[Pair<F>]| pairing.near(pairs);
            join([&held.fingerprints], JoinOptions::new(distance), progress, &near)?;
        } else {
            progress.begin("pairing equal fingerprints", Some(self.len()));
            postings.ranges(|range| {
                let mut last = None;
                let mut repeated = None;
                range.each(true, |fingerprint, _| {
                    if last != Some(fingerprint) {
                        last = Some(fingerprint);
                        repeated = None;
                    } else if repeated.is_none() {
                        repeated = last;
                        pairing.equal(fingerprint, progress)?;
                    }
                    Ok(true)
                })
            })?;
            let options = JoinOptions::new(distance).memory(memory);
            let near = |pairs: &[Pair<F>]| pairing.near(pairs);
            join_sources([&postings], options, progress, &near)?;
        }
        let count = sink.lock().unwrap_or_else(PoisonError::into_inner).count();
        Ok(count)
    }

    /// Reads all documents if they leave room for the join.
    pub(super) fn held(&self, postings: &Postings<'_>, memory: usize) -> Result<Option<Held<F>>> {
        let documents = usize::try_from(self.len()).unwrap_or(usize::MAX);
        let joining = documents.saturating_mul(2 * F::BYTES);
        match memory.checked_sub(joining) {
            Some(left) if u32::try_from(documents).is_ok() => Held::read(postings, left),
            _ => Ok(None),
        }
    }

    /// Groups documents that are linked by near-duplicates, largest group first.
    ///
    /// Links chain: the ends of a group may be farther apart than the distance, unless `near`
    /// asks for a check and for [`Linkage::Representative`](super::Linkage::Representative),
    /// whose representatives are the smallest keys. Groups of equal size come by their first
    /// key; documents without a near-duplicate are in none. Memory grows with the distinct
    /// fingerprints and with the keys in groups; with a check it grows with all documents, some
    /// 80 bytes and the key for each.
    ///
    /// # Errors
    ///
    /// As [`Reader::pairs`].
    pub fn clusters(
        &self,
        near: impl Into<Nearness>,
        progress: &dyn Progress,
    ) -> Result<Vec<Cluster>> {
        let near = near.into();
        check_distance::<F>(near.distance)?;
        let checker = Checker::new(self.snapshot(), self.header(), near.verification)?;
        let mut clusters = match checker {
            None => self.linked(near.distance, near.memory, progress)?,
            Some(checker) => checked::clusters(self, checker, near, progress)?,
        };
        clusters.sort_unstable_by(|a, b| {
            b.keys.len().cmp(&a.keys.len()).then_with(|| a.keys.cmp(&b.keys))
        });
        Ok(clusters)
    }

    /// Groups what chains of near fingerprints connect, in no order.
    fn linked(
        &self,
        distance: u32,
        memory: usize,
        progress: &dyn Progress,
    ) -> Result<Vec<Cluster>> {
        let postings = Postings::new(self, progress);
        if let Some(held) = self.held(&postings, memory)? {
            let documents = Documents::Held(&held, Directory::new(&held.fingerprints));
            return groups(&held.fingerprints, &documents, distance, progress);
        }
        progress.begin("reading fingerprints", Some(self.len()));
        let fingerprints: Vec<F> = source::load(&postings)?;
        groups(&fingerprints, &Documents::Stored(self), distance, progress)
    }
}

/// Groups the documents of near fingerprints.
fn groups<F: Fingerprint>(
    fingerprints: &[F],
    documents: &Documents<'_, F>,
    distance: u32,
    progress: &dyn Progress,
) -> Result<Vec<Cluster>> {
    let leaders = super::clusters(fingerprints, distance, progress)?;
    let mut members: Vec<(u32, F)> =
        leaders.into_iter().zip(fingerprints.iter().copied()).collect();
    members.par_sort_unstable();
    let groups: Vec<&[(u32, F)]> = members.chunk_by(|a, b| a.0 == b.0).collect();
    progress.begin("collecting groups", Some(groups.len() as u64));
    let clusters = groups.into_par_iter().map(|group| {
        progress::check(progress)?;
        progress.advance(1);
        let mut keys = Vec::new();
        for &(_, fingerprint) in group {
            documents.each(fingerprint, |key| keys.push(key.to_vec()))?;
        }
        if keys.len() < 2 {
            return Ok(None);
        }
        keys.sort_unstable();
        let group: Vec<F> = group.iter().map(|&(_, fingerprint)| fingerprint).collect();
        Ok(Some(Cluster { keys, diameter: diameter(&group) }))
    });
    clusters.filter_map(Result::transpose).collect()
}
