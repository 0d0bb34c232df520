//! Writing: inserts, replacements and removals become one atomic batch over all families.
//!
//! Tables take new fingerprints blindly, as singles. Only when the last document of a
//! fingerprint goes is a table read: the single is deleted and the run that holds the
//! fingerprint is rewritten, in the same batch.

use std::collections::{HashMap, HashSet};

use super::committer::{self, Appended, Ready, Turn};
use super::new_document::{AsDocument, NewDocument};
use super::reader::each_document;
use super::search::run_at;
use super::{Durability, Index, Shared};
use crate::error::Result;
use crate::fail_point::fail_point;
use crate::fingerprint::Fingerprint;
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
    /// How many of those were the same as the older one, so that nothing changed.
    pub unchanged: u64,
}

/// A document to store, or a key to forget.
pub(super) enum Change<'a, F> {
    Put(NewDocument<'a, F>),
    Remove(&'a [u8]),
}

impl<'a, F: Fingerprint> Change<'a, F> {
    fn key(&self) -> &'a [u8] {
        match self {
            Self::Put(document) => document.key,
            Self::Remove(key) => key,
        }
    }

    fn document(&self) -> Option<Document<F>> {
        match self {
            Self::Put(NewDocument { fingerprint, features, .. }) => {
                let features = features.map(<[u8]>::to_vec);
                Some(Document { fingerprint: *fingerprint, features })
            }
            Self::Remove(_) => None,
        }
    }
}

#[derive(Default)]
pub(super) struct Outcome {
    pub(super) inserted: u64,
    pub(super) replaced: u64,
    /// Of the replaced ones.
    pub(super) unchanged: u64,
    pub(super) removed: u64,
}

impl Outcome {
    pub(super) fn report(&self) -> BatchReport {
        let Self { inserted, replaced, unchanged, .. } = *self;
        BatchReport { inserted, replaced, unchanged }
    }
}

/// Changes by rising key, at most one of each, which a store may take.
pub(super) struct InOrder<'b, 'a, F> {
    changes: Vec<&'b Change<'a, F>>,
    hashes: Vec<u64>,
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
    /// Documents are pairs of key and fingerprint, or [`NewDocument`]s where features come with
    /// them. Of documents with equal keys the last one counts. A document that replaces another
    /// one replaces its features too, with nothing if it brings none.
    ///
    /// # Errors
    ///
    /// As [`Index::insert`], and [`InvalidOption`](crate::Error::InvalidOption) for features
    /// that no [`FeatureSet`](crate::verify::FeatureSet) encodes to or that the index does not
    /// keep.
    pub fn insert_batch<D: AsDocument<F>>(
        &self,
        documents: &[D],
        durability: Durability,
    ) -> Result<BatchReport> {
        let changes: Vec<_> =
            documents.iter().map(|document| Change::Put(document.as_document())).collect();
        let outcome = self.shared.apply(&changes)?;
        self.shared.settle(durability)?;
        Ok(outcome.report())
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
        let changes: Vec<_> = keys.iter().map(|key| Change::Remove(key.as_ref())).collect();
        let outcome = self.shared.apply(&changes)?;
        self.shared.settle(durability)?;
        Ok(outcome.removed)
    }
}

impl<F: Fingerprint> Shared<F> {
    /// Waits until what was written survives what it has to.
    ///
    /// Called without the writer lock: callers that wait together share the fsync.
    pub(super) fn settle(&self, durability: Durability) -> Result<()> {
        match durability {
            Durability::Buffered => self.store.follow(),
            Durability::Synced => {
                fail_point!("write.published");
                self.store.sync()?;
                fail_point!("write.synced");
                Ok(())
            }
        }
    }

    /// Applies changes in one batch.
    fn apply(&self, changes: &[Change<'_, F>]) -> Result<Outcome> {
        let changes = self.in_order(changes)?;
        self.apply_in(self.committer.turn(), &changes)
    }

    /// Applies changes in one batch, in a turn that was waited for.
    pub(super) fn apply_in(
        &self,
        turn: Turn<'_, F>,
        changes: &InOrder<'_, '_, F>,
    ) -> Result<Outcome> {
        let (ready, outcome) = self.prepare(turn, self.store.batch()?, changes)?;
        ready.commit()?;
        Ok(outcome)
    }

    /// Checks changes and brings them into the order of their keys.
    pub(super) fn in_order<'b, 'a>(
        &self,
        changes: &'b [Change<'a, F>],
    ) -> Result<InOrder<'b, 'a, F>> {
        self.store.require_writable()?;
        for change in changes {
            keys::check_document(change.key())?;
            if let Change::Put(document) = change {
                document.check_features(self.core.header.keeps_features)?;
            }
        }
        let changes = last_of_each_key(changes);
        let hashes = changes.iter().map(|change| committer::hash(change.key())).collect();
        Ok(InOrder { changes, hashes })
    }

