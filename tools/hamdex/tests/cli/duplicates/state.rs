//! `dedup --state`: what earlier runs kept is known, and a kill at any moment changes nothing.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Bench, json_lines};

/// A text of thirty words by a number; neighbours by tens are near-duplicates.
fn text(number: u64) -> String {
    let word = |at: u32| {
        format!("word{}", (number / 10).wrapping_mul(0x9e37_79b9).rotate_left(at * 3) % 9973)
    };
    let words: Vec<String> = (0..30).map(word).collect();
    format!("{} {}", words.join(" "), number % 10)
}

/// Rows of stories that come again and again, in no order.
fn rows(file: &str, seed: u64, count: u64) -> String {
    (0..count).fold(String::new(), |mut rows, n| {
        let number = (seed + n).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44;
        let row = json!({ "id": format!("{file}{n}"), "text": text(number % 1000) });
        writeln!(rows, "{row}").unwrap();
        rows
    })
}

/// A bench with the files of some days.
fn days(count: u64, rows_each: u64) -> Bench {
    let bench = Bench::new();
    for day in 0..count {
        bench.file(
            &format!("day{day}.jsonl"),
            rows(&format!("d{day}-"), day * 1_000_003, rows_each),
        );
    }
    bench
}

fn inputs(days: std::ops::Range<u64>) -> String {
    days.map(|day| format!("day{day}.jsonl")).collect::<Vec<_>>().join(" ")
}

/// Settings that do not depend on the texts.
const FIXED: &str = "--pipeline page -k 16 --verify edit:0.8";

fn kept(bench: &Bench, out: &str, days: std::ops::Range<u64>) -> String {
    days.map(|day| bench.read(&format!("{out}/day{day}.jsonl/kept.jsonl"))).collect()
}

fn duplicates(bench: &Bench, out: &str, days: std::ops::Range<u64>) -> Vec<Value> {
    let of_day = |day| json_lines(&bench.read(&format!("{out}/day{day}.jsonl/duplicates.jsonl")));
    days.flat_map(of_day).collect()
}

#[test]
fn shards_give_what_one_run_over_all_gives_row_for_row() {
    let bench = days(4, 150);
    bench.ok(&format!("dedup {} -o whole {FIXED}", inputs(0..4)));
    let whole = bench.read("whole/kept.jsonl");
    let removed = json_lines(&bench.read("whole/duplicates.jsonl"));
    assert!(removed.len() > 100 && whole.lines().count() > 30, "{}", removed.len());
    bench.ok(&format!("dedup {} -o out --state seen {FIXED}", inputs(0..2)));
    let second = bench.ok(&format!("dedup {} -o out --state seen --json", inputs(0..4))).json();
    assert_eq!(kept(&bench, "out", 0..4), whole);
    let pair = |row: &Value| {
        ["id", "at", "kept_id", "kept_at", "distance", "similarity"].map(|name| row[name].clone())
    };
    let expected: Vec<_> = removed.iter().map(pair).collect();
    let found: Vec<_> = duplicates(&bench, "out", 0..4).iter().map(pair).collect();
    assert_eq!(found, expected);
    let run = &second[0];
    assert_eq!((&run["skipped"], &run["shards"][0]["input"]), (&json!(2), &json!("day2.jsonl")));
    assert_eq!(run["documents"], 300);
    let report: Value = serde_json::from_str(&bench.read("out/day3.jsonl/report.json")).unwrap();
    assert_eq!(report["settings"]["state"], "seen");
    assert!(report["removed_against_index"].as_u64().unwrap() > 0);
    bench.ok("check seen --deep");
    let stored = bench.export("seen").lines().count();
    assert_eq!(stored, whole.lines().count());
}

