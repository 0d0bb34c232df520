//! Groups: splits one bucket by the rest of a table's lead and compares each group.
//!
//! A bucket and its copies fit the second-level cache. Members are compared by a column of narrow
//! words first, and only few pairs need a full comparison.
#![allow(clippy::inline_always)]

use std::ops::Range;

use super::column::{self, Hits, Width, Word};
use super::cost;
use super::partition::exclusive_sums;
use super::sink::Sink;
use crate::bits::Digits;
use crate::fingerprint::Fingerprint;
use crate::kernel::{self, LaneWork, Lanes, Work};

/// Maximum bits that split a bucket, so that the counts fit the first-level cache.
pub(super) const BITS_MAX: u32 = 12;

/// Buffers of one task, reused by the next.
#[derive(Debug)]
pub(super) struct Scratch<F, const S: usize> {
    gathered: [Vec<F>; S],
    grouped: Grouped<F, S>,
}

/// The members of a bucket in groups.
#[derive(Debug)]
pub(super) struct Grouped<F, const S: usize> {
    sets: [OfSet<F>; S],
    hits: Hits,
    near: Vec<(F, F, u32)>,
}

/// The members of one set that are in the bucket.
#[derive(Debug)]
struct OfSet<F> {
    members: Vec<F>,
    narrow: Vec<u32>,
    wide: Vec<u64>,
    ends: Vec<u32>,
}

impl<F: Fingerprint, const S: usize> Scratch<F, S> {
    pub(super) fn new() -> Self {
        let sets = std::array::from_fn(|_| OfSet::new());
        let gathered = std::array::from_fn(|_| Vec::new());
        Self { gathered, grouped: Grouped { sets, hits: Hits::new(), near: Vec::new() } }
    }

    /// Returns the members of a bucket in one slice for each set, and the buffers for groups.
    pub(super) fn gather<'s, 'p: 's>(
        &'s mut self,
        pieces: [impl Iterator<Item = &'p [F]> + Clone; S],
    ) -> ([&'s [F]; S], &'s mut Grouped<F, S>) {
        let mut pieces = pieces.into_iter();
        let gathered = self.gathered.each_mut().map(|to| {
            let pieces = pieces.next().expect("there are pieces of each set");
            let mut others = pieces.clone();
            if let (Some(only), None) = (others.next(), others.next()) {
                return only;
            }
            gather(pieces, to);
            to.as_slice()
        });
        (gathered, &mut self.grouped)
    }
}

/// Compares all pairs of each small group of a bucket and returns the large groups.
///
/// The members of a group agree on `digits`. A group is large if splitting it may cost less.
pub(super) fn compare<'s, F: Fingerprint, const S: usize>(
    bucket: [&[F]; S],
    digits: &Digits<F>,
    grouped: &'s mut Grouped<F, S>,
    sink: &mut Sink<'_, F>,
) -> Vec<[&'s [F]; S]> {
    let mut large = Vec::new();
    kernel::dispatch_lanes(Compare { bucket, digits, grouped, sink, large: &mut large });
    let group = |at: usize| grouped.sets.each_ref().map(|set| set.group(at));
    large.into_iter().map(group).collect()
}

struct Compare<'a, 'b, F, const S: usize> {
    bucket: [&'a [F]; S],
    digits: &'a Digits<F>,
    grouped: &'a mut Grouped<F, S>,
    sink: &'a mut Sink<'b, F>,
    /// The numbers of the large groups.
    large: &'a mut Vec<usize>,
}

impl<F: Fingerprint, const S: usize> LaneWork for Compare<'_, '_, F, S> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Self { bucket, digits, grouped, sink, large } = self;
        let width = Width::of::<F>(sink.distance());
        for (set, members) in grouped.sets.iter_mut().zip(bucket) {
            set.fill(members, digits, width);
        }
        let Grouped { sets, hits, near } = grouped;
        let (distance, smallest) = (sink.distance(), sink.smallest_split());
        for at in 0..1 << digits.bits() {
            let sizes = sets.each_ref().map(|set| set.range(at).len());
            if cost::worth_splitting(sizes, distance, smallest) {
                large.push(at);
                continue;
            }
            sink.count(cost::pairs(sizes));
            let mut full = |hits: &mut Hits| kernel::dispatch(Offer { sets, hits, near, sink });
            match width {
                Width::Narrow => {
                    let columns = sets.each_ref().map(|set| set.column(at, &set.narrow));
                    compare_columns(lanes, &columns, distance, hits, &mut full);
                }
                Width::Wide => {
                    let columns = sets.each_ref().map(|set| set.column(at, &set.wide));
                    compare_columns(lanes, &columns, distance, hits, &mut full);
                }
                Width::Whole => compare_whole(sets.each_ref().map(|set| set.group(at)), sink),
            }
            if sink.stopped() {
                break;
            }
        }
        kernel::dispatch(Offer { sets, hits, near, sink });
    }
}

