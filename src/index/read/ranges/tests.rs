use std::collections::BTreeMap;

use super::numbers::STEADY;
use super::*;
use crate::build::{BuildOptions, Builder};
use crate::index::read::reader::Reader;
use crate::index::{Durability, Index, IndexOptions, Query, SearchPath};
use crate::plan::Plan;
use crate::store::{Access, MIN_MEMORY, Opening, counting_cached};

/// Two entries of the first table in one slot, and one in the next.
const ENTRIES: [u64; 3] = [0x1230 << 48 | 7, 0x123f << 48, 0x1240 << 48];

fn prefix(entry: u64) -> u128 {
    u128::from(entry >> 48)
}

/// Ranges of four tables that hold two of the entries, read before any step.
fn kept(directory: &std::path::Path) -> Ranges<u64> {
    drop(Index::<u64>::create(directory, &IndexOptions::new()).unwrap());
    let store = Opening::new(directory, MIN_MEMORY, Access::Read).unwrap().with_tables(4).unwrap();
    let ranges = Ranges::new(Plan::named("4", 64).unwrap().tables(), store.cache().cloned(), 0);
    for entry in [ENTRIES[0], ENTRIES[2]] {
        ranges.of_runs(0).keep(0, prefix(entry), &[entry]);
        ranges.of_runs(0).keep(1, prefix(entry), &[]);
    }
    ranges
}

/// Returns which of the two entries a search of runs with a number finds in memory.
fn found(ranges: &Ranges<u64>, number: u64) -> [bool; 2] {
    [ENTRIES[0], ENTRIES[2]].map(|entry| {
        let members = ranges.of_runs(number).get(0, prefix(entry));
        members.is_some_and(|members| members.contains(&entry))
    })
}

#[test]
fn a_range_is_that_of_all_runs_until_a_step_changes_its_slot() {
    let directory = tempfile::tempdir().unwrap();
    let ranges = kept(directory.path());
    assert_eq!((ranges.moment().runs, found(&ranges, 0)), (0, [true, true]));
    ranges.begin_change(0, [ENTRIES[1]].into_iter());
    assert_eq!((found(&ranges, 0), found(&ranges, u64::MAX - 1)), ([false, true], [false, true]));
    // Those of other tables are as before, also if they are empty.
    let other = |number| ranges.of_runs(number).get(1, prefix(ENTRIES[0]));
    assert_eq!(other(0).as_deref(), Some(&[][..]));
    // What is read meanwhile may be from before the step or from after it.
    ranges.of_runs(0).keep(0, prefix(ENTRIES[0]), &ENTRIES[..1]);
    ranges.end_change();
    assert_eq!(ranges.moment().runs, 1);
    for number in 0..3 {
        assert_eq!(found(&ranges, number), [false, true], "{number}");
    }
    ranges.of_runs(0).keep(0, prefix(ENTRIES[0]), &ENTRIES[..1]);
    assert_eq!(found(&ranges, 1), [false, true], "runs from before the step keep nothing");
    for _ in 0..STEADY {
        ranges.of_runs(1).keep(0, prefix(ENTRIES[0]), &ENTRIES[..1]);
        assert_eq!(found(&ranges, 1), [false, true], "a step has just ended");
    }
    ranges.of_runs(1).keep(0, prefix(ENTRIES[0]), &ENTRIES[..1]);
    assert_eq!((found(&ranges, 1), found(&ranges, 2)), ([true, true], [true, true]));
    assert_eq!(found(&ranges, 0), [false, true], "older runs do not hold what the step changed");
    ranges.end_change();
    assert_eq!(ranges.moment().runs, 1, "no step has begun");
}

#[test]
fn a_pass_over_many_entries_drops_what_is_in_memory() {
    let directory = tempfile::tempdir().unwrap();
    let ranges = kept(directory.path());
    ranges.begin_pass(MANY - 1);
    assert_eq!(found(&ranges, 0), [true, true]);
    ranges.begin_pass(MANY);
    assert_eq!((ranges.bytes(), found(&ranges, 0)), (0, [false, false]));
}

#[test]
fn once_memory_is_full_only_what_is_read_twice_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let ranges = kept(directory.path());
    ranges.is_full.store(true, Ordering::Relaxed);
    let keep = |at: u128| {
        ranges.of_runs(0).keep(2, at, &[]);
        ranges.of_runs(0).get(2, at).is_some()
    };
    for at in 0..100 {
        assert!(!keep(at), "{at}");
    }
    let kept = (0..100).filter(|at| keep(*at)).count();
    assert!(kept > 90, "{kept} of 100: few have taken the mark of another one");
}

/// Stored fingerprints, of few prefixes, by key.
type Model = BTreeMap<u64, u64>;

