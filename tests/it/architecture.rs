//! Rules of this project that the compiler does not check.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The project's folder, read at run time: a shared target folder may hold a binary that was
/// compiled in another clone.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
}

/// Returns every source file of the library and its tools, with its text.
pub(crate) fn sources(folders: &[&str]) -> Vec<(PathBuf, String)> {
    let root = root();
    let mut files = Vec::new();
    for folder in folders {
        collect(&root.join(folder), &mut files);
    }
    assert!(files.len() > 20, "found only {} source files below {folders:?}", files.len());
    files
}

fn collect(folder: &Path, files: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            files.push((path, text));
        }
    }
}

#[test]
fn only_the_store_names_rocksdb() {
    // Only one file exposes a host's types, and only with the feature of that name.
    let (store, host) = (root().join("src/store"), root().join("src/interop/mod.rs"));
    for (path, text) in sources(&["src", "tools/io/src", "tools/hamdex/src", "tools/c"]) {
        if !path.starts_with(&store) && path != host {
            let text = text.replace("feature = \"rocksdb-interop\"", "");
            assert!(!text.contains("rocksdb"), "{} names the storage engine", path.display());
        }
    }
}

#[test]
fn only_the_committer_commits_batches_of_an_index() {
    let index = root().join("src/index");
    let mut committed = 0;
    for (path, text) in sources(&["src/index", "src/interop"]) {
        let (text, _) = text.split_once("#[cfg(test)]\nmod tests").unwrap_or((&text, ""));
        let count = text.matches("batch.commit()").count();
        committed += count;
        let allowed = path.starts_with(index.join("committer"));
        assert!(count == 0 || allowed, "{} commits a batch by itself", path.display());
    }
    assert!(committed > 2, "only {committed} commits were found");
}

/// An iterator with other options than those of cursors may skip entries of another prefix.
#[test]
fn only_cursors_choose_how_iterators_read() {
    let cursors = root().join("src/store/data/cursor.rs");
    let mut opened = 0;
    for (path, text) in sources(&["src/store"]) {
        opened += text.matches("raw_iterator_cf_opt(").count();
        for choice in ["raw_iterator_cf(", "ReadOptions::default()"] {
            let refused = path != cursors && text.contains(choice);
            assert!(!refused, "{} contains {choice}", path.display());
        }
    }
    assert!(opened > 5, "only {opened} iterators were found");
}

#[test]
fn no_file_is_longer_than_five_hundred_lines() {
    for (path, text) in sources(&["src", "tests", "tools"]) {
        let lines = text.lines().count();
        assert!(lines <= 500, "{} has {lines} lines", path.display());
    }
}

#[test]
fn the_library_prints_nothing() {
    for (path, text) in sources(&["src"]) {
        for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
            let mut words =
                line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '!');
            let prints =
                |word| ["println!", "print!", "eprintln!", "eprint!", "dbg!"].contains(&word);
            assert!(!words.any(prints), "{} prints: {line}", path.display());
        }
    }
}

#[test]
fn no_source_leaves_work_undone() {
    for (path, text) in sources(&["src", "tools/io/src", "tools/hamdex/src"]) {
        for mark in ["TODO", "FIXME", "todo!(", "unimplemented!("] {
            assert!(!text.contains(mark), "{} contains {mark}", path.display());
        }
    }
}

#[test]
fn every_fail_point_is_tried_by_the_torture() {
    let root = root();
    let listed = fs::read_to_string(root.join("tools/torture/src/points.rs")).unwrap();
    let (_, list) = listed.split_once("POINTS:").unwrap();
    let (list, _) = list.split_once("];").unwrap();
    let names = |text: &str, before: &str| -> Vec<String> {
        let parts = text.split(before).skip(1);
        parts.map(|part| part.split('"').next().unwrap().to_owned()).collect()
    };
    let mut inside: Vec<String> = sources(&["src"])
        .iter()
        .filter(|(path, _)| !path.ends_with("fail_point.rs"))
        .flat_map(|(_, text)| names(text, "fail_point!(\""))
        .collect();
    inside.sort();
    assert!(inside.len() > 30, "{inside:?}");
    assert!(inside.is_sorted_by(|a, b| a < b), "a fail point is named twice: {inside:?}");
    for name in &inside {
        assert!(list.contains(&format!("\"{name}\"")), "{name} is not in tools/torture");
    }
    for line in list.lines().filter(|line| line.contains("(\"")) {
        let name = names(line, "(\"").remove(0);
        assert!(inside.contains(&name), "{name} is in tools/torture and not in the library");
    }
}

