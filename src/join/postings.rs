//! Postings: reads the stored fingerprints and their documents on several threads.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use super::digits::Digits;
use super::directory::Directory;
use super::source::{CHUNK, Source};
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::index::Reader;
use crate::progress::{self, Progress};
use crate::store::{Family, Snapshot, keys};

/// Smaller indexes are read with one cursor.
const RANGES_MIN: u64 = 1 << 16;
/// Leading bits that divide a larger index into ranges.
const RANGE_BITS: u32 = 6;
/// Bytes that a thread reads before it adds them to the shared total.
const ACCOUNT_EVERY: usize = 16 << 10;
/// Postings between two progress reports.
const REPORT_EVERY: u64 = 1 << 14;

/// All postings of a snapshot.
pub(super) struct Postings<'a> {
    snapshot: &'a Snapshot,
    documents: u64,
    progress: &'a dyn Progress,
}

impl<'a> Postings<'a> {
    pub(super) fn new<F: Fingerprint>(reader: &'a Reader<F>, progress: &'a dyn Progress) -> Self {
        Self { snapshot: reader.snapshot(), documents: reader.len(), progress }
    }

    /// Returns the number of leading bits that divide the postings into ranges.
    fn bits(&self) -> u32 {
        if self.documents < RANGES_MIN { 0 } else { RANGE_BITS }
    }

    /// Calls `visit` with each range; a range is all fingerprints with the same leading bits.
    pub(super) fn ranges<T: Send>(
        &self,
        visit: impl Fn(Range<'_>) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let bits = self.bits();
        let ranges = (0..1_u32 << bits).into_par_iter().with_max_len(1);
        ranges.map(|prefix| visit(Range { postings: self, prefix, bits })).collect()
    }
}

/// The postings whose fingerprints have a prefix.
pub(super) struct Range<'a> {
    postings: &'a Postings<'a>,
    prefix: u32,
    bits: u32,
}

impl Range<'_> {
    /// Calls `visit` with the fingerprint and key of each document, ascending, until it returns
    /// false.
    ///
    /// Reports progress if `report` is set.
    pub(super) fn each<F: Fingerprint>(
        &self,
        report: bool,
        mut visit: impl FnMut(F, &[u8]) -> Result<bool>,
    ) -> Result<()> {
        let progress = self.postings.progress;
        progress::check(progress)?;
        let mut cursor = self.postings.snapshot.sweep(Family::Postings)?;
        if self.prefix > 0 {
            let first = F::truncate(u128::from(self.prefix)) << (F::BITS - self.bits);
            cursor.seek(first.to_bytes().as_ref());
        }
        let mut read = 0;
        let mut last = F::ZERO;
        while let Some((key, _)) = cursor.entry()? {
            let (fingerprint, document) = keys::split_posting::<F>(key)?;
            if fingerprint < last {
                return Err(Error::corrupt("postings", "keys are not ascending"));
            }
            last = fingerprint;
            let outside = self.bits > 0
                && (fingerprint >> (F::BITS - self.bits)).widen() != u128::from(self.prefix);
            if outside || !visit(fingerprint, document)? {
                break;
            }
            read += 1;
            if u64::is_multiple_of(read, REPORT_EVERY) {
                progress::check(progress)?;
                if report {
                    progress.advance(REPORT_EVERY);
                }
            }
            cursor.next();
        }
        if report {
            progress.advance(read % REPORT_EVERY);
        }
        Ok(())
    }
}

impl<F: Fingerprint> Source<F> for Postings<'_> {
    fn len(&self) -> usize {
        usize::try_from(self.documents).unwrap_or(usize::MAX)
    }

    fn scan(&self, visit: &(dyn Fn(&[F]) -> Result<()> + Sync)) -> Result<()> {
        self.ranges(|range| {
            let mut chunk: Vec<F> = Vec::with_capacity(CHUNK);
            let mut last = None;
            range.each(false, |fingerprint, _| {
                if last != Some(fingerprint) {
                    last = Some(fingerprint);
                    chunk.push(fingerprint);
                    if chunk.len() == CHUNK {
                        visit(&chunk)?;
                        chunk.clear();
                    }
                }
                Ok(true)
            })?;
            visit(&chunk)
        })?;
        Ok(())
    }
}

/// All documents by fingerprint, in memory.
pub(super) struct Held<F> {
    /// Distinct fingerprints, ascending.
    pub(super) fingerprints: Vec<F>,
    ranges: Vec<HeldRange>,
    bits: u32,
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

impl<F: Fingerprint> Held<F> {
    /// Reads all documents; returns `None` if they need more than `memory` bytes.
    pub(super) fn read(postings: &Postings<'_>, memory: usize) -> Result<Option<Self>> {
        let taken = AtomicUsize::new(0);
        // Vectors grow by doubling, so on average they allocate half as much again as they hold.
        let take = |bytes: usize| {
            let bytes = bytes + bytes / 2;
            taken.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) <= memory
        };
        let progress = postings.progress;
        progress.begin("reading documents", Some(postings.documents));
        let ranges = postings.ranges(|range| {
            let mut fingerprints: Vec<F> = Vec::new();
            let mut held = HeldRange::default();
            let mut whole = true;
            let mut unaccounted = 0;
            range.each(true, |fingerprint, key| {
                let new = fingerprints.last() != Some(&fingerprint);
                if new {
                    fingerprints.push(fingerprint);
                    held.documents.push(0);
                }
                held.keys.extend_from_slice(key);
                unaccounted += key.len() + size_of::<u32>() + if new { F::BYTES + 4 } else { 0 };
                if unaccounted > ACCOUNT_EVERY {
                    whole = take(std::mem::take(&mut unaccounted));
                }
                match (u32::try_from(held.keys.len()), u32::try_from(held.ends.len() + 1)) {
                    (Ok(end), Ok(documents)) => {
                        held.ends.push(end);
                        let last = held.documents.last_mut();
                        *last.expect("pushed with the fingerprint") = documents;
                    }
                    _ => whole = false,
                }
                Ok(whole)
            })?;
            whole &= take(unaccounted);
            Ok(whole.then_some((fingerprints, held)))
        })?;
        let Some(ranges) = ranges.into_iter().collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let count = ranges.iter().map(|(fingerprints, _)| fingerprints.len()).sum();
        let mut all = Self {
            fingerprints: Vec::with_capacity(count),
            ranges: Vec::with_capacity(ranges.len()),
            bits: postings.bits(),
        };
        for (fingerprints, range) in ranges {
            all.ranges.push(HeldRange { before: all.fingerprints.len(), ..range });
            all.fingerprints.extend(fingerprints);
        }
        Ok(Some(all))
    }

    /// Returns the keys of a fingerprint's documents, ascending.
    pub(super) fn documents(
        &self,
        directory: &Directory<'_, F>,
        fingerprint: F,
    ) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        self.documents_at(directory.place(fingerprint) as usize)
    }

    /// Returns the keys of the documents of the fingerprint at a position, ascending.
    pub(super) fn documents_at(
        &self,
        position: usize,
    ) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        let prefix = match self.bits {
            0 => 0,
            bits => Digits::of_span(0, bits).of(self.fingerprints[position]),
        };
        let range = &self.ranges[prefix];
        let local = position - range.before;
        let start = local.checked_sub(1).map_or(0, |before| range.documents[before] as usize);
        (start..range.documents[local] as usize).map(move |document| {
            let end = |at: usize| range.ends[at] as usize;
            let start = document.checked_sub(1).map_or(0, end);
            &range.keys[start..end(document)]
        })
    }
}