fn fingerprint(rng: &mut fastrand::Rng) -> u64 {
    let block = |rng: &mut fastrand::Rng| rng.u64(..3) << 4 | rng.u64(..2) << 12;
    (0..4).fold(0, |bits, _| bits << 16 | block(rng))
}

/// Builds an index with packs.
fn build(path: &std::path::Path, model: &Model) -> Index<u64> {
    let options = IndexOptions::new().memory(MIN_MEMORY);
    let mut builder = Builder::<u64>::create(path, &options, &BuildOptions::new()).unwrap();
    for (key, fingerprint) in model {
        builder.push(&key.to_be_bytes(), *fingerprint, *key).unwrap();
    }
    builder.finish(&(), &mut |_, _| ()).unwrap();
    Index::open_with(path, &options).unwrap()
}

/// Runs a step of a repacking, or begins one.
fn pack_step(index: &Index<u64>) {
    let mut repacks = index.shared.repacking.lock().unwrap();
    if index.shared.pack_step(&mut repacks, &mut || ()).unwrap().is_none() {
        index.shared.begin_packing(&mut repacks).unwrap();
    }
}

fn assert_exact(reader: &Reader<u64>, model: &Model, query: u64, what: &str) {
    let distance = |fingerprint: u64| (fingerprint ^ query).count_ones();
    let near = model.iter().filter(|(_, fingerprint)| distance(**fingerprint) <= 3);
    let mut wanted: Vec<_> =
        near.map(|(key, fingerprint)| (distance(*fingerprint), key.to_be_bytes())).collect();
    wanted.sort_unstable();
    for _ in 0..2 {
        let found = reader.search(Query::new(query).path(SearchPath::Tables)).unwrap();
        let found: Vec<_> =
            found.iter().map(|near| (near.distance, near.key[..].try_into().unwrap())).collect();
        assert_eq!(found, wanted, "{what}, query {query:x}");
    }
}

#[test]
fn old_and_new_readers_are_exact_while_merges_change_what_is_in_memory() {
    for seed in 0..6 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let directory = tempfile::tempdir().unwrap();
        let (mut model, mut readers) = (Model::new(), Vec::<(Reader<u64>, Model)>::new());
        let has_packs = seed % 2 == 0;
        let index = if has_packs {
            model.extend((0..20).map(|key| (key, fingerprint(&mut rng))));
            build(directory.path(), &model)
        } else {
            let options = IndexOptions::new().memory(MIN_MEMORY);
            Index::create(directory.path(), &options).unwrap()
        };
        for round in 0..150 {
            let key = rng.u64(..40);
            if rng.u8(..3) > 0 {
                let new = fingerprint(&mut rng);
                index.insert(&key.to_be_bytes(), new).unwrap();
                model.insert(key, new);
            } else {
                let removed = index.remove(&key.to_be_bytes()).unwrap();
                assert_eq!(removed, model.remove(&key).is_some());
            }
            match rng.u8(..6) {
                0 => drop(index.merge_step().unwrap()),
                1 => drop(index.shared.offering_step().unwrap()),
                2 if rng.u8(..8) == 0 => drop(index.merge(&()).unwrap()),
                3 | 4 => pack_step(&index),
                _ => {}
            }
            readers.push((index.reader().unwrap(), model.clone()));
            if readers.len() > 5 {
                drop(readers.swap_remove(rng.usize(..readers.len())));
            }
            for (reader, model) in &readers {
                let what = format!("seed {seed}, round {round}");
                assert_exact(reader, model, fingerprint(&mut rng), &what);
            }
        }
        let (reader, _) = readers.first().unwrap();
        let kept: Vec<_> =
            reader.ranges().ranges.kept.iter().map(|(place, _)| place.family).collect();
        assert!(kept.contains(&Family::Table(3)), "seed {seed}");
        assert_eq!(kept.contains(&Family::PostingPacks), has_packs, "seed {seed}");
        assert!(index.memory_usage().unwrap().ranges > 0);
    }
}

#[test]
fn a_range_in_memory_is_found_without_a_cursor() {
    let directory = tempfile::tempdir().unwrap();
    let index = Index::<u64>::create(directory.path(), &IndexOptions::new()).unwrap();
    index.insert(b"page", 0).unwrap();
    index.merge(&()).unwrap();
    let reader = index.reader().unwrap();
    // It differs in the last block only, and is not near.
    let query = || Query::new(0b1_1111).path(SearchPath::Tables);
    let blocks = || {
        let (found, blocks) = counting_cached(|| reader.search(query()));
        assert!(found.unwrap().is_empty());
        blocks
    };
    assert_eq!(reader.explain(query()).unwrap().candidates, 3);
    assert!(blocks() > 0);
    assert_eq!(blocks(), 0);
    let explained = reader.explain(query()).unwrap();
    let runs = explained.tables.iter().map(|table| table.runs).sum::<u64>();
    assert_eq!((explained.candidates, runs), (3, 3), "explaining reads the store");
}

