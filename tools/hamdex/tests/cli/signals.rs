//! Signals: an interrupted run clears what it made and ends with a status of its own.
//!
//! And statuses and codes: the parent process sees why a call failed, in a number and in an object.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Bench, Outcome, PRINTS, outcome, stored};

/// More than any of these runs takes.
const PATIENCE: Duration = Duration::from_mins(1);

/// A call that copies standard input into a temporary file first.
const FROM_STDIN: &str = "dedup - -o out --tmp tmp --pipeline code -k 3 --overwrite";

fn spawn(command: &mut Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits until something is so while the child runs.
fn until(child: &mut Child, so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        assert!(begun.elapsed() < PATIENCE, "it did not come to that");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn send(child: &Child, signal: &str) {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
}

/// Waits for the end of a child whose standard input stays open.
fn end(mut child: Child) -> (ExitStatus, String) {
    // Waiting would close it.
    let stdin = child.stdin.take();
    let status = child.wait().unwrap();
    drop(stdin);
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    (status, text)
}

/// Temporary files in a directory.
fn temporary(bench: &Bench, directory: &str) -> Vec<String> {
    let entries = std::fs::read_dir(bench.path(directory)).into_iter().flatten();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(".hamdex-")).collect()
}

fn rows(count: usize) -> String {
    (0..count).fold(String::new(), |mut rows, n| {
        writeln!(rows, "{{\"id\":{n},\"text\":\"row {n} of some words {}\"}}", n * 7919).unwrap();
        rows
    })
}

#[test]
fn a_run_that_waits_for_input_ends_and_clears_its_files() {
    for (signal, status) in [("-INT", 130), ("-TERM", 143)] {
        let bench = Bench::new();
        std::fs::create_dir(bench.path("tmp")).unwrap();
        let mut child = spawn(&mut bench.command(FROM_STDIN));
        child.stdin.as_mut().unwrap().write_all(rows(10).as_bytes()).unwrap();
        until(&mut child, || !temporary(&bench, "tmp").is_empty());
        send(&child, signal);
        let (ended, text) = end(child);
        assert_eq!(ended.code(), Some(status), "{text}");
        assert!(text.contains("interrupted"), "{text}");
        assert_eq!(temporary(&bench, "tmp"), [""; 0]);
        assert!(!bench.path("out").exists());
    }
}

#[test]
fn a_run_that_works_ends_and_leaves_the_earlier_results() {
    let bench = Bench::new();
    bench.file("rows.jsonl", rows(100_000)).file("few.jsonl", rows(10));
    bench.ok("dedup few.jsonl -o out --pipeline code -k 3");
    let before = bench.read("out/kept.jsonl");
    let call = "dedup rows.jsonl -o out --pipeline code -k 3 --json --overwrite";
    let mut child = spawn(&mut bench.command(call));
    until(&mut child, || !temporary(&bench, "out").is_empty());
    send(&child, "-TERM");
    let (ended, text) = end(child);
    assert_eq!(ended.code(), Some(143), "{text}");
    let object: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(object["error"]["code"], "interrupted", "{text}");
    assert_eq!(object["error"]["status"], 143, "{text}");
    assert_eq!(temporary(&bench, "out"), [""; 0]);
    assert_eq!(bench.read("out/kept.jsonl"), before);
}

#[test]
fn two_signals_at_once_are_one() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("tmp")).unwrap();
    let mut child = spawn(&mut bench.command(FROM_STDIN));
    child.stdin.as_mut().unwrap().write_all(rows(10).as_bytes()).unwrap();
    until(&mut child, || !temporary(&bench, "tmp").is_empty());
    let pid = child.id().to_string();
    let both = format!("kill -TERM {pid}; kill -TERM {pid}");
    assert!(Command::new("sh").args(["-c", &both]).status().unwrap().success());
    let (ended, text) = end(child);
    assert_eq!(ended.code(), Some(143), "{text}");
    assert_eq!(temporary(&bench, "tmp"), [""; 0]);
}

#[test]
fn a_later_signal_ends_the_process_at_once() {
    let bench = Bench::new();
    let mut child = spawn(&mut bench.command("fingerprint - --pipeline code"));
    // Its first message means that it has come past its beginnings.
    child.stdin.as_mut().unwrap().write_all(b"{\"text\":\"some words\"}\n{\n").unwrap();
    let mut first = [0];
    child.stderr.as_mut().unwrap().read_exact(&mut first).unwrap();
    while child.try_wait().unwrap().is_none() {
        send(&child, "-INT");
        std::thread::sleep(Duration::from_millis(50));
    }
    let (ended, text) = end(child);
    assert_eq!(ended.signal(), Some(2), "{ended}: {text}");
}

