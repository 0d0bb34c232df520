//! The index on disk with a warm block cache.

use std::path::{Path, PathBuf};

use hamdex::build::{BuildOptions, Builder};
use hamdex::{Index, IndexOptions, Match, Query, Reader};

use super::harness::Engine;
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
        let reader = Index::<u64>::open_with(directory, &options(directory)?)?.reader()?;
        Ok(Self { reader, bytes: size(directory)? })
    }
}

/// Returns options to open read-only with a cache for the whole index.
pub(super) fn options(directory: &Path) -> Outcome<IndexOptions> {
    let bytes = usize::try_from(2 * size(directory)?)?;
    Ok(IndexOptions::new().read_only(true).memory(bytes.max(512 << 20)))
}

/// Returns the directory of the index of these fingerprints; builds it if it is missing.
pub(super) fn ensure(job: &Job, fingerprints: &[u64]) -> Outcome<PathBuf> {
    let directory = job.dir.join("index");
    if directory.exists() {
        let index = Index::<u64>::open_with(&directory, &IndexOptions::new().read_only(true))?;
        if index.reader()?.len() == fingerprints.len() as u64 {
            return Ok(directory);
        }
        drop(index);
        std::fs::remove_dir_all(&directory)?;
    }
    build(&directory, fingerprints)?;
    Ok(directory)
}

/// Builds an index with the row numbers as keys.
fn build(directory: &Path, fingerprints: &[u64]) -> Outcome<()> {
    let options = IndexOptions::new();
    let mut builder = Builder::<u64>::create(directory, &options, &BuildOptions::new())?;
    for (row, fingerprint) in (0_u64..).zip(fingerprints) {
        builder.push(&row.to_be_bytes(), *fingerprint, row)?;
    }
    builder.finish(&(), &mut |_, _| ())?;
    Ok(())
}

/// Returns the size of all files below a directory, in bytes.
pub(super) fn size(directory: &Path) -> Outcome<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() { size(&entry.path())? } else { metadata.len() };
    }
    Ok(bytes)
}
