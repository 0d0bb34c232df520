//! Columns: one narrow word per member, which rejects most pairs before a full comparison.
//!
//! A vector holds sixteen 32-bit words. Four members are compared with sixteen others at a time, so
//! that one load serves 64 comparisons. Blocks extend past the end of a group, and hits there are
//! ignored.
#![allow(clippy::inline_always)]

use crate::fingerprint::Fingerprint;
use crate::kernel::{self, BESIDE, Lanes, ROWS, WORDS};

/// A word that a fingerprint is folded into.
///
/// The functions are those of [`Lanes`], which has them for 32 bits only.
pub(super) trait Word: Fingerprint {
    #[inline(always)]
    fn any_near<L: Lanes>(_: L, rows: [Self; ROWS], block: &[Self; WORDS], distance: u32) -> bool {
        kernel::any_near(rows, block, distance)
    }

    #[inline(always)]
    fn any_beside<L: Lanes>(_: L, words: &[Self; BESIDE], distance: u32) -> bool {
        kernel::any_beside(words, distance)
    }

    #[inline(always)]
    fn near<L: Lanes>(_: L, rows: [Self; ROWS], block: &[Self; WORDS], distance: u32) -> u64 {
        kernel::near(rows, block, distance)
    }
}

impl Word for u32 {
    #[inline(always)]
    fn any_near<L: Lanes>(lanes: L, rows: [u32; ROWS], block: &[u32; WORDS], near: u32) -> bool {
        lanes.any_near(rows, block, near)
    }

    #[inline(always)]
    fn any_beside<L: Lanes>(lanes: L, words: &[u32; BESIDE], distance: u32) -> bool {
        lanes.any_beside(words, distance)
    }

    #[inline(always)]
    fn near<L: Lanes>(lanes: L, rows: [u32; ROWS], block: &[u32; WORDS], near: u32) -> u64 {
        lanes.near(rows, block, near)
    }
}

impl Word for u64 {}

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

/// Number of words that must follow the last member.
const PADDING: usize = WORDS + ROWS;

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

/// Pairs of positions whose words are near, until their members are compared.
#[derive(Debug)]
pub(super) struct Hits {
    pairs: Vec<(u32, u32)>,
    /// The positions of the first word of each column.
    first: (usize, usize),
}

impl Hits {
    /// Number of pairs from which they should be taken out.
    const MANY: usize = 4096;

    pub(super) const fn new() -> Self {
        Self { pairs: Vec::new(), first: (0, 0) }
    }

    /// Sets the positions of the first word of each column.
    #[inline(always)]
    pub(super) fn start_at(&mut self, first: (usize, usize)) {
        self.first = first;
    }

    #[inline(always)]
    fn push(&mut self, a: usize, b: usize) {
        let position = |at: usize| u32::try_from(at).expect("a bucket has fewer than 2^32 members");
        self.pairs.push((position(self.first.0 + a), position(self.first.1 + b)));
    }

    /// Takes all pairs out.
    #[inline(always)]
    pub(super) fn drain(&mut self) -> impl ExactSizeIterator<Item = (usize, usize)> {
        self.pairs.drain(..).map(|(a, b)| (a as usize, b as usize))
    }
}

/// Finds the pairs of the first `len` members whose words are within the distance.
///
/// The column must have the padding of [`fill`]. `full` is called when there are many hits.
#[inline(always)]
pub(super) fn near_pairs<L: Lanes, W: Word>(
    lanes: L,
    (column, len): (&[W], usize),
    distance: u32,
    hits: &mut Hits,
    full: &mut impl FnMut(&mut Hits),
) {
    // A row is compared with the other rows beside it, and with all blocks after them.
    for first in (0..len.saturating_sub(1)).step_by(WORDS) {
        let words = column[first..].first_chunk().expect("the column has padding");
        if W::any_beside(lanes, words, distance) {
            for a in first..len.min(first + WORDS) {
                for b in a + 1..len.min(a - a % ROWS + ROWS) {
                    if column[a].distance(column[b]) <= distance {
                        hits.push(a, b);
                    }
                }
            }
        }
    }
    for first in (0..len.saturating_sub(ROWS)).step_by(ROWS) {
        let from = first + ROWS;
        let to = from + (len - from).next_multiple_of(WORDS);
        let (blocks, _) = column[from..to].as_chunks();
        near_blocks(lanes, rows(column, first), blocks, distance, hits, full, &mut |row, at| {
            // Words past the end belong to another group.
            (from + at < len).then_some((first + row, from + at))
        });
    }
}

