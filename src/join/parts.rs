//! Parts: joins sets that exceed the memory limit by ranges of each pass.
//!
//! For each pass the members are counted by bucket. Adjacent buckets that fit together are read and
//! joined in memory, then the next ones. A bucket stays in one part, so each pair is returned once,
//! from one part of one pass.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::blocks::Pass;
use super::cost;
use super::digits::Digits;
use super::options::JoinReport;
use super::partition;
use super::sink::{Run, Space};
use super::source::{self, Part, Source};
use super::sweep::{self, Workshop, share};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::progress;

/// Finds all pairs within a source, or between two, with a limited number of members in memory.
///
/// Sets that no split makes cheaper are read completely. Their cost is quadratic, so they are
/// small.
pub(super) fn pairs<F: Fingerprint, const S: usize>(
    run: &Run<'_, F>,
    space: &Space<'_, F>,
    sources: [&dyn Source<F>; S],
    units: u64,
) -> Result<JoinReport> {
    let sizes = sources.map(Source::len);
    if sizes.iter().sum::<usize>() <= run.capacity {
        return in_memory(run, space, sources, units);
    }
    let mut sample = Vec::new();
    for source in sources {
        sample.append(&mut source.sample()?);
    }
    let Some(split) = cost::cheapest_split(sizes, || sample, run.distance) else {
        return in_memory(run, space, sources, units);
    };
    let passes = split.passes::<F>(partition::BITS_MAX);
    let count = passes.len() as u64;
    let mut report = JoinReport::default();
    for (at, pass) in (0..).zip(&passes) {
        let units = share(units, at..at + 1, count);
        report += by_parts(run, space, sources, pass, units)?;
    }
    Ok(report)
}

fn in_memory<F: Fingerprint, const S: usize>(
    run: &Run<'_, F>,
    space: &Space<'_, F>,
    sources: [&dyn Source<F>; S],
    units: u64,
) -> Result<JoinReport> {
    let sets = load(sources)?;
    sweep::pairs(run, space, sets.each_ref().map(Vec::as_slice), units)
}

fn load<F: Fingerprint, const S: usize>(sources: [&dyn Source<F>; S]) -> Result<[Vec<F>; S]> {
    let mut sets = std::array::from_fn(|_| Vec::new());
    for (set, source) in sets.iter_mut().zip(sources) {
        *set = source::load(source)?;
    }
    Ok(sets)
}

/// Joins the tables of one pass part by part.
fn by_parts<F: Fingerprint, const S: usize>(
    run: &Run<'_, F>,
    space: &Space<'_, F>,
    sources: [&dyn Source<F>; S],
    pass: &Pass<F>,
    units: u64,
) -> Result<JoinReport> {
    progress::check(run.progress)?;
    let bits = pass.bucket.bits();
    let mut counts: [Vec<usize>; S] = std::array::from_fn(|_| Vec::new());
    for (counts, source) in counts.iter_mut().zip(sources) {
        *counts = count(source, &pass.bucket)?;
    }
    let members = |bucket: usize| counts.each_ref().map(|counts| counts[bucket]);
    let whole: usize = counts.iter().flatten().sum();
    let mut report = JoinReport::default();
    let mut done = 0;
    let mut first = 0;
    while first < 1 << bits {
        progress::check(run.progress)?;
        let mut sizes = members(first);
        let mut last = first;
        while last + 1 < 1 << bits {
            let next = members(last + 1);
            let together = sizes.iter().chain(&next).sum::<usize>();
            if together > run.capacity {
                break;
            }
            for (size, next) in sizes.iter_mut().zip(next) {
                *size += next;
            }
            last += 1;
        }
        let len: usize = sizes.iter().sum();
        let units = share(units, done..done + len as u64, whole as u64);
        done += len as u64;
        let mut sizes_left = sizes.into_iter();
        let parts = sources.map(|source| Part {
            source,
            bucket: &pass.bucket,
            buckets: first..=last,
            len: sizes_left.next().expect("there is a size for each source"),
        });
        let parts = parts.each_ref().map(|part| part as &dyn Source<F>);
        report += if cost::pairs(sizes) == 0 {
            run.progress.advance(units);
            JoinReport::default()
        } else if len > run.capacity {
            // A single bucket exceeds the limit, so it is split again on its other bits.
            pairs(run, &space.below(&pass.tables), parts, units)?
        } else {
            let sets = load(parts)?;
            let sets = sets.each_ref().map(Vec::as_slice);
            Workshop::new(sizes).groups(run, space, sets, pass, units)?
        };
        first = last + 1;
    }
    if whole == 0 {
        run.progress.advance(units);
    }
    Ok(report)
}

/// Counts the members of every bucket.
fn count<F: Fingerprint>(source: &dyn Source<F>, bucket: &Digits<F>) -> Result<Vec<usize>> {
    let counts: Vec<AtomicUsize> = (0..1 << bucket.bits()).map(|_| AtomicUsize::new(0)).collect();
    source.scan(&|members| {
        let mut here = vec![0_usize; counts.len()];
        bucket.for_each(members, |_, bucket| here[bucket] += 1);
        for (count, here) in counts.iter().zip(here) {
            if here > 0 {
                count.fetch_add(here, Ordering::Relaxed);
            }
        }
        Ok(())
    })?;
    Ok(counts.into_iter().map(AtomicUsize::into_inner).collect())
}
