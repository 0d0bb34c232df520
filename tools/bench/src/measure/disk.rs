//! The index on disk, its block cache warm.

use std::path::Path;

use hamdex::{BuildOptions, Builder, Index, IndexOptions, Match, OpenOptions, Query, Reader};

use super::engine::Engine;
use super::{Job, Outcome};

pub(super) const NAME: &str = "hamdex, disk";

pub(super) struct Disk {
    reader: Reader<u64>,
    bytes: u64,
}

impl Engine for Disk {
    type Answer = Vec<Match<u64>>;

    fn build(job: &Job, fingerprints: &[u64]) -> Outcome<Self> {
        let directory = job.dir.join("index");
        if directory.exists() {
            std::fs::remove_dir_all(&directory)?;
        }
        build(&directory, fingerprints)?;
        Self::open(&directory)
    }

    fn answers(&self, distance: u32) -> bool {
        distance <= 16
    }

    fn search(&self, query: u64, distance: u32) -> Outcome<Self::Answer> {
        Ok(self.reader.search(Query::new(query).distance(distance))?)
    }

    fn batch(&self, queries: &[u64], distance: u32) -> Outcome<Option<Vec<Self::Answer>>> {
        let queries: Vec<_> = queries.iter().map(|q| Query::new(*q).distance(distance)).collect();
        Ok(Some(self.reader.search_batch(&queries)?))
    }

    fn found(&self, answer: &Self::Answer, _: &[u64]) -> Vec<u64> {
        answer.iter().map(|found| found.fingerprint).collect()
    }

    fn disk_bytes(&self) -> u64 {
        self.bytes
    }

    fn note(&self) -> String {
        "RocksDB: durable, keys and documents included".into()
    }
}

impl Disk {
    fn open(directory: &Path) -> Outcome<Self> {
        let options = OpenOptions::new().read_only(true).memory(memory(size(directory)?));
        let reader = Index::<u64>::open_with(directory, &options)?.reader()?;
        Ok(Self { reader, bytes: size(directory)? })
    }
}

/// Cache for all of the index, up to the default for small ones.
fn memory(bytes: u64) -> usize {
    usize::try_from(2 * bytes).unwrap_or(usize::MAX).max(512 << 20)
}

/// Builds with the row as key, as a document's number would be.
pub(super) fn build(directory: &Path, fingerprints: &[u64]) -> Outcome<()> {
    let options = IndexOptions::new();
    let mut builder = Builder::<u64>::create(directory, &options, &BuildOptions::new())?;
    for (row, fingerprint) in (0_u64..).zip(fingerprints) {
        builder.push(&row.to_be_bytes(), *fingerprint, row)?;
    }
    builder.finish(&(), &mut |_, _| ())?;
    Ok(())
}

/// Bytes of all files below a directory.
pub(super) fn size(directory: &Path) -> Outcome<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() { size(&entry.path())? } else { metadata.len() };
    }
    Ok(bytes)
}
