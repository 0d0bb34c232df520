//! Writing: inserts, replacements and removals become one atomic batch over all families.
//!
//! Tables are not read: a new fingerprint, and one that loses its last document, becomes a delta entry
//! in the first table, which overrides the runs of all tables until a merge takes it in.

pub(super) mod if_new;
pub(super) mod new_document;
pub(super) mod steps;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use self::new_document::{AsDocument, NewDocument};
use crate::error::Result;
use crate::fail_point::fail_point;
use crate::fingerprint::Fingerprint;
use crate::index::committer::{self, Appended, Ready, Turn};
use crate::index::read::postings::each_document;
use crate::index::{Durability, Index, Shared};
use crate::store::codec::{self, Document};
use crate::store::keys;
use crate::store::{Batch, Family, Postings};

/// Result of a batch of inserts.
///
/// ```
/// use hamdex::{BatchReport, Durability};
/// # let directory = tempfile::tempdir().unwrap();
/// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
///
/// index.insert(b"a", 0xff)?;
/// let batch = [(b"a", 0xff_u64), (b"b", 0xfe)];
/// let report: BatchReport = index.insert_batch(&batch, Durability::Synced)?;
/// assert_eq!((report.inserted, report.unchanged), (1, 1));
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct BatchReport {
    /// Number of documents whose key was not stored before.
    pub inserted: u64,
    /// Number of documents that replaced an older one.
    pub replaced: u64,
    /// Number of replaced documents that were identical, so that nothing changed.
    pub unchanged: u64,
}

/// A document to store or a key to remove.
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
    /// Number of replaced documents that were identical.
    pub(super) unchanged: u64,
    pub(super) removed: u64,
}

impl Outcome {
    pub(super) fn report(&self) -> BatchReport {
        let Self { inserted, replaced, unchanged, .. } = *self;
        BatchReport { inserted, replaced, unchanged }
    }
}

/// Valid changes, sorted by key, at most one per key.
pub(super) struct InOrder<'b, 'a, F> {
    changes: Vec<&'b Change<'a, F>>,
    hashes: Arc<[u64]>,
}

impl<F: Fingerprint> Index<F> {
    /// Stores a document, or replaces the one with the same key.
    ///
    /// Returns true if it replaced one. The document survives a power loss: the call waits for an
    /// fsync of the log, which concurrent calls share.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
    /// assert!(!index.insert(b"page", 0xff)?);
    /// assert!(index.insert(b"page", 0xfe)?);
    /// assert_eq!(index.get(b"page")?, Some(0xfe));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`InvalidKey`](crate::Error::InvalidKey) or [`ReadOnly`](crate::Error::ReadOnly),
    /// and failures of the store. Then nothing was changed, except if the fsync failed: the change
    /// is visible and may not survive a power loss.
    pub fn insert(&self, key: &[u8], fingerprint: F) -> Result<bool> {
        let report = self.insert_batch(&[(key, fingerprint)], Durability::Synced)?;
        Ok(report.replaced > 0)
    }

    /// Stores many documents in one atomic batch.
    ///
    /// A document is a pair of key and fingerprint, or a [`NewDocument`] with features. If several
    /// documents have the same key, the last one is stored. A document replaces the old one
    /// completely, including its features.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
    /// use hamdex::Durability;
    ///
    /// let batch = [(b"a", 0xff_u64), (b"b", 0xfe)];
    /// let report = index.insert_batch(&batch, Durability::Buffered)?;
    /// assert_eq!((report.inserted, report.replaced), (2, 0));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Index::insert`], and [`InvalidOption`](crate::Error::InvalidOption)
    /// for features that do not decode as a [`FeatureSet`](crate::verify::FeatureSet) or that the
    /// index does not keep.
    pub fn insert_batch<D: AsDocument<F>>(
        &self,
        documents: &[D],
        durability: Durability,
    ) -> Result<BatchReport> {
        let changes: Vec<_> =
            documents.iter().map(|document| Change::Put(document.as_document())).collect();
        let outcome = self.shared.apply(&changes)?;
        self.shared.make_durable(durability)?;
        Ok(outcome.report())
    }

    /// Removes a document, or returns false if it is not stored.
    ///
    /// The removal survives a power loss, like [`Index::insert`].
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
    /// index.insert(b"page", 0xff)?;
    /// assert!(index.remove(b"page")?);
    /// assert!(!index.remove(b"page")?);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Index::insert`].
    pub fn remove(&self, key: &[u8]) -> Result<bool> {
        Ok(self.remove_batch(&[key], Durability::Synced)? > 0)
    }

