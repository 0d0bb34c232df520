//! Damaged backups and interrupted restores: an error, or the right index.

use std::fs;
use std::path::{Path, PathBuf};

use hamdex::backup::{Backup, RestoreOptions};
use hamdex::build::{BuildOptions, Builder};
use hamdex::{Durability, Error, Fault, Index, Result};

use crate::support::{Model, Rng, assert_holds, copy_directory, options};

/// Makes two backups of an index and closes it; returns the documents of the second.
fn backups(directory: &Path) -> Result<Model<u64>> {
    let index = Index::<u64>::create(directory.join("index"), &options::<u64>("4"))?;
    let mut rng = Rng::new(71);
    let mut model = Model::new();
    for round in 0..2 {
        let documents: Vec<_> =
            (0..60).map(|at| (format!("{round}-{at:03}").into_bytes(), rng.number())).collect();
        index.insert_batch(&documents, Durability::Synced)?;
        model.extend(documents);
        index.backup(directory.join("backups"))?;
    }
    Ok(model)
}

fn all_files(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all_files(&path, files);
        } else if fs::metadata(&path).unwrap().len() > 0 {
            files.push(path);
        }
    }
    files.sort();
}

/// Restores the newest backup; returns false if that is refused and leaves nothing.
fn judge(place: &Path, model: &Model<u64>, context: &str) -> bool {
    let backup = Backup::open(place.join("backups")).unwrap();
    let verified = backup.verify(Some(2), &());
    let target = place.join("restored");
    match backup.restore_with(&target, &RestoreOptions::new().id(2)) {
        Ok(report) => {
            assert_eq!(report.documents, model.len() as u64, "{context}");
            assert_holds(&Index::<u64>::open(&target).unwrap(), model, context);
            verified.unwrap_or_else(|error| panic!("{context}: verify failed: {error}"));
            fs::remove_dir_all(&target).unwrap();
            true
        }
        Err(error) => {
            assert_eq!(error.fault(), Fault::Damage, "{context}: {error}");
            assert!(!target.exists(), "{context}: {error}, and files are left");
            false
        }
    }
}

#[test]
fn a_flipped_byte_in_any_file_of_a_backup_is_refused_or_harmless() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let model = backups(place)?;
    let mut files = Vec::new();
    all_files(&place.join("backups"), &mut files);
    let (mut refused, mut harmless) = (0, Vec::new());
    let mut rng = Rng::new(72);
    for file in &files {
        let whole = fs::read(file).unwrap();
        let name = file.strip_prefix(place).unwrap().display().to_string();
        let is_record = name == "backups/meta/2";
        let places: Vec<_> = if is_record {
            (0..whole.len()).step_by(7).collect()
        } else {
            (0..3).map(|_| rng.below(whole.len())).collect()
        };
        for at in places {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << rng.below(8);
            fs::write(file, bytes).unwrap();
            let context = format!("{name}, byte {at}");
            if judge(place, &model, &context) {
                harmless.push(name.clone());
            } else {
                refused += 1;
            }
        }
        fs::write(file, whole).unwrap();
    }
    assert!(refused > 30, "only {refused} refused");
    // Files of only the older backup, the time in a record, and a smaller sequence number.
    harmless.dedup();
    let others = |name: &&String| !name.contains("/1") && !name.ends_with("meta/2");
    assert_eq!(harmless.iter().filter(others).collect::<Vec<_>>(), Vec::<&String>::new());
    assert!(judge(place, &model, "undamaged again"));
    Ok(())
}

#[test]
fn a_missing_or_truncated_file_of_a_backup_is_damage_that_the_list_shows() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let model = backups(place)?;
    let mut files = Vec::new();
    all_files(&place.join("backups/private/2"), &mut files);
    all_files(&place.join("backups/shared_checksum"), &mut files);
    for file in files {
        let whole = fs::read(&file).unwrap();
        let context = format!("without {}", file.display());
        fs::remove_file(&file).unwrap();
        assert!(!judge(place, &model, &context), "{context}");
        let list = Backup::open(place.join("backups"))?.list()?;
        assert_eq!(list.len(), 2, "{context}");
        assert!(list[1].damage.is_some(), "{context}");
        fs::write(&file, &whole[..whole.len() - 1]).unwrap();
        assert!(!judge(place, &model, &format!("{context}, cut")));
        fs::write(&file, whole).unwrap();
    }
    assert!(judge(place, &model, "undamaged again"));
    Ok(())
}

