//! Secrets: an index made with one takes and finds texts with the same one only.

use std::fmt::Write;

use crate::support::Bench;

const KEY: &str = "6f1d0c9be2a8475393d4c07a51fe286b6f1d0c9be2a8475393d4c07a51fe286b\n";

const TEXT: &str = "sunny-days-are-here-again-and-rain-is-far-away";

fn bench() -> Bench {
    let bench = Bench::new();
    let mut rows = String::new();
    for (id, text) in [("sun", TEXT), ("snow", "it snowed all night upon the hills of the north")] {
        writeln!(rows, "{{\"id\":\"{id}\",\"text\":\"{text}\"}}").unwrap();
    }
    bench.file("rows.jsonl", rows).file("seed", KEY).file("other", KEY.replace('6', "7"));
    bench.ok("build idx rows.jsonl --pipeline code --secret-file seed");
    bench
}

#[test]
fn texts_are_found_with_the_secret_and_refused_without_it() {
    let bench = bench();
    let found = bench.ok(&format!("query idx --text {TEXT} --secret-file seed")).json();
    assert_eq!((found.len(), &found[0]["id"]), (1, &"sun".into()));
    let query = |more: &str| bench.run(&format!("query idx --text {TEXT} {more}"));
    query("").refused(1, &["secret", "--secret-file FILE"]);
    query("--secret-file other").refused(1, &["secret", "that the index was made with"]);
    for more in ["", "--secret-file other", "--pipeline code"] {
        let insert = bench.run(&format!("insert idx rows.jsonl {more}"));
        insert.refused(1, &["--secret-file FILE"]);
    }
    bench.ok("insert idx rows.jsonl --secret-file seed");
    assert_eq!(bench.export("idx").lines().count(), 2);
    bench.ok("build open rows.jsonl --pipeline code");
    let refused = bench.run(&format!("query open --text {TEXT} --secret-file seed"));
    refused.refused(1, &["drop --secret-file"]);
}

#[test]
fn fingerprints_need_no_secret_and_differ_by_it() {
    let bench = bench();
    let exported = bench.export("idx");
    let print = exported.lines().find(|row| row.contains("\"sun\"")).unwrap();
    let (_, print) = print.split_once("fingerprint\":\"").unwrap();
    let found = bench.ok(&format!("query idx --fingerprint {}", &print[..16])).json();
    assert_eq!(found[0]["id"], "sun");
    bench.file("prints.jsonl", &exported);
    assert_eq!(bench.ok("query idx prints.jsonl").json().len(), 2);
    bench.ok("check idx");
    bench.ok("pairs idx");
    let plain = bench.ok("fingerprint rows.jsonl --pipeline code").stdout;
    let keyed = bench.ok("fingerprint rows.jsonl --pipeline code --secret-file seed").stdout;
    let other = bench.ok("fingerprint rows.jsonl --pipeline code --secret-file other").stdout;
    assert!(plain != keyed && keyed != other && plain != other);
    assert!(keyed.contains(&print[..16]), "an index holds what fingerprint prints");
}

#[test]
fn the_secret_itself_is_nowhere_in_the_index() {
    let bench = bench();
    let needle = KEY.trim().as_bytes();
    let raw: Vec<u8> =
        (0..16).map(|at| u8::from_str_radix(&KEY[2 * at..2 * at + 2], 16).unwrap()).collect();
    for entry in std::fs::read_dir(bench.path("idx")).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap_or_default();
        for secret in [needle, &raw] {
            let held = bytes.windows(secret.len()).any(|window| window == secret);
            assert!(!held, "{} holds the secret", path.display());
        }
    }
    let stats = bench.ok("stats idx").stdout;
    assert!(stats.contains("secret=siphash24,"), "{stats}");
}

#[test]
fn files_that_hold_no_secret_are_refused_with_a_remedy() {
    let bench = bench();
    bench.file("short", "fifteen bytes..").file("zeros", [0; 64]).file("long", [7; 5000]);
    for (file, status, reason) in [
        ("short", 3, "too few"),
        ("zeros", 3, "all equal"),
        ("long", 3, "4096"),
        ("absent", 6, "absent"),
    ] {
        let refused = bench.run(&format!("fingerprint rows.jsonl --secret-file {file}"));
        refused.refused(status, &[file, reason]);
    }
    let link = bench.run("fingerprint rows.jsonl --secret-file /dev/zero");
    link.refused(3, &["4096"]);
}
