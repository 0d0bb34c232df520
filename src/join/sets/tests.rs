use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::blocks::{Section, Split, Weights};
use super::distinct::distinct;
use super::*;
use crate::error::Error;
use crate::join::{clusters, cross_join, self_join};
use crate::plan::Costs;

const SEED: u64 = 11;

/// `SplitMix64`, so that every run tests the same sets.
struct Random(u64);

impl Random {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u32) -> u32 {
        u32::try_from(self.word() % u64::from(end)).unwrap()
    }

    fn fingerprint<F: Fingerprint>(&mut self) -> F {
        F::truncate((u128::from(self.word()) << 64) | u128::from(self.word()))
    }

    fn flip<F: Fingerprint>(&mut self, fingerprint: F, flips: u32) -> F {
        (0..flips).fold(fingerprint, |fp, _| fp ^ (F::truncate(1) << self.below(F::BITS)))
    }

    /// Adds copies of members that differ by a few flips.
    fn near_copies<F: Fingerprint>(&mut self, set: &mut Vec<F>, copies: usize, flips: u32) {
        for _ in 0..copies {
            let at = usize::try_from(self.word()).unwrap() % set.len();
            let flips = self.below(flips + 1);
            set.push(self.flip(set[at], flips));
        }
    }
}

/// Reference: compares every pair of the set.
fn naive<F: Fingerprint>(fps: &[F], distance: u32) -> Vec<Pair<F>> {
    let distinct: Vec<F> = fps.iter().copied().collect::<BTreeSet<F>>().into_iter().collect();
    let mut pairs = Vec::new();
    for (at, &a) in distinct.iter().enumerate() {
        for &b in &distinct[at + 1..] {
            if a.distance(b) <= distance {
                pairs.push(Pair { a, b, distance: a.distance(b) });
            }
        }
    }
    pairs
}

fn joined<F: Fingerprint>(fps: &[F], distance: u32) -> Vec<Pair<F>> {
    let pairs = Mutex::new(Vec::new());
    let count = self_join(fps, distance, &(), &|batch| {
        assert!((1..=4096).contains(&batch.len()));
        pairs.lock().unwrap().extend_from_slice(batch);
        Ok(())
    });
    let mut pairs = pairs.into_inner().unwrap();
    assert_eq!(count.unwrap().pairs, pairs.len() as u64);
    pairs.sort_unstable();
    pairs
}

/// Sets that have broken joins: skewed, repeated, tiny, or concentrated.
fn sets<F: Fingerprint>(len: usize) -> Vec<(&'static str, Vec<F>)> {
    let mut random = Random(SEED);
    let mut sets: Vec<(&str, Vec<F>)> = vec![
        ("empty", vec![]),
        ("one", vec![F::ONES]),
        ("one repeated", vec![F::ONES; 300]),
        ("both ends", vec![F::ONES, F::ZERO, F::ONES, F::ZERO]),
    ];
    let even: Vec<F> = (0..len / 2).map(|_| random.fingerprint()).collect();
    let mut clustered = even.clone();
    random.near_copies(&mut clustered, len / 2, F::MAX_DISTANCE);
    let mut repeated: Vec<F> = even.iter().copied().take(len / 8).collect();
    random.near_copies(&mut repeated, len, 1);
    let mut around_zero = vec![F::ZERO, F::ONES];
    random.near_copies(&mut around_zero, len / 2, 3);
    let mut one_prefix: Vec<F> = even.iter().map(|&fp| fp >> (F::BITS / 2)).collect();
    random.near_copies(&mut one_prefix, len / 2, 2);
    let mut one_suffix: Vec<F> = even.iter().map(|&fp| fp << (F::BITS / 2)).collect();
    random.near_copies(&mut one_suffix, len / 2, 2);
    let third = F::BITS / 3;
    let two_values =
        even.iter().map(|&fp| if fp & F::truncate(1) == F::ZERO { F::ZERO } else { F::ONES });
    let mut two_prefixes: Vec<F> = even
        .iter()
        .zip(two_values)
        .map(|(&fp, value)| (fp & !F::high_mask(2 * third)) | (value & F::high_mask(third)))
        .collect();
    random.near_copies(&mut two_prefixes, len / 2, 3);
    let dense = (0..len as u128).map(F::truncate).collect();
    sets.extend([
        ("even", even),
        ("clustered", clustered),
        ("repeated", repeated),
        ("around zero", around_zero),
        ("one prefix", one_prefix),
        ("one suffix", one_suffix),
        ("two prefixes", two_prefixes),
        ("dense", dense),
    ]);
    sets
}

