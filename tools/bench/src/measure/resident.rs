//! Fingerprints in memory: resident tables, a scan of them, and an index with resident tables.

use hamdex::resident::{NearFingerprint, ResidentTables};
use hamdex::{Index, IndexOptions, Reader};

use super::harness::Engine;
use super::{Job, Outcome, disk};

/// Memory for resident tables in bytes, more than any size here needs.
const BUDGET: usize = 16 << 30;

/// Tables in memory without an index, as most peers are.
pub(super) struct Tables(ResidentTables<u64>);

impl Tables {
    pub(super) const NAME: &str = "hamdex, tables in memory";
}

impl Engine for Tables {
    type Answer = Vec<NearFingerprint<u64>>;

    fn build(_: &Job, fingerprints: &[u64]) -> Outcome<Self> {
        Ok(Self(ResidentTables::build(fingerprints)?))
    }

    fn answers(&self, _: u32) -> bool {
        true
    }

    fn search(&self, query: u64, distance: u32) -> Outcome<Self::Answer> {
        Ok(self.0.search(query, distance)?)
    }

    fn batch(&self, queries: &[u64], distance: u32) -> Outcome<Option<Vec<Self::Answer>>> {
        Ok(Some(self.0.search_batch(queries, distance)?))
    }

    fn found(&self, answer: &Self::Answer, _: &[u64]) -> Vec<u64> {
        fingerprints(answer)
    }

    fn note(&self) -> String {
        format!("ResidentTables, {:.1} B/fp by its own account", bytes_each(&self.0))
    }
}

/// A scan of the same tables.
pub(super) struct Scan(ResidentTables<u64>);

impl Scan {
    pub(super) const NAME: &str = "hamdex, scan in memory";
}

impl Engine for Scan {
    type Answer = Vec<NearFingerprint<u64>>;

    fn build(_: &Job, fingerprints: &[u64]) -> Outcome<Self> {
        Ok(Self(ResidentTables::build(fingerprints)?))
    }

    fn answers(&self, _: u32) -> bool {
        true
    }

    fn search(&self, query: u64, distance: u32) -> Outcome<Self::Answer> {
        Ok(self.0.scan(query, distance)?)
    }

    fn found(&self, answer: &Self::Answer, _: &[u64]) -> Vec<u64> {
        fingerprints(answer)
    }

    fn note(&self) -> String {
        "the scan of the tables in memory".into()
    }
}

/// The index of the disk engine, opened with resident tables.
pub(super) struct Resident {
    reader: Reader<u64>,
    bytes: u64,
}

impl Resident {
    pub(super) const NAME: &str = "hamdex, resident index";
}

impl Engine for Resident {
    type Answer = Vec<NearFingerprint<u64>>;

    fn build(job: &Job, fingerprints: &[u64]) -> Outcome<Self> {
        let directory = disk::ensure(job, fingerprints)?;
        let options = IndexOptions::new().read_only(true).resident(BUDGET);
        let reader = Index::<u64>::open_with(&directory, &options)?.reader()?;
        Ok(Self { reader, bytes: disk::size(&directory)? })
    }

    fn answers(&self, distance: u32) -> bool {
        distance <= 16
    }

    fn search(&self, query: u64, distance: u32) -> Outcome<Self::Answer> {
        Ok(self.reader.near(query, distance)?)
    }

    fn batch(&self, queries: &[u64], distance: u32) -> Outcome<Option<Vec<Self::Answer>>> {
        Ok(Some(self.reader.near_batch(queries, distance)?))
    }

    fn found(&self, answer: &Self::Answer, _: &[u64]) -> Vec<u64> {
        fingerprints(answer)
    }

    fn disk_bytes(&self) -> u64 {
        self.bytes
    }

    fn note(&self) -> String {
        "the index on disk, fingerprints held in memory as well; build is opening and loading"
            .into()
    }
}

fn fingerprints(answer: &[NearFingerprint<u64>]) -> Vec<u64> {
    answer.iter().map(|near| near.fingerprint).collect()
}

fn bytes_each(tables: &ResidentTables<u64>) -> f64 {
    tables.bytes() as f64 / tables.len().max(1) as f64
}
