//! Paths without an index, with other files, or in use: refused by name and not changed.

use std::fs;
use std::path::Path;

use hamdex::build::{BuildOptions, Builder};
use hamdex::inspect::Header;
use hamdex::{Error, Index, IndexOptions, Result};

use crate::log::the_log;
use crate::support::{Model, assert_holds, copy_directory, files, options};

#[test]
fn a_second_writer_gets_the_error_that_the_index_is_in_use() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let index = Index::<u64>::create(path, &options::<u64>("4"))?;
    let build = BuildOptions::new();
    for error in [
        Index::<u64>::open(path).unwrap_err(),
        Builder::<u64>::create(path, &IndexOptions::new(), &build).unwrap_err(),
        Builder::<u64>::resume(path, &build).unwrap_err(),
        Builder::<u64>::abandon(path).unwrap_err(),
    ] {
        assert!(matches!(&error, Error::Locked { path: named } if named == path), "{error}");
        assert_eq!(error.to_string(), format!("{} is in use by another process", path.display()));
    }
    index.insert(b"a", 1)?;
    drop(index);
    assert_eq!(Index::<u64>::open(path)?.len()?, 1, "a closed index is free again");
    Ok(())
}

/// Every way to open a path that is not an index.
fn refusals(path: &Path) -> [Error; 5] {
    [
        Index::<u64>::open(path).unwrap_err(),
        Index::<u64>::open_read_only(path).unwrap_err(),
        Header::read(path).unwrap_err(),
        Builder::<u64>::resume(path, &BuildOptions::new()).unwrap_err(),
        Builder::<u64>::abandon(path).unwrap_err(),
    ]
}

#[test]
fn a_missing_or_empty_directory_holds_no_index() {
    let directory = tempfile::tempdir().unwrap();
    for path in [directory.path().join("missing"), directory.path().to_owned()] {
        for error in refusals(&path) {
            assert!(matches!(&error, Error::NotFound { path: named } if *named == path), "{error}");
        }
    }
    assert!(files(directory.path(), |_| true).is_empty(), "a refusal leaves files");
}

#[test]
fn foreign_files_are_neither_opened_nor_changed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    fs::write(path.join("thesis.txt"), "years of work").unwrap();
    for error in refusals(path) {
        assert!(matches!(error, Error::NotFound { .. }), "{error}");
    }
    for error in [
        Index::<u64>::create(path, &IndexOptions::new()).unwrap_err(),
        Builder::<u64>::create(path, &IndexOptions::new(), &BuildOptions::new()).unwrap_err(),
    ] {
        assert!(matches!(error, Error::AlreadyExists { .. }), "{error}");
        let message = format!("{} already holds an index or other files", path.display());
        assert_eq!(error.to_string(), message);
    }
    assert_eq!(fs::read(path.join("thesis.txt")).unwrap(), b"years of work");
    assert_eq!(fs::read_dir(path).unwrap().count(), 1, "a refusal leaves files");
}

#[test]
fn an_index_is_not_created_over_another() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    Index::<u64>::create(directory.path(), &options::<u64>("4"))?.insert(b"a", 1)?;
    let error = Index::<u64>::create(directory.path(), &options::<u64>("4")).unwrap_err();
    assert!(matches!(error, Error::AlreadyExists { .. }), "{error}");
    assert_eq!(Index::<u64>::open(directory.path())?.get(b"a")?, Some(1));
    Ok(())
}

#[test]
fn an_interrupted_creation_can_be_repeated() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().join("base");
    drop(Index::<u64>::create(&base, &options::<u64>("4"))?);
    // A kill before the header is in the log leaves an empty database.
    fs::write(the_log(&base), []).unwrap();
    assert!(
        matches!(Index::<u64>::open(&base), Err(Error::Corrupt { .. })),
        "without the marker of a creation this is damage"
    );
    let error = Index::<u64>::create(&base, &options::<u64>("4")).unwrap_err();
    assert!(matches!(error, Error::AlreadyExists { .. }), "{error}");
    for empty in [true, false] {
        let path = directory.path().join(format!("begun-{empty}"));
        if empty {
            fs::create_dir(&path).unwrap();
            fs::write(path.join("hamdex.lock"), []).unwrap();
        } else {
            copy_directory(&base, &path).unwrap();
            fs::write(path.join("hamdex.creating"), []).unwrap();
        }
        assert!(matches!(Index::<u64>::open(&path), Err(Error::NotFound { .. })));
        let index = Index::<u64>::create(&path, &options::<u64>("10"))?;
        index.insert(b"a", 1)?;
        assert_holds(&index, &Model::from([(b"a".to_vec(), 1)]), "created again");
    }
    Ok(())
}

#[test]
fn a_path_to_a_file_is_refused_and_the_file_kept() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    fs::write(&path, "text").unwrap();
    for error in refusals(&path) {
        assert!(matches!(error, Error::NotFound { .. } | Error::Io { .. }), "{error}");
    }
    for error in [
        Index::<u64>::create(&path, &IndexOptions::new()).unwrap_err(),
        Builder::<u64>::create(&path, &IndexOptions::new(), &BuildOptions::new()).unwrap_err(),
    ] {
        assert!(matches!(error, Error::AlreadyExists { .. } | Error::Io { .. }), "{error}");
    }
    assert_eq!(fs::read(&path).unwrap(), b"text");
}
