//! Calibration: measures the costs of this machine.
//!
//! Two stored sets separate the two costs of a store: searches of one with few entries per prefix
//! measure a seek, searches of one with many measure an entry. So do two sets in memory, and three
//! ways to group a bucket of a join.

use std::path::Path;
use std::time::Instant;

use crate::bulk::{BuildOptions, Builder};
use crate::error::Result;
use crate::index::{Index, IndexOptions, SearchPath, targets};
use crate::join::Trial;
use crate::plan::{Costs, SEEK_ENTRIES};
use crate::progress::{self, Progress};
use crate::resident::ResidentTables;

/// Number of fingerprints of the stored sets.
const STORED: u64 = SEEK_ENTRIES;

/// Timed searches with short ranges. They read nearly every block, so that processor caches do not
/// make a seek cheaper than it is in use.
const SEARCHES: usize = 4_000;

/// Sizes of the sets in memory: one nearly fits the processor caches, one is far larger.
const RESIDENT: [u64; 2] = [1_000_000, 8_000_000];

/// Distance of the timed searches in memory, about 180 probes each.
const DISTANCE: u32 = 8;

/// Members that a join moves into buckets, far more than the processor caches hold.
const SCATTERED: usize = 4_000_000;

/// Ranges of a batch that are sorted.
const SORTED: usize = 1_000_000;

/// Repetitions of each measurement; the minimum is used, since other load only adds time.
const ROUNDS: usize = 5;

/// Measures the costs of searches and joins on this machine.
///
/// Builds indexes of a million fingerprints in a temporary directory under `directory`, which
/// should be on the disk of the real indexes. Takes about ten seconds and 300 MB of memory. Store
/// costs are measured with all tables in the page cache. Pass the result to
/// [`IndexOptions::costs`](crate::IndexOptions::costs). Costs change only how a search is executed,
/// not its result.
///
/// # Errors
///
/// Returns [`Error::Io`](crate::Error::Io) if `directory` is not writable, and
/// [`Error::Cancelled`](crate::Error::Cancelled) if `progress` requests it.
///
/// ```no_run
/// use hamdex::inspect::calibrate;
/// use hamdex::{Index, IndexOptions};
///
/// let costs = calibrate(std::env::temp_dir(), &())?;
/// let index = Index::<u64>::open_with("pages.idx", &IndexOptions::new().costs(costs))?;
/// # Ok::<(), hamdex::Error>(())
/// ```
pub fn calibrate(directory: impl AsRef<Path>, progress: &dyn Progress) -> Result<Costs> {
    let directory = directory.as_ref();
    // Costs are those of one thread; large searches use every thread of the pool.
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    let one = one.map_err(|error| crate::Error::io(directory, std::io::Error::other(error)))?;
    one.install(|| measure(directory, progress))
}

fn measure(directory: &Path, progress: &dyn Progress) -> Result<Costs> {
    progress.begin("calibrating", Some(5));
    let mut costs = Costs::default();
    let temporary = tempfile::Builder::new().prefix("hamdex-calibrate-").tempdir_in(directory);
    let temporary = temporary.map_err(|error| crate::Error::io(directory, error))?;
    let mut random = fastrand::Rng::with_seed(1);
    let even = stored(&temporary.path().join("even"), |_| random.u64(..))?;
    let step = |done: u64| {
        progress.advance(done);
        progress::check(progress)
    };
    step(1)?;
    // Only 16 values lead the first table, so each of its ranges holds a sixteenth of the set.
    let skewed =
        stored(&temporary.path().join("skewed"), |at| (at % 16) << 60 | random.u64(..) >> 16)?;
    step(1)?;
    costs.scan_ns = search_nanos(&even, SearchPath::Scan, 3)? / STORED as f64;
    let probes = even.plan().tables().len() as f64;
    let few = search_nanos(&even, SearchPath::Tables, SEARCHES)?;
    let many = search_nanos(&skewed, SearchPath::Tables, 10)?;
    // Both probe each table once and differ only in the entries read from one table.
    let (behind_few, behind_many) = (STORED as f64 / 65_536.0, STORED as f64 / 16.0);
    costs.candidate_ns = ((many - few) / (behind_many - behind_few)).max(0.1);
    let decoded = probes * (behind_few + f64::from(costs.run_entries));
    costs.seek_ns = ((few - decoded * costs.candidate_ns) / probes).max(100.0);
    let mut times = [0.0; RESIDENT.len()];
    let mut buckets = 1.0;
    for (time, count) in times.iter_mut().zip(RESIDENT) {
        let set: Vec<u64> = (0..count).map(|_| random.u64(..)).collect();
        let begun = Instant::now();
        let tables = ResidentTables::build(&set)?;
        costs.build_ns = begun.elapsed().as_secs_f64() * 1e9 / count as f64;
        drop(set);
        let queries: Vec<u64> = (0..300).map(|_| random.u64(..)).collect();
        let account = tables.account(0, DISTANCE);
        buckets = account.tables.iter().map(|table| table.buckets as f64).sum();
        *time = least(|| {
            for query in &queries {
                tables.search(*query, DISTANCE)?;
            }
            Ok(queries.len())
        })?;
        costs.resident_scan_ns = least(|| tables.scan(0, DISTANCE).map(|_| 1))? / count as f64;
        step(1)?;
    }
    let [small, large] = times.map(|time| time / buckets);
    let [few, many] = RESIDENT.map(|count| count as f64 / 65_536.0);
    costs.member_ns = ((large - small) / (many - few)).max(0.02);
    costs.bucket_ns = (small - few * costs.member_ns).max(1.0);
    let queries: Vec<u64> = (0..SORTED).map(|_| random.u64(..)).collect();
    let table = even.plan().tables().last().expect("a plan has tables");
    costs.range_ns = least(|| Ok(targets(table, 0, &queries).1.len()))?;
    measure_joins(&mut costs, &mut random)?;
    step(1)?;
    Ok(costs.rounded())
}

