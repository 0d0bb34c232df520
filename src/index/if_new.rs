//! Inserting what is new: documents near stored ones are kept out, in one step with the search.

use std::collections::HashMap;

use super::check_features::{Checker, missing};
use super::new_document::{AsDocument, NewDocument};
use super::query::{Match, Query, check_distance};
use super::write::Change;
use super::{Durability, Index, Shared};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::kernel;
use crate::store::{Family, keys};
use crate::verify::{Evidence, Nearness};

/// For every document what kept it out, and the documents that nothing did.
type Sifted<'a, F> = (Vec<Option<Match<F>>>, Vec<Change<'a, F>>);

impl<F: Fingerprint> Index<F> {
    /// Stores a document unless a near-duplicate of it is stored already.
    ///
    /// Searching and storing are one step: of two near-duplicates that come at the same time
    /// only one gets in. Returns the nearest stored document when there is one within the
    /// distance. An older document of the same key does not count as one; it is replaced.
    ///
    /// # Errors
    ///
    /// As [`Index::insert`] and [`Index::search`].
    pub fn insert_if_new(
        &self,
        key: &[u8],
        fingerprint: F,
        distance: u32,
        durability: Durability,
    ) -> Result<Option<Match<F>>> {
        let refused = self.insert_batch_if_new(&[(key, fingerprint)], distance, durability)?;
        Ok(refused.into_iter().next().flatten())
    }

    /// Stores those documents that have no near-duplicate, in their order.
    ///
    /// `near` is a distance, or a [`Nearness`] with a check that near documents have to pass to
    /// keep a new one out; every document then has to bring its features. Each document is also
    /// compared with the ones before it in the batch. The result holds, for every document in
    /// order, the nearest one that kept it out, or `None` when it was stored.
    ///
    /// # Errors
    ///
    /// As [`Index::insert_batch`] and [`Index::search`]; then nothing was changed.
    pub fn insert_batch_if_new<D: AsDocument<F>>(
        &self,
        documents: &[D],
        near: impl Into<Nearness>,
        durability: Durability,
    ) -> Result<Vec<Option<Match<F>>>> {
        let near = near.into();
        check_distance::<F>(near.distance)?;
        let documents: Vec<_> = documents.iter().map(AsDocument::as_document).collect();
        let header = &self.shared.core.header;
        for document in &documents {
            keys::check_document(document.key)?;
            document.check_features(header.keeps_features)?;
        }
        let writer = self.shared.only_writer();
        let (refused, changes) = self.shared.sift(&documents, near)?;
        self.shared.apply(&changes, writer)?;
        self.shared.settle(durability)?;
        Ok(refused)
    }
}

impl<F: Fingerprint> Shared<F> {
    /// Parts documents into those with a near-duplicate and those to store.
    fn sift<'a>(&self, documents: &[NewDocument<'a, F>], near: Nearness) -> Result<Sifted<'a, F>> {
        let Nearness { distance, verification, .. } = near;
        let reader = self.reader()?;
        let checked = Checker::new(reader.snapshot(), &self.core.header, verification)?.is_some();
        let keys: Vec<&[u8]> = documents.iter().map(|document| document.key).collect();
        let stored = self.store.get_many(Family::Docs, &keys)?.iter().flatten().count();
        let query = |document: &NewDocument<'a, F>| {
            // Only stored documents that this batch replaces can be passed over below.
            let query = Query::new(document.fingerprint).distance(distance).limit(stored + 1);
            match (verification.needs(), document.features) {
                (Evidence::Nothing, _) => Ok(query),
                (_, Some(features)) => Ok(query.verify(verification, features)),
                (_, None) => Err(missing(document.key)),
            }
        };
        let queries = documents.iter().map(query).collect::<Result<Vec<_>>>()?;
        let answers = reader.search_batch(&queries)?;
        // Keys may repeat in a batch: `accepted` tells which of the earlier ones still counts.
        let mut accepted: HashMap<&[u8], usize> = HashMap::new();
        let (mut earlier, mut fingerprints) = (Vec::<&NewDocument<'a, F>>::new(), Vec::<F>::new());
        let mut refused = Vec::with_capacity(documents.len());
        for (document, answer) in documents.iter().zip(answers) {
            let mut candidates: Vec<(u32, &NewDocument<'a, F>)> = Vec::new();
            kernel::within(&fingerprints, document.fingerprint, distance, &mut |at, apart| {
                if let Some(&other) = earlier.get(at)
                    && other.key != document.key
                    && accepted.get(other.key) == Some(&at)
                {
                    candidates.push((apart, other));
                }
            });
            candidates.sort_unstable_by_key(|&(apart, other)| (apart, other.key));
            let mut in_batch = None;
            for (apart, other) in candidates {
                let similarity = match (checked, document.features, other.features) {
                    (true, Some(ours), Some(theirs)) => {
                        verification.check(apart, ours, theirs)?.map(Some)
                    }
                    _ => Some(None),
                };
                if let Some(similarity) = similarity {
                    let NewDocument { key, fingerprint, .. } = *other;
                    let key = key.to_vec();
                    in_batch = Some(Match { key, fingerprint, distance: apart, similarity });
                    break;
                }
            }
            let nearest = answer
                .into_iter()
                .filter(|m| m.key != document.key && !accepted.contains_key(m.key.as_slice()))
                .chain(in_batch)
                .min_by(|a, b| (a.distance, &a.key).cmp(&(b.distance, &b.key)));
            if nearest.is_none() {
                accepted.insert(document.key, earlier.len());
                earlier.push(document);
                fingerprints.push(document.fingerprint);
            }
            refused.push(nearest);
        }
        let changes = earlier.into_iter().map(|document| Change::Put(*document)).collect();
        Ok((refused, changes))
    }
}
