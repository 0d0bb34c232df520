//! Logs of another index: refused by every way of opening, and nothing of them is salvaged.

use std::fs;
use std::path::{Path, PathBuf};

use hamdex::build::{BuildOptions, repair};
use hamdex::{Error, Fault, Index, Secondary};

use crate::log::{open_in_every_way, the_log};
use crate::support::{copy_directory, documents_of, options};

/// Writes documents that are in the log only, while the header is in a file.
///
/// Returns the directories of the closed index and of the index as a kill leaves it, whose log no
/// seal covers.
fn closed_and_killed(path: &Path, count: u64) -> [PathBuf; 2] {
    drop(Index::<u64>::create(path, &options::<u64>("4")).unwrap());
    let index = Index::<u64>::open(path).unwrap();
    for number in 0..count {
        index.insert(format!("{}: {number}", path.display()).as_bytes(), number).unwrap();
    }
    let killed = path.with_extension("killed");
    copy_directory(path, &killed).unwrap();
    [path.to_owned(), killed]
}

/// Returns how many documents a repair finds, with the list of files and without it.
fn repaired(path: &Path, problems: bool) -> [u64; 2] {
    [false, true].map(|lost| {
        if lost {
            fs::remove_file(path.join("CURRENT")).unwrap();
        }
        let target = path.with_extension("repaired");
        let report = repair::<u64>(path, &target, &BuildOptions::new(), &()).unwrap();
        assert!(!problems || report.problem_count > 0);
        let found = documents_of(&Index::<u64>::open(&target).unwrap()).unwrap().len() as u64;
        assert_eq!(found, report.documents);
        fs::remove_dir_all(&target).unwrap();
        found
    })
}

#[test]
fn a_log_of_another_index_is_damage_and_nothing_of_it_is_salvaged() {
    let directory = tempfile::tempdir().unwrap();
    let [short, long] = [("short", 3), ("long", 40)]
        .map(|(name, count)| closed_and_killed(&directory.path().join(name), count));
    for (state, (short, long)) in ["closed", "killed"].iter().zip(short.iter().zip(&long)) {
        for (from, to) in [(short, long), (long, short)] {
            let context = format!("{state}, {} over {}", from.display(), to.display());
            let mixed = directory.path().join("mixed");
            copy_directory(to, &mixed).unwrap();
            fs::copy(the_log(from), the_log(&mixed)).unwrap();
            let errors = open_in_every_way(&mixed);
            assert_eq!(errors.len(), 3, "{context}: {errors:?}");
            for error in errors {
                assert!(matches!(error, Error::Corrupt { .. }), "{context}: {error}");
            }
            assert_eq!(repaired(&mixed, true), [0, 0], "{context}");
            fs::remove_dir_all(&mixed).unwrap();
        }
        // A log of its own that lost its end is salvaged to there.
        let cut = directory.path().join("cut");
        copy_directory(long, &cut).unwrap();
        let log = fs::read(the_log(&cut)).unwrap();
        fs::write(the_log(&cut), log.split_at(log.len() - 9).0).unwrap();
        assert_eq!(repaired(&cut, false), [39, 39], "{state}");
        fs::remove_dir_all(&cut).unwrap();
    }
}

#[test]
fn a_log_is_of_its_index_if_one_of_two_files_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let [_, one] = closed_and_killed(&directory.path().join("one"), 5);
    let [_, two] = closed_and_killed(&directory.path().join("two"), 5);
    for change in ["another index's", "missing", "flipped"] {
        let mixed = directory.path().join("mixed");
        copy_directory(&one, &mixed).unwrap();
        let identity = mixed.join("IDENTITY");
        match change {
            "another index's" => drop(fs::copy(two.join("IDENTITY"), &identity).unwrap()),
            "missing" => fs::remove_file(&identity).unwrap(),
            _ => {
                let mut bytes = fs::read(&identity).unwrap();
                bytes[3] = if bytes[3] == b'7' { b'8' } else { b'7' };
                fs::write(&identity, bytes).unwrap();
            }
        }
        assert!(open_in_every_way(&mixed).is_empty(), "{change}");
        // What is written now has the same id.
        let index = Index::<u64>::open(&mixed).unwrap();
        index.insert(b"more", 1).unwrap();
        drop(index);
        assert!(open_in_every_way(&mixed).is_empty(), "{change}, and closed");
        assert_eq!(Index::<u64>::open(&mixed).unwrap().len().unwrap(), 6, "{change}");
        fs::remove_dir_all(&mixed).unwrap();
    }
}

#[test]
fn a_secondary_does_not_advance_to_a_log_of_another_index() {
    let directory = tempfile::tempdir().unwrap();
    let [one, two] = ["one", "two"].map(|name| directory.path().join(name));
    let [writer, other] =
        [&one, &two].map(|path| Index::<u64>::create(path, &options::<u64>("4")).unwrap());
    writer.insert(b"first", 1).unwrap();
    let secondary = Secondary::<u64>::open(&one).unwrap();
    for number in 0..40 {
        other.insert(format!("{number}").as_bytes(), number).unwrap();
    }
    fs::copy(the_log(&two), the_log(&one)).unwrap();
    let error = secondary.catch_up().unwrap_err();
    assert_eq!(error.fault(), Fault::Damage, "{error}");
}
