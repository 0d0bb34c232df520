//! Tests of repackings: what is packed, what is freed, and what writes meanwhile leave.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::{FAMILIES, Packing, Repacks, Stage};
use crate::build::{BuildOptions, Builder};
use crate::health::Event;
use crate::store::{Family, counting_deleted};
use crate::{Durability, Index, IndexOptions, Query};

fn build(path: &Path, documents: impl Iterator<Item = (u64, u64)>) -> Index<u64> {
    let options = BuildOptions::new().memory(16 << 20);
    let mut builder = Builder::<u64>::create(path, &IndexOptions::new(), &options).unwrap();
    for (key, fingerprint) in documents {
        builder.push(&key.to_be_bytes(), fingerprint, key).unwrap();
    }
    builder.finish(&(), &mut |_, _| ()).unwrap();
    open(path)
}

fn remove(index: &Index<u64>, keys: impl Iterator<Item = u64>) -> u64 {
    let keys: Vec<_> = keys.map(u64::to_be_bytes).collect();
    index.remove_batch(&keys, Durability::Buffered).unwrap()
}

fn insert(index: &Index<u64>, documents: &[(u64, u64)]) {
    let documents: Vec<_> =
        documents.iter().map(|(key, fingerprint)| (key.to_be_bytes(), *fingerprint)).collect();
    index.insert_batch(&documents, Durability::Buffered).unwrap();
}

/// Repacks until the next stage is the one meant.
fn pack_until(index: &Index<u64>, is_next: impl Fn(&Stage) -> bool) -> Repacks<'_> {
    let mut repacks = index.shared.repacking.lock().unwrap();
    index.shared.begin_packing(&mut repacks).unwrap();
    let is_there = |packing: &Packing| packing.stages.front().is_some_and(&is_next);
    while !repacks.as_ref().is_some_and(is_there) {
        assert!(index.shared.pack_step(&mut repacks, &mut || ()).unwrap().is_some());
    }
    repacks
}

fn pack_the_rest(index: &Index<u64>, repacks: &mut Repacks<'_>, mut between: impl FnMut()) {
    while index.shared.pack_step(repacks, &mut between).unwrap().is_some() {}
}

/// Returns how many entries or packs a family holds, without the packs beneath it.
fn stored(index: &Index<u64>, family: Family) -> usize {
    index.shared.store.snapshot().stored(family).unwrap()
}

fn documents(index: &Index<u64>) -> BTreeMap<u64, u64> {
    let mut all = BTreeMap::new();
    for document in index.reader().unwrap().documents().unwrap() {
        let document = document.unwrap();
        all.insert(u64::from_be_bytes(document.0[..].try_into().unwrap()), document.1);
    }
    all
}

fn open(path: &Path) -> Index<u64> {
    Index::open_with(path, &IndexOptions::new().memory(16 << 20)).unwrap()
}

/// Copies the table files that the other directory lacks.
///
/// The index must be closed: RocksDB replaces files in the background.
fn copy_tables(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let name = entry.unwrap().file_name();
        let is_table = Path::new(&name).extension().is_some_and(|extension| extension == "sst");
        if is_table && !to.join(&name).exists() {
            std::fs::copy(from.join(&name), to.join(&name)).unwrap();
        }
    }
}

fn assert_sound(index: &Index<u64>) {
    let report = index.check_deep(&()).unwrap();
    assert_eq!(report.problems, [""; 0]);
}

#[test]
fn a_compaction_frees_the_space_of_packed_documents_that_were_removed() {
    let directory = tempfile::tempdir().unwrap();
    let fingerprint = |key: u64| key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let index = build(directory.path(), (0..60_000).map(|key| (key, fingerprint(key))));
    let full = index.compact().unwrap();
    assert_eq!(full.bytes_before, full.bytes_after);
    assert_eq!(remove(&index, (0..60_000).filter(|key: &u64| !key.is_multiple_of(3))), 40_000);
    let third = index.compact().unwrap();
    assert!(third.bytes_after * 5 < full.bytes_after * 2, "{full:?} {third:?}");
    let stats = index.stats(&()).unwrap();
    assert_eq!((stats.documents, stats.fingerprints), (20_000, 20_000));
    assert!(stats.bytes_docs + stats.bytes_postings < 20_000 * 24, "{stats:?}");
    assert_sound(&index);
    drop(index);
    let index = Index::<u64>::open(directory.path()).unwrap();
    assert_eq!(documents(&index), (0..60_000).step_by(3).map(|k| (k, fingerprint(k))).collect());
    assert_eq!(remove(&index, 0..60_000), 20_000);
    let empty = index.compact().unwrap();
    assert!(empty.bytes_after * 50 < full.bytes_after, "{full:?} {empty:?}");
    assert_eq!(index.len().unwrap(), 0);
    assert_sound(&index);
}

