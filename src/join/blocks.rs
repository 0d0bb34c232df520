//! Blocks: cuts the bits of a set into spans that split it about equally.
//!
//! Two fingerprints within k bits differ in at most k of m disjoint blocks. So they agree on all
//! blocks of at least one choice of m - k, for any choice of spans.

use super::permutation::{Permutation, Span};
use crate::fingerprint::Fingerprint;

/// Sample size for choosing the blocks of a set.
const SAMPLE: usize = 512;

/// How well each bit separates the members of a set.
///
/// The weight of a bit is its collision entropy: 0 for a constant bit, 1 for a bit set in half of
/// the members. Two members agree on the bit with probability 2^-weight.
#[derive(Debug, Clone)]
pub(super) struct Weights {
    bits: Vec<f64>,
    total: f64,
}

impl Weights {
    /// Computes the weight of each bit from a sample.
    pub(super) fn of<F: Fingerprint>(sample: &[F]) -> Self {
        let weight = |bit: u32| {
            let mask = Span { start: bit, end: bit + 1 }.mask::<F>();
            let ones = sample.iter().filter(|&&member| member & mask != F::ZERO).count();
            let share = ones as f64 / sample.len().max(1) as f64;
            let weight = -(share * share + (1.0 - share) * (1.0 - share)).log2();
            weight.max(0.0)
        };
        let mut bits: Vec<f64> = (0..F::BITS).map(weight).collect();
        // Bits that rarely vary would only widen the leads.
        let largest = bits.iter().copied().fold(0.0, f64::max);
        for weight in bits.iter_mut().filter(|weight| **weight < largest / 16.0) {
            *weight = 0.0;
        }
        let total = bits.iter().sum();
        Self { bits, total }
    }

    /// Returns the sum over all bits.
    pub(super) fn total(&self) -> f64 {
        self.total
    }

    /// Returns the number of bits that vary in the sample.
    pub(super) fn varying(&self) -> usize {
        self.bits.iter().filter(|&&weight| weight > 0.0).count()
    }

    /// Cuts the varying bits into `blocks` spans of about equal weight; `None` if there are fewer.
    pub(super) fn cut(&self, blocks: u32) -> Option<Vec<Span>> {
        let blocks = blocks as usize;
        let share = self.total / blocks as f64;
        let mut spans: Vec<Span> = Vec::with_capacity(blocks);
        let mut weight_before = 0.0;
        let mut bits_left = self.varying();
        for (bit, &weight) in (0..).zip(&self.bits).filter(|(_, weight)| **weight > 0.0) {
            let full = weight_before + weight / 2.0 >= spans.len() as f64 * share;
            let last_chance = bits_left <= blocks.saturating_sub(spans.len());
            let open = spans.len() < blocks && (full || last_chance);
            match spans.last_mut() {
                Some(span) if !open => span.end = bit + 1,
                _ => spans.push(Span { start: bit, end: bit + 1 }),
            }
            weight_before += weight;
            bits_left -= 1;
        }
        (spans.len() == blocks).then_some(spans)
    }
}

/// Returns a sample of all sets; a member may occur twice.
///
/// Positions are scattered, because equal steps would align with regular sets.
pub(super) fn sample<F: Fingerprint>(sets: &[&[F]]) -> Vec<F> {
    let golden_ratio = 0x9e37_79b9_7f4a_7c15_u64;
    let scattered = |members: &&[F]| {
        let members = *members;
        (1..=SAMPLE as u64)
            .map(move |step| u128::from(step.wrapping_mul(golden_ratio)) * members.len() as u128)
            .map(|scaled| usize::try_from(scaled >> 64).expect("it is below a length"))
            // An empty set has no members.
            .filter_map(|at| members.get(at).copied())
            .collect::<Vec<_>>()
    };
    sets.iter().flat_map(scattered).collect()
}

/// One sorted copy of a set, given by the blocks that lead it.
#[derive(Debug)]
pub(super) struct Table<F> {
    /// Moves the leading bits to the front.
    pub(super) permutation: Permutation<F>,
    /// Number of leading bits; members that agree on them are compared.
    pub(super) lead: u32,
    /// Mask of the leading blocks, before the permutation.
    pub(super) blocks: F,
    /// Masks of the blocks skipped before the last leading block.
    pub(super) skipped: Vec<F>,
}

