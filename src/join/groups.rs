//! Groups: splits one bucket of a table by the rest of the lead and compares each group.
//!
//! A bucket and its copies fit the second-level cache. Members are compared by a column of narrow
//! words first, and only few pairs need a full comparison.
#![allow(clippy::inline_always)]

use std::ops::Range;

use super::column::{self, Width, Word};
use super::cost;
use super::partition::{digit, exclusive_sums};
use super::sink::Sink;
use crate::fingerprint::Fingerprint;
use crate::kernel::{self, Work};

/// Maximum bits that split a bucket, so that the counts fit the first-level cache.
pub(super) const BITS_MAX: u32 = 12;

/// Buffers of one task, reused by the next.
#[derive(Debug)]
pub(super) struct Scratch<F, const S: usize> {
    sets: [Grouped<F>; S],
}

/// The members of one set that are in the bucket.
#[derive(Debug)]
struct Grouped<F> {
    members: Vec<F>,
    narrow: Vec<u32>,
    wide: Vec<u64>,
    ends: Vec<u32>,
}

impl<F: Fingerprint, const S: usize> Scratch<F, S> {
    pub(super) fn new() -> Self {
        Self { sets: std::array::from_fn(|_| Grouped::new()) }
    }
}

/// Compares all pairs of each small group of a bucket and returns the large groups.
///
/// The bucket is passed as slices of each set whose members agree on the first `skipped` bits. A
/// group agrees on `bits` more. A group is large if splitting it may cost less.
pub(super) fn compare<'s, 'p, F: Fingerprint, const S: usize>(
    pieces: [impl Iterator<Item = &'p [F]> + Clone; S],
    (skipped, bits): (u32, u32),
    scratch: &'s mut Scratch<F, S>,
    sink: &mut Sink<'_, F>,
) -> Vec<[&'s [F]; S]> {
    let large = kernel::dispatch(Compare { pieces, skipped, bits, scratch, sink });
    let group = |at: usize| scratch.sets.each_ref().map(|set| set.group(at));
    large.into_iter().map(group).collect()
}

struct Compare<'a, 'b, I, F, const S: usize> {
    pieces: [I; S],
    skipped: u32,
    bits: u32,
    scratch: &'a mut Scratch<F, S>,
    sink: &'a mut Sink<'b, F>,
}

impl<'p, I, F, const S: usize> Work for Compare<'_, '_, I, F, S>
where
    I: Iterator<Item = &'p [F]> + Clone,
    F: Fingerprint,
{
    /// The numbers of the large groups.
    type Output = Vec<usize>;

    #[inline(always)]
    fn run(self) -> Self::Output {
        let Self { pieces, skipped, bits, scratch, sink } = self;
        let width = Width::of::<F>(sink.distance());
        for (set, pieces) in scratch.sets.iter_mut().zip(pieces) {
            set.fill(pieces, skipped, bits, width);
        }
        let mut large = Vec::new();
        for at in 0..1 << bits {
            let groups = scratch.sets.each_ref().map(|set| set.group(at));
            let sizes = groups.map(<[F]>::len);
            if cost::worth_splitting(sizes, sink.distance()) {
                large.push(at);
                continue;
            }
            sink.count(cost::pairs(sizes));
            match width {
                Width::Narrow => {
                    compare_columns(groups, scratch.columns(at, |set| &set.narrow), sink);
                }
                Width::Wide => compare_columns(groups, scratch.columns(at, |set| &set.wide), sink),
                Width::Whole => compare_whole(groups, sink),
            }
            if sink.stopped() {
                break;
            }
        }
        large
    }
}

impl<F: Fingerprint, const S: usize> Scratch<F, S> {
    /// Returns a column of each set, starting at a group.
    #[inline(always)]
    fn columns<'s, W>(
        &'s self,
        group: usize,
        column: impl Fn(&'s Grouped<F>) -> &'s Vec<W>,
    ) -> [&'s [W]; S] {
        self.sets.each_ref().map(|set| &column(set)[set.range(group).start..])
    }
}

impl<F: Fingerprint> Grouped<F> {
    const fn new() -> Self {
        Self { members: Vec::new(), narrow: Vec::new(), wide: Vec::new(), ends: Vec::new() }
    }

    #[inline(always)]
    fn fill<'p>(
        &mut self,
        pieces: impl Iterator<Item = &'p [F]> + Clone,
        skipped: u32,
        bits: u32,
        width: Width,
    ) {
        let len = pieces.clone().map(<[F]>::len).sum();
        self.members.resize(len, F::ZERO);
        group(pieces, skipped, bits, &mut self.members, &mut self.ends);
        match width {
            Width::Narrow => column::fill(&self.members, &mut self.narrow),
            Width::Wide => column::fill(&self.members, &mut self.wide),
            Width::Whole => {}
        }
    }

    #[inline(always)]
    fn range(&self, group: usize) -> Range<usize> {
        let end = |at: usize| self.ends[at] as usize;
        group.checked_sub(1).map_or(0, end)..end(group)
    }

    /// Returns the members of a group.
    #[inline(always)]
    fn group(&self, at: usize) -> &[F] {
        &self.members[self.range(at)]
    }
}

