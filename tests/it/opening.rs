//! Creating and opening: expectations, errors, and the content of a header.

use hamdex::build::{BuildOptions, Builder};
use hamdex::inspect::Header;
use hamdex::plan::Plan;
use hamdex::{Durability, Error, Index, IndexOptions, Result};

use crate::support::{Model, Rng, assert_holds, options, table_files};

fn mismatch<T>(result: Result<T>) -> (String, String, String) {
    let error = result.err().expect("the expectation differs");
    if let Error::HeaderMismatch { what, stored, wanted } = error {
        return (what.to_owned(), stored, wanted);
    }
    panic!("{error}")
}

fn told(what: &str, stored: &str, wanted: &str) -> (String, String, String) {
    (what.to_owned(), stored.to_owned(), wanted.to_owned())
}

#[test]
fn the_header_is_read_without_knowing_the_width() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let made = options::<u128>("5x2r1").distance(4).pipeline("words/1");
    drop(Index::<u128>::create(directory.path(), &made)?);
    let header = Header::read(directory.path())?;
    assert_eq!((header.format, header.bits, header.distance), (7, 128, 4));
    assert_eq!((header.plan.as_str(), header.pipeline.as_str()), ("5x2r1", "words/1"));
    let index = Index::<u128>::open(directory.path())?;
    assert_eq!(*index.header(), header);
    assert_eq!((index.distance(), index.plan().to_string()), (4, "5x2r1".to_owned()));
    Ok(())
}

#[test]
fn another_width_is_refused_by_both_numbers() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    drop(Index::<u64>::create(directory.path(), &options::<u64>("4"))?);
    let error = Index::<u128>::open(directory.path()).unwrap_err();
    assert!(matches!(error, Error::WidthMismatch { stored: 64, wanted: 128 }));
    assert_eq!(error.to_string(), "index holds 64-bit fingerprints, not 128-bit ones");
    for error in [
        Index::<u32>::open_read_only(directory.path()).unwrap_err(),
        Builder::<u32>::create(directory.path(), &IndexOptions::new(), &BuildOptions::new())
            .unwrap_err(),
        Builder::<u32>::resume(directory.path(), &BuildOptions::new()).unwrap_err(),
        Builder::<u32>::abandon(directory.path()).unwrap_err(),
    ] {
        assert!(matches!(error, Error::WidthMismatch { stored: 64, wanted: 32 }), "{error}");
    }
    let plan = Plan::named("4", 32)?;
    let error = Index::<u64>::create(directory.path().join("new"), &IndexOptions::new().plan(plan));
    assert!(matches!(error, Err(Error::WidthMismatch { stored: 32, wanted: 64 })));
    Ok(())
}

#[test]
fn expectations_that_differ_are_refused_with_both_sides() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    drop(Index::<u64>::create(path, &options::<u64>("10").pipeline("words"))?);
    let open = |options: IndexOptions| Index::<u64>::open_with(path, &options);
    let new = IndexOptions::new;
    let four = || Plan::named("4", 64).unwrap();
    assert_eq!(mismatch(open(new().plan(four()))), told("plan", "10", "4"));
    assert_eq!(mismatch(open(new().distance(4))), told("distance", "3", "4"));
    assert_eq!(mismatch(open(new().pipeline("jieba"))), told("pipeline", "words", "jieba"));
    let read_only = new().read_only(true).plan(four());
    assert_eq!(mismatch(open(read_only)), told("plan", "10", "4"));
    let error = open(new().plan(four())).unwrap_err();
    assert_eq!(error.to_string(), "index was created with plan \"10\", but \"4\" was requested");
    open(options::<u64>("10").distance(3).pipeline("words"))?;
    assert_eq!(mismatch(open(new().keep_features(true))), told("keep_features", "false", "true"));

    let merge = |options: IndexOptions| {
        Builder::<u64>::create(path, &options, &BuildOptions::new()).map(drop)
    };
    let new = IndexOptions::new;
    let plan = Plan::named("4", 64)?;
    assert_eq!(mismatch(merge(new().plan(plan))), told("plan", "10", "4"));
    assert_eq!(mismatch(merge(new().distance(2))), told("distance", "3", "2"));
    assert_eq!(mismatch(merge(new().pipeline("jieba"))), told("pipeline", "words", "jieba"));
    Index::<u64>::open(path)?;
    Ok(())
}

