//! Output: readers that leave, full disks, results that exist already, and terminals.
//!
//! `script` gives a program a terminal and returns what it wrote.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::json;
use unicode_width::UnicodeWidthStr;

use crate::support::{Bench, PRINTS, json_lines, stored};

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
        assert!(told.contains("free space"), "{verb}: {told}");
    }
    bench.run("export idx -o /dev/full").refused(6, &["/dev/full", "No space left"]);
    bench.file("bad.jsonl", "{\n");
    bench
        .run("fingerprint bad.jsonl --rejects /dev/full")
        .refused(6, &["/dev/full", "No space left"]);
}

const ROWS: &str = "{\"id\":1,\"text\":\"sunny days are here again\"}\n\
                    {\"id\":2,\"text\":\"sunny days are here again\"}\n\
                    {\"id\":3,\"text\":\"an article about something else altogether\"}\n";

const KEPT: &str = "{\"id\":1,\"text\":\"sunny days are here again\"}\n\
                    {\"id\":3,\"text\":\"an article about something else altogether\"}\n";

fn bench() -> Bench {
    let bench = Bench::new();
    bench.file("rows.jsonl", ROWS);
    bench
}

#[test]
fn results_that_exist_are_replaced_on_request_only() {
    let bench = bench();
    for output in ["out", "kept.jsonl", "kept.csv.d"] {
        bench.ok(&format!("dedup rows.jsonl -o {output}"));
        let again = bench.run(&format!("dedup rows.jsonl -o {output} --quiet"));
        assert_eq!(again.status, 2, "{again:?}");
        assert!(again.stderr.contains("--overwrite"), "{again:?}");
        bench.ok(&format!("dedup rows.jsonl -o {output} --overwrite"));
    }
    for verb in [
        "pairs rows.jsonl -o out/p.tsv",
        "clusters rows.jsonl -o out/c",
        "fingerprint rows.jsonl -o f",
    ] {
        bench.ok(verb);
        assert_eq!(bench.run(verb).status, 2, "{verb}");
        bench.ok(&format!("{verb} --overwrite"));
    }
}

#[test]
fn an_input_is_never_the_output_by_accident() {
    let bench = bench();
    let ran = bench.run("dedup rows.jsonl -o rows.jsonl");
    assert_eq!(ran.status, 2, "{ran:?}");
    assert_eq!(bench.read("rows.jsonl"), ROWS);
    bench.ok("dedup rows.jsonl -o rows.jsonl --overwrite");
    assert_eq!(bench.read("rows.jsonl"), KEPT);
    bench.file("content.jsonl", "{\"id\":1,\"words\":\"x\"}\n");
    let ran = bench.run("dedup content.jsonl -o content.jsonl --overwrite");
    assert_eq!(ran.status, 3, "{ran:?}");
    assert_eq!(bench.read("content.jsonl"), "{\"id\":1,\"words\":\"x\"}\n");
}

#[test]
fn results_of_another_form_go_with_the_set_that_they_belong_to() {
    let bench = bench();
    bench.ok("dedup rows.jsonl -o out");
    bench.file("out/notes.txt", "mine").file("out/kept.csv", "mine");
    assert_eq!(bench.run("dedup rows.jsonl -o out --format parquet").status, 2);
    std::fs::remove_file(bench.path("out/kept.csv")).unwrap();
    bench.ok("dedup rows.jsonl -o out --format parquet --overwrite");
    assert!(!bench.path("out/kept.jsonl").exists());
    assert!(bench.path("out/kept.parquet").exists());
    assert_eq!(bench.read("out/notes.txt"), "mine");
    // Without a report of ours, a file of that name is the user's.
    bench.file("other/kept.csv", "mine");
    bench.ok("dedup rows.jsonl -o other --overwrite");
    assert_eq!(bench.read("other/kept.csv"), "mine");
}

#[test]
fn results_never_become_inputs_of_the_next_run() {
    let bench = bench();
    bench.file("data/a.jsonl", ROWS);
    for output in ["data", "data/clean", "data/clean.jsonl", "./data/../data/x/y"] {
        let ran = bench.run(&format!("dedup data -o {output}"));
        assert_eq!(ran.status, 2, "{ran:?}");
    }
    assert_eq!(bench.run("dedup data -o clean --report data/page.html").status, 2);
    assert!(!bench.path("clean").exists() && !bench.path("data/clean").exists());
    let stored = stored();
    stored.file("rows.jsonl", ROWS);
    for output in ["idx", "idx/kept.jsonl"] {
        assert_eq!(stored.run(&format!("dedup rows.jsonl -o {output}")).status, 2, "{output}");
    }
    assert_eq!(stored.run("dedup idx -o out").status, 1);
    stored.ok("check idx");
}

