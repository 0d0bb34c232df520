//! Bulk building: sorts documents outside memory, writes table files and switches to them.
//!
//! A build writes a new generation next to the live one and switches to it with one write. A build
//! that is killed or abandoned leaves the index unchanged.

mod assemble;
mod builder;
mod fingerprints;
mod manifest;
mod options;
mod repair;
#[cfg(feature = "distributed")]
pub mod shards;
mod spills;
mod spool;
mod writers;

pub use builder::Builder;
pub use options::{Abandoned, BuildOptions, BuildReport, DiskNeeds, Repeats};
pub use repair::{RepairReport, repair, repair_any};

/// Directory inside the index for the files of a build.
const STAGING: &str = "bulk";
