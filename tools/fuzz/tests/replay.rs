//! What fuzzing found worth keeping is fed to the same targets again.
#![allow(clippy::unwrap_used)] // a test that fails may panic

use std::path::PathBuf;

fn replay(name: &str, target: fn(&[u8])) {
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap());
    let folder = root.join("corpus").join(name);
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        target(&std::fs::read(&path).unwrap());
        files += 1;
    }
    assert!(files > 3, "{files} files of {name}");
    target(b"");
}

#[test]
fn the_corpus_of_plans_holds() {
    replay("plan", hamdex_fuzz::plan);
}

#[test]
fn the_corpus_of_texts_holds() {
    replay("text", hamdex_fuzz::text);
}

#[test]
fn the_corpus_of_operations_holds() {
    replay("operations", hamdex_fuzz::operations);
}
