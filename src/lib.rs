//! Embedded near-duplicate engine: fingerprints in, every stored document within k bits out.
//!
//! A document is a key and a SimHash fingerprint of 32, 64 or 128 bits. [`Index`] keeps
//! documents on disk and finds, for any fingerprint and any distance up to a quarter of the
//! width, every stored one that differs in at most that many bits: none is missed, none beyond is
//! returned. [`Pipeline`] makes fingerprints out of text, Chinese as well as any other.
//!
//! # What it is
//!
//! - Exact: permutation tables (Manku, Jain, Das Sarma, WWW 2007) are generated and proved
//!   complete; a distance they were not made for costs more, and finds everything all the same.
//! - Durable: one atomic batch through a write-ahead log for every call that writes.
//! - Incremental: insert, replace, remove, and insert only what is new, also concurrently.
//! - Bounded: memory is a budget of the caller's, in the index and in [`Builder`].
//!
//! # What it is not
//!
//! - Not approximate: there is no recall to tune.
//! - Not a server: it is linked into one, and one process at a time writes to an index.
//! - Not a vector database: Hamming distance over fingerprints is the only metric.
//!
//! # Limits
//!
//! Keys have 1 to 1024 bytes. Distances go up to a quarter of the width: 8, 16 and 32 bits.
//!
//! # Example
//!
//! ```
//! use hamdex::{Index, IndexOptions, Pipeline, PipelineOptions};
//!
//! # let directory = tempfile::tempdir().unwrap();
//! # let path = directory.path().join("pages");
//! let pipeline = Pipeline::new(&PipelineOptions::preset("post")?)?;
//! let options = IndexOptions::new().distance(12).text(&pipeline);
//! let index = Index::<u64>::create(&path, &options)?;
//!
//! let first = pipeline.fingerprint::<u64>("你妈妈喊你回家吃饭哦,回家罗回家罗").unwrap();
//! index.insert(b"first", first.fingerprint)?;
//!
//! let second = pipeline.fingerprint::<u64>("你妈妈叫你回家吃饭啦,回家罗回家罗").unwrap();
//! let matches = index.search(second.fingerprint)?;
//! assert_eq!(matches[0].key, b"first");
//! # Ok::<(), hamdex::Error>(())
//! ```
#![doc = include_str!("CALLS.md")]
#![deny(missing_docs, clippy::print_stdout, clippy::print_stderr)]

#[cfg(not(unix))]
compile_error!(
    "hamdex runs on Linux and macOS: its index relies on file locks, atomic renames and synced \
    directories as Unix has them; on Windows, use it within WSL 2"
);

pub mod advice;
mod any;
mod bulk;
mod calibrate;
pub mod dedup;
mod error;
pub mod evaluate;
mod exclusion;
mod fail_point;
mod fingerprint;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod index;
#[cfg(feature = "rocksdb-interop")]
pub mod interop;
pub mod join;
mod kernel;
mod pages;
pub mod plan;
mod problems;
mod progress;
mod resident;
pub mod sketch;
pub mod spread;
mod store;
mod sync;
pub mod text;
pub mod verify;

pub use any::{AnyBuilder, AnyDocuments, AnyIndex, AnyReader};
pub use bulk::shards;
pub use bulk::{
    Abandoned, BuildOptions, BuildReport, Builder, RepairReport, Repeats, repair, repair_any,
};
pub use calibrate::calibrate;
pub use error::{Error, Fault, Result};
pub use fingerprint::{Fingerprint, Hex};
pub use index::{
    AsDocument, Backup, BackupInfo, BackupOptions, BackupReport, BatchReport, CheckReport,
    CompactReport, Documents, Durability, Explanation, FoldReport, Header, Index, IndexOptions,
    Match, NewDocument, OpenOptions, Query, Reader, RestoreOptions, RestoreReport, SearchPath,
    Secondary, Sizes, Stats, TableExplanation, TableStats,
};
pub use kernel::instructions;
pub use plan::Plan;
pub use progress::Progress;
pub use resident::{Near, ResidentTables};
pub use store::SealState;
pub use text::{Pipeline, PipelineOptions};
pub use verify::{Nearness, Verification};

/// What an open index does by itself, meets and takes: health, events and memory.
pub mod health {
    pub use crate::index::{Event, Folding, Health, MemoryUsage};
}

/// Runs the README's examples.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// Runs the examples of the Chinese one.
#[cfg(doctest)]
#[doc = include_str!("../.github/README.zh-CN.md")]
struct ChineseReadme;
