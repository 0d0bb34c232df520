//! A truncated or damaged log: the first calls, whole, or an error. Other formats are refused.
//!
//! So are record types of recycled logs, which would make the storage engine read without end.

use std::fs;
use std::path::{Path, PathBuf};

use hamdex::build::{BuildOptions, Builder, repair};
use hamdex::inspect::Header;
use hamdex::{Durability, Error, Fault, Index, IndexOptions, Result, Secondary};

use crate::support::{Model, Rng, assert_holds, copy_directory, documents_of, files, options};

/// Writes calls of several kinds and returns the documents after each.
///
/// The files at the path are those of a machine that stopped while the index was open.
pub(crate) fn logged_index(path: &Path) -> Vec<Model<u64>> {
    let rng = &mut Rng::new(75);
    let open = path.with_extension("open");
    let index = Index::<u64>::create(&open, &options::<u64>("4")).unwrap();
    let mut model = Model::new();
    let mut states = vec![model.clone()];
    for call in 0..24_u8 {
        if call % 5 == 4 {
            let gone: Vec<_> = model.keys().step_by(6).cloned().collect();
            index.remove_batch(&gone, Durability::Buffered).unwrap();
            model.retain(|key, _| !gone.contains(key));
        } else {
            let documents: Vec<_> =
                (0..12).map(|at| (vec![call % 7, at], rng.fingerprint())).collect();
            index.insert_batch(&documents, Durability::Buffered).unwrap();
            model.extend(documents);
        }
        states.push(model.clone());
    }
    copy_directory(&open, path).unwrap();
    states
}

pub(crate) fn the_log(path: &Path) -> PathBuf {
    let logs = files(path, |name| Path::new(name).extension().is_some_and(|e| e == "log"));
    assert_eq!(logs.len(), 1, "{logs:?}");
    logs[0].clone()
}

/// Opens an index with a damaged log; returns how many calls it still contains.
fn surviving_calls(path: &Path, states: &[Model<u64>], context: &str) -> Result<usize> {
    let index = Index::<u64>::open(path)?;
    let stored = documents_of(&index)?;
    let Some(calls) = states.iter().position(|state| *state == stored) else {
        panic!("{context}: {} documents are not those after any call", stored.len());
    };
    assert_holds(&index, &stored, context);
    Ok(calls)
}

#[test]
fn a_cut_log_leaves_the_first_calls_whole() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().join("base");
    let states = logged_index(&base);
    let log = fs::read(the_log(&base)).unwrap();
    let mut last = 0;
    let mut seen = 0;
    let steps = 90;
    for step in 0..=steps {
        let length = log.len() * step / steps;
        let cut = directory.path().join("cut");
        copy_directory(&base, &cut).unwrap();
        fs::write(the_log(&cut), &log[..length]).unwrap();
        let context = format!("log cut to {length} of {} bytes", log.len());
        match surviving_calls(&cut, &states, &context) {
            Ok(calls) => {
                assert!(calls >= last, "{context}: {calls} calls, {last} with less of the log");
                seen += usize::from(calls > last);
                last = calls;
            }
            Err(error) => {
                assert_eq!(last, 0, "{context}: {error}");
                let named = matches!(error, Error::NotFound { .. } | Error::Corrupt { .. });
                assert!(named, "{context}: {error}");
            }
        }
        fs::remove_dir_all(&cut).unwrap();
    }
    assert_eq!(last, states.len() - 1, "the whole log contains every call");
    assert!(seen > 15, "cuts were after only {seen} calls");
}

#[test]
fn a_flipped_bit_in_the_log_leaves_the_first_calls_or_is_an_error() {
    let rng = &mut Rng::new(76);
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().join("base");
    let states = logged_index(&base);
    let log = fs::read(the_log(&base)).unwrap();
    for _ in 0..40 {
        let damaged = directory.path().join("damaged");
        copy_directory(&base, &damaged).unwrap();
        let mut bad = log.clone();
        let at = rng.below(bad.len());
        bad[at] ^= 1 << rng.below(8);
        fs::write(the_log(&damaged), bad).unwrap();
        let context = format!("byte {at} of {} flipped", log.len());
        if let Err(error) = surviving_calls(&damaged, &states, &context) {
            let lost = matches!(error, Error::NotFound { .. }) && at < 1000;
            assert!(lost || error.fault() != Fault::Caller, "{context}: {error}");
        }
        fs::remove_dir_all(&damaged).unwrap();
    }
}

