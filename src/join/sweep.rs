//! Sweep: a set is split by tables, and members of one group are compared.
//!
//! A group that is too large to compare all its pairs is split again on its other bits, so that
//! skew costs more tables and not the square of a group.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use super::all_pairs;
use super::blocks::{self, Table};
use super::buffer::Buffer;
use super::cost::{self, Split};
use super::groups::{self, Scratch};
use super::partition::{self, Partition};
use super::report::JoinReport;
use super::sink::{Run, Sink, Space};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::progress;

/// Members of a bucket that one task compares: with their copy, half of a second-level cache.
const BUCKET: usize = 32 << 10;
/// Below this a set is compared by the thread that has it.
const PARALLEL_MIN: usize = 8 << 10;
/// A bucket so many times larger than it should be is split again by all threads.
const SKEWED: usize = 8;

/// Finds all pairs among distinct members; reports `units` of progress on the way.
pub(super) fn pairs<F: Fingerprint>(
    run: &Run<'_, F>,
    space: &Space<'_, F>,
    members: &[F],
    units: u64,
) -> Result<JoinReport> {
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
) -> Result<JoinReport> {
    let tables = blocks::tables::<F>(&split.blocks, split.leading, split.lead_max);
    let count = tables.len() as u64;
    let mut buffer = Buffer::new(members.len());
    let scratches = Scratches::new();
    let mut report = JoinReport::default();
    for (at, table) in (0..).zip(&tables) {
        progress::check(run.progress)?;
        let below = space.below(table);
        let units = share(units, at..at + 1, count);
        let room = buffer.as_mut_slice().get_mut(..members.len()).unwrap_or_default();
        report += buckets(run, &below, members, table, room, &scratches, units)?;
    }
    Ok(report)
}

/// Partitions the members by the lead of a table and compares within each group.
fn buckets<F: Fingerprint>(
    run: &Run<'_, F>,
    space: &Space<'_, F>,
    members: &[F],
    table: &Table<F>,
    room: &mut [F],
    scratches: &Scratches<F>,
    units: u64,
) -> Result<JoinReport> {
    let len = members.len();
    let bits = bucket_bits(len).min(table.lead);
    let partition = Partition::new(members, &table.permutation, bits, room);
    let skewed = (len >> bits).max(BUCKET) * SKEWED;
    let mut begin = 0;
    let buckets = (0..1_usize << bits).map(|bucket| {
        let range = begin..begin + partition.len(bucket) as u64;
        begin = range.end;
        (bucket, range)
    });
    let one = |(bucket, range): (usize, Range<u64>)| {
        progress::check(run.progress)?;
        let bucket_len = usize::try_from(range.end - range.start).unwrap_or(len);
        let units = share(units, range, len as u64);
        if bucket_len > skewed {
            let members: Vec<F> = partition.pieces(bucket).flatten().copied().collect();
            return pairs(run, space, &members, units);
        }
        let mut scratch = scratches.take();
        let mut sink = Sink::new(run, space);
        let rest = (bits, (table.lead - bits).min(groups::BITS_MAX));
        let limit = cost::worth_splitting(run.distance);
        let pieces = partition.pieces(bucket);
        let large = groups::compare(pieces, rest, limit, &mut scratch, &mut sink);
        let mut report = sink.finish()?;
        let mut done = 0;
        for group in large {
            let units = share(units, 0..group.len() as u64, bucket_len as u64);
            done += units;
            report += pairs(run, space, group, units)?;
        }
        run.progress.advance(units - done);
        scratches.put_back(scratch);
        Ok(report)
    };
    if len < PARALLEL_MIN {
        return buckets.map(one).try_fold(JoinReport::default(), |all, one| Ok(all + one?));
    }
    let buckets: Vec<_> = buckets.collect();
    let reports = buckets.into_par_iter().with_max_len(1).map(one);
    reports.try_reduce(JoinReport::default, |a, b| Ok(a + b))
}

/// Memory of tasks that have ended, for those that begin.
struct Scratches<F> {
    free: Mutex<Vec<Scratch<F>>>,
}

impl<F: Fingerprint> Scratches<F> {
    const fn new() -> Self {
        Self { free: Mutex::new(Vec::new()) }
    }

    fn take(&self) -> Scratch<F> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        free.unwrap_or_else(Scratch::new)
    }

    fn put_back(&self, scratch: Scratch<F>) {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
    }
}

/// Returns how many bits a set is partitioned by before it is grouped.
fn bucket_bits(len: usize) -> u32 {
    let by_cache = (len / BUCKET).checked_ilog2().unwrap_or(0);
    let by_threads = if len < PARALLEL_MIN { 1 } else { 4 };
    by_cache.clamp(by_threads, partition::BITS_MAX)
}

/// Returns the units that fall to a part, so that those of all parts add up.
pub(super) fn share(units: u64, part: Range<u64>, whole: u64) -> u64 {
    let before = |position: u64| {
        let before = u128::from(units) * u128::from(position) / u128::from(whole.max(1));
        u64::try_from(before).unwrap_or(units)
    };
    before(part.end) - before(part.start)
}
