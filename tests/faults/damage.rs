//! Damaged table files: flipped, truncated and missing ones.

use std::fs;
use std::path::{Path, PathBuf};

use hamdex::build::{BuildOptions, Builder, repair};
use hamdex::{Durability, Error, Fault, Index, Query, Result, SearchPath};

use crate::support::{
    Model, Rng, assert_holds, copy_directory, documents_of, files, keyed, mixed, options, scan,
};

/// Creates an index in table files, and queries that find something.
fn folded_index(path: &Path) -> (Model<u64>, Vec<u64>) {
    let rng = &mut Rng::new(71);
    let fingerprints = mixed::<u64>(rng, 1200);
    let documents = keyed(rng, &fingerprints);
    let index = Index::create(path, &options::<u64>("4").pipeline("words")).unwrap();
    index.insert_batch(&documents[..1000], Durability::Buffered).unwrap();
    index.merge(&()).unwrap();
    index.insert_batch(&documents[1000..], Durability::Buffered).unwrap();
    index.flush().unwrap();
    let queries = fingerprints.iter().step_by(100).map(|f| f ^ 1).collect();
    (documents.into_iter().collect(), queries)
}

fn is_table(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "sst")
}

/// Reads everything in every way; results that are not errors must be right.
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
        assert!(report.problem_count > 0, "{context}: check did not detect: {error}");
        return Err(error);
    }
    let report = if report.problem_count > 0 { report } else { index.check_deep(&())? };
    if report.problem_count > 0 {
        return Err(Error::Corrupt {
            family: "check".to_owned(),
            detail: report.problems.join(", "),
        });
    }
    Ok(())
}

/// Flips single bits of some files; returns how many flips were detected and how many harmless.
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
            // Reading damage must not make it worse.
            read_all(path, model, queries, context).unwrap();
        }
        outcome
    });
    assert!(noticed > harmless, "{noticed} flips were detected, {harmless} harmless");
}

/// Copies the sound files over the damaged ones.
fn put_back(damaged: &Path) {
    let base = damaged.with_file_name("base");
    for file in files(&base, is_table) {
        fs::copy(&file, damaged.join(file.file_name().unwrap())).unwrap();
    }
}

/// The storage engine treats some of these flips as a torn end and opens an earlier state.
#[test]
fn every_flipped_bit_in_the_manifest_is_an_error() {
    let manifest = |name: &str| name.starts_with("MANIFEST");
    let (noticed, harmless) = flip_bits(manifest, 73, 60, read_all);
    assert_eq!((noticed, harmless), (60, 0));
}

/// Bytes 5 and 6 of a record in the last block of the MANIFEST are its length. A longer one looks
/// like a record torn by a power loss, which would drop the record and all after it.
#[test]
fn a_manifest_with_a_seemingly_torn_record_is_damage() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().join("base");
    folded_index(&base);
    let manifest = files(&base, |name| name.starts_with("MANIFEST")).remove(0);
    let sound = fs::read(&manifest).unwrap();
    let (mut at, mut records) = (0, 0);
    while at + 7 < sound.len() {
        let length = usize::from(sound[at + 4]) | usize::from(sound[at + 5]) << 8;
        let mut bad = sound.clone();
        bad[at + 5] ^= 0x40;
        fs::write(&manifest, bad).unwrap();
        for error in [
            Index::<u64>::open_read_only(&base).unwrap_err(),
            Index::<u64>::open(&base).unwrap_err(),
        ] {
            assert!(matches!(error, Error::Corrupt { .. }), "record at {at}: {error}");
        }
        records += 1;
        at += 7 + length;
    }
    assert!(records > 10, "the MANIFEST has this layout: {records} records");
    fs::write(&manifest, sound).unwrap();
    Index::<u64>::open(&base).unwrap();
}

/// `check` looks for differences by reading single postings, which fails as well.
#[test]
fn check_reports_unreadable_blocks_and_continues() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().join("base");
    folded_index(&base);
    let mut checked = 0;
    for file in files(&base, is_table) {
        let sound = fs::read(&file).unwrap();
        let mut bad = sound.clone();
        bad[5] ^= 1;
        fs::write(&file, bad).unwrap();
        if let Ok(index) = Index::<u64>::open_read_only(&base) {
            let name = file.display();
            let report = index.check(&()).unwrap_or_else(|error| panic!("{name}: {error}"));
            let deep = index.check_deep(&()).unwrap();
            assert!(report.problem_count > 0 || deep.problem_count > 0, "{name}");
            checked += 1;
        }
        fs::write(&file, sound).unwrap();
    }
    assert!(checked > 5, "{checked} damaged indexes opened");
}

