//! Damaged table files: flipped, cut and missing ones.

use std::fs;
use std::path::{Path, PathBuf};

use hamdex::{Durability, Error, Fault, Index, Query, Result, SearchPath};

use crate::support::{
    Model, Rng, copy_directory, documents_of, files, keyed, mixed, options, scan,
};

/// An index in table files, whose searches have something to find.
fn folded_index(path: &Path) -> (Model<u64>, Vec<u64>) {
    let rng = &mut Rng::new(71);
    let fingerprints = mixed::<u64>(rng, 1200);
    let documents = keyed(rng, &fingerprints);
    let index = Index::create(path, &options::<u64>("4").pipeline("words")).unwrap();
    index.insert_batch(&documents[..1000], Durability::Buffered).unwrap();
    index.fold(&()).unwrap();
    index.insert_batch(&documents[1000..], Durability::Buffered).unwrap();
    index.flush().unwrap();
    let queries = fingerprints.iter().step_by(100).map(|f| f ^ 1).collect();
    (documents.into_iter().collect(), queries)
}

fn is_table(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "sst")
}

/// Reads everything in every way; what does not fail has to be right.
fn read_all(path: &Path, model: &Model<u64>, queries: &[u64], context: &str) -> Result<()> {
    let index = Index::<u64>::open(path)?;
    let mut outcome = Ok(());
    for &query in queries {
        for way in [SearchPath::Tables, SearchPath::Scan] {
            match index.search(Query::new(query).distance(6).path(way)) {
                Ok(found) => assert!(found == scan(model, query, 6), "{context}, {way:?}"),
                Err(error) => outcome = Err(error),
            }
        }
    }
    for (key, fingerprint) in model.iter().step_by(9) {
        match index.get(key) {
            Ok(found) => assert_eq!(found, Some(*fingerprint), "{context}"),
            Err(error) => outcome = Err(error),
        }
    }
    match documents_of(&index) {
        Ok(documents) => assert!(documents == *model, "{context}"),
        Err(error) => outcome = Err(error),
    }
    if let Err(error) = index.clusters(3, &()) {
        outcome = Err(error);
    }
    let report = index.check(&())?;
    if let Err(error) = outcome {
        assert!(report.problem_count > 0, "{context}: check saw nothing of: {error}");
        return Err(error);
    }
    if report.problem_count > 0 {
        return Err(Error::Corrupt {
            family: "check".to_owned(),
            detail: report.problems.join(", "),
        });
    }
    Ok(())
}

/// As [`read_all`], but an earlier state, whole, is right too: what the manifest's end names last
/// cannot be told from what a loss of power cut off.
fn read_earlier_state(path: &Path, model: &Model<u64>, context: &str) -> Result<()> {
    let index = Index::<u64>::open(path)?;
    let report = index.check(&())?;
    if report.problem_count > 0 {
        return Err(Error::Corrupt {
            family: "check".to_owned(),
            detail: report.problems.join(", "),
        });
    }
    let documents = documents_of(&index)?;
    assert!(documents.iter().all(|(key, f)| model.get(key) == Some(f)), "{context}");
    assert_eq!(index.len()?, documents.len() as u64, "{context}");
    Ok(())
}

/// Flips single bits of some files; returns how often that was noticed and how often not.
fn flip_bits(
    keep: impl Fn(&str) -> bool,
    seed: u64,
    flips: usize,
    read: impl Fn(&Path, &Model<u64>, &[u64], &str) -> Result<()>,
) -> (usize, usize) {
    let rng = &mut Rng::new(seed);
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().join("base");
    let (model, queries) = folded_index(&base);
    let damaged = directory.path().join("damaged");
    let mut names: Vec<PathBuf> = files(&base, keep);
    names.retain(|name| fs::metadata(name).unwrap().len() > 0);
    assert!(!names.is_empty());
    let (mut noticed, mut harmless) = (0, 0);
    for _ in 0..flips {
        copy_directory(&base, &damaged).unwrap();
        let file = damaged.join(rng.pick(&names).file_name().unwrap());
        let mut bytes = fs::read(&file).unwrap();
        let at = rng.below(bytes.len());
        bytes[at] ^= 1 << rng.below(8);
        fs::write(&file, &bytes).unwrap();
        let context = format!("seed {seed}, byte {at} of {} in {}", bytes.len(), file.display());
        match read(&damaged, &model, &queries, &context) {
            Ok(()) => harmless += 1,
            Err(error) => {
                assert_ne!(error.fault(), Fault::Caller, "{context}: {error}");
                noticed += 1;
            }
        }
        fs::remove_dir_all(&damaged).unwrap();
    }
    (noticed, harmless)
}

#[test]
fn a_flipped_bit_in_a_table_file_is_an_error_or_harmless() {
    let (noticed, harmless) = flip_bits(is_table, 72, 60, |path, model, queries, context| {
        let outcome = read_all(path, model, queries, context);
        if outcome.is_err() {
            put_back(path);
            // Looking at damage makes it no worse.
            read_all(path, model, queries, context).unwrap();
        }
        outcome
    });
    assert!(noticed > harmless, "{noticed} flips were noticed, {harmless} harmless");
}

/// Copies the sound files over the damaged ones beside them.
fn put_back(damaged: &Path) {
    let base = damaged.with_file_name("base");
    for file in files(&base, is_table) {
        fs::copy(&file, damaged.join(file.file_name().unwrap())).unwrap();
    }
}

#[test]
fn a_flipped_bit_in_the_manifest_is_an_error_or_an_earlier_state() {
    let manifest = |name: &str| name.starts_with("MANIFEST");
    let (noticed, _) = flip_bits(manifest, 73, 60, |path, model, _, context| {
        read_earlier_state(path, model, context)
    });
    assert!(noticed > 50, "{noticed} of 60 flips were noticed");
}

#[test]
fn a_flipped_bit_in_other_files_is_an_error_or_harmless() {
    let others = ["IDENTITY", "LOG", "OPTIONS"];
    flip_bits(|name| others.iter().any(|other| name.starts_with(other)), 74, 20, read_all);
}

#[test]
fn a_missing_or_cut_file_is_a_typed_error() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().join("base");
    let (model, queries) = folded_index(&base);
    let damaged = directory.path().join("damaged");
    let essential =
        |name: &str| is_table(name) || name == "CURRENT" || name.starts_with("MANIFEST");
    for file in files(&base, essential) {
        for keep in [None, Some(0), Some(1), Some(2)] {
            copy_directory(&base, &damaged).unwrap();
            let target = damaged.join(file.file_name().unwrap());
            let context = format!("{} cut to {keep:?} thirds", target.display());
            match keep {
                None => fs::remove_file(&target).unwrap(),
                Some(thirds) => {
                    let bytes = fs::read(&file).unwrap();
                    fs::write(&target, &bytes[..bytes.len() * thirds / 3]).unwrap();
                }
            }
            let is = |name: &str| target.file_name().unwrap().to_str().unwrap().starts_with(name);
            let outcome = if is("MANIFEST") && keep > Some(0) {
                read_earlier_state(&damaged, &model, &context)
            } else {
                Err(read_all(&damaged, &model, &queries, &context).expect_err(&context))
            };
            if let Err(error) = outcome {
                let missing = matches!(error, Error::NotFound { .. }) && is("CURRENT");
                assert!(missing || error.fault() != Fault::Caller, "{context}: {error}");
            }
            fs::remove_dir_all(&damaged).unwrap();
        }
    }
}
