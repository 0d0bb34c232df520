//! Runs writers, readers and merges under a model checker, which chooses where threads switch.
//!
//! The scenarios are in `tests/schedules.rs`, so that the checker's locks need no second build of
//! all other tests. The store is RocksDB, shared by many schedules; its own background work does
//! not affect the protocol.
#![allow(clippy::unwrap_used, reason = "a failure ends the test")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use shuttle::Runner;
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use tempfile::TempDir;

use super::{Builder, Committer, Core, Store};
use crate::index::health::Events;
use crate::index::{Durability, Index, IndexOptions, Query, SearchPath, Shared};
use crate::plan::Costs;

/// Schedules per store. With more, searches would read the traces of too many removed documents.
const OF_ONE_STORE: usize = 250;

/// The documents that an index should have.
pub type Model = BTreeMap<u64, u64>;

/// What the schedules of a round share.
type Made = (Arc<Store>, Arc<Core>, TempDir);

/// Rounds of schedules of an index without packs.
const ROUNDS: u64 = 16;

/// The same with packs, where each schedule writes files.
const PACKED_ROUNDS: u64 = 2;

/// Runs a body under many schedules, each with an index of a few merged documents.
///
/// The body returns what the index should have then.
///
/// # Panics
///
/// Panics if a result differs from the model, or a schedule ends in a deadlock.
pub fn explore(stored: &'static [(u64, u64)], body: fn(&Arc<Index<u64>>, Model) -> Model) {
    explore_in(false, ROUNDS, stored, body);
}

/// Does what [`explore`] does, over an index whose documents are packed.
pub fn explore_packed(stored: &'static [(u64, u64)], body: fn(&Arc<Index<u64>>, Model) -> Model) {
    explore_in(true, PACKED_ROUNDS, stored, body);
}

fn explore_in(
    packed: bool,
    rounds: u64,
    stored: &'static [(u64, u64)],
    body: fn(&Arc<Index<u64>>, Model) -> Model,
) {
    let more = std::env::var("HAMDEX_MODEL_ROUNDS");
    let rounds = more.map_or(rounds, |rounds| rounds.parse().unwrap());
    // Use only the calling thread: the checker does not control rayon's threads.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread();
    let _pool = pool.build().unwrap();
    for round in 0..rounds {
        let made: Arc<Mutex<Option<Made>>> = Arc::default();
        let shared = Arc::clone(&made);
        let check = move || {
            let (store, core) = {
                let mut shared = shared.lock().unwrap();
                let (store, core, _) = shared.get_or_insert_with(|| make(packed));
                (Arc::clone(store), Arc::clone(core))
            };
            let parts = (Arc::clone(&store), Arc::clone(&core));
            let committer = Committer::open(parts.0, parts.1, Builder::Background, 1 << 20);
            let committer = committer.unwrap();
            let shared = Arc::new(Shared {
                store,
                core,
                committer,
                repacking: crate::sync::Mutex::default(),
                saving: crate::sync::Mutex::default(),
            });
            let index = Arc::new(Index { shared, folder: None });
            put(&index, stored);
            merge(&index);
            if packed {
                repack(&index);
            }
            let model = body(&index, stored.iter().copied().collect());
            judge(&index, &model);
            merge(&index);
            judge(&index, &model);
            let keys: Vec<_> = model.keys().map(|key| key.to_be_bytes()).collect();
            index.remove_batch(&keys, Durability::Buffered).unwrap();
            merge(&index);
        };
        let mut config = shuttle::Config::new();
        config.stack_size = 1 << 20;
        // PCT changes threads rarely, at chosen places. It finds what random schedules find late.
        if round % 2 == 0 {
            Runner::new(RandomScheduler::new_from_seed(round, OF_ONE_STORE), config).run(check);
        } else {
            let scheduler = PctScheduler::new_from_seed(round, 3, OF_ONE_STORE);
            Runner::new(scheduler, config).run(check);
        }
        // Closing takes locks, which belong to the checker.
        shuttle::check_random(move || drop(made.lock().unwrap().take()), 1);
    }
}

/// Creates an empty index, in the parts that schedules share.
fn make(packed: bool) -> Made {
    let directory = tempfile::tempdir().unwrap();
    let options = IndexOptions::new().memory(16 << 20);
    let (header, plan) = crate::index::new_header::<u64>(&options).unwrap();
    let tables = plan.tables().len();
    let mut store = Store::create(directory.path(), header, &[], tables, 16 << 20).unwrap();
    if packed {
        let generation = store.begin_build().unwrap();
        store.create_generation(generation).unwrap();
        store.finish_build(generation, 0, true).unwrap();
    }
    let header = crate::index::Header::of(store.header());
    let core = Core::new(header, plan, Costs::default(), Events::default());
    (Arc::new(store), Arc::new(core), directory)
}

/// Inserts documents as one batch.
pub fn put(index: &Index<u64>, documents: &[(u64, u64)]) {
    let documents: Vec<_> =
        documents.iter().map(|(key, fingerprint)| (key.to_be_bytes(), *fingerprint)).collect();
    index.insert_batch(&documents, Durability::Buffered).unwrap();
}

/// Merges everything, without the compaction, which takes longer than a schedule.
pub fn merge(index: &Index<u64>) {
    while index.merge_step().unwrap() {}
}

/// Merges everything as the background thread does.
pub fn merge_beside(index: &Index<u64>) {
    while index.shared.offering_step().unwrap().more {}
}

/// Packs what was merged, as the background thread does.
pub fn repack(index: &Index<u64>) {
    index.shared.repack().unwrap();
}

/// Removes one document, which must exist.
pub fn remove(index: &Index<u64>, key: u64) {
    let removed = index.remove_batch(&[key.to_be_bytes()], Durability::Buffered).unwrap();
    assert_eq!(removed, 1);
}

/// Returns the keys of the documents with a fingerprint.
pub fn found(index: &Index<u64>, fingerprint: u64, path: SearchPath) -> Vec<u64> {
    let query = Query::new(fingerprint).distance(0).path(path);
    let found = index.search(query).unwrap();
    found.iter().map(|near| u64::from_be_bytes(near.key[..].try_into().unwrap())).collect()
}

/// Compares an unused index with its model.
fn judge(index: &Index<u64>, model: &Model) {
    assert_eq!(index.len().unwrap(), model.len() as u64);
    for (key, &fingerprint) in model {
        assert_eq!(index.get(&key.to_be_bytes()).unwrap(), Some(fingerprint), "key {key}");
        assert!(found(index, fingerprint, SearchPath::Tables).contains(key), "key {key}");
    }
    let report = index.check(&()).unwrap();
    assert_eq!(report.problem_count, 0, "{:?}", report.problems);
}
