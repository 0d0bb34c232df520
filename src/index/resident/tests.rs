use std::fs;

use super::*;
use crate::error::Error;
use crate::index::{Durability, IndexOptions, Query, SearchPath};

const BUDGET: usize = 64 << 20;
const SEED: u64 = 47;

/// An index with copies, near documents and a removed one, and what it stores.
fn filled(path: &std::path::Path) -> (Index<u64>, Vec<(Vec<u8>, u64)>) {
    let index = Index::<u64>::create(path, &IndexOptions::new()).unwrap();
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut stored: Vec<(Vec<u8>, u64)> = Vec::new();
    for number in 0..900_usize {
        let earlier = stored.get(number / 2).map(|(_, fingerprint)| *fingerprint);
        let near = earlier.filter(|_| random.bool()).map(|of| of ^ (1 << random.u32(..64)));
        let fingerprint = near.unwrap_or_else(|| random.u64(..) & random.u64(..));
        stored.push((format!("page {number}").into_bytes(), fingerprint));
    }
    let documents: Vec<(&[u8], u64)> = stored.iter().map(|(key, f)| (&key[..], *f)).collect();
    index.insert_batch(&documents, Durability::Buffered).unwrap();
    index.remove(&stored.pop().unwrap().0).unwrap();
    (index, stored)
}

fn read_only(path: &std::path::Path) -> Index<u64> {
    let options = IndexOptions::new().read_only(true).resident(BUDGET);
    Index::open_with(path, &options).unwrap()
}

fn save(index: &Index<u64>) -> bool {
    index.save_resident(BUDGET).unwrap().is_some()
}

fn is_mapped(index: &Index<u64>) -> bool {
    let usage = index.memory_usage().unwrap();
    assert_eq!(usage.resident == 0, usage.resident_shared > 0, "{usage:?}");
    usage.resident_shared > 0
}

fn assert_exact(index: &Index<u64>, stored: &[(Vec<u8>, u64)]) {
    for (_, query) in stored.iter().step_by(7) {
        let mut wanted: Vec<(u32, &[u8])> = stored
            .iter()
            .map(|(key, fingerprint)| ((fingerprint ^ query).count_ones(), &key[..]))
            .filter(|(distance, _)| *distance <= 3)
            .collect();
        wanted.sort_unstable();
        let found = index.search(Query::new(*query).path(SearchPath::Resident)).unwrap();
        let found: Vec<_> = found.iter().map(|near| (near.distance, &near.key[..])).collect();
        assert_eq!(found, wanted, "seed {SEED}, {query:x}");
    }
}

#[test]
fn handles_map_what_was_saved_of_their_state_and_answer_exactly() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pages");
    let (index, mut stored) = filled(&path);
    assert!(!is_mapped(&read_only(&path)) && save(&index));
    let first = read_only(&path);
    assert!(is_mapped(&first));
    assert_exact(&first, &stored);
    drop(index);

    // A writer maps it too, and what it writes shows at once.
    let index = Index::<u64>::open_with(&path, &IndexOptions::new().resident(BUDGET)).unwrap();
    assert!(index.memory_usage().unwrap().resident_shared > 0, "opening changes nothing");
    index.insert(b"new", stored[0].1 ^ 1).unwrap();
    stored.push((b"new".to_vec(), stored[0].1 ^ 1));
    index.remove(&stored.remove(3).0).unwrap();
    assert_exact(&index, &stored);

    // The file is of an earlier state now, until it is saved again.
    assert!(!is_mapped(&read_only(&path)));
    assert_exact(&read_only(&path), &stored);
    assert!(save(&index));
    assert!(is_mapped(&read_only(&path)));
    assert_exact(&read_only(&path), &stored);
    index.merge(&()).unwrap();
    assert!(!is_mapped(&read_only(&path)), "a merge is a write");
    assert!(save(&index));
    assert_exact(&read_only(&path), &stored);
}

#[test]
fn a_file_larger_than_the_budget_is_not_mapped() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pages");
    let (index, stored) = filled(&path);
    assert!(index.save_resident(1000).unwrap().is_none());
    assert!(!path.join("hamdex.resident").exists());
    assert!(save(&index));
    let bytes = read_only(&path).resident_bytes().unwrap();
    let options = IndexOptions::new().read_only(true).resident(bytes - 1);
    let smaller = Index::<u64>::open_with(&path, &options).unwrap();
    assert!(!is_mapped(&smaller), "fewer tables are loaded instead");
    assert_exact(&smaller, &stored);
}

#[test]
fn damage_of_the_saved_file_is_an_error_and_never_an_answer() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pages");
    let (index, stored) = filled(&path);
    assert!(save(&index));
    let file = path.join("hamdex.resident");
    let bytes = fs::read(&file).unwrap();
    let options = IndexOptions::new().read_only(true).resident(BUDGET);
    // In the head, the directory, the columns and the list of checksums of the first table.
    for at in [20, 4100, 8200, 15_000, 16_390, 0] {
        let mut changed = bytes.clone();
        changed[at] ^= 0x10;
        fs::write(&file, changed).unwrap();
        let error = Index::<u64>::open_with(&path, &options).unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "byte {at}: {error}");
        let report = Index::<u64>::open_read_only(&path).unwrap().check_deep(&()).unwrap();
        assert_eq!(report.problem_count, 1, "byte {at}: {:?}", report.problems);
    }
    // Saving again is the cure, and an index that is not resident does not look at the file.
    assert_eq!(Index::<u64>::open_read_only(&path).unwrap().len().unwrap(), stored.len() as u64);
    assert!(save(&index));
    assert_exact(&read_only(&path), &stored);
    assert_eq!(index.check_deep(&()).unwrap().problem_count, 0);
}

#[test]
fn what_a_killed_process_was_saving_is_removed_and_readers_cannot_save() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pages");
    drop(filled(&path));
    let unsaved = path.join("hamdex.resident.new");
    fs::write(&unsaved, b"hamdexrt and a half").unwrap();
    let reader = read_only(&path);
    assert!(unsaved.exists(), "readers change nothing");
    assert!(matches!(reader.save_resident(BUDGET), Err(Error::ReadOnly { .. })));
    drop(Index::<u64>::open(&path).unwrap());
    assert!(!unsaved.exists());
}

#[test]
fn an_empty_index_is_saved_and_mapped() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pages");
    let index = Index::<u64>::create(&path, &IndexOptions::new()).unwrap();
    assert!(save(&index));
    let reader = read_only(&path);
    assert!(is_mapped(&reader) && reader.search(0).unwrap().is_empty());
}
