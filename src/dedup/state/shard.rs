//! Shards: what goes into a state, what becomes of it, and where its results are.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::segment::Foot;
use crate::dedup::Decisions;
use crate::error::{Error, Result};
use crate::store::{make_directory, sync_directory};
use crate::verify::EvidenceFile;

/// A shard that was committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardInfo {
    /// Name of what was read.
    pub input: String,
    /// Stands for what it held.
    pub content: String,
    /// Where its results are; `None` if it had no directory for them.
    pub results: Option<PathBuf>,
    /// Documents that were kept of it.
    pub kept: u64,
    pub(super) first: u64,
    pub(super) number: u64,
}

/// A shard that is to be committed.
#[derive(Debug, Clone, Copy)]
pub struct NewShard<'a> {
    /// Name of what was read, by which [`State::shard`](super::State::shard) finds it again.
    pub input: &'a str,
    /// Stands for what it holds, such as a digest.
    pub content: &'a str,
    /// The directory of its results, made under [`State::stage`](super::State::stage), and the name it is to get.
    pub results: Option<(&'a Path, &'a Path)>,
}

/// What is shown of a kept document: its id, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// The document's id, as the caller wrote it.
    pub label: String,
    /// Its file and row, as the caller wrote them.
    pub place: String,
}

/// What becomes of a shard's documents, not committed yet.
#[derive(Debug)]
pub struct Decided<F> {
    /// The decisions; [`Decision::Stored`](crate::dedup::Decision::Stored) is near a document of an earlier shard.
    pub decisions: Decisions<F>,
    /// What the commit stores beside them.
    pub trail: Trail,
}

/// What verifications compared of a shard, and which documents of earlier ones were near.
#[derive(Debug)]
pub struct Trail {
    pub(super) evidence: Option<EvidenceFile>,
    /// Kept documents of earlier shards that were near, by rising number.
    pub(super) known: Vec<(u64, Known)>,
}

impl Trail {
    /// Returns what is shown of the document of an earlier shard, by the key of the decision.
    pub fn known(&self, key: &[u8]) -> Option<&Known> {
        let number = number_of(key)?;
        let at = self.known.binary_search_by_key(&number, |&(known, _)| known).ok()?;
        self.known.get(at).map(|(_, known)| known)
    }
}

impl ShardInfo {
    /// Takes what a segment says of itself.
    pub(super) fn of(number: u64, foot: &Foot) -> Self {
        let Foot { first, count, input, content, results } = foot;
        Self {
            input: input.clone(),
            content: content.clone(),
            results: results.as_ref().map(|(_, results)| path_of(results)),
            kept: *count,
            first: *first,
            number,
        }
    }
}

/// Gives results their name, unless that was done before.
pub(super) fn publish(stage: &Path, results: &Path) -> Result<()> {
    if let Some(parent) = results.parent() {
        make_directory(parent)?;
    }
    match fs::rename(stage, results) {
        // Whoever moved the results away since has them.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::io(results, error)),
        Ok(()) => results.parent().map_or(Ok(()), sync_directory),
    }
}

/// The bytes of two absolute paths, of which the second must not exist.
pub(super) fn absolute(stage: &Path, results: &Path) -> Result<(Vec<u8>, Vec<u8>)> {
    if results.symlink_metadata().is_ok() {
        let reason = format!("{} exists and is not this shard's", results.display());
        return Err(Error::InvalidOption { name: "results", reason });
    }
    let bytes = |path: &Path| {
        let path = std::path::absolute(path).map_err(|e| Error::io(path, e))?;
        Ok(path.into_os_string().into_encoded_bytes())
    };
    Ok((bytes(stage)?, bytes(results)?))
}

pub(super) fn path_of(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    std::ffi::OsStr::from_bytes(bytes).into()
}

/// The number of a document by its key.
pub(super) fn number_of(key: &[u8]) -> Option<u64> {
    key.try_into().ok().map(u64::from_be_bytes)
}
