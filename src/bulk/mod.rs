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
mod repair;
pub mod shards;
mod sorter;
mod spill;
mod spool;
mod writers;

pub use builder::{BuildOptions, BuildReport, Builder};
pub use repair::{RepairReport, repair};
