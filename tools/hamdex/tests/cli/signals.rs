//! Signals: an interrupted run clears what it made and ends with a status of its own.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Bench, PRINTS};

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
