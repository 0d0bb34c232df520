//! The pipeline of an index: descriptor and resources become what fingerprints its texts.

use std::path::Path;

use super::{Header, Index};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::store::{Family, Store, resources};
use crate::text::{self, Pipeline, Resources, Secret};

impl Header {
    /// Reads the pipeline of an index, whatever its width, with the tables it holds.
    ///
    /// `None` when the index was made from fingerprints only.
    ///
    /// # Errors
    ///
    /// As [`Header::read`] and [`Index::pipeline`].
    pub fn read_pipeline(path: impl AsRef<Path>) -> Result<Option<Pipeline>> {
        Self::read_pipeline_with(path, None)
    }

    /// Reads the pipeline of an index that may have been made with a secret.
    ///
    /// # Errors
    ///
    /// As [`Header::read_pipeline`], and [`Error::HeaderMismatch`](crate::Error::HeaderMismatch)
    /// of `secret` unless the secret is the one that the index was made with, or there is none
    /// on either side.
    pub fn read_pipeline_with(
        path: impl AsRef<Path>,
        secret: Option<Secret>,
    ) -> Result<Option<Pipeline>> {
        let (record, stored) = Store::peek_resources(path.as_ref(), &Resources::NAMES)?;
        let mut stored = stored.into_iter();
        pipeline(&record.pipeline, secret, |_| Ok(stored.next().flatten()))
    }

    /// Reads the tables that the pipeline of an index was made with, whatever its width.
    ///
    /// They are all that an equal pipeline needs beside the descriptor and perhaps a secret, which
    /// is not stored.
    ///
    /// # Errors
    ///
    /// As [`Header::read`], and [`Error::Corrupt`](crate::Error::Corrupt) for damaged tables.
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
    /// Rebuilds the pipeline that the index was made with, with the tables it holds.
    ///
    /// Texts can so be searched by where no file of the tables is at hand. `None` when the index
    /// was made from fingerprints only.
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
    /// [`Error::Corrupt`](crate::Error::Corrupt) for tables that are damaged or not the ones the
    /// header names, [`Error::HeaderMismatch`](crate::Error::HeaderMismatch) when this library
    /// cannot give the same fingerprints.
    pub fn pipeline(&self) -> Result<Option<Pipeline>> {
        self.pipeline_with(None)
    }

    /// Rebuilds the pipeline of an index that may have been made with a secret.
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
    /// As [`Index::pipeline`], and [`Error::HeaderMismatch`](crate::Error::HeaderMismatch) of
    /// `secret` unless the secret is the one that the index was made with, or there is none on
    /// either side.
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

/// Reads all resources and compares them with what the descriptor names.
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