#[test]
fn a_compaction_packs_documents_that_were_inserted_or_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let fingerprint = |key: u64| key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut model: BTreeMap<u64, u64> =
        (30_000..60_000).map(|key| (2 * key, fingerprint(key))).collect();
    let index = build(directory.path(), model.clone().into_iter());
    let full = index.compact().unwrap().bytes_after;
    // Before, within and behind the packs, some under a fingerprint that has documents.
    let new = (0..40_000).chain((80_000..100_000).step_by(5)).chain(130_000..150_000);
    let new: Vec<_> = new.map(|key| (key, fingerprint(key % 45_000))).collect();
    insert(&index, &new);
    index.insert_batch(&[(b"another", 5)], Durability::Buffered).unwrap();
    model.extend(new);
    assert_eq!(stored(&index, Family::Docs), 64_001);
    let report = index.compact().unwrap();
    assert!(report.bytes_after < 4 * full, "{full} {report:?}");
    for family in FAMILIES {
        assert_eq!(stored(&index, family), 1, "{family}");
    }
    assert_eq!(index.get(b"another").unwrap(), Some(5));
    // Before the compaction nothing was packed there.
    let last = 149_999_u64;
    assert_eq!(index.get(&last.to_be_bytes()).unwrap(), Some(fingerprint(last % 45_000)));
    assert_eq!(index.remove_batch(&[b"another"], Durability::Buffered).unwrap(), 1);
    assert_eq!(documents(&index), model);
    assert_sound(&index);
    drop(index);
    let index = open(directory.path());
    assert_eq!(documents(&index), model);
    assert_eq!(remove(&index, 0..150_000), model.len() as u64);
    assert_sound(&index);
}

#[test]
fn packs_stay_well_filled_however_few_documents_each_repacking_adds() {
    let directory = tempfile::tempdir().unwrap();
    let mut rng = fastrand::Rng::with_seed(5);
    let index = build(directory.path(), (0..10_000).map(|key| (key << 20, rng.u64(..))));
    let mut count = 10_000;
    for round in 0..40_u64 {
        // Few of the packs, or the end of the last one.
        let key = |at: u64, any| if round % 4 == 0 { ((round + 1) << 34) + at } else { any };
        let new: Vec<_> =
            (0..50).map(|at| (key(at, rng.u64(..10_000 << 20)), rng.u64(..))).collect();
        insert(&index, &new);
        index.shared.repack().unwrap();
        count += new.len();
    }
    assert_eq!(index.len().unwrap(), count as u64);
    for family in Family::PACKS {
        let packs = stored(&index, family);
        assert!((count / 150..count / 90).contains(&packs), "{family}: {packs} of {count}");
    }
    assert_sound(&index);
}

#[test]
fn the_background_merge_packs_documents_once_there_are_enough() {
    let directory = tempfile::tempdir().unwrap();
    let fingerprint = |key: u64| key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    drop(build(directory.path(), (0..100_000).map(|key| (key, fingerprint(key)))));
    let (sender, packed) = std::sync::mpsc::channel();
    let options = IndexOptions::new().memory(16 << 20).background_merge(true);
    let index = Index::<u64>::open_with(
        directory.path(),
        &options.on_event(move |event| {
            if let Event::Packed { .. } = event {
                sender.send(()).unwrap();
            }
        }),
    )
    .unwrap();
    let new: Vec<_> = (80_000..170_000).map(|key| (key, fingerprint(key / 2))).collect();
    insert(&index, &new);
    assert_eq!(stored(&index, Family::Docs), 90_000);
    packed.recv_timeout(Duration::from_mins(2)).unwrap();
    assert_eq!(stored(&index, Family::Docs), 0);
    assert_eq!(remove(&index, 0..170_000), 170_000);
    // It may begin before all of them are removed.
    while stored(&index, Family::Docs) >= 1 << 16 {
        packed.recv_timeout(Duration::from_mins(2)).unwrap();
    }
    assert_eq!(index.len().unwrap(), 0);
    assert_sound(&index);
}

#[test]
fn a_compaction_ends_the_repacking_at_work_and_frees_what_its_snapshot_has() {
    let directory = tempfile::tempdir().unwrap();
    let index = build(directory.path(), (0..60_000).map(|key| (key, key << 20)));
    let full = index.compact().unwrap().bytes_after;
    insert(&index, &[(70_000, 1)]);
    drop(pack_until(&index, |next| matches!(next, Stage::Pack(_))));
    insert(&index, &[(70_000, 2)]);
    assert_eq!(remove(&index, 0..60_000), 60_000);
    let report = index.compact().unwrap();
    assert!(report.bytes_after * 20 < full, "{full} {report:?}");
    // It saw another fingerprint, and nothing overrides the packs any longer.
    pack_the_rest(&index, &mut index.shared.repacking.lock().unwrap(), || ());
    assert_eq!(index.get(&70_000_u64.to_be_bytes()).unwrap(), Some(2));
    assert_sound(&index);
}

#[test]
fn removals_are_dropped_without_a_walk_over_all_deleted_packs_for_each() {
    for gone in [0..58_000, 2000..60_000] {
        let directory = tempfile::tempdir().unwrap();
        let index = build(directory.path(), (0..60_000).map(|key| (key, key << 20)));
        assert_eq!(remove(&index, gone.clone()), 58_000);
        let mut repacks = pack_until(&index, |next| matches!(next, Stage::Clear(_)));
        let ((), deleted) = counting_deleted(|| pack_the_rest(&index, &mut repacks, || ()));
        drop(repacks);
        // Some 450 packs of documents, and as many of postings.
        assert!((400..4000).contains(&deleted), "{gone:?}: {deleted}");
        assert_eq!(documents(&index).len(), 2000);
        assert_sound(&index);
    }
}