    /// Stages changes behind what a batch holds, and keeps others away until it is written.
    pub(super) fn prepare<'s>(
        &'s self,
        turn: Turn<'s, F>,
        mut batch: Batch<'s>,
        InOrder { changes, hashes }: &InOrder<'_, '_, F>,
    ) -> Result<(Ready<'s, F>, Outcome)> {
        let keys: Vec<&[u8]> = changes.iter().map(|change| change.key()).collect();
        turn.wait_for(hashes);
        let stored = self.store.get_many(Family::Docs, &keys)?;
        let adds_only = stored.iter().all(Option::is_none)
            && changes.iter().all(|change| matches!(change, Change::Put(_)));
        if !adds_only {
            // Nobody else has these keys, so what was read of them stays true.
            turn.wait_for_all();
        }
        let staged = stage_documents(&mut batch, changes, stored)?;
        let outcome = staged.outcome;
        if !staged.rewritten && staged.dropped.is_empty() {
            return Ok((turn.pass(batch), outcome));
        }
        let mut changed = staged.kept;
        changed.extend(staged.dropped.keys());
        let (mut added, orphans) =
            self.stage(&mut batch, staged.added, staged.postings, &staged.dropped)?;
        let singles = added.len();
        added.append(&mut changed);
        let appended = Appended {
            changed: added,
            singles,
            orphans,
            inserted: outcome.inserted,
            removed: outcome.removed,
            new_keys: adds_only.then(|| hashes.clone()),
        };
        Ok((turn.announce(batch, appended)?, outcome))
    }

    /// Stages postings and table entries, each family's keys rising; returns singles and orphans.
    fn stage(
        &self,
        batch: &mut Batch<'_>,
        mut added: Vec<F>,
        mut postings: Vec<Vec<u8>>,
        dropped: &HashMap<F, HashSet<&[u8]>>,
    ) -> Result<(Vec<F>, Vec<F>)> {
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
        Ok((added, orphans))
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

/// What some changes do to documents and what follows for the other families.
struct Staged<'a, F> {
    outcome: Outcome,
    /// Whether any record is written.
    rewritten: bool,
    /// Fingerprints that documents get.
    added: Vec<F>,
    postings: Vec<Vec<u8>>,
    /// Fingerprints of documents of which the rest changes.
    kept: Vec<F>,
    /// Fingerprints that documents lose, with the documents' keys.
    dropped: HashMap<F, HashSet<&'a [u8]>>,
}

/// Stages records of documents with different keys, beside what is stored under each key.
fn stage_documents<'a, F: Fingerprint>(
    batch: &mut Batch<'_>,
    changes: &[&Change<'a, F>],
    stored: Vec<Option<Vec<u8>>>,
) -> Result<Staged<'a, F>> {
    let mut staged = Staged {
        outcome: Outcome::default(),
        rewritten: false,
        added: Vec::new(),
        postings: Vec::new(),
        kept: Vec::new(),
        dropped: HashMap::new(),
    };
    let mut record = Vec::new();
    for (change, old) in changes.iter().zip(stored) {
        let key = change.key();
        let old: Option<Document<F>> =
            old.map(|bytes| codec::decode("docs", key, &bytes)).transpose()?;
        let new = change.document();
        match (&old, &new) {
            (None, None) => continue,
            (None, Some(_)) => staged.outcome.inserted += 1,
            (Some(_), None) => {
                staged.outcome.removed += 1;
                batch.delete_document(key);
            }
            (Some(_), Some(_)) => staged.outcome.replaced += 1,
        }
        if old == new {
            staged.outcome.unchanged += 1;
            continue;
        }
        if let Some(document) = &new {
            codec::encode_into(&mut record, key, document);
            batch.put_document(key, &record);
            staged.rewritten = true;
        }
        let (gone, come) = (old.map(|d| d.fingerprint), new.map(|d| d.fingerprint));
        if gone == come {
            staged.kept.extend(come);
            continue;
        }
        if let Some(gone) = gone {
            staged.dropped.entry(gone).or_default().insert(key);
        }
        if let Some(fingerprint) = come {
            staged.postings.push(keys::posting(fingerprint, key));
            staged.added.push(fingerprint);
        }
    }
    Ok(staged)
}

/// Sorts by key; of equal keys the last one given stays.
fn last_of_each_key<'a, 'b, F: Fingerprint>(
    changes: &'b [Change<'a, F>],
) -> Vec<&'b Change<'a, F>> {
    let mut sorted: Vec<_> = changes.iter().collect();
    sorted.sort_by(|a, b| b.key().cmp(a.key()));
    sorted.reverse();
    // Reversing a stable descending sort puts the last given of equal keys first.
    sorted.dedup_by(|a, b| a.key() == b.key());
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
