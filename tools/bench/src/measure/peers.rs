//! Other Rust crates for the same work, used as in their documentation.

use std::collections::HashSet;

use all_pairs_hamming::ChunkedJoiner;
use gaoya::simhash::SimHashIndex;
use rayon::prelude::*;
use web_simhash::SimHash64;

use super::digest::Digest;
use super::harness::Engine;
use super::{Job, Outcome, harness};

pub(super) fn run(name: &str, job: &Job) -> Outcome<()> {
    match name {
        "gaoya, 6 blocks by 3" => harness::run::<Gaoya<3>>(job),
        "gaoya, 6 blocks by 2" => harness::run::<Gaoya<4>>(job),
        "web-simhash" => harness::run::<Web>(job),
        "mih-rs" => harness::run::<Mih>(job),
        "all-pairs-hamming" => join(job),
        name => Err(format!("no engine {name:?}").into()),
    }
}

/// Finds fingerprints nearer than `BELOW`, with a hash table for each choice of 6 - `BELOW` blocks.
struct Gaoya<const BELOW: usize>(SimHashIndex<u64, u32>);

impl<const BELOW: usize> Engine for Gaoya<BELOW> {
    type Answer = Vec<u32>;

    fn build(_: &Job, fingerprints: &[u64]) -> Outcome<Self> {
        let mut index = SimHashIndex::new(6, BELOW);
        let ids: Vec<u32> = (0..u32::try_from(fingerprints.len())?).collect();
        index.par_bulk_insert(ids, fingerprints.to_vec());
        Ok(Self(index))
    }

    fn answers(&self, distance: u32) -> bool {
        distance == 3
    }

    fn search(&self, query: u64, _: u32) -> Outcome<Vec<u32>> {
        Ok(self.0.query(&query).into_iter().copied().collect())
    }

    fn batch(&self, queries: &[u64], _: u32) -> Outcome<Option<Vec<Vec<u32>>>> {
        let answers = self.0.par_bulk_query(&queries.to_vec());
        Ok(Some(answers.into_iter().map(|ids| ids.into_iter().collect()).collect()))
    }

    fn found(&self, answer: &Vec<u32>, fingerprints: &[u64]) -> Vec<u64> {
        let at = |id: &u32| fingerprints.get(usize::try_from(*id).ok()?).copied();
        answer.iter().filter_map(at).collect()
    }

    fn note(&self) -> String {
        format!("finds what is nearer than {BELOW}; in memory")
    }
}

/// 20 sorted tables, each led by three of six blocks; each insert keeps every table sorted.
struct Web(web_simhash::SimHashIndex);

impl Engine for Web {
    type Answer = Vec<web_simhash::Match>;

    fn build(_: &Job, fingerprints: &[u64]) -> Outcome<Self> {
        let mut index = web_simhash::SimHashIndex::new_google64_k3();
        for (row, fingerprint) in fingerprints.iter().enumerate() {
            index.insert(row.to_string(), SimHash64(*fingerprint));
        }
        Ok(Self(index))
    }

    fn answers(&self, distance: u32) -> bool {
        distance == 3
    }

    fn search(&self, query: u64, _: u32) -> Outcome<Self::Answer> {
        Ok(self.0.query(SimHash64(query)))
    }

    fn found(&self, answer: &Self::Answer, _: &[u64]) -> Vec<u64> {
        answer.iter().map(|found| found.fingerprint.0).collect()
    }

    fn note(&self) -> String {
        "20 sorted tables, sorted again at every insert; in memory".into()
    }
}

/// Multi-index hashing; the crate chooses the number of blocks.
struct Mih(mih_rs::Index<u64>);

impl Engine for Mih {
    type Answer = Vec<u32>;

    fn build(_: &Job, fingerprints: &[u64]) -> Outcome<Self> {
        Ok(Self(mih_rs::Index::new(fingerprints.to_vec())?))
    }

    fn answers(&self, _: u32) -> bool {
        true
    }

    fn search(&self, query: u64, distance: u32) -> Outcome<Vec<u32>> {
        let distance = usize::try_from(distance)?;
        Ok(self.0.range_searcher().run(query, distance).to_vec())
    }

    fn batch(&self, queries: &[u64], distance: u32) -> Outcome<Option<Vec<Vec<u32>>>> {
        let distance = usize::try_from(distance)?;
        let queries = queries.par_iter();
        let search = queries.map_init(
            || self.0.range_searcher(),
            |searcher, query| searcher.run(*query, distance).to_vec(),
        );
        Ok(Some(search.collect()))
    }

    fn found(&self, answer: &Vec<u32>, fingerprints: &[u64]) -> Vec<u64> {
        let at = |id: &u32| fingerprints.get(usize::try_from(*id).ok()?).copied();
        answer.iter().filter_map(at).collect()
    }

    fn note(&self) -> String {
        let blocks = self.0.num_blocks();
        format!(
            "{blocks} blocks, its own choice; a searcher for every query, in batches one a thread"
        )
    }
}

/// Self-join by chunked multiple sorting, given distinct fingerprints; ours removes repeats itself.
fn join(job: &Job) -> Outcome<()> {
    let mut seen = HashSet::new();
    let mut distinct = job.fingerprints()?;
    distinct.retain(|fingerprint| seen.insert(*fingerprint));
    drop(seen);
    let note = "one thread; repeated fingerprints were taken out before";
    let find = |distance| {
        // Two chunks were faster than one or four, at 3 bits and at 6.
        let mut joiner = ChunkedJoiner::<u32>::new(2);
        for fingerprint in &distinct {
            let low = u32::try_from(fingerprint & u64::from(u32::MAX))?;
            joiner.add([low, u32::try_from(fingerprint >> 32)?])?;
        }
        Ok(joiner.similar_pairs(f64::from(distance) / 64.0))
    };
    let digest = |pairs: Vec<(usize, usize, f64)>| {
        let mut digest = Digest::default();
        for (a, b, _) in pairs {
            if let (Some(a), Some(b)) = (distinct.get(a), distinct.get(b)) {
                digest.pair(*a, *b);
            }
        }
        digest
    };
    super::join::measure(job, 1, note, find, digest)
}
