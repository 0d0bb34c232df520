//! Column: 32 bits of every member, by which most pairs are told to be far apart.
//!
//! A vector holds sixteen of them; four members at a time are compared with sixteen others, so
//! that a load serves 64 comparisons. Blocks reach beyond the end of a group rather than stop
//! short of it: what they find there is passed over.
#![allow(clippy::inline_always)]

use crate::fingerprint::Fingerprint;

/// The largest distance at which two random numbers of 32 bits are seldom near.
pub(super) const DISTANCE_MAX: u32 = 8;
/// Others that are compared at once.
const LANES: usize = 16;
/// Members that are compared at once.
const ROWS: usize = 4;
/// What has to follow the last member.
const PADDING: usize = LANES + ROWS;
/// All bits where a lane of the block that begins after the first row is not after the others.
const NOT_LATER: [[u32; LANES]; ROWS - 1] = {
    let mut masks = [[0; LANES]; ROWS - 1];
    masks[0][0] = u32::MAX;
    (masks[1][0], masks[1][1]) = (u32::MAX, u32::MAX);
    (masks[2][0], masks[2][1], masks[2][2]) = (u32::MAX, u32::MAX, u32::MAX);
    masks
};

/// Writes the column of all members, with what has to follow it.
#[inline(always)]
pub(super) fn fill<F: Fingerprint>(members: &[F], column: &mut Vec<u32>) {
    column.clear();
    column.reserve(members.len() + PADDING);
    column.extend(members.iter().map(|&member| fold(member)));
    column.resize(members.len() + PADDING, 0);
}

/// Adds up the words of a fingerprint without carry.
///
/// Two sums differ in no more bits than the fingerprints do.
#[inline(always)]
fn fold<F: Fingerprint>(member: F) -> u32 {
    let wide = if F::BITS == 128 { member ^ (member >> (F::BITS / 2)) } else { member };
    let wide = if F::BITS >= 64 { wide ^ (wide >> (32 % F::BITS)) } else { wide };
    u32::truncate(wide.widen())
}

/// Calls `near` for each pair among the first `len` members that the column does not tell apart.
///
/// The column has to be followed by what [`fill`] puts there.
#[inline(always)]
pub(super) fn near_pairs(
    column: &[u32],
    len: usize,
    distance: u32,
    near: &mut impl FnMut(usize, usize),
) {
    for first in (0..len.saturating_sub(1)).step_by(ROWS) {
        let from = first + 1;
        let to = from + (len - from).next_multiple_of(LANES);
        let rows = column.get(first..).and_then(|rows| rows.first_chunk::<ROWS>());
        let (Some(rows), Some(others)) = (rows, column.get(from..to)) else { return };
        let (blocks, _) = others.as_chunks::<LANES>();
        let Some((block, blocks)) = blocks.split_first() else { return };
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
pub(super) fn near_across(
    (column_a, len_a): (&[u32], usize),
    (column_b, len_b): (&[u32], usize),
    distance: u32,
    near: &mut impl FnMut(usize, usize),
) {
    let others = column_b.get(..len_b.next_multiple_of(LANES)).unwrap_or_default();
    let (blocks, _) = others.as_chunks::<LANES>();
    for first in (0..len_a).step_by(ROWS) {
        let rows = column_a.get(first..).and_then(|rows| rows.first_chunk::<ROWS>());
        let Some(rows) = rows else { return };
        near_blocks(rows, blocks, distance, &mut |row, other| {
            if first + row < len_a && other < len_b {
                near(first + row, other);
            }
        });
    }
}

/// Calls `near` with row and position of what is near among all blocks.
#[inline(always)]
fn near_blocks(
    rows: &[u32; ROWS],
    mut blocks: &[[u32; LANES]],
    distance: u32,
    near: &mut impl FnMut(usize, usize),
) {
    let mut at = 0;
    while let Some(passed) = blocks.iter().position(|block| any_within(*rows, block, distance)) {
        at += passed * LANES;
        let (_, rest) = blocks.split_at(passed);
        let Some((block, rest)) = rest.split_first() else { return };
        look_closer(rows, block, distance, &mut |row, lane| near(row, at + lane));
        at += LANES;
        blocks = rest;
    }
}

/// Tells whether any of the block is near any row.
#[inline(always)]
fn any_within([a, b, c, d]: [u32; ROWS], block: &[u32; LANES], distance: u32) -> bool {
    let near = |differing: u32| differing.count_ones() <= distance;
    block.iter().fold(false, |any, &other| {
        any | near(other ^ a) | near(other ^ b) | near(other ^ c) | near(other ^ d)
    })
}

/// [`any_within`] of the block that begins after the first row.
#[inline(always)]
fn any_later_within([a, b, c, d]: [u32; ROWS], block: &[u32; LANES], distance: u32) -> bool {
    let near = |differing: u32| differing.count_ones() <= distance;
    let [after_a, after_b, after_c] = &NOT_LATER;
    let masks = after_a.iter().zip(after_b).zip(after_c);
    block.iter().zip(masks).fold(false, |any, (&other, ((after_a, after_b), after_c))| {
        any | near(other ^ a)
            | near((other ^ b) | after_a)
            | near((other ^ c) | after_b)
            | near((other ^ d) | after_c)
    })
}

/// Calls `near` with row and lane of what is near.
#[inline(always)]
fn look_closer(
    rows: &[u32; ROWS],
    block: &[u32; LANES],
    distance: u32,
    near: &mut impl FnMut(usize, usize),
) {
    for (at, row) in rows.iter().enumerate() {
        let near_lane = |other: u32| u32::from((row ^ other).count_ones() <= distance);
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
        let mut column = Vec::new();
        for len in 0..100 {
            // Few bits, so that many are near, and others of the same kind behind the end.
            let members: Vec<u64> =
                (0..len as u64 + 30).map(|at| at.wrapping_mul(0x9e37_79b9) & 0x7f).collect();
            fill(&members, &mut column);
            for distance in 0..=DISTANCE_MAX {
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
        let (mut column_a, mut column_b) = (Vec::new(), Vec::new());
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

    fn columns_differ_in_no_more_bits_than_members<F: Fingerprint>() {
        let member = F::truncate(0x0123_4567_89ab_cdef_0f1e_2d3c_4b5a_6978);
        for a in 0..F::BITS {
            for b in 0..F::BITS {
                let flips = (F::truncate(1) << a) ^ (F::truncate(1) << b);
                let found = fold(member).distance(fold(member ^ flips));
                assert!(found <= flips.distance(F::ZERO), "{a} {b}");
                assert!(a == b || a % 32 == b % 32 || found == 2, "{a} {b}");
            }
        }
    }

    #[test]
    fn a_column_never_holds_two_members_farther_apart_than_they_are() {
        columns_differ_in_no_more_bits_than_members::<u32>();
        columns_differ_in_no_more_bits_than_members::<u64>();
        columns_differ_in_no_more_bits_than_members::<u128>();
    }
}
