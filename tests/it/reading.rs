//! Searching and reading: order, limits, batches, keys, snapshots.
//!
//! And resident searching: memory returns what the store returns, after every write.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use hamdex::build::{BuildOptions, Builder};
use hamdex::resident::NearFingerprint;
use hamdex::{Durability, Error, Fingerprint, Index, IndexOptions, Query, Result, SearchPath};

use crate::support::{Model, Rng, keyed, mixed, options, random, scan};

fn index_of<F: Fingerprint>(documents: &[(Vec<u8>, F)]) -> (tempfile::TempDir, Index<F>) {
    let directory = tempfile::tempdir().unwrap();
    let index = Index::create(directory.path(), &options::<F>("4")).unwrap();
    index.insert_batch(documents, Durability::Buffered).unwrap();
    (directory, index)
}

#[test]
fn limits_keep_the_nearest_and_break_ties_by_key() -> Result<()> {
    let mut documents = Vec::new();
    for (at, fingerprint) in [1_u64, 2, 4, 0, 3, 1, 8].into_iter().enumerate() {
        for letter in [b'z', b'a', b'm'] {
            documents.push((vec![letter, u8::try_from(at).unwrap()], fingerprint));
        }
    }
    let model: Model<u64> = documents.iter().cloned().collect();
    let (_directory, index) = index_of(&documents);
    for limit in 0..=documents.len() + 1 {
        let mut wanted = scan(&model, 0, 3);
        wanted.truncate(limit);
        for path in [SearchPath::Tables, SearchPath::Scan] {
            let query = Query::new(0).limit(limit).path(path);
            assert_eq!(index.search(query)?, wanted, "limit {limit}, {path:?}");
        }
    }
    Ok(())
}

#[test]
fn matches_are_sorted_by_distance_then_key() -> Result<()> {
    let documents = [(b"c", 1_u64), (b"a", 3), (b"d", 0), (b"b", 2)];
    let (_directory, index) = index_of(&documents.map(|(key, f)| (key.to_vec(), f)));
    let found = index.search(0)?;
    let order: Vec<_> = found.iter().map(|m| (m.distance, m.key.as_slice())).collect();
    assert_eq!(order, [(0, &b"d"[..]), (1, b"b"), (1, b"c"), (2, b"a")]);
    Ok(())
}

#[test]
fn batches_return_results_in_the_order_of_their_queries() -> Result<()> {
    let rng = &mut Rng::new(11);
    let fingerprints = mixed::<u64>(rng, 600);
    let documents = keyed(rng, &fingerprints);
    let (_directory, index) = index_of(&documents);
    let queries: Vec<_> = (0..700)
        .map(|at| Query::new(*rng.pick(&fingerprints)).distance(at % 17).limit(at as usize % 5))
        .collect();
    let answers = index.search_batch(&queries)?;
    for (query, answer) in queries.iter().zip(answers) {
        assert_eq!(answer, index.search(query.clone())?, "{query:?}");
    }
    Ok(())
}

#[test]
fn distances_above_a_quarter_of_the_width_are_refused_everywhere() -> Result<()> {
    fn refused<T>(result: Result<T>) -> bool {
        result.is_err_and(|error| {
            matches!(error, Error::InvalidDistance { distance: 17, bits: 64, max: 16 })
        })
    }
    let (_directory, index) = index_of(&[(b"a".to_vec(), 1_u64)]);
    let query = Query::new(0).distance(17);
    assert!(refused(index.search(query.clone())));
    assert!(refused(index.search_batch(&[Query::new(0), query.clone()])));
    assert!(refused(index.explain(query.clone()).map(|explained| explained.matches)));
    assert!(refused(index.insert_if_new(b"b", 2, 17, Durability::Buffered)));
    assert!(refused(index.insert_batch_if_new(&[(b"b", 2)], 17, Durability::Buffered)));
    assert!(refused(index.pairs(17, &(), &mut |_| Ok(()))));
    assert!(refused(index.clusters(17, &()).map(|clusters| clusters.len())));
    let directory = tempfile::tempdir().unwrap();
    assert!(refused(Index::<u64>::create(directory.path(), &options::<u64>("4").distance(17))));
    assert_eq!(index.len()?, 1);
    let error = index.search(query).unwrap_err();
    assert_eq!(error.to_string(), "distance 17 exceeds 16, the maximum for 64-bit fingerprints");
    Ok(())
}

#[test]
fn keys_of_no_bytes_or_too_many_are_refused_and_nothing_changes() -> Result<()> {
    let (_directory, index) = index_of(&[(b"a".to_vec(), 1_u64)]);
    let long = vec![b'x'; 1025];
    for bad in [&b""[..], &long] {
        let refused = |error: Error| matches!(error, Error::InvalidKey { len, max: 1024 } if len == bad.len());
        assert!(refused(index.insert(bad, 5).unwrap_err()));
        let batch = [(&b"good"[..], 5), (bad, 6)];
        assert!(refused(index.insert_batch(&batch, Durability::Buffered).unwrap_err()));
        assert!(refused(index.insert_if_new(bad, 5, 0, Durability::Buffered).unwrap_err()));
        let refusal = index.insert_batch_if_new(&batch, 0, Durability::Buffered);
        assert!(refused(refusal.unwrap_err()));
        assert!(refused(index.remove(bad).unwrap_err()));
        assert!(refused(index.remove_batch(&[b"a", bad], Durability::Buffered).unwrap_err()));
        assert!(refused(index.get(bad).unwrap_err()));
        assert_eq!((index.len()?, index.get(b"a")?, index.get(b"good")?), (1, Some(1), None));
    }
    index.insert(&long[1..], 5)?;
    assert_eq!(index.get(&long[1..])?, Some(5));
    assert_eq!(index.search(5)?[0].key, long[1..]);
    Ok(())
}

