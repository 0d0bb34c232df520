//! Inserts into an index on disk in batches of 1,000, alone and beside a reader.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hamdex::{Durability, Index, IndexOptions, Query};

use super::disk::size;
use super::harness::{MAIN_DISTANCE, percentile};
use super::{Job, Outcome, print};
use crate::data;
use crate::shape::{self, Shape};

pub(super) const NAME: &str = "hamdex, inserts";

/// Maximum number of documents.
const MOST: usize = 1_000_000;

const BATCH: usize = 1000;

/// Threads that write beside the reader.
const WRITERS: usize = 2;

type Document = ([u8; 8], u64);

pub(super) fn run(job: &Job) -> Outcome<()> {
    let mut fingerprints = job.fingerprints()?;
    fingerprints.truncate(MOST);
    let documents: Vec<Document> = (0_u64..).map(u64::to_be_bytes).zip(fingerprints).collect();
    let mut row = job.row("insert");
    row.count = documents.len() as u64;
    row.note = format!("batches of {BATCH} from one thread, no fsync, then folded");
    let directory = job.dir.join("inserted");
    let mut spent = 0.0;
    for _ in 0..job.repetitions {
        if directory.exists() {
            std::fs::remove_dir_all(&directory)?;
        }
        let index = Index::<u64>::create(&directory, &IndexOptions::new())?;
        let start = Instant::now();
        for batch in documents.chunks(BATCH) {
            index.insert_batch(batch, Durability::Buffered)?;
        }
        let seconds = start.elapsed().as_secs_f64();
        row.add("per_second", documents.len() as f64 / seconds);
        let start = Instant::now();
        index.merge(&())?;
        row.add("fold_seconds", start.elapsed().as_secs_f64());
        drop(index);
        row.add("disk_bytes", size(&directory)? as f64);
        spent += seconds;
        if spent + seconds > job.budget * 10.0 {
            break;
        }
    }
    print(&row);
    let index = Index::<u64>::open(&directory)?;
    beside_a_reader(job, &index, &documents)?;
    drop(index);
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}

/// Inserts the same number of documents again from two threads while a third one searches.
fn beside_a_reader(job: &Job, index: &Index<u64>, documents: &[Document]) -> Outcome<()> {
    let queries = data::read_some(&job.queries.join(format!("near-{MAIN_DISTANCE}.u64")), 10_000)?;
    let search = |query: u64| {
        let start = Instant::now();
        let matches = index.search(Query::new(query).distance(MAIN_DISTANCE));
        matches.map(|_| start.elapsed()).map_err(|error| error.to_string())
    };
    // The first pass warms the cache.
    let mut alone = Vec::new();
    for _ in 0..2 {
        alone = queries.iter().map(|query| search(*query)).collect::<Result<Vec<_>, _>>()?;
    }
    let added: Vec<Document> = (documents.len() as u64..)
        .map(u64::to_be_bytes)
        .zip(shape::strangers(Shape::Random, 1, documents.len()))
        .collect();
    let done = AtomicBool::new(false);
    let start = Instant::now();
    let (mut beside, seconds) = std::thread::scope(|scope| -> Result<_, String> {
        let reader = scope.spawn(|| {
            let mut times: Vec<Duration> = Vec::new();
            for query in queries.iter().cycle() {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                times.push(search(*query)?);
            }
            Ok::<_, String>(times)
        });
        let writers: Vec<_> = added
            .chunks(added.len().div_ceil(WRITERS).max(1))
            .map(|part| {
                scope.spawn(move || {
                    part.chunks(BATCH).try_for_each(|batch| {
                        let inserted = index.insert_batch(batch, Durability::Buffered);
                        inserted.map(drop).map_err(|error| error.to_string())
                    })
                })
            })
            .collect();
        let gone = |_| "a thread ended early".to_owned();
        let written: Vec<_> =
            writers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        let seconds = start.elapsed().as_secs_f64();
        done.store(true, Ordering::Relaxed);
        let times = reader.join().map_err(gone)??;
        for writer in written {
            writer.map_err(gone)??;
        }
        Ok((times, seconds))
    })?;
    let mut row = job.row("insert");
    row.threads = WRITERS as u64;
    row.count = added.len() as u64;
    row.add("per_second", added.len() as f64 / seconds);
    for (figure, times) in [("alone", &mut alone), ("beside", &mut beside)] {
        times.sort_unstable();
        row.add(&format!("reader_median_us_{figure}"), percentile(times, 500));
        row.add(&format!("reader_p99_us_{figure}"), percentile(times, 990));
    }
    row.note = format!(
        "batches of {BATCH} from {WRITERS} threads into the folded index while a third searches"
    );
    print(&row);
    Ok(())
}
