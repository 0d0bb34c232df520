//! Directories: a tree becomes data files, which contain rows, and documents, one per file.

use std::path::Path;

use rayon::prelude::*;
use walkdir::{DirEntry, WalkDir};

use super::dataset;
use super::detect::{self, Format, Named};
use super::open::Compression;
use crate::face::failure::{Failure, Result};
use crate::face::size;

/// A file that every index has.
const OF_AN_INDEX: &str = "hamdex.lock";

/// The documents below a directory.
#[derive(Debug, Default)]
pub struct Listing {
    /// Relative paths with forward slashes, sorted by their bytes.
    pub files: Vec<String>,
    /// What could not be listed or named, with the reason.
    pub unreadable: Vec<(String, String)>,
    /// Sum of the file sizes.
    pub bytes: u64,
}

/// A file of rows.
#[derive(Debug)]
pub(crate) struct DataFile {
    /// Relative path with forward slashes.
    pub(crate) name: String,
    pub(crate) format: Format,
    pub(crate) compression: Option<Compression>,
}

/// The contents of a directory.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// Sorted by the bytes of their names.
    pub(crate) data: Vec<DataFile>,
    pub(crate) documents: Listing,
    skipped: Skipped,
}

/// Files that are not read, by the reason.
#[derive(Debug, Default)]
struct Skipped {
    hidden: u64,
    links: u64,
    special: u64,
    indexes: u64,
    descriptions: u64,
    /// Names that say that a file is not read.
    refused: Vec<String>,
}

/// How to detect formats.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reading {
    /// Format of every file; `None` detects it.
    pub format: Option<Format>,
    /// Every file is a document.
    pub as_documents: bool,
    /// Files and directories whose names begin with a dot are read too.
    pub hidden: bool,
}

/// Returns whether a directory is an index.
pub fn is_index(path: &Path) -> bool {
    path.join(OF_AN_INDEX).is_file()
}

/// Lists every regular file once; symbolic links are not followed.
pub(crate) fn list(root: &Path, reading: Reading) -> Result<Tree> {
    std::fs::read_dir(root).map_err(|e| Failure::io(root, e))?;
    let mut skipped = Skipped::default();
    let mut tree = Tree::default();
    let mut files = Vec::new();
    let wanted = |entry: &DirEntry| enters(entry, reading.hidden, &mut skipped);
    for entry in WalkDir::new(root).into_iter().filter_entry(wanted) {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                let reason =
                    error.io_error().map_or_else(|| error.to_string(), ToString::to_string);
                let name = shown(root, error.path().unwrap_or(root));
                tree.documents.unreadable.push((name, reason));
                continue;
            }
        };
        if !entry.file_type().is_file() {
            continue;
        }
        let size = entry.metadata().map_or(0, |found| found.len());
        if let Some(name) = relative(root, entry.path()) {
            files.push((name, entry.into_path(), size));
        } else {
            let name = shown(root, entry.path());
            tree.documents.unreadable.push((name, "file name is not UTF-8".to_owned()));
        }
    }
    files.sort_unstable();
    tree.skipped = skipped;
    let kinds: Vec<_> = files.par_iter().map(|(_, path, _)| kind(path, reading)).collect();
    let columnar = |kind: &Kind| matches!(kind, Kind::Data(Format::Arrow | Format::Parquet, _));
    let tables = files.iter().zip(&kinds).filter(|(_, kind)| columnar(kind));
    let tables: Vec<&Path> = tables.map(|((_, path, _), _)| path.as_path()).collect();
    let described: Vec<bool> =
        files.iter().map(|(_, path, _)| dataset::is_description(path, &tables)).collect();
    for (((name, _, size), kind), described) in files.into_iter().zip(kinds).zip(described) {
        match kind {
            _ if described && !reading.as_documents => tree.skipped.descriptions += 1,
            Kind::Data(format, compression) => {
                tree.data.push(DataFile { name, format, compression });
            }
            Kind::Document => {
                tree.documents.files.push(name);
                tree.documents.bytes += size;
            }
            Kind::Refused => tree.skipped.refused.push(name),
        }
    }
    Ok(tree)
}

/// Returns true if the walk includes an entry, and counts it otherwise.
fn enters(entry: &DirEntry, hidden: bool, skipped: &mut Skipped) -> bool {
    if entry.depth() == 0 {
        return true;
    }
    let kind = entry.file_type();
    let count = if !hidden && entry.file_name().as_encoded_bytes().starts_with(b".") {
        &mut skipped.hidden
    } else if kind.is_symlink() {
        &mut skipped.links
    } else if kind.is_dir() && is_index(entry.path()) {
        &mut skipped.indexes
    } else if !kind.is_dir() && !kind.is_file() {
        &mut skipped.special
    } else {
        return true;
    };
    *count += 1;
    false
}

enum Kind {
    Data(Format, Option<Compression>),
    Document,
    Refused,
}

fn kind(path: &Path, reading: Reading) -> Kind {
    if reading.as_documents {
        return Kind::Document;
    }
    let (format, compression) = match (reading.format, detect::by_name(path)) {
        (Some(format), _) | (None, Named::Certain(format)) => (format, Compression::of_name(path)),
        (None, Named::Refused(_)) => return Kind::Refused,
        // A file that cannot be read is a bad document among good ones.
        (None, Named::Open) => match detect::by_content(path) {
            Ok(found) => found,
            Err(_) => return Kind::Document,
        },
    };
    if format == Format::Text { Kind::Document } else { Kind::Data(format, compression) }
}

