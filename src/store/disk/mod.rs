//! Files: what a store keeps beside its database, and table files made outside of it.

pub(super) mod database_id;
pub(super) mod directory;
pub(super) mod files;
pub(super) mod fragments;
pub(super) mod ingest;
pub(super) mod log_records;
pub(super) mod seal;
pub(super) mod sst;
pub(super) mod staging;
pub(super) mod switch;
