//! Blocks: cuts the bits of a set into spans, and chooses which of them lead each table.
//!
//! A split has sections, and a section has blocks. The proof that every near pair belongs to exactly
//! one table is in `PROOFS.md`, "Sections".

use super::partition;
use crate::bits::{self, Bound, Digits, Owner, Segment};
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
            let mask = Segment { start: bit, len: 1 }.mask_of::<F>();
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

    /// Cuts the varying bits into spans whose weights have the ratios of `shares`.
    ///
    /// Returns `None` if fewer bits vary.
    pub(super) fn cut(&self, shares: &[f64]) -> Option<Vec<Segment>> {
        let mut ends = shares.iter().scan(0.0, |sum, share| {
            *sum += share;
            Some(*sum)
        });
        let whole = shares.iter().sum::<f64>();
        let mut start_of_next = 0.0;
        let mut spans: Vec<Segment> = Vec::with_capacity(shares.len());
        let mut weight_before = 0.0;
        let mut bits_left = self.varying();
        for (bit, &weight) in (0..).zip(&self.bits).filter(|(_, weight)| **weight > 0.0) {
            let full = weight_before + weight / 2.0 >= start_of_next;
            let last_chance = bits_left <= shares.len().saturating_sub(spans.len());
            let open = spans.len() < shares.len() && (full || last_chance);
            match spans.last_mut() {
                Some(span) if !open => span.len = bit + 1 - span.start,
                _ => {
                    spans.push(Segment { start: bit, len: 1 });
                    start_of_next = ends.next().unwrap_or(whole) / whole * self.total;
                }
            }
            weight_before += weight;
            bits_left -= 1;
        }
        (spans.len() == shares.len()).then_some(spans)
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

/// A cut of the bits into sections, after which only members of one group are compared.
#[derive(Debug)]
pub(super) struct Split {
    /// Sections with disjoint blocks.
    pub(super) sections: Vec<Section>,
    /// Maximum bits that a table is grouped by.
    pub(super) lead_max: u32,
}

/// Adjacent blocks, of which every choice of `leading` ones leads a table.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) blocks: Vec<Segment>,
    pub(super) leading: u32,
}

impl Section {
    /// Returns the number of differing bits up to which a pair agrees on leading blocks.
    fn flips(&self) -> u32 {
        self.count() - self.leading
    }

    fn count(&self) -> u32 {
        u32::try_from(self.blocks.len()).expect("a section has at most 128 blocks")
    }

    /// Returns every choice of leading blocks, in lexicographic order.
    fn choices(&self) -> impl Iterator<Item = Vec<Segment>> {
        let chosen = |set: u128| {
            let blocks = self.blocks.iter().zip(0..);
            blocks.filter(|(_, at)| set >> at & 1 == 1).map(|(&block, _)| block).collect()
        };
        bits::choices(self.count(), self.leading).into_iter().map(chosen)
    }
}

/// A copy of a set in buckets that serves some tables.
#[derive(Debug)]
pub(super) struct Pass<F> {
    /// The bits that select a bucket.
    pub(super) bucket: Digits<F>,
    pub(super) tables: Vec<Table<F>>,
}

/// The bits by which one table groups a bucket, and the pairs that belong to it.
#[derive(Debug)]
pub(super) struct Table<F> {
    pub(super) group: Digits<F>,
    pub(super) owner: Owner<F>,
}

impl Split {
    /// Returns the tables by the pass that they share, for buckets of about `bits` bits.
    ///
    /// A near pair has exactly one owner among the tables, and it agrees on the table's lead. A
    /// shorter lead makes larger groups and never loses a pair.
    pub(super) fn passes<F: Fingerprint>(&self, bits: u32) -> Vec<Pass<F>> {
        let mut passes: Vec<(Vec<Segment>, Pass<F>)> = Vec::new();
        let mut earlier: Vec<Bound<F>> = Vec::new();
        let mask = |blocks: &[Segment]| {
            blocks.iter().fold(F::ZERO, |mask, block| mask | block.mask_of::<F>())
        };
        for section in &self.sections {
            let (whole, flips) = (mask(&section.blocks), section.flips());
            for chosen in section.choices() {
                let last = chosen.last().map_or(0, |block| block.start);
                let before = section.blocks.iter().filter(|block| block.start < last);
                let skipped = before.filter(|block| !chosen.contains(block));
                let of_table =
                    [Bound::at_most(mask(&chosen), 0), Bound::at_most(whole, flips)].into_iter();
                let of_table =
                    of_table.chain(skipped.map(|block| Bound::at_least(block.mask_of(), 1)));
                let owner = Owner::new(earlier.iter().cloned().chain(of_table).collect());
                let (lead, _) = bits::split(&chosen, self.lead_max);
                debug_assert!(!lead.is_empty(), "without a lead all members are in one group");
                let (bucket, group) = bits::split(&lead, bucket_bits(&lead, bits));
                let (group, _) = bits::split(&group, super::groups::BITS_MAX);
                let table = Table { group: Digits::new(&group), owner };
                match passes.last_mut() {
                    Some((of_last, pass)) if *of_last == bucket => pass.tables.push(table),
                    _ => {
                        let pass = Pass { bucket: Digits::new(&bucket), tables: vec![table] };
                        passes.push((bucket, pass));
                    }
                }
            }
            earlier.push(Bound::at_least(whole, flips + 1));
        }
        passes.into_iter().map(|(_, pass)| pass).collect()
    }
}