#[test]
fn a_signal_that_the_parent_ignores_is_ignored() {
    let bench = Bench::new();
    let program = bench.command("");
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' INT; exec \"$0\" fingerprint - --pipeline code --max-bad 9"]);
    shell.arg(program.get_program()).current_dir(bench.path(""));
    let mut child = spawn(&mut shell);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"{\"text\":\"some words\"}\n{\n").unwrap();
    let mut first = [0];
    child.stderr.as_mut().unwrap().read_exact(&mut first).unwrap();
    send(&child, "-INT");
    std::thread::sleep(Duration::from_millis(200));
    stdin.write_all(b"{\"id\":\"a\",\"text\":\"some words\"}\n").unwrap();
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn what_is_durable_is_said() {
    let bench = Bench::new();
    let prints = (0..1500_u64).flat_map(u64::to_le_bytes).collect::<Vec<u8>>();
    bench.file("prints.u64", prints).file("prints.jsonl", PRINTS);
    bench.ok("build idx prints.u64");
    let mut child = spawn(&mut bench.command("remove idx --ids -"));
    let ids = (0..1500).fold(String::new(), |ids, id| format!("{ids}{id}\n"));
    child.stdin.as_mut().unwrap().write_all(ids.as_bytes()).unwrap();
    until(&mut child, || bench.export("idx").lines().count() == 500);
    send(&child, "-INT");
    let (ended, text) = end(child);
    assert_eq!(ended.code(), Some(130), "{text}");
    assert!(text.contains("1,000 documents were durably removed"), "{text}");
    assert_eq!(bench.export("idx").lines().count(), 500);
}

#[test]
fn an_interrupted_insert_says_what_is_stored() {
    let bench = Bench::new();
    let mut child = spawn(&mut bench.command("insert idx - --pipeline post -k 3 --batch 5"));
    child.stdin.as_mut().unwrap().write_all(rows(3000).as_bytes()).unwrap();
    // Rows of a pipe are stored as they come, before its end.
    let stored = || {
        let stats = bench.run("stats idx --json");
        if stats.status == 0 { stats.json()[0]["documents"].as_u64().unwrap() } else { 0 }
    };
    until(&mut child, || stored() > 0);
    send(&child, "-TERM");
    let (ended, text) = end(child);
    assert_eq!(ended.code(), Some(143), "{text}");
    assert!(text.contains("inserted"), "{text}");
}

/// Runs the program and kills it once the test says so; tells whether it was still running.
fn kill(bench: &Bench, args: &str, when: impl Fn() -> bool) -> bool {
    let mut command = bench.command(args);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let begun = Instant::now();
    while !when() && child.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < Duration::from_mins(1), "hamdex {args}");
        std::thread::sleep(Duration::from_micros(200));
    }
    let running = child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    child.wait().unwrap();
    running
}

fn left(bench: &Bench, directory: &str) -> Vec<String> {
    let entries = std::fs::read_dir(bench.path(directory)).into_iter().flatten();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with('.')).collect()
}

fn numbered(count: usize) -> String {
    (0..count).fold(String::new(), |mut rows, n| {
        writeln!(rows, "{{\"id\":{n},\"text\":\"row {} of some words {}\"}}", n / 2, n * 7919)
            .unwrap();
        rows
    })
}

#[test]
fn a_killed_dedup_begins_anew_and_clears_what_was_left() {
    let bench = Bench::new();
    bench.file("rows.jsonl", numbered(100_000)).file("few.jsonl", numbered(10));
    let call = "dedup rows.jsonl -o out --pipeline code -k 3 --overwrite";
    bench.ok("dedup few.jsonl -o out --pipeline code -k 3");
    let before = bench.read("out/kept.jsonl");
    assert!(kill(&bench, call, || !left(&bench, "out").is_empty()), "it was over too soon");
    assert!(!left(&bench, "out").is_empty(), "it leaves what it could not clear");
    assert_eq!(bench.read("out/kept.jsonl"), before, "results are whole or as they were");
    // What is fresh may be another run's.
    std::thread::sleep(Duration::from_millis(1100));
    bench.ok(call);
    assert_eq!(left(&bench, "out"), [""; 0]);
    let names = std::fs::read_dir(bench.path("out")).unwrap().count();
    assert_eq!(names, 5, "nothing but the results");
    assert!(bench.read("out/kept.jsonl").lines().count() > 1000);
}

#[test]
fn a_killed_backup_is_made_again_and_so_is_a_killed_restore() {
    let bench = Bench::new();
    bench.file("rows.jsonl", numbered(20_000));
    bench.ok("build idx rows.jsonl --pipeline code -k 3");
    let stored = bench.export("idx");
    for wait in [0, 2, 8, 24, 64].map(Duration::from_millis) {
        let begun = Instant::now();
        kill(&bench, "backup idx backups", || begun.elapsed() >= wait);
        bench.ok("backup idx backups --keep 2 --verify");
        let begun = Instant::now();
        kill(&bench, "restore backups copy --replace", || begun.elapsed() >= wait);
        bench.ok("restore backups copy --replace");
        assert_eq!(bench.export("copy"), stored, "{wait:?}");
        for directory in ["idx", "backups", "copy"] {
            let stage = bench.path(directory).join("hamdex.stage");
            assert!(!stage.exists(), "{} after {wait:?}", stage.display());
        }
    }
    let backups = bench.ok("backup idx backups --list --json").json();
    assert_eq!(backups.len(), 2, "{backups:?}");
    bench.ok("check copy --deep");
}

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
