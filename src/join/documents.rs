//! Joins over an index: near fingerprints become pairs and groups of documents.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::diameter::{Diameter, diameter};
use super::{Pair, checked, self_join};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::index::{Checker, Index, Reader, check_distance, each_document};
use crate::progress::{self, Progress};
use crate::store::{Family, View, keys};
use crate::verify::Nearness;

/// Two documents within the distance, the smaller key first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DocumentPair<'a> {
    /// The smaller key.
    pub a: &'a [u8],
    /// The larger key.
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
type Visit<'a> = dyn FnMut(DocumentPair<'_>) -> Result<()> + Send + 'a;

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
    /// have to pass. Pairs come in no particular order. Fingerprints are compared in memory: about thirty
    /// bytes for each distinct one at 64 bits. Documents that share a fingerprint are paired
    /// too, so a million copies of a page are half a trillion pairs; clusters tell the same in
    /// a million keys.
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
        let Nearness { distance, verification, .. } = near.into();
        check_distance::<F>(distance)?;
        let checker = Checker::new(self.snapshot(), self.header(), verification)?;
        let (fingerprints, repeated) = self.fingerprints(progress)?;
        let sink = Mutex::new(Sink { visit, count: 0 });
        let found = |found: &[DocumentPair<'_>]| {
            sink.lock().unwrap_or_else(PoisonError::into_inner).pairs(found)
        };
        progress.begin("pairing equal fingerprints", Some(repeated.len() as u64));
        for fingerprint in repeated {
            progress::check(progress)?;
            let documents =
                self.with_view(|view| candidates(view, fingerprint, checker.as_ref()))?;
            for (at, a) in documents.iter().enumerate() {
                let later = documents.get(at + 1..).unwrap_or_default();
                found(&passing(std::slice::from_ref(a), later, 0, checker.as_ref())?)?;
                if at % 1024 == 1023 {
                    progress::check(progress)?;
                }
            }
            progress.advance(1);
        }
        self_join(&fingerprints, distance, progress, &|pairs: &[Pair<F>]| {
            self.with_view(|view| {
                for pair in pairs {
                    let ours = candidates(view, pair.a, checker.as_ref())?;
                    let theirs = candidates(view, pair.b, checker.as_ref())?;
                    found(&passing(&ours, &theirs, pair.distance, checker.as_ref())?)?;
                }
                Ok(())
            })
        })?;
        let count = sink.lock().unwrap_or_else(PoisonError::into_inner).count;
        Ok(count)
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
            None => self.linked(near.distance, progress)?,
            Some(checker) => checked::clusters(self, checker, near, progress)?,
        };
        clusters.sort_unstable_by(|a, b| {
            b.keys.len().cmp(&a.keys.len()).then_with(|| a.keys.cmp(&b.keys))
        });
        Ok(clusters)
    }

    /// Groups what chains of near fingerprints connect, in no order.
    fn linked(&self, distance: u32, progress: &dyn Progress) -> Result<Vec<Cluster>> {
        let (fingerprints, repeated) = self.fingerprints(progress)?;
        let leaders = super::clusters(&fingerprints, distance, progress)?;
        let mut groups: HashMap<u32, Vec<F>> = HashMap::new();
        for (fingerprint, leader) in fingerprints.iter().zip(leaders) {
            groups.entry(leader).or_default().push(*fingerprint);
        }
        groups.retain(|_, group| match group.as_slice() {
            [alone] => repeated.binary_search(alone).is_ok(),
            _ => true,
        });
        progress.begin("collecting groups", Some(groups.len() as u64));
        let mut clusters = Vec::with_capacity(groups.len());
        for group in groups.into_values() {
            progress::check(progress)?;
            let mut keys = Vec::new();
            let diameter = diameter(&group);
            self.with_view(|view| {
                for fingerprint in group {
                    keys.append(&mut documents_of(view, fingerprint)?);
                }
                Ok(())
            })?;
            keys.sort_unstable();
            clusters.push(Cluster { keys, diameter });
            progress.advance(1);
        }
        Ok(clusters)
    }

    /// Reads the distinct fingerprints, rising, and those that several documents share.
    fn fingerprints(&self, progress: &dyn Progress) -> Result<(Vec<F>, Vec<F>)> {
        const REPORT_EVERY: u64 = 1 << 16;
        progress.begin("reading fingerprints", Some(self.len()));
        let (mut all, mut repeated): (Vec<F>, Vec<F>) = (Vec::new(), Vec::new());
        let mut cursor = self.snapshot().sweep(Family::Postings)?;
        let mut read = 0;
        while let Some((key, _)) = cursor.entry()? {
            let (fingerprint, _) = keys::split_posting::<F>(key)?;
            if all.last() != Some(&fingerprint) {
                all.push(fingerprint);
            } else if repeated.last() != Some(&fingerprint) {
                repeated.push(fingerprint);
            }
            read += 1;
            if u64::is_multiple_of(read, REPORT_EVERY) {
                progress.advance(REPORT_EVERY);
                progress::check(progress)?;
            }
            cursor.next();
        }
        Ok((all, repeated))
    }
}

/// Where pairs go, from one thread at a time.
struct Sink<'a, 'b> {
    visit: &'a mut Visit<'b>,
    count: u64,
}

impl Sink<'_, '_> {
    fn pairs(&mut self, found: &[DocumentPair<'_>]) -> Result<()> {
        for &DocumentPair { a, b, distance, similarity } in found {
            let (a, b) = if a <= b { (a, b) } else { (b, a) };
            self.count += 1;
            (self.visit)(DocumentPair { a, b, distance, similarity })?;
        }
        Ok(())
    }
}

/// A document that may be one of a pair, with its evidence where there is a check.
struct Candidate {
    key: Vec<u8>,
    evidence: Vec<u8>,
}

/// Documents of a fingerprint, keys rising.
fn candidates<F: Fingerprint>(
    view: &mut View,
    fingerprint: F,
    checker: Option<&Checker<'_>>,
) -> Result<Vec<Candidate>> {
    let with_evidence = |key: Vec<u8>| {
        let evidence = match checker {
            Some(checker) => checker.evidence::<F>(&key)?,
            None => Vec::new(),
        };
        Ok(Candidate { key, evidence })
    };
    documents_of(view, fingerprint)?.into_iter().map(with_evidence).collect()
}

/// Pairs every document of one side with every one of the other that it passes with.
fn passing<'a>(
    ours: &'a [Candidate],
    theirs: &'a [Candidate],
    distance: u32,
    checker: Option<&Checker<'_>>,
) -> Result<Vec<DocumentPair<'a>>> {
    let mut found = Vec::new();
    for a in ours {
        for b in theirs {
            let similarity = match checker {
                None => None,
                Some(checker) => {
                    match checker.compare(distance, &a.evidence, &b.evidence, &b.key)? {
                        Some(similarity) => Some(similarity),
                        None => continue,
                    }
                }
            };
            found.push(DocumentPair { a: &a.key, b: &b.key, distance, similarity });
        }
    }
    Ok(found)
}

/// Keys of a fingerprint's documents, rising.
fn documents_of<F: Fingerprint>(view: &mut View, fingerprint: F) -> Result<Vec<Vec<u8>>> {
    let mut documents = Vec::new();
    each_document(view, fingerprint, |key| {
        documents.push(key.to_vec());
        true
    })?;
    Ok(documents)
}
