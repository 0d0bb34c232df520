//! Damage, locks, permissions and other formats: a typed error or the right result.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // a test that fails may panic

mod backups;
mod damage;
mod foreign;
mod log;
mod refusals;
mod secondary;
#[path = "../support/mod.rs"]
mod support;
