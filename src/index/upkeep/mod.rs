//! Upkeep: copies of an index, its check, its statistics, and rewriting what is packed.

pub(super) mod backup;
pub(super) mod check;
pub(super) mod repack;
pub(super) mod shape;
pub(super) mod stats;
