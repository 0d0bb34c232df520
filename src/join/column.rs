//! Columns: one narrow word per member, which rejects most pairs before a full comparison.
//!
//! A vector holds sixteen 32-bit words. Four members are compared with sixteen others at a time, so
//! that one load serves 64 comparisons. Blocks extend past the end of a group, and hits there are
//! ignored.
#![allow(clippy::inline_always)]

use crate::fingerprint::Fingerprint;

/// A word that a fingerprint is folded into.
pub(super) trait Word: Fingerprint {
    /// Masks for the block that starts after the first row: all ones where a lane is not after the
    /// other rows.
    const NOT_LATER: [[Self; LANES]; ROWS - 1];
}

macro_rules! word {
    ($int:ty) => {
        impl Word for $int {
            const NOT_LATER: [[Self; LANES]; ROWS - 1] = {
                let mut masks = [[0; LANES]; ROWS - 1];
                masks[0][0] = Self::MAX;
                (masks[1][0], masks[1][1]) = (Self::MAX, Self::MAX);
                (masks[2][0], masks[2][1], masks[2][2]) = (Self::MAX, Self::MAX, Self::MAX);
                masks
            };
        }
    };
}

word!(u32);
word!(u64);

/// The column width that members are compared by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    /// 32 bits, of which a vector holds the most.
    Narrow,
    /// 64 bits, if too many 32-bit words would be near.
    Wide,
    /// No column, if too many 64-bit words would be near too.
    Whole,
}

impl Width {
    /// Returns the narrowest column in which few random members are near.
    ///
    /// A column as wide as the fingerprint is exact. Of random words of 32 bits 0.03 % are within 6
    /// bits, and of 64 bits within 18. A full comparison of one pair in a thousand costs little.
    pub(super) fn of<F: Fingerprint>(distance: u32) -> Self {
        match (F::BITS, distance) {
            (32, _) | (_, 0..=6) => Self::Narrow,
            (64, _) | (_, 0..=18) => Self::Wide,
            _ => Self::Whole,
        }
    }
}

/// Number of other members in a block.
const LANES: usize = 16;
/// Number of members that are compared with a block at once.
const ROWS: usize = 4;
/// Number of words that must follow the last member.
const PADDING: usize = LANES + ROWS;
/// Writes the column of all members, and the padding after it.
#[inline(always)]
pub(super) fn fill<F: Fingerprint, W: Word>(members: &[F], column: &mut Vec<W>) {
    column.clear();
    column.reserve(members.len() + PADDING);
    column.extend(members.iter().map(|&member| fold::<F, W>(member)));
    column.resize(members.len() + PADDING, W::ZERO);
}

/// Folds a fingerprint by XOR of its words.
///
/// Two folded words differ in at most as many bits as the fingerprints.
#[inline(always)]
fn fold<F: Fingerprint, W: Word>(member: F) -> W {
    let mut folded = member;
    let mut bits = F::BITS;
    while bits > W::BITS {
        bits /= 2;
        folded = folded ^ (folded >> bits);
    }
    W::truncate(folded.widen())
}

/// Calls `near` for each pair of the first `len` members whose words are within the distance.
///
/// The column must have the padding of [`fill`].
#[inline(always)]
pub(super) fn near_pairs<W: Word>(
    column: &[W],
    len: usize,
    distance: u32,
    near: &mut impl FnMut(usize, usize),
) {
    for first in (0..len.saturating_sub(1)).step_by(ROWS) {
        let from = first + 1;
        let to = from + (len - from).next_multiple_of(LANES);
        let rows = rows(column, first);
        let (blocks, _) = column[from..to].as_chunks::<LANES>();
        let (block, blocks) = blocks.split_first().expect("a row is before the last member");
        if any_later_within(*rows, block, distance) {
            // In the first block each row must skip itself and the lanes before it.
            test_block(rows, block, distance, &mut |row, lane| {
                if lane >= row && from + lane < len {
                    near(first + row, from + lane);
                }
            });
        }
        near_blocks(rows, blocks, distance, &mut |row, at| {
            let other = from + LANES + at;
            // Lanes past the end belong to another group.
            if other < len {
                near(first + row, other);
            }
        });
    }
}

/// Calls `near` for each pair between two columns whose words are within the distance.
///
/// Each column is passed with its number of members and must have the padding of [`fill`].
#[inline(always)]
pub(super) fn near_across<W: Word>(
    (column_a, len_a): (&[W], usize),
    (column_b, len_b): (&[W], usize),
    distance: u32,
    near: &mut impl FnMut(usize, usize),
) {
    let (blocks, _) = column_b[..len_b.next_multiple_of(LANES)].as_chunks::<LANES>();
    for first in (0..len_a).step_by(ROWS) {
        near_blocks(rows(column_a, first), blocks, distance, &mut |row, other| {
            if first + row < len_a && other < len_b {
                near(first + row, other);
            }
        });
    }
}

/// Returns the rows that start at a member; the last ones may include padding.
#[inline(always)]
fn rows<W: Word>(column: &[W], first: usize) -> &[W; ROWS] {
    column[first..].first_chunk().expect("the column has padding")
}

/// Calls `near` with the row and position of each hit in all blocks.
#[inline(always)]
fn near_blocks<W: Word>(
    rows: &[W; ROWS],
    mut blocks: &[[W; LANES]],
    distance: u32,
    near: &mut impl FnMut(usize, usize),
) {
    let mut at = 0;
    while let Some(passed) = blocks.iter().position(|block| any_within(*rows, block, distance)) {
        at += passed * LANES;
        test_block(rows, &blocks[passed], distance, &mut |row, lane| near(row, at + lane));
        at += LANES;
        blocks = &blocks[passed + 1..];
    }
}

