//! Self-join of fingerprints in memory and of an index, and joins of two sets.

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use hamdex::build::{BuildOptions, Builder};
use hamdex::plan::Plan;
use hamdex::{Index, IndexOptions, join};

use crate::{Args, report};

/// Runs of each join; the best is reported, because other processes may share the machine.
const RUNS: usize = 3;

pub(crate) fn run(dir: &Path, args: &Args) -> Result<(), Box<dyn Error>> {
    let fingerprints = args.source.take(args.seed, args.join_count)?;
    for distance in [0, 3, 6, 8] {
        let mut best: Option<(std::time::Duration, join::JoinReport)> = None;
        for _ in 0..RUNS {
            let start = Instant::now();
            let found = join::self_join(&fingerprints, distance, &(), &|_| Ok(()))?;
            let time = start.elapsed();
            if best.is_none_or(|(best, _)| time < best) {
                best = Some((time, found));
            }
        }
        if let Some((time, found)) = best {
            let name = format!(
                "self-join, k = {distance}, {} pairs, {} comparisons",
                found.pairs, found.comparisons
            );
            report::rate(&name, args.join_count, time);
        }
    }
    let start = Instant::now();
    join::clusters(&fingerprints, 3, &())?;
    report::rate("clusters, k = 3", args.join_count, start.elapsed());
    let queries: Vec<u64> = fingerprints.iter().copied().step_by(10).collect();
    let start = Instant::now();
    let found = join::cross_join(&queries, &fingerprints, 3, &(), &|_| Ok(()))?;
    let name = format!("a tenth against all, k = 3, {} pairs", found.pairs);
    report::rate(&name, args.join_count, start.elapsed());
    of_index(&dir.join("joined"), &fingerprints, args)
}

fn of_index(dir: &Path, fingerprints: &[u64], args: &Args) -> Result<(), Box<dyn Error>> {
    let options = IndexOptions::new().plan(Plan::parse("4", 64, 3, Some(args.join_count))?);
    let build = BuildOptions::new().memory(args.memory << 20);
    let mut builder = Builder::<u64>::create(dir, &options, &build)?;
    for (row, &fingerprint) in (0_u64..).zip(fingerprints) {
        builder.push(&row.to_be_bytes(), fingerprint, row)?;
    }
    builder.finish(&(), &mut |_, _| ())?;
    let index = Index::<u64>::open_read_only(dir)?;
    for _ in 0..RUNS {
        let start = Instant::now();
        let pairs = index.pairs(3, &(), &mut |_| Ok(()))?;
        let name = format!("pairs of documents of an index, k = 3, {pairs} pairs");
        report::rate(&name, args.join_count, start.elapsed());
    }
    let near = hamdex::verify::DuplicateRule::new(3).memory(args.memory << 20);
    let start = Instant::now();
    index.pairs(near, &(), &mut |_| Ok(()))?;
    let name = format!("the same within {} MiB", args.memory);
    report::rate(&name, args.join_count, start.elapsed());
    let start = Instant::now();
    let clusters = index.clusters(3, &())?;
    let name = format!("clusters of an index, k = 3, {} clusters", clusters.len());
    report::rate(&name, args.join_count, start.elapsed());
    Ok(())
}
