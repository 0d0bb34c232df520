//! Every plan, width, distance and state of an index returns what the linear scan returns.
//!
//! And joins of an index return the same results with much, little and no memory.

use hamdex::build::{BuildOptions, Builder};
use hamdex::plan::Costs;
use hamdex::verify::DuplicateRule;
use hamdex::{Durability, Fingerprint, Index, IndexOptions, Query, Result, SearchPath, join};

use crate::support::{
    self, KeyPair, Model, Rng, assert_holds, clusters_of, index_of, keyed, mixed, options,
    pairs_of, scan, scan_clusters, scan_pairs,
};

/// Probes above which a search by tables takes too long and tests nothing more.
const MOST_PROBES: u64 = 1500;

/// Compares searches at every distance and by every path with the scan.
fn assert_exact<F: Fingerprint>(
    index: &Index<F>,
    model: &Model<F>,
    queries: &[F],
    context: &str,
) -> Result<()> {
    let reader = index.reader()?;
    assert_eq!(reader.len(), model.len() as u64, "{context}");
    let mut batch = Vec::new();
    let mut expected = Vec::new();
    for distance in 0..=F::MAX_DISTANCE {
        let schedule = index.plan().schedule(distance, reader.len(), &Costs::default());
        let by_tables = schedule.probes() <= MOST_PROBES;
        let paths = [SearchPath::Scan, SearchPath::Auto]
            .into_iter()
            .chain(by_tables.then_some(SearchPath::Tables));
        let paths: Vec<_> = paths.collect();
        for &query in queries {
            let wanted = scan(model, query, distance);
            for &path in &paths {
                let found = reader.search(Query::new(query).distance(distance).path(path))?;
                assert!(
                    found == wanted,
                    "{context}: {} at {distance} by {path:?}: found {}, expected {}",
                    query.hex(),
                    found.len(),
                    wanted.len()
                );
            }
            batch.push(Query::new(query).distance(distance));
            expected.push(wanted);
        }
    }
    assert!(index.search_batch(&batch)? == expected, "{context}: search_batch");
    Ok(())
}

/// Compares pairs and clusters with the comparison of all documents.
fn assert_joins<F: Fingerprint>(index: &Index<F>, model: &Model<F>, context: &str) -> Result<()> {
    for distance in [0, 1, 3, F::MAX_DISTANCE / 2, F::MAX_DISTANCE] {
        let pairs = pairs_of(index, distance)?;
        let wanted = scan_pairs(model, distance);
        assert!(pairs == wanted, "{context}: {} pairs, not {}", pairs.len(), wanted.len());
        let clusters = clusters_of(index, distance)?;
        assert_eq!(clusters, scan_clusters(model, distance), "{context}: clusters at {distance}");
    }
    Ok(())
}

/// Stored fingerprints, their neighbours, random ones, and both ends of the range.
fn queries<F: Fingerprint>(rng: &mut Rng, stored: &[F], count: usize) -> Vec<F> {
    let mut queries = vec![F::ZERO, F::ONES];
    for _ in 0..count {
        queries.push(rng.fingerprint());
        if !stored.is_empty() {
            let flips = rng.up_to(F::MAX_DISTANCE);
            let stored = *rng.pick(stored);
            queries.push(rng.flipped(stored, flips));
        }
    }
    queries
}