fn agrees_with_naive<F: Fingerprint>(len: usize, distances: &[u32]) {
    for (name, set) in sets::<F>(len) {
        let pairs = naive(&set, distances.iter().copied().max().unwrap_or(0));
        for &distance in distances {
            let near = pairs.iter().copied().filter(|pair| pair.distance <= distance);
            let expected: Vec<Pair<F>> = near.collect();
            let found = joined(&set, distance);
            assert!(found == expected, "{name} len {len} distance {distance} seed {SEED}");
        }
    }
}

#[test]
fn every_pair_of_32_bits_is_found_once() {
    agrees_with_naive::<u32>(600, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 15, 31, 32]);
    agrees_with_naive::<u32>(6000, &[1, 3]);
}

#[test]
fn every_pair_of_64_bits_is_found_once() {
    let distances: Vec<u32> = (0..=16).chain([40, 63, 64]).collect();
    agrees_with_naive::<u64>(600, &distances);
    agrees_with_naive::<u64>(6000, &[1, 2, 3, 5]);
}

#[test]
fn every_pair_of_128_bits_is_found_once() {
    let distances: Vec<u32> = (0..=32).chain([100, 128]).collect();
    agrees_with_naive::<u128>(300, &distances);
    agrees_with_naive::<u128>(6000, &[1, 3, 4]);
}

fn in_memory<F: Fingerprint>(
    distance: u32,
    visit: &(dyn Fn(&[Pair<F>]) -> Result<()> + Sync),
) -> sink::Run<'_, F> {
    sink::Run::new::<1>(JoinOptions::new(distance), 0, &(), visit)
}

/// Returns splits of one section and of two; fewer if too few bits vary.
fn splits(set: &[u64], distance: u32) -> Vec<Split> {
    let weights = Weights::of(&blocks::sample(&[set]));
    let mut splits = Vec::new();
    for (leading, lead_max) in [(1, 8), (1, 24), (2, 16), (2, 24), (3, 24)] {
        for of_sections in [vec![distance], vec![0, distance - 1], vec![distance - 1, 0]] {
            let blocks = |flips: u32| (flips + leading) as usize;
            let all: usize = of_sections.iter().map(|&flips| blocks(flips)).sum();
            let Some(mut spans) = weights.cut(&vec![1.0; all]) else { continue };
            let section =
                |&flips: &u32| Section { blocks: spans.drain(..blocks(flips)).collect(), leading };
            splits.push(Split { sections: of_sections.iter().map(section).collect(), lead_max });
        }
    }
    splits
}

/// Small sets are never worth a split, so the test chooses the split.
#[test]
fn every_split_finds_the_same_pairs() {
    for (name, set) in sets::<u64>(1000) {
        let sorted = distinct(&set);
        for distance in [1, 3, 6] {
            let expected = naive(&set, distance);
            for split in splits(&sorted, distance) {
                let pairs = Mutex::new(Vec::new());
                let visit = |batch: &[Pair<u64>]| {
                    pairs.lock().unwrap().extend_from_slice(batch);
                    Ok(())
                };
                let run = in_memory(distance, &visit);
                sweep::split_pairs(&run, &sink::Space::ROOT, [&sorted], &split, 0).unwrap();
                let mut pairs = pairs.into_inner().unwrap();
                pairs.sort_unstable();
                assert!(pairs == expected, "{name} distance {distance} {split:?} seed {SEED}");
            }
        }
    }
}

/// Reference: compares every member of one set with every member of the other.
fn naive_across<F: Fingerprint>(a: &[F], b: &[F], distance: u32) -> Vec<Pair<F>> {
    let distinct = |fps: &[F]| fps.iter().copied().collect::<BTreeSet<F>>();
    let (a, b) = (distinct(a), distinct(b));
    let pairs = a.iter().flat_map(|&a| b.iter().map(move |&b| (a, b)));
    let pairs = pairs.map(|(a, b)| Pair { a, b, distance: a.distance(b) });
    pairs.filter(|pair| pair.distance <= distance).collect()
}

