//! The pipeline of an index: rebuilt from the stored descriptor and resources.

use std::path::Path;

use super::{Header, Index};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::store::{Family, Store, resources};
use crate::text::{self, Pipeline, Resources, Secret};

impl Header {
    /// Reads the pipeline of an index of any width, including its tables.
    ///
    /// Returns `None` if the index was made from fingerprints only.
    ///
    /// ```
    /// use hamdex::inspect::Header;
    /// use hamdex::{Index, IndexOptions, Pipeline, PipelineOptions};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("pages");
    /// let pipeline = Pipeline::new(&PipelineOptions::new())?;
    /// drop(Index::<u64>::create(&path, &IndexOptions::new().text(&pipeline))?);
    /// let stored = Header::read_pipeline(&path)?.expect("made with one");
    /// assert_eq!(stored.descriptor(), pipeline.descriptor());
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Header::read`] and [`Index::pipeline`].
    pub fn read_pipeline(path: impl AsRef<Path>) -> Result<Option<Pipeline>> {
        Self::read_pipeline_with(path, None)
    }

    /// Reads the pipeline of an index that may need a secret.
    ///
    /// [`Index::pipeline_with`] has an example.
    ///
    /// ```
    /// use hamdex::inspect::Header;
    /// use hamdex::text::Secret;
    /// use hamdex::{Index, IndexOptions, Pipeline, PipelineOptions};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("pages");
    /// let secret = || Secret::from_bytes(b"0123456789abcdef0123456789abcdef");
    /// let pipeline = Pipeline::new(&PipelineOptions::new().secret(secret()?))?;
    /// drop(Index::<u64>::create(&path, &IndexOptions::new().text(&pipeline))?);
    /// let again = Header::read_pipeline_with(&path, Some(secret()?))?.expect("has a pipeline");
    /// assert_eq!(again.descriptor(), pipeline.descriptor());
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Header::read_pipeline`], and
    /// [`Error::HeaderMismatch`](crate::Error::HeaderMismatch) if `secret` differs from the one
    /// that the index was created with.
    pub fn read_pipeline_with(
        path: impl AsRef<Path>,
        secret: Option<Secret>,
    ) -> Result<Option<Pipeline>> {
        let (record, stored) = Store::peek_resources(path.as_ref(), &Resources::NAMES)?;
        let mut stored = stored.into_iter();
        pipeline(&record.pipeline, secret, |_| Ok(stored.next().flatten()))
    }

    /// Reads the tables of the pipeline of an index of any width.
    ///
    /// An equal pipeline needs these tables, the descriptor, and the secret if there is one. The
    /// secret is not stored.
    ///
    /// ```
    /// use hamdex::text::StopWords;
    /// use hamdex::inspect::Header;
    /// use hamdex::{Index, IndexOptions, Pipeline, PipelineOptions};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("pages");
    /// let options = PipelineOptions::new().stop_words(StopWords::parse("the\na\n")?);
    /// let pipeline = Pipeline::new(&options)?;
    /// Index::<u64>::create(&path, &IndexOptions::new().text(&pipeline))?;
    /// let names: Vec<_> = Header::read_resources(&path)?.parts().map(|(name, _)| name).collect();
    /// assert_eq!(names, ["stop-words"]);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Header::read`], and [`Error::Corrupt`](crate::Error::Corrupt) for
    /// damaged tables.
    pub fn read_resources(path: impl AsRef<Path>) -> Result<Resources> {
        let (_, stored) = Store::peek_resources(path.as_ref(), &Resources::NAMES)?;
        let mut resources = Resources::default();
        for (name, bytes) in Resources::NAMES.into_iter().zip(stored) {
            if let Some(bytes) = bytes {
                resources.insert(name, &bytes)?;
            }
        }
        Ok(resources)
    }
}

impl<F: Fingerprint> Index<F> {
    /// Rebuilds the pipeline that the index was created with, including its tables.
    ///
    /// So texts can be searched without the files of the tables. Returns `None` if the index was
    /// made from fingerprints only.
    ///
    /// ```
    /// use hamdex::text::StopWords;
    /// use hamdex::{Index, IndexOptions, Pipeline, PipelineOptions};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("pages");
    /// let options = PipelineOptions::new().stop_words(StopWords::parse("the\na\n")?);
    /// let pipeline = Pipeline::new(&options)?;
    /// let index = Index::<u64>::create(&path, &IndexOptions::new().text(&pipeline))?;
    /// let stored = index.pipeline()?.expect("made with one");
    /// assert_eq!(stored.descriptor(), pipeline.descriptor());
    /// assert_eq!(stored.features("the saucer").len(), 1);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::Corrupt`](crate::Error::Corrupt) if tables are damaged or not those in the
    /// header, and [`Error::HeaderMismatch`](crate::Error::HeaderMismatch) if this version of the
    /// library cannot make the same fingerprints.
    pub fn pipeline(&self) -> Result<Option<Pipeline>> {
        self.pipeline_with(None)
    }

    /// Rebuilds the pipeline of an index that may need a secret.
    ///
    /// ```
    /// use hamdex::text::Secret;
    /// use hamdex::{Error, Index, IndexOptions, Pipeline, PipelineOptions};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("pages");
    /// let secret = Secret::from_bytes(b"6f1d0c9be2a8475393d4c07a51fe286b")?;
    /// let pipeline = Pipeline::new(&PipelineOptions::new().secret(secret))?;
    /// let index = Index::<u64>::create(&path, &IndexOptions::new().text(&pipeline))?;
    /// assert!(index.pipeline_with(Some(secret))?.is_some());
    /// assert!(matches!(index.pipeline(), Err(Error::HeaderMismatch { what: "secret", .. })));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Index::pipeline`], and
    /// [`Error::HeaderMismatch`](crate::Error::HeaderMismatch) if `secret` differs from the one
    /// that the index was created with.
    pub fn pipeline_with(&self, secret: Option<Secret>) -> Result<Option<Pipeline>> {
        let get = |key: &[u8]| self.shared.store.get(Family::Meta, key);
        pipeline(&self.header().pipeline, secret, |name| resources::read(name, get))
    }
}

fn pipeline(
    descriptor: &str,
    secret: Option<Secret>,
    read: impl FnMut(&'static str) -> Result<Option<Vec<u8>>>,
) -> Result<Option<Pipeline>> {
    let mut resources = checked(descriptor, read)?;
    if descriptor.is_empty() {
        return Ok(None);
    }
    if let Some(secret) = secret {
        resources = resources.with_secret(secret);
    }
    Pipeline::from_descriptor_with(descriptor, &resources).map(Some)
}

/// Reads all resources and compares them with the descriptor.
pub(super) fn checked(
    descriptor: &str,
    mut read: impl FnMut(&'static str) -> Result<Option<Vec<u8>>>,
) -> Result<Resources> {
    let mut resources = Resources::default();
    for name in Resources::NAMES {
        if let Some(bytes) = read(name)? {
            resources.insert(name, &bytes)?;
        }
    }
    text::require_resources(descriptor, &resources)?;
    Ok(resources)
}