/// Sorts members into groups by `bits` bits and writes where each group ends.
///
/// `to` must be as long as all pieces together.
#[inline(always)]
pub(super) fn group<'p, F: Fingerprint>(
    pieces: impl Iterator<Item = &'p [F]> + Clone,
    skipped: u32,
    bits: u32,
    to: &mut [F],
    ends: &mut Vec<u32>,
) {
    ends.clear();
    ends.resize(1 << bits, 0);
    if bits == 0 {
        ends.fill(u32::try_from(to.len()).expect("a bucket has fewer than 2^32 members"));
        gather(pieces, to);
        return;
    }
    for piece in pieces.clone() {
        for &member in piece {
            ends[digit(member, skipped, bits)] += 1;
        }
    }
    exclusive_sums(ends);
    for piece in pieces {
        for &member in piece {
            let next = &mut ends[digit(member, skipped, bits)];
            to[*next as usize] = member;
            *next += 1;
        }
    }
}

/// Copies all pieces to `to`, which must be as long as they are.
#[inline(always)]
pub(super) fn gather<'p, F: Fingerprint>(pieces: impl Iterator<Item = &'p [F]>, to: &mut [F]) {
    let mut rest = to;
    for piece in pieces {
        let (head, tail) = rest.split_at_mut(piece.len());
        head.copy_from_slice(piece);
        rest = tail;
    }
    debug_assert!(rest.is_empty(), "{} items were not written", rest.len());
}

/// Compares a group with itself, or two groups with each other, by columns that start at them.
#[inline(always)]
fn compare_columns<F: Fingerprint, W: Word, const S: usize>(
    groups: [&[F]; S],
    columns: [&[W]; S],
    sink: &mut Sink<'_, F>,
) {
    let distance = sink.distance();
    let mut offer = |a: F, b: F| {
        let found = a.distance(b);
        if found <= distance {
            sink.offer(a, b, found);
        }
    };
    match (groups.as_slice(), columns.as_slice()) {
        ([group], [column]) => {
            column::near_pairs(column, group.len(), distance, &mut |a, b| {
                offer(group[a], group[b]);
            });
        }
        ([group_a, group_b], [column_a, column_b]) => {
            let (a, b) = ((*column_a, group_a.len()), (*column_b, group_b.len()));
            column::near_across(a, b, distance, &mut |a, b| {
                offer(group_a[a], group_b[b]);
            });
        }
        _ => unreachable!("a join is of one set or two"),
    }
}

/// Compares a group with itself, or two groups with each other, by all bits.
#[inline(always)]
fn compare_whole<F: Fingerprint, const S: usize>(groups: [&[F]; S], sink: &mut Sink<'_, F>) {
    let distance = sink.distance();
    let mut compare = |member: F, others: &[F]| {
        kernel::within_inlined(others, member, distance, &mut |at, found| {
            sink.offer(member, others[at], found);
        });
    };
    match groups.as_slice() {
        [group] => {
            let mut rest = *group;
            while let Some((&member, later)) = rest.split_first() {
                compare(member, later);
                rest = later;
            }
        }
        [a, b] => a.iter().for_each(|&member| compare(member, b)),
        _ => unreachable!("a join is of one set or two"),
    }
}
