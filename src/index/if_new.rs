//! Inserting what is new: documents near stored ones are kept out, in one step with the search.

use super::new_document::AsDocument;
use super::query::{Match, check_distance};
use super::steps::Step;
use super::{BatchReport, Durability, Index};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::verify::Nearness;

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
        self.insert_batch_if_new_counted(documents, near, durability).map(|(refused, _)| refused)
    }

    /// As [`Index::insert_batch_if_new`], and counts what became of the others.
    ///
    /// The counts are those of the documents that were stored: a document that is there already,
    /// the same in every part, is one of `replaced` and of `unchanged`.
    ///
    /// ```
    /// use hamdex::{Durability, Index, IndexOptions};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("pages");
    /// let index = Index::<u64>::create(&path, &IndexOptions::new())?;
    /// index.insert(b"a", 0xff)?;
    /// let batch = [(b"a", 0xff), (b"b", 0xfe), (b"c", 0xff00)];
    /// let (refused, report) = index.insert_batch_if_new_counted(&batch, 3, Durability::Synced)?;
    /// assert_eq!(refused[1].as_ref().map(|near| near.key.as_slice()), Some(&b"a"[..]));
    /// assert_eq!((report.inserted, report.replaced, report.unchanged), (1, 1, 1));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Index::insert_batch_if_new`].
    pub fn insert_batch_if_new_counted<D: AsDocument<F>>(
        &self,
        documents: &[D],
        near: impl Into<Nearness>,
        durability: Durability,
    ) -> Result<(Vec<Option<Match<F>>>, BatchReport)> {
        let near = near.into();
        check_distance::<F>(near.distance)?;
        let steps: Vec<_> =
            documents.iter().map(|document| Step::PutIfNew(document.as_document(), near)).collect();
        for step in &steps {
            step.check(self.header().keeps_features)?;
        }
        let writer = self.shared.only_writer();
        let (refused, changes) = self.shared.sift(&steps)?;
        let outcome = self.shared.apply(&changes, writer)?;
        self.shared.settle(durability)?;
        Ok((refused, outcome.report()))
    }
}
