//! Bulk building: documents in any order become sorted runs, table files, then a live index.
//!
//! A build makes a new generation beside the live one and switches to it by one write, so that
//! a build that is killed or abandoned leaves the index as it was.

mod assemble;
mod builder;
mod chunk;
mod fingerprints;
mod manifest;
mod merge;
mod options;
mod repair;
pub mod shards;
mod sorter;
mod spill;
mod spills;
mod spool;
mod writers;

pub use builder::Builder;
pub use options::{Abandoned, BuildOptions, BuildReport, Repeats};
pub use repair::{RepairReport, repair, repair_any};

/// Directory inside the index that a build works in.
const STAGING: &str = "bulk";
