//! Faces: what the programs around a run show, write and report.

pub mod failure;
pub mod host;
pub mod output;
pub(crate) mod remedy;
pub mod size;
pub mod temporary;
pub mod visible;
