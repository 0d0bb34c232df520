//! Tests of unmerged fingerprints: searches against a map, at every moment of passes.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::*;
use crate::index::{Durability, Index, IndexOptions};
use crate::{Query, SearchPath};

/// An index and a map of what it should hold.
struct Pair {
    directory: tempfile::TempDir,
    index: Index<u64>,
    model: BTreeMap<u64, u64>,
    rng: fastrand::Rng,
    /// Number of different fingerprints.
    kinds: u64,
}

impl Pair {
    fn new(seed: u64) -> Self {
        Self::with(seed, 16 << 20)
    }

    fn with(seed: u64, memory: usize) -> Self {
        let kinds = if memory > 16 << 20 { 1 << 22 } else { 1 << 18 };
        Self::of(seed, kinds, &IndexOptions::new().memory(memory))
    }

    fn of(seed: u64, kinds: u64, options: &IndexOptions) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let index = Index::create(directory.path(), options).unwrap();
        let rng = fastrand::Rng::with_seed(seed);
        Self { directory, index, model: BTreeMap::new(), rng, kinds }
    }

    /// Inserts documents, of which some replace others and some share a fingerprint.
    fn insert(&mut self, count: u64) {
        let documents: BTreeMap<u64, u64> = (0..count)
            .map(|_| (self.rng.u64(..1 << 20), self.rng.u64(..self.kinds) << 40))
            .collect();
        let keyed: Vec<_> = documents.iter().map(|(key, f)| (key.to_be_bytes(), *f)).collect();
        self.index.insert_batch(&keyed, Durability::Buffered).unwrap();
        self.model.extend(documents);
    }

    fn remove(&mut self, one_in: usize) {
        let gone: Vec<u64> = self.model.keys().copied().step_by(one_in).collect();
        let keys: Vec<_> = gone.iter().map(|key| key.to_be_bytes()).collect();
        self.index.remove_batch(&keys, Durability::Buffered).unwrap();
        self.model.retain(|key, _| gone.binary_search(key).is_err());
    }

    fn judge(&mut self) -> bool {
        self.judge_by(20)
    }

    /// Compares answers with the map, and returns whether memory had all that is unmerged.
    fn judge_by(&mut self, queries: u32) -> bool {
        let reader = self.index.reader().unwrap();
        let mut in_memory = true;
        for at in 0..queries {
            let stored = self.rng.choice(self.model.values()).copied().unwrap_or(0);
            let asked = stored ^ 1 << self.rng.u32(..64);
            for distance in [0, 2] {
                let near = self.model.iter().filter(|(_, f)| f.distance(asked) <= distance);
                let mut wanted: Vec<u64> = near.map(|(key, _)| *key).collect();
                wanted.sort_unstable();
                let query = Query::new(asked).distance(distance);
                for path in [SearchPath::Tables, SearchPath::Scan] {
                    let found = reader.search(query.clone().path(path)).unwrap();
                    let mut found: Vec<u64> = found
                        .iter()
                        .map(|found| u64::from_be_bytes(found.key[..].try_into().unwrap()))
                        .collect();
                    found.sort_unstable();
                    assert_eq!(found, wanted, "query {at}, {path:?}");
                }
            }
            in_memory &= reader.unmerged().unwrap().find(asked, 2, &mut Vec::new()).unwrap();
        }
        in_memory
    }

    fn bytes(&self) -> usize {
        self.index.shared.committer.unmerged_bytes()
    }
}

#[test]
fn searches_find_what_is_unmerged_in_memory_at_every_step_of_a_pass() {
    for seed in 1..4 {
        let mut pair = Pair::new(seed);
        assert!(pair.judge());
        for _ in 0..3 {
            pair.insert(9000);
            assert!(pair.judge(), "seed {seed}");
            pair.remove(5);
            let mut more = true;
            while more {
                pair.insert(200);
                pair.remove(800);
                let offers = pair.rng.bool();
                let shared = &pair.index.shared;
                let step = if offers { shared.offering_step() } else { shared.merge_step() };
                more = step.unwrap().more && pair.rng.u32(..12) > 0;
                assert!(pair.judge(), "seed {seed}");
            }
        }
        pair.index.merge(&()).unwrap();
        assert!(pair.judge() && pair.bytes() == 0, "seed {seed}");
    }
}

#[test]
fn what_exceeds_the_budget_is_read_from_the_store_by_every_search() {
    let mut pair = Pair::with(7, 64 << 20);
    pair.insert(400_000);
    pair.remove(7);
    assert!(pair.judge());
    assert!(pair.index.stats(&()).unwrap().delta_entries > 300_000);
    // An eighth of 16 MiB holds 262,144 fingerprints without tables.
    let options = IndexOptions::new().memory(16 << 20).read_only(true);
    pair.index = Index::open_with(pair.directory.path(), &options).unwrap();
    assert!(!pair.judge());
    assert_eq!(pair.bytes(), 0);
    let asked: Vec<u64> = pair.model.values().step_by(4000).map(|f| f ^ 1 << 50).collect();
    let together = pair.index.near_batch(&[&*asked, &*asked].concat(), 2).unwrap();
    for (query, near) in asked.iter().cycle().zip(together) {
        let mut wanted: Vec<u64> = pair.model.values().copied().collect();
        wanted.retain(|stored| stored.distance(*query) <= 2);
        wanted.sort_unstable();
        wanted.dedup();
        let mut near: Vec<u64> = near.iter().map(|near| near.fingerprint).collect();
        near.sort_unstable();
        assert_eq!(near, wanted);
    }
}

