//! Tests of merges: writes between any two steps, and what a pass leaves behind.

mod offers;

use std::collections::BTreeSet;
use std::sync::Arc;

use super::*;
use crate::index::read::deltas::Deltas;
use crate::index::write::Change;
use crate::store::delta_run::Name;
use crate::store::keys::Delta;
use crate::{Durability, IndexOptions, NewDocument};

/// Returns an index with runs, and delta entries among and behind them. Document `n` is `n *
/// 2^40`.
fn index(path: &std::path::Path) -> Index<u64> {
    let index = Index::create(path, &IndexOptions::new().memory(16 << 20)).unwrap();
    let fill = |documents: &[u64]| {
        let documents: Vec<_> = documents.iter().map(|&n| (n.to_be_bytes(), n << 40)).collect();
        index.insert_batch(&documents, Durability::Buffered).unwrap();
    };
    fill(&(0..2000).step_by(2).collect::<Vec<_>>());
    index.merge(&()).unwrap();
    assert_eq!(index.stats(&()).unwrap().delta_entries, 0);
    fill(&(0..3000).step_by(3).collect::<Vec<_>>());
    index
}

/// Runs a step, and `between` after it has read what it merges.
fn step_around(index: &Index<u64>, between: impl FnOnce()) -> Stepped {
    let step = index.shared.committer.merge_step().unwrap();
    step.run(|snapshot, table, deltas| {
        let merged = merge(snapshot, table, deltas)?;
        assert!(merged.deltas > 0);
        between();
        Ok(merged)
    })
    .unwrap()
}

fn near(index: &Index<u64>, n: u64) -> usize {
    index.search(crate::Query::new(n << 40).distance(0)).unwrap().len()
}

#[test]
fn what_is_removed_between_reading_and_committing_of_a_step_stays_removed() {
    let directory = tempfile::tempdir().unwrap();
    let index = index(directory.path());
    // The first is in a run, the second a delta entry among runs, the third one behind them.
    let removed = [500_u64, 603, 2997];
    step_around(&index, || {
        for n in removed {
            assert!(index.remove(&n.to_be_bytes()).unwrap());
        }
    });
    index.merge(&()).unwrap();
    for n in removed {
        assert_eq!(near(&index, n), 0, "{n}");
    }
    let report = index.check(&()).unwrap();
    assert_eq!(report.problem_count, 0, "{:?}", report.problems);
    assert_eq!(index.stats(&()).unwrap().delta_entries, 0);
}

#[test]
fn inserts_do_not_wait_for_a_step_and_are_not_undone_by_it() {
    let directory = tempfile::tempdir().unwrap();
    let index = index(directory.path());
    step_around(&index, || {
        // Known and unknown fingerprints, under new and existing keys.
        for (key, n) in [(7000_u64, 600), (7001, 601), (7002, 9001), (8, 999), (999, 8)] {
            index.insert(&key.to_be_bytes(), n << 40).unwrap();
        }
        index.remove(&7002_u64.to_be_bytes()).unwrap();
        index.insert(&7003_u64.to_be_bytes(), 9001 << 40).unwrap();
    });
    let found = [600, 601, 9001, 999, 8].map(|n| near(&index, n));
    assert_eq!(found, [2, 1, 1, 1, 1]);
    index.merge(&()).unwrap();
    assert_eq!([600, 601, 9001, 999, 8].map(|n| near(&index, n)), found);
    let report = index.check(&()).unwrap();
    assert_eq!(report.problem_count, 0, "{:?}", report.problems);
}

#[test]
fn what_is_inserted_again_between_reading_and_committing_of_a_step_stays() {
    let directory = tempfile::tempdir().unwrap();
    let index = index(directory.path());
    for n in [500_u64, 603, 700] {
        assert!(index.remove(&n.to_be_bytes()).unwrap());
    }
    // The step has read that all three are removed.
    step_around(&index, || {
        for (key, n) in [(7000_u64, 500), (603, 603)] {
            index.insert(&key.to_be_bytes(), n << 40).unwrap();
        }
    });
    for _ in 0..2 {
        assert_eq!([500, 603, 700].map(|n| near(&index, n)), [1, 1, 0]);
        let report = index.check(&()).unwrap();
        assert_eq!(report.problem_count, 0, "{:?}", report.problems);
        index.merge(&()).unwrap();
    }
    assert_eq!(index.stats(&()).unwrap().delta_entries, 0);
}

