//! Writing: inserts, replacements and removals become one atomic batch over all families.
//!
//! Tables take new fingerprints blindly, as singles. Only when the last document of a
//! fingerprint goes is a table read: the single is deleted and the run that holds the
//! fingerprint is rewritten, in the same batch.

use std::collections::{HashMap, HashSet};

use super::query::{Match, Query, check_distance};
use super::reader::each_document;
use super::search::run_at;
use super::{Durability, Index, Shared};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::kernel;
use crate::store::codec::{self, Document};
use crate::store::keys::{self, Kind};
use crate::store::{Batch, Family, View, run};

/// What a batch of inserts did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BatchReport {
    /// Documents whose key was not stored before.
    pub inserted: u64,
    /// Documents that took the place of an older one.
    pub replaced: u64,
}

/// A document to store, or a key to forget.
struct Change<'a, F> {
    key: &'a [u8],
    fingerprint: Option<F>,
}

/// For every document what kept it out, and the documents that nothing did.
type Sifted<'a, F> = (Vec<Option<Match<F>>>, Vec<Change<'a, F>>);

#[derive(Default)]
struct Outcome {
    inserted: u64,
    replaced: u64,
    removed: u64,
}

impl<F: Fingerprint> Index<F> {
    /// Stores a document, or replaces the one with the same key; true when it replaced one.
    ///
    /// On return it survives a loss of power.
    ///
    /// # Errors
    ///
    /// [`InvalidKey`](crate::Error::InvalidKey), [`ReadOnly`](crate::Error::ReadOnly), and
    /// failures of the store; then nothing was changed, except that after a failed fsync the
    /// change is visible and may not survive a loss of power.
    pub fn insert(&self, key: &[u8], fingerprint: F) -> Result<bool> {
        let report = self.insert_batch(&[(key, fingerprint)], Durability::Synced)?;
        Ok(report.replaced > 0)
    }

    /// Stores many documents at once: all of them or, on an error, none.
    ///
    /// Of documents with equal keys the last one counts.
    ///
    /// # Errors
    ///
    /// As [`Index::insert`].
    pub fn insert_batch<K: AsRef<[u8]>>(
        &self,
        documents: &[(K, F)],
        durability: Durability,
    ) -> Result<BatchReport> {
        let changes: Vec<_> = documents
            .iter()
            .map(|(key, fingerprint)| Change { key: key.as_ref(), fingerprint: Some(*fingerprint) })
            .collect();
        let outcome = {
            let _writer = self.shared.writer();
            self.shared.apply(&changes)?
        };
        self.shared.settle(durability)?;
        Ok(BatchReport { inserted: outcome.inserted, replaced: outcome.replaced })
    }

    /// Removes a document; false when it was not stored.
    ///
    /// # Errors
    ///
    /// As [`Index::insert`].
    pub fn remove(&self, key: &[u8]) -> Result<bool> {
        Ok(self.remove_batch(&[key], Durability::Synced)? > 0)
    }

    /// Removes many documents at once and returns how many were stored.
    ///
    /// # Errors
    ///
    /// As [`Index::insert`].
    pub fn remove_batch<K: AsRef<[u8]>>(&self, keys: &[K], durability: Durability) -> Result<u64> {
        let changes: Vec<_> =
            keys.iter().map(|key| Change { key: key.as_ref(), fingerprint: None }).collect();
        let outcome = {
            let _writer = self.shared.writer();
            self.shared.apply(&changes)?
        };
        self.shared.settle(durability)?;
        Ok(outcome.removed)
    }

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
    /// Each is also compared with the ones before it in the batch. The result holds, for every
    /// document in order, the nearest one that kept it out, or `None` when it was stored.
    ///
    /// # Errors
    ///
    /// As [`Index::insert_if_new`]; then nothing was changed.
    pub fn insert_batch_if_new<K: AsRef<[u8]> + Sync>(
        &self,
        documents: &[(K, F)],
        distance: u32,
        durability: Durability,
    ) -> Result<Vec<Option<Match<F>>>> {
        check_distance::<F>(distance)?;
        for (key, _) in documents {
            keys::check_document(key.as_ref())?;
        }
        let refused = {
            let _writer = self.shared.writer();
            let (refused, changes) = self.shared.sift(documents, distance)?;
            self.shared.apply(&changes)?;
            refused
        };
        self.shared.settle(durability)?;
        Ok(refused)
    }
}

