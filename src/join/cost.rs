//! Cost estimate: chooses the cheapest way to compare a set from its size and distribution.
//!
//! The estimate affects only time; every way finds the same pairs.

use super::blocks::Weights;
use super::permutation::Span;
use super::{groups, partition};
use crate::fingerprint::Fingerprint;
use crate::plan::binomial;

/// Nanoseconds to compare one pair of 64 bits; between wide and narrow vector units.
const PAIR: f64 = 0.07;
/// Nanoseconds to verify a near pair and to find the table that emits it.
const HIT: f64 = 15.0;
/// Nanoseconds to move a 64-bit member into its bucket and then into its group.
const MEMBER: f64 = 15.0;
/// Nanoseconds to start a group, even an empty one.
const GROUP: f64 = 10.0;
/// Group size, per table, below which comparing all pairs is cheaper than tables.
///
/// A group of n has n / 2 pairs per member: 2 * `MEMBER` / `PAIR`.
const SMALL: u64 = 400;
/// Maximum bits that a table is partitioned and grouped by.
const LEAD_MAX: u32 = partition::BITS_MAX + groups::BITS_MAX;
/// Maximum number of tables; more would only pay off for huge sets at large distances.
const TABLES_MAX: f64 = 20_000.0;

/// A split of the bits, after which only members of one group are compared.
#[derive(Debug)]
pub(super) struct Split {
    /// Disjoint spans of bits.
    pub(super) blocks: Vec<Span>,
    /// Number of blocks that lead each table.
    pub(super) leading: usize,
    /// Maximum bits that a table is grouped by.
    pub(super) lead_max: u32,
}

/// Returns the cheapest split of one or two sets, or `None` if comparing all pairs costs less.
///
/// `sample` is called only if a split could be cheaper.
pub(super) fn cheapest_split<F: Fingerprint, const S: usize>(
    sizes: [usize; S],
    sample: impl FnOnce() -> Vec<F>,
    distance: u32,
) -> Option<Split> {
    if !worth_splitting(sizes, distance) {
        return None;
    }
    let len = sizes.iter().sum::<usize>() as f64;
    let pairs = pairs(sizes) as f64;
    let weights = Weights::of(&sample());
    let mut cheapest = (compare_all::<F>(pairs, weights.total(), distance), None);
    // With fewer than distance + 1 blocks a near pair need not agree on any.
    for leading in 1..=8_u32 {
        let blocks = distance + leading;
        let tables = binomial(blocks, leading) as f64;
        if blocks as usize > weights.varying() || tables > TABLES_MAX {
            break;
        }
        let share = f64::from(leading) / f64::from(blocks);
        let width = weights.varying() as f64 * share;
        for lead_max in 4..=LEAD_MAX {
            let cut = (f64::from(lead_max) / width).min(1.0);
            let lead = weights.total() * share * cut;
            let compare = compare_all::<F>(pairs, weights.total() - lead, distance) / lead.exp2();
            let sort = len * MEMBER * scale::<F>();
            let groups = f64::from(lead_max).exp2() * GROUP;
            let cost = tables * (sort + compare + groups);
            if cost < cheapest.0 {
                cheapest = (cost, Some((blocks, leading, lead_max)));
            }
        }
    }
    let (blocks, leading, lead_max) = cheapest.1?;
    Some(Split { blocks: weights.cut(blocks)?, leading: leading as usize, lead_max })
}

/// Returns true if a split could be cheaper than comparing all pairs.
#[inline]
pub(super) fn worth_splitting<const S: usize>(sizes: [usize; S], distance: u32) -> bool {
    let members = sizes.iter().sum::<usize>() as u64;
    pairs(sizes) > members * SMALL / 2 * (u64::from(distance) + 1)
}

/// Returns the number of pairs within a set, or between two sets.
#[inline]
pub(super) fn pairs<const S: usize>(sizes: [usize; S]) -> u64 {
    match sizes.as_slice() {
        [one] => *one as u64 * (*one as u64).saturating_sub(1) / 2,
        sizes => sizes.iter().fold(1, |pairs: u64, &size| pairs.saturating_mul(size as u64)),
    }
}

/// Returns the cost of comparing all pairs of members that vary in `varying` bits.
fn compare_all<F: Fingerprint>(pairs: f64, varying: f64, distance: u32) -> f64 {
    pairs * (PAIR * scale::<F>() + HIT * near(varying, distance))
}

/// Returns the probability that two random numbers of `bits` bits are within the distance.
fn near(bits: f64, distance: u32) -> f64 {
    let mut ways = 1.0;
    let mut sum = 1.0;
    for flips in (1..=distance).map(f64::from).take_while(|&flips| flips <= bits) {
        ways *= (bits - flips + 1.0) / flips;
        sum += ways;
    }
    (sum / bits.exp2()).min(1.0)
}

/// Returns the cost factor of the width: wider members take longer to move and compare.
fn scale<F: Fingerprint>() -> f64 {
    f64::from(F::BITS) / 64.0
}
