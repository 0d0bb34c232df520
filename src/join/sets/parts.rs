//! Parts: joins sets that exceed the memory limit by ranges of each pass.
//!
//! For each pass the members are counted by bucket. Adjacent buckets that fit together are read and
//! joined in memory, then the next ones. A bucket stays in one part, so each pair is returned once,
//! from one part of one pass.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::blocks::Pass;
use super::cost;
use super::partition;
use super::sink::{Run, Space};
use super::source::{self, Part, Source};
use super::sweep::{self, Workshop, share};
use crate::bits::Digits;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::join::JoinReport;
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
    let Some(split) = cost::cheapest_split(sizes, || sample, run.distance, &run.costs) else {
        return in_memory(run, space, sources, units);
    };
    let passes = split.passes::<F>(partition::BITS_MAX);
    let buckets: Vec<&Digits<F>> = passes.iter().map(|pass| &pass.bucket).collect();
    let mut counts: [Vec<Vec<usize>>; S] = std::array::from_fn(|_| Vec::new());
    for (counts, source) in counts.iter_mut().zip(sources) {
        progress::check(run.progress)?;
        *counts = count(source, &buckets)?;
    }
    let count = passes.len() as u64;
    let mut report = JoinReport::default();
    for (at, pass) in passes.iter().enumerate() {
        let counts = counts.each_ref().map(|counts| counts[at].as_slice());
        let at = at as u64;
        let units = share(units, at..at + 1, count);
        report += by_parts(run, space, sources, pass, counts, units)?;
    }
    Ok(report)
}

fn in_memory<F: Fingerprint, const S: usize>(
    run: &Run<'_, F>,
    space: &Space<'_, F>,
    sources: [&dyn Source<F>; S],
    units: u64,
) -> Result<JoinReport> {
    let mut sets = std::array::from_fn(|_| Vec::new());
    load(sources, &mut sets)?;
    sweep::pairs(run, space, sets.each_ref().map(Vec::as_slice), units)
}

fn load<F: Fingerprint, const S: usize>(
    sources: [&dyn Source<F>; S],
    to: &mut [Vec<F>; S],
) -> Result<()> {
    to.iter_mut().zip(sources).try_for_each(|(set, source)| source::load(source, set))
}

/// Joins the tables of one pass part by part.
fn by_parts<F: Fingerprint, const S: usize>(
    run: &Run<'_, F>,
    space: &Space<'_, F>,
    sources: [&dyn Source<F>; S],
    pass: &Pass<F>,
    counts: [&[usize]; S],
    units: u64,
) -> Result<JoinReport> {
    let whole: usize = counts.iter().copied().flatten().sum();
    if whole == 0 {
        run.progress.advance(units);
    }
    let cut = cut(counts, run.capacity);
    // The parts use the same memory, one after the other.
    let (mut sets, mut workshop) = (std::array::from_fn(|_| Vec::new()), None);
    let mut report = JoinReport::default();
    let mut done = 0;
    for (buckets, sizes) in &cut {
        progress::check(run.progress)?;
        let len: usize = sizes.iter().sum();
        let units = share(units, done..done + len as u64, whole as u64);
        done += len as u64;
        let mut sizes_left = sizes.iter();
        let parts = sources.map(|source| Part {
            source,
            bucket: &pass.bucket,
            buckets: buckets.clone(),
            len: *sizes_left.next().expect("there is a size for each source"),
        });
        let parts = parts.each_ref().map(|part| part as &dyn Source<F>);
        report += if cost::pairs(*sizes) == 0 {
            run.progress.advance(units);
            JoinReport::default()
        } else if len > run.capacity {
            // A single bucket exceeds the limit, so it is split again on its other bits.
            (sets, workshop) = (std::array::from_fn(|_| Vec::new()), None);
            pairs(run, &space.below(&pass.tables), parts, units)?
        } else {
            load(parts, &mut sets)?;
            let sets = sets.each_ref().map(Vec::as_slice);
            let workshop =
                workshop.get_or_insert_with(|| Workshop::new(largest(&cut, run.capacity)));
            workshop.groups(run, space, sets, pass, units)?
        };
    }
    Ok(report)
}

/// Adjacent buckets that are joined together, and their members in each source.
type Cut<const S: usize> = (RangeInclusive<usize>, [usize; S]);

/// Cuts the buckets into parts of at most `capacity` members, unless one bucket has more.
fn cut<const S: usize>(counts: [&[usize]; S], capacity: usize) -> Vec<Cut<S>> {
    let mut parts: Vec<Cut<S>> = Vec::new();
    for bucket in 0..counts.first().map_or(0, |counts| counts.len()) {
        let sizes = counts.map(|counts| counts[bucket]);
        if let Some((buckets, all)) = parts.last_mut()
            && all.iter().chain(&sizes).sum::<usize>() <= capacity
        {
            *buckets = *buckets.start()..=bucket;
            all.iter_mut().zip(sizes).for_each(|(all, size)| *all += size);
        } else {
            parts.push((bucket..=bucket, sizes));
        }
    }
    parts
}

/// Returns the largest size of each source in the parts that fit.
fn largest<const S: usize>(cut: &[Cut<S>], capacity: usize) -> [usize; S] {
    let fitting = cut.iter().filter(|(_, sizes)| sizes.iter().sum::<usize>() <= capacity);
    fitting.fold([0; S], |mut most, (_, sizes)| {
        most.iter_mut().zip(sizes).for_each(|(most, size)| *most = (*most).max(*size));
        most
    })
}

/// Counts the members of every bucket, for each choice of bits, in one scan.
fn count<F: Fingerprint>(
    source: &dyn Source<F>,
    buckets: &[&Digits<F>],
) -> Result<Vec<Vec<usize>>> {
    let none = |bucket: &&Digits<F>| (0..1 << bucket.bits()).map(|_| AtomicUsize::new(0)).collect();
    let counts: Vec<Vec<AtomicUsize>> = buckets.iter().map(none).collect();
    source.scan(&|members| {
        for (bucket, counts) in buckets.iter().zip(&counts) {
            let mut here = vec![0_usize; counts.len()];
            bucket.for_each(members, |_, bucket| here[bucket] += 1);
            for (count, here) in counts.iter().zip(here) {
                if here > 0 {
                    count.fetch_add(here, Ordering::Relaxed);
                }
            }
        }
        Ok(())
    })?;
    let counts = counts.into_iter();
    Ok(counts.map(|counts| counts.into_iter().map(AtomicUsize::into_inner).collect()).collect())
}