impl<F: Fingerprint> Shared<F> {
    /// Waits until what was written survives what it has to.
    ///
    /// Called without the writer lock: callers that wait together share the fsync.
    fn settle(&self, durability: Durability) -> Result<()> {
        match durability {
            Durability::Buffered => Ok(()),
            Durability::Synced => self.store.sync(),
        }
    }

    /// Parts documents into those with a near-duplicate and those to store.
    fn sift<'a, K: AsRef<[u8]>>(
        &self,
        documents: &'a [(K, F)],
        distance: u32,
    ) -> Result<Sifted<'a, F>> {
        let keys: Vec<&[u8]> = documents.iter().map(|(key, _)| key.as_ref()).collect();
        let stored = self.store.get_many(Family::Docs, &keys)?.iter().flatten().count();
        // Only stored documents that this batch replaces can be passed over below.
        let queries: Vec<_> = documents
            .iter()
            .map(|(_, fingerprint)| Query::new(*fingerprint).distance(distance).limit(stored + 1))
            .collect();
        let answers = self.reader()?.search_batch(&queries)?;
        // Keys may repeat in a batch: `accepted` tells which of the earlier ones still counts.
        let mut accepted: HashMap<&[u8], usize> = HashMap::new();
        let (mut earlier_keys, mut earlier): (Vec<&[u8]>, Vec<F>) = (Vec::new(), Vec::new());
        let mut refused = Vec::with_capacity(documents.len());
        for ((key, fingerprint), answer) in documents.iter().zip(answers) {
            let key = key.as_ref();
            let mut near: Option<(u32, &[u8], F)> = None;
            kernel::within(&earlier, *fingerprint, distance, &mut |at, apart| {
                let Some((other, theirs)) = earlier_keys.get(at).zip(earlier.get(at)) else {
                    return;
                };
                if *other != key && accepted.get(other) == Some(&at) {
                    let candidate = (apart, *other, *theirs);
                    near = Some(near.map_or(candidate, |best| best.min(candidate)));
                }
            });
            let near = near.map(|(distance, key, fingerprint)| Match {
                key: key.to_vec(),
                fingerprint,
                distance,
            });
            let nearest = answer
                .into_iter()
                .filter(|m| m.key != key && !accepted.contains_key(m.key.as_slice()))
                .chain(near)
                .min_by(|a, b| (a.distance, &a.key).cmp(&(b.distance, &b.key)));
            if nearest.is_none() {
                accepted.insert(key, earlier.len());
                earlier_keys.push(key);
                earlier.push(*fingerprint);
            }
            refused.push(nearest);
        }
        let changes = earlier_keys
            .into_iter()
            .zip(earlier)
            .map(|(key, fingerprint)| Change { key, fingerprint: Some(fingerprint) })
            .collect();
        Ok((refused, changes))
    }

    /// Applies changes in one batch; the caller holds the writer lock.
    fn apply(&self, changes: &[Change<'_, F>]) -> Result<Outcome> {
        self.store.require_writable()?;
        for change in changes {
            keys::check_document(change.key)?;
        }
        let changes = last_of_each_key(changes);
        let keys: Vec<&[u8]> = changes.iter().map(|change| change.key).collect();
        let stored = self.store.get_many(Family::Docs, &keys)?;
        let mut outcome = Outcome::default();
        let mut added = Vec::new();
        let mut postings = Vec::new();
        let mut dropped = HashMap::<F, HashSet<&[u8]>>::new();
        let mut batch = self.store.batch()?;
        let mut record = Vec::new();
        for (change, old) in changes.iter().zip(stored) {
            let old: Option<Document<F>> =
                old.map(|bytes| codec::decode("docs", change.key, &bytes)).transpose()?;
            let gone = old.as_ref().map(|document| document.fingerprint);
            match (gone, change.fingerprint) {
                (None, None) => continue,
                (None, Some(_)) => outcome.inserted += 1,
                (Some(_), None) => {
                    outcome.removed += 1;
                    batch.delete_document(change.key);
                }
                (Some(_), Some(_)) => outcome.replaced += 1,
            }
            if gone == change.fingerprint {
                continue;
            }
            if let Some(gone) = gone {
                dropped.entry(gone).or_default().insert(change.key);
            }
            if let Some(fingerprint) = change.fingerprint {
                let document = Document { fingerprint, features: None };
                codec::encode_into(&mut record, change.key, &document);
                batch.put_document(change.key, &record);
                postings.push(keys::posting(fingerprint, change.key));
                added.push(fingerprint);
            }
        }
        if added.is_empty() && dropped.is_empty() {
            return Ok(outcome);
        }
        self.stage(&mut batch, added, postings, &dropped)?;
        let mut state = self.store.state()?;
        state.documents = (state.documents + outcome.inserted).saturating_sub(outcome.removed);
        batch.put_state(&state);
        batch.commit()?;
        self.publish();
        Ok(outcome)
    }

    /// Stages postings and table entries, each family's keys rising.
    fn stage(
        &self,
        batch: &mut Batch<'_>,
        mut added: Vec<F>,
        mut postings: Vec<Vec<u8>>,
        dropped: &HashMap<F, HashSet<&[u8]>>,
    ) -> Result<()> {
        // Rising keys keep the memory tables' search paths in the processor's cache.
        postings.sort_unstable();
        for posting in &postings {
            batch.put_posting(posting);
        }
        for (fingerprint, documents) in dropped {
            for document in documents {
                batch.delete_posting(&keys::posting(*fingerprint, document));
            }
        }
        added.sort_unstable();
        added.dedup();
        let orphans = self.orphans(&added, dropped)?;
        if !added.is_empty() {
            self.announce_singles(added.len());
        }
        let mut view = (!orphans.is_empty()).then(|| View::new(self.store.snapshot()));
        let mut permuted: Vec<F> = Vec::with_capacity(added.len());
        for (number, table) in self.core.plan.tables().iter().enumerate() {
            permuted.clear();
            permuted.extend(added.iter().map(|f| table.permutation().apply(*f)));
            permuted.sort_unstable();
            for entry in &permuted {
                batch.put_entry(number, Kind::Single, *entry, &[])?;
            }
            if let Some(view) = &mut view {
                permuted.clear();
                permuted.extend(orphans.iter().map(|f| table.permutation().apply(*f)));
                permuted.sort_unstable();
                take_out(batch, view, number, &permuted)?;
            }
        }
        Ok(())
    }

    /// Fingerprints that lose their last document and are not added again.
    fn orphans(&self, added: &[F], dropped: &HashMap<F, HashSet<&[u8]>>) -> Result<Vec<F>> {
        let mut orphans = Vec::new();
        if dropped.is_empty() {
            return Ok(orphans);
        }
        let mut view = View::new(self.store.snapshot());
        for (fingerprint, documents) in dropped {
            if added.binary_search(fingerprint).is_ok() {
                continue;
            }
            let mut kept = false;
            each_document(&mut view, *fingerprint, |document| {
                kept = !documents.contains(document);
                !kept
            })?;
            if !kept {
                orphans.push(*fingerprint);
            }
        }
        Ok(orphans)
    }
}

