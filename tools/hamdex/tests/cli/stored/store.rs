//! The verbs around a stored index: build, insert, query, remove, export and upkeep.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{Bench, EXPORTED, PRINTS, json_lines, outcome, stored};

#[test]
fn build_sums_up_for_people_and_programs() {
    let bench = Bench::new();
    bench.file("prints.jsonl", PRINTS);
    let table = bench.ok("build idx prints.jsonl").stdout;
    for name in ["documents", "distinct", "bytes", "seconds", "rate"] {
        assert!(table.contains(name), "{table}");
    }
    let summary = &bench.ok("build again prints.jsonl --json").json()[0];
    assert_eq!((&summary["documents"], &summary["distinct"]), (&json!(3), &json!(3)));
    assert!(
        ["bytes", "seconds", "rate"].iter().all(|name| summary[*name].is_number()),
        "{summary}"
    );
}

#[test]
fn building_into_an_index_merges_and_replaces() {
    let bench = stored();
    let more = "{\"id\":\"a\",\"fingerprint\":\"0000000000000000\"}\n{\"id\":\"d\",\"fingerprint\":\"0000000000000001\"}\n";
    bench.file("more.jsonl", more);
    let summary = &bench.ok("build idx more.jsonl --json").json()[0];
    assert_eq!((&summary["documents"], &summary["replaced"]), (&json!(4), &json!(1)));
    let rows = json_lines(&bench.export("idx"));
    assert_eq!(rows.len(), 4);
    assert_eq!(rows[0], json!({ "id": "a", "fingerprint": "0000000000000000" }));
}

