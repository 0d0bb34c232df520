//! Joins of an index return the same results with much, little and no memory.

use hamdex::verify::Nearness;
use hamdex::{Durability, Fingerprint, Index, Result, join};

use crate::support::{self, KeyPair, Model, Rng, keyed, mixed, options, scan_clusters, scan_pairs};

fn index_of<F: Fingerprint>(documents: &[(Vec<u8>, F)]) -> Result<(tempfile::TempDir, Index<F>)> {
    let directory = tempfile::tempdir().unwrap();
    let index = Index::create(directory.path().join("index"), &options::<F>("4"))?;
    for part in documents.chunks(10_000) {
        index.insert_batch(part, Durability::Buffered)?;
    }
    Ok((directory, index))
}

fn pairs_within<F: Fingerprint>(index: &Index<F>, near: Nearness) -> Result<Vec<KeyPair>> {
    let mut pairs = Vec::new();
    let count = index.pairs(near, &(), &mut |pair| {
        pairs.push((pair.a.to_vec(), pair.b.to_vec(), pair.distance));
        Ok(())
    })?;
    assert_eq!(count, pairs.len() as u64);
    pairs.sort_unstable();
    Ok(pairs)
}

fn groups_within<F: Fingerprint>(index: &Index<F>, near: Nearness) -> Result<Vec<Vec<Vec<u8>>>> {
    Ok(index.clusters(near, &())?.into_iter().map(|cluster| cluster.keys).collect())
}

#[test]
fn joins_without_memory_agree_with_the_comparison_of_all() -> Result<()> {
    let mut rng = Rng::new(41);
    for count in [0, 1, 2, 400] {
        let fingerprints: Vec<u64> = mixed(&mut rng, count);
        let documents = keyed(&mut rng, &fingerprints);
        let model: Model<u64> = documents.iter().cloned().collect();
        let (_directory, index) = index_of(&documents)?;
        for distance in [0, 3, 16] {
            for memory in [0, 20_000, usize::MAX] {
                let near = Nearness::new(distance).memory(memory);
                let pairs = pairs_within(&index, near)?;
                assert!(pairs == scan_pairs(&model, distance), "{count} {distance} {memory}");
                let groups = groups_within(&index, near)?;
                assert!(groups == scan_clusters(&model, distance), "{count} {distance} {memory}");
            }
        }
    }
    Ok(())
}

#[test]
fn joins_of_many_documents_do_not_depend_on_memory() -> Result<()> {
    let mut rng = Rng::new(43);
    let mut fingerprints: Vec<u64> = support::random(&mut rng, 60_000);
    // Half of the set is in one range of the postings.
    fingerprints.iter_mut().step_by(2).for_each(|fingerprint| *fingerprint >>= 12);
    for _ in 0..20_000 {
        let near = *rng.pick(&fingerprints);
        let flips = rng.up_to(4);
        fingerprints.push(rng.flipped(near, flips));
    }
    let documents = keyed(&mut rng, &fingerprints);
    let (_directory, index) = index_of(&documents)?;
    let near = Nearness::new(3);
    let pairs = pairs_within(&index, near)?;
    assert!(pairs.len() > 15_000);
    assert!(pairs_within(&index, near.memory(0))? == pairs);
    assert!(groups_within(&index, near.memory(0))? == groups_within(&index, near)?);
    // The join in memory finds the pairs of distinct fingerprints.
    let distinct = join::self_join(&fingerprints, 3, &(), &|_| Ok(()))?;
    assert!(pairs.len() as u64 >= distinct.pairs);
    Ok(())
}

#[test]
fn two_indexes_are_joined_with_much_memory_and_with_none() -> Result<()> {
    let mut rng = Rng::new(47);
    for (ours, theirs) in [(0, 0), (0, 50), (50, 0), (1, 1), (300, 500)] {
        let fingerprints: Vec<u64> = mixed(&mut rng, ours + theirs);
        let (a, b) = fingerprints.split_at(ours);
        let (a, b) = (keyed(&mut rng, a), keyed(&mut rng, b));
        let ((_a, left), (_b, right)) = (index_of(&a)?, index_of(&b)?);
        let (a, b): (Model<u64>, Model<u64>) = (a.into_iter().collect(), b.into_iter().collect());
        for distance in [0, 3, 16] {
            let mut wanted: Vec<KeyPair> = Vec::new();
            for (key, fingerprint) in &a {
                let near = b.iter().map(|(other, near)| (other, fingerprint.distance(*near)));
                let near = near.filter(|(_, apart)| *apart <= distance);
                wanted.extend(near.map(|(other, apart)| (key.clone(), other.clone(), apart)));
            }
            wanted.sort_unstable();
            for memory in [0, 20_000, usize::MAX] {
                let mut found: Vec<KeyPair> = Vec::new();
                let near = Nearness::new(distance).memory(memory);
                let count = left.pairs_with(&right, near, &(), &mut |pair| {
                    found.push((pair.a.to_vec(), pair.b.to_vec(), pair.distance));
                    Ok(())
                })?;
                assert_eq!(count, found.len() as u64);
                found.sort_unstable();
                assert!(found == wanted, "{ours} with {theirs}, k = {distance}, {memory} bytes");
            }
        }
    }
    Ok(())
}
