//! Mistakes that near-duplicate tools commonly make, one test each.

use std::collections::HashSet;
use std::sync::Mutex;

use hamdex::plan::Plan;
use hamdex::text::PipelineOptions;
use hamdex::{
    Durability, Error, Fault, Fingerprint, Index, IndexOptions, Pipeline, Progress, Query, Result,
    SearchPath,
};

use crate::support::{Model, Rng, clusters_of, keyed, options, pairs_of, random, scan};

fn index_of<F: Fingerprint>(
    plan: &str,
    documents: &[(Vec<u8>, F)],
) -> (tempfile::TempDir, Index<F>) {
    let directory = tempfile::tempdir().unwrap();
    let index = Index::create(directory.path(), &options::<F>(plan)).unwrap();
    index.insert_batch(documents, Durability::Buffered).unwrap();
    (directory, index)
}

fn keys(matches: &[hamdex::Match<u64>]) -> Vec<&[u8]> {
    matches.iter().map(|found| found.key.as_slice()).collect()
}

#[test]
fn nine_blocks_miss_no_three_flips() {
    let plan = Plan::parse("9x6", 64, 3, None).unwrap();
    let leads: HashSet<u128> = plan.tables().iter().map(hamdex::plan::Table::lead).collect();
    assert_eq!(leads.len(), 84);
    for a in 0..64 {
        for b in a..64 {
            for c in b..64 {
                let flips = 1_u128 << a | 1 << b | 1 << c;
                assert!(leads.iter().any(|lead| lead & flips == 0), "missed {flips:#018x}");
            }
        }
    }
}

#[test]
fn permutations_lose_no_bit() {
    let rng = &mut Rng::new(1);
    for name in ["4", "10", "16", "20", "9x1", "3x1/4x1"] {
        for table in Plan::parse(name, 64, 3, None).unwrap().tables() {
            let permuted: HashSet<u64> =
                (0..64).map(|bit| table.permutation().apply(1_u64 << bit)).collect();
            assert_eq!(permuted.len(), 64, "plan {name}");
            let (a, b) = (rng.fingerprint::<u64>(), rng.fingerprint::<u64>());
            let (c, d) = (table.permutation().apply(a), table.permutation().apply(b));
            assert_eq!(c.distance(d), a.distance(b), "plan {name}");
            assert_eq!(table.permutation().invert(c), a, "plan {name}");
        }
    }
}

#[test]
fn a_distance_wider_than_the_plan_is_exact_and_explained() -> Result<()> {
    let rng = &mut Rng::new(2);
    let query: u64 = rng.fingerprint();
    let near: Vec<u64> = (0..=16).map(|flips| rng.flipped(query, flips)).collect();
    let documents = keyed(rng, &near);
    let model: Model<u64> = documents.iter().cloned().collect();
    let (_directory, index) = index_of("4", &documents);
    assert_eq!(index.plan().complete_to(), 3);
    for distance in 4..=16 {
        let wanted = scan(&model, query, distance);
        assert_eq!(wanted.len(), distance as usize + 1);
        for path in [SearchPath::Tables, SearchPath::Scan] {
            let explained = index.explain(Query::new(query).distance(distance).path(path))?;
            assert_eq!(explained.matches, wanted, "{path:?} at {distance}");
            assert_eq!(explained.path, path);
            assert_eq!(explained.distance, distance);
        }
        let explained = index.explain(Query::new(query).distance(distance))?;
        assert_ne!(explained.path, SearchPath::Auto, "the path used is reported");
        assert_eq!(explained.matches, wanted);
    }
    Ok(())
}

#[test]
fn a_match_at_the_distance_is_found_and_one_above_is_not() -> Result<()> {
    let documents = [(b"at".to_vec(), 0b1111_u64), (b"beyond".to_vec(), 0b1_1111)];
    let (_directory, index) = index_of("4", &documents);
    for path in [SearchPath::Tables, SearchPath::Scan] {
        let found = index.search(Query::new(0).distance(4).path(path))?;
        assert_eq!(keys(&found), [b"at"], "{path:?}");
        let found = index.search(Query::new(0).distance(3).path(path))?;
        assert!(found.is_empty(), "{path:?}");
    }
    Ok(())
}

#[test]
fn identical_fingerprints_are_all_found() -> Result<()> {
    let documents: Vec<_> = (0..100_u8).map(|key| (vec![key], 7_u64)).collect();
    let (_directory, index) = index_of("4", &documents);
    for distance in [0, 3] {
        let found = index.search(Query::new(7).distance(distance))?;
        assert_eq!(found.len(), 100);
        assert!(found.iter().all(|found| found.distance == 0));
    }
    Ok(())
}

