//! Measures builds, single queries, and batches on one thread and on all threads.

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use rayon::{ThreadPool, ThreadPoolBuilder};

use super::{Job, Outcome, digest, print};
use crate::data;
use crate::report;
use crate::row::Row;

/// An engine that finds fingerprints near a query.
pub(crate) trait Engine: Sized + Send + Sync {
    /// An answer in the engine's type; conversions are not measured.
    type Answer: Send;

    /// Builds the engine.
    fn build(job: &Job, fingerprints: &[u64]) -> Outcome<Self>;

    /// Returns true if the engine supports this distance.
    fn answers(&self, distance: u32) -> bool;

    /// Answers one query on the calling thread.
    fn search(&self, query: u64, distance: u32) -> Outcome<Self::Answer>;

    /// Answers many queries on rayon's current pool; `None` if the engine has no such call.
    fn batch(&self, _queries: &[u64], _distance: u32) -> Outcome<Option<Vec<Self::Answer>>> {
        Ok(None)
    }

    /// Converts an answer to fingerprints, in any order and with repeats.
    fn found(&self, answer: &Self::Answer, fingerprints: &[u64]) -> Vec<u64>;

    /// Returns the size on disk in bytes.
    fn disk_bytes(&self) -> u64 {
        0
    }

    /// Returns a note about the figures.
    fn note(&self) -> String {
        String::new()
    }
}

/// Maximum number of single queries, enough for the 99.9th percentile.
const MOST_SINGLE: usize = 10_000;

/// Maximum time of all builds, as a multiple of the budget of a repetition.
const BUILDING: f64 = 40.0;

/// The distance at which random queries and batches are also measured.
pub(crate) const MAIN_DISTANCE: u32 = 3;

pub(super) fn run<E: Engine>(job: &Job) -> Outcome<()> {
    let fingerprints = job.fingerprints()?;
    let one = ThreadPoolBuilder::new().num_threads(1).build()?;
    let all = ThreadPoolBuilder::new().build()?;
    let before = report::resident_memory().unwrap_or_default();
    let engine: E = build(job, &fingerprints, &all, before)?;
    let bench = Bench { job, engine: &engine, fingerprints: &fingerprints, one, all };
    for &distance in job.distances.iter().filter(|k| engine.answers(**k)) {
        bench.singles("near", &format!("near-{distance}.u64"), distance)?;
        if distance == MAIN_DISTANCE {
            bench.singles("random", "random.u64", distance)?;
        }
    }
    let mut row = job.row("memory");
    if let (Some(now), Some(peak)) = (report::resident_memory(), report::peak_memory()) {
        row.add("resident_bytes", now - before);
        row.add("peak_bytes", peak - before);
        print(&row);
    }
    // Batches run last, because their answers take more memory than a small index.
    if job.distances.contains(&MAIN_DISTANCE) && engine.answers(MAIN_DISTANCE) {
        bench.batches(&format!("near-{MAIN_DISTANCE}.u64"), MAIN_DISTANCE)?;
    }
    Ok(())
}

/// Builds repeatedly within the time limit, and keeps the last one.
fn build<E: Engine>(job: &Job, fingerprints: &[u64], pool: &ThreadPool, before: f64) -> Outcome<E> {
    let mut row = job.row("build");
    row.threads = pool.current_num_threads() as u64;
    row.count = fingerprints.len() as u64;
    let mut spent = 0.0;
    loop {
        let start = Instant::now();
        let engine = pool.install(|| E::build(job, fingerprints).map_err(|e| e.to_string()))?;
        let seconds = start.elapsed().as_secs_f64();
        row.add("seconds", seconds);
        spent += seconds;
        let builds = row.figures.get("seconds").map_or(0, Vec::len);
        // Only the first build starts with clean memory.
        if builds == 1
            && let Some(after) = report::resident_memory()
        {
            row.add("memory_bytes", (after - before).max(0.0));
        }
        if builds >= job.repetitions || spent + seconds > BUILDING * job.budget {
            row.add("disk_bytes", engine.disk_bytes() as f64);
            row.note = engine.note();
            print(&row);
            return Ok(engine);
        }
    }
}

struct Bench<'a, E> {
    job: &'a Job,
    engine: &'a E,
    fingerprints: &'a [u64],
    one: ThreadPool,
    all: ThreadPool,
}

