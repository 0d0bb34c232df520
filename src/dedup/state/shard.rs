//! Shards: the inputs of a state, their decisions, and the directories of their results.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::segment::Foot;
use crate::dedup::Decisions;
use crate::error::{Error, Result};
use crate::store::{make_directory, sync_directory};
use crate::verify::EvidenceFile;

/// A committed shard, as [`State::shards`](super::State::shards) returns it.
///
/// ```
/// use hamdex::IndexOptions;
/// use hamdex::dedup::{Dedup, Known, NewShard, DedupOptions, ShardInfo, State};
///
/// let (directory, settings) = (tempfile::tempdir()?, DedupOptions::new(2));
/// let mut state = State::<u64>::create(directory.path(), &IndexOptions::new(), &settings)?;
/// let mut dedup = Dedup::<u64>::new(&settings)?;
/// dedup.push(0xff, &[], ())?;
/// let decided = state.decide(dedup, &())?;
/// let shard = NewShard { input: "monday", content: "crc32c 1f0a", results: None };
/// let show = |at: u32| Ok(Known { label: format!("{at}"), place: format!("monday:{at}") });
/// state.commit(&shard, (&decided.decisions, &decided.trail), &show, &())?;
/// let committed: &ShardInfo = &state.shards()[0];
/// assert_eq!((&committed.content[..], committed.kept), ("crc32c 1f0a", 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShardInfo {
    /// Name of the input.
    pub input: String,
    /// Identifies the content of the input, as the caller passed it.
    pub content: String,
    /// Directory of its results; `None` if it has none.
    pub results: Option<PathBuf>,
    /// Number of its documents that were kept.
    pub kept: u64,
    pub(super) first: u64,
    pub(super) number: u64,
}

/// A shard that [`State::commit`](super::State::commit) adds to the state.
///
/// See [`State`](super::State) for an example.
#[derive(Debug, Clone, Copy)]
pub struct NewShard<'a> {
    /// Name of the input, for [`State::shard`](super::State::shard).
    pub input: &'a str,
    /// Identifies the content of the input, for instance by a digest.
    pub content: &'a str,
    /// Directory of the results, at the path from [`State::stage`](super::State::stage), and its
    /// final path.
    pub results: Option<(&'a Path, &'a Path)>,
}

/// What is shown of a kept document: its id and its place.
///
/// See [`State`](super::State) for an example.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// Id of the document, as the caller wrote it.
    pub label: String,
    /// File and row of the document, as the caller wrote them.
    pub place: String,
}

/// Decisions about a shard that is not committed yet.
///
/// See [`State`](super::State) for an example.
#[derive(Debug)]
#[non_exhaustive]
pub struct Decided<F> {
    /// The decisions. [`Decision::Stored`](crate::dedup::Decision::Stored) is near a document of an
    /// earlier shard.
    pub decisions: Decisions<F>,
    /// What the commit stores along with them.
    pub trail: Trail,
}

/// The evidence of a shard, and the near documents of earlier shards.
///
/// See [`State`](super::State) for an example.
///
/// ```
/// use hamdex::IndexOptions;
/// use hamdex::dedup::{Decided, Dedup, DedupOptions, State, Trail};
///
/// let (directory, settings) = (tempfile::tempdir()?, DedupOptions::new(2));
/// let state = State::<u64>::create(directory.path(), &IndexOptions::new(), &settings)?;
/// let decided: Decided<u64> = state.decide(Dedup::<u64>::new(&settings)?, &())?;
/// let trail: Trail = decided.trail;
/// assert_eq!(trail.known(b"1"), None); // nothing is near an earlier document
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Trail {
    pub(super) evidence: Option<EvidenceFile>,
    /// Near documents of earlier shards, by ascending number.
    pub(super) known: Vec<(u64, Known)>,
}

impl Trail {
    /// Returns id and place of an earlier document, by its key.
    pub fn known(&self, key: &[u8]) -> Option<&Known> {
        let number = number_of(key)?;
        let at = self.known.binary_search_by_key(&number, |&(known, _)| known).ok()?;
        self.known.get(at).map(|(_, known)| known)
    }
}

impl ShardInfo {
    /// Creates the entry of a segment from its foot.
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

/// Renames results to their final path, unless that was already done.
pub(super) fn publish(stage: &Path, results: &Path) -> Result<()> {
    if let Some(parent) = results.parent() {
        make_directory(parent)?;
    }
    match fs::rename(stage, results) {
        // The rename was done before, and somebody has moved the results since.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::io(results, error)),
        Ok(()) => results.parent().map_or(Ok(()), sync_directory),
    }
}

/// Returns both paths, absolute, as bytes; the second must not exist.
pub(super) fn absolute(stage: &Path, results: &Path) -> Result<(Vec<u8>, Vec<u8>)> {
    if results.symlink_metadata().is_ok() {
        let reason = format!("{} already exists", results.display());
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

/// Decodes a document's number from its key.
pub(super) fn number_of(key: &[u8]) -> Option<u64> {
    key.try_into().ok().map(u64::from_be_bytes)
}