/// Returns how many leading bits select a bucket: whole blocks if they have about `bits` bits.
///
/// Tables that share whole blocks then share a pass.
fn bucket_bits(lead: &[Segment], bits: u32) -> u32 {
    let most = partition::BITS_MAX.min(bits + 3);
    let whole = lead.iter().scan(0, |sum, span| {
        *sum += span.len;
        Some(*sum)
    });
    let whole = whole.take_while(|&whole| whole <= most).last().unwrap_or(0);
    if whole > 0 && whole + 1 >= bits { whole } else { bits.min(bits::width(lead)) }
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
        let widths = |shares: &[f64]| -> Vec<u32> {
            weights.cut(shares).unwrap().iter().map(|span| span.len).collect()
        };
        assert_eq!(widths(&[1.0; 4]), [16; 4]);
        assert!(widths(&[7.0; 11]).iter().all(|width| (5..=6).contains(width)));
        assert_eq!(widths(&[2.0, 1.0, 1.0]), [32, 16, 16]);
        assert_eq!(weights.cut(&[1.0; 65]), None);
    }

    #[test]
    fn constant_bits_lead_no_table() {
        let narrow: Vec<u64> = spread(512).iter().map(|x| (x >> 32) | (0xabcd << 48)).collect();
        let weights = Weights::of(&narrow);
        assert_eq!(weights.varying(), 32);
        assert_eq!(weights.cut(&[1.0; 2]).unwrap().first().unwrap().start, 32);
        for blocks in 1..=32 {
            assert_eq!(weights.cut(&vec![1.0; blocks]).unwrap().len(), blocks);
        }
        assert_eq!(Weights::of(&[7_u64]).cut(&[1.0]), None);
        assert_eq!(Weights::of::<u64>(&[]).varying(), 0);
    }

    #[test]
    fn a_few_dominant_bits_leave_no_block_empty() {
        let uneven = Weights { bits: vec![0.1, 1.0, 1.0, 0.1, 0.1, 0.0, 0.1, 0.1], total: 2.5 };
        for blocks in 1..=7 {
            let spans = uneven.cut(&vec![1.0; blocks]).unwrap();
            assert_eq!(spans.len(), blocks);
            assert!(spans.iter().all(|span| span.len > 0));
            assert!(spans.windows(2).all(|two| two[0].end() <= two[1].start), "{spans:?}");
        }
        assert_eq!(uneven.cut(&[1.0; 8]), None);
    }

    /// Calls `check` with every choice of up to `flips` bits.
    fn flipped(flips: u32, from: u32, so_far: u64, check: &mut impl FnMut(u64)) {
        check(so_far);
        for bit in (from..64).filter(|_| flips > 0) {
            flipped(flips - 1, bit + 1, so_far | 1 << bit, check);
        }
    }

    #[test]
    fn any_few_flips_belong_to_exactly_one_table() {
        let weights = Weights::of(&spread(512));
        for (sections, lead_max, bits) in [
            (&[(4, 1)][..], 32, 11),
            (&[(5, 2)], 16, 4),
            (&[(3, 2), (3, 2)], 22, 11),
            (&[(2, 1), (3, 2)], 22, 8),
            (&[(1, 1), (4, 2)], 23, 9),
            (&[(1, 1), (2, 1), (1, 1)], 23, 9),
        ] {
            let shares = sections.iter().flat_map(|&(blocks, _)| vec![1.0; blocks]);
            let mut spans = weights.cut(&shares.collect::<Vec<f64>>()).unwrap();
            let split = sections.iter().map(|&(blocks, leading)| {
                let others = spans.split_off(blocks);
                Section { blocks: std::mem::replace(&mut spans, others), leading }
            });
            let split = Split { sections: split.collect(), lead_max };
            let passes = split.passes::<u64>(bits);
            let tables = || {
                passes.iter().flat_map(|pass| pass.tables.iter().map(|table| (&pass.bucket, table)))
            };
            assert!(tables().all(|(bucket, table)| {
                let width = bucket.bits() + table.group.bits();
                bucket.bits() > 0 && width <= lead_max
            }));
            flipped(3, 0, 0, &mut |flips| {
                let mut owners = tables().filter(|(_, table)| table.owner.owns(flips));
                let (bucket, table) = owners.next().expect("every near pair has a table");
                assert_eq!((bucket.of(flips), table.group.of(flips)), (0, 0), "{flips:#x}");
                assert!(owners.next().is_none(), "{sections:?} flips {flips:#018x}");
            });
        }
    }
}
