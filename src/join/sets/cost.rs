//! Cost estimate: chooses the cheapest way to compare a set from its size and distribution.
//!
//! The estimate affects only time; every way finds the same pairs.

use super::blocks::{Section, Split, Weights};
use super::{groups, partition};
use crate::bits::{binomial, share_within};
use crate::fingerprint::Fingerprint;
use crate::plan::Costs;

/// Share of the group size at which tables cost as much as comparing all pairs.
///
/// A group of n has n / 2 pairs per member, and moving a member twice costs as much as some pairs.
/// Below 1, because blocks of small groups are not full.
const FULL: f64 = 0.4;
/// Maximum bits that a table is partitioned and grouped by.
const LEAD_MAX: u32 = partition::BITS_MAX + groups::BITS_MAX;
/// Maximum number of tables; more would only pay off for huge sets at large distances.
const TABLES_MAX: f64 = 20_000.0;

/// Returns the cheapest split of one or two sets, or `None` if comparing all pairs costs less.
///
/// `sample` is called only if a split could be cheaper.
pub(super) fn cheapest_split<F: Fingerprint, const S: usize>(
    sizes: [usize; S],
    sample: impl FnOnce() -> Vec<F>,
    distance: u32,
    costs: &Costs,
) -> Option<Split> {
    if !worth_splitting(sizes, distance, smallest_split(costs)) {
        return None;
    }
    let weights = Weights::of(&sample());
    let set = Set {
        len: sizes.iter().sum::<usize>() as f64,
        pairs: pairs(sizes) as f64,
        bucket_bits: f64::from(partition::bits_for(sizes.iter().sum())),
        entropy: weights.total(),
        varying: weights.varying() as f64,
        distance,
        costs,
    };
    let mut cheapest = (set.compare_all::<F>(set.pairs, set.entropy), None);
    let mut consider = |sections: [Option<Choice>; 2]| {
        let (cost, lead_max) = set.split::<F>(sections, cheapest.0);
        if cost < cheapest.0 {
            cheapest = (cost, Some((sections, lead_max)));
        }
    };
    for first in choices(distance) {
        consider([Some(first), None]);
    }
    // A pair differs in at most `flips` bits of the first section, or in few enough of the second.
    for flips in 0..distance.div_ceil(2) {
        for first in choices(flips) {
            for second in choices(distance - 1 - flips) {
                consider([Some(first), Some(second)]);
            }
        }
    }
    let (sections, lead_max) = cheapest.1?;
    let sections = || sections.into_iter().flatten();
    let shares = |choice: Choice| vec![1.0 / f64::from(choice.leading); choice.blocks() as usize];
    let mut blocks = weights.cut(&sections().flat_map(shares).collect::<Vec<f64>>())?;
    let section = |choice: Choice| {
        let others = blocks.split_off(choice.blocks() as usize);
        let blocks = std::mem::replace(&mut blocks, others);
        Section { blocks, leading: choice.leading }
    };
    Some(Split { sections: sections().map(section).collect(), lead_max })
}

/// How a section is cut for pairs that differ in up to `flips` of its bits.
#[derive(Debug, Clone, Copy)]
struct Choice {
    flips: u32,
    leading: u32,
}

impl Choice {
    /// With fewer blocks a pair need not agree on any choice of leading ones.
    fn blocks(self) -> u32 {
        self.flips + self.leading
    }

    fn tables(self) -> f64 {
        binomial(self.blocks(), self.leading) as f64
    }

    /// Returns the weight of the section, if that of a lead is 1.
    fn weight(self) -> f64 {
        f64::from(self.blocks()) / f64::from(self.leading)
    }

    /// Returns the number of passes over the set if a lead has `width` bits.
    fn passes(self, width: f64, bucket_bits: f64) -> f64 {
        let block = width / f64::from(self.leading);
        let shared = (f64::from(partition::BITS_MAX).min(bucket_bits + 3.0) / block).floor();
        if shared < 1.0 || shared * block + 1.0 < bucket_bits || shared >= f64::from(self.leading) {
            return self.tables();
        }
        // Tables share a pass if their first blocks are the same.
        let shared = (1..=self.leading).take_while(|&count| f64::from(count) <= shared).count();
        let shared = u32::try_from(shared).expect("a table has few leading blocks");
        binomial(self.flips + shared, shared) as f64
    }
}