#[test]
fn files_of_the_user_are_left_alone_whatever_their_names() {
    let bench = bench();
    bench.file(".hamdex-seed", "a secret of sixteen bytes and more");
    let old = std::time::SystemTime::now() - std::time::Duration::from_hours(1);
    let seed = std::fs::File::options().write(true).open(bench.path(".hamdex-seed")).unwrap();
    seed.set_modified(old).unwrap();
    bench.ok("dedup rows.jsonl -o kept.jsonl --secret-file .hamdex-seed");
    assert_eq!(bench.read(".hamdex-seed"), "a secret of sixteen bytes and more");
}

#[test]
fn standard_output_takes_the_kept_rows() {
    let bench = bench();
    let ran = bench.ok("dedup rows.jsonl -o -");
    assert_eq!(ran.stdout, KEPT);
    assert!(ran.stderr.contains("kept"), "{}", ran.stderr);
    assert!(!bench.path("-").exists());
    bench.file("rows.csv", "id,text\n1,sunny days\n2,sunny days\n");
    assert_eq!(bench.ok("dedup rows.csv -o - --format csv").stdout, "id,text\n1,sunny days\n");
    assert!(bench.ok("pairs rows.jsonl -o -").stdout.starts_with("1\t2\t0"));
    bench.file("prints.jsonl", PRINTS);
    bench.ok("build idx prints.jsonl");
    assert_eq!(bench.ok("export idx -o -").stdout, bench.ok("export idx").stdout);
}

#[test]
fn results_are_compressed_by_their_extension() {
    use std::io::Read;
    let bench = bench();
    for name in ["a.jsonl.gz", "b.jsonl.zst"] {
        bench.ok(&format!("dedup rows.jsonl -o {name}"));
        let bytes = std::fs::read(bench.path(name)).unwrap();
        let mut text = String::new();
        if name.ends_with("gz") {
            flate2::read::GzDecoder::new(&*bytes).read_to_string(&mut text).unwrap();
        } else {
            text = String::from_utf8(zstd::decode_all(&*bytes).unwrap()).unwrap();
        }
        assert_eq!(text, KEPT, "{name}");
        bench.ok(&format!("dedup {name} -o again-{name}"));
    }
    assert_eq!(bench.run("dedup rows.jsonl -o c.jsonl.xz").status, 2);
    assert_eq!(bench.run("dedup rows.jsonl -o c.xlsx").status, 2);
}

#[test]
fn every_input_has_a_file_of_its_own_with_shards() {
    let bench = bench();
    let article = "{\"text\":\"an article about something else altogether\"}\n";
    bench
        .file("d/x/a.jsonl", ROWS)
        .file("d/b.csv", "id,text\n7,sunny days are here again\n8,words of a table alone\n")
        .file("d/c.jsonl", article)
        .file("d/n.txt", "a document among data files");
    bench.ok("dedup d -o out --shards");
    let row = "{\"id\":1,\"text\":\"sunny days are here again\"}\n";
    // Documents come first, then the files by name: b.csv, c.jsonl, x/a.jsonl.
    assert_eq!(
        bench.read("out/b.csv"),
        "id,text\n7,sunny days are here again\n8,words of a table alone\n"
    );
    assert_eq!(bench.read("out/c.jsonl"), article);
    assert_eq!(bench.read("out/x/a.jsonl"), "");
    assert!(bench.read("out/documents.jsonl").contains("a document among"));
    assert!(!bench.path("out/kept.jsonl").exists());
    assert_eq!(bench.run("dedup d -o out --shards").status, 2);
    bench.ok("dedup d -o out --shards --overwrite");
    bench.file("e/c.jsonl", ROWS);
    bench.ok("dedup d/c.jsonl e/c.jsonl -o two --shards");
    assert_eq!(bench.read("two/d/c.jsonl"), article);
    assert_eq!(bench.read("two/e/c.jsonl"), row);
}

/// An id that clears the screen, writes the clipboard and turns the direction of text.
const ID: &str = "a\u{1b}[2J\u{1b}]52;c;eA==\u{7}\u{9b}1m\u{202e}b\u{2028}c";

/// What a terminal shows of it.
const SHOWN: &str = "a\\u{1b}[2J\\u{1b}]52;c;eA==\\u{7}\\u{9b}1m\\u{202e}b\\u{2028}c";

/// An index of two near documents, one of them with that id.
fn hostile() -> Bench {
    let bench = Bench::new();
    let rows = [
        json!({ "id": ID, "fingerprint": "00000000000000ff" }),
        json!({ "id": "z", "fingerprint": "00000000000000fe" }),
    ];
    bench.file("rows.jsonl", rows.map(|row| format!("{row}\n")).concat());
    bench.ok("build idx rows.jsonl");
    bench
}

/// The command line of a call, for a shell.
fn shell(bench: &Bench, call: &str) -> String {
    format!("{} {call}", bench.command("").get_program().display())
}

