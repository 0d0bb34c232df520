//! Bad rows: reported with file and line, kept in the rejects file, and never harmful to good rows.
//!
//! And hostile input: bombs, endless lines, deep nesting, devices and loops are reported and survived.

use std::io::Write;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::support::{Bench, Outcome, json_lines, outcome};

/// A pipeline that needs no dictionary, which takes a while to load.
const QUICK: &str = "--pipeline code --max-bad 100%";

const GOOD: &str = "{\"id\":\"good\",\"text\":\"sunny days are here again\"}\n";

/// Every kind of bad row with its reason.
fn bad_rows() -> Vec<(Vec<u8>, &'static str)> {
    let row = |text: &str| text.as_bytes().to_vec();
    vec![
        (
            row("{\"id\":\"x\",\"text\":\"sunny"),
            "broken JSON: EOF while parsing a string at column 23",
        ),
        (row("[1,2]"), "not a JSON object"),
        // As a file is filled up where a disk or a program gave out.
        (vec![0; 40], "broken JSON: expected value at column 1"),
        (b"\0forged\0{\"id\":1}".to_vec(), "broken JSON: expected value at column 1"),
        (b"{\"id\":\"x\",\"text\":\"\xff\xfe\"}".to_vec(), "invalid UTF-8 at byte 18"),
        (row("{\"id\":\"x\",\"text\":\"\"}"), "empty text"),
        (row("{\"id\":\"x\",\"text\":\" \\n \"}"), "empty text"),
        (row("{\"id\":\"x\",\"text\":\"...\"}"), "text without features"),
        (row("{\"id\":\"x\"}"), "no field \"text\" and no field \"fingerprint\""),
        (row("{\"id\":\"x\",\"text\":5}"), "field \"text\" is not a string"),
        (row("{\"id\":[],\"text\":\"a\"}"), "id is neither a string nor a number"),
        (row("{\"id\":\"\",\"text\":\"a\"}"), "id is empty"),
        (row("{\"id\":\"good\",\"text\":\"other\"}"), "duplicate id good"),
        (
            row("{\"id\":\"x\",\"fingerprint\":\"0123\"}"),
            "\"0123\" is not a 64-bit fingerprint: expected one digit for every four bits",
        ),
    ]
}

#[test]
fn every_kind_of_bad_row_is_told_with_file_and_line_and_skipped() {
    let long = format!("{{\"id\":\"{}\",\"text\":\"a\"}}", "k".repeat(1025));
    let mut cases = bad_rows();
    cases.push((long.into_bytes(), "id has 1025 bytes, allowed are 1 to 1024"));
    // What is a fault of an index's document is none of a row.
    let labels = [
        "id is",
        "id has",
        "duplicate id",
        "empty text",
        "text without",
        "no field",
        "field \"text\"",
    ];
    for (row, reason) in cases {
        let bench = Bench::new();
        bench.file(
            "rows.jsonl",
            [GOOD.as_bytes(), &row, b"\n{\"id\":\"last\",\"text\":\"rain\"}\n"].concat(),
        );
        // A build refuses a repeated id as a whole.
        let repeated = reason.starts_with("duplicate id");
        let builds = if repeated { "insert idx-b" } else { "build idx-b" };
        let bad = !labels.iter().any(|label| reason.starts_with(label));
        let others: &[&str] = if bad { &["dedup -o out", "pairs", "clusters"] } else { &[] };
        for verb in [builds, "insert idx-i"].iter().chain(others) {
            let outcome = bench.run(&format!("{verb} rows.jsonl {QUICK}"));
            assert_eq!(outcome.status, 0, "{verb}: {}", outcome.stderr);
            let told = format!("rows.jsonl:2: {reason}; skipped\n");
            assert!(outcome.stderr.contains(&told), "{verb}: {:?} in {:?}", told, outcome.stderr);
            assert!(outcome.stderr.contains("1 bad row skipped"), "{verb}: {}", outcome.stderr);
        }
        for index in ["idx-b", "idx-i"] {
            let ids: Vec<_> =
                json_lines(&bench.export(index)).iter().map(|row| row["id"].clone()).collect();
            assert_eq!(ids, ["good", "last"], "{reason}");
        }
        if !bad {
            continue;
        }
        let rejects = json_lines(&bench.read("out/rejects.jsonl"));
        assert_eq!(rejects.len(), 1);
        assert_eq!((&rejects[0]["file"], &rejects[0]["line"]), (&"rows.jsonl".into(), &2.into()));
        assert_eq!(rejects[0]["reason"], reason);
        assert_eq!(rejects[0]["row"], String::from_utf8_lossy(&row).as_ref());
    }
}