/// Returns the ways to cut a section.
fn choices(flips: u32) -> impl Iterator<Item = Choice> {
    let choices = (1..=8).map(move |leading| Choice { flips, leading });
    choices.take_while(|choice| choice.tables() <= TABLES_MAX)
}

/// What the cost of a split depends on.
struct Set<'a> {
    len: f64,
    pairs: f64,
    bucket_bits: f64,
    /// Entropy of all bits.
    entropy: f64,
    /// Number of bits that vary.
    varying: f64,
    distance: u32,
    costs: &'a Costs,
}

impl Set<'_> {
    /// Returns the cost of a split, if below the limit, and the best maximum bits of a lead.
    fn split<F: Fingerprint>(&self, sections: [Option<Choice>; 2], limit: f64) -> (f64, u32) {
        let sum = |of: &dyn Fn(Choice) -> f64| sections.into_iter().flatten().map(of).sum::<f64>();
        let tables = sum(&Choice::tables);
        let move_all = self.len * scale::<F>();
        let blocks = sum(&|section| section.blocks().into());
        if blocks > self.varying || tables * move_all * self.costs.gather_ns > limit {
            return (f64::INFINITY, LEAD_MAX);
        }
        let share = 1.0 / sum(&Choice::weight);
        let width = self.varying * share;
        let passes = sum(&|section| section.passes(width, self.bucket_bits));
        let cost = |lead_max: u32| {
            let lead = self.entropy * share * (f64::from(lead_max) / width).min(1.0);
            let compare = self.compare_all::<F>(self.pairs, self.entropy - lead) / lead.exp2();
            let groups = f64::from(lead_max).exp2() * self.costs.group_ns;
            let of_tables = tables * (move_all * self.costs.gather_ns + compare + groups);
            (passes * move_all * self.costs.scatter_ns + of_tables, lead_max)
        };
        let costs = (4..=LEAD_MAX).map(cost);
        costs.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((f64::INFINITY, LEAD_MAX))
    }

    /// Returns the cost of comparing all pairs of members that vary in `varying` bits.
    fn compare_all<F: Fingerprint>(&self, pairs: f64, varying: f64) -> f64 {
        pairs
            * (self.costs.pair_ns * scale::<F>()
                + self.costs.near_ns * share_within(varying, self.distance))
    }
}

/// Returns the group size, per table, below which comparing all pairs is cheaper than tables.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a saturating cast is right
pub(super) fn smallest_split(costs: &Costs) -> u64 {
    let even = 2.0 * (costs.scatter_ns + costs.gather_ns) / costs.pair_ns;
    (FULL * even).clamp(1.0, 1e6) as u64
}

/// Returns true if a split could be cheaper than comparing all pairs.
#[allow(clippy::inline_always)]
#[inline(always)]
pub(super) fn worth_splitting<const S: usize>(
    sizes: [usize; S],
    distance: u32,
    smallest: u64,
) -> bool {
    let mut members = 0;
    for size in sizes {
        members += size as u64;
    }
    pairs(sizes) > members * smallest / 2 * (u64::from(distance) + 1)
}

/// Returns the number of pairs within a set, or between two sets.
#[allow(clippy::inline_always)]
#[inline(always)]
pub(super) fn pairs<const S: usize>(sizes: [usize; S]) -> u64 {
    match sizes.as_slice() {
        [one] => *one as u64 * (*one as u64).saturating_sub(1) / 2,
        [a, b] => (*a as u64).saturating_mul(*b as u64),
        _ => unreachable!("a join is of one set or two"),
    }
}

/// Returns the cost factor of the width: wider members take longer to move and compare.
fn scale<F: Fingerprint>() -> f64 {
    f64::from(F::BITS) / 64.0
}
