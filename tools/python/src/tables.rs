//! Tables for texts: converts files and keywords of a call into parts of a pipeline.
//!
//! The keywords are those of the command line.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use hamdex::text::{
    self, Dictionary, IdfTable, Resources, Secret, StopWords, WeightTable, Weights,
};
use hamdex::{Error, PipelineOptions};
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;

use crate::failure::{Failure, Result};

/// Maximum size of a secret's file; a longer file was named by mistake.
const SEED_MAX: u64 = 4096;

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

    /// Returns true if the IDF table is learned from the texts of the call.
    pub(crate) fn learns(&self) -> bool {
        is(self.idf.as_deref(), "learn")
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
        if let Some(weights) = &self.weights {
            options = match weights_kind(weights) {
                Some(kind) => options.weights(kind),
                None if weights.is_file() => {
                    options.weight_table(table(weights, WeightTable::parse)?)
                }
                None => {
                    return Err(Failure::usage(format!(
                        "weights is \"{}\"; supported are uniform, tf, tfidf, levels and a file \
                         of lines 'word<TAB>weight'",
                        weights.display()
                    )));
                }
            };
        }
        options = match self.stop_words.as_deref() {
            None => options,
            words if is(words, "none") => options.stop_words(StopWords::none()),
            words if is(words, "builtin") => options.stop_words(StopWords::builtin()),
            Some(path) => options.stop_words(table(path, StopWords::parse)?),
        };
        if let Some(path) = &self.dictionary {
            options = options.dictionary(table(path, Dictionary::parse)?);
        }
        match self.idf.as_deref() {
            Some(path) if !is(Some(path), "jieba") && !is(Some(path), "learn") => {
                Ok(options.idf(idf(path)?))
            }
            _ => Ok(options),
        }
    }

    /// Reads the files that a descriptor names by their digests.
    ///
    /// # Errors
    ///
    /// A usage error for a keyword instead of a file, because a descriptor is complete.
    pub(crate) fn resources(&self) -> Result<Resources> {
        let mut resources = Resources::default();
        let words = |given: Option<&Path>, known: &[&str]| {
            given.is_some() && known.iter().any(|word| is(given, word))
        };
        if self.simplified
            || words(self.stop_words.as_deref(), &["none", "builtin"])
            || words(self.idf.as_deref(), &["jieba", "learn"])
            || self.weights.as_deref().is_some_and(|given| weights_kind(given).is_some())
        {
            return Err(Failure::usage(
                "a descriptor is complete; add only the files of the tables that it names",
            ));
        }
        if let Some(path) = &self.stop_words {
            let words = table(path, StopWords::parse)?;
            resources.insert("stop-words", words.own().unwrap_or_default().as_bytes())?;
        }
        if let Some(path) = &self.dictionary {
            resources.insert("dictionary", table(path, Dictionary::parse)?.as_str().as_bytes())?;
        }
        if let Some(path) = &self.weights {
            resources.insert("weights", table(path, WeightTable::parse)?.as_str().as_bytes())?;
        }
        if let Some(path) = &self.idf {
            resources.insert("idf", &idf(path)?.to_bytes())?;
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
        let failed = |source| Error::Io { path: path.to_owned(), source };
        let file = File::open(path).map_err(failed)?;
        warn_of_readers(path, &file)?;
        let mut bytes = Vec::new();
        file.take(SEED_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
        let refused = |reason: String| {
            let path = path.display();
            Failure::usage(format!(
                "{path} is not a secret: {reason}; make one with 'openssl rand -hex 32'"
            ))
        };
        if bytes.len() as u64 > SEED_MAX {
            return Err(refused(format!("longer than {SEED_MAX} bytes")));
        }
        Self::of(bytes).map_err(|failure| {
            if let Failure::Library(Error::InvalidOption { reason, .. }) = failure {
                return refused(reason);
            }
            failure
        })
    }
}

/// Does not print the secret.
impl std::fmt::Debug for Seed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seed")
    }
}

/// Warns about a secret that other users of the machine can read.
fn warn_of_readers(path: &Path, file: &File) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode = file.metadata().map_or(0, |found| found.permissions().mode());
    // The last six bits are the permissions of the group and of others.
    if mode.trailing_zeros() >= 6 {
        return Ok(());
    }
    let path = path.display();
    let text = format!("{path}: other users can read this secret; run 'chmod 600 {path}'");
    // A path contains no NUL.
    let text = std::ffi::CString::new(text).unwrap_or_default();
    Python::attach(|py| PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1))?;
    Ok(())
}

fn is(given: Option<&Path>, word: &str) -> bool {
    given.is_some_and(|given| given.as_os_str() == word)
}

/// Returns the kind of weights with that name; other values are files.
fn weights_kind(given: &Path) -> Option<Weights> {
    given.to_str()?.parse().ok()
}

/// Reads a table with one entry per line, in any encoding.
fn table<T>(path: &Path, parse: impl Fn(&str) -> hamdex::Result<T>) -> Result<T> {
    let bytes = read(path)?;
    if text::looks_binary(&bytes) {
        return Err(Failure::usage(format!("{} is not a text file", path.display())));
    }
    parse(&text::decode(&bytes).text).map_err(|error| {
        if let Error::InvalidLine { line, reason, .. } = error {
            return Failure::usage(format!("{}:{line}: {reason}", path.display()));
        }
        error.into()
    })
}

fn idf(path: &Path) -> Result<IdfTable> {
    IdfTable::from_bytes(&read(path)?).map_err(|_| {
        let path = path.display();
        Failure::usage(format!("{path} is not a table of 'hamdex fingerprint --save-idf'"))
    })
}

fn read(path: &Path) -> Result<Vec<u8>> {
    Ok(std::fs::read(path).map_err(|source| Error::Io { path: path.to_owned(), source })?)
}