#[test]
fn a_match_that_every_table_finds_is_returned_once() -> Result<()> {
    let documents = [(b"same".to_vec(), 5_u64), (b"near".to_vec(), 4)];
    for plan in ["4", "10", "16", "20", "8x1"] {
        let (_directory, index) = index_of(plan, &documents);
        let query = Query::new(5).distance(3).path(SearchPath::Tables);
        assert_eq!(keys(&index.search(query.clone())?), [&b"same"[..], b"near"], "plan {plan}");
        index.merge(&())?;
        assert_eq!(keys(&index.search(query)?), [&b"same"[..], b"near"], "plan {plan}, folded");
    }
    Ok(())
}

#[test]
fn a_fingerprint_in_a_run_and_a_delta_entry_is_returned_once() -> Result<()> {
    let (_directory, index) = index_of("4", &[(b"a".to_vec(), 5_u64)]);
    index.merge(&())?;
    index.insert(b"b", 5)?;
    let stats = index.stats(&())?;
    assert_eq!((stats.runs, stats.delta_entries, stats.fingerprints), (1, 1, 1));
    for path in [SearchPath::Tables, SearchPath::Scan] {
        let found = index.search(Query::new(5).path(path))?;
        assert_eq!(keys(&found), [b"a", b"b"], "{path:?}");
    }
    assert_eq!(pairs_of(&index, 3)?, [(b"a".to_vec(), b"b".to_vec(), 0)]);
    assert_eq!(index.check(&())?.problem_count, 0);
    index.merge(&())?;
    let stats = index.stats(&())?;
    assert_eq!((stats.runs, stats.delta_entries, stats.fingerprints), (1, 0, 1));
    Ok(())
}

#[test]
fn every_call_on_an_empty_index_returns_nothing() -> Result<()> {
    let (_directory, index) = index_of::<u64>("4", &[]);
    for path in [SearchPath::Auto, SearchPath::Tables, SearchPath::Scan] {
        assert!(index.search(Query::new(0).distance(16).path(path))?.is_empty());
    }
    assert!(index.search_batch(&[])?.is_empty());
    assert_eq!(index.search_batch(&[Query::new(1), Query::new(2)])?, [vec![], vec![]]);
    assert!(index.explain(0)?.matches.is_empty());
    assert_eq!(pairs_of(&index, 3)?, []);
    assert!(clusters_of(&index, 3)?.is_empty());
    assert!(index.documents()?.next().is_none());
    assert_eq!((index.len()?, index.is_empty()?, index.get(b"k")?), (0, true, None));
    assert_eq!(index.merge(&())?.merged, 0);
    assert!(!index.merge_step()?);
    assert_eq!(index.check(&())?.problem_count, 0);
    assert_eq!(index.remove_batch::<&[u8]>(&[], Durability::Synced)?, 0);
    assert!(!index.remove(b"k")?);
    index.compact()?;
    index.flush()
}

#[test]
fn one_stored_fingerprint_is_found_and_makes_no_pair() -> Result<()> {
    let (_directory, index) = index_of("4", &[(b"only".to_vec(), u64::MAX)]);
    assert_eq!(keys(&index.search(u64::MAX)?), [b"only"]);
    assert_eq!(keys(&index.search(u64::MAX << 3)?), [b"only"]);
    assert!(index.search(u64::MAX << 4)?.is_empty());
    assert_eq!(pairs_of(&index, 16)?, []);
    assert!(clusters_of(&index, 16)?.is_empty());
    Ok(())
}

#[test]
fn quadratic_groups_are_reported_whole() -> Result<()> {
    let equal = (0..800_u16).map(|key| (key.to_be_bytes().to_vec(), 0_u64));
    let near = (800..1200_u16).map(|key| (key.to_be_bytes().to_vec(), 1 << (key % 64)));
    let documents: Vec<_> = equal.chain(near).collect();
    let (_directory, index) = index_of("4", &documents);
    let mut pairs = 0_u64;
    let count = index.pairs(2, &(), &mut |_| {
        pairs += 1;
        Ok(())
    })?;
    assert_eq!(pairs, 1200 * 1199 / 2);
    assert_eq!(count, pairs);
    assert_eq!(clusters_of(&index, 2)?[0].len(), 1200);
    Ok(())
}

#[test]
fn texts_without_features_have_no_fingerprint() -> Result<()> {
    for preset in ["auto", "page", "post", "code"] {
        let pipeline = Pipeline::new(&PipelineOptions::preset(preset)?)?;
        for text in ["", " \t\r\n", "\u{3000}", "\u{200b}"] {
            assert!(pipeline.fingerprint::<u64>(text).is_none(), "{preset}: {text:?}");
        }
        let text = "the quick brown fox jumps over the lazy dog";
        assert!(pipeline.fingerprint::<u64>(text).is_some(), "{preset}");
    }
    Ok(())
}

