//! Builds: what belongs to another index stays, other inputs are refused, repeated ids are named.

use std::fmt::Write;
use std::path::Path;

use hamdex::{BuildOptions, Builder, IndexOptions};
use serde_json::json;

use crate::support::{Bench, PRINTS, json_lines, stored};

fn rows(count: u64) -> String {
    (0..count).fold(String::new(), |mut rows, n| {
        let fingerprint = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        writeln!(rows, "{{\"id\":{n},\"fingerprint\":\"{fingerprint:016x}\"}}").unwrap();
        rows
    })
}

/// Leaves a build unfinished as a kill would, after some rows.
fn unfinished(bench: &Bench, index: &str, inputs: &str, build: BuildOptions) {
    let build = build.memory(16 << 20).inputs(inputs);
    let mut builder =
        Builder::<u64>::create(bench.path(index), &IndexOptions::new(), &build).unwrap();
    for row in 0..600_000_u64 {
        builder.push(format!("row {row:032}").as_bytes(), row, row).unwrap();
    }
}

fn exists(path: &Path) -> bool {
    path.exists()
}

#[test]
fn resume_refuses_other_inputs_and_takes_the_same() {
    let bench = Bench::new();
    bench.file("a.jsonl", rows(100)).file("b.jsonl", rows(200));
    unfinished(&bench, "idx", "something else", BuildOptions::new());
    for inputs in ["a.jsonl", "a.jsonl b.jsonl"] {
        let call = format!("build idx {inputs} --resume");
        bench.run(&call).refused(1, &["inputs", "something else", "a.jsonl"]);
    }
    // Nothing was touched: the build is still there.
    bench.run("stats idx").refused(1, &["--resume"]);
    bench.ok("build idx --abandon");
    bench.ok("build idx a.jsonl");
}

#[test]
fn inputs_are_told_apart_by_name_size_order_and_fields() {
    let bench = Bench::new();
    bench.file("a.jsonl", rows(3)).file("b.jsonl", rows(3));
    // The refusal names both sides, so that the second one can be given to a build.
    let told = |call: &str| {
        unfinished(&bench, "idx", "something else", BuildOptions::new());
        let outcome = bench.run(&format!("build idx {call} --resume"));
        assert_eq!(outcome.status, 1, "{outcome:?}");
        bench.ok("build idx --abandon");
        let (_, wanted) = outcome.stderr.split_once("asked with \"").unwrap();
        wanted.split_once('"').unwrap().0.to_owned()
    };
    let calls = ["a.jsonl b.jsonl", "b.jsonl a.jsonl", "a.jsonl", "a.jsonl --id-field no"];
    let mut all: Vec<_> = calls.iter().map(|call| told(call)).collect();
    assert_eq!(told("./a.jsonl"), told("./a.jsonl"));
    let digest = |told: &str| told.split_once("digest ").unwrap().1.to_owned();
    assert_eq!(digest(&told("./a.jsonl")), digest(&all[2]), "the same file by another name");
    bench.file("a.jsonl", rows(4));
    all.push(told("a.jsonl"));
    let mut distinct: Vec<_> = all.iter().map(|told| digest(told)).collect();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), all.len(), "{all:?}");
    // A pipe is refused where the build knows its inputs.
    unfinished(&bench, "idx", "something else", BuildOptions::new());
    bench.feed("build idx - --resume", PRINTS.as_bytes()).refused(1, &["pipe"]);
}

#[test]
fn resume_of_a_finished_build_builds_nothing_again() {
    let bench = stored();
    bench.run("build idx prints.jsonl --resume").refused(1, &["no unfinished bulk build"]);
    assert_eq!(bench.export("idx"), PRINTS);
    // Killed before it had begun, it begins.
    bench.ok("build fresh prints.jsonl --resume");
    assert_eq!(bench.export("fresh"), PRINTS);
}