fn crossed<F: Fingerprint>(a: &[F], b: &[F], options: JoinOptions) -> Vec<Pair<F>> {
    let pairs = Mutex::new(Vec::new());
    let report = cross_join(a, b, options, &(), &|batch| {
        pairs.lock().unwrap().extend_from_slice(batch);
        Ok(())
    });
    let mut pairs = pairs.into_inner().unwrap();
    assert_eq!(report.unwrap().pairs, pairs.len() as u64);
    pairs.sort_unstable();
    pairs
}

fn crosses_agree_with_naive<F: Fingerprint>(len: usize, distances: &[u32]) {
    let mut random = Random(SEED + 1);
    for (name, set) in sets::<F>(len) {
        // Near copies of a third of the set, some of its members, and some unrelated ones.
        let mut other: Vec<F> = set.iter().copied().step_by(3).collect();
        if !other.is_empty() {
            random.near_copies(&mut other, len / 3, 4);
        }
        other.extend(set.iter().take(len / 10));
        other.extend((0..len / 10).map(|_| random.fingerprint::<F>()));
        for (a, b) in [(&set, &other), (&other, &set), (&set, &set)] {
            for &distance in distances {
                let found = crossed(a, b, distance.into());
                let expected = naive_across(a, b, distance);
                assert!(found == expected, "{name} len {len} distance {distance} seed {SEED}");
            }
        }
    }
}

#[test]
fn every_pair_across_two_sets_is_found_once() {
    crosses_agree_with_naive::<u32>(300, &[0, 1, 3, 8, 32]);
    crosses_agree_with_naive::<u64>(300, &[0, 1, 2, 3, 7, 12, 64]);
    crosses_agree_with_naive::<u128>(300, &[0, 3, 20]);
    crosses_agree_with_naive::<u64>(4000, &[0, 3]);
    crosses_agree_with_naive::<u128>(4000, &[2]);
}

#[test]
fn a_cross_join_with_an_empty_or_tiny_side_is_exact() {
    let mut random = Random(SEED);
    let many: Vec<u64> = (0..30_000).map(|_| random.fingerprint()).collect();
    assert!(crossed(&many, &[], 3.into()).is_empty());
    assert!(crossed(&[], &many, 3.into()).is_empty());
    assert!(crossed::<u64>(&[], &[], 3.into()).is_empty());
    let one = [many[7] ^ 0b101];
    let pair = Pair { a: one[0], b: many[7], distance: 2 };
    assert_eq!(crossed(&one, &many, 3.into()), [pair]);
    assert_eq!(crossed(&many, &one, 2.into()), [Pair { a: many[7], b: one[0], distance: 2 }]);
    assert!(crossed(&one, &many, 1.into()).is_empty());
}

#[test]
fn joins_by_parts_find_the_same_pairs() {
    for (name, set) in sets::<u64>(3000) {
        let sorted = distinct(&set);
        let others: Vec<u64> = sorted.iter().step_by(2).map(|f| f ^ 0b11).collect();
        let others = distinct(&others);
        for distance in [1, 3, 5] {
            for capacity in [0, 1, 7, 50, 700] {
                let pairs = Mutex::new(Vec::new());
                let visit = |batch: &[Pair<u64>]| {
                    pairs.lock().unwrap().extend_from_slice(batch);
                    Ok(())
                };
                let meter = Meter::default();
                let run = sink::Run { capacity, progress: &meter, ..in_memory(distance, &visit) };
                let source = &&*sorted as &dyn Source<u64>;
                parts::pairs(&run, &sink::Space::ROOT, [source], 1000).unwrap();
                let mut found = std::mem::take(&mut *pairs.lock().unwrap());
                found.sort_unstable();
                let same = found == naive(&set, distance);
                assert!(same, "{name} distance {distance} capacity {capacity}");
                assert_eq!(meter.done.load(Ordering::Relaxed), 1000, "{name}");
                if distance == 3 && !sorted.is_empty() {
                    let run = sink::Run { across: true, ..run };
                    let other = &&*others as &dyn Source<u64>;
                    parts::pairs(&run, &sink::Space::ROOT, [source, other], 0).unwrap();
                    let mut found = std::mem::take(&mut *pairs.lock().unwrap());
                    found.sort_unstable();
                    assert!(found == naive_across(&set, &others, distance), "{name} {capacity}");
                }
            }
        }
    }
}

