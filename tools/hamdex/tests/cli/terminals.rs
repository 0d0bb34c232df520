//! Terminals: what strangers wrote cannot steer one, and progress fits into its lines.
//!
//! `script` gives a program a terminal and returns what it wrote.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use serde_json::json;
use unicode_width::UnicodeWidthStr;

use crate::support::{Bench, json_lines};

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
