//! Kill -9 at random moments: acknowledged calls survive, and others survive whole or not at all.
//!
//! The tests start this binary again as a child that works on an index until it is killed.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // a test that fails may panic

mod support;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use hamdex::build::{BuildOptions, Builder};
use hamdex::inspect::TableStats;
use hamdex::{Durability, Error, Index, IndexOptions, Query, Result};

use support::{Model, Rng, assert_holds, copy_directory, documents_of, options};

const TASK: &str = "HAMDEX_CRASH_TASK";
const DIRECTORY: &str = "HAMDEX_CRASH_DIRECTORY";
const FROM: &str = "HAMDEX_CRASH_FROM";

type Document = (Vec<u8>, u64);

/// Rows of a bulk build; with keys this long they take several spill files.
const ROWS: u64 = 120_000;

#[test]
#[ignore = "the child that the other tests start and kill"]
fn child() -> Result<()> {
    let (Ok(task), Ok(directory)) = (std::env::var(TASK), std::env::var(DIRECTORY)) else {
        return Ok(());
    };
    let directory = Path::new(&directory);
    match task.as_str() {
        "write" => write_batches(directory, false),
        "write and fold" => write_batches(directory, true),
        "build" => build(directory, ROWS),
        "merge" => build(directory, ROWS / 2),
        task => panic!("unknown task {task}"),
    }
}

fn start(task: &str, directory: &Path, from: u64, out: Stdio) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--ignored", "--nocapture"])
        .env(TASK, task)
        .env(DIRECTORY, directory)
        .env(FROM, from.to_string())
        .stdout(out)
        .spawn()
        .unwrap()
}

fn report(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{line}").unwrap();
    out.flush().unwrap();
}

/// Waits for a child; returns true if it finished, false if it was killed.
fn ended_well(mut child: Child, context: &str) -> bool {
    let status = child.wait().unwrap();
    assert!(status.success() || status.signal() == Some(9), "{context}: child ended with {status}");
    status.success()
}

/// The documents that a call stores, and the keys that it removes.
fn batch(number: u64) -> (Vec<Document>, Vec<Vec<u8>>) {
    let key = |number: u64, at: u64| format!("{number:06}-{at:02}").into_bytes();
    let mut rng = Rng::new(number);
    if number % 4 == 3 {
        return (Vec::new(), (0..40).step_by(3).map(|at| key(number - 2, at)).collect());
    }
    let documents = (0..40).map(|at| {
        // Some replace documents of the previous call, and some share a fingerprint.
        let owner = if at < 5 { number.saturating_sub(1) } else { number };
        let fingerprint = if at % 4 == 0 { at } else { rng.number() };
        (key(owner, at), fingerprint)
    });
    (documents.collect(), Vec::new())
}

fn apply(model: &mut Model<u64>, number: u64) {
    let (documents, removed) = batch(number);
    model.extend(documents);
    model.retain(|key, _| !removed.contains(key));
}

/// Writes call after call, half of them synced, and prints each acknowledged one.
fn write_batches(directory: &Path, fold: bool) -> Result<()> {
    let index = Index::<u64>::open(directory)?;
    let from: u64 = std::env::var(FROM).unwrap().parse().unwrap();
    thread::scope(|scope| {
        if fold {
            scope.spawn(|| {
                loop {
                    index.merge(&()).unwrap();
                }
            });
        }
        for number in from.. {
            let durability =
                if number % 2 == 0 { Durability::Buffered } else { Durability::Synced };
            let (documents, removed) = batch(number);
            if removed.is_empty() {
                index.insert_batch(&documents, durability)?;
            } else {
                index.remove_batch(&removed, durability)?;
            }
            report(&format!("acknowledged {number}"));
        }
        Ok(())
    })
}

