//! Statuses and codes: the parent process sees why a call failed, in a number and in an object.

use std::io::Write;
use std::process::{Child, ChildStdin, Stdio};

use serde_json::{Value, json};

use crate::support::{Bench, Outcome, outcome, stored};

/// The error object that `--json` writes.
fn error(outcome: &Outcome) -> Value {
    let last = outcome.stderr.lines().last().unwrap_or_default();
    let object: Value = serde_json::from_str(last).unwrap_or_else(|_| panic!("{outcome:?}"));
    object["error"].clone()
}

/// Expects a status, and a code in the object of `--json`.
fn fails(bench: &Bench, call: &str, status: i32, code: &str) {
    assert_eq!(bench.run(call).status, status, "{call}");
    let outcome = bench.run(&format!("{call} --json"));
    assert_eq!(outcome.status, status, "{call}: {outcome:?}");
    let error = error(&outcome);
    assert_eq!((&error["code"], &error["status"]), (&json!(code), &json!(status)), "{call}");
    assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{error}");
}

/// An index of many documents, some of whose bytes are not what was written.
fn damaged() -> Bench {
    let bench = Bench::new();
    bench.file("many.u64", (0..5000_u64).flat_map(u64::to_le_bytes).collect::<Vec<u8>>());
    bench.ok("build idx many.u64");
    for entry in std::fs::read_dir(bench.path("idx")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "sst") {
            let mut bytes = std::fs::read(&path).unwrap();
            bytes[100] ^= 1;
            std::fs::write(path, bytes).unwrap();
        }
    }
    bench
}

/// A process that has the index open for writing until its standard input is closed.
fn writer(bench: &Bench) -> (Child, ChildStdin) {
    let mut command = bench.command("insert idx -");
    let mut writer = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut stdin = writer.stdin.take().unwrap();
    stdin.write_all(b"{\"id\":\"d\",\"fingerprint\":\"0000000000000000\"}\n").unwrap();
    while !bench.export("idx").contains("\"d\"") {
        assert!(writer.try_wait().unwrap().is_none(), "the writer ended by itself");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    (writer, stdin)
}

#[test]
fn a_status_tells_the_cause() {
    let bench = stored();
    bench
        .file("bad.jsonl", "{\"id\":1,\n{\n")
        .file("cut.jsonl.gz", b"\x1f\x8b\x08\x00\x00")
        .file("empty", "");
    for (call, status, code) in [
        ("query idx --fingerprint 00000000000000ff --bits 32", 1, "width-mismatch"),
        ("build idx prints.jsonl -k 5", 1, "header-mismatch"),
        ("backup idx empty", 6, "io"),
        ("query idx --fingerprint xyz", 2, "invalid-fingerprint"),
        ("query idx --fingerprint 00000000000000ff -k 17", 2, "invalid-distance"),
        ("fingerprint prints.jsonl --threads 0", 2, "usage"),
        ("fingerprint bad.jsonl --strict", 3, "row"),
        ("fingerprint bad.jsonl --max-bad 1", 3, "too-many-bad"),
        ("fingerprint cut.jsonl.gz", 3, "bad-input"),
        ("fingerprint absent.jsonl", 6, "no-such-file"),
        ("stats absent", 6, "not-found"),
        ("export idx -o absent/out.jsonl", 6, "no-such-file"),
    ] {
        fails(&bench, call, status, code);
    }
    fails(&damaged(), "export idx", 4, "damaged");
}

#[test]
fn a_locked_index_has_its_own_status() {
    let bench = stored();
    let (mut writer, stdin) = writer(&bench);
    fails(&bench, "remove idx --id a", 5, "locked");
    drop(stdin);
    assert!(writer.wait().unwrap().success());
}

#[test]
fn findings_are_a_status_although_nobody_reads_them() {
    let bench = damaged();
    fails(&bench, "check idx", 1, "findings");
    for call in ["check idx", "check idx --json", "doctor absent"] {
        let (reader, closed) = std::io::pipe().unwrap();
        drop(reader);
        let outcome = outcome(bench.command(call).stdout(closed).output().unwrap());
        assert_eq!(outcome.status, 1, "{call}: {outcome:?}");
    }
}

#[test]
fn wrong_calls_are_reported_as_other_failures_are() {
    let bench = Bench::new();
    for call in ["remove", "backup", "build", "query idx --limit", "balance idx", "dedup --k 3"] {
        let outcome = bench.run(call);
        assert_eq!(outcome.status, 2, "{call}");
        assert!(outcome.stderr.starts_with("hamdex: "), "{call}: {}", outcome.stderr);
        assert!(!outcome.stderr.contains("error:"), "{call}: {}", outcome.stderr);
        fails(&bench, call, 2, "usage");
    }
    let outcome = bench.run("query idx --json --limit x --text y");
    assert_eq!((outcome.stderr.lines().count(), &error(&outcome)["code"]), (1, &json!("usage")));
    // What follows -- is no option.
    assert!(bench.run("balance -- --json").stderr.starts_with("hamdex: "));
}

#[test]
fn an_error_object_is_all_that_json_writes_of_a_failure() {
    let bench = Bench::new();
    let outcome = bench.run("stats absent --json");
    assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
    let error = error(&outcome);
    let keys: Vec<_> = error.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["code", "status", "message", "remedy"]);
    assert!(error["remedy"].as_str().unwrap().contains("hamdex build"), "{error}");
}

#[test]
fn the_help_lists_every_status() {
    let help = Bench::new().ok("--help").stdout;
    let (_, list) = help.split_once("Exit status:\n").unwrap();
    let numbers: Vec<&str> =
        list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(numbers, ["0", "1", "2", "3", "4", "5", "6", "130", "143"]);
}

#[test]
fn warnings_are_written_although_quiet_is_asked_for() {
    let bench = Bench::new();
    bench.file("rows.jsonl", "{\"text\":\"sunny days\"}\n{\"text\":\"sunny days\"}\n");
    let outcome = bench.ok("dedup rows.jsonl -o out --quiet");
    assert!(outcome.stderr.starts_with("warning: "), "{outcome:?}");
    assert!(outcome.stderr.lines().all(|line| line.starts_with("warning: ")), "{outcome:?}");
    bench.file("seed", "0123456789abcdef0123456789abcdef");
    let outcome = bench.ok("fingerprint rows.jsonl --secret-file seed --quiet");
    assert!(outcome.stderr.contains("chmod 600"), "{outcome:?}");
}
