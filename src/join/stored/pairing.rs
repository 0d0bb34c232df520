//! Pairing: converts pairs of fingerprints into pairs of documents.

use std::sync::{Mutex, PoisonError};

use super::documents::{DocumentPair, Visit};
use super::held::Held;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::index::Checker;
use crate::join::Pair;
use crate::join::clusters::Directory;
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

/// The documents of one side of a join, and their verification.
pub(super) struct Side<'a, F> {
    held: &'a Held<F>,
    directory: Directory<'a, F>,
    checker: Option<&'a Checker<'a>>,
}

impl<'a, F: Fingerprint> Side<'a, F> {
    pub(super) fn new(held: &'a Held<F>, checker: Option<&'a Checker<'a>>) -> Self {
        Self { held, directory: Directory::new(&held.fingerprints), checker }
    }

    fn candidates(&self, fingerprint: F) -> Result<Vec<Candidate<'a>>> {
        let place = self.directory.place(fingerprint) as usize;
        candidates::<F>(self.held.documents_at(place), self.checker)
    }
}

/// A document of a pair, with its evidence if there is a verification.
struct Candidate<'a> {
    key: &'a [u8],
    evidence: Vec<u8>,
}

fn candidates<'k, F: Fingerprint>(
    keys: impl Iterator<Item = &'k [u8]>,
    checker: Option<&Checker<'_>>,
) -> Result<Vec<Candidate<'k>>> {
    let candidate = |key: &'k [u8]| {
        let evidence = checker.map(|checker| checker.evidence::<F>(key)).transpose()?;
        Ok(Candidate { key, evidence: evidence.unwrap_or_default() })
    };
    keys.map(candidate).collect()
}

/// Converts pairs of fingerprints into pairs of documents.
pub(super) struct Pairing<'a, 'b> {
    /// The verification of the second document of a pair.
    checker: Option<&'a Checker<'a>>,
    sink: &'a Mutex<Sink<'b>>,
}

impl<'a, 'b> Pairing<'a, 'b> {
    pub(super) fn new(checker: Option<&'a Checker<'a>>, sink: &'a Mutex<Sink<'b>>) -> Self {
        Self { checker, sink }
    }

    /// Pairs the documents of one fingerprint.
    pub(super) fn equal<'k, F: Fingerprint>(
        &self,
        keys: impl Iterator<Item = &'k [u8]>,
        progress: &dyn Progress,
    ) -> Result<()> {
        let documents = candidates::<F>(keys, self.checker)?;
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

    /// Pairs the documents of near fingerprints; both sides are equal within one index.
    pub(super) fn near<F: Fingerprint>(
        &self,
        [ours, theirs]: [&Side<'_, F>; 2],
        pairs: &[Pair<F>],
    ) -> Result<()> {
        for pairs in pairs.chunks(TOGETHER) {
            let sides = |pair: &Pair<F>| {
                Ok((ours.candidates(pair.a)?, theirs.candidates(pair.b)?, pair.distance))
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
        ours: &[Candidate<'c>],
        theirs: &[Candidate<'c>],
        distance: u32,
        found: &mut Vec<DocumentPair<'c>>,
    ) -> Result<()> {
        for a in ours {
            for b in theirs {
                let similarity = match self.checker {
                    None => None,
                    Some(checker) => {
                        match checker.compare(distance, &a.evidence, &b.evidence, b.key)? {
                            Some(similarity) => Some(similarity),
                            None => continue,
                        }
                    }
                };
                found.push(DocumentPair { a: a.key, b: b.key, distance, similarity });
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
