//! Hostile input: bombs, endless lines, deep nesting, devices and loops are told and survived.

use std::io::Write;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::support::{Bench, Outcome, outcome};

/// A pipeline that needs no dictionary, which takes a while to load.
const QUICK: &str = "--pipeline code --max-bad 100%";

const GOOD: &[u8] = b"{\"id\":\"good\",\"text\":\"sunny days are here again\"}\n";

/// Address space of a call, in KiB: the longest row takes 128 MiB, and a few may wait.
const SPACE: u32 = 1_600_000;

/// Runs the program with little address space, where what is not bounded fails to be allocated.
pub(crate) fn confined(bench: &Bench, args: &str) -> Outcome {
    let program = bench.command(args);
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit -v {SPACE}; exec \"$@\""), "sh"]);
    shell.arg(program.get_program()).args(program.get_args());
    shell.current_dir(program.get_current_dir().unwrap()).env("RAYON_NUM_THREADS", "2");
    outcome(shell.stdin(Stdio::null()).output().unwrap())
}

/// Many times the same compressed member, which decompresses to so many MiB of zeros.
fn zeros(mib: usize, member: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    member(&vec![0; 16 << 20]).repeat(mib / 16)
}

/// Compresses bytes into one member.
type Packer = fn(&[u8]) -> Vec<u8>;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(bytes).unwrap();
    gz.finish().unwrap()
}