/// Builds, inserts, merges in part, replaces, removes, reopens, merges and rebuilds one index.
fn every_state<F: Fingerprint>(plan: &str) -> Result<()> {
    let seed = 0x5eed + u64::from(F::BITS);
    let rng = &mut Rng::new(seed);
    let context = |state: &str| format!("{state}, plan {plan}, {} bits, seed {seed}", F::BITS);
    let fingerprints = mixed::<F>(rng, 900);
    let asked = queries(rng, &fingerprints, 2);
    let documents = keyed(rng, &fingerprints);
    let (built, rest) = documents.split_at(350);
    let (inserted, merged) = rest.split_at(300);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let mut model = Model::new();

    build(path, &options::<F>(plan), built)?;
    model.extend(built.iter().cloned());
    let index = Index::<F>::open(path)?;
    assert_exact(&index, &model, &asked, &context("built"))?;
    assert_eq!(index.stats(&())?.delta_entries, 0, "{}", context("built"));

    index.insert_batch(inserted, Durability::Buffered)?;
    model.extend(inserted.iter().cloned());
    assert_exact(&index, &model, &asked, &context("runs and delta entries"))?;

    assert!(index.merge_step()?, "a step merges one table, and there are more");
    assert_exact(&index, &model, &asked, &context("half folded"))?;

    for (key, _) in documents.iter().take(650).step_by(5) {
        assert!(index.remove_batch(&[key], Durability::Buffered)? == 1);
        model.remove(key);
    }
    for (key, _) in documents.iter().take(650).step_by(7) {
        let fingerprint = *rng.pick(&fingerprints);
        index.insert_batch(&[(key, fingerprint)], Durability::Buffered)?;
        model.insert(key.clone(), fingerprint);
    }
    drop(index);
    let index = Index::<F>::open(path)?;
    assert_exact(&index, &model, &asked, &context("changed and reopened"))?;
    assert_holds(&index, &model, &context("changed and reopened"));

    while index.merge_step()? {}
    assert_exact(&index, &model, &asked, &context("folded"))?;
    assert_eq!(index.stats(&())?.delta_entries, 0, "{}", context("folded"));
    assert_joins(&index, &model, &context("folded"))?;
    drop(index);

    build(path, &IndexOptions::new(), merged)?;
    model.extend(merged.iter().cloned());
    let index = Index::<F>::open(path)?;
    assert_exact(&index, &model, &asked, &context("merged"))?;
    assert_holds(&index, &model, &context("merged"));
    Ok(())
}

fn build<F: Fingerprint>(
    path: &std::path::Path,
    options: &IndexOptions,
    documents: &[(Vec<u8>, F)],
) -> Result<()> {
    let mut builder = Builder::create(path, options, &BuildOptions::new().memory(16 << 20))?;
    for (origin, (key, fingerprint)) in (0..).zip(documents) {
        builder.push(key, *fingerprint, origin)?;
    }
    builder.finish(&(), &mut |key, _| panic!("{} is not repeated", key.escape_ascii()))?;
    Ok(())
}

#[test]
fn searches_of_ranges_that_are_read_at_once_agree_with_the_scan() -> Result<()> {
    let mut rng = Rng::new(53);
    let mut fingerprints: Vec<u32> = support::random(&mut rng, 120_000);
    // A third is in one range of the first table, which is longer than expected.
    fingerprints.iter_mut().step_by(3).for_each(|fingerprint| *fingerprint >>= 4);
    let documents = keyed(&mut rng, &fingerprints);
    let directory = tempfile::tempdir().unwrap();
    let options = options::<u32>("8x1").distance(7);
    build(directory.path(), &options, &documents)?;
    let index = Index::<u32>::open(directory.path())?;
    for _ in 0..40 {
        let flips = rng.up_to(8);
        let near = *rng.pick(&fingerprints);
        let query = Query::new(rng.flipped(near, flips)).distance(7);
        let scanned = index.search(query.clone().path(SearchPath::Scan))?;
        assert!(index.search(query.path(SearchPath::Tables))? == scanned);
        assert!(!scanned.is_empty() || flips > 7);
    }
    Ok(())
}

macro_rules! every_plan {
    ($($test:ident: $plan:literal),+ $(,)?) => {
        every_plan!(bits_32, u32, $($test: $plan),+);
        every_plan!(bits_64, u64, $($test: $plan),+);
        every_plan!(bits_128, u128, $($test: $plan),+);
    };
    ($width:ident, $fingerprint:ty, $($test:ident: $plan:literal),+) => {
        mod $width {
            $(
                #[test]
                fn $test() -> hamdex::Result<()> {
                    super::every_state::<$fingerprint>($plan)
                }
            )+
        }
    };
}

