//! Cost estimate: chooses the cheapest way to compare a set from its size and distribution.
//!
//! The estimate affects only time; every way finds the same pairs.

use super::blocks::{Section, Split, Weights};
use super::{groups, partition};
use crate::bits::{binomial, share_within};
use crate::fingerprint::Fingerprint;

/// Nanoseconds to compare one pair of 64 bits; between wide and narrow vector units.
const PAIR: f64 = 0.03;
/// Nanoseconds to verify a near pair and to find the table that emits it.
const HIT: f64 = 15.0;
/// Nanoseconds to move a 64-bit member into its bucket.
const BUCKET_MEMBER: f64 = 8.0;
/// Nanoseconds to move it from there into its group.
const GROUP_MEMBER: f64 = 7.0;
/// Nanoseconds to start a group, even an empty one.
const GROUP: f64 = 10.0;
/// Group size, per table, below which comparing all pairs is cheaper than tables.
///
/// A group of n has n / 2 pairs per member. Below about 2 * (`BUCKET_MEMBER` + `GROUP_MEMBER`) /
/// `PAIR`; fewer, because blocks of small groups are not full.
const SMALL: u64 = 400;
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
) -> Option<Split> {
    if !worth_splitting(sizes, distance) {
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
struct Set {
    len: f64,
    pairs: f64,
    bucket_bits: f64,
    /// Entropy of all bits.
    entropy: f64,
    /// Number of bits that vary.
    varying: f64,
    distance: u32,
}

impl Set {
    /// Returns the cost of a split, if below the limit, and the best maximum bits of a lead.
    fn split<F: Fingerprint>(&self, sections: [Option<Choice>; 2], limit: f64) -> (f64, u32) {
        let sum = |of: &dyn Fn(Choice) -> f64| sections.into_iter().flatten().map(of).sum::<f64>();
        let tables = sum(&Choice::tables);
        let move_all = self.len * scale::<F>();
        let blocks = sum(&|section| section.blocks().into());
        if blocks > self.varying || tables * move_all * GROUP_MEMBER > limit {
            return (f64::INFINITY, LEAD_MAX);
        }
        let share = 1.0 / sum(&Choice::weight);
        let width = self.varying * share;
        let passes = sum(&|section| section.passes(width, self.bucket_bits));
        let cost = |lead_max: u32| {
            let lead = self.entropy * share * (f64::from(lead_max) / width).min(1.0);
            let compare = self.compare_all::<F>(self.pairs, self.entropy - lead) / lead.exp2();
            let groups = f64::from(lead_max).exp2() * GROUP;
            let of_tables = tables * (move_all * GROUP_MEMBER + compare + groups);
            (passes * move_all * BUCKET_MEMBER + of_tables, lead_max)
        };
        let costs = (4..=LEAD_MAX).map(cost);
        costs.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((f64::INFINITY, LEAD_MAX))
    }

    /// Returns the cost of comparing all pairs of members that vary in `varying` bits.
    fn compare_all<F: Fingerprint>(&self, pairs: f64, varying: f64) -> f64 {
        pairs * (PAIR * scale::<F>() + HIT * share_within(varying, self.distance))
    }
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

/// Returns the cost factor of the width: wider members take longer to move and compare.
fn scale<F: Fingerprint>() -> f64 {
    f64::from(F::BITS) / 64.0
}
