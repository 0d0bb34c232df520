use proptest::prelude::{any, prop_assert_eq, proptest};

use super::*;

/// `SplitMix64`: every set below is the same in every run.
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

fn expected<F: Fingerprint>(set: &[F], query: F, distance: u32) -> Vec<Near<F>> {
    let near = |&fingerprint: &F| Near { distance: query.distance(fingerprint), fingerprint };
    let mut all: Vec<_> = set.iter().map(near).filter(|near| near.distance <= distance).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Sets of one size: random ones with copies, few distinct ones, ones that share whole blocks.
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
    let crowded = copies.iter().map(|&f| f & !(F::high_mask(F::BITS / 2))).collect();
    vec![copies, few, crowded]
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
                let mut queries = vec![F::ZERO, F::ONES, random.word()];
                queries.extend(set.iter().step_by(1 + len / 4).map(|&f| random.flip(f, 6)));
                for distance in [0, 1, 3, 5, 8, F::MAX_DISTANCE, F::BITS / 2, F::BITS] {
                    let expected: Vec<_> =
                        queries.iter().map(|&query| expected(&set, query, distance)).collect();
                    let at = format!("seed {SEED}, {len} of {} bits, {distance}", F::BITS);
                    assert_eq!(
                        resident.search_batch(&queries, distance).unwrap(),
                        expected,
                        "{at}"
                    );
                    for (query, expected) in queries.iter().zip(&expected) {
                        assert_eq!(resident.search(*query, distance).unwrap(), *expected, "{at}");
                        assert_eq!(resident.scan(*query, distance).unwrap(), *expected, "{at}");
                    }
                }
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
fn a_crowded_bucket_is_gone_round() {
    const SEED: u64 = 3;
    let mut random = Random(SEED);
    // All agree on the first block, so its table would compare them all.
    let set: Vec<u64> = (0..100_000).map(|_| random.next() >> 16).collect();
    let resident = ResidentTables::build(&set).unwrap();
    assert!(resident.skewed);
    let radii = resident.radii_for(set[0], 3).unwrap();
    assert_eq!(radii.of_tables[0], None, "{radii:?}");
    assert_eq!(resident.search(set[0], 3).unwrap(), expected(&set, set[0], 3));
}

#[test]
fn bytes_are_told_beforehand() {
    let set: Vec<u64> = (0..5000_u64).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let resident = ResidentTables::build(&set).unwrap();
    let told = usize::try_from(ResidentTables::<u64>::bytes_of(5000, 4)).unwrap();
    assert!(resident.bytes().abs_diff(told) < 2000, "{} for {told}", resident.bytes());
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

fn sorted_tables_are_those_that_are_filled<F: Fingerprint>() {
    let mut random = Random(13);
    for len in [0, 1, 2, 700, 40_000] {
        for set in sets::<F>(len, &mut random) {
            let mut distinct = set.clone();
            distinct.sort_unstable();
            distinct.dedup();
            let plan = Plan::uniform(F::BITS, 5, 2).unwrap();
            let permutation = plan.tables().last().unwrap().permutation();
            for bits in [1, 9, 17] {
                let filled = Table::build(permutation.clone(), bits, &distinct);
                let mut room = vec![F::ZERO; distinct.len()];
                let sorted = Table::build_sorted(permutation.clone(), bits, &distinct, &mut room);
                let (filled_of, sorted_of) = (filled.columns(), sorted.columns());
                for bucket in 0..1 << bits {
                    assert_eq!(filled_of.range(bucket), sorted_of.range(bucket), "{len} {bits}");
                }
                let (mut a, mut b) = (filled.members::<F>(), sorted.members::<F>());
                a.sort_unstable();
                b.sort_unstable();
                assert!(a == b && a == distinct, "{len} of {} bits", F::BITS);
            }
        }
    }
}

#[test]
fn tables_are_the_same_sorted_and_filled() {
    sorted_tables_are_those_that_are_filled::<u32>();
    sorted_tables_are_those_that_are_filled::<u64>();
    sorted_tables_are_those_that_are_filled::<u128>();
}

fn pairs_of_blocks_find_what_blocks_find<F: Fingerprint>() {
    const SEED: u64 = 17;
    let mut random = Random(SEED);
    let mut set: Vec<F> = (0..1_100_000).map(|_| random.word()).collect();
    let queries: Vec<F> = (0..3000).map(|at| random.flip(set[at * 7], 4)).collect();
    // Near ones at every distance, in one block and across blocks.
    set.extend(queries.iter().map(|&query| random.flip(query, 4)));
    set.sort_unstable();
    set.dedup();
    let mut resident =
        ResidentTables::of_distinct(&set, ResidentTables::<F>::MOST_TABLES, Costs::default())
            .unwrap();
    let pairs = BlockPairs::build(&set).unwrap().unwrap();
    let wanted: Vec<_> = (0..=5).map(|k| resident.search_batch(&queries, k).unwrap()).collect();
    assert!(wanted[3].iter().filter(|near| near.len() > 1).count() > 1000);
    let before = resident.bytes() as u64;
    resident.pairs = Some(pairs);
    let taken = resident.bytes() as u64 - before;
    let told = BlockPairs::<F>::bytes_of(set.len()).unwrap();
    assert!(taken.abs_diff(told) < told / 1000, "{taken} taken, {told} told");
    for (distance, wanted) in (0..).zip(&wanted) {
        let found = resident.search_batch(&queries, distance).unwrap();
        assert!(found == *wanted, "seed {SEED}, {} bits, k = {distance}", F::BITS);
        for (query, wanted) in queries.iter().zip(wanted).take(100) {
            assert_eq!(resident.search(*query, distance).unwrap(), *wanted);
        }
    }
    let account = resident.account(queries[0], 3);
    assert_eq!(account.tables.len(), pairs::TABLES);
    assert!(account.tables.iter().all(|table| table.members < 100 && table.buckets == 1));
}

#[test]
fn pairs_of_blocks_answer_small_distances_alike() {
    pairs_of_blocks_find_what_blocks_find::<u64>();
    pairs_of_blocks_find_what_blocks_find::<u128>();
    assert!(BlockPairs::build(&(0..1_100_000_u32).collect::<Vec<_>>()).unwrap().is_none());
    assert!(BlockPairs::<u64>::build(&[1, 2, 3]).unwrap().is_none());
}
