//! Parquet and Arrow, as far as a build has them: with the feature `parquet`, which is the default.

#[cfg(feature = "parquet")]
mod batch;
#[cfg(feature = "parquet")]
mod read;
#[cfg(feature = "parquet")]
mod write;

#[cfg(not(feature = "parquet"))]
pub(crate) use absent::{Batch, Columnar, agree, filter, from_lines, require};
#[cfg(feature = "parquet")]
pub(crate) use batch::{Batch, source_values};
#[cfg(feature = "parquet")]
pub(crate) use read::Columnar;
#[cfg(feature = "parquet")]
pub(crate) use write::{agree, filter, from_lines, require};

/// Refuses columnar files in a build without their readers.
#[cfg(not(feature = "parquet"))]
mod absent {
    use std::fs::File;
    use std::path::Path;

    use crate::console::Console;
    use crate::failure::{Failure, Result};
    use crate::input::fields::Fields;
    use crate::input::open::{Meter, Reader};
    use crate::input::reject::Reason;
    use crate::input::row::Row;
    use crate::output::Output;

    const REASON: &str = "this hamdex was built without Parquet and Arrow; build it with the \
                          default feature \"parquet\", or convert the file to JSON Lines";

    /// A columnar file, which cannot exist in this build.
    #[derive(Debug)]
    pub(crate) enum Columnar {}

    impl Columnar {
        pub(in crate::input) fn parquet(path: &Path) -> Result<Self> {
            Err(Failure::file(path, REASON))
        }

        pub(in crate::input) fn arrow(path: &Path) -> Result<Self> {
            Err(Failure::file(path, REASON))
        }

        pub(in crate::input) fn choose(&mut self, _: &Fields) -> Result<()> {
            match *self {}
        }

        pub(in crate::input) fn rows(&self) -> Option<u64> {
            match *self {}
        }

        pub(in crate::input) fn names(&self) -> Vec<String> {
            match *self {}
        }

        pub(in crate::input) fn has(&self, _: &str) -> bool {
            match *self {}
        }

        pub(in crate::input) fn lines(&self) -> Result<Reader> {
            match *self {}
        }

        pub(in crate::input) fn batches_of(
            &self,
            _: bool,
            _: &Meter,
        ) -> Result<std::iter::Empty<std::io::Result<Batch>>> {
            match *self {}
        }

        pub(in crate::input) fn sample(&self, _: usize) -> Result<Reader> {
            match *self {}
        }
    }

    /// Rows of a columnar file.
    #[derive(Debug)]
    pub(crate) enum Batch {}

    impl Batch {
        pub(in crate::input) fn beginning_at(self, _: u64, _: u64) -> Self {
            self
        }

        pub(in crate::input) fn first(&self) -> u64 {
            match *self {}
        }

        pub(in crate::input) fn rows(&self) -> u64 {
            match *self {}
        }

        pub(in crate::input) fn bytes(&self) -> usize {
            match *self {}
        }

        pub(in crate::input) fn json(&self) -> Result<(Vec<u8>, Vec<usize>)> {
            match *self {}
        }

        pub(in crate::input) fn line(&self, _: usize) -> Result<Vec<u8>> {
            match *self {}
        }

        pub(in crate::input) fn each<T>(
            &self,
            _: &Fields,
            _: impl FnMut(usize, Result<Row<'_>, Reason>) -> T,
        ) -> Result<Vec<T>> {
            match *self {}
        }
    }

    pub(crate) fn require() -> Result<()> {
        Err(Failure::Usage(format!("--format parquet: {REASON}")))
    }

    pub(crate) fn agree(_: &[&Columnar]) -> bool {
        false
    }

    pub(crate) fn filter(
        _: &[&Columnar],
        _: u64,
        _: &[u64],
        _: Output,
        _: &Console,
    ) -> Result<Output> {
        Err(Failure::Usage(REASON.into()))
    }

    pub(crate) fn from_lines(_: File, _: Output, _: &Console) -> Result<Output> {
        Err(Failure::Usage(REASON.into()))
    }
}
