//! Opening: from a directory or a host's database to a store, and its settings.

pub(super) mod database;
#[cfg(feature = "rocksdb-interop")]
pub(super) mod host;
pub(super) mod meta;
pub(super) mod opening;
pub(super) mod secondary;
pub(super) mod settled;
pub(super) mod tuning;
