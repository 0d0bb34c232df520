//! Held: documents by fingerprint, in memory.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::postings::Postings;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;

/// Bytes that a thread reads before it adds them to the shared total.
const ACCOUNT_EVERY: usize = 16 << 10;

/// The documents of some fingerprints.
pub(super) struct Held<F> {
    /// Distinct fingerprints, ascending.
    pub(super) fingerprints: Vec<F>,
    ranges: Vec<HeldRange>,
}

/// The documents of one range of fingerprints.
#[derive(Default)]
struct HeldRange {
    /// Number of fingerprints in the ranges before this one.
    before: usize,
    /// For each fingerprint, the end of its documents.
    documents: Vec<u32>,
    /// For each document, the end of its key.
    ends: Vec<u32>,
    keys: Vec<u8>,
}

/// The memory that all threads may take together.
struct Limit {
    taken: AtomicUsize,
    memory: usize,
}

impl Limit {
    fn new(memory: usize) -> Self {
        Self { taken: AtomicUsize::new(0), memory }
    }

    /// Takes some bytes; returns false if the limit is exceeded.
    fn take(&self, bytes: usize) -> bool {
        // Vectors grow by doubling, so on average they allocate half as much again as they hold.
        let bytes = bytes + bytes / 2;
        self.taken.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) <= self.memory
    }
}

/// Adds documents to a range until the limit is exceeded.
struct Filling<'a> {
    range: HeldRange,
    limit: &'a Limit,
    unaccounted: usize,
    whole: bool,
}

impl<'a> Filling<'a> {
    fn new(limit: &'a Limit, before: usize) -> Self {
        let range = HeldRange { before, ..HeldRange::default() };
        Self { range, limit, unaccounted: 0, whole: true }
    }

    /// Starts the documents of the next fingerprint.
    fn next(&mut self, bytes: usize) {
        let end = self.range.documents.last().copied().unwrap_or(0);
        self.range.documents.push(end);
        self.unaccounted += bytes + size_of::<u32>();
    }

    /// Adds a document; returns false if the limit is exceeded.
    fn add(&mut self, key: &[u8]) -> bool {
        let Self { range, limit, .. } = self;
        range.keys.extend_from_slice(key);
        self.unaccounted += key.len() + size_of::<u32>();
        if self.unaccounted > ACCOUNT_EVERY {
            self.whole &= limit.take(std::mem::take(&mut self.unaccounted));
        }
        match (u32::try_from(range.keys.len()), u32::try_from(range.ends.len() + 1)) {
            (Ok(end), Ok(documents)) => {
                range.ends.push(end);
                *range.documents.last_mut().expect("a fingerprint comes first") = documents;
            }
            _ => self.whole = false,
        }
        self.whole
    }

    fn finish(self) -> Option<HeldRange> {
        (self.whole && self.limit.take(self.unaccounted)).then_some(self.range)
    }
}

impl<F: Fingerprint> Held<F> {
    /// Reads all documents; returns `None` if they need more than `memory` bytes.
    pub(super) fn read(postings: &Postings<'_>, memory: usize) -> Result<Option<Self>> {
        let limit = Limit::new(memory);
        postings.progress().begin("reading documents", Some(postings.documents()));
        let ranges = postings.ranges(|range| {
            let mut fingerprints: Vec<F> = Vec::new();
            let mut filling = Filling::new(&limit, 0);
            range.each(|fingerprint, key| {
                if fingerprints.last() != Some(&fingerprint) {
                    fingerprints.push(fingerprint);
                    filling.next(F::BYTES);
                }
                Ok(filling.add(key))
            })?;
            Ok(filling.finish().map(|range| (fingerprints, range)))
        })?;
        let Some(ranges) = ranges.into_iter().collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let count = ranges.iter().map(|(fingerprints, _)| fingerprints.len()).sum();
        let mut all = Self {
            fingerprints: Vec::with_capacity(count),
            ranges: Vec::with_capacity(ranges.len()),
        };
        for (fingerprints, range) in ranges {
            all.ranges.push(HeldRange { before: all.fingerprints.len(), ..range });
            all.fingerprints.extend(fingerprints);
        }
        Ok(Some(all))
    }

    /// Reads the documents of stored fingerprints, which must be distinct and ascending.
    ///
    /// Returns `None` if they need more than `memory` bytes. Uses threads of its own, so a caller
    /// may hold a lock that tasks of the pool wait for.
    pub(super) fn of(
        postings: &Postings<'_>,
        fingerprints: Vec<F>,
        memory: usize,
    ) -> Result<Option<Self>> {
        let limit = Limit::new(memory);
        let share = fingerprints.len().div_ceil(rayon::current_num_threads()).max(1);
        let ranges = on_threads(fingerprints.chunks(share).enumerate(), |(at, part)| {
            let mut filling = Filling::new(&limit, at * share);
            let mut lookup = postings.lookup(fingerprints.len())?;
            for &fingerprint in part {
                filling.next(0);
                if lookup.each(fingerprint, |key| filling.add(key))? == 0 {
                    let missing = "a second read finds fewer documents";
                    return Err(Error::corrupt("postings", missing));
                }
                if !filling.whole {
                    break;
                }
            }
            Ok(filling.finish())
        })?;
        let ranges = ranges.into_iter().collect::<Option<Vec<_>>>();
        Ok(ranges.map(|ranges| Self { fingerprints, ranges }))
    }

    /// Returns the keys of the documents of the fingerprint at a position, ascending.
    pub(super) fn documents_at(
        &self,
        position: usize,
    ) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        let after = self.ranges.partition_point(|range| range.before <= position);
        let range = self.ranges[..after].last().expect("the first range starts at 0");
        let local = position - range.before;
        let start = local.checked_sub(1).map_or(0, |before| range.documents[before] as usize);
        (start..range.documents[local] as usize).map(move |document| {
            let end = |at: usize| range.ends[at] as usize;
            let start = document.checked_sub(1).map_or(0, end);
            &range.keys[start..end(document)]
        })
    }
}

/// The error of a range that exceeds its offsets, whatever memory there is.
pub(super) fn too_many() -> Error {
    Error::InvalidOption {
        name: "distance",
        reason: "documents with equal fingerprints are too many to hold their keys".into(),
    }
}

/// Calls `work` with each part on a thread of its own.
pub(super) fn on_threads<P: Send, T: Send>(
    parts: impl Iterator<Item = P>,
    work: impl Fn(P) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    std::thread::scope(|scope| {
        let work = &work;
        let started: Vec<_> = parts.map(|part| scope.spawn(move || work(part))).collect();
        let end = |thread: std::thread::ScopedJoinHandle<'_, Result<T>>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        started.into_iter().map(end).collect()
    })
}