/// Returns a table for each choice of `leading` blocks, with at most `lead_max` leading bits.
///
/// Each pair that agrees on enough blocks has exactly one table that its first equal blocks lead:
/// it agrees on the table's blocks and differs in every skipped one. A shorter lead makes larger
/// groups and never loses a pair.
pub(super) fn tables<F: Fingerprint>(
    blocks: &[Span],
    leading: usize,
    lead_max: u32,
) -> Vec<Table<F>> {
    let mut tables = Vec::new();
    choose(blocks, leading, &mut Vec::new(), &mut |chosen| {
        let last = chosen.last().map_or(0, |span| span.start);
        let skipped = blocks.iter().filter(|span| span.start < last && !chosen.contains(span));
        let mut lead = 0;
        let mut spans = chosen.to_vec();
        for span in &mut spans {
            span.end = span.end.min(span.start + (lead_max - lead));
            lead += span.width();
        }
        spans.retain(|span| span.width() > 0);
        debug_assert!(lead > 0, "without a leading bit all members are in one group");
        tables.push(Table {
            permutation: Permutation::leading_with(&spans),
            lead,
            blocks: chosen.iter().fold(F::ZERO, |mask, span| mask | span.mask()),
            skipped: skipped.map(|span| span.mask()).collect(),
        });
    });
    tables
}

/// Calls `visit` with every choice of `count` spans, in lexicographic order.
fn choose(spans: &[Span], count: usize, chosen: &mut Vec<Span>, visit: &mut impl FnMut(&[Span])) {
    if count == 0 {
        return visit(chosen);
    }
    let mut rest = spans;
    while let Some((&first, others)) = rest.split_first() {
        if rest.len() < count {
            return;
        }
        chosen.push(first);
        choose(others, count - 1, chosen, visit);
        chosen.pop();
        rest = others;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(len: u64) -> Vec<u64> {
        let mixed = |x: u64| (x ^ (x >> 31)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (1..=len).map(|at| mixed(mixed(at << 20))).map(|x| x ^ (x >> 32)).collect()
    }

    #[test]
    fn even_sets_are_cut_into_even_blocks() {
        let weights = Weights::of(&spread(512));
        assert!(weights.total() > 63.0);
        let widths = |blocks| -> Vec<u32> {
            weights.cut(blocks).unwrap().iter().map(|span| span.width()).collect()
        };
        assert_eq!(widths(4), [16; 4]);
        assert!(widths(11).iter().all(|width| (5..=6).contains(width)));
        assert_eq!(weights.cut(65), None);
    }

    #[test]
    fn constant_bits_lead_no_table() {
        let narrow: Vec<u64> = spread(512).iter().map(|x| (x >> 32) | (0xabcd << 48)).collect();
        let weights = Weights::of(&narrow);
        assert_eq!(weights.varying(), 32);
        assert_eq!(weights.cut(2).unwrap().first().unwrap().start, 32);
        for blocks in 1..=32 {
            assert_eq!(weights.cut(blocks).unwrap().len(), blocks as usize);
        }
        assert_eq!(Weights::of(&[7_u64]).cut(1), None);
        assert_eq!(Weights::of::<u64>(&[]).varying(), 0);
    }

    #[test]
    fn a_few_dominant_bits_leave_no_block_empty() {
        let uneven = Weights { bits: vec![0.1, 1.0, 1.0, 0.1, 0.1, 0.0, 0.1, 0.1], total: 2.5 };
        for blocks in 1..=7 {
            let spans = uneven.cut(blocks).unwrap();
            assert_eq!(spans.len(), blocks as usize);
            assert!(spans.iter().all(|span| span.width() > 0));
            assert!(spans.windows(2).all(|two| two[0].end <= two[1].start), "{spans:?}");
        }
        assert_eq!(uneven.cut(8), None);
    }

    #[test]
    fn any_few_flips_belong_to_exactly_one_table() {
        let weights = Weights::of(&spread(512));
        for (blocks, leading, lead_max) in [(3, 1, 32), (4, 2, 32), (5, 3, 16), (6, 4, 24)] {
            let cut = weights.cut(blocks).unwrap();
            let tables = tables::<u64>(&cut, leading, lead_max);
            assert!(tables.iter().all(|table| (1..=lead_max).contains(&table.lead)));
            for a in 0..64 {
                for b in 0..64 {
                    let flips = (1_u64 << a) | (1 << b);
                    let owners = tables.iter().filter(|table| {
                        table.blocks & flips == 0 && table.skipped.iter().all(|x| x & flips != 0)
                    });
                    let leads = owners
                        .map(|table| table.permutation.apply(flips) & u64::high_mask(table.lead));
                    let leads: Vec<_> = leads.collect();
                    assert_eq!(leads, [0], "{blocks} blocks, flips {flips:#018x}");
                }
            }
        }
    }
}
