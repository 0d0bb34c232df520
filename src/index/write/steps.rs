//! Steps: turns ordered operations into changes, and rejects near-duplicates.
//!
//! Each step sees the index as the earlier steps leave it: it is compared with what they store, but
//! not with what they replace or remove.
#![expect(clippy::indexing_slicing, reason = "steps and what they store are numbered here")]

use std::collections::HashMap;

use super::Change;
use super::new_document::NewDocument;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::index::Shared;
use crate::index::read::check_features::{Checker, missing};
use crate::index::read::query::{Match, Query, check_distance};
use crate::index::read::reader::Reader;
use crate::kernel;
use crate::store::{Family, keys};
use crate::verify::{DuplicateRule, Evidence};

/// One operation on an index.
#[derive(Debug, Clone)]
// Only hosts' batches put and remove by steps.
#[cfg_attr(not(feature = "rocksdb-interop"), allow(dead_code))]
pub(crate) enum Step<'a, F> {
    /// Stores a document, or replaces the one with its key.
    Put(NewDocument<'a, F>),
    /// Stores a document unless a near one is stored.
    PutIfNew(NewDocument<'a, F>, DuplicateRule),
    /// Removes the document of a key.
    Remove(&'a [u8]),
}

impl<'a, F: Fingerprint> Step<'a, F> {
    pub(crate) fn key(&self) -> &'a [u8] {
        match self {
            Self::Put(document) | Self::PutIfNew(document, _) => document.key,
            Self::Remove(key) => key,
        }
    }

    /// Returns true if the result depends on stored near documents.
    pub(super) fn asks(&self) -> bool {
        matches!(self, Self::PutIfNew(..))
    }

    /// Returns an error for a step that is invalid in every state of the index.
    pub(in crate::index) fn check(&self, keeps_features: bool) -> Result<()> {
        keys::check_document(self.key())?;
        match self {
            Self::Put(document) => document.check_features(keeps_features),
            Self::PutIfNew(document, near) => {
                check_distance::<F>(near.distance)?;
                document.check_features(keeps_features)
            }
            Self::Remove(_) => Ok(()),
        }
    }
}

/// For every step the document that refused its own, and the changes of the other steps.
pub(super) type Sifted<'a, F> = (Vec<Option<Match<F>>>, Vec<Change<'a, F>>);

/// The effects of earlier steps.
struct Earlier<'b, 'a, F> {
    /// Documents that they store, including those replaced or removed again.
    documents: Vec<&'b NewDocument<'a, F>>,
    fingerprints: Vec<F>,
    /// The current document of every changed key, or `None` if it was removed.
    current: HashMap<&'a [u8], Option<usize>>,
}

impl<'b, 'a, F: Fingerprint> Earlier<'b, 'a, F> {
    fn put(&mut self, document: &'b NewDocument<'a, F>) {
        self.current.insert(document.key, Some(self.documents.len()));
        self.documents.push(document);
        self.fingerprints.push(document.fingerprint);
    }

    /// Returns the nearest of them under another key that passes the check.
    fn nearest(
        &self,
        document: &NewDocument<'a, F>,
        near: DuplicateRule,
    ) -> Result<Option<Match<F>>> {
        let mut candidates: Vec<(u32, &NewDocument<'a, F>)> = Vec::new();
        kernel::within(
            &self.fingerprints,
            document.fingerprint,
            near.distance,
            &mut |at, apart| {
                let other = self.documents[at];
                if other.key != document.key && self.current.get(other.key) == Some(&Some(at)) {
                    candidates.push((apart, other));
                }
            },
        );
        candidates.sort_unstable_by_key(|&(apart, other)| (apart, other.key));
        let checked = near.verification.needs() != Evidence::Nothing;
        for (distance, other) in candidates {
            let similarity = match (checked, document.features, other.features) {
                (true, Some(ours), Some(theirs)) => {
                    near.verification.check(distance, ours, theirs)?.map(Some)
                }
                (true, Some(_), None) => return Err(missing(other.key)),
                _ => Some(None),
            };
            if let Some(similarity) = similarity {
                let NewDocument { key, fingerprint, .. } = *other;
                return Ok(Some(Match { key: key.to_vec(), fingerprint, distance, similarity }));
            }
        }
        Ok(None)
    }
}

/// Separates steps that a near-duplicate refuses from the changes of all others.
///
/// `answers` holds the stored documents near each step that needs a search, in order.
/// `near_earlier` states for every step whether it must be compared with earlier ones.
pub(super) fn sift<'a, F: Fingerprint>(
    steps: &[Step<'a, F>],
    answers: Vec<Vec<Match<F>>>,
    near_earlier: &[bool],
) -> Result<Sifted<'a, F>> {
    let mut answers = answers.into_iter();
    let mut earlier =
        Earlier { documents: Vec::new(), fingerprints: Vec::new(), current: HashMap::new() };
    let mut refused = Vec::with_capacity(steps.len());
    let mut changes = Vec::with_capacity(steps.len());
    for (at, step) in steps.iter().enumerate() {
        let mut nearest = None;
        if let Step::PutIfNew(document, near) = step {
            let stored = answers.next().expect("an answer for each step that asks");
            let stored = stored.into_iter().filter(|found| {
                found.key != document.key && !earlier.current.contains_key(&*found.key)
            });
            let of_batch = if near_earlier[at] { earlier.nearest(document, *near)? } else { None };
            nearest = stored
                .chain(of_batch)
                .min_by(|a, b| (a.distance, &a.key).cmp(&(b.distance, &b.key)));
        }
        match step {
            Step::Put(document) | Step::PutIfNew(document, _) if nearest.is_none() => {
                earlier.put(document);
                changes.push(Change::Put(*document));
            }
            Step::Remove(key) => {
                earlier.current.insert(key, None);
                changes.push(Change::Remove(key));
            }
            Step::Put(_) | Step::PutIfNew(..) => (),
        }
        refused.push(nearest);
    }
    Ok((refused, changes))
}

impl<F: Fingerprint> Shared<F> {
    /// Returns the queries of the steps that need a search, in order.
    ///
    /// Unless `all` is set, each query is limited to one more document than the steps may ignore.
    pub(super) fn queries(
        &self,
        reader: &Reader<F>,
        steps: &[Step<'_, F>],
        all: bool,
    ) -> Result<Vec<Query<F>>> {
        let keys: Vec<&[u8]> = steps.iter().map(Step::key).collect();
        let stored = self.store.get_many(Family::Docs, &keys)?.iter().flatten().count();
        let mut queries = Vec::with_capacity(steps.len());
        for step in steps {
            let Step::PutIfNew(document, near) = step else { continue };
            let verification = near.verification;
            Checker::new(reader.snapshot(), &self.core.header, verification)?;
            let mut query = Query::new(document.fingerprint).distance(near.distance);
            if !all {
                query = query.limit(stored + 1);
            }
            queries.push(match (verification.needs(), document.features) {
                (Evidence::Nothing, _) => query,
                (_, Some(features)) => query.verify(verification, features),
                (_, None) => return Err(missing(document.key)),
            });
        }
        Ok(queries)
    }
}
