//! Embedded near-duplicate engine: returns every stored document within k bits of a query.
//!
//! A document is a key and a SimHash fingerprint of 32, 64 or 128 bits. [`Index`] stores documents
//! on disk. For any fingerprint and any distance up to a quarter of the width, it returns every
//! stored document that differs in at most that many bits: no misses, no extras. [`Pipeline`] turns
//! texts into fingerprints, Chinese ones included.
//!
//! # What it is
//!
//! - Exact: permutation tables (Manku, Jain, Das Sarma, WWW 2007) are generated and proved
//!   complete. A distance that the tables were not made for costs more and still misses nothing.
//! - Durable: every call that writes is one atomic batch in a write-ahead log.
//! - Incremental: insert, replace, remove, and insert only new documents, from any thread.
//! - Bounded: you set the memory budget of the index and of a [`Builder`](build::Builder).
//!
//! # What it is not
//!
//! - Not approximate: there is no recall to tune.
//! - Not a server: you link it into your process; one process at a time writes to an index.
//! - Not a vector database: the only metric is the Hamming distance between fingerprints.
//!
//! # Limits
//!
//! Keys have 1 to 1024 bytes. The largest distances are 8, 16 and 32 bits, a quarter of the width.
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
//!
//! The [guide] has twelve recipes, from a web crawl to a program in C.
#![doc = include_str!("CALLS.md")]
#![deny(missing_docs, clippy::print_stdout, clippy::print_stderr)]

#[cfg(not(unix))]
compile_error!(
    "hamdex runs on Linux and macOS: its index needs the file locks, atomic renames and synced \
    directories of Unix; on Windows, use WSL 2"
);

pub mod advice;
pub mod any;
mod bits;
mod bulk;
mod calibrate;
pub mod dedup;
mod error;
pub mod evaluate;
mod exclusion;
mod fail_point;
pub mod fingerprint;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod guide;
mod index;
#[cfg(feature = "rocksdb-interop")]
pub mod interop;
pub mod join;
mod kernel;
mod mapping;
mod pages;
pub mod plan;
mod progress;
pub mod resident;
pub mod sketch;
mod sort;
#[cfg(feature = "distributed")]
pub mod spread;
mod store;
mod sync;
pub mod text;
pub mod verify;

pub use error::{Error, Fault, Result, StoreErrorKind};
pub use fingerprint::Fingerprint;
pub use index::{
    AsDocument, BatchReport, Documents, Durability, Index, IndexOptions, Match, NewDocument, Query,
    Reader, SearchPath, Secondary,
};
pub use progress::Progress;
pub use text::{Pipeline, PipelineOptions};

/// Bulk builds: indexes made from scratch, from shards, or from damaged ones.
pub mod build {
    #[cfg(feature = "distributed")]
    pub use crate::bulk::shards;
    pub use crate::bulk::{
        Abandoned, BuildOptions, BuildReport, Builder, DiskNeeds, RepairReport, Repeats, repair,
        repair_any,
    };
}

/// Backups of an open index, and restoring them.
pub mod backup {
    pub use crate::index::{
        Backup, BackupInfo, BackupOptions, BackupReport, RestoreOptions, RestoreReport,
    };
}

/// What an index holds, how sound it is, and what searches cost on this machine.
pub mod inspect {
    pub use crate::calibrate::calibrate;
    pub use crate::index::{
        CheckReport, CompactReport, Explanation, Header, MergeReport, Sizes, Stats,
        TableExplanation, TableStats,
    };
    pub use crate::kernel::instructions;
    pub use crate::store::SealState;
}

/// Health, events and memory of an open index.
pub mod health {
    pub use crate::index::{Event, Health, MemoryUsage, Merging};
}

#[cfg(feature = "model")]
#[doc(hidden)]
pub use index::model;

/// Runs the examples in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// Runs the examples in the Chinese README.
#[cfg(doctest)]
#[doc = include_str!("../.github/README.zh-CN.md")]
struct ChineseReadme;
