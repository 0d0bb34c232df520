//! Shards: many machines write the sorted files of an index, one takes them over.
//!
//! A document becomes an entry of every family: its record, its posting, and its fingerprint in
//! each table ([`Layout::rows`]). Whatever sorts these rows over many machines gives each of them
//! a range; each writes its range to files ([`ShardWriter`]) and tells what is in them. The list
//! of all files, sealed by a checksum, is the [`Manifest`]. [`ingest`] compares it with the files
//! and moves them into a new index, which takes the time of copying and no sorting.
//!
//! ```
//! use hamdex::build::shards::{self, Layout, Manifest, ShardWriter};
//! use hamdex::plan::Plan;
//! use hamdex::Index;
//!
//! # let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
//! # let (directory, index) = (a.path(), b.path());
//! let layout = Layout::new(Plan::named("4", 64)?, 3, "")?;
//! let mut rows = Vec::new();
//! for (key, fingerprint) in [(b"page", 0b0111_u64), (b"copy", 0b0011)] {
//!     layout.rows(key, fingerprint, |family, key, fingerprint| {
//!         rows.push((family, key.to_vec(), fingerprint));
//!     })?;
//! }
//! rows.sort();
//!
//! let mut writer = ShardWriter::<u64>::new(directory, "part-0", &layout)?;
//! for (family, key, fingerprint) in &rows {
//!     writer.push(*family, key, *fingerprint)?;
//! }
//! Manifest::new(&layout, writer.finish()?)?.write(directory)?;
//!
//! let report = shards::ingest::<u64>(directory, index, &())?;
//! assert_eq!(report.documents, 2);
//! assert_eq!(Index::<u64>::open(index)?.search(0b0111)?.len(), 2);
//! # Ok::<(), hamdex::Error>(())
//! ```

mod ingest;
mod layout;
mod manifest;
mod writer;

#[cfg(test)]
mod tests;

pub use ingest::{ingest, manifest_bits};
pub use layout::Layout;
pub use manifest::{Manifest, Shard};
pub use writer::ShardWriter;