#[test]
fn abandoning_a_copy_leaves_the_originals_files_and_those_of_strangers() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("tmp")).unwrap();
    unfinished(&bench, "idx", "x", BuildOptions::new().tmp(bench.path("tmp")));
    let status = std::process::Command::new("cp")
        .args(["-r", "idx", "copy"])
        .current_dir(bench.path(""))
        .status();
    assert!(status.unwrap().success());
    bench.file("a.jsonl", PRINTS);
    let spills = std::fs::read_dir(bench.path("tmp")).unwrap().next().unwrap().unwrap().path();
    let outcome = bench.ok("build copy --abandon");
    assert!(outcome.stderr.contains(spills.to_str().unwrap()), "{}", outcome.stderr);
    assert!(exists(&spills.join("documents-0000.run")));
    bench.ok("build copy a.jsonl");
    let resumed = Builder::<u64>::resume(
        bench.path("idx"),
        &BuildOptions::new().memory(16 << 20).tmp(bench.path("tmp")),
    );
    assert!(resumed.unwrap().resume_after().is_some());
    bench.ok("build idx --abandon");
    assert!(!exists(&spills));
}

#[test]
fn repeated_ids_are_refused_with_both_places_and_nothing_stays() {
    let bench = Bench::new();
    bench
        .file("a.jsonl", "{\"id\":\"x\",\"fingerprint\":\"0000000000000001\"}\n")
        .file("b.jsonl", "\n{\"id\":\"x\",\"fingerprint\":\"0000000000000002\"}\n");
    let refused = bench.run("build idx a.jsonl b.jsonl");
    assert!([1, 3].contains(&refused.status), "{refused:?}");
    for word in ["b.jsonl:2", "a.jsonl:1", "--on-repeat"] {
        assert!(refused.stderr.contains(word), "{}", refused.stderr);
    }
    assert!(!exists(&bench.path("idx")), "nothing stays of a new index");
    std::fs::create_dir(bench.path("empty")).unwrap();
    assert_ne!(bench.run("build empty a.jsonl b.jsonl").status, 0);
    assert_eq!(std::fs::read_dir(bench.path("empty")).unwrap().count(), 0);
    // An index that was there is as before.
    bench.file("prints.jsonl", PRINTS);
    bench.ok("build old prints.jsonl");
    assert_ne!(bench.run("build old a.jsonl b.jsonl").status, 0);
    assert_eq!(bench.export("old"), PRINTS);
    bench.ok("check old --deep");
}

#[test]
fn a_choice_among_repeated_ids_is_kept_and_counted() {
    let bench = Bench::new();
    bench
        .file("a.jsonl", "{\"id\":\"x\",\"fingerprint\":\"0000000000000001\"}\n")
        .file("b.jsonl", "{\"id\":\"x\",\"fingerprint\":\"0000000000000002\"}\n");
    for (choice, input) in [("first", "a.jsonl"), ("last", "b.jsonl")] {
        let call = format!("build {choice} a.jsonl b.jsonl --on-repeat {choice} --json");
        let summary = &bench.ok(&call).json()[0];
        assert_eq!((&summary["repeated"], &summary["rejects"]), (&json!(1), &json!(0)));
        assert_eq!(bench.export(choice), bench.read(input));
    }
}

#[test]
fn inserts_of_the_same_day_again_change_nothing_and_say_so() {
    let bench = stored();
    let known = "{\"id\":\"c\",\"fingerprint\":\"ffffffff00000001\"}\n";
    bench.file("known.jsonl", [PRINTS, known].concat()).file("one.jsonl", known);
    let again = &bench.ok("insert idx prints.jsonl --json").json()[0];
    let counts = |summary: &serde_json::Value| {
        ["inserted", "replaced", "unchanged"].map(|name| summary[name].as_u64().unwrap())
    };
    assert_eq!(counts(again), [0, 0, 3]);
    let outcome = bench.ok("insert idx prints.jsonl --if-new -k 0");
    assert!(
        outcome.stderr.contains("inserted 0, replaced 0, unchanged 3, refused 0"),
        "{outcome:?}"
    );
    assert_eq!(counts(&bench.ok("insert idx one.jsonl --json").json()[0]), [0, 1, 0]);
    assert_eq!(json_lines(&bench.export("idx")).len(), 3);
}
