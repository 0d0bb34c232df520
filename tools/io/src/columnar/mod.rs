//! Parquet and Arrow, as far as a build has them: with the feature `parquet`, which is the default.

#[cfg(feature = "parquet")]
mod batch;
#[cfg(feature = "parquet")]
mod read;
#[cfg(feature = "parquet")]
mod write;

/// Row groups that one thread reads.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) groups: std::ops::Range<usize>,
    /// Ordinal of the first row within the file.
    pub(crate) first: u64,
    pub(crate) rows: u64,
}

#[cfg(not(feature = "parquet"))]
pub use absent::{Batch, Columnar, agree, filter, from_lines, require};
#[cfg(feature = "parquet")]
pub use batch::{Batch, Key, keys, source_values, stamps};
#[cfg(feature = "parquet")]
pub use read::Columnar;
#[cfg(feature = "parquet")]
pub use write::{agree, filter, from_lines, require};

/// Refuses columnar files in a build without their readers.
#[cfg(not(feature = "parquet"))]
mod absent {
    use std::fs::File;
    use std::path::Path;

    use crate::failure::{Failure, Result};
    use crate::fields::Fields;
    use crate::host::Host;
    use crate::open::{Meter, Reader};
    use crate::output::Output;
    use crate::reject::Reason;
    use crate::row::Row;

    const REASON: &str = "this hamdex was built without Parquet and Arrow; build it with the \
                          default feature \"parquet\", or convert the file to JSON Lines";

    /// A columnar file, which cannot exist in this build.
    #[derive(Debug)]
    pub enum Columnar {}

    impl Columnar {
        pub(crate) fn parquet(path: &Path) -> Result<Self> {
            Err(Failure::file(path, REASON))
        }

        pub(crate) fn arrow(path: &Path) -> Result<Self> {
            Err(Failure::file(path, REASON))
        }

        pub(crate) fn choose(&mut self, _: &Fields) -> Result<()> {
            match *self {}
        }

        pub(crate) fn rows(&self) -> Option<u64> {
            match *self {}
        }

        pub(crate) fn names(&self) -> Vec<String> {
            match *self {}
        }

        pub(crate) fn has(&self, _: &str) -> bool {
            match *self {}
        }

        pub(crate) fn in_memory(&self) -> bool {
            match *self {}
        }

        pub(crate) fn lines(&self) -> Result<Reader> {
            match *self {}
        }

        pub(crate) fn parts(&self) -> Vec<Part> {
            match *self {}
        }

        pub(crate) fn batches_of(
            &self,
            _: bool,
            _: Option<&Part>,
            _: &Meter,
        ) -> Result<std::iter::Empty<std::io::Result<Batch>>> {
            match *self {}
        }

        pub(crate) fn sample(&self, _: usize) -> Result<Reader> {
            match *self {}
        }
    }

    /// Rows of a columnar file.
    #[derive(Debug)]
    pub enum Batch {}

    impl Batch {
        pub(crate) fn beginning_at(self, _: u64, _: u64) -> Self {
            self
        }

        pub(crate) fn first(&self) -> u64 {
            match *self {}
        }

        pub(crate) fn rows(&self) -> u64 {
            match *self {}
        }

        pub(crate) fn bytes(&self) -> usize {
            match *self {}
        }

        pub(crate) fn json(&self) -> Result<(Vec<u8>, Vec<usize>)> {
            match *self {}
        }

        pub(crate) fn line(&self, _: usize) -> Result<Vec<u8>> {
            match *self {}
        }

        pub(crate) fn each<T>(
            &self,
            _: &Fields,
            _: impl FnMut(usize, Result<Row<'_>, Reason>) -> T,
        ) -> Result<Vec<T>> {
            match *self {}
        }
    }

    pub fn require() -> Result<()> {
        Err(Failure::Usage(format!("--format parquet: {REASON}")))
    }

    pub fn agree(_: &[&Columnar]) -> bool {
        false
    }

    pub fn filter(_: &[&Columnar], _: u64, _: &[u64], _: Output, _: &dyn Host) -> Result<Output> {
        Err(Failure::Usage(REASON.into()))
    }

    pub fn from_lines(_: File, _: Output, _: &dyn Host) -> Result<Output> {
        Err(Failure::Usage(REASON.into()))
    }
}
