//! Inserts through the write-ahead log in batches of 1,000.

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use hamdex::{Durability, Index, IndexOptions};

use crate::shape::{self, Shape};
use crate::{Args, report};

pub(crate) fn run(dir: &Path, args: &Args) -> Result<(), Box<dyn Error>> {
    let documents: Vec<([u8; 8], u64)> = (0_u64..)
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
            let folded = index.fold(&())?;
            report::rate(
                "fold of all of it, entries of four tables",
                folded.folded,
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
    let index = Index::<u64>::create(dir.join("inserted-new"), &options)?;
    let some = documents.get(..documents.len() / 5).unwrap_or_default();
    let start = Instant::now();
    let mut refused = 0;
    for batch in some.chunks(1000) {
        let outcome = index.insert_batch_if_new(batch, 3, Durability::Buffered)?;
        refused += outcome.iter().flatten().count();
    }
    report::rate(
        &format!("insert if new, batches of 1,000, {refused} refused"),
        some.len() as u64,
        start.elapsed(),
    );
    Ok(())
}