impl Tree {
    /// Reports the contents in one line.
    pub(crate) fn summary(&self, root: &str, data: u64) -> String {
        let Skipped { hidden, links, special, indexes, descriptions, refused } = &self.skipped;
        let documents = self.documents.files.len() as u64;
        let counts = [
            (data, "data file", "data files"),
            (documents, "document", "documents"),
            (*hidden, "hidden entry skipped", "hidden entries skipped (--hidden reads them)"),
            (*links, "symbolic link skipped", "symbolic links skipped"),
            (*special, "special file skipped", "special files skipped"),
            (*indexes, "index skipped", "indexes skipped"),
            (*descriptions, "dataset description skipped", "dataset descriptions skipped"),
            (refused.len() as u64, "unsupported file skipped", "unsupported files skipped"),
        ];
        let counts = counts.iter().filter(|(count, ..)| *count > 0).map(|(count, one, many)| {
            format!("{} {}", size::thousands(*count), if *count == 1 { one } else { many })
        });
        let counts = counts.collect::<Vec<_>>().join(", ");
        format!("{root}: {}", if counts.is_empty() { "no files" } else { &counts })
    }
}

fn relative(root: &Path, path: &Path) -> Option<String> {
    let parts = path.strip_prefix(root).ok()?.components();
    let parts = parts.map(|part| part.as_os_str().to_str()).collect::<Option<Vec<_>>>()?;
    Some(parts.join("/"))
}

/// Returns the name of what cannot be read.
fn shown(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

/// The device that is empty.
const NULL: &str = "/dev/null";

/// Refuses a device other than a terminal and the empty one.
pub(crate) fn refuse_device(path: &Path, found: &std::fs::Metadata) -> Result<()> {
    if !is_device(found) || path.canonicalize().is_ok_and(|real| real == Path::new(NULL)) {
        return Ok(());
    }
    if std::fs::File::open(path).is_ok_and(|file| std::io::IsTerminal::is_terminal(&file)) {
        return Ok(());
    }
    Err(Failure::file(path, "is a device, which may never end; give a file, a pipe or -"))
}

fn is_device(found: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let kind = found.file_type();
    kind.is_char_device() || kind.is_block_device()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("b/c")).unwrap();
        std::fs::create_dir_all(dir.path().join(".git")).unwrap();
        std::fs::create_dir_all(dir.path().join("idx")).unwrap();
        for (name, content) in [
            ("b/c/1", "x"),
            ("b.txt", "x"),
            (".hidden", "x"),
            (".git/config", "x"),
            ("a", "{\"text\":\"x\"}\n"),
            ("b/rows.jsonl", "x"),
            ("a.parquet.gz", "x"),
            ("idx/hamdex.lock", ""),
            ("idx/LOG", "x"),
        ] {
            std::fs::write(dir.path().join(name), content).unwrap();
        }
        dir
    }

    /// Other systems refuse such names.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_whose_name_is_not_utf8_is_listed_by_its_name_in_the_tree() {
        use std::os::unix::ffi::OsStrExt;
        let dir = tree();
        let name = std::ffi::OsStr::from_bytes(b"b/bad\xff.txt");
        std::fs::write(dir.path().join(name), "x").unwrap();
        let found = list(dir.path(), Reading::default()).unwrap().documents;
        assert_eq!(found.files, ["b.txt", "b/c/1"]);
        let unreadable = ("b/bad\u{fffd}.txt".to_owned(), "file name is not UTF-8".to_owned());
        assert_eq!(found.unreadable, [unreadable]);
    }

    #[test]
    fn a_tree_is_data_files_and_documents_sorted_with_forward_slashes() {
        let dir = tree();
        let found = list(dir.path(), Reading::default()).unwrap();
        assert_eq!(found.documents.files, ["b.txt", "b/c/1"]);
        assert_eq!(found.documents.bytes, 2);
        let data: Vec<_> = found.data.iter().map(|file| &*file.name).collect();
        assert_eq!(data, ["a", "b/rows.jsonl"]);
        assert_eq!(
            found.summary("d", 2),
            "d: 2 data files, 2 documents, 2 hidden entries skipped (--hidden reads them), \
             1 index skipped, 1 unsupported file skipped"
        );
        assert!(list(&dir.path().join("absent"), Reading::default()).is_err());
    }

    #[test]
    fn what_describes_a_dataset_is_no_document_of_it() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.arrow"), "x").unwrap();
        std::fs::write(dir.path().join("state.json"), "{\"_data_files\":[]}").unwrap();
        std::fs::write(dir.path().join("notes.json"), "{\"_data_files\":[]}").unwrap();
        let found = list(dir.path(), Reading::default()).unwrap();
        let data: Vec<_> = found.data.iter().map(|file| &*file.name).collect();
        assert_eq!(data, ["a.arrow", "notes.json"]);
        assert_eq!(found.summary("d", 2), "d: 2 data files, 1 dataset description skipped");
        let all = Reading { as_documents: true, ..Reading::default() };
        let names = ["a.arrow", "notes.json", "state.json"];
        assert_eq!(list(dir.path(), all).unwrap().documents.files, names);
    }

    #[test]
    fn every_file_is_a_document_on_request() {
        let dir = tree();
        let reading = Reading { as_documents: true, hidden: true, ..Reading::default() };
        let found = list(dir.path(), reading).unwrap();
        assert!(found.data.is_empty());
        let names =
            [".git/config", ".hidden", "a", "a.parquet.gz", "b.txt", "b/c/1", "b/rows.jsonl"];
        assert_eq!(found.documents.files, names);
    }
}