#[test]
fn strict_makes_the_first_bad_row_fatal_and_changes_nothing() {
    // A build refuses a repeated id without --strict, in other words.
    let cases = bad_rows().into_iter().filter(|(_, reason)| !reason.starts_with("duplicate id"));
    for (row, reason) in cases {
        let bench = Bench::new();
        bench.file("good.jsonl", GOOD).file("rows.jsonl", [GOOD.as_bytes(), &row, b"\n"].concat());
        let run = |verb: &str| bench.run(&format!("{verb} rows.jsonl --strict {QUICK}"));
        let told = format!("rows.jsonl:2: {reason}");
        run("build idx").refused(3, &[&told, "--strict"]);
        assert!(!bench.path("idx").exists(), "{reason}");
        bench.ok(&format!("build idx good.jsonl {QUICK}"));
        let before = bench.export("idx");
        run("build idx").refused(3, &[&told]);
        let label = reason.starts_with("id ");
        let blank = reason.contains("text") || reason.contains("field");
        if !label && !blank {
            run("dedup -o out").refused(3, &[&told]);
        }
        if !label {
            run("pairs").refused(3, &[&told]);
        }
        run("insert idx").refused(3, &[&told]);
        assert_eq!(bench.export("idx"), before, "{reason}");
        assert!(!bench.path("out/kept.jsonl").exists());
    }
}

#[test]
fn max_bad_allows_so_many_and_stops_at_the_next() {
    let bench = Bench::new();
    bench.file("rows.jsonl", format!("{{\n{GOOD}{{\n"));
    bench.ok("build idx rows.jsonl --max-bad 2");
    bench
        .run("build other rows.jsonl --max-bad 1")
        .refused(3, &["2 of 2 rows are bad", "--max-bad allows 1"]);
    assert!(!bench.path("other").exists());
}

#[test]
fn an_insert_that_fails_says_how_many_documents_are_stored() {
    let bench = Bench::new();
    bench.file("rows.jsonl", format!("{GOOD}{{\n{{\n{{\"id\":7,\"text\":null}}\n"));
    let (one, bad) = ("documents stored before the error: 1", "2 of 4 rows are bad");
    let told = [one, bad, "--max-bad allows 10 %: 2 broken JSON\n"];
    bench.run("insert idx rows.jsonl --pipeline code").refused(3, &told);
    assert_eq!(bench.export("idx").lines().count(), 1);
    bench.run("insert new rows.jsonl --pipeline code --strict").refused(3, &[one, "rows.jsonl:2"]);
}

#[test]
fn ten_bad_rows_are_told_in_full_and_all_are_kept() {
    let bench = Bench::new();
    bench.file("rows.jsonl", format!("{}{GOOD}", "{\n".repeat(15)));
    let outcome = bench.ok("fingerprint rows.jsonl --rejects bad.jsonl --max-bad 15");
    assert_eq!(outcome.stderr.matches("; skipped").count(), 10);
    assert!(
        outcome.stderr.contains("15 bad rows skipped: 15 broken JSON; see bad.jsonl"),
        "{}",
        outcome.stderr
    );
    assert_eq!(json_lines(&bench.read("bad.jsonl")).len(), 15);
    assert_eq!(outcome.json().len(), 1);
    let quiet = bench.ok("fingerprint rows.jsonl --quiet --max-bad 15");
    assert_eq!(quiet.stderr, "");
}

