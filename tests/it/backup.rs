//! Backups, restores and checkpoints.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use hamdex::backup::{Backup, BackupOptions, RestoreOptions};
use hamdex::{Durability, Error, Index, Query, Result, SearchPath};
use tempfile::TempDir;

use crate::support::{Model, Rng, assert_holds, documents_of, options, scan};

struct Place {
    directory: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn index(&self) -> Result<Index<u64>> {
        Index::create(self.path("index"), &options::<u64>("4"))
    }
}

/// Inserts `count` documents of a batch; some share fingerprints.
fn insert(index: &Index<u64>, model: &mut Model<u64>, number: u64, count: u64) -> Result<()> {
    let mut rng = Rng::new(number);
    let documents: Vec<_> = (0..count)
        .map(|at| (format!("{number:04}-{at:04}").into_bytes(), rng.number() & !0xff0))
        .collect();
    index.insert_batch(&documents, Durability::Buffered)?;
    model.extend(documents);
    Ok(())
}

fn assert_restored(path: &Path, model: &Model<u64>, context: &str) -> Result<()> {
    let index = Index::<u64>::open(path)?;
    assert_holds(&index, model, context);
    assert_eq!(index.check_deep(&())?.problem_count, 0, "{context}");
    for query in model.values().step_by(97).map(|fingerprint| fingerprint ^ 0x10) {
        for way in [SearchPath::Tables, SearchPath::Scan] {
            let found = index.search(Query::new(query).distance(6).path(way))?;
            assert_eq!(found, scan(model, query, 6), "{context}");
        }
    }
    for left in ["hamdex.stage", "hamdex.creating"] {
        assert!(!path.join(left).exists(), "{context}: {left} was not removed");
    }
    Ok(())
}

#[test]
fn a_restored_backup_answers_like_the_source() -> Result<()> {
    let place = Place::new();
    let index = place.index()?;
    let mut model = Model::new();
    insert(&index, &mut model, 1, 900)?;
    index.merge(&())?;
    insert(&index, &mut model, 2, 50)?;
    index.remove(b"0001-0007")?;
    model.remove(&b"0001-0007"[..]);
    let report = index.backup(place.path("backups"))?;
    assert_eq!((report.id, report.removed), (1, vec![]));
    assert_eq!(report.copied_bytes, report.bytes);
    let at_backup = model.clone();
    insert(&index, &mut model, 3, 50)?;
    assert_holds(&index, &model, "the source, written to again");

    let backup = Backup::open(place.path("backups"))?;
    let listed = &backup.list()?[0];
    assert_eq!((listed.id, listed.files, listed.bytes), (1, report.files, report.bytes));
    assert_eq!(listed.damage, None);
    assert_eq!(backup.verify(None, &())?, *listed);
    let restored = backup.restore(place.path("restored"))?;
    assert_eq!((restored.id, restored.documents), (1, at_backup.len() as u64));
    assert_restored(&place.path("restored"), &at_backup, "restored")?;
    insert(&Index::open(place.path("restored"))?, &mut at_backup.clone(), 9, 10)
}

#[test]
fn a_second_backup_copies_only_new_files() -> Result<()> {
    let place = Place::new();
    let index = place.index()?;
    let mut model = Model::new();
    insert(&index, &mut model, 1, 20_000)?;
    let shared = || fs::read_dir(place.path("backups/shared_checksum")).unwrap().count() as u64;
    let first = index.backup(place.path("backups"))?;
    let files = shared();
    insert(&index, &mut model, 2, 20)?;
    let second = index.backup(place.path("backups"))?;
    assert!(second.bytes > first.bytes, "{first:?}, {second:?}");
    assert!(second.copied_bytes * 10 < first.copied_bytes, "{first:?}, {second:?}");
    assert_eq!(second.files - second.copied_files, files, "all of the first is shared");
    let third = index.backup(place.path("backups"))?;
    assert_eq!(third.files - third.copied_files, shared(), "nothing was written since");
    assert_eq!(third.copied_files, third.files - shared());
    for (id, count) in [(1, 20_000), (2, 20_020), (3, 20_020)] {
        let target = place.path(&format!("restored-{id}"));
        let options = RestoreOptions::new().id(id);
        let report = Backup::open(place.path("backups"))?.restore_with(&target, &options)?;
        assert_eq!((report.id, report.documents), (id, count));
        assert_eq!(Index::<u64>::open(&target)?.check(&())?.problem_count, 0);
    }
    Ok(())
}

