//! Parquet and Arrow, as far as a build has them: with the feature `parquet`, which is the default.

#[cfg(not(feature = "parquet"))]
mod absent;
#[cfg(feature = "parquet")]
mod read;
#[cfg(feature = "parquet")]
mod write;

#[cfg(not(feature = "parquet"))]
pub(crate) use absent::{Columnar, agree, filter, from_lines, require};
#[cfg(feature = "parquet")]
pub(crate) use read::{Columnar, source_values};
#[cfg(feature = "parquet")]
pub(crate) use write::{agree, filter, from_lines, require};
