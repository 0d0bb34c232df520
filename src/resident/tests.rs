mod saved;

use proptest::prelude::{any, prop_assert_eq, proptest};

use super::*;

/// `SplitMix64`, so that every run tests the same sets.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn word<F: Fingerprint>(&mut self) -> F {
        F::truncate((u128::from(self.next()) << 64) | u128::from(self.next()))
    }

    fn flip<F: Fingerprint>(&mut self, of: F, most: u32) -> F {
        (0..self.next() % u64::from(most + 1)).fold(of, |of, _| {
            let bit = u32::try_from(self.next() % u64::from(F::BITS)).unwrap();
            of ^ (F::truncate(1) << bit)
        })
    }
}

fn expected<F: Fingerprint>(set: &[F], query: F, distance: u32) -> Vec<NearFingerprint<F>> {
    let near =
        |&fingerprint: &F| NearFingerprint { distance: query.distance(fingerprint), fingerprint };
    let mut all: Vec<_> = set.iter().map(near).filter(|near| near.distance <= distance).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Sets of one size: random with near copies, few distinct, and with a constant lead.
fn sets<F: Fingerprint>(len: usize, random: &mut Random) -> Vec<Vec<F>> {
    let mut copies: Vec<F> = Vec::new();
    for _ in 0..len {
        let earlier = usize::try_from(random.next()).unwrap() % copies.len().max(1);
        let next = match copies.get(earlier) {
            Some(&of) if random.next().is_multiple_of(3) => random.flip(of, F::MAX_DISTANCE),
            _ => random.word(),
        };
        copies.push(next);
    }
    let few = (0..len).map(|_| random.flip(F::ONES, 2)).collect();
    let constant_lead = copies.iter().map(|&f| f & !(F::high_mask(F::BITS / 2))).collect();
    vec![copies, few, constant_lead]
}

/// Compares every kind of search with the linear scan, near members and far from them.
fn compare_with_scan<F: Fingerprint>(
    tables: &ResidentTables<F>,
    set: &[F],
    random: &mut Random,
    at: &str,
) {
    let mut queries = vec![F::ZERO, F::ONES, random.word()];
    queries.extend(set.iter().step_by(1 + set.len() / 8).map(|&f| random.flip(f, 6)));
    for distance in [0, 1, 3, 4, 5, 7, 8, F::MAX_DISTANCE, F::BITS / 2, F::BITS] {
        let at = format!("{at}, {} of {} bits, {distance}", set.len(), F::BITS);
        let answers = tables.search_batch(&queries, distance).unwrap();
        for (query, answer) in queries.iter().zip(answers) {
            assert_eq!(answer, expected(set, *query, distance), "{at}");
            assert_eq!(tables.search(*query, distance).unwrap(), answer, "{at}");
            assert_eq!(tables.scan(*query, distance).unwrap(), answer, "{at}");
        }
    }
}

fn equals_the_linear_scan<F: Fingerprint>() {
    const SEED: u64 = 11;
    let mut random = Random(SEED);
    for len in [0, 1, 2, 31, 33, 500, 6000] {
        for set in sets::<F>(len, &mut random) {
            let mut distinct = set.clone();
            distinct.sort_unstable();
            distinct.dedup();
            for tables in [2, F::BITS / BLOCK_BITS] {
                let resident =
                    ResidentTables::of_distinct(&distinct, tables, Costs::default()).unwrap();
                let mut members = resident.members();
                members.sort_unstable();
                assert_eq!(members, distinct);
                compare_with_scan(&resident, &set, &mut random, &format!("seed {SEED}"));
            }
        }
    }
}

#[test]
fn resident_search_of_32_bits_equals_the_linear_scan() {
    equals_the_linear_scan::<u32>();
}

#[test]
fn resident_search_of_64_bits_equals_the_linear_scan() {
    equals_the_linear_scan::<u64>();
}

#[test]
fn resident_search_of_128_bits_equals_the_linear_scan() {
    equals_the_linear_scan::<u128>();
}

#[test]
fn full_directories_of_buckets_lose_nothing() {
    const SEED: u64 = 5;
    let mut random = Random(SEED);
    let set: Vec<u64> = (0..600_000).map(|_| random.next()).collect();
    let resident = ResidentTables::build(&set).unwrap();
    assert_eq!(resident.masks.within(u32::MAX).len(), 65_536);
    for distance in [3, 9, 16] {
        let queries: Vec<u64> = (0..20).map(|at| random.flip(set[at * 7], distance)).collect();
        let answers = resident.search_batch(&queries, distance).unwrap();
        for (query, answer) in queries.iter().zip(answers) {
            assert_eq!(answer, expected(&set, *query, distance), "seed {SEED}, {distance}");
        }
    }
}

#[test]
fn an_overfull_bucket_is_skipped() {
    const SEED: u64 = 3;
    let mut random = Random(SEED);
    // All agree on the first block, so its table would compare every member.
    let set: Vec<u64> = (0..100_000).map(|_| random.next() >> 16).collect();
    let resident = ResidentTables::build(&set).unwrap();
    assert!(resident.routing.is_skewed());
    let known = resident.routing.known(3);
    let radii = resident.routing.of(&resident.tables, set[0], known).unwrap().radii;
    assert_eq!(radii.of(0), None, "{radii:?}");
    assert_eq!(resident.search(set[0], 3).unwrap(), expected(&set, set[0], 3));
}

/// Fingerprints like those of texts: skewed bits and many neighbours.
fn skewed<F: Fingerprint>(len: usize, random: &mut Random) -> Vec<F> {
    let mut set: Vec<F> = Vec::with_capacity(len);
    for at in 0..len {
        let (a, b, c): (F, F, F) = (random.word(), random.word(), random.word());
        let near = set.get(at / 2).copied().filter(|_| random.next().is_multiple_of(4));
        set.push(near.map_or(a & b | (a & c & F::high_mask(F::BITS / 2)), |of| random.flip(of, 9)));
    }
    set
}

fn routes_of_queries_lose_nothing<F: Fingerprint>() {
    const SEED: u64 = 29;
    let mut random = Random(SEED);
    let set = skewed::<F>(20_000, &mut random);
    let mut distinct = set.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let mut queries = vec![F::ZERO, F::ONES];
    queries.extend((0..30).map(|at| random.flip(set[at * 650], F::MAX_DISTANCE)));
    queries.extend((0..10).map(|_| random.word::<F>()));
    let mut routes = std::collections::BTreeSet::new();
    // With expensive scans no query is scanned, otherwise part of a batch is.
    for resident_scan_ns in [0.2, 2.0, 1e9] {
        let costs = Costs { resident_scan_ns, ..Costs::default() };
        let resident = ResidentTables::of_distinct(&distinct, F::BITS / BLOCK_BITS, costs).unwrap();
        assert!(resident.routing.is_skewed());
        for distance in [0, 2, 3, 6, F::MAX_DISTANCE, F::BITS / 3] {
            let answers = resident.search_batch(&queries, distance).unwrap();
            let known = resident.routing.known(distance);
            for (&query, answer) in queries.iter().zip(answers) {
                let at = format!("seed {SEED}, {} bits, {distance}", F::BITS);
                assert_eq!(answer, expected(&set, query, distance), "{at}");
                assert_eq!(resident.search(query, distance).unwrap(), answer, "{at}");
                let route = resident.routing.of(&resident.tables, query, known);
                routes.insert((distance, route.map(|route| route.radii.number())));
            }
        }
    }
    let scans = routes.iter().filter(|(_, route)| route.is_none()).count();
    assert!(scans > 0 && routes.len() > 9, "{routes:?}");
}

#[test]
fn routes_of_queries_of_32_bits_lose_nothing() {
    routes_of_queries_lose_nothing::<u32>();
}

#[test]
fn routes_of_queries_of_64_bits_lose_nothing() {
    routes_of_queries_lose_nothing::<u64>();
}

#[test]
fn routes_of_queries_of_128_bits_lose_nothing() {
    routes_of_queries_lose_nothing::<u128>();
}

#[test]
fn the_size_is_known_in_advance() {
    let set: Vec<u64> = (0..5000_u64).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let resident = ResidentTables::build(&set).unwrap();
    let predicted = usize::try_from(ResidentTables::<u64>::bytes_of(5000, 4)).unwrap();
    let shells = 4 * usize::try_from(Shells::bytes_of(resident.tables[0].cut().buckets())).unwrap();
    assert!(!resident.routing.is_skewed(), "shells exist only for skewed sets");
    let bytes = resident.bytes() + shells;
    assert!(bytes.abs_diff(predicted) < 2000, "{bytes} for {predicted}");
    let constant_lead: Vec<u64> = set.iter().map(|fingerprint| fingerprint >> 16).collect();
    let resident = ResidentTables::build(&constant_lead).unwrap();
    assert!(resident.routing.is_skewed());
    assert!(resident.bytes().abs_diff(predicted) < 2000, "{} for {predicted}", resident.bytes());
}

#[test]
fn distances_above_the_width_are_refused() {
    let resident = ResidentTables::build(&[1_u32]).unwrap();
    let refused = resident.search(1, 33);
    assert!(matches!(refused, Err(Error::InvalidDistance { distance: 33, bits: 32, max: 32 })));
}

proptest! {
    #[test]
    fn any_set_is_searched_exactly(
        set in proptest::collection::vec(any::<u32>(), 0..60),
        query: u32,
        distance in 0_u32..=32,
    ) {
        let resident = ResidentTables::build(&set).unwrap();
        prop_assert_eq!(resident.search(query, distance).unwrap(), expected(&set, query, distance));
    }
}

/// Builds tables with given directory bits, so that small sets have cells.
fn in_cells<F: Fingerprint>(set: &[F], tables: u32, directory: (u32, u32)) -> ResidentTables<F> {
    let mut distinct = set.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    ResidentTables::of_distinct_with(&distinct, tables, directory, Costs::default()).unwrap()
}

fn cells_equal_the_linear_scan<F: Fingerprint>() {
    const SEED: u64 = 17;
    let mut random = Random(SEED);
    for len in [0, 1, 2, 700, 5000] {
        for set in sets::<F>(len, &mut random) {
            for directory in [(1, 3), (4, 6), (9, 1), (16, 2)] {
                let resident = in_cells(&set, F::BITS / BLOCK_BITS, directory);
                let at = format!("seed {SEED}, {directory:?}");
                compare_with_scan(&resident, &set, &mut random, &at);
            }
        }
    }
}

#[test]
fn small_buckets_are_scanned_flat_and_large_ones_separately() {
    const SEED: u64 = 23;
    let mut random = Random(SEED);
    let set: Vec<u64> = (0..3000).map(|_| random.next()).collect();
    let (flat, bucketed) = (in_cells(&set, 4, (7, 0)), in_cells(&set, 4, (6, 0)));
    assert!(flat.own_blocks.is_some() && bucketed.own_blocks.is_none());
    for distance in [0, 3, 20, 64] {
        let queries: Vec<u64> = (0..150).map(|at| random.flip(set[at * 7], distance)).collect();
        for query in &queries {
            let expected = expected(&set, *query, distance);
            assert_eq!(flat.scan(*query, distance).unwrap(), expected, "seed {SEED}, {distance}");
            assert_eq!(bucketed.scan(*query, distance).unwrap(), expected, "seed {SEED}");
        }
        let answers = flat.search_batch(&queries, distance).unwrap();
        assert_eq!(answers, bucketed.search_batch(&queries, distance).unwrap(), "{distance}");
    }
}

#[test]
fn cells_of_buckets_lose_nothing() {
    cells_equal_the_linear_scan::<u32>();
    cells_equal_the_linear_scan::<u64>();
    cells_equal_the_linear_scan::<u128>();
}

#[test]
fn few_cells_of_a_large_bucket_are_read() {
    const SEED: u64 = 19;
    let mut random = Random(SEED);
    let set: Vec<u64> = (0..100_000).map(|_| random.next()).collect();
    let (cells, whole) = (in_cells(&set, 4, (4, 8)), in_cells(&set, 4, (4, 0)));
    for distance in [3, 10] {
        let of_cells = cells.account(set[0], distance);
        let of_whole = whole.account(set[0], distance);
        let members =
            |account: &Account| -> u64 { account.tables.iter().map(|table| table.members).sum() };
        assert_eq!(of_cells.scan, of_whole.scan);
        if distance == 3 {
            assert!(members(&of_cells) * 20 < members(&of_whole), "{of_cells:?} {of_whole:?}");
            assert!(members(&of_cells) > 0);
        }
    }
    let bytes = usize::try_from(Table::bytes_of(cells.tables[0].cut(), 8, 100_000)).unwrap() * 4;
    assert!(cells.bytes().abs_diff(bytes) < 2000, "{} for {bytes}", cells.bytes());
}

#[test]
fn directories_have_cells_if_buckets_are_large() {
    assert_eq!(directory_bits(0), (1, 0));
    assert_eq!(directory_bits(1 << 10), (7, 0));
    assert_eq!(directory_bits(10_000_000), (16, 0));
    assert_eq!(directory_bits((1 << 25) - 1), (16, 0));
    assert_eq!(directory_bits(1 << 25), (16, 5));
    assert_eq!(directory_bits(100_000_000), (16, 6));
}
