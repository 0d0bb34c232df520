//! Options, needs and reports of a bulk build.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result, StoreErrorKind};
use crate::plan::Plan;
use crate::store::pack::{PACK_MEMBERS, PACKED_KEY};

/// Which of several pushed documents with the same key is used.
///
/// See [`BuildOptions::repeats`] for an example.
///
/// ```
/// use hamdex::build::{BuildOptions, Builder, Repeats};
/// use hamdex::{Index, IndexOptions};
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path().join("pages");
/// let build = BuildOptions::new().repeats(Repeats::Last);
/// let mut builder = Builder::<u64>::create(&path, &IndexOptions::new(), &build)?;
/// builder.push(b"page", 0x00, 0)?;
/// builder.push(b"page", 0xff, 1)?;
/// builder.finish(&(), &mut |_, _| ())?;
/// assert_eq!(Index::<u64>::open(&path)?.get(b"page")?, Some(0xff));
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Repeats {
    /// The first one pushed.
    #[default]
    First,
    /// The last one pushed.
    Last,
    /// None: [`Builder::finish`](crate::build::Builder::finish) returns
    /// [`Error::RepeatedKey`](crate::Error::RepeatedKey) before anything is visible.
    Refuse,
}

/// Settings of a bulk build: memory, directories and repeats.
///
/// ```
/// use hamdex::build::{BuildOptions, Repeats};
///
/// let build = BuildOptions::new()
///     .memory(64 << 20)
///     .tmp(std::env::temp_dir())
///     .inputs("pages.jsonl, 2026-01-31")
///     .repeats(Repeats::Refuse);
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct BuildOptions {
    pub(super) memory: usize,
    pub(super) tmp: Option<PathBuf>,
    pub(super) inputs: Option<String>,
    pub(super) repeats: Repeats,
}

impl Default for BuildOptions {
    fn default() -> Self {
        Self { memory: 512 << 20, tmp: None, inputs: None, repeats: Repeats::First }
    }
}

impl BuildOptions {
    /// Creates the default settings: 512 MiB, and temporary files inside the index.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the memory for sorting in bytes. Default = 512 MiB, at least 16 MiB.
    pub fn memory(mut self, bytes: usize) -> Self {
        self.memory = bytes;
        self
    }

    /// Sets the directory for data that exceeds the memory. Default = inside the index.
    ///
    /// The build creates a directory there with a token that identifies the index, so no other
    /// index, not even a copy of this one, uses or clears it.
    pub fn tmp(mut self, directory: impl Into<PathBuf>) -> Self {
        self.tmp = Some(directory.into());
        self
    }

    /// Describes the inputs, ideally by a digest. Default = no description.
    ///
    /// [`Builder::resume`](crate::build::Builder::resume) refuses different inputs if both builds describe
    /// theirs. Include everything that changes the documents or their order.
    pub fn inputs(mut self, description: impl Into<String>) -> Self {
        self.inputs = Some(description.into());
        self
    }

    /// Sets which of several documents with the same key is used. Default = the first.
    ///
    /// ```
    /// use hamdex::build::{BuildOptions, Builder, Repeats};
    /// use hamdex::{Index, IndexOptions};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("pages");
    /// let build = BuildOptions::new().repeats(Repeats::Last);
    /// let mut builder = Builder::<u64>::create(&path, &IndexOptions::new(), &build)?;
    /// builder.push(b"page", 1, 0)?;
    /// builder.push(b"page", 2, 1)?;
    /// builder.finish(&(), &mut |_, _| ())?;
    /// assert_eq!(Index::<u64>::open(&path)?.get(b"page")?, Some(2));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn repeats(mut self, repeats: Repeats) -> Self {
        self.repeats = repeats;
        self
    }
}

/// Document counts and size of a finished build.
///
/// See [`Builder`](crate::build::Builder) for an example.
///
/// ```
/// use hamdex::IndexOptions;
/// use hamdex::build::{BuildOptions, BuildReport, Builder};
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path().join("pages");
/// let mut builder = Builder::<u64>::create(&path, &IndexOptions::new(), &BuildOptions::new())?;
/// builder.push(b"page", 0xff, 0)?;
/// builder.push(b"copy", 0xff, 1)?;
/// let report: BuildReport = builder.finish(&(), &mut |_, _| ())?;
/// assert_eq!((report.documents, report.fingerprints), (2, 1));
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct BuildReport {
    /// Documents in the index after the build.
    pub documents: u64,
    /// Distinct fingerprints among them.
    pub fingerprints: u64,
    /// Pushed documents that were dropped because of another one with their key.
    pub duplicates: u64,
    /// Stored documents that a pushed one replaced.
    pub replaced: u64,
    /// Bytes of the table files written.
    pub bytes: u64,
}