#[test]
fn a_plan_too_weak_for_the_distance_makes_no_index() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index");
    let weak = IndexOptions::new().plan(Plan::parse("4x1r1", 64, 3, None)?).distance(8);
    let error = Index::<u64>::create(&path, &weak).unwrap_err();
    assert!(matches!(error, Error::IncompletePlan { complete: 7, wanted: 8, .. }), "{error}");
    assert!(!path.exists(), "a refused creation leaves files");
    Ok(())
}

#[test]
fn a_read_only_handle_refuses_every_write() -> Result<()> {
    fn refused<T>(result: Result<T>) -> bool {
        result.is_err_and(|error| matches!(error, Error::ReadOnly { .. }))
    }
    let directory = tempfile::tempdir().unwrap();
    let index = Index::<u64>::create(directory.path(), &options::<u64>("4"))?;
    index.insert(b"a", 1)?;
    drop(index);
    let index = Index::<u64>::open_read_only(directory.path())?;
    assert!(refused(index.insert(b"b", 2)));
    assert!(refused(index.insert(b"a", 1)), "even if nothing would change");
    assert!(refused(index.insert_batch(&[(b"b", 2)], Durability::Buffered)));
    assert!(refused(index.insert_if_new(b"b", u64::MAX, 3, Durability::Buffered)));
    assert!(refused(index.remove(b"a")));
    assert!(refused(index.remove_batch(&[b"a"], Durability::Buffered)));
    assert!(refused(index.merge(&())));
    assert!(refused(index.merge_step()));
    assert!(refused(index.compact()));
    assert!(refused(index.flush()));
    assert_eq!((index.len()?, index.search(1)?.len()), (1, 1));
    assert_eq!(index.check(&())?.problem_count, 0);
    Ok(())
}

#[test]
fn a_read_only_handle_opens_next_to_a_writer_and_keeps_its_state() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let writer = Index::<u64>::create(directory.path(), &options::<u64>("4"))?;
    writer.insert(b"a", 1)?;
    let first = Index::<u64>::open_read_only(directory.path())?;
    writer.insert(b"b", 1)?;
    let second = Index::<u64>::open_read_only(directory.path())?;
    assert_eq!((first.len()?, second.len()?, writer.len()?), (1, 2, 2));
    assert_eq!(second.search(1)?.len(), 2);
    assert_eq!(first.search(1)?.len(), 1);
    Ok(())
}

#[test]
fn a_read_only_handle_reads_files_that_the_writer_has_deleted() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let writer = Index::<u64>::create(directory.path(), &options::<u64>("10"))?;
    let mut rng = Rng::new(81);
    let mut model = Model::new();
    // With this many files, the engine opens some only when they are read.
    for round in 0..3_u8 {
        let documents: Vec<_> =
            (0..=255).map(|at| (vec![round, at], rng.fingerprint::<u64>())).collect();
        writer.insert_batch(&documents, Durability::Buffered)?;
        // Only a merge writes to all tables. It flushes.
        writer.merge(&())?;
        model.extend(documents);
    }
    let tables = table_files(directory.path());
    assert!(tables.len() > 30, "{} files", tables.len());
    let reader = Index::<u64>::open_read_only(directory.path())?;
    writer.merge(&())?;
    writer.compact()?;
    let deleted = tables.iter().filter(|table| !table.exists()).count();
    assert!(deleted > 20, "{deleted} of {} files are deleted", tables.len());
    assert_holds(&reader, &model, "after the writer has compacted");
    Ok(())
}

#[test]
fn open_files_take_little_memory_beside_the_cache() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let plan = options::<u64>("4");
    let mut builder =
        Builder::<u64>::create(directory.path(), &plan, &BuildOptions::new().memory(32 << 20))?;
    let mut rng = Rng::new(82);
    let documents = 200_000_u64;
    for at in 0..documents {
        builder.push(&at.to_be_bytes(), rng.fingerprint::<u64>(), at)?;
    }
    builder.finish(&(), &mut |_, _| ())?;
    let index = Index::<u64>::open_with(directory.path(), &IndexOptions::new().memory(16 << 20))?;
    for at in (0..documents).step_by(97) {
        assert!(index.get(&at.to_be_bytes())?.is_some());
    }
    let used = index.memory_usage()?;
    // A filter outside the cache takes 1.25 bytes for each document.
    assert!(used.file_indexes < documents / 2, "{used:?}");
    assert!(used.block_cache < 16 << 20, "{used:?}");
    Ok(())
}

