//! Unfinished builds: only the index that files belong to uses and clears them.
//!
//! And cancelled calls: every long call stops when its caller asks, without damage.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hamdex::build::{BuildOptions, Builder, Repeats, repair};
use hamdex::inspect::Header;
use hamdex::{Durability, Error, Fingerprint, Index, IndexOptions, Progress, Query, Result, join};

use crate::support::{
    Model, Rng, assert_holds, clusters_of, copy_directory, documents_of, keyed, mixed, options,
    pairs_of, random, scan, scan_clusters, scan_pairs,
};

/// Enough documents for several spill files with the smallest memory.
const ROWS: u64 = 1_000_000;

fn key(row: u64) -> [u8; 8] {
    row.to_be_bytes()
}

fn fingerprint(row: u64) -> u64 {
    row.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn small() -> BuildOptions {
    BuildOptions::new().memory(16 << 20)
}

fn push_from(builder: &mut Builder<u64>, first: u64) -> Result<()> {
    (first..ROWS).try_for_each(|row| builder.push(&key(row), fingerprint(row), row))
}

/// Leaves a build unfinished, with spill files in its manifest.
fn unfinished(path: &Path, build: &BuildOptions) -> Result<()> {
    let mut builder = Builder::<u64>::create(path, &options::<u64>("4"), build)?;
    push_from(&mut builder, 0)?;
    drop(builder);
    let after = Builder::<u64>::resume(path, build)?.resume_after();
    assert!(after.is_some_and(|after| after > 10_000), "{after:?}");
    Ok(())
}

fn resumed(path: &Path, build: &BuildOptions) -> Result<()> {
    let mut builder = Builder::<u64>::resume(path, build)?;
    let after = builder.resume_after().expect("some documents are durable");
    push_from(&mut builder, after + 1)?;
    assert_eq!(builder.finish(&(), &mut |_, _| ())?.documents, ROWS);
    let index = Index::<u64>::open(path)?;
    assert_eq!(index.len()?, ROWS);
    assert_eq!(index.get(&key(ROWS - 1))?, Some(fingerprint(ROWS - 1)));
    Ok(())
}

fn names(directory: &Path) -> Vec<PathBuf> {
    let mut names: Vec<_> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    names
}

#[test]
fn a_copy_neither_removes_nor_uses_spill_files_of_the_original() -> Result<()> {
    for outside in [false, true] {
        let (place, tmp) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let build = if outside { small().tmp(tmp.path()) } else { small() };
        let (original, copy) = (place.path().join("original"), place.path().join("copy"));
        unfinished(&original, &build)?;
        copy_directory(&original, &copy).unwrap();
        let spills = names(tmp.path());
        assert_eq!(spills.len(), usize::from(outside));
        if outside {
            let error = Builder::<u64>::resume(&copy, &build).unwrap_err();
            assert!(matches!(&error, Error::ForeignSpills { path, .. } if spills.contains(path)));
        }
        let abandoned = Builder::<u64>::abandon(&copy)?;
        assert!(abandoned.made_index);
        assert_eq!(abandoned.left, spills.first().cloned());
        assert!(Index::<u64>::open(&copy)?.is_empty()?);
        resumed(&original, &build)?;
        assert_eq!(names(tmp.path()), [] as [PathBuf; 0], "the owner clears it");
    }
    Ok(())
}

#[test]
fn a_moved_index_resumes() -> Result<()> {
    for outside in [false, cfg!(unix)] {
        let (place, tmp) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let build = if outside { small().tmp(tmp.path()) } else { small() };
        let (here, there) = (place.path().join("here"), place.path().join("there"));
        unfinished(&here, &build)?;
        std::fs::rename(&here, &there).unwrap();
        resumed(&there, &build)?;
        assert_eq!(names(tmp.path()), [] as [PathBuf; 0]);
    }
    Ok(())
}

#[test]
fn a_symbolic_link_to_a_directory_is_not_followed() -> Result<()> {
    let (place, precious) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = place.path().join("index");
    unfinished(&path, &small())?;
    let bulk = path.join("bulk");
    copy_directory(&bulk, precious.path()).unwrap();
    let before = names(precious.path());
    std::fs::remove_dir_all(&bulk).unwrap();
    std::os::unix::fs::symlink(precious.path(), &bulk).unwrap();
    let error = Builder::<u64>::resume(&path, &small()).unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    Builder::<u64>::abandon(&path)?;
    assert_eq!(names(precious.path()), before);
    Ok(())
}

#[test]
fn a_build_resumes_only_with_its_inputs() -> Result<()> {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("index");
    unfinished(&path, &small().inputs("monday"))?;
    let error = Builder::<u64>::resume(&path, &small().inputs("tuesday")).unwrap_err();
    let Error::HeaderMismatch { what, stored, wanted } = error else { panic!("{error}") };
    assert_eq!((what, &*stored, &*wanted), ("inputs", "monday", "tuesday"));
    assert!(Builder::<u64>::resume(&path, &small())?.knows_inputs());
    resumed(&path, &small().inputs("monday"))
}

#[test]
fn repeated_keys_use_the_first_or_last_document_or_are_refused() -> Result<()> {
    let place = tempfile::tempdir().unwrap();
    let rows = [(b"b", 1_u64), (b"a", 2), (b"b", 3), (b"c", 4), (b"b", 5)];
    let path = |repeats: Repeats| place.path().join(format!("{repeats:?}"));
    let build = |repeats| -> Result<_> {
        let options = BuildOptions::new().repeats(repeats);
        let mut builder = Builder::<u64>::create(path(repeats), &IndexOptions::new(), &options)?;
        for (origin, (key, fingerprint)) in rows.iter().enumerate() {
            builder.push(*key, *fingerprint, origin as u64)?;
        }
        let mut dropped = Vec::new();
        let report =
            builder.finish(&(), &mut |key, origin| dropped.push((key.to_vec(), origin)))?;
        Ok((report.documents, report.duplicates, dropped))
    };
    for (repeats, counts, gone) in [(Repeats::First, 1, [2, 4]), (Repeats::Last, 5, [0, 2])] {
        let dropped = gone.map(|origin| (b"b".to_vec(), origin)).to_vec();
        assert_eq!(build(repeats)?, (3, 2, dropped));
        let model: Model<u64> =
            [(b"a", 2), (b"b", counts), (b"c", 4)].map(|(key, f)| (key.to_vec(), f)).into();
        assert_holds(&Index::<u64>::open(path(repeats))?, &model, &format!("{repeats:?}"));
    }
    let error = build(Repeats::Refuse).unwrap_err();
    assert!(
        matches!(&error, Error::RepeatedKey { key, first: 0, again: 2 } if key == "b"),
        "{error}"
    );
    assert!(Builder::<u64>::abandon(path(Repeats::Refuse))?.made_index);
    assert!(Index::<u64>::open(path(Repeats::Refuse))?.is_empty()?);
    Ok(())
}

#[test]
fn the_last_of_repeated_keys_is_used_across_spill_files_and_a_kill() -> Result<()> {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("index");
    let build = small().repeats(Repeats::Last);
    // Every key is pushed twice, half of the rows apart.
    let twice = |row: u64| key(row % (ROWS / 2));
    let push = |builder: &mut Builder<u64>, first: u64| -> Result<()> {
        (first..ROWS).try_for_each(|row| builder.push(&twice(row), row, row))
    };
    let mut builder = Builder::<u64>::create(&path, &options::<u64>("4"), &build)?;
    push(&mut builder, 0)?;
    drop(builder);
    let mut builder = Builder::<u64>::resume(&path, &build)?;
    let after = builder.resume_after().expect("some documents are durable");
    push(&mut builder, after + 1)?;
    let report = builder.finish(&(), &mut |_, origin| assert!(origin < ROWS / 2))?;
    assert_eq!((report.documents, report.duplicates), (ROWS / 2, ROWS / 2));
    let index = Index::<u64>::open(&path)?;
    for row in (0..ROWS / 2).step_by(997) {
        assert_eq!(index.get(&key(row))?, Some(row + ROWS / 2));
    }
    Ok(())
}

#[test]
fn inserts_count_what_changed() -> Result<()> {
    let place = tempfile::tempdir().unwrap();
    let index = Index::<u64>::create(place.path(), &IndexOptions::new())?;
    let durability = hamdex::Durability::Buffered;
    index.insert_batch(&[(b"a", 1_u64), (b"b", 0xff00)], durability)?;
    let report = index.insert_batch(&[(b"a", 1), (b"b", 0xff01), (b"c", 0xff_0000)], durability)?;
    assert_eq!((report.inserted, report.replaced, report.unchanged), (1, 2, 1));
    let again = [(b"a", 1), (b"b", 0xff01), (b"d", 3)];
    let (refused, report) = index.insert_batch_if_new_counted(&again, 3, durability)?;
    let refused: Vec<_> = refused.iter().map(Option::is_some).collect();
    assert_eq!(refused, [false, false, true]);
    assert_eq!((report.inserted, report.replaced, report.unchanged), (0, 2, 2));
    Ok(())
}

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
        assert!(cancelled(index.merge(&stop())), "fold of {count}");
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
    assert!(cancelled(index.merge(&StopAfter::new(2))));
    let stats = index.stats(&())?;
    let merged: Vec<_> = stats.tables.iter().map(|table| table.runs > 0).collect();
    assert_eq!(merged, [true, true, false, false], "two steps were done");
    assert_holds(&index, &model, "half folded");
    index.merge(&())?;
    assert_eq!(index.stats(&())?.delta_entries, 0);
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

/// Asserts that an index answers as the sorted map and the linear scan do.
fn assert_answers<F: Fingerprint>(index: &Index<F>, model: &Model<F>, context: &str) -> Result<()> {
    assert_holds(index, model, context);
    for query in model.values().step_by(17) {
        for distance in [0, 3, 8] {
            let found = index.search(Query::new(*query).distance(distance))?;
            assert!(found == scan(model, *query, distance), "{context}, distance {distance}");
        }
    }
    for (key, fingerprint) in model.iter().step_by(11) {
        assert_eq!(index.get(key)?, Some(*fingerprint), "{context}");
    }
    assert!(pairs_of(index, 3)? == scan_pairs(model, 3), "pairs, {context}");
    assert!(clusters_of(index, 3)? == scan_clusters(model, 3), "clusters, {context}");
    assert_eq!(index.check_deep(&())?.problems, [""; 0], "{context}");
    Ok(())
}

fn packed_as_others<F: Fingerprint>(seed: u64) -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    // Row numbers are packed, names are not; a mixed index has both.
    for (kind, format) in [("rows", 8), ("names", 7), ("both", 8)] {
        let mut rng = Rng::new(seed);
        let key = |row: usize| match kind {
            "rows" => (row as u64).to_be_bytes().to_vec(),
            "both" if row.is_multiple_of(3) => (row as u64).to_be_bytes().to_vec(),
            _ => format!("row {row}").into_bytes(),
        };
        let path = directory.path().join(kind);
        let fingerprints = mixed::<F>(&mut rng, 500);
        let mut model = Model::new();
        for _ in 0..2 {
            let mut builder = Builder::<F>::create(&path, &options::<F>("4"), &small())?;
            let mut pushed = Model::new();
            for origin in 0..300 {
                let (key, fingerprint) = (key(rng.below(600)), *rng.pick(&fingerprints));
                builder.push(&key, fingerprint, origin)?;
                pushed.entry(key).or_insert(fingerprint);
            }
            builder.finish(&(), &mut |_, _| ())?;
            model.append(&mut pushed);
            let index = Index::<F>::open(&path)?;
            assert_eq!(index.header().format, format, "{kind}");
            assert_answers(&index, &model, kind)?;
            for _ in 0..12 {
                let keys: Vec<_> = (0..8).map(|_| key(rng.below(700))).collect();
                let documents: Vec<_> =
                    keys.iter().map(|key| (&key[..], *rng.pick(&fingerprints))).collect();
                match rng.below(3) {
                    0 => {
                        let stored = keys.iter().collect::<BTreeSet<_>>();
                        let stored = stored.into_iter().filter(|key| model.remove(*key).is_some());
                        let stored = stored.count() as u64;
                        assert_eq!(index.remove_batch(&keys, Durability::Buffered)?, stored);
                    }
                    1 => {
                        index.insert_batch(&documents, Durability::Buffered)?;
                        model.extend(documents.iter().map(|(key, f)| (key.to_vec(), *f)));
                    }
                    _ => {
                        for (key, fingerprint) in documents {
                            let mut others = model.clone();
                            others.remove(key);
                            let near = scan(&others, fingerprint, 3).into_iter().next();
                            let durability = Durability::Buffered;
                            let refused = index.insert_if_new(key, fingerprint, 3, durability)?;
                            assert_eq!(refused, near, "{kind}");
                            if near.is_none() {
                                model.insert(key.to_vec(), fingerprint);
                            }
                        }
                    }
                }
            }
            index.merge(&())?;
            index.compact()?;
            assert_answers(&index, &model, kind)?;
            drop(index);
            assert_holds(&Index::<F>::open_read_only(&path)?, &model, kind);
        }
        let repaired = directory.path().join(format!("{kind} repaired"));
        let report = repair::<F>(&path, &repaired, &small(), &())?;
        assert_eq!((report.documents, report.from_postings), (model.len() as u64, 0));
        assert_answers(&Index::<F>::open(&repaired)?, &model, kind)?;
    }
    Ok(())
}