#[test]
fn ranges_read_nothing_past_their_prefix() -> Result<()> {
    let rng = &mut Rng::new(9);
    // Every block of a stored fingerprint is below 0x8000, every block of the query at least that.
    let stored: Vec<u64> =
        random::<u64>(rng, 2000).iter().map(|f| f & 0x7fff_7fff_7fff_7fff).collect();
    let documents = keyed(rng, &stored);
    let (_directory, index) = index_of("4", &documents);
    for query in [0x8000_8000_8000_8000, u64::MAX] {
        let query = Query::new(query).distance(3).path(SearchPath::Tables);
        let explained = index.explain(query)?;
        assert_eq!(explained.candidates, 0, "{:?}", explained.tables);
        assert_eq!(explained.tables.iter().map(|table| table.ranges).sum::<u64>(), 4);
    }
    let explained = index.explain(Query::new(stored[0]).path(SearchPath::Tables))?;
    assert!(explained.candidates < 40, "{} of 8000 entries were read", explained.candidates);
    assert_eq!(explained.matches[0].fingerprint, stored[0]);
    Ok(())
}

#[test]
fn the_highest_prefix_has_an_end_too() -> Result<()> {
    let documents = [(b"low".to_vec(), u64::MAX << 32), (b"top".to_vec(), u64::MAX)];
    let (_directory, index) = index_of("4", &documents);
    for folded in [false, true] {
        let query = Query::new(u64::MAX).distance(2).path(SearchPath::Tables);
        assert_eq!(keys(&index.search(query)?), [b"top"], "folded: {folded}");
        index.merge(&())?;
    }
    Ok(())
}

#[test]
fn clusters_chain_through_near_documents_and_pairs_do_not() -> Result<()> {
    let chain = [(b"a", 0_u64), (b"b", 0b11), (b"c", 0b1111), (b"d", 0b11_1111)];
    let documents = chain.map(|(key, fingerprint)| (key.to_vec(), fingerprint));
    let (_directory, index) = index_of("4", &documents);
    assert_eq!(pairs_of(&index, 2)?.len(), 3);
    let clusters = clusters_of(&index, 2)?;
    assert_eq!(clusters, [[b"a".to_vec(), b"b".to_vec(), b"c".to_vec(), b"d".to_vec()]]);
    assert!(clusters_of(&index, 1)?.is_empty());
    Ok(())
}

#[test]
fn errors_are_distinguished_by_kind() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index");
    let missing = Index::<u64>::open(&path).unwrap_err();
    assert!(matches!(missing, Error::NotFound { .. }) && missing.fault() == Fault::Caller);
    let _index = Index::<u64>::create(&path, &IndexOptions::new())?;
    let locked = Index::<u64>::open(&path).unwrap_err();
    assert!(matches!(locked, Error::Locked { .. }) && locked.fault() == Fault::Environment);
    Ok(())
}

/// Counts the units of each phase.
#[derive(Default)]
struct Phases(Mutex<Vec<(String, Option<u64>, u64)>>);

impl Progress for Phases {
    fn begin(&self, phase: &str, total: Option<u64>) {
        self.0.lock().unwrap().push((phase.to_owned(), total, 0));
    }

    fn advance(&self, units: u64) {
        if let Some((_, _, done)) = self.0.lock().unwrap().last_mut() {
            *done += units;
        }
    }
}

#[test]
fn progress_moves_to_the_end_while_pairs_are_matched() -> Result<()> {
    let rng = &mut Rng::new(10);
    let fingerprints = random::<u64>(rng, 20_000);
    let documents = keyed(rng, &fingerprints);
    let (_directory, index) = index_of("4", &documents);
    let phases = Phases::default();
    index.pairs(6, &phases, &mut |_| Ok(()))?;
    let phases = phases.0.into_inner().unwrap();
    let matching = phases.iter().find(|(phase, ..)| phase == "join").expect("a join is reported");
    assert_eq!(matching.1, Some(20_000));
    assert_eq!(matching.2, 20_000, "{phases:?}");
    Ok(())
}

#[test]
fn a_skewed_prefix_is_read_once_and_then_skipped() -> Result<()> {
    let rng = &mut Rng::new(97);
    let skewed = |f: u64| 0xabcd << 48 | f >> 16;
    let fingerprints: Vec<u64> = random(rng, 60_000).into_iter().map(skewed).collect();
    let documents = keyed(rng, &fingerprints);
    let (_directory, index) = index_of("4", &documents);
    index.merge(&())?;
    let model: Model<u64> = documents.into_iter().collect();
    for at in 0..20 {
        let near = *rng.pick(&fingerprints);
        let query = rng.flipped(near, 3);
        let explained = index.explain(Query::new(query).distance(3).path(SearchPath::Tables))?;
        assert_eq!(explained.matches, scan(&model, query, 3), "query {at}");
        // The first query near the prefix must read it.
        if at > 0 && query >> 48 == 0xabcd {
            assert!(
                explained.candidates < 6_000,
                "query {at}: {} candidates",
                explained.candidates
            );
        }
    }
    for distance in [0, 8, 16] {
        let query = *rng.pick(&fingerprints);
        let wanted = scan(&model, query, distance);
        for path in [SearchPath::Scan, SearchPath::Auto] {
            assert_eq!(index.search(Query::new(query).distance(distance).path(path))?, wanted);
        }
    }
    Ok(())
}
