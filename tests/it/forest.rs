//! A spanning forest of an index connects what all its pairs connect, and is a part of them.

use hamdex::verify::{DuplicateRule, Verification};
use hamdex::{
    Durability, Error, Fingerprint, Index, IndexOptions, NewDocument, Progress, Result, join,
};

use crate::support::{
    KeyPair, Model, Rng, clustered, index_of, keyed, mixed, one_prefix, pairs_of, random, repeated,
    scan_clusters, scan_pairs,
};

fn forest_of<F: Fingerprint>(index: &Index<F>, near: DuplicateRule) -> Result<Vec<KeyPair>> {
    let tmp = tempfile::tempdir().unwrap();
    let mut forest = Vec::new();
    let count = index.spanning_forest(near, tmp.path(), &(), &mut |pair| {
        forest.push((pair.a.to_vec(), pair.b.to_vec(), pair.distance));
        Ok(())
    })?;
    assert_eq!(count, forest.len() as u64);
    assert_eq!(tmp.path().read_dir().unwrap().count(), 0, "files are left behind");
    forest.sort_unstable();
    Ok(forest)
}

/// Returns the groups that pairs connect, in the order of `Index::clusters`.
fn groups<F: Fingerprint>(model: &Model<F>, pairs: &[KeyPair]) -> Vec<Vec<Vec<u8>>> {
    let keys: Vec<&Vec<u8>> = model.keys().collect();
    let mut sets = join::UnionFind::new(u32::try_from(keys.len()).unwrap());
    let number = |key| u32::try_from(keys.binary_search(&key).unwrap()).unwrap();
    for (a, b, _) in pairs {
        assert!(sets.union(number(a), number(b)), "another pair connects {a:?} and {b:?}");
    }
    let mut groups = vec![Vec::new(); keys.len()];
    for (key, item) in keys.into_iter().zip(0..) {
        groups[sets.find(item).unwrap() as usize].push(key.clone());
    }
    groups.retain(|group| group.len() > 1);
    groups.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    groups
}

fn assert_spans<F: Fingerprint>(fingerprints: &[F], distances: &[u32], seed: u64) -> Result<()> {
    let documents = keyed(&mut Rng::new(seed), fingerprints);
    let model: Model<F> = documents.iter().cloned().collect();
    let (_directory, index) = index_of(&documents)?;
    for &distance in distances {
        let pairs = scan_pairs(&model, distance);
        for memory in [0, usize::MAX] {
            let near = DuplicateRule::new(distance).memory(memory);
            let forest = forest_of(&index, near)?;
            let context = format!("seed {seed}: {} {distance} {memory}", model.len());
            let all = |pair| pairs.binary_search(pair).is_ok();
            assert!(forest.iter().all(all), "{context}: not a pair");
            assert!(groups(&model, &forest) == scan_clusters(&model, distance), "{context}");
        }
    }
    Ok(())
}

#[test]
fn a_forest_connects_what_all_pairs_connect() -> Result<()> {
    fn of_width<F: Fingerprint>(seed: u64) -> Result<()> {
        let mut rng = Rng::new(seed);
        for count in [0, 1, 2, 300] {
            assert_spans::<F>(&mixed(&mut rng, count), &[0, 3, F::MAX_DISTANCE], seed)?;
        }
        for shape in [random::<F>, repeated, one_prefix] {
            assert_spans(&shape(&mut rng, 300), &[0, 2, F::MAX_DISTANCE], seed)?;
        }
        assert_spans::<F>(&clustered(&mut rng, 300, 3), &[3], seed)
    }
    of_width::<u32>(61)?;
    of_width::<u64>(62)?;
    of_width::<u128>(63)
}

#[test]
fn a_forest_of_a_crowd_is_small_although_its_pairs_exceed_the_memory() -> Result<()> {
    // Some 400,000 pairs, about 50 times what a block of the forest holds.
    let mut rng = Rng::new(64);
    let centre: u64 = rng.fingerprint();
    let fingerprints: Vec<u64> = (0..900).map(|_| rng.flipped(centre, 3)).collect();
    let documents = keyed(&mut rng, &fingerprints);
    let model: Model<u64> = documents.iter().cloned().collect();
    let (_directory, index) = index_of(&documents)?;
    let forest = forest_of(&index, DuplicateRule::new(6).memory(0))?;
    assert_eq!(forest.len(), model.len() - 1);
    assert_eq!(groups(&model, &forest), scan_clusters(&model, 6));
    Ok(())
}

#[test]
fn a_verified_forest_has_verified_pairs_only() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let keeping = IndexOptions::new().keep_features(true).memory(16 << 20);
    let index = Index::<u64>::create(directory.path(), &keeping)?;
    let mut rng = Rng::new(65);
    let documents: Vec<(Vec<u8>, u64, Vec<u8>)> = (0..300_u32)
        .map(|number| {
            let features: Vec<u64> = (1..=12).filter(|_| rng.below(4) > 0).collect();
            let set = hamdex::verify::FeatureSet::from_hashes(&features).encode();
            (number.to_be_bytes().to_vec(), rng.flipped(7, 3), set)
        })
        .collect();
    let rows: Vec<NewDocument<'_, u64>> =
        documents.iter().map(|(key, fp, set)| NewDocument::new(key, *fp).features(set)).collect();
    index.insert_batch(&rows, Durability::Buffered)?;
    let near = DuplicateRule::new(3).verify(Verification::Jaccard(0.8));
    let forest = forest_of(&index, near)?;
    let pairs = pairs_of(&index, near)?;
    assert!(forest.iter().all(|pair| pairs.binary_search(pair).is_ok()));
    let clusters = index.clusters(near, &())?;
    let wanted: usize = clusters.iter().map(|cluster| cluster.keys.len() - 1).sum();
    assert!(0 < wanted && wanted < pairs.len(), "{wanted} of {}", pairs.len());
    assert_eq!(forest.len(), wanted);
    let model: Model<u64> = documents.iter().map(|(key, fp, _)| (key.clone(), *fp)).collect();
    let keys = clusters.into_iter().map(|cluster| cluster.keys);
    assert!(groups(&model, &forest).into_iter().eq(keys));
    Ok(())
}

#[test]
fn a_forest_stops_at_an_error_and_leaves_no_file() -> Result<()> {
    struct Stopped;
    impl Progress for Stopped {
        fn cancelled(&self) -> bool {
            true
        }
    }

    let (_directory, index) = index_of(&keyed(&mut Rng::new(66), &[1_u64, 1, 3]))?;
    let tmp = tempfile::tempdir().unwrap();
    let stop = || Error::InvalidOption { name: "visit", reason: String::new() };
    let visited = index.spanning_forest(3, tmp.path(), &(), &mut |_| Err(stop()));
    assert!(matches!(visited, Err(Error::InvalidOption { name: "visit", .. })));
    let cancelled = index.spanning_forest(3, tmp.path(), &Stopped, &mut |_| Ok(()));
    assert!(matches!(cancelled, Err(Error::Cancelled)));
    assert_eq!(tmp.path().read_dir().unwrap().count(), 0);
    let nowhere = index.spanning_forest(3, &tmp.path().join("none"), &(), &mut |_| Ok(()));
    assert!(matches!(nowhere, Err(Error::Io { .. })));
    let far = index.spanning_forest(17, tmp.path(), &(), &mut |_| Ok(()));
    assert!(matches!(far, Err(Error::InvalidDistance { .. })));
    Ok(())
}