#[test]
fn a_missing_table_among_many_is_damage_wherever_it_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().join("base");
    let index = Index::<u64>::create(&base, &options::<u64>("10")).unwrap();
    let mut rng = Rng::new(11);
    // With more than 16 tables, the engine opens some only when they are read. It compacts from four
    // files of a family on.
    for round in 0..3_u8 {
        let documents: Vec<_> =
            (0..=99).map(|at| (vec![round, at], rng.fingerprint::<u64>())).collect();
        index.insert_batch(&documents, Durability::Buffered).unwrap();
        // Only a merge writes to all tables. It flushes.
        index.merge(&()).unwrap();
    }
    drop(index);
    let mut opened = 0;
    let tables: Vec<_> = files(&base, is_table).into_iter().step_by(2).collect();
    for (number, table) in tables.iter().enumerate() {
        // A writer compacts, so each table is missing in a copy.
        let copy = directory.path().join(format!("copy-{number}"));
        copy_directory(&base, &copy).unwrap();
        fs::remove_file(copy.join(table.file_name().unwrap())).unwrap();
        match Index::<u64>::open(&copy) {
            Ok(index) => {
                opened += 1;
                let report = index.check_deep(&()).unwrap();
                assert!(report.problem_count > 0, "{}", table.display());
            }
            Err(error) => assert_eq!(error.fault(), Fault::Damage, "{error}"),
        }
    }
    assert!(opened > 3, "{opened} of {}", tables.len());
}

#[test]
fn check_deep_reads_past_what_the_caches_hold() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().join("base");
    let (model, queries) = folded_index(&base);
    let index = Index::<u64>::open(&base).unwrap();
    // Otherwise a compaction may replace files, from blocks that it read before the damage.
    index.compact().unwrap();
    assert_holds(&index, &model, "sound");
    for &query in &queries {
        index.search(Query::new(query)).unwrap();
    }
    assert_eq!(index.check_deep(&()).unwrap().problems, Vec::<String>::new());
    for file in files(&base, is_table) {
        let mut bytes = fs::read(&file).unwrap();
        bytes[5] ^= 1;
        fs::write(&file, bytes).unwrap();
    }
    for query in queries {
        index.search(Query::new(query)).expect("searches are answered from the cache");
    }
    let report = index.check_deep(&()).unwrap();
    assert!(report.problem_count >= 6, "{:?}", report.problems);
}

#[test]
fn a_repair_rebuilds_the_tables_from_the_documents() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().join("base");
    let (model, _) = folded_index(&base);
    let damaged = directory.path().join("damaged");
    let (mut refused, mut whole) = (0, 0);
    for (number, file) in files(&base, is_table).iter().enumerate() {
        copy_directory(&base, &damaged).unwrap();
        let name = damaged.join(file.file_name().unwrap());
        let mut bytes = fs::read(&name).unwrap();
        for at in [bytes.len() / 3, bytes.len() - 20] {
            bytes[at] ^= 0x10;
        }
        fs::write(&name, bytes).unwrap();
        refused += u32::from(Index::<u64>::open(&damaged).is_err());
        let target = directory.path().join(format!("repaired-{number}"));
        match repair::<u64>(&damaged, &target, &BuildOptions::new(), &()) {
            Ok(report) => {
                let index = Index::<u64>::open(&target).unwrap();
                let documents = documents_of(&index).unwrap();
                assert!(documents.iter().all(|(key, f)| model.get(key) == Some(f)));
                assert_holds(&index, &documents, &format!("{}: {report:?}", name.display()));
                assert_eq!(index.header().pipeline, "words");
                assert_eq!(report.documents, documents.len() as u64);
                let complete = documents.len() == model.len();
                assert!(complete || report.problem_count > 0, "{report:?}");
                whole += u32::from(complete);
            }
            Err(error) => assert_eq!(error.fault(), Fault::Damage, "{error}"),
        }
        fs::remove_dir_all(&damaged).unwrap();
    }
    assert!(refused > 3, "{refused} damaged indexes were refused");
    assert!(whole > 8, "{whole} indexes were repaired whole");
}

