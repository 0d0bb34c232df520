//! The public API, compared with a linear scan and a sorted map.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // a test that fails may panic

mod architecture;
mod backup;
mod balance;
mod builds;
mod cancelling;
mod concurrency;
mod documents;
mod exactness;
mod examples;
mod golden;
#[cfg(feature = "rocksdb-interop")]
mod interop;
mod joins;
mod model;
mod opening;
mod pipelines;
mod properties;
mod reading;
mod removal;
mod resident;
mod secondary;
mod secret;
#[path = "../support/mod.rs"]
mod support;
mod traps;
mod verify;
mod years;
