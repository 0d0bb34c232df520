//! Sweep: a set is split by tables, and members of one group are compared.
//!
//! A group that is too large to compare all its pairs is split again on its other bits, so that
//! skew costs more tables and not the square of a group.

use std::ops::Range;

use rayon::prelude::*;

use super::all_pairs;
use super::blocks;
use super::cost::{self, Split};
use super::sink::{Run, Sink, Space};
use super::sort;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::kernel::{self, Work};
use crate::progress;

/// A task compares so many members at most, unless a group is larger.
const TASK_MAX: usize = 1 << 14;
/// Below this a task costs more than it shares out.
const TASK_MIN: usize = 1 << 10;

/// Finds all pairs among distinct members; reports `units` of progress on the way.
///
/// Members of the root space have to be sorted.
pub(super) fn pairs<F: Fingerprint>(
    run: &Run<'_, F>,
    space: &Space<'_, F>,
    members: &[F],
    units: u64,
) -> Result<u64> {
    match cost::cheapest_split(members, run.distance) {
        Some(split) => split_pairs(run, space, members, &split, units),
        None => all_pairs::pairs(run, space, members, units),
    }
}

pub(super) fn split_pairs<F: Fingerprint>(
    run: &Run<'_, F>,
    space: &Space<'_, F>,
    members: &[F],
    split: &Split,
    units: u64,
) -> Result<u64> {
    let tables = blocks::tables::<F>(&split.blocks, split.leading, split.lead_max);
    let count = tables.len() as u64;
    let mut found = 0;
    for (at, table) in (0..).zip(&tables) {
        progress::check(run.progress)?;
        let space_below = space.below(table);
        let units = share(units, at..at + 1, count);
        found += if space.is_root() && table.permutation.is_identity() {
            groups(run, &space_below, members, table.lead, units)?
        } else {
            let sorted = sort::by_lead(members, table);
            groups(run, &space_below, &sorted, table.lead, units)?
        };
    }
    Ok(found)
}

/// Compares within each group of equal lead of one sorted table.
fn groups<F: Fingerprint>(
    run: &Run<'_, F>,
    space: &Space<'_, F>,
    sorted: &[F],
    lead: u32,
    units: u64,
) -> Result<u64> {
    let len = sorted.len();
    let task = (len / 64).clamp(TASK_MIN, TASK_MAX);
    let limit = cost::worth_splitting(run.distance);
    let mask = F::high_mask(lead);
    (0..len.div_ceil(task))
        .into_par_iter()
        .map(|at| {
            progress::check(run.progress)?;
            let start = group_start(sorted, at * task, mask);
            let end = group_start(sorted, (at + 1) * task, mask);
            let members = sorted.get(start..end).unwrap_or_default();
            let mut sink = Sink::new(run, space);
            let large = kernel::dispatch(SmallGroups { members, mask, limit, sink: &mut sink });
            let mut found = sink.finish()?;
            let mut done = start;
            for group in large {
                let (from, to) = (start + group.start, start + group.end);
                run.progress.advance(share(units, done as u64..from as u64, len as u64));
                let units = share(units, from as u64..to as u64, len as u64);
                found += pairs(run, space, members.get(group).unwrap_or_default(), units)?;
                done = to;
            }
            run.progress.advance(share(units, done as u64..end as u64, len as u64));
            Ok(found)
        })
        .try_reduce(|| 0, |a, b| Ok(a + b))
}

/// Returns where the first group begins at or after a position.
fn group_start<F: Fingerprint>(sorted: &[F], position: usize, mask: F) -> usize {
    let Some((&last, rest)) =
        position.checked_sub(1).and_then(|at| sorted.get(at..)?.split_first())
    else {
        return position.min(sorted.len());
    };
    position + rest.partition_point(|&member| member & mask == last & mask)
}

/// Returns the units that fall to a part, so that those of all parts add up.
pub(super) fn share(units: u64, part: Range<u64>, whole: u64) -> u64 {
    let before = |position: u64| {
        let before = u128::from(units) * u128::from(position) / u128::from(whole.max(1));
        u64::try_from(before).unwrap_or(units)
    };
    before(part.end) - before(part.start)
}

/// Compares all pairs of each small group and returns where the large ones are.
struct SmallGroups<'a, 'b, F> {
    members: &'a [F],
    mask: F,
    limit: usize,
    sink: &'a mut Sink<'b, F>,
}

impl<F: Fingerprint> Work for SmallGroups<'_, '_, F> {
    type Output = Vec<Range<usize>>;

    #[allow(clippy::inline_always)]
    #[inline(always)]
    fn run(self) -> Self::Output {
        let distance = self.sink.distance();
        let mut large = Vec::new();
        let mut start = 0;
        let mut members = self.members;
        while let Some(&first) = members.first() {
            if self.sink.stopped() {
                break;
            }
            let same = |&member: &F| (member ^ first) & self.mask == F::ZERO;
            let len = members.iter().position(|member| !same(member)).unwrap_or(members.len());
            let (group, rest) = members.split_at(len);
            if len > self.limit {
                large.push(start..start + len);
            } else {
                let mut others = group;
                while let Some((&member, later)) = others.split_first() {
                    let sink = &mut *self.sink;
                    kernel::within_inlined(later, member, distance, &mut |at, distance| {
                        if let Some(&other) = later.get(at) {
                            sink.offer(member, other, distance);
                        }
                    });
                    others = later;
                }
            }
            start += len;
            members = rest;
        }
        large
    }
}
