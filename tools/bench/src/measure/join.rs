//! Self-join in memory; the pairs are collected in memory too.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use hamdex::join::{self, Pair};

use super::digest::Digest;
use super::{Job, Outcome, print};
use crate::report;

pub(super) const NAME: &str = "hamdex, self-join";

/// Distances of the joins, in order; stops after a slow one.
const DISTANCES: [u32; 3] = [3, 6, 8];

/// Seconds for one distance; the next distance is skipped if this one took over a tenth of it.
const MOST: f64 = 60.0;

pub(super) fn run(job: &Job) -> Outcome<()> {
    let fingerprints = job.fingerprints()?;
    let threads = rayon::current_num_threads() as u64;
    let find = |distance| {
        let pairs = Mutex::new(Vec::<Pair<u64>>::new());
        join::self_join(&fingerprints, distance, &(), &|batch| {
            pairs.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(batch);
            Ok(())
        })?;
        Ok(pairs.into_inner()?)
    };
    let digest = |pairs: Vec<Pair<u64>>| {
        let mut digest = Digest::default();
        for pair in pairs {
            digest.pair(pair.a, pair.b);
        }
        digest
    };
    measure(job, threads, "all cores; repeated fingerprints included", find, digest)
}

/// Measures `find` at each distance, and records the digest of the pairs.
pub(super) fn measure<P>(
    job: &Job,
    threads: u64,
    note: &str,
    find: impl Fn(u32) -> Outcome<P>,
    digest: impl Fn(P) -> Digest,
) -> Outcome<()> {
    let before = report::resident_memory();
    for distance in DISTANCES {
        let mut row = job.row("join");
        row.k = Some(distance.into());
        row.threads = threads;
        row.count = job.count as u64;
        row.note = note.into();
        let mut spent = 0.0;
        for _ in 0..job.repetitions {
            let start = Instant::now();
            let pairs = find(distance)?;
            let seconds = start.elapsed().as_secs_f64();
            row.add("seconds", seconds);
            row.checks = vec![digest(pairs).check(job.count as u64)];
            spent += seconds;
            if spent + seconds > job.budget * 10.0 {
                break;
            }
        }
        if let (Some(before), Some(peak)) = (before, report::peak_memory()) {
            row.add("peak_bytes", (peak - before).max(0.0));
        }
        print(&row);
        if row.median("seconds").is_none_or(|seconds| seconds * 10.0 > MOST) {
            break;
        }
    }
    Ok(())
}