/// Kills a writing child repeatedly and checks what it left.
fn kill_writers(task: &str, seed: u64, rounds: u32) -> Result<()> {
    let rng = &mut Rng::new(seed);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index");
    drop(Index::<u64>::create(&path, &options::<u64>("4"))?);
    let mut model = Model::new();
    let mut written = 0;
    for round in 0..rounds {
        let mut child = start(task, &path, written, Stdio::piped());
        let mut lines =
            BufReader::new(child.stdout.take().unwrap()).lines().map_while(std::result::Result::ok);
        let mut acknowledged = written;
        let mut note = |line: &str| {
            let number = line.strip_prefix("acknowledged ")?.parse::<u64>().ok()?;
            acknowledged = number + 1;
            Some(number)
        };
        let wait_for = written + rng.below(40) as u64;
        while note(&lines.next().expect("the child writes until it is killed")) < Some(wait_for) {}
        thread::sleep(Duration::from_micros(rng.number() % 8000));
        child.kill().unwrap();
        for line in lines {
            note(&line);
        }
        let context = format!("seed {seed}, round {round}, {acknowledged} acknowledged");
        assert!(!ended_well(child, &context), "{context}");

        for number in written..acknowledged {
            apply(&mut model, number);
        }
        written = acknowledged;
        let index = Index::<u64>::open(&path)?;
        let stored = documents_of(&index)?;
        if stored != model {
            // The call in flight may have been written, as a whole.
            apply(&mut model, written);
            written += 1;
        }
        assert_holds(&index, &model, &context);
        if round % 3 == 2 {
            index.merge(&())?;
            assert_holds(&index, &model, &context);
        }
    }
    assert!(written > u64::from(rounds), "the children wrote only {written} batches");
    Ok(())
}

#[test]
fn a_killed_writer_leaves_exactly_the_acknowledged_batches() -> Result<()> {
    kill_writers("write", 61, 8)
}

#[test]
fn a_kill_during_folds_and_removals_loses_and_revives_nothing() -> Result<()> {
    kill_writers("write and fold", 62, 8)
}

/// A row of the bulk input; later rows repeat some keys.
fn row(origin: u64) -> (Vec<u8>, u64) {
    let named = if origin % 1000 == 999 { origin / 2000 * 1000 + 7 } else { origin };
    let number = Rng::new(named).number();
    let mut key = vec![b'k'; 100];
    key[..8].copy_from_slice(&number.to_be_bytes());
    key[92..].copy_from_slice(&named.to_be_bytes());
    // Two in three rows share their fingerprint with others.
    (key, Rng::new(origin % (ROWS / 3)).number() ^ (origin % 3))
}

fn rows(count: u64) -> Model<u64> {
    let mut model = Model::new();
    for origin in 0..count {
        let (key, fingerprint) = row(origin);
        model.entry(key).or_insert(fingerprint);
    }
    model
}

/// Starts or resumes a build.
fn build(directory: &Path, count: u64) -> Result<()> {
    let small = BuildOptions::new().memory(16 << 20);
    let mut builder = match Builder::<u64>::resume(directory, &small) {
        Err(Error::NothingToResume { .. } | Error::NotFound { .. }) => {
            Builder::create(directory, &IndexOptions::new(), &small)?
        }
        resumed => resumed?,
    };
    let first = builder.resume_after().map_or(0, |origin| origin + 1);
    for origin in first..count {
        let (key, fingerprint) = row(origin);
        builder.push(&key, fingerprint, origin)?;
    }
    let mut repeated = 0_u64;
    let resumed = first > 0;
    let report = builder.finish(&(), &mut |_, origin| {
        assert_eq!(origin % 1000, 999, "only these rows repeat a key");
        repeated += 1;
    })?;
    // A build that was killed after its documents were written does not name them again.
    assert!(report.duplicates == repeated || resumed && repeated == 0);
    assert_eq!(report.duplicates, count / 1000, "repeated rows of {count}");
    Ok(())
}

/// Properties that two indexes of the same documents share.
#[derive(Debug, PartialEq)]
struct Content {
    fingerprints: u64,
    tables: Vec<(u32, u64, u64)>,
    answers: Vec<Vec<hamdex::Match<u64>>>,
}

/// Asserts that the index holds the model; returns what else must be equal.
fn content(path: &Path, model: &Model<u64>, context: &str) -> Content {
    let index = Index::<u64>::open(path).unwrap();
    assert_holds(&index, model, context);
    assert!(!path.join("bulk").exists(), "{context}: files of the build are left");
    let stats = index.stats(&()).unwrap();
    let tables = stats
        .tables
        .iter()
        .map(|t: &TableStats| (t.prefix_bits, t.delta_entries, t.runs))
        .collect();
    let asked: Vec<_> = model.values().step_by(model.len().div_ceil(50).max(1)).collect();
    let queries: Vec<_> = asked.iter().map(|f| Query::new(**f ^ 0b101)).collect();
    let answers = index.search_batch(&queries).unwrap();
    Content { fingerprints: stats.fingerprints, tables, answers }
}