fn zstandard(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

#[test]
fn compressed_bombs_are_bad_rows_in_bounded_memory() {
    let bench = Bench::new();
    for (extension, pack) in [("gz", gzip as Packer), ("zst", zstandard)] {
        // A good row, a line of 640 MiB, a good row.
        let line = [pack(GOOD), zeros(640, pack), pack(b"\n"), pack(GOOD)].concat();
        let (rows, text) = (format!("rows.jsonl.{extension}"), format!("page.html.{extension}"));
        assert!(line.len() < 8 << 20, "a bomb is small: {} bytes", line.len());
        bench.file(&rows, line).file(&text, zeros(640, pack));
        let outcome = confined(&bench, &format!("fingerprint {rows} {QUICK}"));
        assert_eq!(outcome.status, 0, "{outcome:?}");
        assert_eq!(outcome.json().len(), 2, "{outcome:?}");
        let told = format!("{rows}:2: longer than 128 MiB; skipped");
        assert!(outcome.stderr.contains(&told), "{outcome:?}");
        let outcome = confined(
            &bench,
            &format!("build idx-{extension} {rows} {text} --on-repeat first {QUICK}"),
        );
        assert_eq!(outcome.status, 0, "{outcome:?}");
        assert!(outcome.stderr.contains(&told), "{outcome:?}");
        let told = format!("{text}: longer than 128 MiB; skipped");
        assert!(outcome.stderr.contains(&told), "{outcome:?}");
    }
}

#[test]
fn zstandard_windows_beyond_the_longest_row_are_refused_with_a_remedy() {
    let bench = Bench::new();
    // A frame that asks for 2 GiB of memory before its first byte: magic, no size, window, empty.
    bench.file("rows.jsonl.zst", b"\x28\xb5\x2f\xfd\x00\xa8\x01\x00\x00");
    let refused = confined(&bench, &format!("fingerprint rows.jsonl.zst {QUICK}"));
    refused.refused(3, &["rows.jsonl.zst", "zstd -dc --long=31"]);
}

#[test]
fn endless_lines_are_bad_rows() {
    let bench = Bench::new();
    let mut rows = GOOD.to_vec();
    rows.extend(std::iter::repeat_n(b'x', 300 << 20));
    let outcome = bench.feed(&format!("fingerprint - {QUICK}"), &rows);
    assert_eq!((outcome.status, outcome.json().len()), (0, 1), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("-:2: longer than 128 MiB; skipped"), "{}", outcome.stderr);
}

#[test]
fn deep_nesting_is_read_or_refused_and_never_a_crash() {
    let bench = Bench::new();
    let (open, shut) = ("[".repeat(100_000), "]".repeat(100_000));
    let objects = "{\"a\":".repeat(100_000) + "1" + &"}".repeat(100_000);
    let deep = format!("{open}{shut}");
    let mut rows = Vec::new();
    for nested in [&deep, &objects, &open, &"{\"a\":".repeat(100_000)] {
        for field in ["id", "text", "fingerprint", "date", "other"] {
            writeln!(rows, "{{\"{field}\":{nested},\"text\":\"some words\"}}").unwrap();
        }
        writeln!(rows, "{nested}").unwrap();
    }
    rows.extend_from_slice(GOOD);
    bench.file("rows.jsonl", &rows);
    let divs = "<div>".repeat(100_000);
    bench.file("page.html", format!("<html><body>{divs}some words{}", "</div>".repeat(100_000)));
    bench.file("open.html", format!("{divs}<p>other words"));
    for verb in ["fingerprint", "build idx", "dedup -o out --prefer newest:date", "clusters"] {
        let outcome = bench.run(&format!("{verb} rows.jsonl page.html open.html {QUICK}"));
        // Numbers and texts are the only values that tell which of two rows is newer.
        let status = if verb.contains("newest") { 3 } else { 0 };
        assert_eq!(outcome.status, status, "{verb}: {}", outcome.stderr);
        assert!(outcome.stderr.contains("rows.jsonl:3: "), "{verb}: {}", outcome.stderr);
    }
    let outcome = bench.ok(&format!("query idx page.html {QUICK_QUERY}"));
    assert!(outcome.json().iter().any(|row| row["id"] == json!("page.html")), "{outcome:?}");
}

/// A query takes the pipeline of its index.
const QUICK_QUERY: &str = "-k 0";

#[test]
fn huge_keys_and_numbers_are_bad_rows() {
    let bench = Bench::new();
    let (text, digits) = ("k".repeat(3 << 20), "9".repeat(3 << 20));
    let rows = [
        format!("{{\"id\":\"{text}\",\"text\":\"some words\"}}\n"),
        format!("{{\"id\":{digits},\"text\":\"some words\"}}\n"),
        format!("{{\"id\":1e{digits},\"text\":\"some words\"}}\n"),
        format!("{{\"{text}\":1,\"text\":\"some words\",\"id\":\"good\"}}\n"),
    ];
    bench.file("rows.jsonl", rows.concat());
    let outcome = bench.ok(&format!("fingerprint rows.jsonl {QUICK}"));
    // Any id is a label; of an index these would be bad keys.
    assert_eq!(outcome.json().len(), 4, "{}", outcome.stderr);
    assert_eq!(outcome.json()[3]["id"], "good");
    let outcome = bench.ok(&format!("build idx rows.jsonl {QUICK}"));
    for line in 1..4 {
        assert!(outcome.stderr.contains(&format!("rows.jsonl:{line}: ")), "{}", outcome.stderr);
    }
    assert!(outcome.stderr.len() < 4096, "messages repeat what they complain of");
}

#[test]
fn loops_pipes_sockets_and_devices_in_a_directory_are_passed_over() {
    let bench = Bench::new();
    bench.file("docs/a.txt", "sunny days are here").file("docs/deep/b.txt", "rain again");
    symlink("..", bench.path("docs/deep/up")).unwrap();
    symlink("itself", bench.path("docs/itself")).unwrap();
    symlink("/dev/zero", bench.path("docs/zero.txt")).unwrap();
    symlink("/etc/hostname", bench.path("docs/host.txt")).unwrap();
    let made = Command::new("mkfifo").arg(bench.path("docs/pipe.txt")).status().unwrap();
    assert!(made.success());
    let _socket = UnixListener::bind(bench.path("docs/socket.txt")).unwrap();
    let outcome = bench.ok(&format!("fingerprint docs {QUICK}"));
    let ids: Vec<_> = outcome.json().into_iter().map(|row| row["id"].clone()).collect();
    assert_eq!(ids, [json!("a.txt"), json!("deep/b.txt")], "{}", outcome.stderr);
}

#[test]
fn devices_that_never_end_are_refused_as_inputs() {
    let bench = Bench::new();
    symlink("/dev/zero", bench.path("rows.jsonl")).unwrap();
    for input in ["/dev/zero", "/dev/urandom", "rows.jsonl"] {
        let refused = bench.run(&format!("fingerprint {input} {QUICK}"));
        refused.refused(3, &[input, "device"]);
    }
    assert_eq!(bench.ok(&format!("fingerprint /dev/null {QUICK}")).stdout, "");
}