every_plan! {
    four_tables_are_exact: "4",
    ten_tables_are_exact: "10",
    sixteen_tables_are_exact: "16",
    twenty_tables_are_exact: "20",
    eight_short_blocks_are_exact: "8x1",
    seven_choices_of_all_but_one_block_are_exact: "7x6",
    uneven_levels_are_exact: "3x1/4x1",
    two_tables_with_written_flips_are_exact: "2x1r1",
    ten_tables_with_written_flips_are_exact: "5x2r1",
}

/// Sets that defeat splitting, hashing and bounds, in delta entries and in runs.
fn adversarial_sets<F: Fingerprint>() -> Result<()> {
    let rng = &mut Rng::new(77);
    let one = rng.fingerprint::<F>();
    let sets: [(&str, Vec<F>); 10] = [
        ("empty", Vec::new()),
        ("one entry", vec![one]),
        ("two entries", vec![one, rng.flipped(one, 2)]),
        ("two equal entries", vec![one, one]),
        ("all zeros", vec![F::ZERO; 120]),
        ("all ones", vec![F::ONES; 120]),
        ("both ends", [F::ZERO, F::ONES].repeat(60)),
        ("one prefix", support::one_prefix(rng, 200)),
        ("one low end", (0..200).map(F::truncate).collect()),
        ("all near all", support::clustered(rng, 12, 1).repeat(12)),
    ];
    for plan in ["4", "16", "8x1"] {
        let directory = tempfile::tempdir().unwrap();
        let index = Index::create(directory.path(), &options::<F>(plan))?;
        for (name, set) in &sets {
            let context = format!("{name}, plan {plan}, {} bits", F::BITS);
            let asked = queries(rng, set, 2);
            let model: Model<F> = keyed(rng, set).into_iter().collect();
            let documents: Vec<_> = model.clone().into_iter().collect();
            index.insert_batch(&documents, Durability::Buffered)?;
            assert_exact(&index, &model, &asked, &context)?;
            while index.merge_step()? {}
            assert_exact(&index, &model, &asked, &context)?;
            assert_joins(&index, &model, &context)?;
            assert_holds(&index, &model, &context);
            let keys: Vec<_> = model.into_keys().collect();
            index.remove_batch(&keys, Durability::Buffered)?;
            assert_holds(&index, &Model::new(), &context);
        }
    }
    Ok(())
}

#[test]
fn adversarial_sets_are_exact_at_32_bits() -> Result<()> {
    adversarial_sets::<u32>()
}

#[test]
fn adversarial_sets_are_exact_at_64_bits() -> Result<()> {
    adversarial_sets::<u64>()
}

#[test]
fn adversarial_sets_are_exact_at_128_bits() -> Result<()> {
    adversarial_sets::<u128>()
}

#[test]
fn an_index_of_thousands_is_exact_by_every_path() -> Result<()> {
    let rng = &mut Rng::new(4);
    let fingerprints = mixed::<u64>(rng, 12_000);
    let documents = keyed(rng, &fingerprints);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let (built, inserted) = documents.split_at(9000);
    build(path, &options::<u64>("4"), built)?;
    let index = Index::open(path)?;
    index.insert_batch(inserted, Durability::Buffered)?;
    let model: Model<u64> = documents.iter().cloned().collect();
    let asked = queries(rng, &fingerprints, 3);
    assert_exact(&index, &model, &asked, "runs and delta entries")?;
    index.merge(&())?;
    assert_exact(&index, &model, &asked, "folded")?;
    assert_holds(&index, &model, "folded");
    Ok(())
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
                let near = DuplicateRule::new(distance).memory(memory);
                let pairs = pairs_of(&index, near)?;
                assert!(pairs == scan_pairs(&model, distance), "{count} {distance} {memory}");
                let groups = clusters_of(&index, near)?;
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
    let near = DuplicateRule::new(3);
    let pairs = pairs_of(&index, near)?;
    assert!(pairs.len() > 15_000);
    assert!(pairs_of(&index, near.memory(0))? == pairs);
    assert!(clusters_of(&index, near.memory(0))? == clusters_of(&index, near)?);
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
                let near = DuplicateRule::new(distance).memory(memory);
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
