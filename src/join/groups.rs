//! Groups: one bucket of a table is split by the rest of the lead, and each group compared.
//!
//! A bucket and all that is made of it stay in the second-level cache. Members are compared by a
//! column of 32 bits first, which a vector holds twice as many of, and seldom looked at whole.
#![allow(clippy::inline_always)]

use super::partition::{begin_at_sums, digit};
use super::sink::Sink;
use super::{column, cost};
use crate::fingerprint::Fingerprint;
use crate::kernel::{self, Work};

/// Bits by which a bucket is split at most: their counts stay in the first-level cache.
pub(super) const BITS_MAX: u32 = 12;

/// Memory of one task, used again by the next.
#[derive(Debug)]
pub(super) struct Scratch<F, const S: usize> {
    sets: [Grouped<F>; S],
}

/// The part of one set that is in the bucket.
#[derive(Debug)]
struct Grouped<F> {
    members: Vec<F>,
    column: Vec<u32>,
    ends: Vec<u32>,
}

impl<F: Fingerprint, const S: usize> Scratch<F, S> {
    pub(super) fn new() -> Self {
        let none = |_| Grouped { members: Vec::new(), column: Vec::new(), ends: Vec::new() };
        Self { sets: std::array::from_fn(none) }
    }
}

/// Compares all pairs of each small group of a bucket and returns the large groups.
///
/// The bucket comes as slices of each set that agree on the first `skipped` bits; groups are what
/// agrees on `bits` more. A group is large when splitting it may cost less.
pub(super) fn compare<'s, 'p, F: Fingerprint, const S: usize>(
    pieces: [impl Iterator<Item = &'p [F]> + Clone; S],
    (skipped, bits): (u32, u32),
    scratch: &'s mut Scratch<F, S>,
    sink: &mut Sink<'_, F>,
) -> Vec<[&'s [F]; S]> {
    let large = kernel::dispatch(Compare { pieces, skipped, bits, scratch, sink });
    let group = |at: usize| scratch.sets.each_ref().map(|set| set.group(at).0);
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
    /// The large groups, by number.
    type Output = Vec<usize>;

    #[inline(always)]
    fn run(self) -> Self::Output {
        let Self { pieces, skipped, bits, scratch, sink } = self;
        let narrow = sink.distance() <= column::DISTANCE_MAX;
        for (set, pieces) in scratch.sets.iter_mut().zip(pieces) {
            set.fill(pieces, skipped, bits, narrow);
        }
        let mut large = Vec::new();
        for at in 0..1 << bits {
            let groups = scratch.sets.each_ref().map(|set| set.group(at));
            if cost::worth_splitting(groups.map(|(members, _)| members.len()), sink.distance()) {
                large.push(at);
                continue;
            }
            match (groups.as_slice(), narrow) {
                ([one], true) => compare_narrow(*one, sink),
                ([one], false) => compare_whole(one.0, sink),
                ([a, b], true) => compare_narrow_across(*a, *b, sink),
                ([a, b], false) => compare_whole_across(a.0, b.0, sink),
                _ => {}
            }
            if sink.stopped() {
                break;
            }
        }
        large
    }
}

impl<F: Fingerprint> Grouped<F> {
    #[inline(always)]
    fn fill<'p>(
        &mut self,
        pieces: impl Iterator<Item = &'p [F]> + Clone,
        skipped: u32,
        bits: u32,
        narrow: bool,
    ) {
        let len = pieces.clone().map(<[F]>::len).sum();
        self.members.resize(len, F::ZERO);
        group(pieces, skipped, bits, &mut self.members, &mut self.ends);
        if narrow {
            column::fill(&self.members, &mut self.column);
        }
    }

    /// Returns the members of a group, and the column from there on.
    #[inline(always)]
    fn group(&self, at: usize) -> (&[F], &[u32]) {
        let end = |at: usize| self.ends.get(at).map_or(0, |&end| end as usize);
        let range = at.checked_sub(1).map_or(0, end)..end(at);
        let column = self.column.get(range.start..).unwrap_or_default();
        (self.members.get(range).unwrap_or_default(), column)
    }
}

/// Brings members into groups by some bits and tells where each group ends.
///
/// `to` has to be as long as all pieces.
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
        for (to, &member) in to.iter_mut().zip(pieces.flatten()) {
            *to = member;
        }
        ends.fill(u32::try_from(to.len()).unwrap_or(u32::MAX));
        return;
    }
    for piece in pieces.clone() {
        for &member in piece {
            if let Some(count) = ends.get_mut(digit(member, skipped, bits)) {
                *count += 1;
            }
        }
    }
    begin_at_sums(ends);
    for piece in pieces {
        for &member in piece {
            if let Some(next) = ends.get_mut(digit(member, skipped, bits)) {
                if let Some(slot) = to.get_mut(*next as usize) {
                    *slot = member;
                }
                *next += 1;
            }
        }
    }
}

#[inline(always)]
fn compare_narrow<F: Fingerprint>((group, column): (&[F], &[u32]), sink: &mut Sink<'_, F>) {
    let distance = sink.distance();
    sink.count(cost::pairs([group.len()]));
    column::near_pairs(column, group.len(), distance, &mut |a, b| {
        offer_if_near(group.get(a), group.get(b), distance, sink);
    });
}

#[inline(always)]
fn compare_narrow_across<F: Fingerprint>(
    (group_a, column_a): (&[F], &[u32]),
    (group_b, column_b): (&[F], &[u32]),
    sink: &mut Sink<'_, F>,
) {
    let distance = sink.distance();
    sink.count(cost::pairs([group_a.len(), group_b.len()]));
    let (a, b) = ((column_a, group_a.len()), (column_b, group_b.len()));
    column::near_across(a, b, distance, &mut |a, b| {
        offer_if_near(group_a.get(a), group_b.get(b), distance, sink);
    });
}

#[inline(always)]
fn offer_if_near<F: Fingerprint>(
    a: Option<&F>,
    b: Option<&F>,
    distance: u32,
    sink: &mut Sink<'_, F>,
) {
    if let (Some(&a), Some(&b)) = (a, b) {
        let found = a.distance(b);
        if found <= distance {
            sink.offer(a, b, found);
        }
    }
}

#[inline(always)]
fn compare_whole<F: Fingerprint>(group: &[F], sink: &mut Sink<'_, F>) {
    let distance = sink.distance();
    sink.count(cost::pairs([group.len()]));
    let mut others = group;
    while let Some((&member, later)) = others.split_first() {
        kernel::within_inlined(later, member, distance, &mut |at, found| {
            if let Some(&other) = later.get(at) {
                sink.offer(member, other, found);
            }
        });
        others = later;
    }
}

#[inline(always)]
fn compare_whole_across<F: Fingerprint>(a: &[F], b: &[F], sink: &mut Sink<'_, F>) {
    let distance = sink.distance();
    sink.count(cost::pairs([a.len(), b.len()]));
    for &member in a {
        kernel::within_inlined(b, member, distance, &mut |at, found| {
            if let Some(&other) = b.get(at) {
                sink.offer(member, other, found);
            }
        });
    }
}
