//! Bad rows: told with file and line, kept in the rejects file, and never harmful to good rows.

use crate::support::{Bench, json_lines};

/// A pipeline that needs no dictionary, which takes a while to load.
const QUICK: &str = "--pipeline code --max-bad 100%";

const GOOD: &str = "{\"id\":\"good\",\"text\":\"sunny days are here again\"}\n";

/// Every kind of bad row with its reason.
fn bad_rows() -> Vec<(Vec<u8>, &'static str)> {
    let row = |text: &str| text.as_bytes().to_vec();
    vec![
        (
            row("{\"id\":\"x\",\"text\":\"sunny"),
            "broken JSON: EOF while parsing a string at column 23",
        ),
        (row("[1,2]"), "not a JSON object"),
        // As a file is filled up where a disk or a program gave out.
        (vec![0; 40], "broken JSON: expected value at column 1"),
        (b"\0forged\0{\"id\":1}".to_vec(), "broken JSON: expected value at column 1"),
        (b"{\"id\":\"x\",\"text\":\"\xff\xfe\"}".to_vec(), "invalid UTF-8 at byte 18"),
        (row("{\"id\":\"x\",\"text\":\"\"}"), "empty text"),
        (row("{\"id\":\"x\",\"text\":\" \\n \"}"), "empty text"),
        (row("{\"id\":\"x\",\"text\":\"...\"}"), "text without features"),
        (row("{\"id\":\"x\"}"), "no field \"text\" and no field \"fingerprint\""),
        (row("{\"id\":\"x\",\"text\":5}"), "field \"text\" is not a string"),
        (row("{\"id\":[],\"text\":\"a\"}"), "id is neither a string nor a number"),
        (row("{\"id\":\"\",\"text\":\"a\"}"), "id is empty"),
        (row("{\"id\":\"good\",\"text\":\"other\"}"), "duplicate id good"),
        (
            row("{\"id\":\"x\",\"fingerprint\":\"0123\"}"),
            "\"0123\" is not a 64-bit fingerprint: expected one digit for every four bits",
        ),
    ]
}

#[test]
fn every_kind_of_bad_row_is_told_with_file_and_line_and_skipped() {
    let long = format!("{{\"id\":\"{}\",\"text\":\"a\"}}", "k".repeat(1025));
    let mut cases = bad_rows();
    cases.push((long.into_bytes(), "id has 1025 bytes, allowed are 1 to 1024"));
    // What is a fault of an index's document is none of a row.
    let labels = [
        "id is",
        "id has",
        "duplicate id",
        "empty text",
        "text without",
        "no field",
        "field \"text\"",
    ];
    for (row, reason) in cases {
        let bench = Bench::new();
        bench.file(
            "rows.jsonl",
            [GOOD.as_bytes(), &row, b"\n{\"id\":\"last\",\"text\":\"rain\"}\n"].concat(),
        );
        // A build refuses a repeated id as a whole.
        let repeated = reason.starts_with("duplicate id");
        let builds = if repeated { "insert idx-b" } else { "build idx-b" };
        let bad = !labels.iter().any(|label| reason.starts_with(label));
        let others: &[&str] = if bad { &["dedup -o out", "pairs", "clusters"] } else { &[] };
        for verb in [builds, "insert idx-i"].iter().chain(others) {
            let outcome = bench.run(&format!("{verb} rows.jsonl {QUICK}"));
            assert_eq!(outcome.status, 0, "{verb}: {}", outcome.stderr);
            let told = format!("rows.jsonl:2: {reason}; skipped\n");
            assert!(outcome.stderr.contains(&told), "{verb}: {:?} in {:?}", told, outcome.stderr);
            assert!(outcome.stderr.contains("1 bad row skipped"), "{verb}: {}", outcome.stderr);
        }
        for index in ["idx-b", "idx-i"] {
            let ids: Vec<_> =
                json_lines(&bench.export(index)).iter().map(|row| row["id"].clone()).collect();
            assert_eq!(ids, ["good", "last"], "{reason}");
        }
        if !bad {
            continue;
        }
        let rejects = json_lines(&bench.read("out/rejects.jsonl"));
        assert_eq!(rejects.len(), 1);
        assert_eq!((&rejects[0]["file"], &rejects[0]["line"]), (&"rows.jsonl".into(), &2.into()));
        assert_eq!(rejects[0]["reason"], reason);
        assert_eq!(rejects[0]["row"], String::from_utf8_lossy(&row).as_ref());
    }
}

