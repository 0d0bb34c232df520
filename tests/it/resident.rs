//! Resident searching: memory returns what the store returns, after every write.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use hamdex::resident::Near;
use hamdex::{Durability, Error, Fingerprint, Index, OpenOptions, Query, Result, SearchPath};

use crate::support::{Model, Rng, keyed, mixed, options, random, scan};

const BUDGET: usize = 256 << 20;

fn near<F: Fingerprint>(model: &Model<F>, query: F, distance: u32) -> Vec<Near<F>> {
    let distinct: BTreeSet<F> = model.values().copied().collect();
    let near = |fingerprint: F| Near { distance: query.distance(fingerprint), fingerprint };
    let mut near: Vec<_> = distinct.into_iter().map(near).collect();
    near.retain(|near| near.distance <= distance);
    near.sort_unstable();
    near
}

fn answers_as_the_model<F: Fingerprint>(
    index: &Index<F>,
    model: &Model<F>,
    queries: &[F],
    at: &str,
) {
    assert!(index.reader().unwrap().is_resident(), "{at}");
    for distance in [0, 2, 3, 7, F::MAX_DISTANCE] {
        let near: Vec<_> = queries.iter().map(|&query| near(model, query, distance)).collect();
        assert_eq!(index.near_batch(queries, distance).unwrap(), near, "{at}, k = {distance}");
        let asked: Vec<_> = queries.iter().map(|&q| Query::new(q).distance(distance)).collect();
        let found = index.search_batch(&asked).unwrap();
        for ((&query, found), near) in queries.iter().zip(found).zip(near) {
            let scanned = scan(model, query, distance);
            assert_eq!(found, scanned, "{at}, k = {distance}");
            let asked = Query::new(query).distance(distance);
            assert_eq!(index.search(asked.clone()).unwrap(), scanned, "{at}, k = {distance}");
            // Above, the store's tables need more probes than there are documents.
            if distance <= 7 {
                let tables = index.search(asked.path(SearchPath::Tables)).unwrap();
                assert_eq!(tables, scanned, "{at}, k = {distance}");
            }
            assert_eq!(index.near(query, distance).unwrap(), near, "{at}, k = {distance}");
        }
    }
}

fn fresh(rng: &mut Rng, count: usize) -> Vec<(Vec<u8>, u64)> {
    let fingerprints = random(rng, count);
    keyed(rng, &fingerprints)
}

fn writes_show_at_once<F: Fingerprint>(plan: &str, first: usize) {
    const SEED: u64 = 17;
    let rng = &mut Rng::new(SEED);
    let directory = tempfile::tempdir().unwrap();
    let index = Index::<F>::create(directory.path(), &options::<F>(plan)).unwrap();
    let mut model = Model::new();
    for round in 0..6 {
        let size = if round == 0 { first } else { 900 };
        let fingerprints = mixed::<F>(rng, size);
        let documents = keyed(rng, &fingerprints);
        index.insert_batch(&documents, Durability::Buffered).unwrap();
        model.extend(documents);
        if round == 0 {
            assert!(index.load_resident(BUDGET).unwrap());
        }
        let keys: Vec<Vec<u8>> = model.keys().step_by(7).cloned().collect();
        index.remove_batch(&keys, Durability::Buffered).unwrap();
        for key in &keys {
            model.remove(key);
        }
        // Removed documents are queried, too.
        let mut queries: Vec<F> = fingerprints.iter().step_by(1 + size / 20).copied().collect();
        queries.extend([F::ZERO, F::ONES]);
        let at = format!("seed {SEED}, {plan}, {} bits, round {round}", F::BITS);
        answers_as_the_model(&index, &model, &queries, &at);
    }
}

#[test]
fn memory_follows_inserts_and_removals_at_every_width() {
    writes_show_at_once::<u32>("4", 2000);
    writes_show_at_once::<u64>("4", 2000);
    writes_show_at_once::<u64>("10", 1);
    writes_show_at_once::<u128>("4", 500);
}

#[test]
fn an_empty_index_is_resident_from_its_creation() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let index = Index::<u64>::create(directory.path(), &options::<u64>("4").resident(BUDGET))?;
    answers_as_the_model(&index, &Model::new(), &[0, u64::MAX], "empty");
    index.insert(b"one", 7)?;
    answers_as_the_model(&index, &Model::from([(b"one".to_vec(), 7)]), &[0, 7], "of one");
    Ok(())
}

#[test]
fn a_replaced_fingerprint_is_not_found_in_memory() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let index = Index::<u64>::create(directory.path(), &options::<u64>("4"))?;
    index.insert(b"page", 0)?;
    assert!(index.load_resident(BUDGET)?);
    index.insert(b"page", u64::MAX)?;
    answers_as_the_model(
        &index,
        &Model::from([(b"page".to_vec(), u64::MAX)]),
        &[0, u64::MAX],
        "replaced",
    );
    Ok(())
}

