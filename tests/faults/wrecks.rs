//! Wrecks: an index with a damaged list of files is repaired from the files.

use std::fs;
use std::path::Path;

use hamdex::build::{BuildOptions, Builder, RepairReport, repair, repair_any};
use hamdex::inspect::SealState;
use hamdex::{Durability, Error, Index, IndexOptions, Result};

use crate::support::{Model, Rng, assert_holds, copy_directory, files, options};

/// How an index was written before it was damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Past {
    /// Everything is in the log.
    Inserted,
    /// Documents in flushed files, changed by the log.
    Flushed,
    /// Documents in files of a build, changed by flushed files and by the log.
    Built,
    /// Two generations, and compacted files.
    Merged,
}

const PASTS: [Past; 4] = [Past::Inserted, Past::Flushed, Past::Built, Past::Merged];

fn built(path: &Path, model: &mut Model<u64>, rng: &mut Rng) -> Result<()> {
    let mut builder = Builder::<u64>::create(path, &IndexOptions::new(), &BuildOptions::new())?;
    for row in 0..3000_u64 {
        let (key, fingerprint) = ((row * 7 % 5000).to_be_bytes().to_vec(), rng.number());
        builder.push(&key, fingerprint, row)?;
        model.insert(key, fingerprint);
    }
    builder.finish(&(), &mut |_, _| ())?;
    Ok(())
}

fn changed(index: &Index<u64>, model: &mut Model<u64>, rng: &mut Rng) -> Result<()> {
    let batch: Vec<_> =
        (0..400_u64).map(|n| ((n * 13).to_be_bytes().to_vec(), rng.number())).collect();
    index.insert_batch(&batch, Durability::Synced)?;
    model.extend(batch);
    let gone: Vec<_> = model.keys().step_by(9).cloned().collect();
    index.remove_batch(&gone, Durability::Synced)?;
    model.retain(|key, _| !gone.contains(key));
    Ok(())
}

/// Creates an index and returns its documents.
fn index_of(past: Past, path: &Path) -> Result<Model<u64>> {
    let (mut model, rng) = (Model::new(), &mut Rng::new(past as u64 + 1));
    drop(Index::<u64>::create(path, &options::<u64>("4"))?);
    if past == Past::Built || past == Past::Merged {
        built(path, &mut model, rng)?;
    }
    if past == Past::Merged {
        let index = Index::<u64>::open(path)?;
        changed(&index, &mut model, rng)?;
        index.flush()?;
        drop(index);
        built(path, &mut model, rng)?;
    }
    let index = Index::<u64>::open(path)?;
    for round in 0..3 {
        changed(&index, &mut model, rng)?;
        if past != Past::Inserted {
            index.flush()?;
        }
        if past == Past::Merged && round == 1 {
            index.compact()?;
        }
    }
    changed(&index, &mut model, rng)?;
    Ok(model)
}

fn manifest(path: &Path) -> std::path::PathBuf {
    let current = fs::read_to_string(path.join("CURRENT")).unwrap();
    path.join(current.trim_end())
}

fn overwrite(file: &Path, at: usize) {
    let mut bytes = fs::read(file).unwrap();
    bytes[at] ^= 0xff;
    fs::write(file, bytes).unwrap();
}

fn contents(path: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    files(path, |_| true).into_iter().map(|file| (file.clone(), fs::read(file).unwrap())).collect()
}

