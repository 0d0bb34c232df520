//! Inserts into an index on disk in batches of a thousand, through the write-ahead log.

use std::time::Instant;

use hamdex::{Durability, Index, IndexOptions};

use super::disk::size;
use super::{Job, Outcome, print};

pub(super) const NAME: &str = "hamdex, inserts";

/// Documents inserted at most.
const MOST: usize = 1_000_000;

pub(super) fn run(job: &Job) -> Outcome<()> {
    let mut fingerprints = job.fingerprints()?;
    fingerprints.truncate(MOST);
    let documents: Vec<([u8; 8], u64)> =
        (0_u64..).map(u64::to_be_bytes).zip(fingerprints).collect();
    let mut row = job.row("insert");
    row.count = documents.len() as u64;
    row.note = "batches of 1,000 from one thread, no fsync".into();
    let mut spent = 0.0;
    for number in 0..job.repetitions {
        let directory = job.dir.join(format!("inserted-{number}"));
        let index = Index::<u64>::create(&directory, &IndexOptions::new())?;
        let start = Instant::now();
        for batch in documents.chunks(1000) {
            index.insert_batch(batch, Durability::Buffered)?;
        }
        let seconds = start.elapsed().as_secs_f64();
        row.add("per_second", documents.len() as f64 / seconds);
        let start = Instant::now();
        index.fold(&())?;
        row.add("fold_seconds", start.elapsed().as_secs_f64());
        drop(index);
        row.add("disk_bytes", size(&directory)? as f64);
        std::fs::remove_dir_all(&directory)?;
        spent += seconds;
        if spent + seconds > job.budget * 10.0 {
            break;
        }
    }
    print(&row);
    Ok(())
}
