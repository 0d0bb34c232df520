//! Inserts through the write-ahead log in batches of 1,000.

use std::error::Error;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hamdex::{Durability, Index, IndexOptions, Query};

use crate::shape::{self, Shape};
use crate::{Args, report};

type Document = ([u8; 8], u64);
type Outcome = Result<(), Box<dyn Error>>;

pub(crate) fn run(dir: &Path, args: &Args) -> Outcome {
    let documents: Vec<Document> = (0_u64..)
        .zip(shape::mixed::<u64>(Shape::Random, args.seed, args.insert_count))
        .map(|(row, fingerprint)| (row.to_be_bytes(), fingerprint))
        .collect();
    let options = IndexOptions::new().memory(args.memory << 20);
    let runs = [
        ("insert, batches of 1,000, no fsync", Durability::Buffered, documents.as_slice()),
        (
            "insert, batches of 1,000, one fsync each",
            Durability::Synced,
            documents.get(..documents.len() / 5).unwrap_or_default(),
        ),
    ];
    for (number, (name, durability, documents)) in runs.into_iter().enumerate() {
        let index = Index::<u64>::create(dir.join(format!("inserted-{number}")), &options)?;
        let start = Instant::now();
        for batch in documents.chunks(1000) {
            index.insert_batch(batch, durability)?;
        }
        report::rate(name, documents.len() as u64, start.elapsed());
        if number == 0 {
            let start = Instant::now();
            let folded = index.merge(&())?;
            report::rate(
                "fold of all of it, entries of four tables",
                folded.merged,
                start.elapsed(),
            );
            let per = |bytes: u64| bytes as f64 / documents.len().max(1) as f64;
            let stats = index.stats(&())?;
            report::row(
                "bytes per fingerprint: tables after fold",
                &format!("{:.1} (before {:.1})", per(stats.bytes_tables), per(folded.bytes_before)),
            );
        }
    }
    let some = documents.get(..documents.len() / 5).unwrap_or_default();
    for threads in [1, 4] {
        let index = Index::<u64>::create(dir.join(format!("inserted-new-{threads}")), &options)?;
        if_new(&index, some, threads)?;
    }
    let index = Index::<u64>::create(dir.join("inserted-beside"), &options)?;
    index.insert_batch(some, Durability::Buffered)?;
    beside(&index, &documents, "one after the other", Duration::ZERO)?;
    let index = Index::<u64>::create(dir.join("inserted-beside-paced"), &options)?;
    index.insert_batch(some, Durability::Buffered)?;
    beside(&index, &documents, "1,000 a second", Duration::from_millis(1))
}

/// Inserts documents from some threads unless a near one is stored.
fn if_new(index: &Index<u64>, documents: &[Document], threads: usize) -> Outcome {
    let start = Instant::now();
    let share = documents.len().div_ceil(threads);
    let refused = std::thread::scope(|scope| {
        let workers: Vec<_> = documents
            .chunks(share.max(1))
            .map(|documents| {
                scope.spawn(|| {
                    let mut refused = 0;
                    for batch in documents.chunks(1000) {
                        let found = index.insert_batch_if_new(batch, 3, Durability::Buffered)?;
                        refused += found.iter().flatten().count();
                    }
                    Ok::<_, hamdex::Error>(refused)
                })
            })
            .collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, _>| worker.join().expect("no panic");
        workers.into_iter().map(join).sum::<Result<usize, _>>()
    })?;
    report::rate(
        &format!("insert if new, batches of 1,000, {threads} threads, {refused} refused"),
        documents.len() as u64,
        start.elapsed(),
    );
    Ok(())
}

/// Searches near stored documents while two threads insert, at a pace.
fn beside(index: &Index<u64>, documents: &[Document], pace: &str, rest: Duration) -> Outcome {
    let stored = documents.len() / 5;
    let (old, new) = documents.split_at(stored);
    let writing = AtomicUsize::new(2);
    let mut times = Vec::new();
    std::thread::scope(|scope| {
        for half in new.chunks(new.len().div_ceil(2).max(1)) {
            let (index, writing) = (&*index, &writing);
            scope.spawn(move || {
                let inserted = half.chunks(1000).try_for_each(|batch| {
                    index.insert_batch(batch, Durability::Buffered).map(drop)
                });
                writing.fetch_sub(1, Ordering::Release);
                inserted.expect("the disk has room");
            });
        }
        for (at, (_, stored)) in old.iter().cycle().enumerate() {
            if writing.load(Ordering::Acquire) == 0 {
                break;
            }
            let start = Instant::now();
            index.search(Query::new(stored ^ (1 << (at % 64))).distance(3))?;
            times.push(start.elapsed());
            std::thread::sleep(rest);
        }
        Ok::<_, hamdex::Error>(())
    })?;
    report::spread(&format!("searches, {pace}, beside two writers"), &mut times);
    Ok(())
}
