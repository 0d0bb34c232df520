//! Builds: what belongs to another index stays, other inputs are refused, repeated ids are named,
//! and sorted files of many machines become an index.

use std::fmt::Write;
use std::path::Path;

use hamdex::IndexOptions;
use hamdex::build::shards::{Layout, Manifest, ShardWriter};
use hamdex::build::{BuildOptions, Builder};
use hamdex::plan::Plan;
use serde_json::json;

use crate::support::{Bench, EXPORTED, PRINTS, json_lines, stored};

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
        let (_, wanted) = outcome.stderr.split_once(", but \"").unwrap();
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

/// Writes the rows of [`PRINTS`] as two tasks of a cluster would, to the directory `shards`.
fn shards() -> Bench {
    let bench = Bench::new();
    let directory = bench.path("shards");
    std::fs::create_dir(&directory).unwrap();
    let layout = Layout::new(Plan::named("4", 64).unwrap(), 3, "").unwrap();
    let documents = [("a", 0xff_u64), ("b", 0xfe), ("c", 0xffff_ffff_0000_0000)];
    let mut rows = Vec::new();
    for (key, fingerprint) in documents {
        let row = |family, key: &[u8], print| rows.push((family, key.to_vec(), print));
        layout.rows(key.as_bytes(), fingerprint, row).unwrap();
    }
    rows.sort();
    let mut written = Vec::new();
    for (part, rows) in rows.chunks(rows.len() / 2).enumerate() {
        let stem = format!("part-{part}");
        let mut writer = ShardWriter::<u64>::new(&directory, &stem, &layout).unwrap();
        for (family, key, fingerprint) in rows {
            writer.push(*family, key, *fingerprint).unwrap();
        }
        written.extend(writer.finish().unwrap());
    }
    Manifest::new(&layout, written).unwrap().write(&directory).unwrap();
    bench
}

#[test]
fn shards_become_the_index_that_a_build_makes() {
    let bench = shards();
    let summary = &bench.ok("build idx --from-shards shards --json").json()[0];
    assert_eq!((&summary["documents"], &summary["distinct"]), (&json!(3), &json!(3)));
    assert_eq!(bench.export("idx"), EXPORTED);
    bench.ok("check idx --deep");
    bench.file("prints.jsonl", PRINTS);
    bench.ok("build other prints.jsonl");
    let query = |index: &str| bench.ok(&format!("query {index} --fingerprint 00000000000000ff"));
    assert_eq!(query("idx").stdout, query("other").stdout);
    assert_eq!(bench.ok("stats idx --json").json()[0]["plan"], "4");
}

#[test]
fn shards_that_are_not_whole_are_refused_with_the_remedy() {
    let bench = shards();
    bench
        .run("build idx --from-shards nowhere")
        .refused(6, &["nowhere/manifest", "check the path"]);
    bench.run("build idx prints.jsonl --from-shards shards").refused(2, &["--from-shards"]);
    bench.run("build idx --from-shards shards -k 5").refused(2, &["--from-shards"]);
    bench.file("shards/part-0-000.sst", "no table file");
    bench.run("build idx --from-shards shards").refused(4, &["part-0-000.sst", "write the shards"]);
    assert!(!bench.path("idx").exists());
    bench.file("shards/manifest", "nothing");
    bench.run("build idx --from-shards shards").refused(4, &["manifest", "write the shards"]);
}
