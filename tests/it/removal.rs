//! Removing and replacing leave no trace of the old document in any family.

use std::time::{Duration, Instant};

use hamdex::{Durability, Fingerprint, Index, Query, Result, SearchPath};

use crate::support::{Model, Rng, assert_holds, keyed, options, random, scan, table_files};

/// An index whose delta entries are merged, and its documents.
fn folded<F: Fingerprint>(fingerprints: &[F]) -> (tempfile::TempDir, Index<F>, Model<F>) {
    let directory = tempfile::tempdir().unwrap();
    let index = Index::create(directory.path(), &options::<F>("4")).unwrap();
    let model: Model<F> =
        fingerprints.iter().map(|f| (f.to_bytes().as_ref().to_vec(), *f)).collect();
    let documents: Vec<_> = model.clone().into_iter().collect();
    index.insert_batch(&documents, Durability::Buffered).unwrap();
    index.merge(&()).unwrap();
    (directory, index, model)
}

fn assert_gone<F: Fingerprint>(index: &Index<F>, fingerprint: F, model: &Model<F>, what: &str) {
    for path in [SearchPath::Tables, SearchPath::Scan] {
        let found = index.search(Query::new(fingerprint).distance(3).path(path)).unwrap();
        assert_eq!(found, scan(model, fingerprint, 3), "{what}, {path:?}");
        assert!(found.iter().all(|found| found.fingerprint != fingerprint), "{what}, {path:?}");
    }
    assert_holds(index, model, what);
}

#[test]
fn an_upsert_leaves_no_trace_of_the_old_fingerprint() -> Result<()> {
    let (old, other) = (0x1111_2222_3333_4444_u64, !0x1111_2222_3333_4444_u64);
    for fold_first in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let index = Index::create(directory.path(), &options::<u64>("10"))?;
        assert!(!index.insert(b"page", old)?);
        if fold_first {
            index.merge(&())?;
        }
        assert!(index.insert(b"page", other)?);
        assert_eq!(index.get(b"page")?, Some(other));
        let model = Model::from([(b"page".to_vec(), other)]);
        assert_gone(&index, old, &model, "after the upsert");
        index.merge(&())?;
        assert_gone(&index, old, &model, "folded after the upsert");
    }
    Ok(())
}

#[test]
fn an_upsert_to_the_same_fingerprint_changes_nothing() -> Result<()> {
    let (_directory, index, model) = folded(&[1_u64, 2, 3]);
    assert!(index.insert(&2_u64.to_be_bytes(), 2)?);
    assert_holds(&index, &model, "after the upsert");
    assert_eq!(index.stats(&())?.delta_entries, 0, "nothing was written");
    Ok(())
}

#[test]
fn a_fingerprint_stays_while_another_document_has_it() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let index = Index::create(directory.path(), &options::<u64>("4"))?;
    index.insert_batch(&[(b"a", 9_u64), (b"b", 9)], Durability::Buffered)?;
    index.merge(&())?;
    assert!(index.remove(b"a")?);
    assert_holds(&index, &Model::from([(b"b".to_vec(), 9)]), "one of two removed");
    assert_eq!(index.search(9)?.len(), 1);
    assert!(index.remove(b"b")?);
    assert_gone(&index, 9, &Model::new(), "both removed");
    index.merge(&())?;
    assert_gone(&index, 9, &Model::new(), "both removed, folded");
    assert_eq!(index.stats(&())?.runs, 0);
    Ok(())
}

#[test]
fn documents_that_exchange_fingerprints_keep_both() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let index = Index::create(directory.path(), &options::<u64>("4"))?;
    index.insert_batch(&[(b"a", 1_u64), (b"b", u64::MAX)], Durability::Buffered)?;
    index.merge(&())?;
    let report = index.insert_batch(&[(b"a", u64::MAX), (b"b", 1)], Durability::Buffered)?;
    assert_eq!((report.inserted, report.replaced), (0, 2));
    let model = Model::from([(b"a".to_vec(), u64::MAX), (b"b".to_vec(), 1)]);
    assert_holds(&index, &model, "exchanged");
    assert_eq!(index.search(1)?[0].key, b"b");
    Ok(())
}

#[test]
fn removals_take_the_first_middle_and_last_member_out_of_a_run() -> Result<()> {
    let fingerprints = random::<u64>(&mut Rng::new(3), 60);
    let (_directory, index, mut model) = folded(&fingerprints);
    assert_eq!(index.stats(&())?.runs, 1);
    let mut sorted = fingerprints;
    sorted.sort_unstable();
    for (position, at) in [("first", 0), ("middle", 30), ("last", 59)] {
        let gone = sorted[at];
        assert!(index.remove(&gone.to_be_bytes())?);
        model.remove(&gone.to_be_bytes()[..]);
        assert_gone(&index, gone, &model, position);
        assert!(!index.remove(&gone.to_be_bytes())?, "{position} was removed before");
    }
    index.merge(&())?;
    let stats = index.stats(&())?;
    assert_eq!((stats.runs, stats.delta_entries), (1, 0), "the merge rewrites the run");
    assert_gone(&index, sorted[59], &model, "folded");
    Ok(())
}

