//! Record types of recycled logs, which would make the storage engine read without end.

use std::fs;
use std::path::{Path, PathBuf};

use hamdex::build::{BuildOptions, repair};
use hamdex::inspect::Header;
use hamdex::{Durability, Error, Fault, Index, OpenOptions, Secondary};

use crate::log::{logged_index, the_log};
use crate::support::{copy_directory, documents_of, files, options};

/// Full, first, middle and last fragments, timestamp sizes, and the type of the log before.
const TYPES: [u8; 6] = [5, 6, 7, 8, 11, 131];

/// Returns the offsets of the record types in a log or MANIFEST.
fn types(bytes: &[u8]) -> Vec<usize> {
    let mut places = Vec::new();
    let mut at = 0;
    while at + 7 <= bytes.len() {
        let left = 32768 - at % 32768;
        if left < 7 {
            at += left;
            continue;
        }
        places.push(at + 6);
        at += 7 + usize::from(bytes[at + 4]) + 256 * usize::from(bytes[at + 5]);
    }
    assert_eq!(at, bytes.len(), "records fill the file");
    places
}

fn the_manifest(path: &Path) -> PathBuf {
    let current = fs::read_to_string(path.join("CURRENT")).unwrap();
    path.join(current.trim_end())
}

/// Opens the index in every way and returns the errors.
fn open_in_every_way(path: &Path) -> Vec<Error> {
    let memory = OpenOptions::new().memory(16 << 20);
    [
        Index::<u64>::open_read_only(path).err(),
        Secondary::<u64>::open_with(path, &memory).err(),
        Index::<u64>::open_with(path, &memory).err(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[test]
fn a_record_type_of_recycled_logs_is_damage_in_every_way_of_opening() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().join("base");
    let states = logged_index(&base);
    let (mut last, mut headless) = (0, 0);
    for (file, is_log) in [(the_log(&base), true), (the_manifest(&base), false)] {
        let whole = fs::read(&file).unwrap();
        let places = types(&whole);
        assert!(places.len() > 5, "{} records in {}", places.len(), file.display());
        for (number, at) in places.into_iter().enumerate() {
            let damaged = directory.path().join("damaged");
            copy_directory(&base, &damaged).unwrap();
            let mut bad = whole.clone();
            bad[at] = TYPES[number % TYPES.len()];
            fs::write(damaged.join(file.file_name().unwrap()), bad).unwrap();
            let context = format!("type {} at {at} of {}", TYPES[number % 6], file.display());
            let errors = open_in_every_way(&damaged);
            assert_eq!(errors.len(), 3, "{context}: {errors:?}");
            for error in errors {
                assert!(matches!(error, Error::Corrupt { .. }), "{context}: {error}");
            }
            // The header is at the start of the log.
            match Header::read(&damaged) {
                Ok(header) => assert!(is_log && header.bits == 64, "{context}: {header:?}"),
                Err(error) => {
                    headless += usize::from(is_log);
                    assert_ne!(error.fault(), Fault::Environment, "{context}: {error}");
                }
            }
            let target = directory.path().join("repaired");
            match repair::<u64>(&damaged, &target, &BuildOptions::new(), &()) {
                Ok(_) => {
                    let found = documents_of(&Index::<u64>::open(&target).unwrap()).unwrap();
                    if !is_log {
                        // The files and the log are enough without the list of files.
                        assert_eq!(states.last(), Some(&found), "{context}");
                        fs::remove_dir_all(&target).unwrap();
                        fs::remove_dir_all(&damaged).unwrap();
                        continue;
                    }
                    let calls = states.iter().position(|state| *state == found);
                    assert!(calls.is_some_and(|calls| calls >= last), "{context}: {calls:?}");
                    last = calls.unwrap();
                    fs::remove_dir_all(&target).unwrap();
                }
                Err(error) => {
                    assert!(last == 0 && is_log, "{context}: {error}");
                    assert_ne!(error.fault(), Fault::Environment, "{context}: {error}");
                }
            }
            fs::remove_dir_all(&damaged).unwrap();
        }
    }
    assert!(headless < 5, "{headless} headers could not be read");
    assert!(last + 3 > states.len(), "repairs kept at most {last} calls");
}

#[test]
fn a_secondary_does_not_advance_to_a_record_type_of_recycled_logs() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index");
    let index = Index::<u64>::create(&path, &options::<u64>("4")).unwrap();
    let memory = OpenOptions::new().memory(16 << 20);
    let secondary = Secondary::<u64>::open_with(&path, &memory).unwrap();
    for number in 0..900_u64 {
        index.insert_batch(&[(number.to_be_bytes(), number)], Durability::Buffered).unwrap();
        if number % 300 == 0 {
            secondary.catch_up().unwrap();
            assert_eq!(secondary.index().len().unwrap(), number + 1);
        }
    }
    let log = the_log(&path);
    let mut bytes = fs::read(&log).unwrap();
    assert!(bytes.len() > 2 * 32768, "{} bytes are less than three blocks", bytes.len());
    let at = *types(&bytes).last().unwrap();
    bytes[at] = 5;
    fs::write(&log, bytes).unwrap();
    let error = secondary.catch_up().unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    assert!(files(&path, |name| name.contains("MANIFEST")).len() == 1);
}
