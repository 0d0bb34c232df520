//! Shards: many machines write the sorted files of an index, and one machine ingests them.
//!
//! A document becomes a row in every family: its record, its posting, and its fingerprint in each
//! table ([`Layout::rows`]). After a distributed sort of these rows, each machine writes its range
//! to files ([`ShardWriter`]) and returns a description of them. The list of all files, protected
//! by a checksum, is the [`Manifest`]. [`ingest`] verifies the files and moves them into a new
//! index. It sorts nothing, so it takes only the time of copying. Requires the feature `distributed`.
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
//! assert_eq!(shards::manifest_bits(directory)?, 64);
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
