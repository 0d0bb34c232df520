//! Sets: near pairs within a set of fingerprints, or between two, in memory or by parts.
//!
//! A source that fits the memory is swept; others are read by parts, each of which is swept.

mod all_pairs;
mod blocks;
mod column;
mod cost;
mod distinct;
mod groups;
mod partition;
mod parts;
mod sink;
mod source;
mod sweep;
mod trial;

#[cfg(test)]
mod tests;

pub(super) use self::distinct::distinct;
pub(super) use self::source::{CHUNK, Source};
pub(crate) use self::trial::Trial;
use super::{JoinOptions, JoinReport, Pair};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::progress::Progress;

/// Joins one or two sets of distinct fingerprints.
pub(super) fn join<F: Fingerprint, const S: usize>(
    sets: [&[F]; S],
    options: JoinOptions,
    progress: &dyn Progress,
    visit: &(dyn Fn(&[Pair<F>]) -> Result<()> + Sync),
) -> Result<JoinReport> {
    let held: usize = sets.map(<[F]>::len).iter().sum();
    // The sets are in memory already, so they only need space for one table.
    let fits = options.memory / F::BYTES / 2 >= held;
    let run = sink::Run::new::<S>(options, if fits { 0 } else { held }, progress, visit);
    if !run.begin(held)? {
        return Ok(JoinReport::default());
    }
    let units = held as u64;
    if fits {
        return sweep::pairs(&run, &sink::Space::ROOT, sets, units);
    }
    let sources = sets.each_ref().map(|set| set as &dyn Source<F>);
    parts::pairs(&run, &sink::Space::ROOT, sources, units)
}

/// [`join`] of sources with distinct members.
pub(super) fn join_sources<F: Fingerprint, const S: usize>(
    sources: [&dyn Source<F>; S],
    options: JoinOptions,
    progress: &dyn Progress,
    visit: &(dyn Fn(&[Pair<F>]) -> Result<()> + Sync),
) -> Result<JoinReport> {
    let members = sources.map(Source::len).iter().sum();
    let run = sink::Run::new::<S>(options, 0, progress, visit);
    if !run.begin(members)? {
        return Ok(JoinReport::default());
    }
    parts::pairs(&run, &sink::Space::ROOT, sources, members as u64)
}
