//! Cost estimate: size and spread of a set become the cheapest way to compare it.
//!
//! The estimate decides about time only; every way finds the same pairs.

use super::blocks::Weights;
use super::permutation::Span;
use super::{groups, partition};
use crate::fingerprint::Fingerprint;

/// Nanoseconds to compare a pair of 64 bits, between wide and narrow vector units.
const PAIR: f64 = 0.08;
/// Nanoseconds to look at a pair that is near and to find the table that it passes from.
const HIT: f64 = 15.0;
/// Nanoseconds to bring a member of 64 bits into its bucket and then into its group.
const MEMBER: f64 = 9.0;
/// Nanoseconds to begin with a group, which may be empty.
const GROUP: f64 = 6.0;
/// Members, for each table they would stand in, whose pairs cost less than the tables.
///
/// A group of n has n / 2 pairs for each member: 2 * `MEMBER` / `PAIR`.
const SMALL: usize = 200;
/// Bits that a table is partitioned and grouped by at most.
const LEAD_MAX: u32 = partition::BITS_MAX + groups::BITS_MAX;
/// Bounds the list of tables; more would only pay for huge sets at large distances.
const TABLES_MAX: f64 = 20_000.0;

/// How to split a set so that only members of one group are compared.
#[derive(Debug)]
pub(super) struct Split {
    /// Disjoint spans of bits.
    pub(super) blocks: Vec<Span>,
    /// How many of them lead each table.
    pub(super) leading: usize,
    /// The most bits that a table is grouped by.
    pub(super) lead_max: u32,
}

/// Returns the cheapest split, or `None` when comparing all pairs costs less.
pub(super) fn cheapest_split<F: Fingerprint>(members: &[F], distance: u32) -> Option<Split> {
    if members.len() <= worth_splitting(distance) {
        return None;
    }
    let len = members.len() as f64;
    let weights = Weights::of(members);
    let mut cheapest = (compare_all::<F>(len, weights.total(), distance), None);
    // With fewer blocks than distance + 1 nothing is sure to agree.
    for leading in 1..=8_u32 {
        let blocks = distance + leading;
        let tables = binomial(blocks, leading);
        if blocks as usize > weights.varying() || tables > TABLES_MAX {
            break;
        }
        let share = f64::from(leading) / f64::from(blocks);
        let width = weights.varying() as f64 * share;
        for lead_max in 4..=LEAD_MAX {
            let cut = (f64::from(lead_max) / width).min(1.0);
            let lead = weights.total() * share * cut;
            let compare = compare_all::<F>(len, weights.total() - lead, distance) / lead.exp2();
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

/// Returns the size of a group up to which all its pairs cost less than any split could.
pub(super) fn worth_splitting(distance: u32) -> usize {
    SMALL * (distance as usize + 1)
}

/// Returns the cost of all pairs, of which some are near although they vary in so many bits.
fn compare_all<F: Fingerprint>(len: f64, varying: f64, distance: u32) -> f64 {
    len * len / 2.0 * (PAIR * scale::<F>() + HIT * near(varying, distance))
}

/// Returns the chance that two random numbers of so many bits are within the distance.
fn near(bits: f64, distance: u32) -> f64 {
    let mut ways = 1.0;
    let mut sum = 1.0;
    for flips in (1..=distance).map(f64::from).take_while(|&flips| flips <= bits) {
        ways *= (bits - flips + 1.0) / flips;
        sum += ways;
    }
    (sum / bits.exp2()).min(1.0)
}

/// Wider fingerprints take longer to move and to compare.
fn scale<F: Fingerprint>() -> f64 {
    f64::from(F::BITS) / 64.0
}

fn binomial(n: u32, k: u32) -> f64 {
    (0..k).fold(1.0, |all, at| all * f64::from(n - at) / f64::from(at + 1))
}