#[test]
fn strict_makes_the_first_bad_row_fatal_and_changes_nothing() {
    // A build refuses a repeated id without --strict, in other words.
    let cases = bad_rows().into_iter().filter(|(_, reason)| !reason.starts_with("duplicate id"));
    for (row, reason) in cases {
        let bench = Bench::new();
        bench.file("good.jsonl", GOOD).file("rows.jsonl", [GOOD.as_bytes(), &row, b"\n"].concat());
        let run = |verb: &str| bench.run(&format!("{verb} rows.jsonl --strict {QUICK}"));
        let told = format!("rows.jsonl:2: {reason}");
        run("build idx").refused(3, &[&told, "--strict"]);
        assert!(!bench.path("idx").exists(), "{reason}");
        bench.ok(&format!("build idx good.jsonl {QUICK}"));
        let before = bench.export("idx");
        run("build idx").refused(3, &[&told]);
        let label = reason.starts_with("id ");
        let blank = reason.contains("text") || reason.contains("field");
        if !label && !blank {
            run("dedup -o out").refused(3, &[&told]);
        }
        if !label {
            run("pairs").refused(3, &[&told]);
        }
        run("insert idx").refused(3, &[&told]);
        assert_eq!(bench.export("idx"), before, "{reason}");
        assert!(!bench.path("out/kept.jsonl").exists());
    }
}

#[test]
fn max_bad_allows_so_many_and_stops_at_the_next() {
    let bench = Bench::new();
    bench.file("rows.jsonl", format!("{{\n{GOOD}{{\n"));
    bench.ok("build idx rows.jsonl --max-bad 2");
    bench
        .run("build other rows.jsonl --max-bad 1")
        .refused(3, &["2 of 2 rows are bad", "--max-bad allows 1"]);
    assert!(!bench.path("other").exists());
}

#[test]
fn ten_bad_rows_are_told_in_full_and_all_are_kept() {
    let bench = Bench::new();
    bench.file("rows.jsonl", format!("{}{GOOD}", "{\n".repeat(15)));
    let outcome = bench.ok("fingerprint rows.jsonl --rejects bad.jsonl --max-bad 15");
    assert_eq!(outcome.stderr.matches("; skipped").count(), 10);
    assert!(
        outcome.stderr.contains("15 bad rows skipped: 15 broken JSON; see bad.jsonl"),
        "{}",
        outcome.stderr
    );
    assert_eq!(json_lines(&bench.read("bad.jsonl")).len(), 15);
    assert_eq!(outcome.json().len(), 1);
    let quiet = bench.ok("fingerprint rows.jsonl --quiet --max-bad 15");
    assert_eq!(quiet.stderr, "");
}

#[test]
fn duplicate_ids_are_told_with_their_line_and_the_first_counts() {
    let bench = Bench::new();
    bench
        .file("a.jsonl", "{\"id\":\"x\",\"fingerprint\":\"0000000000000001\"}\n")
        .file("b.jsonl", "\n{\"id\":\"x\",\"fingerprint\":\"0000000000000002\"}\n");
    let outcome = bench.ok("insert idx a.jsonl b.jsonl --max-bad 1");
    assert!(outcome.stderr.contains("b.jsonl:2: duplicate id x"), "{}", outcome.stderr);
    assert_eq!(bench.export("idx"), bench.read("a.jsonl"));
}

#[test]
fn a_raw_file_with_a_part_of_a_fingerprint_names_the_offset() {
    let bench = Bench::new();
    bench.file("a.u64", [1; 19]).file("b.u64", [2; 8]);
    let outcome = bench.ok("build idx a.u64 b.u64 --rejects bad.jsonl --max-bad 1");
    let reason = "3 bytes left, a 64-bit fingerprint has 8";
    assert!(outcome.stderr.contains(&format!("a.u64 at byte 16: {reason}")), "{}", outcome.stderr);
    let rejects = json_lines(&bench.read("bad.jsonl"));
    assert_eq!((&rejects[0]["offset"], &rejects[0]["reason"]), (&16.into(), &reason.into()));
    assert_eq!(bench.export("idx").lines().count(), 3);
    bench.run("build other a.u64 --strict").refused(3, &["a.u64 at byte 16", reason]);
}

#[test]
fn bad_files_of_a_directory_are_told_by_their_path() {
    let bench = Bench::new();
    bench.file("docs/a.txt", "...").file("docs/b.txt", "").file("docs/c.txt", "sunny days");
    let outcome = bench.ok("build idx docs");
    assert!(outcome.stderr.contains("docs/a.txt: text without features"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("docs/b.txt: empty text"), "{}", outcome.stderr);
    assert_eq!(bench.export("idx").lines().count(), 1);
}