#[test]
fn a_log_that_lost_synced_calls_is_damage() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().join("base");
    let states = logged_index(&base);
    let closed = base.with_extension("open");
    let log = fs::read(the_log(&closed)).unwrap();
    assert_eq!(surviving_calls(&closed, &states, "closed").unwrap(), states.len() - 1);
    // Opening moved the calls into tables; the copy still has them in the log when closed.
    let rng = &mut Rng::new(77);
    drop(Index::<u64>::open(&base).unwrap());
    let index = Index::<u64>::open(&base).unwrap();
    for number in 0..8_u64 {
        index.insert_batch(&[(number.to_be_bytes(), number)], Durability::Buffered).unwrap();
    }
    drop(index);
    let model = documents_of(&Index::<u64>::open_read_only(&base).unwrap()).unwrap();
    let whole = fs::read(the_log(&base)).unwrap();
    assert_ne!(whole, log);
    let mut refused = 0;
    for round in 0..60 {
        let damaged = directory.path().join("damaged");
        copy_directory(&base, &damaged).unwrap();
        let mut bad = whole.clone();
        let at = rng.below(bad.len());
        match round % 3 {
            0 => bad.truncate(at),
            _ => bad[at] ^= 1 << rng.below(8),
        }
        fs::write(the_log(&damaged), bad).unwrap();
        for read_only in [true, false] {
            let options = hamdex::IndexOptions::new().read_only(read_only);
            match Index::<u64>::open_with(&damaged, &options) {
                Ok(index) => assert_eq!(documents_of(&index).unwrap(), model, "byte {at}"),
                Err(error) => {
                    assert_eq!(error.fault(), Fault::Damage, "byte {at}: {error}");
                    refused += 1;
                }
            }
        }
        fs::remove_dir_all(&damaged).unwrap();
    }
    assert!(refused > 100, "{refused} of 120 openings were refused");
    fs::remove_file(the_log(&base)).unwrap();
    let error = Index::<u64>::open(&base).unwrap_err();
    assert_eq!(error.fault(), Fault::Damage, "{error}");
}

/// The MANIFEST then lists a synced log by name, which the storage engine requires.
#[test]
fn a_killed_index_with_several_logs_opens_and_detects_a_missing_one() {
    let directory = tempfile::tempdir().unwrap();
    let [open, path] = ["open", "index"].map(|name| directory.path().join(name));
    let index = Index::<u64>::create(&open, &options::<u64>("4")).unwrap();
    let rng = &mut Rng::new(78);
    let mut model = Model::new();
    let is_log = |name: &str| Path::new(name).extension().is_some_and(|e| e == "log");
    let logs = |path: &Path| files(path, is_log);
    while logs(&open).len() < 2 {
        let batch: Vec<_> = (0..2000)
            .map(|at| ((model.len() + at).to_be_bytes().to_vec(), rng.fingerprint()))
            .collect();
        index.insert_batch(&batch, Durability::Buffered).unwrap();
        model.extend(batch);
        assert!(model.len() < 1_000_000, "no second log");
    }
    index.insert(b"last", 1).unwrap();
    model.insert(b"last".to_vec(), 1);
    copy_directory(&open, &path).unwrap();
    drop(index);
    assert_eq!(Header::read(&path).unwrap().bits, 64);
    assert_eq!(Index::<u64>::open_read_only(&path).unwrap().len().unwrap(), model.len() as u64);
    let target = directory.path().join("repaired");
    let report = repair::<u64>(&path, &target, &BuildOptions::new(), &()).unwrap();
    assert_eq!((report.documents, report.problem_count), (model.len() as u64, 0));
    let first = logs(&path).remove(0);
    let kept = fs::read(&first).unwrap();
    fs::remove_file(&first).unwrap();
    let error = Index::<u64>::open(&path).unwrap_err();
    assert_eq!(error.fault(), Fault::Damage, "{error}");
    fs::write(&first, kept).unwrap();
    assert_holds(&Index::<u64>::open(&path).unwrap(), &model, "with all logs again");
}

/// The end of a build is recorded in the log; without it the build looks unfinished.
#[test]
fn a_log_without_the_end_of_a_build_is_damage_also_to_repair() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index");
    let build = BuildOptions::new();
    let mut builder = Builder::<u64>::create(&path, &options::<u64>("4"), &build).unwrap();
    builder.push(b"a", 1, 0).unwrap();
    builder.finish(&(), &mut |_, _| ()).unwrap();
    let log = the_log(&path);
    let bytes = fs::read(&log).unwrap();
    fs::write(&log, &bytes[..bytes.len() - 1]).unwrap();
    for error in [
        Index::<u64>::open(&path).unwrap_err(),
        repair::<u64>(&path, directory.path().join("new"), &build, &()).unwrap_err(),
    ] {
        assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    }
}

/// CRC-32C, masked as in the log.
fn log_checksum(bytes: &[u8]) -> u32 {
    let mut sum = !0_u32;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = sum >> 1 ^ if sum & 1 == 1 { 0x82f6_3b78 } else { 0 };
        }
    }
    (!sum).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// Changes bytes of the header record in the log, and updates the log's checksum.
