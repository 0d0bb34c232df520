//! Recovery: backups, and reading what damage has left.

pub(super) mod backup;
pub(super) mod backup_record;
pub(super) mod log_batches;
pub(super) mod salvage;
pub(super) mod wreck;