impl<E: Engine> Bench<'_, E> {
    fn row(&self, work: &str, kind: &str, distance: u32) -> Row {
        Row { k: Some(distance.into()), kind: kind.into(), ..self.job.row(work) }
    }

    fn queries(&self, file: &str, most: usize) -> Outcome<Vec<u64>> {
        Ok(data::read_some(&self.job.queries.join(Path::new(file)), most)?)
    }

    fn singles(&self, kind: &str, file: &str, distance: u32) -> Outcome<()> {
        let queries = self.queries(file, MOST_SINGLE)?;
        let mut row = self.row("search", kind, distance);
        self.one.install(|| self.take_singles(&queries, distance, &mut row)).map_err(text)?;
        print(&row);
        Ok(())
    }

    fn take_singles(&self, queries: &[u64], k: u32, row: &mut Row) -> Result<(), String> {
        let search = |query: u64| self.engine.search(query, k).map_err(|e| e.to_string());
        let (queries, answers) = self.affordable(queries, |queries| {
            queries.iter().map(|query| search(*query)).collect::<Result<Vec<_>, _>>()
        })?;
        row.count = queries.len() as u64;
        row.checks = self.checks(&answers);
        drop(answers);
        for _ in 0..self.job.repetitions {
            let mut times = Vec::with_capacity(queries.len());
            for query in queries {
                let start = Instant::now();
                let answer = search(black_box(*query))?;
                times.push(start.elapsed());
                drop(black_box(answer));
            }
            let start = Instant::now();
            for query in queries {
                black_box(search(black_box(*query))?);
            }
            row.add("per_second", queries.len() as f64 / start.elapsed().as_secs_f64());
            percentiles(&mut times, row);
        }
        Ok(())
    }

    fn batches(&self, file: &str, distance: u32) -> Outcome<()> {
        let queries = self.queries(file, usize::MAX)?;
        for pool in [&self.one, &self.all] {
            let mut row = self.row("batch", "near", distance);
            row.threads = pool.current_num_threads() as u64;
            pool.install(|| self.take_batches(&queries, distance, &mut row)).map_err(text)?;
            if !row.figures.is_empty() {
                print(&row);
            }
        }
        Ok(())
    }

    fn take_batches(&self, queries: &[u64], k: u32, row: &mut Row) -> Result<(), String> {
        let batch = |queries: &[u64]| self.engine.batch(queries, k).map_err(|e| e.to_string());
        if batch(&[])?.is_none() {
            return Ok(());
        }
        let (queries, answers) =
            self.affordable(queries, |queries| Ok(batch(queries)?.unwrap_or_default()))?;
        row.count = queries.len() as u64;
        row.checks = self.checks(&answers);
        drop(answers);
        for _ in 0..self.job.repetitions {
            let start = Instant::now();
            let answers = batch(queries)?;
            row.add("per_second", queries.len() as f64 / start.elapsed().as_secs_f64());
            drop(black_box(answers));
        }
        Ok(())
    }

    fn checks(&self, answers: &[E::Answer]) -> Vec<crate::row::Check> {
        let found = |answer| self.engine.found(answer, self.fingerprints);
        digest::checks(answers.iter().map(found))
    }

    /// Answers 10, 100, ... queries until ten times as many would exceed the budget.
    ///
    /// This warms the caches, and engines of any speed are compared on equal queries.
    fn affordable<'q, A>(
        &self,
        queries: &'q [u64],
        answer: impl Fn(&'q [u64]) -> Result<Vec<A>, String>,
    ) -> Result<(&'q [u64], Vec<A>), String> {
        let budget = Duration::try_from_secs_f64(self.job.budget).unwrap_or(Duration::MAX);
        let (mut count, mut warm) = (10, false);
        loop {
            let some = queries.get(..count).unwrap_or(queries);
            let start = Instant::now();
            let answers = answer(some)?;
            let slow = start.elapsed() * 10 > budget;
            if count >= queries.len() || (slow && warm) {
                return Ok((some, answers));
            }
            // A slow pass is repeated once, because caches may have been cold.
            warm = slow;
            count *= if slow { 1 } else { 10 };
        }
    }
}

fn text(error: String) -> Box<dyn std::error::Error> {
    error.into()
}

/// Adds the median, 99th and 99.9th percentile in microseconds, if there are enough times.
fn percentiles(times: &mut [Duration], row: &mut Row) {
    times.sort_unstable();
    for (name, permille, least) in
        [("median_us", 500, 1), ("p99_us", 990, 100), ("p999_us", 999, 1000)]
    {
        if times.len() >= least {
            row.add(name, percentile(times, permille));
        }
    }
}

/// Returns a percentile of sorted times in microseconds; 0 without times.
pub(super) fn percentile(times: &[Duration], permille: usize) -> f64 {
    let at = (times.len() * permille / 1000).min(times.len().saturating_sub(1));
    times.get(at).map_or(0.0, |time| time.as_secs_f64() * 1e6)
}

/// Name of [`PlainLoop`].
pub(super) const PLAIN_LOOP: &str = "plain loop";

/// A plain loop over all fingerprints: no code of the library, so that it can judge its answers.
pub(super) struct PlainLoop(Vec<u64>);

impl Engine for PlainLoop {
    type Answer = Vec<u64>;

    fn build(_: &Job, fingerprints: &[u64]) -> Outcome<Self> {
        Ok(Self(fingerprints.to_vec()))
    }

    fn answers(&self, _: u32) -> bool {
        true
    }

    fn search(&self, query: u64, distance: u32) -> Outcome<Vec<u64>> {
        let near = |f: &&u64| (*f ^ query).count_ones() <= distance;
        Ok(self.0.iter().filter(near).copied().collect())
    }

    fn found(&self, answer: &Vec<u64>, _: &[u64]) -> Vec<u64> {
        answer.clone()
    }

    fn note(&self) -> String {
        "Rust without SIMD, the judge of all answers".into()
    }
}