    /// Removes many documents atomically, and returns how many were stored.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
    /// use hamdex::Durability;
    ///
    /// index.insert(b"page", 0xff)?;
    /// assert_eq!(index.remove_batch(&["page", "other"], Durability::Synced)?, 1);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Index::insert`].
    pub fn remove_batch<K: AsRef<[u8]>>(&self, keys: &[K], durability: Durability) -> Result<u64> {
        let changes: Vec<_> = keys.iter().map(|key| Change::Remove(key.as_ref())).collect();
        let outcome = self.shared.apply(&changes)?;
        self.shared.make_durable(durability)?;
        Ok(outcome.removed)
    }
}

impl<F: Fingerprint> Shared<F> {
    /// Waits until earlier writes have the given durability.
    ///
    /// Called without the writer lock: callers that wait at the same time share the fsync.
    pub(super) fn make_durable(&self, durability: Durability) -> Result<()> {
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

    /// Applies changes in one batch, within a turn.
    pub(super) fn apply_in(
        &self,
        turn: Turn<'_, F>,
        changes: &InOrder<'_, '_, F>,
    ) -> Result<Outcome> {
        let (ready, outcome) = self.prepare(turn, self.store.batch()?, changes)?;
        ready.commit()?;
        self.merge_for_writers();
        Ok(outcome)
    }

    /// Checks changes and sorts them by key.
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

    /// Stages changes in a batch, and blocks conflicting writers until it is written.
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
            // No other batch in flight has these keys, so what was read remains valid.
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
            self.stage(&turn, &mut batch, staged.added, staged.postings, &staged.dropped)?;
        let delta_entries = added.len();
        added.append(&mut changed);
        let appended = Appended {
            changed: added,
            delta_entries,
            orphans,
            inserted: outcome.inserted,
            removed: outcome.removed,
            keys: Arc::clone(hashes),
            adds_only,
        };
        Ok((turn.announce(batch, appended)?, outcome))
    }

    /// Stages postings and table entries, sorted in each family. Returns delta entries and orphans.
    fn stage(
        &self,
        turn: &Turn<'_, F>,
        batch: &mut Batch<'_>,
        mut added: Vec<F>,
        mut postings: Vec<Vec<u8>>,
        dropped: &HashMap<F, HashSet<&[u8]>>,
    ) -> Result<(Vec<F>, Vec<F>)> {
        // Ascending keys keep the memory tables' search paths in the processor's cache.
        postings.sort_unstable();
        for posting in &postings {
            batch.put_posting(posting);
        }
        for (fingerprint, documents) in dropped {
            for document in documents {
                batch.delete_posting(&keys::posting(*fingerprint, document))?;
            }
        }
        added.sort_unstable();
        added.dedup();
        let orphans = self.orphans(&added, dropped)?;
        turn.stage_deltas(batch, &added, &orphans)?;
        Ok((added, orphans))
    }

    /// Returns fingerprints that lose their last document and are not added again.
    fn orphans(&self, added: &[F], dropped: &HashMap<F, HashSet<&[u8]>>) -> Result<Vec<F>> {
        let mut orphans = Vec::new();
        if dropped.is_empty() {
            return Ok(orphans);
        }
        let mut postings = Postings::new(self.store.snapshot());
        for (fingerprint, documents) in dropped {
            if added.binary_search(fingerprint).is_ok() {
                continue;
            }
            let mut kept = false;
            each_document(&mut postings, None, *fingerprint, |document| {
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

/// The staged changes of documents and their consequences for other families.
struct Staged<'a, F> {
    outcome: Outcome,
    /// Whether any record is written.
    rewritten: bool,
    /// Fingerprints that documents receive.
    added: Vec<F>,
    postings: Vec<Vec<u8>>,
    /// Fingerprints of documents whose other parts change.
    kept: Vec<F>,
    /// Fingerprints that documents lose, with the keys of these documents.
    dropped: HashMap<F, HashSet<&'a [u8]>>,
}

/// Stages the records of documents, given what is stored under each key.
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
                batch.delete_document(key)?;
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
        let (lost, gained) = (old.map(|d| d.fingerprint), new.map(|d| d.fingerprint));
        if lost == gained {
            staged.kept.extend(gained);
            continue;
        }
        if let Some(lost) = lost {
            staged.dropped.entry(lost).or_default().insert(key);
        }
        if let Some(fingerprint) = gained {
            staged.postings.push(keys::posting(fingerprint, key));
            staged.added.push(fingerprint);
        }
    }
    Ok(staged)
}

/// Sorts changes by key. Of equal keys only the last one given remains.
fn last_of_each_key<'a, 'b, F: Fingerprint>(
    changes: &'b [Change<'a, F>],
) -> Vec<&'b Change<'a, F>> {
    let mut sorted: Vec<_> = changes.iter().collect();
    sorted.sort_by(|a, b| b.key().cmp(a.key()));
    sorted.reverse();
    // After reversing a stable descending sort, the last given of equal keys is first.
    sorted.dedup_by(|a, b| a.key() == b.key());
    sorted
}