#[test]
fn only_the_newest_backups_are_kept_and_their_files() -> Result<()> {
    let place = Place::new();
    let index = place.index()?;
    let mut model = Model::new();
    let keep = BackupOptions::new().keep(2);
    for number in 1..=4 {
        insert(&index, &mut model, number, 300)?;
        let report = index.backup_with(place.path("backups"), &keep)?;
        let gone: Vec<u32> = (u64::from(report.id) == number && number > 2)
            .then(|| report.id - 2)
            .into_iter()
            .collect();
        assert_eq!(report.removed, gone, "backup {number}");
    }
    let backup = Backup::open(place.path("backups"))?;
    let ids: Vec<_> = backup.list()?.iter().map(|info| info.id).collect();
    assert_eq!(ids, [3, 4]);
    let lost = backup.restore_with(place.path("lost"), &RestoreOptions::new().id(1)).unwrap_err();
    assert!(matches!(lost, Error::NoBackup { id: Some(1), .. }), "{lost}");
    assert!(!place.path("lost").exists(), "a refusal leaves files");
    index.compact()?;
    index.backup_with(place.path("backups"), &BackupOptions::new().keep(1))?;
    let needed = backup.verify(None, &())?.files;
    let held = fs::read_dir(place.path("backups/shared_checksum")).unwrap().count() as u64;
    assert!(held < needed, "{held} shared files for {needed}, with private ones");
    backup.restore(place.path("restored"))?;
    assert_restored(&place.path("restored"), &model, "the last")?;
    let none = index.backup_with(place.path("backups"), &BackupOptions::new().keep(0));
    assert!(matches!(none.unwrap_err(), Error::InvalidOption { name: "keep", .. }));
    Ok(())
}

/// Documents in a batch of a writer.
const BATCH: u64 = 7;

fn batch(writer: u64, number: u64) -> Vec<(Vec<u8>, u64)> {
    let mut rng = Rng::new(writer << 32 | number);
    (0..BATCH).map(|at| (format!("{writer}-{number:06}-{at}").into_bytes(), rng.number())).collect()
}

/// Asserts that every batch is complete or absent, and that all acknowledged ones are present.
fn assert_whole(documents: &Model<u64>, writer: u64, acknowledged: u64) {
    let mut number = 0;
    loop {
        let batch = batch(writer, number);
        let held = batch.iter().filter(|(key, f)| documents.get(key) == Some(f)).count() as u64;
        assert!(held == 0 || held == BATCH, "{held} documents of batch {number} of {writer}");
        let context = format!("batch {number} of {writer}, {acknowledged} acknowledged");
        assert!(held > 0 || number >= acknowledged, "{context}");
        if held == 0 {
            let later = documents.range(batch[0].0.clone()..).next();
            let other = |key: &Vec<u8>| !key.starts_with(format!("{writer}-").as_bytes());
            assert!(later.is_none_or(|(key, _)| other(key)), "a batch after {number} of {writer}");
            return;
        }
        number += 1;
    }
}

