//! The write protocol under a model checker: shuttle chooses where threads switch.
//!
//! Compiled only with the feature `model`, in a build of its own. A failing schedule is printed,
//! and `shuttle::replay` repeats it. Each test runs 250 schedules a round; `HAMDEX_MODEL_ROUNDS`
//! sets the rounds.

use std::sync::Arc;

use hamdex::model::{
    Model, explore, explore_packed, found, merge, merge_beside, put, remove, repack,
};
use hamdex::verify::DuplicateRule;
use hamdex::{Durability, Index, Query, SearchPath};
use shuttle::thread;

/// Runs calls beside each other, in an order that the checker chooses, and waits for all.
fn together<const N: usize>(index: &Arc<Index<u64>>, calls: [fn(&Index<u64>); N]) {
    let threads = calls.map(|call| {
        let index = Arc::clone(index);
        thread::spawn(move || call(&index))
    });
    for thread in threads {
        thread.join().expect("a call fails its test by itself");
    }
}

#[test]
fn inserts_removals_and_folds_in_any_order_leave_what_they_should() {
    const STORED: &[(u64, u64)] = &[(1, 0x10), (2, 0x20), (3, 0x30), (4, 0x40)];
    explore(STORED, |index, mut model| {
        together(
            index,
            [
                |index| put(index, &[(10, 0x20), (11, 0x1_0000)]),
                |index| {
                    put(index, &[(1, 0x11)]);
                    assert_eq!(found(index, 0x11, SearchPath::Tables), [1], "its own write");
                },
                |index| {
                    remove(index, 2);
                    remove(index, 3);
                    put(index, &[(12, 0x30)]);
                },
                merge,
            ],
        );
        model.retain(|key, _| ![2, 3].contains(key));
        model.extend([(10, 0x20), (11, 0x1_0000), (1, 0x11), (12, 0x30)]);
        model
    });
}

#[test]
fn a_removal_beside_two_folds_is_never_undone() {
    const STORED: &[(u64, u64)] = &[(1, 0x10), (2, 0x20)];
    explore(STORED, |index, mut model| {
        put(index, &[(3, 0x30), (4, 0x20)]);
        together(
            index,
            [
                |index| {
                    remove(index, 1);
                    remove(index, 3);
                },
                |index| {
                    remove(index, 2);
                    remove(index, 4);
                },
                merge,
                merge,
            ],
        );
        for removed in [0x10, 0x20, 0x30] {
            assert_eq!(found(index, removed, SearchPath::Tables), [], "{removed:x}");
        }
        model.clear();
        model
    });
}

#[test]
fn what_a_removal_keeps_from_a_fold_is_still_found() {
    const STORED: &[(u64, u64)] = &[(1, 0x10), (2, 0x20)];
    explore(STORED, |index, mut model| {
        put(index, &[(3, 0x30), (4, 0x40)]);
        together(index, [|index| remove(index, 3), merge]);
        model.insert(4, 0x40);
        model
    });
}

#[test]
fn what_is_inserted_again_beside_a_fold_of_its_removal_is_still_found() {
    const STORED: &[(u64, u64)] = &[(1, 0x10), (2, 0x20)];
    explore(STORED, |index, mut model| {
        remove(index, 1);
        together(
            index,
            [
                |index| put(index, &[(3, 0x10)]),
                |index| {
                    remove(index, 2);
                    put(index, &[(2, 0x20)]);
                },
                merge,
            ],
        );
        model.remove(&1);
        model.insert(3, 0x10);
        model
    });
}

#[test]
fn what_a_merge_leaves_to_writers_is_committed_once_or_not_at_all() {
    const STORED: &[(u64, u64)] = &[(1, 0x10), (2, 0x20)];
    explore(STORED, |index, mut model| {
        put(index, &[(3, 0x30)]);
        together(
            index,
            [
                |index| put(index, &[(4, 0x40)]),
                |index| {
                    remove(index, 3);
                    put(index, &[(2, 0x21)]);
                },
                merge_beside,
                merge,
            ],
        );
        model.extend([(2, 0x21), (4, 0x40)]);
        model
    });
}