/// Sorts by key; of equal keys the last one given stays.
fn last_of_each_key<'a, 'b, F: Fingerprint>(
    changes: &'b [Change<'a, F>],
) -> Vec<&'b Change<'a, F>> {
    let mut sorted: Vec<_> = changes.iter().collect();
    sorted.sort_by(|a, b| b.key.cmp(a.key));
    sorted.reverse();
    // Reversing a stable descending sort puts the last given of equal keys first.
    sorted.dedup_by(|a, b| a.key == b.key);
    sorted
}

/// Deletes rising permuted fingerprints from a table, out of runs and singles.
fn take_out<F: Fingerprint>(
    batch: &mut Batch<'_>,
    view: &mut View,
    table: usize,
    orphans: &[F],
) -> Result<()> {
    for orphan in orphans {
        batch.delete_entry(table, Kind::Single, *orphan)?;
    }
    let mut members = Vec::new();
    let mut value = Vec::new();
    let mut rest = orphans;
    while let Some(&first) = rest.first() {
        let Some(last) = run_at(view, table, first, &mut members)? else { break };
        let (inside, behind) = rest.split_at(rest.partition_point(|orphan| *orphan <= last));
        rest = behind;
        let before = members.len();
        members.retain(|member| inside.binary_search(member).is_err());
        if members.len() == before {
            continue;
        }
        members.reverse();
        if members.last() != Some(&last) {
            batch.delete_entry(table, Kind::Run, last)?;
        }
        if let Some(new_last) = members.last() {
            run::encode(&members, &mut value);
            batch.put_entry(table, Kind::Run, *new_last, &value)?;
        }
    }
    Ok(())
}