#[test]
fn a_memory_limit_does_not_change_the_pairs() {
    let mut random = Random(SEED);
    let mut set: Vec<u64> = (0..700_000).map(|_| random.fingerprint()).collect();
    // Two thirds are in one bucket of the first table.
    set.iter_mut().skip(200_000).for_each(|fp| *fp >>= 16);
    random.near_copies(&mut set, 100_000, 3);
    let all = joined(&set, 3);
    let pairs = Mutex::new(Vec::new());
    let report = self_join(&set, JoinOptions::new(3).memory(1 << 20), &(), &|batch| {
        pairs.lock().unwrap().extend_from_slice(batch);
        Ok(())
    });
    let mut pairs = pairs.into_inner().unwrap();
    pairs.sort_unstable();
    assert_eq!(report.unwrap().pairs, all.len() as u64);
    assert!(pairs == all);
}

#[test]
fn comparisons_are_counted() {
    let few: Vec<u64> = (0..100).collect();
    let report = self_join(&few, 64, &(), &|_| Ok(())).unwrap();
    assert_eq!((report.pairs, report.comparisons), (4950, 4950));
    let report = cross_join(&few, &few[..10], 64, &(), &|_| Ok(())).unwrap();
    assert_eq!((report.pairs, report.comparisons), (1000, 1000));
    let mut random = Random(SEED);
    let many: Vec<u64> = (0..100_000).map(|_| random.fingerprint()).collect();
    let report = self_join(&many, 3, &(), &|_| Ok(())).unwrap();
    assert!(report.comparisons > report.pairs && report.comparisons < 5_000_000_000 / 1000);
}

#[test]
fn skewed_groups_are_split_again_where_their_members_differ() {
    let mut random = Random(SEED);
    // The first 16 bits have two values: each bit varies, but half of the set is in one group.
    let two_values = |x: u64| if x & 1 == 0 { 0xa5c3 << 48 } else { 0x5a3c << 48 };
    let set: Vec<u64> =
        (0..40_000).map(|_| random.word()).map(|x| two_values(x) | (x >> 16)).collect();
    let cheapest = |set: &[u64]| {
        cost::cheapest_split([set.len()], || blocks::sample(&[set]), 3, &Costs::default())
    };
    let split = cheapest(&set).expect("a set of this size is split");
    assert_eq!(split.sections[0].blocks[0].start, 0, "{split:?}");
    let group: Vec<u64> = set.into_iter().filter(|x| x >> 48 == 0xa5c3).collect();
    let again = cheapest(&group).expect("half of it is split again");
    assert_eq!(again.sections[0].blocks[0].start, 16, "{again:?}");
}

#[test]
fn a_billion_is_split_otherwise_if_comparing_costs_more() {
    let mut random = Random(SEED);
    let sample: Vec<u64> = (0..4096).map(|_| random.word()).collect();
    let blocks = |costs: &Costs| {
        let split = cost::cheapest_split([1_000_000_000], || sample.clone(), 3, costs);
        let sections = split.expect("a set of this size is split").sections;
        sections.iter().map(|section| section.blocks.len()).collect::<Vec<_>>()
    };
    let mut other = Costs::default();
    other.pair_ns *= 30.0;
    assert_ne!(blocks(&Costs::default()), blocks(&other));
}

#[test]
fn distances_above_the_width_are_refused() {
    let refused = self_join(&[1_u32, 2], 33, &(), &|_| Ok(()));
    assert!(
        matches!(refused, Err(Error::InvalidDistance { distance: 33, bits: 32, max: 32 })),
        "{refused:?}"
    );
    assert!(clusters(&[1_u32], 33, &()).is_err());
}

