//! Parquet and Arrow, as far as a build has them: with the feature `parquet`, which is the default.

#[cfg(feature = "parquet")]
mod batch;
#[cfg(feature = "parquet")]
mod read;
#[cfg(feature = "parquet")]
mod schema;
#[cfg(feature = "parquet")]
mod texts;
#[cfg(feature = "parquet")]
mod write;

/// Row groups that one thread reads.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    #[cfg(feature = "parquet")]
    pub(crate) groups: std::ops::Range<usize>,
    /// Ordinal of the first row within the file.
    pub(crate) first: u64,
    pub(crate) rows: u64,
}

#[cfg(not(feature = "parquet"))]
pub use absent::{Batch, Chosen, Columnar, agree, filter, from_lines, require};
#[cfg(feature = "parquet")]
pub use batch::{Batch, Key, keys, list_texts, source_values, stamps};
#[cfg(feature = "parquet")]
pub use read::Columnar;
#[cfg(feature = "parquet")]
pub use write::{Chosen, agree, filter, from_lines, require};

/// Refuses columnar files in a build without their readers.
#[cfg(not(feature = "parquet"))]
mod absent {
    use std::fs::File;
    use std::path::Path;

    use super::Part;
    use crate::documents::reject::Reason;
    use crate::face::failure::{Failure, Result};
    use crate::face::host::Host;
    use crate::face::output::Output;
    use crate::formats::fields::Fields;
    use crate::formats::row::Row;
    use crate::sources::open::Meter;

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
    }

    /// Rows of a columnar file.
    #[derive(Debug)]
    pub enum Batch {}

    impl Batch {
        pub(crate) fn beginning_at(self, _: u64, _: u64) -> Self {
            self
        }

        pub(crate) fn each<T>(
            &self,
            _: &Fields,
            _: impl FnMut(usize, Result<Row<'_>, Reason>) -> T,
        ) -> Result<Vec<T>> {
            match *self {}
        }
    }

    type Batches = Result<std::iter::Empty<std::io::Result<Batch>>>;

    /// Adds methods that nothing can call.
    macro_rules! never {
        ($kind:ident: $($name:ident($($argument:ty),*) -> $result:ty;)*) => {
            impl $kind {
                $(pub(crate) fn $name(&self, $(_: $argument),*) -> $result {
                    match *self {}
                })*
            }
        };
    }

    never! { Columnar:
        choose(&Fields) -> Result<()>;
        rows() -> Option<u64>;
        names() -> Vec<String>;
        has(&str) -> bool;
        has_text(&str, bool) -> bool;
        paths() -> Vec<String>;
        in_memory() -> bool;
        parts() -> Vec<Part>;
        batches_of(bool, Option<&Part>, &Meter) -> Batches;
        sample(usize) -> Batches;
    }

    never! { Batch:
        first() -> u64;
        rows() -> u64;
        bytes() -> usize;
        json() -> Result<(Vec<u8>, Vec<usize>)>;
        line(usize) -> Result<Vec<u8>>;
    }

    pub fn require() -> Result<()> {
        Err(Failure::Usage(format!("--format parquet: {REASON}")))
    }

    pub fn agree(_: &[&Columnar]) -> bool {
        false
    }

    /// Rows to write, of which there are none in this build.
    #[derive(Debug, Default)]
    pub struct Chosen(());

    impl Chosen {
        pub fn push(&mut self, _: u64, _: Option<&[u8]>) -> Result<()> {
            Err(Failure::Usage(REASON.into()))
        }
    }

    pub fn filter(
        _: &[(&Columnar, &[String])],
        _: u64,
        _: Chosen,
        _: Output,
        _: &dyn Host,
    ) -> Result<Output> {
        Err(Failure::Usage(REASON.into()))
    }

    pub fn from_lines(_: File, _: Output, _: &dyn Host) -> Result<Output> {
        Err(Failure::Usage(REASON.into()))
    }
}