#[test]
fn what_is_written_while_packs_are_rewritten_is_neither_lost_nor_back() {
    let mut rng = fastrand::Rng::with_seed(17);
    for round in 0..6 {
        let directory = tempfile::tempdir().unwrap();
        // Few fingerprints, so that a document often returns under its old one.
        let mut model: BTreeMap<u64, u64> =
            (0..9000).map(|key| (key, rng.u64(..1 << (3 * round)) << 13)).collect();
        let index = build(directory.path(), model.clone().into_iter());
        let old = model.clone();
        let mut write = |model: &mut BTreeMap<u64, u64>, count: usize| {
            for _ in 0..count {
                // Some of them lie behind all that were packed at first.
                let key = rng.u64(..11_000);
                match rng.u8(..4) {
                    0 | 1 => {
                        let removed = remove(&index, std::iter::once(key));
                        assert_eq!(removed == 1, model.remove(&key).is_some());
                    }
                    again => {
                        let other = rng.u64(..1 << 20);
                        let fingerprint = match old.get(&key) {
                            Some(old) if again == 2 => *old,
                            _ => other,
                        };
                        let document = [(key.to_be_bytes(), fingerprint)];
                        index.insert_batch(&document, Durability::Buffered).unwrap();
                        model.insert(key, fingerprint);
                    }
                }
            }
        };
        for _ in 0..3 {
            write(&mut model, 1500);
            let (reader, before) = (index.reader().unwrap(), model.clone());
            let mut repacks = pack_until(&index, |next| matches!(next, Stage::Pack(_)));
            pack_the_rest(&index, &mut repacks, || write(&mut model, 60));
            drop(repacks);
            assert_eq!(documents(&index), model, "round {round}");
            assert_eq!(reader.len(), before.len() as u64);
            let (key, fingerprint) = before.iter().next().unwrap();
            let found = reader.search(Query::new(*fingerprint).distance(0)).unwrap();
            assert!(found.iter().any(|found| found.key == key.to_be_bytes()));
            assert_sound(&index);
        }
        index.compact().unwrap();
        assert_sound(&index);
        assert_eq!(stored(&index, Family::Docs) + stored(&index, Family::Postings), 0);
        assert_eq!(remove(&index, 0..11_000), model.len() as u64);
        assert_eq!(documents(&index), BTreeMap::new());
        assert_sound(&index);
    }
}

#[test]
fn packs_that_were_rewritten_are_repaired_from_files_alone() {
    for state in 0..7 {
        let directory = tempfile::tempdir().unwrap();
        let (path, target) = (directory.path().join("index"), directory.path().join("repaired"));
        drop(build(&path, (0..20_000).map(|key| (key, key << 20))));
        let built = directory.path().join("files of the build");
        copy_tables(&path, &built);
        let index = open(&path);
        // Whole packs, most of some, and none of others.
        let gone = |key: u64| key < 300 || (5000..9000).contains(&key) && !key.is_multiple_of(5);
        remove(&index, (0..20_000).filter(|key| gone(*key)));
        let new: Vec<_> = (12_000..12_500).chain(20_000..21_000).map(|k| (k, k << 30)).collect();
        insert(&index, &new);
        match state {
            0 => {}
            1 => drop(pack_until(&index, |next| matches!(next, Stage::Flush))),
            2 => drop(pack_until(&index, |next| matches!(next, Stage::Clear(_)))),
            _ => {
                let mut repacks = pack_until(&index, |next| matches!(next, Stage::Flush));
                pack_the_rest(&index, &mut repacks, || ());
            }
        }
        drop(index);
        let kept = directory.path().join("files before the compaction");
        copy_tables(&path, &kept);
        if state > 3 {
            open(&path).compact().unwrap();
        }
        std::fs::remove_file(path.join("CURRENT")).unwrap();
        // Files that the compaction replaced are deleted one by one: those of the removals may
        // already be gone.
        match state {
            5 => copy_tables(&kept, &path),
            6 => copy_tables(&built, &path),
            _ => {}
        }
        let build = BuildOptions::new().memory(16 << 20);
        crate::build::repair::<u64>(&path, &target, &build, &()).unwrap();
        let repaired = Index::<u64>::open(&target).unwrap();
        let mut found = documents(&repaired);
        // Without removals, packs of the build cannot tell that all their documents are gone.
        assert_eq!(found.contains_key(&0), state == 6, "state {state}");
        found.retain(|key, _| state < 6 || *key >= 300);
        let left = (0..20_000).filter(|key| !gone(*key)).map(|key| (key, key << 20));
        let expected: BTreeMap<u64, u64> = left.chain(new).collect();
        assert!(found == expected, "state {state}");
        assert_sound(&repaired);
    }
}