/// A line of shell that runs on a terminal of `columns` columns.
fn on_terminal(bench: &Bench, columns: usize, line: &str) -> Command {
    let mut command = Command::new("script");
    let line = format!("stty cols {columns} rows 24 -onlcr; {line}");
    command.args(["-q", "-e", "-c", &line, "/dev/null"]).env("NO_COLOR", "1").env("TERM", "xterm");
    command.current_dir(bench.path("")).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn shown(bench: &Bench, call: &str) -> String {
    let output = on_terminal(bench, 200, &shell(bench, call)).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// The text without what moves the cursor or erases.
fn without_controls(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c == '\u{1b}' {
            rest.by_ref().skip(1).find(char::is_ascii_alphabetic);
        } else {
            out.push(c);
        }
    }
    out
}

#[test]
fn ids_do_not_steer_a_terminal() {
    let bench = hostile();
    for call in ["pairs idx -k 3 --quiet", "explain idx --fingerprint 00000000000000ff --quiet"] {
        let text = shown(&bench, call);
        assert!(text.contains(SHOWN), "{call}: {text:?}");
        assert!(!text.contains(['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}']), "{call}: {text:?}");
    }
    let text = shown(&bench, "query idx --fingerprint 00000000000000ff --quiet");
    assert!(!text.contains(['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}']), "{text:?}");
    assert!(json_lines(&text).iter().any(|row| row["id"] == ID), "{text:?}");
}

#[test]
fn files_and_pipes_get_ids_as_they_are() {
    let bench = hostile();
    assert!(bench.ok("pairs idx -k 3").stdout.contains(ID));
    bench.ok("pairs idx -k 3 -o pairs.tsv");
    assert!(bench.read("pairs.tsv").contains(ID));
    let found = bench.ok("query idx --fingerprint 00000000000000ff");
    assert!(found.json().iter().any(|row| row["id"] == ID), "{found:?}");
}

#[test]
fn messages_show_names_without_their_controls() {
    let bench = Bench::new();
    let mut command = bench.command("fingerprint");
    command.arg(OsStr::new("no\u{1b}[2J\u{202e}\nfile.jsonl"));
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(6), "{text}");
    assert!(text.contains("no\\u{1b}[2J\\u{202e}\\nfile.jsonl"), "{text:?}");
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    // A bad row is named by its file.
    bench.file("a\u{1b}]0;x\u{7}.jsonl", "{\n{\"id\":1,\"text\":\"sunny days\"}\n");
    let output = bench.command("fingerprint").arg("a\u{1b}]0;x\u{7}.jsonl").output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("a\\u{1b}]0;x\\u{7}.jsonl:1: "), "{text:?}");
}

#[test]
fn an_id_is_removed_as_any_verb_shows_it() {
    let export = serde_json::to_string(&json!(ID)).unwrap();
    let bytes = json!({ "bytes": "ff00" }).to_string();
    for (id, spelling) in [
        (json!(ID), SHOWN),
        (json!(ID), ID),
        (json!(ID), export.as_str()),
        (json!("a\tb"), "a\\tb"),
        (json!("a\\tb"), "a\\tb"),
        (json!({ "bytes": "ff00" }), "0xff00"),
        (json!({ "bytes": "ff00" }), bytes.as_str()),
        (json!(7), "7"),
    ] {
        let bench = Bench::new();
        let row = json!({ "id": id, "fingerprint": "00000000000000ff" });
        bench.file("rows.jsonl", format!("{row}\n"));
        bench.ok("build idx rows.jsonl");
        let outcome = bench.command("remove idx --id").arg(spelling).output().unwrap();
        assert!(outcome.status.success(), "{outcome:?}");
        assert_eq!(bench.export("idx"), "", "{id} as {spelling}");
    }
}

#[test]
fn progress_lines_are_narrower_than_the_terminal() {
    let bench = Bench::new();
    let row = "echo '{\"text\":\"some words\"}'; sleep 0.05";
    let rows = format!("i=0; while [ $i -lt 24 ]; do {row}; i=$((i+1)); done");
    for columns in [30, 80] {
        let program = shell(&bench, "fingerprint - --pipeline code");
        let call = format!("({rows}) | {program} > out.jsonl");
        let output = on_terminal(&bench, columns, &call).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let plain = without_controls(&text);
        let lines: Vec<&str> =
            plain.split(['\r', '\n']).filter(|line| !line.trim().is_empty()).collect();
        assert!(lines.iter().any(|line| line.contains("reading")), "{text:?}");
        for line in &lines {
            // What is beyond is blank, and ends where the terminal does.
            let line = line.trim_end();
            assert!(line.width() < columns || !line.contains("reading"), "{columns}: {line:?}");
        }
        assert!(!text.contains("0/0") && !text.contains('\u{2591}'), "{text:?}");
        assert!(!text.contains("0s left") && !text.contains(" 0:00 left"), "{text:?}");
    }
}