/// Finds the pairs between two columns whose words are within the distance.
///
/// Each column is passed with its number of members and must have the padding of [`fill`].
#[inline(always)]
pub(super) fn near_across<L: Lanes, W: Word>(
    lanes: L,
    [(column_a, len_a), (column_b, len_b)]: [(&[W], usize); 2],
    distance: u32,
    hits: &mut Hits,
    full: &mut impl FnMut(&mut Hits),
) {
    let (blocks, _) = column_b[..len_b.next_multiple_of(WORDS)].as_chunks();
    for first in (0..len_a).step_by(ROWS) {
        let rows = rows(column_a, first);
        near_blocks(lanes, rows, blocks, distance, hits, full, &mut |row, other| {
            (first + row < len_a && other < len_b).then_some((first + row, other))
        });
    }
}

/// Returns the rows that start at a member; the last ones may include padding.
#[inline(always)]
fn rows<W: Word>(column: &[W], first: usize) -> &[W; ROWS] {
    column[first..].first_chunk().expect("the column has padding")
}

/// Finds the hits of four rows in all blocks; `pair` returns their members.
#[inline(always)]
fn near_blocks<L: Lanes, W: Word>(
    lanes: L,
    rows: &[W; ROWS],
    blocks: &[[W; WORDS]],
    distance: u32,
    hits: &mut Hits,
    full: &mut impl FnMut(&mut Hits),
    pair: &mut impl FnMut(usize, usize) -> Option<(usize, usize)>,
) {
    for (first, blocks) in (0..).step_by(64).zip(blocks.chunks(64)) {
        // Collected first, so that the loop needs few registers.
        let mut near = 0_u64;
        if W::BITS == u32::BITS {
            for (at, block) in blocks.iter().enumerate() {
                near |= u64::from(W::any_near(lanes, *rows, block, distance)) << at;
            }
        } else {
            // Without the branch, compilers count the bits of wide words one by one for AVX2.
            let mut at = 0;
            let any_near = |block: &[W; WORDS]| W::any_near(lanes, *rows, block, distance);
            while let Some(passed) = blocks[at..].iter().position(any_near) {
                near |= 1 << (at + passed);
                at += passed + 1;
            }
        }
        while near != 0 {
            let at = near.trailing_zeros() as usize;
            near &= near - 1;
            let mut words = W::near(lanes, *rows, &blocks[at], distance);
            while words != 0 {
                let word = words.trailing_zeros() as usize;
                words &= words - 1;
                if let Some((a, b)) = pair(word / WORDS, (first + at) * WORDS + word % WORDS) {
                    hits.push(a, b);
                }
            }
        }
        if hits.pairs.len() >= Hits::MANY {
            full(hits);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::LaneWork;

    /// Finds near words with all variants of the kernel.
    struct Find<'a, W> {
        columns: &'a [(&'a [W], usize)],
        distance: u32,
        found: &'a mut Vec<(usize, usize)>,
    }

    impl<W: Word> LaneWork for Find<'_, W> {
        fn run<L: Lanes>(self, lanes: L) {
            let Self { columns, distance, found } = self;
            let mut hits = Hits::new();
            let mut take = |hits: &mut Hits| found.extend(hits.drain());
            match *columns {
                [one] => near_pairs(lanes, one, distance, &mut hits, &mut take),
                [a, b] => near_across(lanes, [a, b], distance, &mut hits, &mut take),
                _ => unreachable!("one column or two"),
            }
            take(&mut hits);
            found.sort_unstable();
        }
    }

    fn find<W: Word>(columns: &[(&[W], usize)], distance: u32) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        kernel::dispatch_lanes(Find { columns, distance, found: &mut found });
        found
    }

    #[test]
    fn every_near_pair_is_reported_once_with_any_padding() {
        let mut column = Vec::<u32>::new();
        for len in (0..100).chain([1500]) {
            // Few varying bits, so that many pairs are near, also with members past the end.
            let members: Vec<u64> =
                (0..len as u64 + 30).map(|at| at.wrapping_mul(0x9e37_79b9) & 0x7f).collect();
            fill(&members, &mut column);
            for distance in 0..=8 {
                let near = |&(a, b): &(usize, usize)| members[a].distance(members[b]) <= distance;
                let pairs = (0..len).flat_map(|a| (a + 1..len).map(move |b| (a, b)));
                let found = find(&[(&column, len)], distance);
                assert!(found == pairs.filter(near).collect::<Vec<_>>(), "{len} {distance}");
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
                let pairs = (0..len_a).flat_map(|x| (0..len_b).map(move |y| (x, y)));
                let near = pairs.filter(|&(x, y)| a[x].distance(b[y]) <= 2);
                let found = find(&[(&column_a, len_a), (&column_b, len_b)], 2);
                assert_eq!(found, near.collect::<Vec<_>>(), "{len_a} {len_b}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "the column has padding")]
    fn a_column_without_padding_panics() {
        find(&[(&[7_u32; 10], 10)], 3);
    }

    #[test]
    #[should_panic(expected = "out of range for slice")]
    fn a_second_column_without_padding_panics() {
        find(&[(&[7_u32; 30], 10), (&[7; 10], 10)], 3);
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