#[test]
fn removals_leave_runs_alone_until_a_merge_takes_them_in() {
    let directory = tempfile::tempdir().unwrap();
    let index = index(directory.path());
    index.merge(&()).unwrap();
    let before = index.stats(&()).unwrap();
    let keys: Vec<_> = (0..3000_u64).filter(|n| n % 5 > 0).map(u64::to_be_bytes).collect();
    let removed = index.remove_batch(&keys, Durability::Buffered).unwrap();
    let after = index.stats(&()).unwrap();
    assert_eq!((after.runs, after.delta_entries), (before.runs, removed));
    assert_eq!(after.fingerprints, before.fingerprints - removed);
    assert_eq!([500, 600, 603].map(|n| near(&index, n)), [1, 1, 0]);
    assert_eq!(index.check(&()).unwrap().problem_count, 0);
    index.merge(&()).unwrap();
    let merged = index.stats(&()).unwrap();
    assert_eq!((merged.delta_entries, merged.fingerprints), (0, after.fingerprints));
    let rest: Vec<_> = (0..3000_u64).map(u64::to_be_bytes).collect();
    index.remove_batch(&rest, Durability::Buffered).unwrap();
    assert_eq!(index.stats(&()).unwrap().fingerprints, 0);
    index.merge(&()).unwrap();
    let empty = index.stats(&()).unwrap();
    assert_eq!((empty.fingerprints, empty.delta_entries, empty.runs), (0, 0, 0));
    assert_eq!(index.check(&()).unwrap().problem_count, 0);
}

#[test]
fn near_fingerprints_are_those_of_stored_documents_before_and_after_a_merge() {
    let directory = tempfile::tempdir().unwrap();
    let index = index(directory.path());
    for n in [500_u64, 603, 2997] {
        assert_eq!(index.near_batch(&[n << 40], 0).unwrap()[0].len(), 1, "{n}");
        index.remove(&n.to_be_bytes()).unwrap();
        assert_eq!(index.near(n << 40, 0).unwrap().len(), 0, "{n}");
        assert_eq!(index.near_batch(&[n << 40], 0).unwrap()[0].len(), 0, "{n}");
    }
    index.merge(&()).unwrap();
    assert_eq!(index.near(500 << 40, 0).unwrap().len(), 0);
}

#[test]
fn a_write_at_any_step_of_a_pass_is_not_undone_by_it() {
    for before in 0.. {
        let directory = tempfile::tempdir().unwrap();
        let index = index(directory.path());
        for n in [3_u64, 6] {
            assert!(index.remove(&n.to_be_bytes()).unwrap());
        }
        let steps = (0..before).take_while(|_| !index.shared.merge_step().unwrap().ends_pass);
        if steps.count() < before {
            assert!(before > 4, "a step for each table, and one that deletes");
            break;
        }
        // A run member and two delta entries go, a removed one comes back, and one is new.
        for n in [500_u64, 603, 2997] {
            assert!(index.remove(&n.to_be_bytes()).unwrap());
        }
        for n in [3_u64, 9001] {
            index.insert(&n.to_be_bytes(), n << 40).unwrap();
        }
        loop {
            let step = index.shared.merge_step().unwrap();
            let found = [500, 603, 2997, 3, 9001, 6, 999].map(|n| near(&index, n));
            assert_eq!(found, [0, 0, 0, 1, 1, 0, 1], "{before} steps before");
            assert_eq!(index.check(&()).unwrap().problem_count, 0, "{before} steps before");
            if !step.more {
                break;
            }
        }
        assert_eq!(index.stats(&()).unwrap().delta_entries, 0);
    }
}

#[test]
fn a_pass_leaves_what_was_removed_meanwhile_to_the_next_one() {
    let directory = tempfile::tempdir().unwrap();
    let index = index(directory.path());
    step_around(&index, || assert!(index.remove(&603_u64.to_be_bytes()).unwrap()));
    let mut left = Vec::new();
    loop {
        let step = index.shared.merge_step().unwrap();
        if step.ends_pass {
            left.push(index.stats(&()).unwrap().delta_entries);
            for n in (0..3000).step_by(3).filter(|n| *n != 603) {
                assert_eq!(near(&index, n), 1, "{n} after {} passes", left.len());
            }
        }
        if !step.more {
            break;
        }
    }
    assert_eq!(left, [1, 0]);
    assert_eq!(index.health().unwrap().unmerged, 0);
}

#[test]
fn what_comes_behind_a_pass_keeps_searches_looking_at_delta_entries() {
    let directory = tempfile::tempdir().unwrap();
    let index = index(directory.path());
    index.shared.merge_step().unwrap();
    // The pass has left the first table, which a search at distance 0 may use alone.
    index.insert(&7000_u64.to_be_bytes(), 9001 << 40).unwrap();
    loop {
        let step = index.shared.merge_step().unwrap();
        assert!(step.more);
        if step.ends_pass {
            break;
        }
    }
    assert_eq!(near(&index, 9001), 1);
    assert_eq!(index.health().unwrap().unmerged, 1);
}