impl<F: Fingerprint> OfSet<F> {
    const fn new() -> Self {
        Self { members: Vec::new(), narrow: Vec::new(), wide: Vec::new(), ends: Vec::new() }
    }

    #[inline(always)]
    fn fill(&mut self, bucket: &[F], digits: &Digits<F>, width: Width) {
        self.members.resize(bucket.len(), F::ZERO);
        group(bucket, digits, &mut self.members, &mut self.ends);
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

    /// Returns a column from the first word of a group, and the range of the group.
    #[inline(always)]
    fn column<'a, W>(&self, group: usize, column: &'a [W]) -> (&'a [W], Range<usize>) {
        let range = self.range(group);
        (&column[range.start..], range)
    }

    /// Returns the members of a group.
    #[inline(always)]
    fn group(&self, at: usize) -> &[F] {
        &self.members[self.range(at)]
    }
}

/// Replaces the items of a buffer by those of all pieces.
pub(super) fn gather<'p, F: Fingerprint>(
    pieces: impl Iterator<Item = &'p [F]>,
    gathered: &mut Vec<F>,
) {
    gathered.clear();
    for piece in pieces {
        gathered.extend_from_slice(piece);
    }
}

/// Sorts members into groups by their digits and writes where each group ends.
///
/// `to` must be as long as the bucket.
#[inline(always)]
pub(super) fn group<F: Fingerprint>(
    bucket: &[F],
    digits: &Digits<F>,
    to: &mut [F],
    ends: &mut Vec<u32>,
) {
    ends.clear();
    ends.resize(1 << digits.bits(), 0);
    digits.for_each(bucket, |_, digit| ends[digit] += 1);
    exclusive_sums(ends);
    digits.for_each(bucket, |member, digit| {
        let next = &mut ends[digit];
        to[*next as usize] = member;
        *next += 1;
    });
}

/// Compares a group with itself, or two groups with each other, by columns that start at them.
#[inline(always)]
fn compare_columns<L: Lanes, W: Word, const S: usize>(
    lanes: L,
    columns: &[(&[W], Range<usize>); S],
    distance: u32,
    hits: &mut Hits,
    full: &mut impl FnMut(&mut Hits),
) {
    match columns.as_slice() {
        [(column, range)] => {
            hits.start_at((range.start, range.start));
            column::near_pairs(lanes, (column, range.len()), distance, hits, full);
        }
        [(column_a, range_a), (column_b, range_b)] => {
            hits.start_at((range_a.start, range_b.start));
            let columns = [(*column_a, range_a.len()), (*column_b, range_b.len())];
            column::near_across(lanes, columns, distance, hits, full);
        }
        _ => unreachable!("a join is of one set or two"),
    }
}

/// Compares the members of all hits, and offers those that are near.
///
/// Separate work, because callbacks of other work are compiled without its instructions.
struct Offer<'a, 'b, F, const S: usize> {
    sets: &'a [OfSet<F>; S],
    hits: &'a mut Hits,
    near: &'a mut Vec<(F, F, u32)>,
    sink: &'a mut Sink<'b, F>,
}

impl<F: Fingerprint, const S: usize> Work for Offer<'_, '_, F, S> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { sets, hits, near, sink } = self;
        let (Some(set_a), Some(set_b)) = (sets.first(), sets.last()) else { return };
        let distance = sink.distance();
        let hits = hits.drain();
        near.resize(hits.len(), (F::ZERO, F::ZERO, 0));
        // Without a branch, which would be unpredictable.
        let mut count = 0;
        for (a, b) in hits {
            let (a, b) = (set_a.members[a], set_b.members[b]);
            let found = a.distance(b);
            near[count] = (a, b, found);
            count += usize::from(found <= distance);
        }
        for &(a, b, found) in &near[..count] {
            sink.offer(a, b, found);
        }
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
