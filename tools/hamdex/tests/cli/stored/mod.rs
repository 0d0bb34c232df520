//! Stored indexes: what is built, changed, searched, copied and refused.

mod backups;
mod builds;
mod refusals;
mod store;
mod verify;
