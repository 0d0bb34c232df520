use std::collections::BTreeMap;

use super::*;
use crate::error::Error;
use crate::fingerprint::Fingerprint;
use crate::join::{self, Pair, UnionFind};
use crate::plan::{self, defeat};

/// A set with near pairs, a skewed prefix and a dense ball.
fn made<F: Fingerprint>(len: u64) -> Vec<F> {
    let word = |at: u64| {
        let mixed = (at ^ 0x5eed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ (mixed >> 32)
    };
    let wide = |at: u64| (u128::from(word(at)) << 64) | u128::from(word(at + (1 << 40)));
    let bit = |at: u64| F::truncate(1 << (word(at) % u64::from(F::BITS)));
    let mut set: Vec<F> = (0..len).map(|at| F::truncate(wide(at))).collect();
    // Chains: each member differs from an earlier one in up to three bits.
    for at in 0..len / 2 {
        let last = set[usize::try_from(word(at) % set.len() as u64).unwrap()];
        set.push(last ^ bit(at + 1) ^ bit(at + 2) ^ bit(at + 3));
    }
    set.extend((0..len / 4).map(|at| F::truncate(wide(at)) >> (F::BITS / 4)));
    set.extend((0..len / 4).map(|at| F::ONES ^ bit(at) ^ bit(at + 7)));
    set
}

/// Sorts rows by key as a shuffle does, level by level, and collects the counts.
fn spread<F: Fingerprint>(
    keys: &Keys<F>,
    sets: [&[F]; 2],
    wanted: Wanted,
    limit: usize,
) -> (Vec<Pair<F>>, Vec<Counts>) {
    let mut rows = Vec::new();
    for (set, second) in sets.into_iter().zip([false, true]) {
        for &fingerprint in set {
            rows.extend(keys.first(fingerprint).map(|key| Row { key, fingerprint, second }));
        }
    }
    let (mut pairs, mut counts) = (Vec::new(), Vec::new());
    while !rows.is_empty() {
        rows.sort_by_key(|row| row.key);
        let mut groups = Groups::new(keys.clone(), wanted, limit);
        let mut found = Found::default();
        for row in std::mem::take(&mut rows) {
            groups.push(row, &mut found).unwrap();
        }
        counts.push(groups.finish(&mut found).unwrap());
        pairs.append(&mut found.pairs);
        for row in found.skewed {
            let below: Vec<u64> = keys.below(row.key, row.fingerprint).collect();
            assert!(!below.is_empty(), "a group that cannot be split was returned");
            rows.extend(below.into_iter().map(|key| Row { key, ..row }));
        }
    }
    pairs.sort_unstable();
    (pairs, counts)
}

fn naive<F: Fingerprint>(a: &[F], b: &[F], distance: u32, across: bool) -> Vec<Pair<F>> {
    let mut pairs = Vec::new();
    for &a in a {
        for &b in b.iter().filter(|&&b| across || a < b) {
            if a.distance(b) <= distance {
                pairs.push(Pair { a, b, distance: a.distance(b) });
            }
        }
    }
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

/// Returns the smallest member of the component of each member.
fn components<F: Fingerprint>(set: &[F], pairs: &[Pair<F>]) -> BTreeMap<F, F> {
    let mut sorted = set.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let place = |member: &F| u32::try_from(sorted.binary_search(member).unwrap()).unwrap();
    let mut sets = UnionFind::new(u32::try_from(sorted.len()).unwrap());
    for pair in pairs {
        sets.union(place(&pair.a), place(&pair.b));
    }
    let mut smallest = BTreeMap::new();
    let label = |&member: &F| {
        let root = sets.find(place(&member)).unwrap();
        (member, *smallest.entry(root).or_insert(member))
    };
    sorted.iter().map(label).collect()
}

fn agrees_with_one_machine<F: Fingerprint>(distance: u32) {
    let set = made::<F>(600);
    let pairs = naive(&set, &set, distance, false);
    let wanted = components(&set, &pairs);
    for (count, limit) in [(600, usize::MAX), (600, 40), (u64::MAX, 40), (1 << 40, 2)] {
        let keys = Keys::<F>::new(distance, count).unwrap();
        let case = format!("{} bits, distance {distance}, {count}, limit {limit}", F::BITS);
        let (links, _) = spread(&keys, [&set, &[]], Wanted::Links, limit);
        assert!(components(&set, &links) == wanted, "links: {case}");
        let (found, counts) = spread(&keys, [&set, &[]], Wanted::Pairs, limit);
        assert!(found == pairs, "{} pairs for {}: {case}", found.len(), pairs.len());
        assert_eq!(counts.iter().map(|c| c.pairs).sum::<u64>(), pairs.len() as u64, "{case}");
        let (a, b) = set.split_at(set.len() / 3);
        let (found, _) = spread(&keys, [a, b], Wanted::Across, limit);
        assert!(found == naive(a, b, distance, true), "across: {case}");
    }
}

#[test]
fn groups_of_all_keys_find_what_one_machine_finds() {
    for distance in [0, 1, 3, 8] {
        agrees_with_one_machine::<u32>(distance);
    }
    for distance in [0, 1, 3, 6, 12, 16] {
        agrees_with_one_machine::<u64>(distance);
    }
    for distance in [3, 10, 32] {
        agrees_with_one_machine::<u128>(distance);
    }
}

#[test]
fn skewed_groups_are_split_again_and_counted() {
    // All members agree on the first quarter of the bits, and most on a second one.
    let set: Vec<u64> = made::<u64>(4000).iter().map(|x| x >> 16 & !(0xfff << 20)).collect();
    let keys = Keys::<u64>::new(3, 1000).unwrap();
    let (links, counts) = spread(&keys, [&set, &[]], Wanted::Links, 500);
    assert!(counts.len() >= 3, "{counts:?}");
    assert!(counts.iter().rev().skip(1).all(|count| count.skewed > 0), "{counts:?}");
    assert_eq!(counts.last().unwrap().skewed, 0, "{counts:?}");
    let labels = join::clusters(&set, 3, &()).unwrap();
    let found = components(&set, &links);
    for (member, &label) in set.iter().zip(&labels) {
        assert_eq!(found[member], found[&set[label as usize]]);
    }
    let clusters: std::collections::BTreeSet<u64> = found.into_values().collect();
    let wanted: std::collections::BTreeSet<u32> = labels.into_iter().collect();
    assert_eq!(clusters.len(), wanted.len());
}

#[test]
fn a_group_has_fewer_links_than_members() {
    let ball: Vec<u64> = (0..64).flat_map(|a| (0..a).map(move |b| 1 << a | 1 << b)).collect();
    let keys = Keys::<u64>::new(4, 1000).unwrap();
    let (_, counts) = spread(&keys, [&ball, &[]], Wanted::Links, usize::MAX);
    assert_eq!(counts.len(), 1);
    assert!(counts[0].pairs < counts[0].rows, "{counts:?}");
}

#[test]
fn every_level_is_complete_for_the_distance() {
    for (bits, distance, count) in
        [(32, 3, 1 << 20), (64, 1, 1 << 34), (64, 3, 1 << 34), (128, 4, 1 << 34)]
    {
        let levels = super::keys::levels(bits, distance, count);
        assert!(levels.len() > 1, "{bits} {distance}: {levels:?}");
        for depth in 1..=levels.len().min(2) {
            let tables = plan::nested_tables(bits, &levels[..depth]).unwrap();
            let exact: Vec<(u128, u32)> = tables.iter().map(|table| (table.lead(), 0)).collect();
            let flips = defeat(&exact, bits, distance);
            assert!(flips.is_some_and(|flips| flips > distance), "{bits} {distance} {levels:?}");
        }
    }
}

#[test]
fn more_fingerprints_get_longer_prefixes() {
    for (count, tables) in [(0, 4), (1 << 33, 4), (1 << 36, 10), (1 << 45, 20)] {
        assert_eq!(Keys::<u64>::new(3, count).unwrap().tables(), tables, "{count}");
    }
    for distance in 0..=16 {
        let keys = Keys::<u64>::new(distance, 1 << 34).unwrap();
        assert!(keys.tables() <= plan::MAX_TABLES, "{distance}");
        assert!(keys.first(u64::MAX).all(|key| i64::try_from(key).is_ok()), "{distance}");
    }
}

#[test]
fn keys_have_golden_numbers() {
    // Rows meet across machines, so keys must be the same on all.
    let keys = Keys::<u64>::new(3, 1000).unwrap();
    let first: Vec<u64> = keys.first(0x0123_4567_89ab_cdef).collect();
    let golden = [0x0123, 0x1_0000_0000_4567, 0x2_0000_0000_89ab, 0x3_0000_0000_cdef];
    assert_eq!(first, golden);
    let below: Vec<u64> = keys.below(0x0123, 0x0123_4567_89ab_cdef).collect();
    let golden = [0x4_0000_0012_3456, 0x5_0000_0012_3789, 0x6_0000_0012_3abc, 0x7_0000_0012_3def];
    assert_eq!(below, golden);
    assert_eq!(keys.below(u64::MAX, 7).count(), 0);
}

#[test]
fn invalid_distances_and_unsorted_keys_are_rejected() {
    let refused = Keys::<u64>::new(17, 10);
    assert!(matches!(refused, Err(Error::InvalidDistance { distance: 17, max: 16, .. })));
    let mut groups = Groups::new(Keys::<u64>::new(3, 10).unwrap(), Wanted::Links, 10);
    let mut found = Found::default();
    let row = |key| Row { key, fingerprint: 1_u64, second: false };
    groups.push(row(5), &mut found).unwrap();
    let refused = groups.push(row(4), &mut found);
    assert!(matches!(refused, Err(Error::InvalidOption { name: "key", .. })));
}

#[test]
fn a_row_with_an_unknown_key_is_rejected() {
    let mut groups = Groups::new(Keys::<u64>::new(3, 1000).unwrap(), Wanted::Pairs, 100);
    let row = Row { key: u64::MAX, fingerprint: 7, second: false };
    let refused = groups.push(row, &mut Found::default());
    assert!(matches!(refused, Err(Error::InvalidOption { name: "key", .. })));
}