#[test]
fn duplicate_ids_are_told_with_their_line_and_the_first_counts() {
    let bench = Bench::new();
    bench
        .file("a.jsonl", "{\"id\":\"x\",\"fingerprint\":\"0000000000000001\"}\n")
        .file("b.jsonl", "\n{\"id\":\"x\",\"fingerprint\":\"0000000000000002\"}\n");
    let outcome = bench.ok("insert idx a.jsonl b.jsonl --max-bad 1");
    assert!(outcome.stderr.contains("b.jsonl:2: duplicate id x"), "{}", outcome.stderr);
    assert_eq!(bench.export("idx"), bench.read("a.jsonl"));
}

#[test]
fn insert_stores_the_first_or_the_last_row_of_an_id_if_asked() {
    let row =
        |id: &str, number: u64| format!("{{\"id\":{id},\"fingerprint\":\"{number:016x}\"}}\n");
    let bench = Bench::new();
    bench
        .file("a.jsonl", row("\"x\"", 1) + &row("\"y\"", 3) + &row("\"x\"", 2))
        .file("b.jsonl", row("\"x\"", 4) + &row("0", 5))
        .file("c.u64", 6_u64.to_le_bytes());
    let inputs = "a.jsonl b.jsonl c.u64";
    bench
        .run(&format!("insert refused {inputs}"))
        .refused(3, &["--on-repeat first", "3 duplicate id"]);
    let first = bench.ok(&format!("insert first {inputs} --on-repeat first"));
    assert!(first.stderr.contains("repeated ids dropped: 3"), "{}", first.stderr);
    assert!(first.stderr.contains("inserted 3, replaced 0"), "{}", first.stderr);
    let last = bench.ok(&format!("insert last {inputs} --on-repeat last"));
    assert!(!last.stderr.contains("--on-repeat"), "{}", last.stderr);
    assert!(last.stderr.contains("repeated ids dropped: 3"), "{}", last.stderr);
    for (index, kept) in [("first", [1, 3, 5]), ("last", [4, 3, 6])] {
        let stored = bench.export(index);
        let rows = [row("\"x\"", kept[0]), row("\"y\"", kept[1]), row("0", kept[2])];
        assert_eq!(stored.lines().count(), 3, "{stored}");
        for row in rows {
            assert!(stored.contains(row.trim_end()), "{index}: {row} is not in {stored}");
        }
    }
}

#[test]
fn a_raw_file_with_a_part_of_a_fingerprint_names_the_offset() {
    let bench = Bench::new();
    bench.file("a.u64", [1; 19]).file("b.u64", [2; 8]);
    let outcome = bench.ok("build idx a.u64 b.u64 --rejects bad.jsonl --max-bad 1");
    let reason = "3 bytes left, a 64-bit fingerprint has 8";
    assert!(outcome.stderr.contains(&format!("a.u64 at byte 16: {reason}")), "{}", outcome.stderr);
    let rejects = json_lines(&bench.read("bad.jsonl"));
    assert_eq!((&rejects[0]["offset"], &rejects[0]["reason"]), (&16.into(), &reason.into()));
    assert_eq!(bench.export("idx").lines().count(), 3);
    bench.run("build other a.u64 --strict").refused(3, &["a.u64 at byte 16", reason]);
}

#[test]
fn bad_files_of_a_directory_are_told_by_their_path() {
    let bench = Bench::new();
    bench.file("docs/a.txt", "...").file("docs/b.txt", "").file("docs/c.txt", "sunny days");
    let outcome = bench.ok("build idx docs");
    assert!(outcome.stderr.contains("docs/a.txt: text without features"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("docs/b.txt: empty text"), "{}", outcome.stderr);
    assert_eq!(bench.export("idx").lines().count(), 1);
}

const GOOD_BYTES: &[u8] = GOOD.as_bytes();

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

/// Repeats one compressed member, which decompresses to `mib` MiB of zeros.
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
        let line = [pack(GOOD_BYTES), zeros(640, pack), pack(b"\n"), pack(GOOD_BYTES)].concat();
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
    let mut rows = GOOD_BYTES.to_vec();
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
    rows.extend_from_slice(GOOD_BYTES);
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