/// Runs a child until it finishes and returns the time it took.
fn undisturbed(task: &str, path: &Path) -> Duration {
    let begun = Instant::now();
    assert!(ended_well(start(task, path, 0, Stdio::null()), "undisturbed"));
    begun.elapsed()
}

/// Kills a child after some time; returns false if it had finished.
fn killed(task: &str, path: &Path, after: Duration, context: &str) -> bool {
    let mut child = start(task, path, 0, Stdio::null());
    thread::sleep(after);
    child.kill().unwrap();
    !ended_well(child, context)
}

/// A random moment in each of `count` equal parts of a duration.
fn moments(rng: &mut Rng, whole: Duration, count: u32) -> impl Iterator<Item = Duration> {
    (0..count).map(move |part| (whole * part + whole * rng.up_to(1000) / 1000) / count)
}

#[test]
fn a_build_killed_at_any_moment_resumes_to_the_same_index() {
    let seed = 63;
    let rng = &mut Rng::new(seed);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("undisturbed");
    let whole = undisturbed("build", &path);
    let model = rows(ROWS);
    let expected = content(&path, &model, "undisturbed");
    let mut unfinished = 0;
    for (at, moment) in moments(rng, whole, 20).enumerate() {
        let context = format!("seed {seed}, killed {at} after {moment:?} of {whole:?}");
        let path = directory.path().join(format!("killed-{at}"));
        killed("build", &path, moment, &context);
        match Index::<u64>::open(&path).map(|index| index.len().unwrap()) {
            Ok(len) => assert!(len == 0 || len == model.len() as u64, "{context}: half an index"),
            Err(Error::BuildUnfinished { .. }) => unfinished += 1,
            Err(Error::NotFound { .. }) => (),
            Err(error) => panic!("{context}: {error}"),
        }
        undisturbed("build", &path);
        assert_eq!(content(&path, &model, &context), expected, "{context}");
        std::fs::remove_dir_all(&path).unwrap();
    }
    assert!(unfinished > 5, "only {unfinished} kills hit a build at work, of {whole:?}");
}

#[test]
fn a_build_killed_repeatedly_finishes() {
    let seed = 64;
    let rng = &mut Rng::new(seed);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("undisturbed");
    let whole = undisturbed("build", &path);
    let model = rows(ROWS);
    let expected = content(&path, &model, "undisturbed");
    let path = directory.path().join("killed");
    let context = format!("seed {seed}, killed again and again within {whole:?}");
    for moment in moments(rng, whole, 8) {
        killed("build", &path, moment, &context);
    }
    undisturbed("build", &path);
    assert_eq!(content(&path, &model, &context), expected, "{context}");
}

#[test]
fn a_killed_merge_resumes_to_the_same_index_or_leaves_the_old_one() {
    let seed = 65;
    let rng = &mut Rng::new(seed);
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().join("base");
    // The merge replaces half of the stored keys.
    let old: Model<u64> =
        (ROWS / 2 - 5000..ROWS / 2 + 5000).map(|origin| (row(origin).0, origin)).collect();
    {
        let index = Index::<u64>::create(&base, &options::<u64>("4")).unwrap();
        let documents: Vec<_> = old.clone().into_iter().collect();
        index.insert_batch(&documents, Durability::Synced).unwrap();
    }
    let path = directory.path().join("undisturbed");
    copy_directory(&base, &path).unwrap();
    let whole = undisturbed("merge", &path);
    let mut new = old.clone();
    new.extend(rows(ROWS / 2));
    let expected = content(&path, &new, "undisturbed");
    for (at, moment) in moments(rng, whole, 10).enumerate() {
        let context = format!("seed {seed}, killed {at} after {moment:?} of {whole:?}");
        let path = directory.path().join(format!("killed-{at}"));
        copy_directory(&base, &path).unwrap();
        killed("merge", &path, moment, &context);
        match Index::<u64>::open(&path) {
            Ok(index) => {
                let whole = if index.len().unwrap() == old.len() as u64 { &old } else { &new };
                assert_holds(&index, whole, &context);
            }
            Err(Error::BuildUnfinished { .. }) if at % 2 == 0 => {
                Builder::<u64>::abandon(&path).unwrap();
                content(&path, &old, &format!("abandoned, {context}"));
            }
            Err(Error::BuildUnfinished { .. }) => (),
            Err(error) => panic!("{context}: {error}"),
        }
        undisturbed("merge", &path);
        assert_eq!(content(&path, &new, &context), expected, "{context}");
        std::fs::remove_dir_all(&path).unwrap();
    }
}
