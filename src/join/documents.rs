//! Joins over an index: near fingerprints become pairs and groups of documents.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::{Pair, self_join};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::index::{Index, Reader, check_distance, each_document};
use crate::progress::{self, Progress};
use crate::store::{Family, View, keys};

/// Two documents within the distance, the smaller key first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocumentPair<'a> {
    /// The smaller key.
    pub a: &'a [u8],
    /// The larger key.
    pub b: &'a [u8],
    /// How many bits their fingerprints differ.
    pub distance: u32,
}

/// Documents that are linked by near-duplicates, directly or through others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    /// Keys of its two or more documents, rising.
    pub keys: Vec<Vec<u8>>,
}

/// What is called with every pair.
type Visit<'a> = dyn FnMut(DocumentPair<'_>) -> Result<()> + Send + 'a;

impl<F: Fingerprint> Index<F> {
    /// Visits all pairs of documents within the distance, each once.
    ///
    /// As [`Reader::pairs`], over the present state.
    ///
    /// # Errors
    ///
    /// As [`Reader::pairs`].
    pub fn pairs(
        &self,
        distance: u32,
        progress: &dyn Progress,
        visit: &mut Visit<'_>,
    ) -> Result<u64> {
        self.reader()?.pairs(distance, progress, visit)
    }

    /// Groups documents that are linked by near-duplicates.
    ///
    /// As [`Reader::clusters`], over the present state.
    ///
    /// # Errors
    ///
    /// As [`Reader::clusters`].
    pub fn clusters(&self, distance: u32, progress: &dyn Progress) -> Result<Vec<Cluster>> {
        self.reader()?.clusters(distance, progress)
    }
}

impl<F: Fingerprint> Reader<F> {
    /// Visits all pairs of documents within the distance, each once, and counts them.
    ///
    /// Pairs come in no particular order. Fingerprints are compared in memory: about thirty
    /// bytes for each distinct one at 64 bits. Documents that share a fingerprint are paired
    /// too, so a million copies of a page are half a trillion pairs; clusters tell the same in
    /// a million keys.
    ///
    /// # Errors
    ///
    /// [`InvalidDistance`](crate::Error::InvalidDistance),
    /// [`Cancelled`](crate::Error::Cancelled), what `visit` returns, and damage or failures of
    /// the store.
    pub fn pairs(
        &self,
        distance: u32,
        progress: &dyn Progress,
        visit: &mut Visit<'_>,
    ) -> Result<u64> {
        check_distance::<F>(distance)?;
        let (fingerprints, repeated) = self.fingerprints(progress)?;
        let sink = Mutex::new(Sink { visit, count: 0 });
        let lock = || sink.lock().unwrap_or_else(PoisonError::into_inner);
        progress.begin("pairing equal fingerprints", Some(repeated.len() as u64));
        for fingerprint in repeated {
            progress::check(progress)?;
            let documents = self.with_view(|view| documents_of(view, fingerprint))?;
            let mut sink = lock();
            for (at, a) in documents.iter().enumerate() {
                for b in documents.iter().skip(at + 1) {
                    sink.pair(a, b, 0)?;
                }
                if at % 1024 == 1023 {
                    progress::check(progress)?;
                }
            }
            progress.advance(1);
        }
        self_join(&fingerprints, distance, progress, &|pairs: &[Pair<F>]| {
            self.with_view(|view| {
                for pair in pairs {
                    let (ours, theirs) = (documents_of(view, pair.a)?, documents_of(view, pair.b)?);
                    let mut sink = lock();
                    for a in &ours {
                        for b in &theirs {
                            sink.pair(a, b, pair.distance)?;
                        }
                    }
                }
                Ok(())
            })
        })?;
        let count = lock().count;
        Ok(count)
    }

    /// Groups documents that are linked by near-duplicates, largest group first.
    ///
    /// Links chain: the ends of a group may be farther apart than the distance. Groups of equal
    /// size come by their first key; documents without a near-duplicate are in none. Memory
    /// grows with the distinct fingerprints and with the keys in groups.
    ///
    /// # Errors
    ///
    /// As [`Reader::pairs`].
    pub fn clusters(&self, distance: u32, progress: &dyn Progress) -> Result<Vec<Cluster>> {
        check_distance::<F>(distance)?;
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
            self.with_view(|view| {
                for fingerprint in group {
                    keys.append(&mut documents_of(view, fingerprint)?);
                }
                Ok(())
            })?;
            keys.sort_unstable();
            clusters.push(Cluster { keys });
            progress.advance(1);
        }
        clusters.sort_unstable_by(|a, b| {
            b.keys.len().cmp(&a.keys.len()).then_with(|| a.keys.cmp(&b.keys))
        });
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
    fn pair(&mut self, a: &[u8], b: &[u8], distance: u32) -> Result<()> {
        let (a, b) = if a <= b { (a, b) } else { (b, a) };
        self.count += 1;
        (self.visit)(DocumentPair { a, b, distance })
    }
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