/// What remains of an abandoned build.
///
/// See [`Builder::abandon`](crate::build::Builder::abandon) for an example.
///
/// ```
/// use hamdex::IndexOptions;
/// use hamdex::build::{Abandoned, BuildOptions, Builder};
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path().join("pages");
/// drop(Builder::<u64>::create(&path, &IndexOptions::new(), &BuildOptions::new())?);
/// let abandoned: Abandoned = Builder::<u64>::abandon(&path)?;
/// assert!(abandoned.made_index && abandoned.left.is_none());
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Abandoned {
    /// Whether the build created the index, which is now empty.
    pub made_index: bool,
    /// A directory of spill files that was not removed because it is not this index's.
    pub left: Option<PathBuf>,
}

/// Space on disk that a build needs, in bytes.
///
/// An estimate for distinct fingerprints without features, above what the memory holds. Keys of 8
/// bytes are treated as row numbers, which are packed. [`Builder::finish`](crate::build::Builder::finish)
/// compares it with the free space.
///
/// ```
/// use hamdex::build::DiskNeeds;
/// use hamdex::plan::Plan;
///
/// let rows = DiskNeeds::of(&Plan::named("4", 64)?, 1_000_000_000, 8);
/// assert!(rows.index < 40_000_000_000);
/// assert!(rows.peak < rows.index / 10 * 13);
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiskNeeds {
    /// Bytes of the finished index.
    pub index: u64,
    /// Most bytes that index and spill files take at the same time.
    pub peak: u64,
}

/// Bytes that an entry takes in a file beside its key and value.
const ENTRY: u64 = 15;

impl DiskNeeds {
    /// Estimates a build of a number of documents with keys of `key_bytes` bytes.
    pub fn of(plan: &Plan, documents: u64, key_bytes: u64) -> Self {
        let width = u64::from(plan.bits() / 8);
        let rank = u64::from(documents.max(1).ilog2());
        // The largest of 128 gaps is five times the mean.
        let gap = (8 * width + 2).saturating_sub(rank).div_ceil(8).clamp(1, width);
        let runs = documents.div_ceil(PACK_MEMBERS as u64);
        let table = documents * gap + runs * (2 + width + ENTRY);
        let (docs, postings) = if key_bytes == PACKED_KEY as u64 {
            let row = (rank + 1).div_ceil(8);
            let postings = documents * (gap + row) + runs * (15 + width + key_bytes + ENTRY);
            (documents * width + runs * (6 + key_bytes + ENTRY), postings)
        } else {
            (documents * (key_bytes + width + 8), documents * (key_bytes + width + 2))
        };
        let index = docs + postings + table * plan.tables().len() as u64;
        let pushed = documents * (key_bytes + width + 10);
        let sorted = documents * (key_bytes + width + 2);
        let spooled = documents * width;
        let phases = [
            pushed + docs,
            docs + sorted + postings + spooled,
            index.saturating_sub(table) + 2 * spooled,
            index + spooled,
        ];
        Self { index, peak: phases.into_iter().max().unwrap_or(index) }
    }

    /// Fails if `place` has too little space beside the bytes that are spilled there already.
    pub(super) fn require(needed: u64, spilled: u64, place: &Path) -> Result<()> {
        match available(place) {
            Some(available) if needed.saturating_sub(spilled) > available => {
                let (needed, place) = (needed - spilled, place.display());
                let message = format!(
                    "the build needs about {needed} more bytes in {place}, {available} are \
                     available; free some and resume it"
                );
                Err(Error::Store { kind: StoreErrorKind::NoSpace, message })
            }
            _ => Ok(()),
        }
    }
}

/// Returns the free bytes of a file system, if the system tells.
fn available(place: &Path) -> Option<u64> {
    #[cfg(unix)]
    return rustix::fs::statvfs(place).ok().map(|space| space.f_bavail * space.f_frsize);
    #[cfg(not(unix))]
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_billion_rows_need_forty_bytes_each_and_a_third_more_while_they_are_built() {
        let plan = Plan::named("4", 64).unwrap();
        let rows = DiskNeeds::of(&plan, 1_000_000_000, 8);
        assert!((37_000_000_000..40_000_000_000).contains(&rows.index), "{rows:?}");
        assert!(rows.peak < rows.index / 10 * 13, "{rows:?}");
        let names = DiskNeeds::of(&plan, 1_000_000_000, 9);
        assert!(names.index > rows.index && names.peak > names.index, "{names:?}");
        assert_eq!(DiskNeeds::of(&plan, 0, 8).index, 0);
    }

    #[test]
    fn a_build_that_the_disk_cannot_hold_is_refused_with_both_numbers() {
        let place = tempfile::tempdir().unwrap();
        DiskNeeds::require(u64::MAX, u64::MAX, place.path()).unwrap();
        DiskNeeds::require(1 << 10, 0, place.path()).unwrap();
        let error = DiskNeeds::require(1 << 60, 1, place.path()).unwrap_err();
        assert!(matches!(&error, Error::Store { kind: StoreErrorKind::NoSpace, .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("needs about 1152921504606846975 more bytes"), "{text}");
        assert!(text.contains("are available"), "{text}");
    }
}
