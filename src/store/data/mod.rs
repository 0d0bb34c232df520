//! Data: what a store reads and writes, as families, batches and cursors.

pub(super) mod batch;
pub(super) mod cursor;
pub(super) mod generation;
pub(super) mod moment;
pub(super) mod obsolete;
pub(super) mod overlay;
pub(super) mod repack;
pub(crate) mod resources;
mod unpacked;
pub(super) mod view;
mod walk;