#[test]
fn a_pass_that_was_given_up_halfway_is_repeated_by_another_handle() {
    let directory = tempfile::tempdir().unwrap();
    let index = index(directory.path());
    for _ in 0..3 {
        index.shared.merge_step().unwrap();
    }
    assert!(index.remove(&603_u64.to_be_bytes()).unwrap());
    drop(index);
    let index = Index::<u64>::open(directory.path()).unwrap();
    assert_eq!(index.health().unwrap().unmerged, 666);
    assert_eq!([600, 603, 2997].map(|n| near(&index, n)), [1, 0, 1]);
    assert_eq!(index.check(&()).unwrap().problem_count, 0);
    index.merge(&()).unwrap();
    assert_eq!([600, 603, 2997].map(|n| near(&index, n)), [1, 0, 1]);
    let stats = index.stats(&()).unwrap();
    assert_eq!((stats.delta_entries, stats.fingerprints), (0, stats.documents));
    assert_eq!(index.check(&()).unwrap().problem_count, 0);
}

#[test]
fn steps_cut_long_runs_and_many_deltas_and_lose_none() {
    let directory = tempfile::tempdir().unwrap();
    let index = Index::create(directory.path(), &IndexOptions::new().memory(16 << 20)).unwrap();
    let mut rng = fastrand::Rng::with_seed(7);
    let mut stored = std::collections::BTreeSet::new();
    for round in 0..4 {
        let documents: Vec<_> = (0..30_000_u64)
            .map(|n| ((round * 30_000 + n).to_be_bytes(), rng.u64(..) & 0xff_ffff << 40))
            .collect();
        stored.extend(documents.iter().map(|(_, fingerprint)| *fingerprint));
        index.insert_batch(&documents, Durability::Buffered).unwrap();
        let report = index.merge(&()).unwrap();
        assert!(report.merged > 0);
        let stats = index.stats(&()).unwrap();
        assert_eq!((stats.delta_entries, stats.fingerprints), (0, stored.len() as u64));
    }
    assert_eq!(index.check(&()).unwrap().problem_count, 0);
}

/// Returns how many delta runs there are of added fingerprints, and how many of removed ones.
fn stored(index: &Index<u64>) -> (usize, usize) {
    let mut cursor = index.shared.store.sweep(Family::Table(0)).unwrap();
    cursor.seek(&[Kind::Delta as u8]);
    let (mut added, mut removed) = (0, 0);
    let counted = cursor.each(|key, _| {
        match Name::of(key).unwrap().expect("nothing is stored alone").delta {
            Delta::Added => added += 1,
            Delta::Removed => removed += 1,
        }
        Ok(true)
    });
    counted.unwrap();
    (added, removed)
}

#[test]
fn a_batch_stores_what_it_adds_and_what_it_removes_in_delta_runs() {
    let directory = tempfile::tempdir().unwrap();
    let index = index(directory.path());
    assert_eq!(stored(&index), (3, 0), "666 added fingerprints");
    let gone: Vec<_> = (0..3000_u64).step_by(15).map(u64::to_be_bytes).collect();
    assert_eq!(index.remove_batch(&gone, Durability::Buffered).unwrap(), 200);
    assert!(index.remove(&2997_u64.to_be_bytes()).unwrap());
    assert_eq!(stored(&index), (3, 2));
    let documents = [(7000_u64, 9001), (7001, 2997), (7002, 9002)];
    let documents = documents.map(|(key, n)| (key.to_be_bytes(), n << 40));
    index.insert_batch(&documents, Durability::Buffered).unwrap();
    assert_eq!(stored(&index), (4, 2), "one of them comes back");
    drop(index);
    let index = Index::<u64>::open(directory.path()).unwrap();
    for n in 9003..9015_u64 {
        index.insert(&n.to_be_bytes(), n << 40).unwrap();
    }
    assert_eq!(stored(&index), (4 + 12, 2), "no number is that of another delta run");
    let asked = [2997, 9001, 9002, 9003, 9014, 15];
    assert_eq!(asked.map(|n| near(&index, n)), [1, 1, 1, 1, 1, 0]);
    index.merge(&()).unwrap();
    assert_eq!(stored(&index), (0, 0));
    assert_eq!(asked.map(|n| near(&index, n)), [1, 1, 1, 1, 1, 0]);
    assert_eq!(index.check(&()).unwrap().problem_count, 0);
}

