//! Sweep: splits sets in memory by tables and compares the members of each group.
//!
//! A group that is too large for comparing all its pairs is split again on its other bits. So skew
//! costs more tables instead of the square of a group. Works on one set, or between two.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use super::all_pairs;
use super::blocks::{self, Pass, Split};
use super::cost;
use super::groups::{self, Scratch};
use super::partition::{self, Partition};
use super::sink::{Run, Sink, Space};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::join::JoinReport;
use crate::pages::Pages;
use crate::progress;

/// A bucket this many times its even share is split again by all threads.
const SKEWED: usize = 8;

/// Finds all pairs within a set, or between two, and reports `units` units of progress.
///
/// The members of a set must be distinct.
pub(super) fn pairs<F: Fingerprint, const S: usize>(
    run: &Run<'_, F>,
    space: &Space<'_, F>,
    sets: [&[F]; S],
    units: u64,
) -> Result<JoinReport> {
    let sample = || blocks::sample(&sets);
    match cost::cheapest_split(sets.map(<[F]>::len), sample, run.distance, &run.costs) {
        Some(split) => split_pairs(run, space, sets, &split, units),
        None => all_pairs::pairs(run, space, sets, units),
    }
}

pub(super) fn split_pairs<F: Fingerprint, const S: usize>(
    run: &Run<'_, F>,
    space: &Space<'_, F>,
    sets: [&[F]; S],
    split: &Split,
    units: u64,
) -> Result<JoinReport> {
    let sizes = sets.map(<[F]>::len);
    let passes = split.passes(partition::bits_for(sizes.iter().sum()));
    let count = passes.len() as u64;
    let mut workshop = Workshop::new(sizes);
    let mut report = JoinReport::default();
    for (at, pass) in (0..).zip(&passes) {
        progress::check(run.progress)?;
        let units = share(units, at..at + 1, count);
        report += workshop.groups(run, space, sets, pass, units)?;
    }
    Ok(report)
}

/// Buffers for one pass over each set, reused by the next pass.
pub(super) struct Workshop<F, const S: usize> {
    rooms: [Pages<F>; S],
    /// Buffers of finished tasks, for later ones.
    scratches: Mutex<Vec<Scratch<F, S>>>,
}

impl<F: Fingerprint, const S: usize> Workshop<F, S> {
    /// Allocates buffers for sets of up to these sizes.
    pub(super) fn new(sizes: [usize; S]) -> Self {
        Self { rooms: sizes.map(Pages::zeroed), scratches: Mutex::new(Vec::new()) }
    }

    /// Compares the members that agree on the lead of a table of the pass.
    pub(super) fn groups(
        &mut self,
        run: &Run<'_, F>,
        space: &Space<'_, F>,
        sets: [&[F]; S],
        pass: &Pass<F>,
        units: u64,
    ) -> Result<JoinReport> {
        let len: usize = sets.iter().map(|set| set.len()).sum();
        let bits = pass.bucket.bits();
        let mut members = sets.into_iter();
        let partitions = self.rooms.each_mut().map(|room| {
            let members = members.next().expect("there is room for each set");
            Partition::new(members, &pass.bucket, &mut room.as_mut_slice()[..members.len()])
        });
        let task = Task {
            run,
            space,
            pass,
            partitions,
            scratches: &self.scratches,
            skewed: (len >> bits).max(partition::BUCKET).saturating_mul(SKEWED),
        };
        let mut begin = 0;
        let buckets = (0..1_usize << bits).map(|bucket| {
            let end = begin + task.sizes(bucket).iter().sum::<usize>() as u64;
            let units = share(units, begin..end, len as u64);
            begin = end;
            (bucket, units)
        });
        if len < partition::PARALLEL_MIN {
            let reports = buckets.map(|(bucket, units)| task.bucket(bucket, units));
            return reports.into_iter().try_fold(JoinReport::default(), |all, one| Ok(all + one?));
        }
        let buckets: Vec<(usize, u64)> = buckets.collect();
        let reports = buckets.into_par_iter().with_max_len(1);
        let reports = reports.map(|(bucket, units)| task.bucket(bucket, units));
        reports.try_reduce(JoinReport::default, |a, b| Ok(a + b))
    }
}

/// One pass over each set, in buckets.
struct Task<'a, F, const S: usize> {
    run: &'a Run<'a, F>,
    space: &'a Space<'a, F>,
    pass: &'a Pass<F>,
    partitions: [Partition<'a, F>; S],
    scratches: &'a Mutex<Vec<Scratch<F, S>>>,
    /// Maximum members of a bucket that one thread groups.
    skewed: usize,
}

impl<F: Fingerprint, const S: usize> Task<'_, F, S> {
    fn sizes(&self, bucket: usize) -> [usize; S] {
        self.partitions.each_ref().map(|partition| partition.len(bucket))
    }

    /// Compares the members of one bucket.
    fn bucket(&self, bucket: usize, units: u64) -> Result<JoinReport> {
        progress::check(self.run.progress)?;
        let sizes = self.sizes(bucket);
        if cost::pairs(sizes) == 0 {
            self.run.progress.advance(units);
            return Ok(JoinReport::default());
        }
        let len: usize = sizes.iter().sum();
        let pieces = self.partitions.each_ref().map(|partition| partition.pieces(bucket));
        if len > self.skewed {
            let sets = pieces.map(|pieces| pieces.flatten().copied().collect::<Vec<F>>());
            let space = self.space.below(&self.pass.tables);
            return pairs(self.run, &space, sets.each_ref().map(Vec::as_slice), units);
        }
        let mut scratch = self.lock().pop().unwrap_or_else(Scratch::new);
        let (gathered, grouped) = scratch.gather(pieces);
        let mut report = JoinReport::default();
        let count = self.pass.tables.len() as u64;
        for (at, table) in (0..).zip(&self.pass.tables) {
            let space = self.space.below(std::slice::from_ref(table));
            let mut sink = Sink::new(self.run, &space);
            let large = groups::compare(gathered, &table.group, grouped, &mut sink);
            report += sink.finish()?;
            let units = share(units, at..at + 1, count);
            let mut done = 0;
            for group in large {
                let members = group.iter().map(|set| set.len() as u64).sum();
                let units = share(units, 0..members, len as u64);
                done += units;
                report += pairs(self.run, &space, group, units)?;
            }
            self.run.progress.advance(units - done);
        }
        self.lock().push(scratch);
        Ok(report)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Scratch<F, S>>> {
        self.scratches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the units of a part; the units of all parts add up to `units`.
pub(super) fn share(units: u64, part: Range<u64>, whole: u64) -> u64 {
    let before = |position: u64| {
        let before = u128::from(units) * u128::from(position) / u128::from(whole.max(1));
        u64::try_from(before).unwrap_or(units)
    };
    before(part.end) - before(part.start)
}