/// Marks a function that is exported to C.
const EXPORTED: &str = "#[unsafe(no_mangle)]";

/// Returns the function of every `unsafe` in a source text, except exported names.
fn unsafe_places(text: &str) -> Vec<String> {
    let word = |line: &str, wanted: &str| -> Option<usize> {
        let mut rest = 0;
        // A dash does not end a word: 'unsafe-inline' is not the keyword.
        line.split(|c: char| !c.is_ascii_alphanumeric() && !"_-".contains(c)).find_map(|word| {
            let at = rest;
            rest += word.len() + 1;
            (word == wanted).then_some(at)
        })
    };
    let mut function = String::new();
    let mut places = Vec::new();
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    for line in lines.filter(|line| *line != EXPORTED) {
        if let Some(at) = word(line, "fn") {
            let name = line[at + 2..].trim_start();
            let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            name[..end.unwrap_or(name.len())].clone_into(&mut function);
        }
        if word(line, "unsafe").is_some() {
            places.push(function.clone());
        }
    }
    places
}

#[test]
fn only_the_c_interface_exports_names_and_they_have_its_prefix() {
    let place = root().join("tools/c/src");
    let mut names = Vec::new();
    for (path, text) in sources(&["src", "tools"]) {
        for function in text.split(EXPORTED).skip(1) {
            assert!(path.starts_with(&place), "{} exports a name", path.display());
            let (_, name) = function.split_once("extern \"C\" fn ").unwrap();
            names.push(name.split('(').next().unwrap().to_owned());
        }
    }
    names.sort();
    assert!(names.len() > 30 && names.iter().all(|name| name.starts_with("hamdex_")), "{names:?}");
    assert!(names.is_sorted_by(|a, b| a < b), "a name is exported twice: {names:?}");
}

#[test]
fn every_unsafe_is_listed_and_justified() {
    let root = root();
    let report = fs::read_to_string(root.join("tools/torture/REPORT.md")).unwrap();
    let (_, section) = report.split_once("## Unsafe").unwrap();
    let section = section.split("\n#").next().unwrap();
    let mut listed = BTreeMap::new();
    for row in section.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, file, function, count, why, ..] = cells[..] else { panic!("{row}") };
        assert!(why.len() > 20, "no reason is given: {row}");
        let place = (file.trim_matches('`').to_owned(), function.trim_matches('`').to_owned());
        listed.insert(place, count.parse::<usize>().unwrap());
    }
    let mut found = BTreeMap::new();
    for (path, text) in sources(&["src", "tools", "tests", "benches"]) {
        let file = path.strip_prefix(&root).unwrap().display().to_string();
        if file == "tests/it/architecture.rs" {
            continue;
        }
        for function in unsafe_places(&text) {
            *found.entry((file.clone(), function)).or_insert(0) += 1;
        }
    }
    assert_eq!(found, listed);
}

/// Files side by side are read together, so a folder with more of them has rooms inside.
#[test]
fn a_folder_has_at_most_seventeen_source_files() {
    let mut files: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for (path, _) in sources(&["src", "tools"]) {
        *files.entry(path.parent().unwrap().to_path_buf()).or_default() += 1;
    }
    assert!(files.len() > 20, "found only {} folders", files.len());
    for (folder, count) in files {
        assert!(count <= 17, "{} has {count} source files", folder.display());
    }
}

/// What a user needs first is at the root; everything else is in a module.
#[test]
fn the_crate_root_has_at_most_twenty_names() {
    let text = fs::read_to_string(root().join("src/lib.rs")).unwrap();
    let (root, _) = text.split_once("/// Bulk builds").unwrap();
    let mut names = Vec::new();
    for list in root.split("\npub use ").skip(1) {
        let (list, _) = list.split_once(';').unwrap();
        let (_, list) = list.split_once("::").unwrap();
        let list = list.trim_matches(['{', '}']);
        names.extend(list.split(',').map(str::trim).filter(|name| !name.is_empty()));
    }
    assert!(names.contains(&"Index") && names.contains(&"Pipeline"), "{names:?}");
    assert!(names.len() <= 20, "{} names: {names:?}", names.len());
}
