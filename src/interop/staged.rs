//! Staged changes: operations on an attached index, recorded in order before a batch exists.

use crate::fingerprint::Fingerprint;
use crate::index::{AsDocument, Match, NewDocument, Step};
use crate::verify::DuplicateRule;

/// Recorded changes of an index, to be committed with a host's batch.
///
/// Recording takes no lock and reads nothing. The index is read when the list is committed, as a
/// whole; dropping the list has no effect. Each change sees the changes before it. Two lists over
/// the same key are two commits in either order, and the later one replaces or removes what the
/// earlier one stored.
///
/// ```
/// use hamdex::NewDocument;
/// use hamdex::interop::Staged;
///
/// let page = NewDocument::new(b"page", 0xff_u64);
/// let mut staged = Staged::new();
/// staged.insert_document(&page);
/// staged.insert(b"news", 0xff00);
/// staged.insert_if_new(b"mirror", 0xfe, 3);
/// staged.remove(b"older page");
/// assert_eq!(staged.len(), 4);
/// ```
#[derive(Debug, Clone)]
pub struct Staged<'a, F> {
    pub(super) steps: Vec<Step<'a, F>>,
}

/// Result of committing staged changes. [`Attached::commit`](super::Attached::commit) has an example.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StagedReport<F> {
    /// Number of documents whose key was not stored before.
    pub inserted: u64,
    /// Number of documents that replaced an older one.
    pub replaced: u64,
    /// Number of stored documents that were removed.
    pub removed: u64,
    /// Documents rejected as duplicates, in the order in which they were staged.
    pub refused: Vec<Refusal<F>>,
}

/// A document that was not stored because a near one is.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Refusal<F> {
    /// The document's key.
    pub key: Vec<u8>,
    /// The nearest document that is stored or was staged before.
    pub near: Match<F>,
}

impl<F> Default for Staged<'_, F> {
    fn default() -> Self {
        Self { steps: Vec::new() }
    }
}

impl<'a, F: Fingerprint> Staged<'a, F> {
    /// Creates an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stages a document, which replaces a stored one with its key.
    pub fn insert(&mut self, key: &'a [u8], fingerprint: F) {
        self.steps.push(Step::Put(NewDocument::new(key, fingerprint)));
    }

    /// Stages a document that may have features.
    pub fn insert_document<D: AsDocument<F>>(&mut self, document: &'a D) {
        self.steps.push(Step::Put(document.as_document()));
    }

    /// Stages a document unless another within `distance` bits is stored by then.
    ///
    /// A stored document with the same key is ignored and replaced.
    pub fn insert_if_new(&mut self, key: &'a [u8], fingerprint: F, distance: u32) {
        let document = NewDocument::new(key, fingerprint);
        self.steps.push(Step::PutIfNew(document, DuplicateRule::new(distance)));
    }

    /// Stages a document unless a near one passes a check.
    ///
    /// With a check, the document and everything near it must have features.
    ///
    /// ```
    /// use hamdex::NewDocument;
    /// use hamdex::interop::Staged;
    ///
    /// let mirror = NewDocument::new(b"mirror", 0xfe_u64);
    /// let mut staged = Staged::new();
    /// assert!(staged.is_empty());
    /// staged.insert_document_if_new(&mirror, 3);
    /// assert_eq!(staged.len(), 1);
    /// ```
    pub fn insert_document_if_new<D: AsDocument<F>>(
        &mut self,
        document: &'a D,
        near: impl Into<DuplicateRule>,
    ) {
        self.steps.push(Step::PutIfNew(document.as_document(), near.into()));
    }

    /// Stages the removal of a document. Has no effect if it is not stored by then.
    pub fn remove(&mut self, key: &'a [u8]) {
        self.steps.push(Step::Remove(key));
    }

    /// Returns the number of staged changes.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Returns true if nothing is staged.
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
