//! Staged changes: what is to be done to an attached index, in order, before a batch is at hand.

use crate::fingerprint::Fingerprint;
use crate::index::{AsDocument, Match, NewDocument, Step};
use crate::verify::Nearness;

/// Changes of an index that wait for a batch of the host's.
///
/// It is a list and holds nothing up: the index is read when the list is committed, whole, and
/// a list that is dropped never was. Each change sees those before it. So two lists over the
/// same key are two commits one after the other, whichever comes first, and the later one
/// replaces or removes what the earlier one stored.
///
/// ```
/// use hamdex::interop::Staged;
///
/// let mut staged = Staged::new();
/// staged.insert(b"page", 0xff_u64);
/// staged.remove(b"older page");
/// assert_eq!(staged.len(), 2);
/// ```
#[derive(Debug, Clone)]
pub struct Staged<'a, F> {
    pub(super) steps: Vec<Step<'a, F>>,
}

/// What committing staged changes does.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StagedReport<F> {
    /// Documents whose key was not stored before.
    pub inserted: u64,
    /// Documents that took the place of an older one.
    pub replaced: u64,
    /// Documents that were stored and are no more.
    pub removed: u64,
    /// Documents that near ones kept out, in the order in which they were staged.
    pub refused: Vec<Refusal<F>>,
}

/// A document that is not stored because one near it is.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Refusal<F> {
    /// The document's key.
    pub key: Vec<u8>,
    /// The nearest document that is stored, or staged before.
    pub near: Match<F>,
}

impl<F> Default for Staged<'_, F> {
    fn default() -> Self {
        Self { steps: Vec::new() }
    }
}

impl<'a, F: Fingerprint> Staged<'a, F> {
    /// Starts with nothing to do.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stages the storing of a document, in place of the one with its key if there is one.
    pub fn insert(&mut self, key: &'a [u8], fingerprint: F) {
        self.steps.push(Step::Put(NewDocument::new(key, fingerprint)));
    }

    /// Stages the storing of a document that may bring its features.
    pub fn insert_document<D: AsDocument<F>>(&mut self, document: &'a D) {
        self.steps.push(Step::Put(document.as_document()));
    }

    /// Stages the storing of a document unless one within so many bits is there by then.
    ///
    /// An older document of the same key does not count; it is replaced.
    pub fn insert_if_new(&mut self, key: &'a [u8], fingerprint: F, distance: u32) {
        let document = NewDocument::new(key, fingerprint);
        self.steps.push(Step::PutIfNew(document, Nearness::new(distance)));
    }

    /// Stages the storing of a document unless one is near it that passes a check.
    ///
    /// With a check the document, and everything near it, has to have features.
    pub fn insert_document_if_new<D: AsDocument<F>>(
        &mut self,
        document: &'a D,
        near: impl Into<Nearness>,
    ) {
        self.steps.push(Step::PutIfNew(document.as_document(), near.into()));
    }

    /// Stages the removal of a document; nothing is done for one that is not stored by then.
    pub fn remove(&mut self, key: &'a [u8]) {
        self.steps.push(Step::Remove(key));
    }

    /// Returns the number of changes.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Returns true when there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    pub(super) fn report(
        &self,
        inserted: u64,
        replaced: u64,
        removed: u64,
        refused: Vec<Option<Match<F>>>,
    ) -> StagedReport<F> {
        let steps = self.steps.iter().zip(refused);
        let refused = steps
            .filter_map(|(step, near)| Some(Refusal { key: step.key().to_vec(), near: near? }))
            .collect();
        StagedReport { inserted, replaced, removed, refused }
    }
}
