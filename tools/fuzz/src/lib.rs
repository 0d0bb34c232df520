//! Fuzz targets over the public API: bytes of any kind go in, a panic is a finding.
//!
//! `tools/fuzz/run` feeds them under coverage; the tests feed them what that found worth keeping.
#![allow(clippy::indexing_slicing)] // a target that fails may panic

mod corpus;
mod operations;
mod plan;
mod text;

pub use corpus::{from_hex, replay};
pub use operations::operations;
pub use plan::plan;
pub use text::text;