#[test]
fn packed_documents_in_memory_are_found_without_a_cursor() {
    let directory = tempfile::tempdir().unwrap();
    let mut rng = fastrand::Rng::with_seed(4);
    let model: Model = (0..20_000).map(|key| (key, rng.u64(..))).collect();
    let index = build(directory.path(), &model);
    let search = |reader: &Reader<u64>, key: u64| {
        let query = Query::new(model[&key]).path(SearchPath::Tables);
        let (found, blocks) = counting_cached(|| reader.search(query).unwrap());
        let keys: Vec<_> = found.into_iter().map(|near| near.key).collect();
        assert_eq!(keys, [key.to_be_bytes()]);
        blocks
    };
    let reader = index.reader().unwrap();
    for key in [7, 8] {
        // Cursors are left at other blocks.
        reader.explain(Query::new(model[&key]).path(SearchPath::Tables)).unwrap();
    }
    assert!(search(&reader, 7) > 0, "explaining keeps nothing");
    assert_eq!(search(&reader, 7), 0);
    // Another posting of the range says that its document has a second fingerprint.
    index.insert(&20_000_u64.to_be_bytes(), model[&7] ^ 0xff).unwrap();
    let newer = index.reader().unwrap();
    assert_eq!((search(&newer, 7), search(&reader, 7)), (0, 0));
    index.insert(&20_001_u64.to_be_bytes(), model[&7]).unwrap();
    let found = index.search(model[&7]).unwrap();
    assert_eq!(found.iter().map(|near| near.distance).collect::<Vec<_>>(), [0, 0]);
    assert_eq!(search(&reader, 7), 0, "the older snapshot has one document");
}

#[test]
fn a_range_with_too_many_documents_is_not_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let copies = MOST_MEMBERS as u64 + 1;
    let index = build(directory.path(), &(0..copies).map(|key| (key, 7)).collect());
    let reader = index.reader().unwrap();
    let search = || {
        let (found, blocks) = counting_cached(|| reader.search(7).unwrap());
        assert_eq!(found.len() as u64, copies);
        blocks
    };
    assert_eq!(reader.explain(7).unwrap().matches.len() as u64, copies);
    let [first, second, third] = [search(), search(), search()];
    assert!(first > second && second > 0, "{first} and {second} blocks");
    assert_eq!(second, third);
}

#[test]
fn a_step_changes_all_slots_from_a_prefix_to_another_one() {
    let numbers = Numbers::new([16, 17].into_iter());
    let changed = |table, slot: u128| numbers.changed(table, slot << (4 + table));
    numbers.begin(1, [(5 << 5 | 31, 7 << 5), (7 << 5, 7 << 5), (4095 << 5, 4095 << 5)].into_iter());
    let of_slots = || [4, 5, 6, 7, 8, 4095].map(|slot| changed(1, slot));
    assert_eq!(of_slots(), [0, u64::MAX, u64::MAX, u64::MAX, 0, u64::MAX]);
    numbers.end();
    assert_eq!((of_slots(), numbers.number()), ([0, 1, 1, 1, 0, 1], 1));
    assert_eq!([5, 6, 7, 4095].map(|slot| changed(0, slot)), [0; 4], "another table");
}

#[test]
fn ranges_take_their_memory_from_the_cache_of_blocks_and_give_it_back() {
    let directory = tempfile::tempdir().unwrap();
    let options = IndexOptions::new().memory(MIN_MEMORY);
    let index = Index::<u64>::create(directory.path(), &options).unwrap();
    let mut rng = fastrand::Rng::with_seed(9);
    let mut fill = |first: u64| {
        let documents: Vec<_> =
            (first..first + 20_000).map(|key| (key.to_be_bytes(), rng.u64(..))).collect();
        index.insert_batch(&documents, Durability::Buffered).unwrap();
        index.merge(&()).unwrap();
    };
    fill(0);
    let whole = index.shared.store.cache_capacity();
    let mut rng = fastrand::Rng::with_seed(10);
    for searches in [3_000, 30_000] {
        for _ in 0..searches {
            index.search(rng.u64(..)).unwrap();
        }
        let taken = usize::try_from(index.memory_usage().unwrap().ranges).unwrap();
        let left = index.shared.store.cache_capacity();
        assert!(taken > SETTLED && taken <= whole / SHARE, "{taken} of {whole}");
        assert!(taken + left <= whole + 2 * SETTLED, "{taken} and {left} of {whole}");
    }
    fill(20_000);
    let (taken, left) = (index.memory_usage().unwrap().ranges, index.shared.store.cache_capacity());
    assert!(taken < SETTLED as u64 && left > whole - SETTLED, "{taken} and {left} of {whole}");
}
