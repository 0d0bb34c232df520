//! Calls: what people type and what other verbs write is understood.

use serde_json::json;

use crate::support::{Bench, json_lines, stored};

/// Rows with the number 7, the text of the same digit, and another text.
const SEVENS: &str = "\
{\"id\":7,\"fingerprint\":\"0000000000000001\"}
{\"id\":\"7\",\"fingerprint\":\"0000000000000002\"}
{\"id\":\"a\\tb\",\"fingerprint\":\"0000000000000004\"}
";

fn sevens() -> Bench {
    let bench = Bench::new();
    bench.file("rows.jsonl", SEVENS);
    bench.ok("build idx rows.jsonl");
    bench
}

#[test]
fn a_line_of_json_names_exactly_one_id_to_remove() {
    let bench = sevens();
    bench.file("numbers.jsonl", "{\"id\":7}\n{\"id\":7}\n{\"id\":8}\n{\"id\":null}\n");
    let removed = bench.ok("remove idx --ids numbers.jsonl --json").json();
    assert_eq!(removed, [json!({ "removed": 1, "not_found": 3 })]);
    bench.file("texts.jsonl", "{\"kept_id\":\"x\",\"id\":\"a\\tb\",\"distance\":3}\n");
    assert_eq!(bench.ok("remove idx --ids texts.jsonl --json").json()[0]["removed"], 1);
    assert_eq!(json_lines(&bench.export("idx"))[0]["id"], "7");
}

#[test]
fn the_duplicates_of_a_deduplication_can_be_removed() {
    let bench = Bench::new();
    let row = |id: &str| format!("{{\"id\":\"{id}\",\"text\":\"sunny days are here again\"}}\n");
    bench.file("rows.jsonl", row("a") + &row("b") + &row("c"));
    bench.ok("build idx rows.jsonl --pipeline code -k 3");
    bench.ok("dedup rows.jsonl -o out --pipeline code -k 3");
    let removed = bench.ok("remove idx --ids out/duplicates.jsonl --json").json();
    assert_eq!(removed, [json!({ "removed": 2, "not_found": 0 })]);
    assert_eq!(json_lines(&bench.export("idx"))[0]["id"], "a");
}

#[test]
fn a_repeated_line_of_digits_does_not_fall_to_the_number() {
    let bench = sevens();
    let removed = bench.feed("remove idx --ids - --json", b"7\n7\n").json();
    assert_eq!(removed, [json!({ "removed": 1, "not_found": 1 })]);
    assert_eq!(json_lines(&bench.export("idx"))[0]["id"], 7);
    // A number that is removed by its digits is counted as one.
    let removed = bench.ok("remove idx --id 7 --json").json();
    assert_eq!(removed, [json!({ "removed": 1, "by_number": 1, "not_found": 0 })]);
}

#[test]
fn fingerprints_may_begin_with_0x() {
    let bench = stored();
    let plain = bench.ok("query idx --fingerprint 00000000000000fc --json").json();
    let prefixed = bench.ok("query idx --fingerprint 0x00000000000000fc --json").json();
    let found =
        |rows: &[serde_json::Value]| rows.iter().map(|row| row["id"].clone()).collect::<Vec<_>>();
    assert_eq!(found(&plain), found(&prefixed));
    assert_eq!(plain.len(), 2);
    bench.ok("explain idx --fingerprint 0X00000000000000fc");
}

#[test]
fn a_search_for_a_text_can_be_explained() {
    let bench = Bench::new();
    bench.file("rows.jsonl", "{\"id\":\"t\",\"text\":\"sunny days\"}\n");
    bench.ok("build idx rows.jsonl --pipeline code -k 3");
    let mut command = bench.command("explain idx --json --text");
    let output = command.arg("sunny days").output().unwrap();
    let account = &json_lines(&String::from_utf8(output.stdout).unwrap())[0];
    assert_eq!(account["matches"][0]["id"], "t", "{account}");
    bench.run("explain idx").refused(2, &["--fingerprint"]);
    bench.run("explain idx --fingerprint 00 --text x").refused(2, &["--text"]);
    bench.run("explain idx --text ...").refused(2, &["no features"]);
    stored().run("explain idx --text x").refused(1, &["fingerprints only"]);
}

#[test]
fn counts_may_have_units_exponents_and_underscores() {
    let bench = Bench::new();
    let plain = bench.ok("plan --count 1000000 --json").stdout;
    for count in ["1e6", "1M", "1_000_000"] {
        assert_eq!(bench.ok(&format!("plan --count {count} --json")).stdout, plain, "{count}");
    }
    bench.run("plan --count 1MB").refused(2, &["1MB", "1e6"]);
}

#[test]
fn backups_say_what_was_verified_and_can_be_listed_alone() {
    let bench = stored();
    let line = |call: &str| {
        let table = bench.ok(call).stdout;
        table.lines().find_map(|line| line.strip_prefix("verified")).unwrap().trim().to_owned()
    };
    assert_eq!(line("backup idx backups"), "no");
    assert!(line("backup idx backups --verify").contains(" files, "));
    assert!(line("restore backups --verify").contains(" files, "));
    let both = bench.ok("backup idx backups --list --json").stdout;
    assert_eq!(bench.ok("backup backups --list --json").stdout, both);
    assert_eq!(both.lines().count(), 2);
    bench.run("backup backups").refused(2, &["<DIR>"]);
}