#[test]
fn handles_and_readers_are_send_and_sync() {
    fn shared<T: Send + Sync>() {}
    shared::<Index<u32>>();
    shared::<Index<u64>>();
    shared::<Index<u128>>();
    shared::<hamdex::Reader<u64>>();
    shared::<Plan>();
    shared::<Error>();
}

#[test]
fn an_index_can_be_made_in_an_empty_directory_and_below_missing_ones() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let deep = directory.path().join("a/b/c");
    Index::<u32>::create(&deep, &options::<u32>("4"))?.insert(b"x", 1)?;
    assert_eq!(Index::<u32>::open(&deep)?.len()?, 1);
    let empty = tempfile::tempdir().unwrap();
    Index::<u32>::create(empty.path(), &options::<u32>("4"))?;
    Ok(())
}

#[test]
fn building_nothing_makes_an_empty_index() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index");
    let builder = Builder::<u64>::create(&path, &options::<u64>("4"), &BuildOptions::new())?;
    assert_eq!(builder.resume_after(), None);
    let report = builder.finish(&(), &mut |_, _| ())?;
    assert_eq!((report.documents, report.fingerprints), (0, 0));
    let index = Index::<u64>::open(&path)?;
    assert!(index.is_empty()? && index.search(0)?.is_empty());
    assert_eq!(index.check(&())?.problem_count, 0);
    Ok(())
}

#[test]
fn a_dropped_build_keeps_the_index_shut_until_resumed_or_abandoned() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    Index::<u64>::create(path, &options::<u64>("4"))?.insert(b"old", 1)?;
    let build = BuildOptions::new().memory(16 << 20);
    let mut builder = Builder::<u64>::create(path, &IndexOptions::new(), &build)?;
    builder.push(b"new", 2, 0)?;
    let locked = Index::<u64>::open(path).unwrap_err();
    assert!(matches!(locked, Error::Locked { .. }), "{locked}");
    drop(builder);
    for refusal in [
        Index::<u64>::open(path).map(drop),
        Index::<u64>::open_read_only(path).map(drop),
        Builder::<u64>::create(path, &IndexOptions::new(), &build).map(drop),
    ] {
        let error = refusal.unwrap_err();
        assert!(matches!(error, Error::BuildUnfinished { .. }), "{error}");
    }

    let mut resumed = Builder::<u64>::resume(path, &build)?;
    assert_eq!(resumed.resume_after(), None, "so few documents are not durable yet");
    resumed.push(b"new", 2, 0)?;
    assert_eq!(resumed.finish(&(), &mut |_, _| ())?.documents, 2);
    let index = Index::<u64>::open(path)?;
    assert_eq!((index.get(b"old")?, index.get(b"new")?), (Some(1), Some(2)));
    drop(index);

    let mut builder = Builder::<u64>::create(path, &IndexOptions::new(), &build)?;
    builder.push(b"newer", 3, 0)?;
    drop(builder);
    Builder::<u64>::abandon(path)?;
    let index = Index::<u64>::open(path)?;
    assert_eq!((index.len()?, index.get(b"newer")?), (2, None));
    assert_eq!(index.check(&())?.problem_count, 0);
    drop(index);
    for error in [
        Builder::<u64>::abandon(path).unwrap_err(),
        Builder::<u64>::resume(path, &build).unwrap_err(),
    ] {
        assert!(matches!(error, Error::NothingToResume { .. }), "{error}");
    }
    Ok(())
}

#[test]
fn spill_files_in_another_directory_are_removed_at_the_end() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let tmp = tempfile::tempdir().unwrap();
    let path = directory.path().join("index");
    let build = BuildOptions::new().memory(16 << 20).tmp(tmp.path());
    let entries = || std::fs::read_dir(tmp.path()).unwrap().count();
    let mut builder = Builder::<u64>::create(&path, &options::<u64>("4"), &build)?;
    assert_eq!(entries(), 1);
    builder.push(b"a", 1, 0)?;
    builder.finish(&(), &mut |_, _| ())?;
    assert_eq!(entries(), 0, "after a finished build");
    drop(Builder::<u64>::create(&path, &IndexOptions::new(), &build)?);
    assert_eq!(entries(), 1);
    Builder::<u64>::abandon(&path)?;
    assert_eq!(entries(), 0, "after an abandoned build");
    Ok(())
}
