//! Options and reports of a bulk build.

use std::path::PathBuf;

/// Which one counts of pushed documents with the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Repeats {
    /// The first one pushed.
    #[default]
    First,
    /// The last one pushed.
    Last,
    /// None: [`Builder::finish`](crate::build::Builder::finish) fails with
    /// [`Error::RepeatedKey`](crate::Error::RepeatedKey) before anything shows.
    Refuse,
}

/// Settings of a bulk build.
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
    /// Starts from 512 MiB and temporary files inside the index.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the bytes for sorting. Default = 512 MiB, at least 16 MiB.
    pub fn memory(mut self, bytes: usize) -> Self {
        self.memory = bytes;
        self
    }

    /// Sets the directory for what does not fit the memory. Default = inside the index.
    ///
    /// A build makes a directory of its own there, with a token that names the index: no other
    /// index uses or clears it, not even a copy of this one.
    pub fn tmp(mut self, directory: impl Into<PathBuf>) -> Self {
        self.tmp = Some(directory.into());
        self
    }

    /// Describes the inputs, best by a digest. Default = not described.
    ///
    /// [`Builder::resume`](crate::build::Builder::resume) refuses other ones if both sides describe
    /// theirs. Anything that changes which documents come, or their order, belongs to it.
    pub fn inputs(mut self, description: impl Into<String>) -> Self {
        self.inputs = Some(description.into());
        self
    }

    /// Sets which one counts of documents with the same key. Default = the first one.
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

/// What a finished build made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BuildReport {
    /// Documents in the index now.
    pub documents: u64,
    /// Distinct fingerprints among them.
    pub fingerprints: u64,
    /// Pushed documents that were dropped because another one with their key counts.
    pub duplicates: u64,
    /// Documents of the index that a pushed one took the place of.
    pub replaced: u64,
    /// Bytes of the table files that were written.
    pub bytes: u64,
}

/// What is left of an abandoned build.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Abandoned {
    /// Whether the build had made the index, which is now empty.
    pub made_index: bool,
    /// A directory of spill files that was left alone, because it is not this index's.
    pub left: Option<PathBuf>,
}