/// Runs two writers and a merging thread next to six calls of `copy`, and checks each copy.
fn beside_writers(index: &Index<u64>, copy: impl Fn(usize) -> PathBuf) {
    let stop = AtomicBool::new(false);
    let acknowledged = [AtomicU64::new(0), AtomicU64::new(0)];
    thread::scope(|scope| {
        for (writer, acknowledged) in (0..).zip(&acknowledged) {
            let stop = &stop;
            scope.spawn(move || {
                for number in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let durability =
                        if writer == 0 { Durability::Buffered } else { Durability::Synced };
                    index.insert_batch(&batch(writer, number), durability).unwrap();
                    acknowledged.store(number + 1, Ordering::Release);
                }
            });
        }
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                index.merge(&()).unwrap();
                index.flush().unwrap();
            }
        });
        for round in 0..6 {
            let before: Vec<_> =
                acknowledged.iter().map(|count| count.load(Ordering::Acquire)).collect();
            let path = copy(round);
            let copied = Index::<u64>::open(path).unwrap();
            assert_eq!(copied.check(&()).unwrap().problems, Vec::<String>::new());
            let documents = documents_of(&copied).unwrap();
            for (writer, acknowledged) in (0..).zip(before) {
                assert_whole(&documents, writer, acknowledged);
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_backup_beside_writers_holds_whole_batches_and_all_that_were_acknowledged() -> Result<()> {
    let place = Place::new();
    let index = place.index()?;
    beside_writers(&index, |round| {
        let id = index.backup(place.path("backups")).unwrap().id;
        let target = place.path(&format!("restored-{round}"));
        let options = RestoreOptions::new().id(id);
        Backup::open(place.path("backups")).unwrap().restore_with(&target, &options).unwrap();
        target
    });
    Ok(())
}

#[test]
fn a_checkpoint_beside_writers_holds_whole_batches_and_all_that_were_acknowledged() -> Result<()> {
    let place = Place::new();
    let index = place.index()?;
    beside_writers(&index, |round| {
        let target = place.path(&format!("copy-{round}"));
        index.checkpoint(&target).unwrap();
        target
    });
    Ok(())
}

#[test]
fn a_read_only_handle_backs_up_what_another_writes() -> Result<()> {
    let place = Place::new();
    let index = place.index()?;
    let mut model = Model::new();
    insert(&index, &mut model, 1, 5000)?;
    index.flush()?;
    insert(&index, &mut model, 2, 100)?;
    let reading = Index::<u64>::open_read_only(place.path("index"))?;
    let first = reading.backup(place.path("backups"))?;
    insert(&index, &mut model, 3, 10)?;
    let second =
        Index::<u64>::open_read_only(place.path("index"))?.backup(place.path("backups"))?;
    assert!(second.copied_bytes * 3 < first.copied_bytes, "{first:?}, {second:?}");
    assert!(!place.path("backups/hamdex.stage").exists());
    let copy = Index::<u64>::open_read_only(place.path("index"))?;
    copy.checkpoint(place.path("copy"))?;
    insert(&index, &mut model.clone(), 4, 10)?;
    Backup::open(place.path("backups"))?.restore(place.path("restored"))?;
    assert_restored(&place.path("restored"), &model, "restored")?;
    assert_restored(&place.path("copy"), &model, "checkpoint")
}

#[test]
fn restoring_over_an_index_must_be_allowed_and_replaces_all_of_it() -> Result<()> {
    let place = Place::new();
    let index = place.index()?;
    let mut model = Model::new();
    insert(&index, &mut model, 1, 500)?;
    index.backup(place.path("backups"))?;
    let old = model.clone();
    insert(&index, &mut model, 2, 500)?;
    let backup = Backup::open(place.path("backups"))?;
    let replace = RestoreOptions::new().replace(true);
    let error = backup.restore(place.path("index")).unwrap_err();
    assert!(matches!(error, Error::AlreadyExists { .. }), "{error}");
    let error = backup.restore_with(place.path("index"), &replace).unwrap_err();
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    drop(index);
    assert_restored(&place.path("index"), &model, "refused")?;
    assert_eq!(backup.restore_with(place.path("index"), &replace)?.documents, 500);
    assert_restored(&place.path("index"), &old, "replaced")
}

#[test]
fn backups_and_foreign_files_are_never_restored_over() -> Result<()> {
    let place = Place::new();
    let index = place.index()?;
    insert(&index, &mut Model::new(), 1, 50)?;
    for name in ["backups", "others"] {
        index.backup(place.path(name))?;
    }
    fs::create_dir(place.path("thesis")).unwrap();
    fs::write(place.path("thesis/thesis.txt"), "years of work").unwrap();
    let backup = Backup::open(place.path("backups"))?;
    let replace = RestoreOptions::new().replace(true);
    for name in ["others", "thesis"] {
        let error = backup.restore_with(place.path(name), &replace).unwrap_err();
        assert!(matches!(error, Error::AlreadyExists { .. }), "{name}: {error}");
    }
    assert_eq!(fs::read(place.path("thesis/thesis.txt")).unwrap(), b"years of work");
    assert_eq!(fs::read_dir(place.path("thesis")).unwrap().count(), 1);
    for name in ["thesis", "index", "index/backups"] {
        let error = index.backup(place.path(name)).unwrap_err();
        let refused = matches!(error, Error::AlreadyExists { .. } | Error::InvalidOption { .. });
        assert!(refused, "{name}: {error}");
    }
    let error = backup.restore(place.path("backups/index")).unwrap_err();
    assert!(matches!(error, Error::InvalidOption { .. }), "{error}");
    for name in ["missing", "thesis", "index"] {
        let error = Backup::open(place.path(name)).unwrap_err();
        assert!(matches!(error, Error::NoBackup { id: None, .. }), "{name}: {error}");
    }
    Ok(())
}

#[test]
fn a_checkpoint_is_an_independent_index() -> Result<()> {
    let place = Place::new();
    let index = place.index()?;
    let mut model = Model::new();
    insert(&index, &mut model, 1, 800)?;
    index.merge(&())?;
    fs::create_dir(place.path("copy")).unwrap();
    index.checkpoint(place.path("copy"))?;
    let copy = Index::<u64>::open(place.path("copy"))?;
    let mut other = model.clone();
    insert(&index, &mut model, 2, 100)?;
    insert(&copy, &mut other, 3, 100)?;
    index.compact()?;
    copy.remove(b"0001-0001")?;
    other.remove(&b"0001-0001"[..]);
    assert_holds(&index, &model, "source");
    assert_holds(&copy, &other, "copy");
    let error = index.checkpoint(place.path("copy")).unwrap_err();
    assert!(matches!(error, Error::AlreadyExists { .. }), "{error}");
    drop((index, copy));
    assert_restored(&place.path("copy"), &other, "copy, opened again")
}
