//! Exports: a header and rows from which an equal index is built.

use serde_json::Value;

use crate::support::{Bench, json_lines, stored};

const TEXTS: &str = "\
{\"id\":\"a\",\"text\":\"the quick brown fox jumps over the lazy dog in the old garden today\"}
{\"id\":\"b\",\"text\":\"the quick brown fox jumps over a lazy dog in the old garden today\"}
{\"id\":\"c\",\"text\":\"nothing of this has to do with animals or with any garden at all\"}
";

fn stats(bench: &Bench, index: &str) -> Value {
    let mut stats = bench.ok(&format!("stats {index} --json")).json().remove(0);
    for changing in ["bytes", "bytes_docs", "bytes_postings", "bytes_tables", "tables"] {
        stats.as_object_mut().unwrap().remove(changing);
    }
    stats
}

/// A bench with an index of texts that has everything an index can have.
fn everything() -> Bench {
    let bench = Bench::new();
    bench
        .file("texts.jsonl", TEXTS)
        .file("stop.txt", "the\nof\n")
        .file("weights.tsv", "fox\t3\ngarden\t2\n");
    let tables = "--segment words --stop-words stop.txt --weights weights.tsv";
    bench.ok(&format!("build idx texts.jsonl {tables} -k 8 --plan 10 --keep-features"));
    bench
}

#[test]
fn a_build_of_an_export_is_an_equal_index() {
    let bench = everything();
    let export = bench.ok("export idx").stdout;
    bench.file("idx.jsonl", &export);
    bench.ok("build again idx.jsonl");
    assert_eq!(bench.ok("export again").stdout, export);
    assert_eq!(stats(&bench, "again"), stats(&bench, "idx"));
    let header = &json_lines(&export)[0];
    assert_eq!((&header["distance"], &header["keeps_features"]), (&8.into(), &true.into()));
    assert_eq!(header["resources"].as_object().unwrap().len(), 2);
    let rows = json_lines(&bench.export("again"));
    assert!(rows.iter().all(|row| row["hamdex_features"].is_string()), "{rows:?}");
    bench.file("query.txt", "a quick brown fox jumps over the lazy dog in the old garden today");
    let query = |index: &str| {
        bench.ok(&format!("query {index} query.txt -k 16 --verify jaccard:0.5 --json")).stdout
    };
    assert_eq!(query("again"), query("idx"));
    assert!(query("again").contains("\"a\""), "{}", query("again"));
    bench.ok("check again --deep");
}

#[test]
fn an_export_goes_through_a_pipe() {
    let bench = everything();
    let export = bench.ok("export idx").stdout;
    let built = bench.feed("build piped -", export.as_bytes());
    assert_eq!(built.status, 0, "{built:?}");
    assert_eq!(bench.ok("export piped").stdout, export);
}

#[test]
fn options_override_what_an_export_says() {
    let bench = everything();
    bench.ok("export idx -o idx.jsonl");
    bench.ok("build other idx.jsonl -k 5 --plan 4");
    let header = &json_lines(&bench.ok("export other").stdout)[0];
    assert_eq!((&header["distance"], &header["plan"]), (&5.into(), &stats_plan(&bench)));
}

/// The plan "4" in its own words.
fn stats_plan(bench: &Bench) -> Value {
    bench.file("none.jsonl", "{\"id\":1,\"fingerprint\":\"0000000000000001\"}\n");
    bench.ok("build plain none.jsonl --plan 4 -k 5");
    stats(bench, "plain")["plan"].clone()
}

#[test]
fn other_verbs_skip_the_header() {
    let bench = stored();
    bench.ok("export idx -o idx.jsonl");
    for call in ["pairs idx.jsonl -k 1", "insert idx idx.jsonl", "query idx idx.jsonl -k 0"] {
        let outcome = bench.ok(&format!("{call} --strict"));
        assert!(!outcome.stderr.contains("bad row"), "{call}: {outcome:?}");
    }
    let pairs = bench.ok("pairs idx.jsonl -k 1 --json").stdout;
    assert_eq!(pairs, bench.ok("pairs prints.jsonl -k 1 --json").stdout);
}

#[test]
fn fingerprints_of_another_pipeline_are_refused() {
    let bench = everything();
    bench.ok("build other texts.jsonl --pipeline code");
    bench.ok("export idx -o idx.jsonl");
    for verb in ["build", "insert"] {
        bench.run(&format!("{verb} other idx.jsonl")).refused(1, &["pipeline"]);
    }
    bench.run("insert new idx.jsonl").refused(2, &["hamdex build"]);
}

#[test]
fn a_secret_is_not_exported_and_asked_for_again() {
    let bench = Bench::new();
    bench.file("texts.jsonl", TEXTS).file("seed", "6f1d0c9be2a8475393d4c07a51fe286b");
    bench.ok("build idx texts.jsonl --pipeline page --secret-file seed");
    let export = bench.ok("export idx").stdout;
    assert!(!export.contains("6f1d0c9b"), "{export}");
    bench.file("idx.jsonl", &export);
    bench.run("build again idx.jsonl").refused(1, &["secret", "--secret-file"]);
    bench.ok("build again idx.jsonl --secret-file seed");
    assert_eq!(bench.ok("export again").stdout, export);
}