/// Kills a build of new rows into the index while it waits for more.
fn cut_short(bench: &Bench, index: &str) {
    let mut command = bench.command(&format!("build {index} -"));
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{{\"id\":\"z\",\"fingerprint\":\"0000000000000000\"}}").unwrap();
    let query = format!("query {index} --fingerprint 00000000000000ff");
    while !bench.run(&query).stderr.contains("unfinished bulk build") {
        assert!(child.try_wait().unwrap().is_none(), "the build ended by itself");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn an_unfinished_build_is_told_and_can_be_resumed_or_abandoned() {
    let bench = stored();
    bench.file("more.jsonl", "{\"id\":\"d\",\"fingerprint\":\"0000000000000000\"}\n");
    cut_short(&bench, "idx");
    for verb in [
        "query idx --fingerprint 00",
        "insert idx more.jsonl",
        "build idx more.jsonl",
        "export idx",
    ] {
        bench.run(verb).refused(1, &["idx", "unfinished bulk build", "--resume", "--abandon"]);
    }
    bench.ok("build idx --abandon");
    assert_eq!(bench.export("idx"), EXPORTED);
    cut_short(&bench, "idx");
    bench.ok("build idx more.jsonl --resume");
    let ids: Vec<_> =
        json_lines(&bench.export("idx")).iter().map(|row| row["id"].clone()).collect();
    assert_eq!(ids, ["a", "b", "c", "d"]);
    bench.ok("check idx");
    bench.run("build idx --abandon").refused(1, &["no unfinished bulk build"]);
}

#[test]
fn exports_build_equal_indexes() {
    let bench = Bench::new();
    let rows = [
        "{\"id\":0,\"fingerprint\":\"0000000000000001\"}",
        "{\"id\":2305843009213693951,\"fingerprint\":\"0000000000000002\"}",
        "{\"id\":\"-5\",\"fingerprint\":\"0000000000000003\"}",
        "{\"id\":\"0\",\"fingerprint\":\"0000000000000004\"}",
        "{\"id\":\"a\\tb\\\"c\",\"fingerprint\":\"0000000000000005\"}",
        "{\"id\":\"\u{7f8e}\u{56fd}\",\"fingerprint\":\"0000000000000006\"}",
        "{\"id\":{\"bytes\":\"ff00\"},\"fingerprint\":\"0000000000000007\"}",
    ];
    bench.file("rows.jsonl", rows.join("\n"));
    bench.ok("build one rows.jsonl");
    bench.ok("export one -o one.jsonl");
    assert_eq!(bench.read("one.jsonl").lines().skip(1).collect::<Vec<_>>(), rows);
    bench.ok("build two one.jsonl");
    assert_eq!(bench.ok("export two").stdout, bench.read("one.jsonl"));
    let header = |index: &str| {
        let mut stats = bench.ok(&format!("stats {index} --json")).json().remove(0);
        for changing in ["bytes", "bytes_docs", "bytes_postings", "bytes_tables", "tables"] {
            stats.as_object_mut().unwrap().remove(changing);
        }
        stats
    };
    assert_eq!(header("one"), header("two"));
}

#[test]
fn insert_adds_replaces_and_makes_an_index() {
    let bench = Bench::new();
    bench
        .file("prints.jsonl", PRINTS)
        .file("a.jsonl", "{\"id\":\"a\",\"fingerprint\":\"0000000000000000\"}");
    assert_eq!(bench.ok("insert idx prints.jsonl --batch 2 --no-sync").stdout, "");
    assert_eq!(bench.export("idx"), EXPORTED);
    let summary = &bench.ok("insert idx a.jsonl --json").json()[0];
    assert_eq!((&summary["inserted"], &summary["replaced"]), (&json!(0), &json!(1)));
    assert_eq!(json_lines(&bench.export("idx"))[0]["fingerprint"], "0000000000000000");
    bench.ok("check idx");
}

#[test]
fn insert_if_new_keeps_near_documents_out_and_tells_them() {
    let bench = Bench::new();
    bench.file("prints.jsonl", PRINTS);
    let outcome = bench.ok("insert idx prints.jsonl --if-new");
    assert_eq!(outcome.json(), [json!({ "id": "b", "of": "a", "distance": 1 })]);
    assert_eq!(bench.export("idx").lines().count(), 2);
    assert_eq!(bench.ok("insert wide prints.jsonl --if-new -k 0").stdout, "");
    assert_eq!(bench.export("wide"), EXPORTED);
}

#[test]
fn queries_answer_by_fingerprint_text_and_document() {
    let bench = stored();
    let found = bench.ok("query idx --fingerprint 00000000000000fc ffffffff00000000").json();
    let row = |query: &str, id: &str, distance: u32| json!({ "query": query, "id": id, "distance": distance });
    assert_eq!(
        found,
        [
            row("00000000000000fc", "b", 1),
            row("00000000000000fc", "a", 2),
            row("ffffffff00000000", "c", 0)
        ]
    );
    let one = bench.ok("query idx --fingerprint 00000000000000fc --limit 1 -k 8").json();
    assert_eq!(one, [row("00000000000000fc", "b", 1)]);
    assert_eq!(
        bench.ok("query idx prints.jsonl -k 0").json(),
        [row("a", "a", 0), row("b", "b", 0), row("c", "c", 0)]
    );
    assert_eq!(bench.feed("query idx -", PRINTS.as_bytes()).json().len(), 5);
    bench.file("texts.jsonl", "{\"id\":\"t\",\"text\":\"sunny\"}\n");
    bench.ok("build words texts.jsonl --pipeline post");
    assert_eq!(bench.ok("query words --text sunny").json(), [row("sunny", "t", 0)]);
    bench.run("query words --text ...").refused(2, &["no features"]);
}

#[test]
fn removal_counts_what_was_there_and_what_was_not() {
    let bench = stored();
    bench.file("ids.txt", "b\r\nabsent\n\n");
    assert_eq!(
        bench.ok("remove idx --id a absent --ids ids.txt").stdout,
        "removed    2\nnot found  2\n"
    );
    assert_eq!(
        json_lines(&bench.export("idx")),
        [json!({ "id": "c", "fingerprint": "ffffffff00000000" })]
    );
    assert_eq!(
        bench.feed("remove idx --ids - --json", b"c\nc\n").json(),
        [json!({ "removed": 1, "not_found": 1 })]
    );
    assert_eq!(bench.export("idx"), "");
    assert_eq!(bench.ok("query idx --fingerprint 00000000000000ff").stdout, "");
}

#[test]
fn digits_name_the_text_id_first_and_else_the_number() {
    let bench = Bench::new();
    let rows = "{\"id\":7,\"fingerprint\":\"0000000000000001\"}\n{\"id\":\"7\",\"fingerprint\":\"0000000000000002\"}\n";
    bench.file("rows.jsonl", rows);
    bench.ok("build idx rows.jsonl");
    bench.ok("remove idx --id 7");
    assert_eq!(json_lines(&bench.export("idx"))[0]["id"], 7);
    bench.ok("remove idx --id 7");
    assert_eq!(bench.export("idx"), "");
}

#[test]
fn saved_fingerprints_serve_searches_in_memory_until_the_next_write() {
    let bench = Bench::new();
    bench.file("prints.jsonl", PRINTS);
    bench.ok("insert idx prints.jsonl");
    let search = "query idx --fingerprint 00000000000000ff -k 3 --memory 8M";
    let wanted = bench.ok(search).stdout;
    let report = &bench.ok("index resident idx --memory 8M --json").json()[0];
    let saved = std::fs::metadata(bench.path("idx/hamdex.resident")).unwrap();
    assert_eq!(report["bytes"], saved.len());
    assert_eq!(bench.ok(&format!("{search} --resident")).stdout, wanted);
    std::fs::write(bench.path("idx/hamdex.resident"), "damaged").unwrap();
    let damaged = bench.run(&format!("{search} --resident"));
    assert_eq!(damaged.status, 4);
    assert!(damaged.stderr.contains("hamdex index resident"), "{}", damaged.stderr);
    assert_eq!(bench.ok(search).stdout, wanted);
    bench.file("more.jsonl", PRINTS.replace("\"id\":\"", "\"id\":\"more "));
    bench.ok("index resident idx --memory 8M");
    bench.ok("insert idx more.jsonl");
    assert_eq!(bench.ok(&format!("{search} --resident")).stdout, bench.ok(search).stdout);
    assert_eq!(bench.run("index resident idx --memory 10").status, 1);
}

#[test]
fn upkeep_reports_and_leaves_the_documents_alone() {
    let bench = Bench::new();
    bench.file("prints.jsonl", PRINTS);
    bench.ok("insert idx prints.jsonl");
    assert!(bench.ok("index merge idx").stdout.contains("entries merged"));
    assert!(bench.ok("compact idx").stdout.contains("bytes after"));
    for verb in ["merge", "compact"] {
        let report = &bench.ok(&format!("index {verb} idx --json")).json()[0];
        assert!(report["bytes_before"].is_u64() && report["bytes_after"].is_u64(), "{report}");
    }
    assert_eq!(bench.ok("check idx").stdout, "3 documents, 3 fingerprints, 0 problems\n");
    assert_eq!(bench.ok("check idx --json").json()[0]["problem_count"], 0);
    assert_eq!(bench.export("idx"), EXPORTED);
}

#[test]
fn stats_and_explain_show_tables_and_objects() {
    let bench = stored();
    let table = bench.ok("stats idx").stdout;
    assert!(table.contains("documents") && table.contains("none: fingerprints only"), "{table}");
    let stats = &bench.ok("stats idx --json").json()[0];
    assert_eq!(
        (&stats["documents"], &stats["bits"], &stats["plan"]),
        (&json!(3), &json!(64), &json!("4"))
    );
    let explained = bench.ok("explain idx --fingerprint 00000000000000ff -k 1").stdout;
    for word in ["plan", "path", "candidates", "matches", "time"] {
        assert!(explained.contains(word), "{explained}");
    }
    for path in ["auto", "tables", "scan", "resident"] {
        let call = format!("explain idx --fingerprint 00000000000000ff -k 1 --path {path} --json");
        let found: Vec<Value> = bench.ok(&call).json()[0]["matches"].as_array().unwrap().clone();
        let ids: Vec<_> = found.iter().map(|found| found["id"].as_str().unwrap()).collect();
        assert_eq!(ids, ["a", "b"], "{path}");
    }
}

#[test]
fn queries_from_memory_print_what_the_store_says() {
    let bench = stored();
    let query = "query idx --fingerprint 00000000000000ff ffffffffffffffff -k 8";
    let stored = bench.ok(query).stdout;
    assert!(!stored.is_empty());
    assert_eq!(bench.ok(&format!("{query} --resident")).stdout, stored);
    let small = bench.run(&format!("{query} --resident --memory 10"));
    small.refused(1, &["idx", "does not fit", "--memory"]);
}

#[test]
fn measured_prices_are_kept_and_used() {
    let bench = stored();
    let costs = bench.path("settings/costs");
    let run = |args: &str| {
        let mut command = bench.command(args);
        outcome(command.env("HAMDEX_COSTS", &costs).output().unwrap())
    };
    let measured = run("plan --calibrate");
    assert_eq!(measured.status, 0, "{measured:?}");
    assert!(bench.read("settings/costs").starts_with("seek_ns="));
    let seconds = |count: &str| {
        let plans = run(&format!("plan --count {count} --json"));
        plans.json()[0]["seconds"].as_f64().unwrap()
    };
    bench.file("settings/costs", "seek_ns=100");
    let cheap = seconds("1000000");
    bench.file("settings/costs", "seek_ns=1000000");
    assert!(seconds("1000000") > 10.0 * cheap);
    bench.file("settings/costs", "seek_ns=lots");
    let refused = run("explain idx --fingerprint 00000000000000ff");
    refused.refused(3, &["costs", "seek_ns=lots", "--calibrate"]);
}

#[test]
fn the_empty_index_answers_everything() {
    let bench = Bench::new();
    bench.file("none.jsonl", "");
    bench.ok("build idx none.jsonl --bits 64");
    assert_eq!(bench.export("idx"), "");
    assert_eq!(bench.ok("query idx --fingerprint 00000000000000ff").stdout, "");
    assert_eq!(bench.ok("pairs idx").stdout, "");
    assert_eq!(bench.ok("clusters idx").stdout, "");
    assert_eq!(bench.ok("check idx").stdout, "0 documents, 0 fingerprints, 0 problems\n");
    bench.ok("index merge idx");
    bench.ok("stats idx");
}

#[test]
fn rows_that_come_one_by_one_are_answered_one_by_one() {
    let bench = stored();
    let mut command = bench.command("query idx - -k 0");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut stdin = child.stdin.take().unwrap();
    for (row, id) in PRINTS.lines().zip(["a", "b", "c"]) {
        writeln!(stdin, "{row}").unwrap();
        let answer: Value = serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap();
        assert_eq!(answer, json!({ "query": id, "id": id, "distance": 0 }));
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}