#[allow(clippy::little_endian_bytes)] // the log's own layout
fn rewrite_header(path: &Path, change: impl FnOnce(&mut [u8])) {
    let file = the_log(path);
    let mut log = fs::read(&file).unwrap();
    let mut at = 0;
    let (start, end) = loop {
        let length = u16::from_le_bytes(log[at + 4..at + 6].try_into().unwrap());
        let end = at + 7 + usize::from(length);
        if log[at..end].windows(7).any(|bytes| bytes == b"\x01hamdex") {
            break (at, end);
        }
        at = end;
    };
    let record = &mut log[start..end];
    assert_eq!(record[..4], log_checksum(&record[6..]).to_le_bytes(), "the log has this layout");
    let header = record.windows(7).position(|bytes| bytes == b"\x01hamdex").unwrap();
    change(&mut record[header..]);
    let sum = log_checksum(&record[6..]);
    record[..4].copy_from_slice(&sum.to_le_bytes());
    fs::write(&file, log).unwrap();
}

fn index_with_header(change: impl FnOnce(&mut [u8])) -> [Error; 4] {
    let directory = tempfile::tempdir().unwrap();
    let path = &directory.path().join("index");
    let open = Index::<u64>::create(path.with_extension("open"), &options::<u64>("4")).unwrap();
    // The log of a closed index is sealed, so any change of it is damage.
    copy_directory(&path.with_extension("open"), path).unwrap();
    drop(open);
    rewrite_header(path, change);
    [
        Header::read(path).unwrap_err(),
        Index::<u64>::open(path).unwrap_err(),
        Index::<u64>::open_read_only(path).unwrap_err(),
        Builder::<u64>::create(path, &IndexOptions::new(), &BuildOptions::new()).unwrap_err(),
    ]
}

#[test]
fn an_index_of_another_format_is_refused_by_both_versions() {
    let closed = tempfile::tempdir().unwrap();
    drop(Index::<u64>::create(closed.path(), &options::<u64>("4")).unwrap());
    rewrite_header(closed.path(), |header| header[10] = 9);
    let error = Index::<u64>::open(closed.path()).unwrap_err();
    assert!(matches!(error, Error::FormatVersion { stored: 9, .. }), "seals may differ: {error}");
    for error in index_with_header(|header| header[7..11].copy_from_slice(&[0, 0, 0, 9])) {
        assert!(matches!(error, Error::FormatVersion { stored: 9, supported: 8 }), "{error}");
        assert_eq!(
            error.to_string(),
            "index has format version 9; this library reads versions up to 8"
        );
    }
}

#[test]
fn a_changed_header_is_damage() {
    // Record version, magic, width and plan.
    for at in [0, 3, 14, 27] {
        for error in index_with_header(|header| header[at] ^= 0x20) {
            let family_is_meta =
                matches!(&error, Error::Corrupt { family, .. } if family == "meta");
            assert!(family_is_meta, "byte {at}: {error}");
        }
    }
}

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
pub(crate) fn open_in_every_way(path: &Path) -> Vec<Error> {
    let memory = IndexOptions::new().memory(16 << 20);
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
    let memory = IndexOptions::new().memory(16 << 20);
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

/// A disk may keep the new name in `CURRENT` and lose the name of the MANIFEST that it says.
#[test]
fn a_switch_to_a_manifest_that_the_disk_lost_is_undone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index");
    let index = Index::<u64>::create(&path, &options::<u64>("4")).unwrap();
    let rng = &mut Rng::new(79);
    let mut model = Model::new();
    for round in 0..3_u8 {
        let batch: Vec<_> = (0..200).map(|at| (vec![round, at], rng.fingerprint())).collect();
        index.insert_batch(&batch, Durability::Buffered).unwrap();
        model.extend(batch);
        index.merge(&()).unwrap();
    }
    drop(index);
    let current = path.join("CURRENT");
    let before = fs::read_to_string(&current).unwrap();
    let lost = "MANIFEST-000999\n";
    fs::write(&current, lost).unwrap();
    assert_holds(&Index::<u64>::open_read_only(&path).unwrap(), &model, "read");
    assert_eq!(fs::read_to_string(&current).unwrap(), lost, "a reader changes nothing");
    assert_eq!(Header::read(&path).unwrap().bits, 64);
    let index = Index::<u64>::open(&path).unwrap();
    assert_holds(&index, &model, "written");
    index.insert(b"later", 5).unwrap();
    model.insert(b"later".to_vec(), 5);
    drop(index);
    assert_holds(&Index::<u64>::open(&path).unwrap(), &model, "opened again");
    // Nothing is left to return to, or what is left is not what was synced.
    let name = fs::read_to_string(&current).unwrap();
    let manifest = path.join(name.trim_end());
    let sound = fs::read(&manifest).unwrap();
    fs::write(&current, lost).unwrap();
    for bytes in [None, sound.get(..sound.len() - 1)] {
        fs::remove_file(&manifest).unwrap();
        if let Some(bytes) = bytes {
            fs::write(&manifest, bytes).unwrap();
        }
        for error in [Index::<u64>::open(&path), Index::<u64>::open_read_only(&path)] {
            assert_eq!(error.unwrap_err().fault(), Fault::Damage);
        }
        assert_eq!(fs::read_to_string(&current).unwrap(), lost, "a damaged index is not changed");
        fs::write(&manifest, &sound).unwrap();
    }
    fs::write(&current, before).unwrap();
    assert!(Index::<u64>::open(&path).is_err(), "an older MANIFEST than the sealed one");
}