#[test]
fn the_same_command_again_changes_nothing_and_new_files_are_added() {
    let bench = days(3, 60);
    let call = format!("dedup {} -o out --state seen {FIXED}", inputs(0..2));
    bench.ok(&call);
    let before = tree(&bench, "out");
    let again = bench.ok(&format!("{call} --json")).json();
    assert_eq!((&again[0]["skipped"], &again[0]["documents"]), (&json!(2), &json!(0)));
    assert_eq!(tree(&bench, "out"), before);
    // Whoever has taken the results away has them.
    std::fs::rename(bench.path("out"), bench.path("taken")).unwrap();
    bench.ok(&format!("dedup {} -o out --state seen", inputs(0..3)));
    assert_eq!(tree(&bench, "out").keys().filter(|name| name.ends_with("kept.jsonl")).count(), 1);
    assert_eq!(tree(&bench, "taken"), before);
}

#[test]
fn what_is_in_the_way_or_has_changed_is_refused_and_nothing_is_lost() {
    let bench = days(2, 40);
    bench.file("out/day1.jsonl/mine.txt", "mine");
    let call = format!("dedup {} -o out --state seen {FIXED}", inputs(0..2));
    bench.run(&call).refused(1, &["out/day1.jsonl", "exists", "move it away"]);
    assert!(!bench.path("out/day0.jsonl").exists(), "nothing was begun");
    assert_eq!(bench.read("out/day1.jsonl/mine.txt"), "mine");
    std::fs::rename(bench.path("out/day1.jsonl"), bench.path("aside")).unwrap();
    bench.ok(&call);
    bench.file("day0.jsonl", rows("other", 77, 40));
    bench.run(&call).refused(1, &["out/day0.jsonl", "before it changed"]);
    bench.ok("dedup day0.jsonl -o later --state seen");
    assert!(bench.path("later/day0.jsonl/kept.jsonl").exists());
}

#[test]
fn an_input_that_cannot_be_used_is_left_out_until_it_can() {
    let bench = days(2, 40);
    bench.file("day00.jsonl", "{broken\n{broken\n");
    let call = format!("dedup day0.jsonl day00.jsonl day1.jsonl -o out --state seen {FIXED}");
    let left = bench.run(&call);
    assert_eq!(left.status, 3, "{left:?}");
    for words in ["day00.jsonl: none of 2 rows", "1 of 3 inputs skipped"] {
        assert!(left.stderr.contains(words), "{left:?}");
    }
    assert!(!bench.path("out/day00.jsonl").exists());
    let others = kept(&bench, "out", 0..2);
    assert!(!others.is_empty());
    bench.file("day00.jsonl", format!("{}{{broken\n", rows("new", 99, 40)));
    let corrected = bench.ok(&format!("{call} --json"));
    let run = &corrected.json()[0];
    assert_eq!((&run["skipped"], &run["left_out"]), (&json!(2), &json!([])));
    assert!(corrected.stderr.contains("see out/day00.jsonl/rejects.jsonl"), "{}", corrected.stderr);
    assert_eq!(bench.read("out/day00.jsonl/rejects.jsonl").lines().count(), 1);
    assert_eq!(kept(&bench, "out", 0..2), others);
}

#[test]
fn other_settings_are_refused_by_name() {
    let bench = days(2, 40);
    bench.ok(&format!("dedup day0.jsonl -o out --state seen {FIXED}"));
    for (option, word) in [
        ("-k 12", "distance"),
        ("--verify edit:0.9", "verification"),
        ("--linkage chain", "linkage"),
        ("--pipeline post", "pipeline"),
        ("--bits 32", "64-bit"),
    ] {
        let refused = bench.run(&format!("dedup day1.jsonl -o out --state seen {option}"));
        refused.refused(1, &[word]);
        assert!(!bench.path("out/day1.jsonl").exists(), "{option}");
    }
    let usage = |call: &str, words: &[&str]| bench.run(call).refused(2, words);
    usage("dedup day0.jsonl -o new --state new --verify contains:0.8", &["contains", "longest"]);
    usage("dedup day0.jsonl -o - --state new", &["give a directory"]);
    usage("dedup - -o out --state new", &["read only once"]);
    usage("dedup day0.jsonl -o out --state new --overwrite", &["--overwrite"]);
    usage("dedup day0.jsonl -o seen --state new", &["is an index"]);
    bench.ok("build plain day0.jsonl");
    bench.run("dedup day0.jsonl -o new --state plain").refused(1, &["plain", "--against"]);
    bench.file("folder/file", "x");
    assert_ne!(bench.run("dedup day0.jsonl -o new --state folder").status, 0);
    assert_eq!(bench.read("folder/file"), "x");
}