#[test]
fn a_backup_with_a_damaged_record_is_not_replaced_by_an_older_one() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    backups(place)?;
    let record = place.join("backups/meta/2");
    let whole = fs::read(&record).unwrap();
    fs::write(&record, &whole[..whole.len() / 2]).unwrap();
    let backup = Backup::open(place.join("backups"))?;
    let error = backup.restore(place.join("restored")).unwrap_err();
    assert!(matches!(&error, Error::Corrupt { family, .. } if family == "backup 2"), "{error}");
    let older = backup.restore_with(place.join("restored"), &RestoreOptions::new().id(1))?;
    assert_eq!(older.documents, 60);
    Ok(())
}

#[test]
fn a_damaged_backup_does_not_change_the_index_to_replace() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let model = backups(place)?;
    let mut files = Vec::new();
    all_files(&place.join("backups/shared_checksum"), &mut files);
    for file in &files {
        let mut bytes = fs::read(file).unwrap();
        bytes[20] ^= 4;
        fs::write(file, bytes).unwrap();
    }
    let backup = Backup::open(place.join("backups"))?;
    let replace = RestoreOptions::new().replace(true);
    let error = backup.restore_with(place.join("index"), &replace).unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    assert!(!place.join("index/hamdex.stage").exists());
    assert_holds(&Index::<u64>::open(place.join("index"))?, &model, "not changed");
    Ok(())
}

#[test]
fn an_interrupted_restore_is_not_an_index_and_can_be_repeated() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let model = backups(place)?;
    let backup = Backup::open(place.join("backups"))?;
    // Killed while copying: the old index is whole, next to the files copied so far.
    let copying = place.join("copying");
    copy_directory(&place.join("index"), &copying).unwrap();
    copy_directory(&place.join("backups/private/2"), &copying.join("hamdex.stage")).unwrap();
    assert_holds(&Index::<u64>::open(&copying)?, &model, "while it was copied");
    assert!(!copying.join("hamdex.stage").exists(), "the next writer removes it");
    // Killed while moving files: an index opened now would mix both.
    let placing = place.join("placing");
    copy_directory(&place.join("index"), &placing).unwrap();
    fs::write(placing.join("hamdex.creating"), "restoring\n").unwrap();
    let creations = [
        Index::<u64>::open(&placing).map(drop),
        Index::<u64>::open_read_only(&placing).map(drop),
        Index::<u64>::create(&placing, &options::<u64>("4")).map(drop),
        Builder::<u64>::create(&placing, &options::<u64>("4"), &BuildOptions::new()).map(drop),
    ];
    for refused in creations {
        let code = refused.unwrap_err().code();
        assert_eq!(code, "restore-unfinished", "otherwise open-or-create would lose the index");
    }
    for target in [copying, placing] {
        backup.restore_with(&target, &RestoreOptions::new().replace(true))?;
        assert_holds(&Index::<u64>::open(&target)?, &model, "restored again");
    }
    Ok(())
}

#[test]
fn the_next_backup_removes_an_interrupted_one() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let model = backups(place)?;
    let backups = place.join("backups");
    copy_directory(&backups.join("private/2"), &backups.join("private/3")).unwrap();
    fs::write(backups.join("meta/3.tmp"), "1700000000\n").unwrap();
    fs::write(backups.join("shared_checksum/000999_sX_7.sst"), "begun").unwrap();
    assert_eq!(Backup::open(&backups)?.list()?.len(), 2, "it was never finished");
    assert!(judge(place, &model, "interrupted"));
    assert_eq!(Index::<u64>::open(place.join("index"))?.backup(&backups)?.id, 3);
    assert!(!backups.join("shared_checksum/000999_sX_7.sst").exists());
    Backup::open(&backups)?.verify(Some(3), &())?;
    assert!(judge(place, &model, "afterwards"));
    Ok(())
}
