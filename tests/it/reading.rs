//! Searching and reading: order, limits, batches, keys, snapshots.

use hamdex::build::{BuildOptions, Builder};
use hamdex::{Durability, Error, Fingerprint, Index, OpenOptions, Query, Result, SearchPath};

use crate::support::{Model, Rng, keyed, mixed, options, scan};

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
    index.fold(&())?;
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
    let index = Index::<u64>::open_with(&path, &OpenOptions::new().read_only(true))?;
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