#[test]
fn the_last_of_equal_keys_in_a_batch_is_stored() -> Result<()> {
    let (_directory, index) = index_of::<u64>(&[]);
    let batch = [(b"a", 1_u64), (b"b", 2), (b"a", u64::MAX)];
    let report = index.insert_batch(&batch, Durability::Buffered)?;
    assert_eq!((report.inserted, report.replaced), (2, 0));
    assert_eq!(index.get(b"a")?, Some(u64::MAX));
    assert_eq!(index.search(Query::new(1).distance(0))?, []);
    assert_eq!(index.check(&())?.problem_count, 0);
    Ok(())
}

#[test]
fn near_duplicates_within_one_batch_are_rejected() -> Result<()> {
    let (_directory, index) = index_of(&[(b"old".to_vec(), 0xff00_u64)]);
    let batch = [(b"a", 1_u64), (b"b", 3), (b"c", 0xff01), (b"d", u64::MAX)];
    let refused = index.insert_batch_if_new(&batch, 1, Durability::Buffered)?;
    let by: Vec<_> = refused.iter().map(|m| m.as_ref().map(|m| m.key.as_slice())).collect();
    assert_eq!(by, [None, Some(&b"a"[..]), Some(b"old"), None]);
    assert_eq!(index.len()?, 3);
    Ok(())
}

#[test]
fn a_document_is_not_a_near_duplicate_of_itself() -> Result<()> {
    let (_directory, index) = index_of(&[(b"a".to_vec(), 1_u64)]);
    assert_eq!(index.insert_if_new(b"a", 3, 2, Durability::Buffered)?, None);
    assert_eq!(index.get(b"a")?, Some(3));
    index.insert(b"b", 0xf0)?;
    let refused = index.insert_if_new(b"a", 0xf1, 2, Durability::Buffered)?.unwrap();
    assert_eq!((refused.key.as_slice(), refused.distance), (&b"b"[..], 1));
    assert_eq!(index.get(b"a")?, Some(3), "a refused document keeps its old fingerprint");
    Ok(())
}

#[test]
fn readers_see_the_state_they_were_made_in() -> Result<()> {
    let (_directory, index) = index_of(&[(b"a".to_vec(), 1_u64)]);
    let before = index.reader()?;
    let twin = before.clone();
    index.insert(b"b", 1)?;
    index.remove(b"a")?;
    index.merge(&())?;
    index.compact()?;
    for reader in [&before, &twin] {
        assert_eq!(reader.search(1)?.len(), 1);
        assert_eq!(reader.search(1)?[0].key, b"a");
        assert_eq!((reader.get(b"a")?, reader.get(b"b")?, reader.len()), (Some(1), None, 1));
    }
    assert_eq!(index.search(1)?[0].key, b"b");
    drop(index);
    assert_eq!(before.search(1)?[0].key, b"a", "a reader outlives the handle");
    Ok(())
}

#[test]
fn documents_are_iterated_by_key_across_chunks() -> Result<()> {
    let documents: Vec<_> =
        (0..5000_u32).map(|at| (at.reverse_bits().to_be_bytes().to_vec(), u64::from(at))).collect();
    let (_directory, index) = index_of(&documents);
    let walked = index.documents()?.collect::<Result<Vec<_>>>()?;
    let mut sorted = documents;
    sorted.sort();
    assert_eq!(walked, sorted);
    Ok(())
}

#[test]
fn a_cold_query_reads_about_one_block_of_every_table() -> Result<()> {
    let rng = &mut Rng::new(53);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index");
    let mut builder = Builder::<u64>::create(&path, &options::<u64>("4"), &BuildOptions::new())?;
    for number in 0..300_000_u64 {
        builder.push(&number.to_be_bytes(), rng.fingerprint(), number)?;
    }
    builder.finish(&(), &mut |_, _| ())?;
    let index = Index::<u64>::open_with(&path, &IndexOptions::new().read_only(true))?;
    // The first query opens the files and reads their metadata.
    assert!(index.explain(Query::new(rng.fingerprint()).distance(3))?.blocks >= 4);
    let queries = 20;
    let mut blocks = 0;
    for _ in 0..queries {
        let explained = index.explain(Query::new(rng.fingerprint()).distance(3))?;
        assert_eq!(explained.tables.iter().map(|table| table.ranges).sum::<u64>(), 4);
        assert!(explained.tables.iter().all(|table| table.blocks <= 2), "{explained:?}");
        blocks += explained.blocks;
    }
    assert!(blocks > queries, "{blocks} blocks in {queries} queries were counted");
    assert!(blocks <= 5 * queries, "{blocks} blocks in {queries} queries");
    Ok(())
}

const BUDGET: usize = 256 << 20;

fn near<F: Fingerprint>(model: &Model<F>, query: F, distance: u32) -> Vec<NearFingerprint<F>> {
    let distinct: BTreeSet<F> = model.values().copied().collect();
    let near =
        |fingerprint: F| NearFingerprint { distance: query.distance(fingerprint), fingerprint };
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
    let index = Index::open_with(directory.path(), &IndexOptions::new().resident(400_000))?;
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
