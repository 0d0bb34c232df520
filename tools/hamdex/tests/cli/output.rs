//! Output: a reader that leaves is no failure, a full disk is one.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::support::Bench;

/// Enough rows that no pipe buffer holds their output.
fn many() -> Bench {
    let bench = Bench::new();
    let bytes: Vec<u8> = (0..20_000_u64).flat_map(u64::to_le_bytes).collect();
    bench.file("many.u64", bytes);
    bench
}

#[test]
fn a_reader_that_takes_one_line_and_leaves_is_no_failure() {
    let bench = many();
    bench.ok("build idx many.u64");
    for verb in
        ["fingerprint many.u64", "export idx", "pairs many.u64 -k 1", "query idx many.u64 -k 0"]
    {
        let mut command = bench.command(verb);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.ends_with('\n'), "{verb}");
        let outcome = child.wait_with_output().unwrap();
        assert_eq!(outcome.status.code(), Some(0), "{verb}");
        let told = String::from_utf8(outcome.stderr).unwrap();
        assert!(!told.contains("pipe"), "{verb}: {told}");
    }
}

#[test]
fn inserting_goes_on_when_nobody_reads_the_refused_documents() {
    let bench = many();
    let mut command = bench.command("insert idx many.u64 --if-new -k 1");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
    let inserted = bench.export("idx").lines().count();
    assert!(inserted > 1, "{inserted}");
    assert!(
        bench.ok("insert again many.u64 --if-new -k 1 --json").json().len() + inserted == 20_000
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told_with_the_name_of_the_output() {
    let bench = many();
    bench.ok("build idx many.u64");
    for verb in [
        "fingerprint many.u64",
        "export idx",
        "stats idx",
        "plan --count 10",
        "pairs many.u64 -k 1",
    ] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let child = bench.command(verb).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
        let outcome = child.wait_with_output().unwrap();
        let told = String::from_utf8(outcome.stderr).unwrap();
        assert_eq!(outcome.status.code(), Some(6), "{verb}: {told}");
        assert!(told.contains("standard output: No space left on device"), "{verb}: {told}");
        assert!(told.contains("make room"), "{verb}: {told}");
    }
    bench.run("export idx -o /dev/full").refused(6, &["/dev/full", "No space left"]);
    bench.file("bad.jsonl", "{\n");
    bench
        .run("fingerprint bad.jsonl --rejects /dev/full")
        .refused(6, &["/dev/full", "No space left"]);
}