#[test]
fn packed_documents_answer_as_all_others_do() -> Result<()> {
    packed_as_others::<u32>(32)?;
    packed_as_others::<u64>(64)?;
    packed_as_others::<u128>(128)
}

#[test]
fn the_format_says_whether_documents_are_packed() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    for (key, format) in [(&b"12345678"[..], 8), (b"123456789", 8), (b"1", 8)] {
        let mut builder = Builder::<u64>::create(path, &IndexOptions::new(), &small())?;
        builder.push(key, 7, 0)?;
        builder.finish(&(), &mut |_, _| ())?;
        assert_eq!(Header::read(path)?.format, format);
    }
    assert!(Index::<u64>::open(path)?.remove(b"12345678")?);
    let builder = Builder::<u64>::create(path, &IndexOptions::new(), &small())?;
    builder.finish(&(), &mut |_, _| ())?;
    assert_eq!(Header::read(path)?.format, 7, "no document is packed any more");
    assert_eq!(Index::<u64>::open(path)?.len()?, 2);
    Ok(())
}

/// Cancels when a phase begins.
struct StopsAt(&'static str, AtomicBool);

impl Progress for StopsAt {
    fn begin(&self, phase: &str, _: Option<u64>) {
        self.1.fetch_or(phase == self.0, Ordering::Relaxed);
    }

    fn cancelled(&self) -> bool {
        self.1.load(Ordering::Relaxed)
    }
}

#[test]
fn a_build_drops_spill_files_once_its_documents_are_written_and_resumes_from_these() -> Result<()> {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("index");
    let spilled = || {
        let is_spill = |path: &PathBuf| path.extension().is_some_and(|e| e == "run");
        names(&path.join("bulk")).into_iter().filter(is_spill).count()
    };
    let mut builder = Builder::<u64>::create(&path, &options::<u64>("4"), &small())?;
    push_from(&mut builder, 0)?;
    assert!(spilled() > 0);
    let stops = StopsAt("writing table 2 of 4", AtomicBool::new(false));
    assert!(matches!(builder.finish(&stops, &mut |_, _| ()), Err(Error::Cancelled)));
    assert_eq!(spilled(), 0);
    let mut builder = Builder::<u64>::resume(&path, &small())?;
    assert_eq!(builder.resume_after(), Some(ROWS - 1));
    let refused = builder.push(&key(ROWS), 7, ROWS);
    assert!(matches!(refused, Err(Error::InvalidOption { name: "build", .. })));
    let report = builder.finish(&(), &mut |_, _| ())?;
    assert_eq!((report.documents, report.fingerprints), (ROWS, ROWS));
    let index = Index::<u64>::open(&path)?;
    assert_eq!(index.check(&())?.problems, [""; 0]);
    let rows = (0..ROWS).map(|row| (key(row).to_vec(), fingerprint(row)));
    assert!(documents_of(&index)?.into_iter().eq(rows));
    Ok(())
}

/// Records the most bytes that a directory holds.
struct Peak<'a>(&'a Path, AtomicU64);

impl Progress for Peak<'_> {
    fn begin(&self, _: &str, _: Option<u64>) {
        self.advance(0);
    }

    fn advance(&self, _: u64) {
        self.1.fetch_max(bytes_in(self.0), Ordering::Relaxed);
    }
}

fn bytes_in(directory: &Path) -> u64 {
    let of = |path: PathBuf| match path.symlink_metadata() {
        Ok(found) if found.is_dir() => bytes_in(&path),
        found => found.map_or(0, |found| found.len()),
    };
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| of(entry.path())).sum()
}

#[test]
fn a_build_of_row_numbers_takes_at_most_a_third_more_than_its_index() -> Result<()> {
    let place = tempfile::tempdir().unwrap();
    let path = place.path();
    let mut builder = Builder::<u64>::create(path, &options::<u64>("4"), &small())?;
    push_from(&mut builder, 0)?;
    let peak = Peak(path, AtomicU64::new(bytes_in(path)));
    builder.finish(&peak, &mut |_, _| ())?;
    let (peak, index) = (peak.1.into_inner(), bytes_in(path));
    assert!(peak <= index / 3 * 4, "{peak} bytes, the index has {index}");
    Ok(())
}