/// Creates an index of packed documents, some of which are replaced and removed later.
fn packed_index(path: &Path) -> Model<u64> {
    let mut rng = Rng::new(72);
    let fingerprints = mixed::<u64>(&mut rng, 1200);
    let mut model: Model<u64> =
        (0_u64..).map(|row| row.to_be_bytes().to_vec()).zip(fingerprints).take(1200).collect();
    // The second build leaves no file of the first generation.
    for part in 0..2 {
        let mut builder =
            Builder::<u64>::create(path, &options::<u64>("4"), &BuildOptions::new()).unwrap();
        for ((key, fingerprint), origin) in model.iter().skip(part * 600).take(600).zip(0..) {
            builder.push(key, *fingerprint, origin).unwrap();
        }
        builder.finish(&(), &mut |_, _| ()).unwrap();
    }
    let index = Index::<u64>::open(path).unwrap();
    for (round, step) in [(1, 7), (2, 5)] {
        let mut keys: Vec<_> = model.keys().step_by(step).cloned().collect();
        let gone = keys.split_off(keys.len() / 2);
        index.remove_batch(&gone, Durability::Buffered).unwrap();
        model.retain(|key, _| !gone.contains(key));
        let new: Vec<_> = keys.into_iter().map(|key| (key, round)).collect();
        index.insert_batch(&new, Durability::Buffered).unwrap();
        model.extend(new);
        if round == 1 {
            index.flush().unwrap();
        }
    }
    assert_holds(&index, &model, "before the damage");
    model
}

#[test]
fn a_check_ends_with_what_is_damaged_in_any_file_of_packed_documents() {
    let directory = tempfile::tempdir().unwrap();
    let (base, damaged) = (directory.path().join("base"), directory.path().join("damaged"));
    packed_index(&base);
    let mut found = 0;
    for file in files(&base, is_table) {
        for third in 0..3 {
            copy_directory(&base, &damaged).unwrap();
            let name = damaged.join(file.file_name().unwrap());
            let mut bytes = fs::read(&name).unwrap();
            let at = bytes.len() * third / 3 + 40;
            bytes[at] ^= 0x10;
            fs::write(&name, bytes).unwrap();
            match Index::<u64>::open(&damaged) {
                Ok(index) => {
                    let report = index.check_deep(&()).unwrap_or_else(|e| panic!("{name:?}: {e}"));
                    found += u32::from(!report.problems.is_empty());
                }
                Err(error) => assert_eq!(error.fault(), Fault::Damage, "{error}"),
            }
            fs::remove_dir_all(&damaged).unwrap();
        }
    }
    assert!(found > 6, "damage was found {found} times");
}

#[test]
fn packed_documents_are_repaired_from_files_alone_and_from_their_postings() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().join("base");
    let model = packed_index(&base);
    let damaged = directory.path().join("damaged");
    let target = directory.path().join("repaired");
    let mut whole = 0;
    let tables = files(&base, is_table);
    for file in tables.iter().map(Some).chain([None]) {
        copy_directory(&base, &damaged).unwrap();
        if let Some(file) = file {
            let name = damaged.join(file.file_name().unwrap());
            let mut bytes = fs::read(&name).unwrap();
            let at = bytes.len() / 3;
            bytes[at] ^= 0x10;
            fs::write(&name, bytes).unwrap();
        } else {
            fs::remove_file(damaged.join("CURRENT")).unwrap();
        }
        match repair::<u64>(&damaged, &target, &BuildOptions::new(), &()) {
            Ok(report) => {
                let index = Index::<u64>::open(&target).unwrap();
                let documents = documents_of(&index).unwrap();
                assert!(documents.iter().all(|(key, f)| model.get(key) == Some(f)), "{report:?}");
                let complete = documents.len() == model.len();
                assert!(complete || report.problem_count > 0, "{report:?}");
                if file.is_none() {
                    assert!(complete && report.from_files, "{report:?}");
                }
                whole += u32::from(complete);
                drop(index);
                fs::remove_dir_all(&target).unwrap();
            }
            Err(error) => assert_eq!(error.fault(), Fault::Damage, "{error}"),
        }
        fs::remove_dir_all(&damaged).unwrap();
    }
    assert!(whole > 4, "{whole} of {} indexes were repaired whole", tables.len() + 1);
}

#[test]
fn a_flipped_bit_in_other_files_is_an_error_or_harmless() {
    let others = ["IDENTITY", "LOG", "OPTIONS"];
    flip_bits(|name| others.iter().any(|other| name.starts_with(other)), 74, 20, read_all);
}

#[test]
fn a_missing_file_is_damage_and_a_truncated_one_is_not_the_callers_fault() {
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
            let error = read_all(&damaged, &model, &queries, &context).expect_err(&context);
            match keep {
                None => assert_eq!(error.fault(), Fault::Damage, "{context}: {error}"),
                Some(_) => assert_ne!(error.fault(), Fault::Caller, "{context}: {error}"),
            }
            fs::remove_dir_all(&damaged).unwrap();
        }
    }
}
