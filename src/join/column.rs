//! Column: a word of every member, by which most pairs are told to be far apart.
//!
//! A vector holds sixteen words of 32 bits; four members at a time are compared with sixteen
//! others, so that a load serves 64 comparisons. Blocks reach beyond the end of a group rather
//! than stop short of it: what they find there is passed over.
#![allow(clippy::inline_always)]

use crate::fingerprint::Fingerprint;

/// A word that a fingerprint folds into.
pub(super) trait Word: Fingerprint {
    /// All bits where a lane of the block that begins after the first row is not after the
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

/// The columns that members may be compared by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    /// 32 bits, which vectors hold most of.
    Narrow,
    /// 64 bits, where so many of 32 would be near that little is told.
    Wide,
    /// None: so many of 64 bits would be near as well.
    Whole,
}

impl Width {
    /// Returns the narrowest column in which few random members are near.
    ///
    /// Words as wide as the fingerprint tell everything. Of random numbers of 32 bits 0.03 % are
    /// within 6 bits, of 64 bits within 18; a look at one in a thousand costs little.
    pub(super) fn of<F: Fingerprint>(distance: u32) -> Self {
        match (F::BITS, distance) {
            (32, _) | (_, 0..=6) => Self::Narrow,
            (64, _) | (_, 0..=18) => Self::Wide,
            _ => Self::Whole,
        }
    }
}

/// Others that are compared at once.
const LANES: usize = 16;
/// Members that are compared at once.
const ROWS: usize = 4;
/// What has to follow the last member.
const PADDING: usize = LANES + ROWS;
/// Writes the column of all members, with what has to follow it.
#[inline(always)]
pub(super) fn fill<F: Fingerprint, W: Word>(members: &[F], column: &mut Vec<W>) {
    column.clear();
    column.reserve(members.len() + PADDING);
    column.extend(members.iter().map(|&member| fold::<F, W>(member)));
    column.resize(members.len() + PADDING, W::ZERO);
}

/// Adds up the words of a fingerprint without carry.
///
/// Two sums differ in no more bits than the fingerprints do.
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

/// Calls `near` for each pair among the first `len` members that the column does not tell apart.
///
/// The column has to be followed by what [`fill`] puts there.
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
            // In the first block, each row is later than the lanes before it and than itself.
            look_closer(rows, block, distance, &mut |row, lane| {
                if lane >= row && from + lane < len {
                    near(first + row, from + lane);
                }
            });
        }
        near_blocks(rows, blocks, distance, &mut |row, at| {
            let other = from + LANES + at;
            // What is beyond the end belongs to others.
            if other < len {
                near(first + row, other);
            }
        });
    }
}

/// Calls `near` for each pair across two columns that they do not tell apart.
///
/// Each column comes with its number of members and has to be followed by what [`fill`] puts
/// there.
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

/// Returns the rows that begin at a member; the last ones reach into what [`fill`] puts there.
#[inline(always)]
fn rows<W: Word>(column: &[W], first: usize) -> &[W; ROWS] {
    column[first..].first_chunk().expect("the column goes on behind its last member")
}

/// Calls `near` with row and position of what is near among all blocks.
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
        look_closer(rows, &blocks[passed], distance, &mut |row, lane| near(row, at + lane));
        at += LANES;
        blocks = &blocks[passed + 1..];
    }
}

/// Tells whether any of the block is near any row.
#[inline(always)]
fn any_within<W: Word>([a, b, c, d]: [W; ROWS], block: &[W; LANES], distance: u32) -> bool {
    let near = |differing: W| differing.distance(W::ZERO) <= distance;
    block.iter().fold(false, |any, &other| {
        any | near(other ^ a) | near(other ^ b) | near(other ^ c) | near(other ^ d)
    })
}

/// [`any_within`] of the block that begins after the first row.
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

/// Calls `near` with row and lane of what is near.
#[inline(always)]
fn look_closer<W: Word>(
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
    fn every_pair_that_is_near_is_told_once_whatever_stands_behind() {
        let mut column = Vec::<u32>::new();
        for len in 0..100 {
            // Few bits, so that many are near, and others of the same kind behind the end.
            let members: Vec<u64> =
                (0..len as u64 + 30).map(|at| at.wrapping_mul(0x9e37_79b9) & 0x7f).collect();
            fill(&members, &mut column);
            for distance in 0..=8 {
                let mut told = Vec::new();
                near_pairs(&column, len, distance, &mut |a, b| told.push((a, b)));
                told.sort_unstable();
                let near = |&(a, b): &(usize, usize)| members[a].distance(members[b]) <= distance;
                let pairs = (0..len).flat_map(|a| (a + 1..len).map(move |b| (a, b)));
                assert_eq!(told, pairs.filter(near).collect::<Vec<_>>(), "{len} {distance}");
            }
        }
    }

    #[test]
    fn every_pair_across_two_columns_is_told_once() {
        let member = |at: u64| at.wrapping_mul(0x9e37_79b9) & 0x7f;
        let (mut column_a, mut column_b) = (Vec::<u64>::new(), Vec::new());
        for len_a in [0, 1, 3, 4, 5, 40] {
            for len_b in [0, 1, 15, 16, 17, 50] {
                let a: Vec<u64> = (0..len_a as u64 + 30).map(member).collect();
                let b: Vec<u64> = (100..len_b as u64 + 130).map(member).collect();
                fill(&a, &mut column_a);
                fill(&b, &mut column_b);
                let mut told = Vec::new();
                near_across((&column_a, len_a), (&column_b, len_b), 2, &mut |x, y| {
                    told.push((x, y));
                });
                told.sort_unstable();
                let pairs = (0..len_a).flat_map(|x| (0..len_b).map(move |y| (x, y)));
                let near = pairs.filter(|&(x, y)| a[x].distance(b[y]) <= 2);
                assert_eq!(told, near.collect::<Vec<_>>(), "{len_a} {len_b}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "out of range for slice")]
    fn a_column_that_ends_with_its_last_member_is_not_taken_for_one_without_pairs() {
        near_pairs(&[7_u32; 10], 10, 3, &mut |_, _| {});
    }

    #[test]
    #[should_panic(expected = "out of range for slice")]
    fn a_column_across_that_ends_with_its_last_member_is_not_taken_for_an_empty_one() {
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
    fn a_column_never_holds_two_members_farther_apart_than_they_are() {
        columns_differ_in_no_more_bits_than_members::<u32, u32>();
        columns_differ_in_no_more_bits_than_members::<u64, u32>();
        columns_differ_in_no_more_bits_than_members::<u128, u32>();
        columns_differ_in_no_more_bits_than_members::<u64, u64>();
        columns_differ_in_no_more_bits_than_members::<u128, u64>();
    }
}
