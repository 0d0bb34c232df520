//! Cancelling: every long call stops when its caller asks, without damage.

use std::sync::atomic::{AtomicU64, Ordering};

use hamdex::build::{BuildOptions, Builder};
use hamdex::{Durability, Error, Index, IndexOptions, Progress, Result, join};

use crate::support::{Model, Rng, assert_holds, keyed, options, random};

/// Asks to stop after `limit` checks.
struct StopAfter {
    checks: AtomicU64,
    limit: u64,
}

impl StopAfter {
    fn new(limit: u64) -> Self {
        Self { checks: AtomicU64::new(0), limit }
    }
}

impl Progress for StopAfter {
    fn cancelled(&self) -> bool {
        self.checks.fetch_add(1, Ordering::Relaxed) >= self.limit
    }
}

fn cancelled<T>(result: Result<T>) -> bool {
    result.is_err_and(|error| matches!(error, Error::Cancelled))
}

fn index_of(count: usize) -> (tempfile::TempDir, Index<u64>, Model<u64>) {
    let rng = &mut Rng::new(21);
    let fingerprints = random::<u64>(rng, count);
    let documents = keyed(rng, &fingerprints);
    let directory = tempfile::tempdir().unwrap();
    let index = Index::create(directory.path(), &options::<u64>("4")).unwrap();
    index.insert_batch(&documents, Durability::Buffered).unwrap();
    (directory, index, documents.into_iter().collect())
}

#[test]
fn every_long_call_is_cancelled_before_it_begins() {
    // Calls of one step must be cancelled too, so a small index is included.
    for count in [10, 3000] {
        let (_directory, index, model) = index_of(count);
        let stop = || StopAfter::new(0);
        assert!(cancelled(index.pairs(3, &stop(), &mut |_| Ok(()))), "pairs of {count}");
        assert!(cancelled(index.clusters(3, &stop()).map(|c| c.len())), "clusters of {count}");
        assert!(cancelled(index.fold(&stop())), "fold of {count}");
        assert!(cancelled(index.check(&stop())), "check of {count}");
        assert!(cancelled(index.stats(&stop())), "stats of {count}");
        assert_holds(&index, &model, "after cancelled calls");
    }
    let fingerprints = random::<u64>(&mut Rng::new(22), 3000);
    assert!(cancelled(join::self_join(&fingerprints, 3, &StopAfter::new(0), &|_| Ok(()))));
    assert!(cancelled(join::clusters(&fingerprints, 3, &StopAfter::new(0))));
}

#[test]
fn a_cancelled_fold_can_be_continued() -> Result<()> {
    let (_directory, index, model) = index_of(3000);
    assert!(cancelled(index.fold(&StopAfter::new(2))));
    let stats = index.stats(&())?;
    let singles: Vec<_> = stats.tables.iter().map(|table| table.singles).collect();
    assert_eq!(singles, [0, 0, 3000, 3000], "two steps were done");
    assert_holds(&index, &model, "half folded");
    index.fold(&())?;
    assert_eq!(index.stats(&())?.singles, 0);
    assert_holds(&index, &model, "folded");
    Ok(())
}

#[test]
fn a_cancelled_build_can_be_resumed_or_abandoned() -> Result<()> {
    let (directory, index, mut model) = index_of(500);
    drop(index);
    let path = directory.path();
    let build = BuildOptions::new().memory(16 << 20);
    let rows: Vec<_> = (0..200_000_u64).map(|row| (row.to_be_bytes(), row << 20)).collect();
    let finish = |mut builder: Builder<u64>, limit| {
        let after = builder.resume_after().map_or(0, |origin| origin + 1);
        for (origin, (key, fingerprint)) in (0..).zip(&rows).skip(usize::try_from(after).unwrap()) {
            builder.push(key, *fingerprint, origin)?;
        }
        builder.finish(&StopAfter::new(limit), &mut |_, _| ())
    };
    assert!(cancelled(finish(Builder::create(path, &IndexOptions::new(), &build)?, 3)));
    Builder::<u64>::abandon(path)?;
    let index = Index::<u64>::open(path)?;
    assert_holds(&index, &model, "abandoned");
    drop(index);

    assert!(cancelled(finish(Builder::create(path, &IndexOptions::new(), &build)?, 0)));
    for limit in [1, 5, 10, 15] {
        assert!(cancelled(finish(Builder::resume(path, &build)?, limit)), "{limit} checks");
    }
    let report = finish(Builder::resume(path, &build)?, u64::MAX)?;
    assert_eq!(report.documents, 200_500);
    model.extend(rows.iter().map(|(key, fingerprint)| (key.to_vec(), *fingerprint)));
    assert_holds(&Index::open(path)?, &model, "resumed");
    Ok(())
}

#[test]
fn an_error_of_the_visitor_stops_the_pairs() {
    let (_directory, index, _) = index_of(10);
    index.insert_batch(&[(b"x", 5), (b"y", 5), (b"z", 5)], Durability::Buffered).unwrap();
    let mut seen = 0;
    let error = index.pairs(0, &(), &mut |_| {
        seen += 1;
        Err(Error::InvalidOption { name: "visitor", reason: "enough".to_owned() })
    });
    assert!(matches!(error, Err(Error::InvalidOption { name: "visitor", .. })));
    assert_eq!(seen, 1);
}
