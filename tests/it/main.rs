//! The public API, compared with a linear scan and a sorted map.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // a test that fails may panic

mod architecture;
mod backup;
mod builds;
mod concurrency;
mod documents;
mod exactness;
mod forest;
mod golden;
#[cfg(feature = "rocksdb-interop")]
mod interop;
mod model;
mod opening;
mod pipelines;
mod reading;
mod removal;
mod secondary;
#[path = "../support/mod.rs"]
mod support;
mod traps;
mod verify;
mod years;