#[test]
fn a_state_takes_fingerprints_and_tables_too() {
    let bench = Bench::new();
    let raw =
        |numbers: &[u64]| -> Vec<u8> { numbers.iter().flat_map(|n| n.to_le_bytes()).collect() };
    bench.file("a.u64", raw(&[1, 0xff00, 3])).file("b.u64", raw(&[0xff01, u64::MAX]));
    bench.ok("dedup a.u64 -o out --state seen -k 1");
    bench.ok("dedup a.u64 b.u64 -o out --state seen");
    assert_eq!(bench.read("out/b.jsonl/kept.jsonl").lines().count(), 1);
    let known = json_lines(&bench.read("out/b.jsonl/duplicates.jsonl"));
    assert_eq!((&known[0]["kept_id"], &known[0]["distance"]), (&json!(1), &json!(1)));
    bench.file("c.csv", "id,text\n1,sunny days are here again\n2,sunny days are here again\n");
    bench.ok("dedup c.csv -o cells --state rows --format csv");
    assert_eq!(bench.read("cells/c.csv/kept.csv"), "id,text\n1,sunny days are here again\n");
}

/// Every file below a directory, with what it holds but for times.
fn tree(bench: &Bench, directory: &str) -> BTreeMap<String, String> {
    fn walk(root: &Path, path: &Path, files: &mut BTreeMap<String, String>) {
        for entry in std::fs::read_dir(path).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(root, &path, files);
                continue;
            }
            let name = path.strip_prefix(root).unwrap().display().to_string();
            let mut content = std::fs::read_to_string(&path).unwrap();
            if name.ends_with("report.json") {
                let mut report: Value = serde_json::from_str(&content).unwrap();
                report["seconds"] = json!(0);
                report["advice"] = json!(null);
                content = report.to_string();
            }
            files.insert(name, content);
        }
    }
    let (mut files, root) = (BTreeMap::new(), bench.path(directory));
    walk(&root, &root, &mut files);
    files
}

/// Kills a run again and again, at moments spread over its length, and compares with one that
/// nobody disturbed.
fn kills(count: u32, rows_each: u64) {
    let undisturbed = days(4, rows_each);
    let call = format!("dedup {} -o out --state seen --quiet", inputs(0..4));
    let begun = Instant::now();
    undisturbed.ok(&call);
    let whole = begun.elapsed();
    let (expected, stored) = (tree(&undisturbed, "out"), undisturbed.export("seen"));
    let (mut killed, mut lives) = (0, 0_u32);
    while killed < count {
        let bench = days(4, rows_each);
        lives += 1;
        // Some lives are ended early and often, some late.
        let wait = whole.mul_f64(f64::from(lives * 7 % 11 + 1) / 9.0) / (1 + lives % 3);
        loop {
            let mut child =
                bench.command(&call).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            let end = Instant::now() + wait + Duration::from_micros(u64::from(killed % 37) * 131);
            while Instant::now() < end && child.try_wait().unwrap().is_none() {
                std::thread::sleep(Duration::from_micros(200));
            }
            if let Some(status) = child.try_wait().unwrap() {
                assert!(status.success(), "life {lives}: {status}");
                break;
            }
            child.kill().unwrap();
            child.wait().unwrap();
            killed += 1;
            if killed % 5 == 4 {
                break;
            }
        }
        bench.ok(&call);
        assert_eq!(tree(&bench, "out"), expected, "life {lives}, {killed} kills, wait {wait:?}");
        assert_eq!(bench.export("seen"), stored, "life {lives}, {killed} kills");
        let names = std::fs::read_dir(bench.path("out")).unwrap().count();
        assert_eq!(names, 4, "nothing but results, life {lives}");
    }
}

#[test]
fn a_run_that_is_killed_again_and_again_ends_as_one_that_was_not() {
    kills(20, 150);
}

#[test]
#[ignore = "takes minutes"]
fn two_hundred_kills_end_as_none() {
    kills(200, 400);
}
