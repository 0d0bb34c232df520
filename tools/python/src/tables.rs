//! Tables for texts: converts files and keywords of a call into parts of a pipeline.
//!
//! The keywords are those of the command line.

use std::ffi::CString;
use std::path::{Path, PathBuf};

use hamdex::PipelineOptions;
use hamdex::text::{Resources, Secret};
use hamdex_io::tables::{self, IdfArg, WeightsArg};
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;

use crate::failure::{Failure, Result};

/// What a call adds to a pipeline.
#[derive(Debug, Default, Clone, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Tables {
    pub(crate) simplified: bool,
    /// "none", "builtin" or a file.
    pub(crate) stop_words: Option<PathBuf>,
    pub(crate) dictionary: Option<PathBuf>,
    /// A kind of weights or a file.
    pub(crate) weights: Option<PathBuf>,
    /// "jieba", "learn" or a file.
    pub(crate) idf: Option<PathBuf>,
    pub(crate) seed_file: Option<PathBuf>,
}

impl Tables {
    /// Returns true if anything except the secret is given.
    pub(crate) fn given(&self) -> bool {
        self.simplified
            || self.stop_words.is_some()
            || self.dictionary.is_some()
            || self.weights.is_some()
            || self.idf.is_some()
    }

    fn named(&self) -> tables::Tables {
        let word = |path: &PathBuf| path.to_string_lossy().into_owned();
        tables::Tables {
            stop_words: self.stop_words.as_ref().map(|path| word(path).as_str().into()),
            dictionary: self.dictionary.clone(),
            idf: self.idf.as_ref().map(|path| word(path).as_str().into()),
            centre: None,
        }
    }

    fn weights(&self) -> Result<Option<WeightsArg>> {
        let Some(weights) = &self.weights else { return Ok(None) };
        let named = weights.to_string_lossy().parse();
        named.map(Some).map_err(|_| {
            Failure::usage(format!(
                "weights is \"{}\"; supported are uniform, tf, tfidf, levels and a file of lines \
                 'word<TAB>weight'",
                weights.display()
            ))
        })
    }

    /// Returns true if the IDF table is learned from the texts of the call.
    pub(crate) fn learns(&self) -> bool {
        self.named().idf == Some(IdfArg::Learn)
    }

    /// Reads the secret, if one is given.
    pub(crate) fn seed(&self) -> Result<Option<Seed>> {
        self.seed_file.as_deref().map(Seed::read).transpose()
    }

    /// Adds everything except the secret and a table that is yet to be learned.
    pub(crate) fn apply(&self, mut options: PipelineOptions) -> Result<PipelineOptions> {
        if self.simplified {
            options = options.simplified(true);
        }
        if let Some(weights) = self.weights()? {
            options = weights.apply(options).map_err(Failure::of_argument)?;
        }
        self.named().apply(options).map_err(Failure::of_argument)
    }

    /// Reads the files that a descriptor names by their digests.
    ///
    /// # Errors
    ///
    /// A usage error for a keyword instead of a file, because a descriptor is complete.
    pub(crate) fn resources(&self) -> Result<Resources> {
        let (named, weights) = (self.named(), self.weights()?);
        let kind = weights.as_ref().is_some_and(|weights| !weights.is_file());
        if self.simplified || named.words_given() || kind {
            return Err(Failure::usage(
                "a descriptor is complete; add only the files of the tables that it names",
            ));
        }
        let mut resources = named.resources().map_err(Failure::of_argument)?;
        if let Some(weights) = weights {
            weights.insert(&mut resources).map_err(Failure::of_argument)?;
        }
        Ok(resources)
    }
}

/// A secret and its file contents, which can be passed to another process.
#[derive(Clone)]
pub(crate) struct Seed {
    pub(crate) bytes: Vec<u8>,
    pub(crate) secret: Secret,
}

impl Seed {
    pub(crate) fn of(bytes: Vec<u8>) -> Result<Self> {
        let secret = Secret::from_bytes(&bytes)?;
        Ok(Self { bytes, secret })
    }

    fn read(path: &Path) -> Result<Self> {
        let mut warning = None;
        let (secret, bytes) = tables::secret(path, |line| warning = CString::new(line).ok())
            .map_err(Failure::of_argument)?;
        if let Some(warning) = warning {
            Python::attach(|py| PyErr::warn(py, &py.get_type::<PyUserWarning>(), &warning, 1))?;
        }
        Ok(Self { bytes, secret })
    }
}

/// Does not print the secret.
impl std::fmt::Debug for Seed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seed")
    }
}
