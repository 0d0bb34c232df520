//! Runs the examples as `cargo run --example` does; each asserts its result.
//!
//! They are modules of this binary, so that the storage engine is not linked again for each.

#[path = "../examples/crawler.rs"]
mod crawler;
#[cfg(feature = "rocksdb-interop")]
#[path = "../examples/crawler_store.rs"]
mod crawler_store;
#[path = "../examples/images.rs"]
mod images;
#[path = "../examples/training_data.rs"]
mod training_data;
#[path = "../examples/two_corpora.rs"]
mod two_corpora;

use std::time::{Duration, Instant};

use crate::architecture::root;

#[test]
fn every_example_runs() {
    let begun = Instant::now();
    crawler::main().unwrap();
    #[cfg(feature = "rocksdb-interop")]
    crawler_store::main().unwrap();
    images::main().unwrap();
    training_data::main().unwrap();
    two_corpora::main().unwrap();
    assert!(begun.elapsed() < Duration::from_mins(1), "{:?}", begun.elapsed());
}

#[test]
fn every_example_is_declared_and_run_here() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let own = std::fs::read_to_string(root().join("tests/it/examples.rs")).unwrap();
    let mut names: Vec<String> = std::fs::read_dir(root().join("tests/examples"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert!(names.len() >= 4, "{names:?}");
    for name in names {
        assert!(manifest.contains(&format!("path = \"tests/examples/{name}\"")), "{name}");
        assert!(own.contains(&format!("../examples/{name}")), "{name} is not run");
    }
}