#[test]
fn readers_from_before_a_write_keep_their_state_in_memory() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let index = Index::<u64>::create(directory.path(), &options::<u64>("4"))?;
    index.insert_batch(&[(b"a", 1_u64), (b"b", 2)], Durability::Buffered)?;
    assert!(index.load_resident(BUDGET)?);
    let before = index.reader()?;
    index.remove(b"a")?;
    index.insert(b"c", 4)?;
    let between = index.reader()?;
    assert!(index.load_resident(BUDGET)?);
    let of = |reader: &hamdex::Reader<u64>| -> Result<Vec<u64>> {
        assert!(reader.is_resident());
        Ok(reader.near(0, 3)?.iter().map(|near| near.fingerprint).collect())
    };
    assert_eq!(of(&before)?, [1, 2]);
    assert_eq!(of(&between)?, [2, 4]);
    assert_eq!(of(&index.reader()?)?, [2, 4]);
    Ok(())
}

#[test]
fn tables_that_exceed_the_budget_are_searched_in_the_store() -> Result<()> {
    let rng = &mut Rng::new(3);
    let directory = tempfile::tempdir().unwrap();
    let documents = fresh(rng, 20_000);
    let index = Index::<u64>::create(directory.path(), &options::<u64>("4"))?;
    index.insert_batch(&documents, Durability::Buffered)?;
    assert!(!index.load_resident(100_000)?);
    assert_eq!(index.resident_bytes(), None);
    let query = Query::new(documents[0].1);
    assert!(!index.reader()?.is_resident());
    assert_eq!(index.search(query.clone())?.len(), 1);
    let forced = index.search(query.clone().path(SearchPath::Resident));
    assert!(matches!(forced, Err(Error::InvalidOption { name: "path", .. })), "{forced:?}");
    // With memory for only two tables, all distances still work.
    let model: Model<u64> = documents.iter().cloned().collect();
    drop(index);
    let index = Index::open_with(directory.path(), &OpenOptions::new().resident(400_000))?;
    assert!(index.resident_bytes().unwrap() <= 400_000);
    answers_as_the_model(&index, &model, &[documents[0].1, 0], "two tables");
    // Inserts exceed the budget: the memory is freed and no document is lost.
    let more = fresh(rng, 9000);
    index.insert_batch(&more, Durability::Buffered)?;
    assert_eq!(index.resident_bytes(), None);
    assert_eq!(index.search(more[0].1)?.len(), 1);
    Ok(())
}

#[test]
fn explain_reports_memory_and_returns_the_same_matches() -> Result<()> {
    let rng = &mut Rng::new(4);
    let directory = tempfile::tempdir().unwrap();
    let documents = fresh(rng, 20_000);
    let options = options::<u64>("4").resident(BUDGET);
    let index = Index::<u64>::create(directory.path(), &options)?;
    index.insert_batch(&documents, Durability::Buffered)?;
    assert!(index.load_resident(BUDGET)?);
    let explained = index.explain(documents[5].1)?;
    assert_eq!(explained.path, SearchPath::Resident);
    assert!(explained.predicted_resident.is_some());
    assert_eq!(explained.tables.iter().map(|table| table.ranges).sum::<u64>(), 4);
    assert!(explained.candidates > 0 && explained.candidates < 400, "{}", explained.candidates);
    let scanned = index.search(Query::new(documents[5].1).path(SearchPath::Scan))?;
    assert_eq!(explained.matches, scanned);
    Ok(())
}

#[test]
fn searches_beside_a_writer_see_whole_batches_from_memory() -> Result<()> {
    const BATCHES: u64 = 60;
    let directory = tempfile::tempdir().unwrap();
    let index = Index::<u64>::create(directory.path(), &options::<u64>("4").resident(BUDGET))?;
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for batch in 0..BATCHES {
                // Each batch inserts 40 documents one bit from zero, then removes 20 of them.
                let key = |at: u64| (batch * 40 + at).to_be_bytes();
                let documents: Vec<_> = (0..40).map(|at| (key(at), 1_u64 << (at % 64))).collect();
                index.insert_batch(&documents, Durability::Buffered).unwrap();
                let gone: Vec<_> = (0..20).map(key).collect();
                index.remove_batch(&gone, Durability::Buffered).unwrap();
            }
            done.store(true, Ordering::Release);
        });
        while !done.load(Ordering::Acquire) {
            let reader = index.reader().unwrap();
            let found = reader.search(Query::new(0).distance(1)).unwrap();
            let (found, held) = (found.len() as u64, reader.len());
            assert_eq!(found, held, "a batch was visible in part");
        }
        writer.join().unwrap();
    });
    assert_eq!(index.search(Query::new(0).distance(1))?.len() as u64, BATCHES * 20);
    Ok(())
}
