//! Pairs, clusters and evaluation, over an index and over documents.

use serde_json::json;

use crate::support::{Bench, PRINTS, stored};

/// Two copies of `a`, and `d` within one bit of `b` alone.
const MORE: &str = "\
{\"id\":\"a2\",\"fingerprint\":\"00000000000000ff\"}
{\"id\":\"d\",\"fingerprint\":\"00000000000000fc\"}
";

fn bench() -> Bench {
    let bench = Bench::new();
    bench.file("prints.jsonl", format!("{PRINTS}{MORE}"));
    bench.ok("build idx prints.jsonl");
    bench
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn pairs_of_an_index_and_of_its_documents_are_the_same() {
    let bench = bench();
    let mut wanted = vec!["a\ta2\t0", "a\tb\t1", "a2\tb\t1", "b\td\t1"];
    assert_eq!(sorted(&bench.ok("pairs idx -k 1").stdout), wanted);
    wanted[2] = "b\ta2\t1";
    wanted.sort_unstable();
    assert_eq!(sorted(&bench.ok("pairs prints.jsonl -k 1").stdout), wanted);
    bench.ok("pairs prints.jsonl -k 1 -o pairs.tsv --header");
    let file = bench.read("pairs.tsv");
    assert_eq!(file.lines().next(), Some("id_a\tid_b\tdistance"));
    assert_eq!(file.lines().count(), 5);
    let objects = bench.ok("pairs idx -k 0 --json").json();
    assert_eq!(objects, [json!({ "id_a": "a", "id_b": "a2", "distance": 0 })]);
}

#[test]
fn pairs_of_two_indexes_have_one_document_of_each() {
    let bench = bench();
    bench.file("more.jsonl", MORE);
    bench.ok("build more more.jsonl");
    let wanted = ["a\ta2\t0", "a2\ta2\t0", "b\ta2\t1", "b\td\t1", "d\td\t0"];
    assert_eq!(sorted(&bench.ok("pairs idx -k 1 --against more").stdout), wanted);
    assert_eq!(sorted(&bench.ok("pairs idx -k 1 --against more --memory 1").stdout), wanted);
    bench.run("pairs idx --against absent").refused(6, &["absent"]);
    bench.run("pairs more.jsonl --against idx").refused(2, &["build"]);
}

#[test]
fn clusters_hold_what_chains_connect() {
    let bench = bench();
    let of_index = json!({ "cluster": 1, "size": 4, "ids": ["a", "a2", "b", "d"], "diameter": 2 });
    assert_eq!(bench.ok("clusters idx -k 1").json(), [of_index]);
    let of_documents =
        json!({ "cluster": 1, "size": 4, "ids": ["a", "b", "a2", "d"], "diameter": 2 });
    assert_eq!(bench.ok("clusters prints.jsonl -k 1").json(), [of_documents]);
    bench.ok("clusters idx -k 0 -o clusters.jsonl");
    assert_eq!(
        bench.read("clusters.jsonl"),
        "{\"cluster\":1,\"size\":2,\"ids\":[\"a\",\"a2\"],\"diameter\":0}\n"
    );
}

#[test]
fn the_distance_of_the_index_is_the_default() {
    let bench = bench();
    bench.ok("build near prints.jsonl -k 0");
    assert_eq!(bench.ok("pairs near").stdout, "a\ta2\t0\n");
    assert_eq!(bench.ok("query near --fingerprint 00000000000000fc").json().len(), 1);
}

#[test]
fn evaluation_counts_found_and_labelled_pairs() {
    let bench = bench();
    bench.file(
        "labels.tsv",
        "id_a\tid_b\tsimilarity\na\tb\t0.95\nb\ta\t0.95\nb\td\t0.85\na\tc\t0.99\nx\ty\t1\n",
    );
    let rows = bench.ok("evaluate prints.jsonl --pairs labels.tsv --json -k 2").json();
    let counts = |rows: &[serde_json::Value], name: &str| -> Vec<u64> {
        rows.iter().map(|row| row[name].as_u64().unwrap()).collect()
    };
    assert_eq!(counts(&rows, "distance"), [0, 1, 2]);
    assert_eq!(counts(&rows, "found"), [1, 4, 6]);
    assert_eq!(counts(&rows, "correct"), [0, 2, 2]);
    assert_eq!(rows[1]["precision"], 0.5);
    let limits = "--min-similarity 0.9 --ignore-above 0.8";
    let rows =
        bench.ok(&format!("evaluate prints.jsonl --pairs labels.tsv {limits} --json -k 2")).json();
    assert_eq!(counts(&rows, "found"), [1, 3, 5]);
    assert_eq!(counts(&rows, "correct"), [0, 1, 1]);
    let outcome = bench.ok("evaluate prints.jsonl --pairs labels.tsv");
    assert!(
        outcome.stdout.contains("precision") && outcome.stdout.contains("F1"),
        "{}",
        outcome.stdout
    );
    assert!(outcome.stderr.contains("1 labelled pairs name ids"), "{}", outcome.stderr);
    assert_eq!(outcome.stdout.lines().count(), 18);
}

#[test]
fn labels_that_cannot_be_read_are_named_with_their_line() {
    let bench = stored();
    bench.file("labels.tsv", "a\tb\nc\n");
    bench.run("evaluate prints.jsonl --pairs labels.tsv").refused(3, &["labels.tsv", "line 2"]);
    bench
        .run("evaluate prints.jsonl --pairs labels.tsv --similarity jaccard")
        .refused(3, &["jaccard"]);
}
