//! Layouts: converts levels of blocks into tables.
//!
//! The block sizes of a level differ by at most one bit, larger blocks first. Every choice of
//! leading blocks becomes exactly one table.

use super::permutation::Permutation;
use super::table::Table;
use crate::bits::{self, Segment, binomial, choices};
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
        let prefix_bits = bits::width(prefix);
        let permutation = Permutation::new(bits, [prefix, rest].concat())?;
        out.push(Table::new(permutation, prefix_bits)?);
        return Ok(());
    };
    let blocks = cut(rest, level.blocks);
    for chosen in choices(level.blocks, level.lead) {
        let (mut lead, mut others) = (prefix.to_vec(), Vec::new());
        for (i, block) in blocks.iter().enumerate() {
            if chosen >> i & 1 == 1 { lead.extend(block) } else { others.extend(block) }
        }
        expand(bits, &lead, &others, deeper, out)?;
    }
    Ok(())
}

/// Cuts the positions of some segments into blocks of nearly equal size.
fn cut(segments: &[Segment], blocks: u32) -> Vec<Vec<Segment>> {
    let mut rest = segments.to_vec();
    let block = |size| {
        let (block, others) = bits::split(&rest, size);
        rest = others;
        block
    };
    sizes(bits::width(segments), blocks).map(block).collect()
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
}
