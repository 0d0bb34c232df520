//! Groups: one bucket of a table is split by the rest of the lead, and each group compared.
//!
//! A bucket and all that is made of it stay in the second-level cache. Members are compared by a
//! column of 32 bits first, which a vector holds twice as many of, and seldom looked at whole.

use std::ops::Range;

use super::column;
use super::partition::{begin_at_sums, digit};
use super::sink::Sink;
use crate::fingerprint::Fingerprint;
use crate::kernel::{self, Work};

/// Bits by which a bucket is split at most: their counts stay in the first-level cache.
pub(super) const BITS_MAX: u32 = 12;

/// Memory of one task, used again by the next.
#[derive(Debug)]
pub(super) struct Scratch<F> {
    members: Vec<F>,
    column: Vec<u32>,
    ends: Vec<u32>,
}

impl<F> Scratch<F> {
    pub(super) const fn new() -> Self {
        Self { members: Vec::new(), column: Vec::new(), ends: Vec::new() }
    }
}

/// Compares all pairs of each small group of a bucket and returns the large groups.
///
/// The bucket comes as slices that agree on the first `skipped` bits; groups are what agrees on
/// `bits` more. A large group has more than `limit` members.
pub(super) fn compare<'s, 'p, F: Fingerprint>(
    pieces: impl Iterator<Item = &'p [F]> + Clone,
    (skipped, bits): (u32, u32),
    limit: usize,
    scratch: &'s mut Scratch<F>,
    sink: &mut Sink<'_, F>,
) -> Vec<&'s [F]> {
    let large = kernel::dispatch(Compare { pieces, skipped, bits, limit, scratch, sink });
    large.into_iter().map(|range| scratch.members.get(range).unwrap_or_default()).collect()
}

struct Compare<'a, 'b, I, F> {
    pieces: I,
    skipped: u32,
    bits: u32,
    limit: usize,
    scratch: &'a mut Scratch<F>,
    sink: &'a mut Sink<'b, F>,
}

impl<'p, I, F> Work for Compare<'_, '_, I, F>
where
    I: Iterator<Item = &'p [F]> + Clone,
    F: Fingerprint,
{
    type Output = Vec<Range<usize>>;

    #[allow(clippy::inline_always)]
    #[inline(always)]
    fn run(self) -> Self::Output {
        let Scratch { members, column, ends } = self.scratch;
        let len = self.pieces.clone().map(<[F]>::len).sum();
        members.resize(len, F::ZERO);
        ends.clear();
        if self.bits == 0 {
            members.clear();
            self.pieces.for_each(|piece| members.extend_from_slice(piece));
            ends.push(u32::try_from(len).unwrap_or(u32::MAX));
        } else {
            ends.resize(1 << self.bits, 0);
            scatter(self.pieces, self.skipped, self.bits, members, ends);
        }
        let narrow = self.sink.distance() <= column::DISTANCE_MAX;
        if narrow {
            column::fill(members, column);
        }
        let mut large = Vec::new();
        let mut start = 0;
        for &end in ends.iter() {
            let end = end as usize;
            let group = members.get(start..end).unwrap_or_default();
            if group.len() > self.limit {
                large.push(start..end);
            } else if narrow {
                compare_narrow(group, column.get(start..).unwrap_or_default(), self.sink);
            } else {
                compare_whole(group, self.sink);
            }
            start = end;
            if self.sink.stopped() {
                break;
            }
        }
        large
    }
}

/// Brings the members into groups and tells where each ends.
#[allow(clippy::inline_always)]
#[inline(always)]
fn scatter<'p, F: Fingerprint>(
    pieces: impl Iterator<Item = &'p [F]> + Clone,
    skipped: u32,
    bits: u32,
    to: &mut [F],
    ends: &mut [u32],
) {
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

#[allow(clippy::inline_always)]
#[inline(always)]
fn compare_whole<F: Fingerprint>(group: &[F], sink: &mut Sink<'_, F>) {
    let distance = sink.distance();
    sink.count_pairs_of(group.len());
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

#[allow(clippy::inline_always)]
#[inline(always)]
fn compare_narrow<F: Fingerprint>(group: &[F], column: &[u32], sink: &mut Sink<'_, F>) {
    let distance = sink.distance();
    sink.count_pairs_of(group.len());
    column::near_pairs(column, group.len(), distance, &mut |a, b| {
        if let (Some(&a), Some(&b)) = (group.get(a), group.get(b)) {
            let found = a.distance(b);
            if found <= distance {
                sink.offer(a, b, found);
            }
        }
    });
}
