//! Pairing: converts pairs of fingerprints into pairs of documents.

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

use super::Pair;
use super::directory::Directory;
use super::documents::{DocumentPair, Visit};
use super::postings::Held;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::index::{Checker, Reader, each_document};
use crate::progress::{self, Progress};

/// Number of fingerprint pairs that are converted at once.
const TOGETHER: usize = 256;
/// Number of document pairs above which the visitor is called early.
const MANY: usize = 1 << 14;

/// Passes pairs to the visitor, from one thread at a time.
pub(super) struct Sink<'b> {
    visit: &'b mut Visit<'b>,
    /// Whether both documents are in one index, so that the smaller key is `a`.
    one_index: bool,
    count: u64,
}

impl<'b> Sink<'b> {
    pub(super) fn new(visit: &'b mut Visit<'b>, one_index: bool) -> Self {
        Self { visit, one_index, count: 0 }
    }

    /// Returns the number of document pairs so far.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    fn pairs(&mut self, found: &[DocumentPair<'_>]) -> Result<()> {
        for &DocumentPair { a, b, distance, similarity } in found {
            let (a, b) = if a <= b || !self.one_index { (a, b) } else { (b, a) };
            self.count += 1;
            (self.visit)(DocumentPair { a, b, distance, similarity })?;
        }
        Ok(())
    }
}

/// Where the documents of a fingerprint are looked up: in memory or in the store.
pub(super) enum Documents<'a, F> {
    Held(&'a Held<F>, Directory<'a, F>),
    Stored(&'a Reader<F>),
}

impl<'a, F: Fingerprint> Documents<'a, F> {
    /// Looks documents up in memory if they are held there.
    pub(super) fn of(reader: &'a Reader<F>, held: Option<&'a Held<F>>) -> Self {
        match held {
            Some(held) => Self::Held(held, Directory::new(&held.fingerprints)),
            None => Self::Stored(reader),
        }
    }

    /// Calls `visit` with the keys of the documents of a fingerprint, ascending.
    pub(super) fn each(&self, fingerprint: F, mut visit: impl FnMut(Cow<'a, [u8]>)) -> Result<()> {
        match self {
            Self::Held(held, directory) => {
                let held: &'a Held<F> = held;
                held.documents(directory, fingerprint).for_each(|key| visit(Cow::Borrowed(key)));
                Ok(())
            }
            Self::Stored(reader) => reader.with_view(|view| {
                each_document(view, fingerprint, |key| {
                    visit(Cow::Owned(key.to_vec()));
                    true
                })
            }),
        }
    }
}

/// A document of a pair, with its evidence if there is a verification.
struct Candidate<'a> {
    key: Cow<'a, [u8]>,
    evidence: Vec<u8>,
}

/// The documents of one side of a join, and their verification.
pub(super) struct Side<'a, F> {
    pub(super) documents: Documents<'a, F>,
    pub(super) checker: Option<Checker<'a>>,
}

impl<'a, F: Fingerprint> Side<'a, F> {
    /// Returns the documents of a fingerprint, keys ascending.
    fn candidates(&self, fingerprint: F) -> Result<Vec<Candidate<'a>>> {
        let mut candidates = Vec::new();
        self.documents.each(fingerprint, |key| {
            candidates.push(Candidate { key, evidence: Vec::new() });
        })?;
        if let Some(checker) = &self.checker {
            for candidate in &mut candidates {
                candidate.evidence = checker.evidence::<F>(&candidate.key)?;
            }
        }
        Ok(candidates)
    }
}

/// Converts pairs of fingerprints into pairs of documents.
///
/// Both sides are equal if the documents are in one index.
pub(super) struct Pairing<'a, 'b, F> {
    pub(super) ours: &'a Side<'a, F>,
    pub(super) theirs: &'a Side<'a, F>,
    pub(super) sink: &'a Mutex<Sink<'b>>,
}

impl<F: Fingerprint> Pairing<'_, '_, F> {
    /// Pairs the documents of one fingerprint.
    pub(super) fn equal(&self, fingerprint: F, progress: &dyn Progress) -> Result<()> {
        let documents = self.ours.candidates(fingerprint)?;
        for (at, a) in documents.iter().enumerate() {
            let later = &documents[at + 1..];
            let mut found = Vec::new();
            self.pass(std::slice::from_ref(a), later, 0, &mut found)?;
            self.flush(&mut found)?;
            if at % 1024 == 1023 {
                progress::check(progress)?;
            }
        }
        Ok(())
    }

    /// Pairs the documents of near fingerprints.
    pub(super) fn near(&self, pairs: &[Pair<F>]) -> Result<()> {
        for pairs in pairs.chunks(TOGETHER) {
            let sides = |pair: &Pair<F>| {
                Ok((self.ours.candidates(pair.a)?, self.theirs.candidates(pair.b)?, pair.distance))
            };
            let sides: Vec<_> = pairs.iter().map(sides).collect::<Result<_>>()?;
            let mut found = Vec::new();
            for (ours, theirs, distance) in &sides {
                self.pass(ours, theirs, *distance, &mut found)?;
            }
            self.flush(&mut found)?;
        }
        Ok(())
    }

    /// Pairs each document of one side with each of the other that passes the verification.
    fn pass<'c>(
        &self,
        ours: &'c [Candidate<'_>],
        theirs: &'c [Candidate<'_>],
        distance: u32,
        found: &mut Vec<DocumentPair<'c>>,
    ) -> Result<()> {
        for a in ours {
            for b in theirs {
                let similarity = match &self.theirs.checker {
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
            if found.len() > MANY {
                self.flush(found)?;
            }
        }
        Ok(())
    }

    fn flush(&self, found: &mut Vec<DocumentPair<'_>>) -> Result<()> {
        self.sink.lock().unwrap_or_else(PoisonError::into_inner).pairs(found)?;
        found.clear();
        Ok(())
    }
}
