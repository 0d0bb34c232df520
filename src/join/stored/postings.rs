//! Postings: reads the stored fingerprints and their documents on several threads.

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::index::Reader;
use crate::progress::{self, Progress};
use crate::store::{Cursor, Family, Snapshot, keys};

/// Smaller indexes are read with one cursor.
const RANGES_MIN: u64 = 1 << 16;
/// Leading bits that divide a larger index into ranges.
const RANGE_BITS: u32 = 6;
/// Postings between two progress reports.
const REPORT_EVERY: u64 = 1 << 14;
/// Documents that are passed until a fingerprint is sought; a seek takes as long as some tens.
const STEPS: u32 = 64;
/// Documents for each fingerprint that is looked up, from which reading ahead is a waste.
const SPARSE: u64 = 1 << 12;

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

    /// Returns the number of documents.
    pub(super) fn documents(&self) -> u64 {
        self.documents
    }

    pub(super) fn progress(&self) -> &'a dyn Progress {
        self.progress
    }

    /// Prepares to read the documents of about `count` ascending fingerprints.
    pub(super) fn lookup(&self, count: usize) -> Result<Lookup<'a>> {
        let sparse = self.documents / (count as u64).max(1) > SPARSE;
        let cursor = if sparse {
            self.snapshot.pass(Family::Postings)?
        } else {
            self.snapshot.sweep(Family::Postings)?
        };
        Ok(Lookup { cursor, placed: false, progress: self.progress, read: 0 })
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

impl Postings<'_> {
    /// Visits fingerprint and key of every document, by ascending fingerprint and then key.
    pub(super) fn each<F: Fingerprint>(
        &self,
        visit: impl FnMut(F, &[u8]) -> Result<bool>,
    ) -> Result<()> {
        Range { postings: self, prefix: 0, bits: 0 }.each(visit)
    }

    /// Returns all fingerprints, ascending, and the positions of those of several documents.
    pub(super) fn distinct<F: Fingerprint>(&self) -> Result<(Vec<F>, Vec<usize>)> {
        let ranges = self.ranges(|range| {
            let (mut fingerprints, mut repeated) = (Vec::new(), Vec::new());
            range.each(|fingerprint: F, _| {
                if fingerprints.last() != Some(&fingerprint) {
                    fingerprints.push(fingerprint);
                } else if repeated.last() != Some(&(fingerprints.len() - 1)) {
                    repeated.push(fingerprints.len() - 1);
                }
                Ok(true)
            })?;
            Ok((fingerprints, repeated))
        })?;
        let (mut all, mut of_several) = (Vec::new(), Vec::new());
        for (fingerprints, repeated) in ranges {
            of_several.extend(repeated.into_iter().map(|at| all.len() + at));
            all.extend(fingerprints);
        }
        Ok((all, of_several))
    }

    /// Calls `visit` with the keys of each fingerprint that several documents have.
    pub(super) fn repeated<F: Fingerprint>(
        &self,
        visit: &(dyn Fn(&Keys) -> Result<()> + Sync),
    ) -> Result<()> {
        let pass = |keys: &Keys| if keys.ends.len() > 1 { visit(keys) } else { Ok(()) };
        self.ranges(|range| {
            let mut keys = Keys::default();
            let mut last: Option<F> = None;
            range.each(|fingerprint, key| {
                if last.replace(fingerprint) != Some(fingerprint) {
                    pass(&keys)?;
                    keys.clear();
                }
                keys.push(key);
                Ok(true)
            })?;
            pass(&keys)
        })?;
        Ok(())
    }
}

/// The keys of one fingerprint's documents.
#[derive(Default)]
pub(super) struct Keys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Keys {
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(&start, &end)| &self.bytes[start..end])
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
    pub(super) fn each<F: Fingerprint>(
        &self,
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
        cursor.each(|key, _| {
            let (fingerprint, document) = keys::split_posting::<F>(key)?;
            if fingerprint < last {
                return Err(Error::corrupt("postings", "keys are not ascending"));
            }
            last = fingerprint;
            let outside = self.bits > 0
                && (fingerprint >> (F::BITS - self.bits)).widen() != u128::from(self.prefix);
            if outside || !visit(fingerprint, document)? {
                return Ok(false);
            }
            read += 1;
            if u64::is_multiple_of(read, REPORT_EVERY) {
                progress::check(progress)?;
                progress.advance(REPORT_EVERY);
            }
            Ok(true)
        })?;
        progress.advance(read % REPORT_EVERY);
        Ok(())
    }
}

/// Reads the documents of ascending fingerprints.
pub(super) struct Lookup<'a> {
    cursor: Cursor<'a>,
    /// Whether the cursor was moved to a fingerprint.
    placed: bool,
    progress: &'a dyn Progress,
    read: u64,
}

impl Lookup<'_> {
    /// Calls `visit` with the keys of a fingerprint's documents, ascending, until it returns false.
    ///
    /// Returns the number of visited documents. The fingerprint must be above that of the last
    /// call.
    pub(super) fn each<F: Fingerprint>(
        &mut self,
        fingerprint: F,
        mut visit: impl FnMut(&[u8]) -> bool,
    ) -> Result<u64> {
        if self.read.is_multiple_of(REPORT_EVERY) {
            progress::check(self.progress)?;
        }
        self.read += 1;
        let first = fingerprint.to_bytes();
        if !std::mem::replace(&mut self.placed, true) {
            self.cursor.seek(first.as_ref());
        }
        let (mut passed, mut visited) = (0, 0);
        while let Some((key, _)) = self.cursor.entry()? {
            let (found, document) = keys::split_posting::<F>(key)?;
            if found < fingerprint {
                passed += 1;
                if passed == STEPS {
                    self.cursor.seek(first.as_ref());
                } else {
                    self.cursor.next();
                }
                continue;
            }
            if found > fingerprint {
                break;
            }
            visited += 1;
            if !visit(document) {
                break;
            }
            self.cursor.next();
        }
        Ok(visited)
    }
}