/// Measures the steps of a join.
fn measure_joins(costs: &mut Costs, random: &mut fastrand::Rng) -> Result<()> {
    let mut random = |count| (0..count).map(|_| random.u64(..)).collect::<Vec<u64>>();
    let (members, mut to) = (random(SCATTERED), vec![0; SCATTERED]);
    costs.scatter_ns = least(|| Ok(Trial::scatter(&members, &mut to)))?;
    drop((members, to));
    let mut trial = Trial::new();
    // Many members in few groups, in many groups, and few members in many groups.
    let ways = [(1 << 15, 6), (1 << 15, 12), (1 << 12, 12)];
    let mut times = [0.0; 3];
    for (time, (members, bits)) in times.iter_mut().zip(ways) {
        let bucket = random(members);
        *time = least(|| trial.compare(&bucket, bits).map(|_| 1))?;
    }
    let [large, small, few] = times;
    let pairs = ways.map(|(members, bits)| Trial::met(members, bits));
    let members = ways.map(|(members, _)| members as f64);
    let groups = ways.map(|(_, bits)| f64::from(bits).exp2());
    // Each time is a sum of the three costs, of which another one is by far the largest part.
    for _ in 0..ROUNDS {
        let of_groups = (groups[1] - groups[0]) * costs.group_ns;
        costs.pair_ns = ((large - small + of_groups) / (pairs[0] - pairs[1])).max(0.001);
        let of_pairs = (pairs[1] - pairs[2]) * costs.pair_ns;
        costs.gather_ns = ((small - few - of_pairs) / (members[1] - members[2])).max(0.1);
        let of_others = members[2] * costs.gather_ns + pairs[2] * costs.pair_ns;
        costs.group_ns = ((few - of_others) / groups[2]).max(0.1);
    }
    let bucket: Vec<u64> = (0..1024).collect();
    let mut near = 0;
    let time = least(|| {
        near = trial.compare(&bucket, 1)?;
        Ok(1)
    })?;
    let compared = Trial::met(bucket.len(), 0) * costs.pair_ns;
    costs.near_ns = ((time - compared) / near.max(1) as f64).max(0.1);
    Ok(())
}

/// Builds an index of [`STORED`] documents and opens it read-only.
fn stored(path: &Path, mut fingerprint: impl FnMut(u64) -> u64) -> Result<Index<u64>> {
    let mut builder = Builder::<u64>::create(path, &IndexOptions::new(), &BuildOptions::new())?;
    for at in 0..STORED {
        builder.push(&at.to_be_bytes(), fingerprint(at), at)?;
    }
    builder.finish(&(), &mut |_, _| ())?;
    Index::open_with(path, &IndexOptions::new().read_only(true))
}

/// Returns the time of one search, in nanoseconds, that finds next to nothing.
fn search_nanos(index: &Index<u64>, path: SearchPath, searches: usize) -> Result<f64> {
    let mut random = fastrand::Rng::with_seed(2);
    // Keeps the leading bits of a query within the 16 leading values of the skewed set.
    let queries: Vec<u64> = (0..searches).map(|_| random.u64(..) & !(0xfff << 48)).collect();
    let reader = index.reader()?;
    least(|| {
        for query in &queries {
            // So that each search reads its ranges.
            reader.forget();
            reader.near_by(*query, 3, path)?;
        }
        Ok(searches)
    })
}

/// Returns the minimum time per unit in nanoseconds; `work` returns its number of units.
fn least(mut work: impl FnMut() -> Result<usize>) -> Result<f64> {
    let mut least = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let count = work()?;
        least = least.min(start.elapsed().as_secs_f64() * 1e9 / count.max(1) as f64);
    }
    Ok(least)
}