#[test]
fn a_join_stops_with_the_error_of_its_visitor() {
    let set: Vec<u64> = (0..20_000).collect();
    for distance in [1, 64] {
        let calls = AtomicU64::new(0);
        let failed = self_join(&set, distance, &(), &|_| {
            calls.fetch_add(1, Ordering::Relaxed);
            Err(Error::InvalidOption { name: "visit", reason: "enough".to_owned() })
        });
        assert!(matches!(failed, Err(Error::InvalidOption { name: "visit", .. })), "{failed:?}");
        // At most one call per task that had started.
        assert!(calls.into_inner() < 1000);
    }
}

#[derive(Default)]
struct Meter {
    total: AtomicU64,
    done: AtomicU64,
    calls: AtomicU64,
    stop_after: Option<u64>,
}

impl Progress for Meter {
    fn begin(&self, _phase: &str, total: Option<u64>) {
        self.total.fetch_add(total.unwrap_or(0), Ordering::Relaxed);
    }

    fn advance(&self, units: u64) {
        self.done.fetch_add(units, Ordering::Relaxed);
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    fn cancelled(&self) -> bool {
        self.stop_after.is_some_and(|calls| self.calls.load(Ordering::Relaxed) >= calls)
    }
}

#[test]
fn progress_is_frequent_and_reaches_its_total() {
    for (name, set) in sets::<u64>(20_000) {
        for distance in [0, 1, 3, 30] {
            let meter = Meter::default();
            let fps = if distance == 30 { &set[..set.len().min(3000)] } else { &set };
            self_join(fps, distance, &meter, &|_| Ok(())).unwrap();
            let (total, done) = (meter.total.into_inner(), meter.done.into_inner());
            assert_eq!(done, total, "{name} distance {distance}");
            let often = total < 10_000 || distance == 0 || meter.calls.into_inner() >= 10;
            assert!(often, "{name} distance {distance}");
        }
    }
}

#[test]
fn cancelling_stops_the_join() {
    let set: Vec<u64> = (0..20_000_u64).map(|x| x.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    for (distance, stop_after) in [(3, 0), (3, 2), (30, 1)] {
        let meter = Meter { stop_after: Some(stop_after), ..Meter::default() };
        let cancelled = self_join(&set, distance, &meter, &|_| Ok(()));
        assert!(matches!(cancelled, Err(Error::Cancelled)), "{cancelled:?}");
        assert!(matches!(clusters(&set, distance, &meter), Err(Error::Cancelled)));
    }
}

/// Reference: spreads labels along near pairs until nothing changes.
fn naive_clusters<F: Fingerprint>(fps: &[F], distance: u32) -> Vec<u32> {
    let mut labels: Vec<u32> = (0..u32::try_from(fps.len()).unwrap()).collect();
    let mut changed = true;
    while changed {
        changed = false;
        for a in 0..fps.len() {
            for b in 0..fps.len() {
                if fps[a].distance(fps[b]) <= distance && labels[b] < labels[a] {
                    labels[a] = labels[b];
                    changed = true;
                }
            }
        }
    }
    labels
}

fn clusters_agree_with_spreading_labels<F: Fingerprint>() {
    for (name, mut set) in sets::<F>(500) {
        // Shuffled, so that positions do not follow the order of the values.
        let mut random = Random(SEED);
        for at in (1..set.len()).rev() {
            set.swap(at, random.below(u32::try_from(at).unwrap() + 1) as usize);
        }
        for distance in [0, 1, 3, 6] {
            let found = clusters(&set, distance, &()).unwrap();
            assert_eq!(found, naive_clusters(&set, distance), "{name} distance {distance}");
        }
    }
}

#[test]
fn clusters_are_labelled_by_their_smallest_position() {
    clusters_agree_with_spreading_labels::<u32>();
    clusters_agree_with_spreading_labels::<u64>();
    clusters_agree_with_spreading_labels::<u128>();
}

#[test]
fn a_chain_is_one_cluster_although_its_ends_are_far_apart() {
    let chain: Vec<u128> = (0..=128).map(u128::high_mask).rev().collect();
    assert_eq!(clusters(&chain, 1, &()).unwrap(), vec![0; 129]);
    assert_eq!(clusters(&chain, 0, &()).unwrap(), (0..129).collect::<Vec<u32>>());
}