#[test]
fn a_pass_that_ends_anywhere_leaves_what_the_last_write_of_each_fingerprint_said() {
    for steps in 0.. {
        let directory = tempfile::tempdir().unwrap();
        let index = index(directory.path());
        // One of delta runs and one of runs come and go, each once more than the one before it.
        for n in [3_u64, 2997, 500, 600] {
            assert!(index.remove(&n.to_be_bytes()).unwrap());
        }
        for n in [2997_u64, 600] {
            index.insert(&n.to_be_bytes(), n << 40).unwrap();
        }
        assert!(index.remove(&600_u64.to_be_bytes()).unwrap());
        let ended = (0..steps).any(|_| index.shared.merge_step().unwrap().ends_pass);
        let (added, removed) = stored(&index);
        drop(index);
        let index = Index::<u64>::open(directory.path()).unwrap();
        for merged in [false, true] {
            let found = [3, 2997, 500, 600, 6, 498].map(|n| near(&index, n));
            assert_eq!(found, [0, 1, 0, 0, 1, 1], "{steps} steps, then merged: {merged}");
            let report = index.check(&()).unwrap();
            assert_eq!(report.problem_count, 0, "{steps} steps: {:?}", report.problems);
            index.merge(&()).unwrap();
        }
        if ended {
            assert_eq!((added, removed), (0, 0));
            assert!(steps > 4 + 2, "a step for each table, and some that delete");
            break;
        }
    }
}

#[test]
fn a_write_that_fails_within_a_pass_lets_no_removal_hide_a_later_one() {
    let directory = tempfile::tempdir().unwrap();
    let index = index(directory.path());
    index.merge(&()).unwrap();
    assert!(index.remove(&2997_u64.to_be_bytes()).unwrap());
    index.shared.merge_step().unwrap();
    // It is announced, and never committed.
    let shared = &*index.shared;
    let changes = [Change::Put(NewDocument::new(b"lost", 2997 << 40))];
    let changes = shared.in_order(&changes).unwrap();
    let batch = shared.store.batch().unwrap();
    drop(shared.prepare(shared.committer.turn(), batch, &changes).unwrap());
    while !index.shared.merge_step().unwrap().ends_pass {}
    assert_eq!(near(&index, 2997), 0);
    index.insert(b"stored", 2997 << 40).unwrap();
    for _ in 0..2 {
        assert_eq!(near(&index, 2997), 1);
        assert_eq!(index.check(&()).unwrap().problem_count, 0);
        index.merge(&()).unwrap();
    }
    assert_eq!(stored(&index), (0, 0));
}

#[test]
fn readers_share_runs_until_a_pass_begins_to_delete() {
    let directory = tempfile::tempdir().unwrap();
    let index = index(directory.path());
    let runs = || Arc::clone(index.reader().unwrap().runs());
    let before = runs();
    let write = || index.insert(&5_u64.to_be_bytes(), 5 << 40).unwrap();
    for _ in 0..index.plan().tables().len() {
        index.merge_step().unwrap();
        write();
        assert!(Arc::ptr_eq(&before, &runs()));
    }
    // Every table has what the pass takes in.
    index.merge_step().unwrap();
    let deleting = runs();
    assert!(!Arc::ptr_eq(&before, &deleting));
    write();
    assert!(Arc::ptr_eq(&deleting, &runs()));
    index.compact().unwrap();
    assert!(!Arc::ptr_eq(&deleting, &runs()));
}

#[test]
fn what_is_read_up_to_a_limit_leaves_only_what_overrides_it() {
    let directory = tempfile::tempdir().unwrap();
    let index = index(directory.path());
    for n in [3_u64, 6, 9] {
        assert!(index.remove(&n.to_be_bytes()).unwrap());
    }
    let (reader, tables) = (index.reader().unwrap(), index.plan().tables());
    let some = |most| Deltas::<u64>::some(reader.snapshot(), tables, most).unwrap();
    let (mut taken, mut complete_from) = (BTreeSet::new(), None);
    for most in 0..700 {
        let (deltas, complete) = some(most);
        assert!(deltas.len() <= most);
        taken.insert((deltas.runs().len(), deltas.removes()));
        if complete {
            complete_from.get_or_insert(most);
            assert_eq!((deltas.len(), deltas.added().count()), (667, 664));
        }
    }
    // Two fingerprints are in two delta runs.
    assert_eq!(complete_from, Some(669));
    let wanted: Vec<_> = (0..7).map(|runs| (runs, runs > 3)).collect();
    assert_eq!(Vec::from_iter(taken), wanted);
}
