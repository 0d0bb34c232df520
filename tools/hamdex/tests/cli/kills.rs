//! Kills: what a killed run left is not in the way of the next one, and does not stay for ever.

use std::fmt::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::Bench;

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

fn rows(count: usize) -> String {
    (0..count).fold(String::new(), |mut rows, n| {
        writeln!(rows, "{{\"id\":{n},\"text\":\"row {} of some words {}\"}}", n / 2, n * 7919)
            .unwrap();
        rows
    })
}

#[test]
fn a_killed_dedup_begins_anew_and_clears_what_was_left() {
    let bench = Bench::new();
    bench.file("rows.jsonl", rows(100_000)).file("few.jsonl", rows(10));
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
    bench.file("rows.jsonl", rows(20_000));
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
