//! Layouts: converts levels of blocks into tables.
//!
//! The block sizes of a level differ by at most one bit, larger blocks first. Every choice of
//! leading blocks becomes exactly one table.

use super::permutation::{Permutation, Segment};
use super::table::Table;
use crate::error::Result;

/// One level: a cut into `blocks` blocks, of which `lead` lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Level {
    pub(super) blocks: u32,
    pub(super) lead: u32,
}

impl Level {
    /// Returns the number of ways to choose the leading blocks, saturating.
    pub(super) fn choices(self) -> u64 {
        binomial(self.blocks, self.lead)
    }
}

/// Returns the number of subsets of size `k` of `n` items, saturating.
pub(crate) fn binomial(n: u32, k: u32) -> u64 {
    if k > n {
        return 0;
    }
    let k = k.min(n - k);
    let mut out = 1_u128;
    for i in 0..k {
        // Exact: the product of i + 1 consecutive numbers is divisible by (i + 1)!.
        out = out * u128::from(n - i) / u128::from(i + 1);
        if out > u128::from(u64::MAX) {
            return u64::MAX;
        }
    }
    u64::try_from(out).unwrap_or(u64::MAX)
}

/// Returns the block sizes of a level, larger blocks first.
pub(super) fn sizes(bits: u32, blocks: u32) -> impl Iterator<Item = u32> {
    let (size, larger) = (bits / blocks, bits % blocks);
    (0..blocks).map(move |i| size + u32::from(i < larger))
}

/// Builds the tables of all levels, which must be valid.
pub(super) fn tables(bits: u32, levels: &[Level]) -> Result<Vec<Table>> {
    let mut out = Vec::new();
    expand(bits, &[], &[Segment { start: 0, len: bits }], levels, &mut out)?;
    Ok(out)
}

fn expand(
    bits: u32,
    prefix: &[Segment],
    rest: &[Segment],
    levels: &[Level],
    out: &mut Vec<Table>,
) -> Result<()> {
    let Some((level, deeper)) = levels.split_first() else {
        let prefix_bits = total(prefix);
        let permutation = Permutation::new(bits, [prefix, rest].concat())?;
        out.push(Table::new(permutation, prefix_bits)?);
        return Ok(());
    };
    let blocks = split(rest, level.blocks);
    for chosen in choices(level.blocks, level.lead) {
        let (mut lead, mut others) = (prefix.to_vec(), Vec::new());
        for (i, block) in blocks.iter().enumerate() {
            if chosen >> i & 1 == 1 { lead.extend(block) } else { others.extend(block) }
        }
        expand(bits, &lead, &others, deeper, out)?;
    }
    Ok(())
}

fn total(segments: &[Segment]) -> u32 {
    segments.iter().map(|segment| segment.len).sum()
}

/// Cuts the positions of some segments into blocks of nearly equal size.
fn split(segments: &[Segment], blocks: u32) -> Vec<Vec<Segment>> {
    let mut source = segments.iter().copied();
    let mut open = None;
    sizes(total(segments), blocks)
        .map(|mut size| {
            let mut block = Vec::new();
            while size > 0 {
                let segment = open.take().or_else(|| source.next());
                let segment = segment.expect("blocks have at most as many bits as the segments");
                let len = segment.len.min(size);
                block.push(Segment { start: segment.start, len });
                size -= len;
                if segment.len > len {
                    open = Some(Segment { start: segment.start + len, len: segment.len - len });
                }
            }
            block
        })
        .collect()
}

/// Returns every choice of `lead` blocks as a bit set, first blocks first.
fn choices(blocks: u32, lead: u32) -> Vec<u128> {
    fn extend(from: u32, blocks: u32, lead: u32, set: u128, out: &mut Vec<u128>) {
        if lead == 0 {
            out.push(set);
            return;
        }
        for block in from..=blocks - lead {
            extend(block + 1, blocks, lead - 1, set | 1 << block, out);
        }
    }
    let mut out = Vec::new();
    extend(0, blocks, lead, 0, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_have_the_requested_blocks_and_lose_no_bit() {
        for bits in [32, 64, 128] {
            for blocks in 1..=bits {
                let sizes: Vec<u32> = sizes(bits, blocks).collect();
                assert_eq!(sizes.len(), blocks as usize);
                assert_eq!(sizes.iter().sum::<u32>(), bits);
                assert!(sizes.windows(2).all(|pair| pair[0] >= pair[1]));
                assert!(sizes[0] - sizes[sizes.len() - 1] <= 1);
            }
        }
        assert_eq!(sizes(64, 9).collect::<Vec<_>>(), [8, 7, 7, 7, 7, 7, 7, 7, 7]);
        assert_eq!(sizes(64, 5).collect::<Vec<_>>(), [13, 13, 13, 13, 12]);
        assert_eq!(sizes(64, 6).collect::<Vec<_>>(), [11, 11, 11, 11, 10, 10]);
    }

    #[test]
    fn choices_are_distinct_and_ordered() {
        assert_eq!(choices(4, 2), [0b0011, 0b0101, 0b1001, 0b0110, 0b1010, 0b1100]);
        assert_eq!(choices(3, 3), [0b111]);
        assert_eq!(choices(9, 4).len(), 126);
    }

    #[test]
    fn binomials_are_exact_until_they_saturate() {
        assert_eq!(binomial(64, 3), 41_664);
        assert_eq!(binomial(64, 32), 1_832_624_140_942_590_534);
        assert_eq!(binomial(5, 6), 0);
        assert_eq!(binomial(5, 0), 1);
        assert_eq!(binomial(128, 64), u64::MAX);
    }
}