#[test]
fn a_writer_that_lacks_memory_finds_everything_at_every_step_of_a_pass() {
    let mut pair = Pair::with(23, 64 << 20);
    pair.insert(300_000);
    pair.remove(7);
    drop(pair.index);
    let options = IndexOptions::new().memory(16 << 20);
    pair.index = Index::open_with(pair.directory.path(), &options).unwrap();
    let mut steps = 0;
    // A write lets the next search read a new snapshot.
    while !pair.judge_by(1) {
        pair.insert(1);
        pair.index.merge_step().unwrap();
        steps += 1;
    }
    assert!(steps > 50, "{steps}");
    assert!(pair.judge());
}

#[test]
fn writers_merge_once_half_of_the_memory_is_full() {
    let mut pair = Pair::new(15);
    let mut most = 0;
    for _ in 0..40 {
        pair.insert(20_000);
        most = most.max(pair.bytes());
    }
    assert!(pair.judge(), "memory has them all");
    assert!((1 << 20..2 << 20).contains(&most), "{most} bytes");
    let stats = pair.index.stats(&()).unwrap();
    assert!(stats.runs > 0 && stats.delta_entries < 262_144, "{}", stats.delta_entries);
}

#[test]
fn writers_merge_if_the_background_merge_falls_behind() {
    let options = IndexOptions::new().memory(16 << 20).background_merge(true);
    let mut pair = Pair::of(25, 1 << 22, &options);
    let mut most = 0;
    for _ in 0..60 {
        pair.insert(20_000);
        most = most.max(pair.bytes());
    }
    assert!(most < 2 << 20, "{most} bytes");
    assert!(pair.judge_by(4), "memory has them all");
}

#[test]
fn writers_wait_for_the_step_of_another_thread_once_memory_is_nearly_full() {
    let mut pair = Pair::of(27, 1 << 22, &IndexOptions::new().memory(16 << 20));
    pair.insert(20_000);
    let shared = Arc::clone(&pair.index.shared);
    let step = shared.committer.merge_step().unwrap();
    let bytes = std::thread::scope(|scope| {
        let writer = scope.spawn(|| (0..30).for_each(|_| pair.insert(20_000)));
        // It waits in the end, or all that it inserts exceeds the memory.
        let begun = Instant::now();
        while !writer.is_finished() && begun.elapsed() < Duration::from_secs(4) {
            std::thread::sleep(Duration::from_millis(10));
        }
        let bytes = shared.committer.unmerged_bytes();
        drop(step);
        bytes
    });
    assert!((3 << 19..2 << 20).contains(&bytes), "{bytes} bytes");
    assert!(pair.judge_by(4), "memory has them all");
}

#[test]
fn writers_build_tables_once_searches_meet_many_without() {
    let mut pair = Pair::new(9);
    pair.insert(20_000);
    assert!(pair.judge());
    pair.insert(1);
    assert!(pair.judge());
    let (bytes, fingerprints) = (pair.bytes(), pair.model.len());
    assert!(bytes > 20 * fingerprints, "{bytes} bytes for {fingerprints}");
    assert_eq!(pair.index.memory_usage().unwrap().unmerged, bytes as u64);
    for _ in 0..3 {
        pair.insert(FEW as u64);
        assert!(pair.judge());
    }
    let published = pair.index.shared.committer.published();
    let held = published.unmerged.latest().held.read().unwrap();
    let layers = held.as_ref().unwrap().tables.len();
    assert!(layers <= 8, "{layers} layers");
}

#[test]
fn writers_build_tables_once_a_batch_meets_many_without() {
    let mut pair = Pair::new(19);
    pair.insert(20_000);
    let before = pair.bytes();
    let queries: Vec<u64> = pair.model.values().copied().take(50).collect();
    let found = |pair: &Pair| {
        let reader = pair.index.reader().unwrap();
        reader.unmerged().unwrap().find_batch(&queries, 3).unwrap().expect("memory has them all")
    };
    assert!(found(&pair).len() >= queries.len());
    assert_eq!(pair.bytes(), before, "a search does not wait until they are built");
    pair.insert(1);
    let (bytes, fingerprints) = (pair.bytes(), pair.model.len());
    assert!(bytes > 20 * fingerprints, "{bytes} bytes for {fingerprints}");
    assert!(found(&pair).len() >= queries.len());
}

#[test]
fn a_reader_from_before_a_merge_finds_what_it_found_before() {
    let mut pair = Pair::new(11);
    pair.insert(3000);
    let before = pair.index.reader().unwrap();
    let (&key, &fingerprint) = pair.model.iter().next().unwrap();
    let wanted = before.search(fingerprint).unwrap();
    assert!(wanted.iter().any(|found| found.key == key.to_be_bytes()));
    pair.index.merge(&()).unwrap();
    pair.remove(1);
    pair.index.merge(&()).unwrap();
    assert_eq!(before.search(fingerprint).unwrap(), wanted);
    assert!(pair.index.search(fingerprint).unwrap().is_empty());
}

#[test]
fn delta_entries_of_an_opened_index_are_held_in_memory() {
    let mut pair = Pair::new(13);
    for (documents, options) in [
        (3000, IndexOptions::new().read_only(true)),
        (3000, IndexOptions::new()),
        (30_000, IndexOptions::new().read_only(true)),
    ] {
        let path = pair.directory.path().to_owned();
        if pair.index.shared.store.require_writable().is_err() {
            pair.index = Index::open_with(&path, &IndexOptions::new()).unwrap();
        }
        pair.insert(documents);
        pair.remove(9);
        // Close it before another one opens the index.
        let other = tempfile::tempdir().unwrap();
        pair.index = Index::create(other.path(), &IndexOptions::new()).unwrap();
        pair.index = Index::open_with(&path, &options).unwrap();
        assert!(pair.judge(), "{documents} documents");
        assert!(pair.bytes() > 0);
    }
}