#[test]
fn removal_of_a_run_of_one_removes_the_run() -> Result<()> {
    for fingerprint in [0_u32, 0x1234_5678, u32::MAX] {
        let (_directory, index, mut model) = folded(&[fingerprint]);
        assert_eq!(index.stats(&())?.runs, 1);
        assert!(index.remove(&fingerprint.to_be_bytes())?);
        model.clear();
        assert_gone(&index, fingerprint, &model, "run of one");
        index.merge(&())?;
        assert_gone(&index, fingerprint, &model, "run of one, folded");
        assert_eq!(index.stats(&())?.runs, 0);
    }
    Ok(())
}

#[test]
fn a_batch_removes_whole_runs_and_parts_of_others() -> Result<()> {
    let fingerprints = random::<u128>(&mut Rng::new(8), 3000);
    let (_directory, index, mut model) = folded(&fingerprints);
    assert!(index.stats(&())?.runs > 8);
    let mut sorted = fingerprints;
    sorted.sort_unstable();
    // More than two whole runs, and one member in eleven elsewhere.
    let gone: Vec<u128> = (0..3000)
        .filter(|at| (700..1400).contains(at) || at % 11 == 0)
        .map(|at| sorted[at])
        .collect();
    let keys: Vec<_> = gone.iter().map(|fingerprint| fingerprint.to_be_bytes()).collect();
    assert_eq!(index.remove_batch(&keys, Durability::Buffered)?, keys.len() as u64);
    model.retain(|_, fingerprint| !gone.contains(fingerprint));
    for fingerprint in gone.iter().step_by(97) {
        assert!(index.search(*fingerprint)?.is_empty());
    }
    assert_holds(&index, &model, "after the batch");
    index.merge(&())?;
    assert_holds(&index, &model, "folded after the batch");
    Ok(())
}

/// The cursors of a search keep the files that it read until the next search.
#[test]
fn compaction_frees_space_after_a_search() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let index = Index::create(directory.path(), &options::<u64>("4"))?;
    let bytes = || -> u64 {
        let tables = table_files(directory.path());
        tables.iter().filter_map(|table| table.metadata().ok()).map(|table| table.len()).sum()
    };
    let documents: Vec<_> = keyed(&mut Rng::new(5), &random::<u64>(&mut Rng::new(6), 20_000));
    index.insert_batch(&documents, Durability::Buffered)?;
    index.flush()?;
    let before = bytes();
    let gone: Vec<_> = documents.iter().skip(10).map(|(key, _)| key).collect();
    assert_eq!(index.remove_batch(&gone, Durability::Buffered)?, 19_990);
    index.flush()?;
    assert_eq!(index.search(documents[0].1)?.len(), 1);
    index.compact()?;
    // The engine may delete files with a delay.
    let deadline = Instant::now() + Duration::from_secs(30);
    while bytes() > before / 4 {
        assert!(Instant::now() < deadline, "{} of {before} bytes are left", bytes());
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

#[test]
fn everything_removed_leaves_an_empty_index() -> Result<()> {
    let fingerprints = random::<u64>(&mut Rng::new(5), 1500);
    let (directory, index, model) = folded(&fingerprints);
    index.insert_batch(&[(b"single", 77)], Durability::Buffered)?;
    let mut keys: Vec<_> = model.into_keys().collect();
    keys.push(b"single".to_vec());
    assert_eq!(index.remove_batch(&keys, Durability::Synced)?, 1501);
    assert_holds(&index, &Model::new(), "emptied");
    index.merge(&())?;
    let stats = index.stats(&())?;
    assert_eq!((stats.runs, stats.delta_entries), (0, 0));
    drop(index);
    let index = Index::<u64>::open(directory.path())?;
    assert_holds(&index, &Model::new(), "emptied and reopened");
    index.insert(b"again", 5)?;
    assert_eq!(index.search(5)?.len(), 1);
    Ok(())
}

#[test]
fn a_document_removed_and_inserted_repeatedly_is_found() -> Result<()> {
    let (_directory, index, mut model) = folded(&random::<u64>(&mut Rng::new(6), 300));
    let key = [1_u8];
    for round in 0..6_u64 {
        index.insert(&key, 40 + round % 2)?;
        if round % 3 == 1 {
            index.merge(&())?;
        }
        assert_eq!(index.search(Query::new(40).distance(1))?.len(), 1, "round {round}");
        assert!(index.remove(&key)?);
        assert_gone(&index, 40 + round % 2, &model, "in turn");
    }
    model.insert(key.to_vec(), 40);
    index.insert(&key, 40)?;
    assert_holds(&index, &model, "at the end");
    Ok(())
}

#[test]
fn reopen_keeps_removed_documents_removed() -> Result<()> {
    let (directory, index, mut model) = folded(&random::<u64>(&mut Rng::new(7), 400));
    let gone: Vec<_> = model.keys().step_by(3).cloned().collect();
    index.remove_batch(&gone, Durability::Buffered)?;
    model.retain(|key, _| !gone.contains(key));
    drop(index);
    let index = Index::<u64>::open(directory.path())?;
    assert_holds(&index, &model, "reopened");
    index.merge(&())?;
    index.compact()?;
    assert_holds(&index, &model, "folded and compacted");
    Ok(())
}
