//! Snapshots: the texts of all help and of common mistakes, as files that a person reads.
//!
//! A change of a text shows as a change of its file. `HAMDEX_ACCEPT=1` writes the files.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use crate::support::{Bench, stored};

/// Compares a text with a file beside the tests, or writes the file if that is requested.
fn compare(name: &str, text: &str) {
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap());
    let path = root.join("tests/cli").join(name);
    if std::env::var_os("HAMDEX_ACCEPT").is_some_and(|value| value == "1") {
        return fs::write(&path, text).unwrap();
    }
    let accepted = fs::read_to_string(&path).unwrap_or_default();
    let differs = |(now, before): &(&str, &str)| now != before;
    let end = || std::iter::once("(end)");
    let first = text.lines().chain(end()).zip(accepted.lines().chain(end())).find(differs);
    assert!(
        text == accepted,
        "tests/cli/{name} differs, first in (now, accepted) {first:#?}: read the change, then \
         accept it with HAMDEX_ACCEPT=1 cargo test -p hamdex-cli --test cli snapshots"
    );
}

/// Returns the calls that show the long help of the command and of every visible verb.
fn helps(bench: &Bench) -> Vec<String> {
    let listed = |call: &str| -> Vec<String> {
        let help = bench.ok(&format!("{call} --help")).stdout;
        let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
        let verbs = lines.map_while(|line| line.strip_prefix("  ")?.split(' ').next());
        let verbs = verbs.filter(|verb| !verb.is_empty() && *verb != "help");
        verbs.map(|verb| format!("{call} {verb}").trim().to_owned()).collect()
    };
    let mut calls = vec![String::new()];
    for verb in listed("") {
        let below = if verb == "index" { listed("index") } else { Vec::new() };
        calls.push(verb);
        calls.extend(below);
    }
    calls
}

#[test]
fn the_help_is_the_accepted_one() {
    let bench = Bench::new();
    let calls = helps(&bench);
    assert!(calls.len() > 22, "{calls:?}");
    let mut text = String::new();
    for call in calls {
        let call = format!("{call} --help").trim().to_owned();
        let mut command = bench.command(&call);
        // The parser wraps lines at the width of the terminal.
        let help = command.env("COLUMNS", "100").output().unwrap().stdout;
        let help = String::from_utf8(help).unwrap();
        writeln!(text, "$ hamdex {call}\n{}\n", help.trim_end()).unwrap();
    }
    let text: Vec<&str> = text.lines().map(str::trim_end).collect();
    compare("help.txt", &(text.join("\n") + "\n"));
}

/// Calls with common mistakes; each has a fault of its own.
const MISTAKES: &[&str] = &[
    "",
    "index",
    "mirror idx",
    "dedup",
    "dedup rows.jsonl",
    "dedup rows.jsonl -o out --outptu x",
    "dedup absent.jsonl -o out",
    "dedup fields.jsonl -o out",
    "dedup bad.jsonl -o out --strict",
    "dedup bad.jsonl -o out",
    "dedup rows.jsonl -o kept.jsonl",
    "dedup rows.jsonl -o out.json",
    "dedup rows.jsonl -o out --prefer last",
    "dedup rows.jsonl -o out --prefer newest:date",
    "dedup rows.jsonl -o - --keep first --verify none -k 3",
    "dedup rows.jsonl -o idx",
    "dedup - -o out --state seen",
    "dedup rows.jsonl -o out --text-field body",
    "dedup rows.jsonl -o out --verify cosine:1",
    "dedup rows.jsonl -o out -k 17",
    "dedup rows.jsonl -o out --linkage single",
    "dedup table.csv -o out",
    "build idx rows.jsonl",
    "build new repeated.jsonl",
    "build new rows.jsonl --plan 5",
    "build new rows.jsonl --memory lots",
    "build new rows.jsonl --secret-file short",
    "build idx --resume prints.jsonl",
    "insert idx rows.jsonl",
    "insert idx prints.jsonl --verify jaccard:0.5",
    "query absent --text x",
    "query idx --text x",
    "query idx --fingerprint zz",
    "query idx --fingerprint 00000000000000ff --bits 32",
    "query idx prints.jsonl --verify jaccard:0.5",
    "pairs idx prints.jsonl",
    "clusters idx --verify none --linkage representative",
    "remove idx",
    "export rows.jsonl",
    "evaluate rows.jsonl --pairs absent.tsv",
    "plan",
    "plan --count many",
    "index stats rows.jsonl",
    "index check idx --keep 3",
    "index restore backups",
    "index restore absent copy",
    "index backup idx idx",
    "fingerprint rows.jsonl --threads 0",
];

#[test]
fn errors_of_common_mistakes_are_the_accepted_ones() {
    let bench = stored();
    bench
        .file("rows.jsonl", "{\"id\":1,\"text\":\"sunny days\"}\n")
        .file("fields.jsonl", "{\"id\":1,\"content_of\":\"sunny days\"}\n")
        .file("bad.jsonl", "{\"id\":1,\"text\":\"sunny days\"}\n{\"id\":2,\"text\":\n")
        .file("repeated.jsonl", "{\"id\":1,\"text\":\"a b\"}\n{\"id\":1,\"text\":\"c d\"}\n")
        .file("table.csv", "id,text\n1,\"sunny days\n2,rainy days\n")
        .file("kept.jsonl", "")
        .file("short", "secret");
    let mut text = String::new();
    for call in MISTAKES {
        let mut command = bench.command(call);
        command.env("COLUMNS", "100").env("HAMDEX_COSTS", bench.path("costs"));
        let output = command.stdin(std::process::Stdio::null()).output().unwrap();
        let status = output.status.code().unwrap();
        assert!(status != 0 || call.contains("--keep"), "hamdex {call} succeeds");
        let message = String::from_utf8(output.stderr).unwrap();
        // What precedes the error is progress, and help is in the other file.
        let error = message.lines().skip_while(|line| !line.starts_with("hamdex: "));
        let renamed = message.lines().filter(|line| line.contains("has a new name"));
        let mut lines: Vec<&str> = renamed.chain(error).map(str::trim_end).collect();
        if lines.is_empty() {
            lines.extend(message.lines().next());
        }
        let call = format!("$ hamdex {call}");
        writeln!(text, "{}\n{}\nstatus {status}\n", call.trim_end(), lines.join("\n")).unwrap();
    }
    compare("errors.txt", &text);
}
