//! New documents: key, fingerprint and optional features, as the caller passes them.

use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::verify::FeatureSet;

/// A document to store: key, fingerprint and optional features.
///
/// A pair of key and fingerprint is also a document, one without features.
///
/// ```
/// use hamdex::verify::FeatureSet;
/// use hamdex::{Durability, Index, IndexOptions, NewDocument, Pipeline, PipelineOptions};
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path().join("posts");
/// let pipeline = Pipeline::new(&PipelineOptions::preset("post")?)?;
/// let options = IndexOptions::new().pipeline(pipeline.descriptor()).keep_features(true);
/// let index = Index::<u64>::create(&path, &options)?;
///
/// let text = "it will rain tomorrow";
/// let fingerprint = pipeline.fingerprint(text).expect("has words").fingerprint;
/// let features = FeatureSet::of_text(&pipeline, text).encode();
/// let document = NewDocument::new(b"rain", fingerprint).features(&features);
/// index.insert_batch(&[document], Durability::Synced)?;
/// assert_eq!(index.features(b"rain")?, Some(features));
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct NewDocument<'a, F> {
    pub(crate) key: &'a [u8],
    pub(crate) fingerprint: F,
    pub(crate) features: Option<&'a [u8]>,
}

impl<'a, F: Fingerprint> NewDocument<'a, F> {
    /// Creates a document from a key of 1 to 1024 bytes and a fingerprint.
    pub fn new(key: &'a [u8], fingerprint: F) -> Self {
        Self { key, fingerprint, features: None }
    }

    /// Adds an encoded [`FeatureSet`], for an index that keeps feature sets.
    pub fn features(mut self, encoded: &'a [u8]) -> Self {
        self.features = Some(encoded);
        self
    }

    /// Returns an error for features that do not decode or that the index does not keep.
    pub(crate) fn check_features(&self, kept: bool) -> Result<()> {
        let Some(features) = self.features else { return Ok(()) };
        let invalid = |reason| Err(Error::InvalidOption { name: "features", reason });
        if !kept {
            return invalid("the index keeps none; create it with keep_features".to_owned());
        }
        match FeatureSet::check(features) {
            Ok(()) => Ok(()),
            Err(error) => invalid(error.to_string()),
        }
    }
}

/// A type that can be stored as a document.
///
/// ```
/// # let directory = tempfile::tempdir().unwrap();
/// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
/// use hamdex::{AsDocument, Durability, NewDocument};
///
/// struct Page {
///     url: String,
///     fingerprint: u64,
/// }
///
/// impl AsDocument<u64> for Page {
///     fn as_document(&self) -> NewDocument<'_, u64> {
///         NewDocument::new(self.url.as_bytes(), self.fingerprint)
///     }
/// }
///
/// let pages = [Page { url: "example.org/".to_owned(), fingerprint: 0xff }];
/// assert_eq!(index.insert_batch(&pages, Durability::Synced)?.inserted, 1);
/// # Ok::<(), hamdex::Error>(())
/// ```
pub trait AsDocument<F> {
    /// Returns the parts of the document.
    fn as_document(&self) -> NewDocument<'_, F>;
}

impl<F: Fingerprint> AsDocument<F> for NewDocument<'_, F> {
    fn as_document(&self) -> NewDocument<'_, F> {
        *self
    }
}

impl<F: Fingerprint, K: AsRef<[u8]>> AsDocument<F> for (K, F) {
    fn as_document(&self) -> NewDocument<'_, F> {
        NewDocument::new(self.0.as_ref(), self.1)
    }
}

impl<F: Fingerprint, K: AsRef<[u8]>, V: AsRef<[u8]>> AsDocument<F> for (K, F, Option<V>) {
    fn as_document(&self) -> NewDocument<'_, F> {
        let features = self.2.as_ref().map(AsRef::as_ref);
        NewDocument { key: self.0.as_ref(), fingerprint: self.1, features }
    }
}
