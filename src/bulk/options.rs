//! Options and reports of a bulk build.

use std::path::PathBuf;

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