/// Returns true if any lane of the block is near any row.
#[inline(always)]
fn any_within<W: Word>([a, b, c, d]: [W; ROWS], block: &[W; LANES], distance: u32) -> bool {
    let near = |differing: W| differing.distance(W::ZERO) <= distance;
    block.iter().fold(false, |any, &other| {
        any | near(other ^ a) | near(other ^ b) | near(other ^ c) | near(other ^ d)
    })
}

/// [`any_within`] for the block that starts after the first row.
#[inline(always)]
fn any_later_within<W: Word>([a, b, c, d]: [W; ROWS], block: &[W; LANES], distance: u32) -> bool {
    let near = |differing: W| differing.distance(W::ZERO) <= distance;
    let [after_a, after_b, after_c] = &W::NOT_LATER;
    let masks = after_a.iter().zip(after_b).zip(after_c);
    block.iter().zip(masks).fold(false, |any, (&other, ((&after_a, &after_b), &after_c))| {
        any | near(other ^ a)
            | near((other ^ b) | after_a)
            | near((other ^ c) | after_b)
            | near((other ^ d) | after_c)
    })
}

/// Calls `near` with the row and lane of each hit.
#[inline(always)]
fn test_block<W: Word>(
    rows: &[W; ROWS],
    block: &[W; LANES],
    distance: u32,
    near: &mut impl FnMut(usize, usize),
) {
    for (at, &row) in rows.iter().enumerate() {
        let near_lane = |other: W| u32::from(row.distance(other) <= distance);
        let hits = (0..).zip(block);
        let mut hits = hits.fold(0, |hits, (lane, &other)| hits | (near_lane(other) << lane));
        while hits != 0 {
            let lane = hits.trailing_zeros() as usize;
            hits &= hits - 1;
            near(at, lane);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_near_pair_is_reported_once_with_any_padding() {
        let mut column = Vec::<u32>::new();
        for len in 0..100 {
            // Few varying bits, so that many pairs are near, also with members past the end.
            let members: Vec<u64> =
                (0..len as u64 + 30).map(|at| at.wrapping_mul(0x9e37_79b9) & 0x7f).collect();
            fill(&members, &mut column);
            for distance in 0..=8 {
                let mut found = Vec::new();
                near_pairs(&column, len, distance, &mut |a, b| found.push((a, b)));
                found.sort_unstable();
                let near = |&(a, b): &(usize, usize)| members[a].distance(members[b]) <= distance;
                let pairs = (0..len).flat_map(|a| (a + 1..len).map(move |b| (a, b)));
                assert_eq!(found, pairs.filter(near).collect::<Vec<_>>(), "{len} {distance}");
            }
        }
    }

    #[test]
    fn every_near_pair_between_two_columns_is_reported_once() {
        let member = |at: u64| at.wrapping_mul(0x9e37_79b9) & 0x7f;
        let (mut column_a, mut column_b) = (Vec::<u64>::new(), Vec::new());
        for len_a in [0, 1, 3, 4, 5, 40] {
            for len_b in [0, 1, 15, 16, 17, 50] {
                let a: Vec<u64> = (0..len_a as u64 + 30).map(member).collect();
                let b: Vec<u64> = (100..len_b as u64 + 130).map(member).collect();
                fill(&a, &mut column_a);
                fill(&b, &mut column_b);
                let mut found = Vec::new();
                near_across((&column_a, len_a), (&column_b, len_b), 2, &mut |x, y| {
                    found.push((x, y));
                });
                found.sort_unstable();
                let pairs = (0..len_a).flat_map(|x| (0..len_b).map(move |y| (x, y)));
                let near = pairs.filter(|&(x, y)| a[x].distance(b[y]) <= 2);
                assert_eq!(found, near.collect::<Vec<_>>(), "{len_a} {len_b}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "out of range for slice")]
    fn a_column_without_padding_panics() {
        near_pairs(&[7_u32; 10], 10, 3, &mut |_, _| {});
    }

    #[test]
    #[should_panic(expected = "out of range for slice")]
    fn a_second_column_without_padding_panics() {
        let column = [7_u32; 10];
        near_across((&[7; 30], 10), (&column, 10), 3, &mut |_, _| {});
    }

    fn columns_differ_in_no_more_bits_than_members<F: Fingerprint, W: Word>() {
        let member = F::truncate(0x0123_4567_89ab_cdef_0f1e_2d3c_4b5a_6978);
        for a in 0..F::BITS {
            for b in 0..F::BITS {
                let flips = (F::truncate(1) << a) ^ (F::truncate(1) << b);
                let found = fold::<F, W>(member).distance(fold(member ^ flips));
                assert!(found <= flips.distance(F::ZERO), "{a} {b}");
                assert!(a == b || a % W::BITS == b % W::BITS || found == 2, "{a} {b}");
            }
        }
    }

    #[test]
    fn folded_words_are_never_farther_apart_than_their_members() {
        columns_differ_in_no_more_bits_than_members::<u32, u32>();
        columns_differ_in_no_more_bits_than_members::<u64, u32>();
        columns_differ_in_no_more_bits_than_members::<u128, u32>();
        columns_differ_in_no_more_bits_than_members::<u64, u64>();
        columns_differ_in_no_more_bits_than_members::<u128, u64>();
    }
}