#[test]
fn readers_see_whole_batches_and_what_was_acknowledged() {
    const STORED: &[(u64, u64)] = &[(1, 0x10)];
    explore(STORED, |index, mut model| {
        together(
            index,
            [
                |index| {
                    put(index, &[(10, 0xa0), (11, 0xb0)]);
                    assert_eq!(found(index, 0xb0, SearchPath::Tables), [11], "its own write");
                },
                |index| put(index, &[(1, 0x11), (12, 0xc0)]),
                |index| {
                    for _ in 0..3 {
                        let reader = index.reader().unwrap();
                        let has = |key: u64| reader.get(&key.to_be_bytes()).unwrap();
                        assert_eq!(has(10).is_some(), has(11).is_some(), "half a batch");
                        assert_eq!(has(1) == Some(0x11), has(12).is_some(), "half a batch");
                        assert_eq!(reader.len(), reader.documents().unwrap().count() as u64);
                        let by =
                            |path| reader.search(Query::new(0xb0).distance(0).path(path)).unwrap();
                        assert_eq!(by(SearchPath::Tables), by(SearchPath::Scan));
                    }
                },
                merge,
            ],
        );
        model.extend([(1, 0x11), (10, 0xa0), (11, 0xb0), (12, 0xc0)]);
        model
    });
}

#[test]
fn readers_beside_a_repacking_find_the_documents_of_their_snapshot() {
    const STORED: &[(u64, u64)] = &[(1, 0x10), (2, 0x20), (3, 0x20)];
    /// Finds each document twice, the second time in what the first one kept.
    fn read(index: &Index<u64>) {
        let readers = [index.reader().unwrap(), index.reader().unwrap()];
        for reader in readers.iter().chain(&readers) {
            let documents = reader.documents().unwrap().map(Result::unwrap);
            let documents: Vec<(Vec<u8>, u64)> = documents.collect();
            for fingerprint in [0x10, 0x20, 0xa0] {
                let query = Query::new(fingerprint).distance(0).path(SearchPath::Tables);
                let found = reader.search(query).unwrap().into_iter().map(|near| near.key);
                let of_fingerprint = documents.iter().filter(|(_, of)| *of == fingerprint);
                let wanted = of_fingerprint.map(|(key, _)| key.clone());
                assert_eq!(found.collect::<Vec<_>>(), wanted.collect::<Vec<_>>());
            }
        }
    }
    explore_packed(STORED, |index, mut model| {
        put(index, &[(10, 0xa0), (11, 0x20)]);
        remove(index, 3);
        together(
            index,
            [read, repack, |index| {
                put(index, &[(1, 0x20)]);
                read(index);
            }],
        );
        read(index);
        model.remove(&3);
        model.extend([(10, 0xa0), (11, 0x20), (1, 0x20)]);
        model
    });
}

#[test]
fn of_near_documents_that_come_at_once_one_gets_in() {
    const STORED: &[(u64, u64)] = &[(1, 0xff00)];
    fn if_new(index: &Index<u64>, key: u64, fingerprint: u64) {
        let rule = DuplicateRule::new(2);
        let document = (key.to_be_bytes(), fingerprint);
        index.insert_batch_if_new(&[document], rule, Durability::Buffered).unwrap();
    }
    explore(STORED, |index, _| {
        together(
            index,
            [
                |index| if_new(index, 10, 0xff01),
                |index| if_new(index, 11, 0xff02),
                |index| if_new(index, 12, 0xff03),
                |index| remove(index, 1),
            ],
        );
        let stored: Model = index
            .documents()
            .unwrap()
            .map(|document| document.unwrap())
            .map(|document| (u64::from_be_bytes(document.0[..].try_into().unwrap()), document.1))
            .collect();
        assert!(stored.len() <= 1, "near documents beside each other: {stored:?}");
        stored
    });
}

#[test]
fn memory_that_is_loaded_beside_writes_answers_as_the_tables_do() {
    const STORED: &[(u64, u64)] = &[(1, 0x10), (2, 0x20)];
    explore(STORED, |index, mut model| {
        together(
            index,
            [
                |index| assert!(index.load_resident(1 << 20).unwrap()),
                |index| put(index, &[(10, 0xa0)]),
                |index| remove(index, 2),
                |index| put(index, &[(1, 0x11)]),
            ],
        );
        for fingerprint in [0x10, 0x11, 0x20, 0xa0] {
            let by = |path| found(index, fingerprint, path);
            assert_eq!(by(SearchPath::Resident), by(SearchPath::Tables), "{fingerprint:x}");
        }
        model.remove(&2);
        model.extend([(1, 0x11), (10, 0xa0)]);
        model
    });
}