#[test]
fn losing_the_list_of_files_loses_no_document() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    for past in PASTS {
        let base = directory.path().join(format!("{past:?}"));
        let model = index_of(past, &base)?;
        for damage in ["CURRENT", "no CURRENT", "MANIFEST", "no MANIFEST"] {
            let context = format!("{past:?}, {damage}");
            let damaged = directory.path().join(&context);
            copy_directory(&base, &damaged).unwrap();
            match damage {
                "CURRENT" => overwrite(&damaged.join("CURRENT"), 3),
                "no CURRENT" => fs::remove_file(damaged.join("CURRENT")).unwrap(),
                "MANIFEST" => overwrite(&manifest(&damaged), 20),
                _ => fs::remove_file(manifest(&damaged)).unwrap(),
            }
            assert!(Index::<u64>::open(&damaged).is_err(), "{context}");
            let before = contents(&damaged);
            let target = directory.path().join(format!("{context}, repaired"));
            let report = repair_any(&damaged, &target, &BuildOptions::new(), &())?;
            assert!(report.from_files, "{context}");
            assert_eq!(report.counted, model.len() as u64, "{context}");
            assert!(contents(&damaged) == before, "{context}: the damaged index was changed");
            assert_holds(&Index::<u64>::open(&target)?, &model, &format!("{context}: {report:?}"));
        }
        let left = files(directory.path(), |name| name.starts_with("hamdex-repair-"));
        assert!(left.is_empty(), "{left:?}");
    }
    Ok(())
}

#[test]
fn a_missing_table_file_loses_only_its_documents() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    for past in [Past::Flushed, Past::Built] {
        let base = directory.path().join(format!("{past:?}"));
        let model = index_of(past, &base)?;
        for (number, file) in
            files(&base, |name| name.strip_suffix(".sst").is_some()).iter().enumerate()
        {
            let context = format!("{past:?} without {}", file.display());
            let damaged = directory.path().join(format!("{past:?} damaged {number}"));
            copy_directory(&base, &damaged).unwrap();
            fs::remove_file(damaged.join(file.file_name().unwrap())).unwrap();
            let target = directory.path().join(format!("{past:?} repaired {number}"));
            let report: RepairReport =
                match repair::<u64>(&damaged, &target, &BuildOptions::new(), &()) {
                    Ok(report) => report,
                    // The file with the header; without it nothing can be repaired.
                    Err(Error::Corrupt { family, .. }) if family == "meta" => continue,
                    Err(error) => panic!("{context}: {error}"),
                };
            let index = Index::<u64>::open(&target)?;
            if report.problem_count == 0 {
                // A file of a table is missing, and tables are rebuilt.
                assert_holds(&index, &model, &context);
                continue;
            }
            assert!(report.from_files, "{context}: {report:?}");
            assert_eq!(index.check(&())?.problem_count, 0, "{context}");
            let kept = model.keys().filter(|key| matches!(index.get(key), Ok(Some(_)))).count();
            assert!(kept * 2 > model.len(), "{context}: {kept} of {}", model.len());
        }
    }
    Ok(())
}

#[test]
fn a_missing_or_damaged_seal_is_detected() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let (path, other) = (directory.path().join("index"), directory.path().join("other"));
    index_of(Past::Merged, &path)?;
    drop(Index::<u64>::create(&other, &options::<u64>("4"))?);
    let seal = path.join("hamdex.seal");
    let whole = fs::read(&seal).unwrap();
    assert_eq!(SealState::read(&path)?, SealState::Whole);
    let check = || Index::<u64>::open_read_only(&path)?.check_deep(&());
    assert_eq!(check()?.problem_count, 0);
    for at in [0, 1, 8, 20, 68, 69, 100, 1000, 4000, 4095, 4096, 4164] {
        overwrite(&seal, at);
        let state = SealState::read(&path)?;
        assert!(matches!(state, SealState::Damaged { .. }), "byte {at}: {state:?}");
        assert_eq!(check()?.problem_count, 1, "byte {at}");
        fs::write(&seal, &whole).unwrap();
    }
    fs::write(&seal, [&whole[..], b"more"].concat()).unwrap();
    assert!(matches!(SealState::read(&path)?, SealState::Damaged { .. }));
    fs::copy(other.join("hamdex.seal"), &seal).unwrap();
    assert!(matches!(SealState::read(&path)?, SealState::Stale { .. }));
    fs::remove_file(&seal).unwrap();
    assert_eq!(SealState::read(&path)?, SealState::Missing);
    assert_eq!(check()?.problem_count, 1);
    drop(Index::<u64>::open(&path)?);
    assert_eq!(SealState::read(&path)?, SealState::Whole, "a writer creates a new one");
    Ok(())
}
