//! First contact: folders as people have them, and what becomes of every row of each.
//!
//! The cases in `tests/first_contact.json` are shared with the Python package and the C interface:
//! each says what is in a folder, which inputs and options are given, and what has to come of it.
//! Whatever it says, a row that goes in is kept, removed or rejected: by count, and by content where
//! rows are lines.
//!
//! And the demo: a first result without any data, which leaves what a real run leaves.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{Bench, json_lines, outcome};

fn cases() -> BTreeMap<String, Value> {
    let package = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap());
    let file = std::fs::read(package.join("../../tests/first_contact.json")).unwrap();
    serde_json::from_slice(&file).unwrap()
}

/// The words of a call that a case describes.
fn arguments(case: &Value) -> Vec<String> {
    let mut words =
        vec!["dedup".to_owned(), "-o".to_owned(), "out".to_owned(), "--json".to_owned()];
    for (name, value) in case["options"].as_object().unwrap() {
        match value {
            Value::Bool(_) => words.push(format!("--{name}")),
            Value::String(text) => words.push(format!("--{name}={text}")),
            Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                words.push(format!("--{name}={value}"));
            }
        }
    }
    words.push("--".to_owned());
    words.extend(case["inputs"].as_array().unwrap().iter().map(|i| i.as_str().unwrap().to_owned()));
    words
}

/// Makes the folder: each file is a list of its lines, or its bytes as hexadecimal digits.
fn lay_out(case: &Value, place: &Path) {
    for (name, content) in case["files"].as_object().unwrap() {
        let path = place.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let content = if let Some(digits) = content["hex"].as_str() {
            hamdex_fuzz::from_hex(digits)
        } else {
            let lines = content.as_array().unwrap().iter().map(|line| line.as_str().unwrap());
            lines.collect::<Vec<_>>().join("\n").into_bytes()
        };
        std::fs::write(path, content).unwrap();
    }
}

#[test]
fn every_folder_comes_out_as_its_table_says() {
    let cases = cases();
    assert!(cases.len() >= 40, "{} folders", cases.len());
    let failed: Vec<String> =
        cases.iter().filter_map(|(name, case)| check(name, case).err()).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Runs a case and compares; an error says what differs.
fn check(name: &str, case: &Value) -> Result<(), String> {
    let bench = Bench::new();
    lay_out(case, &bench.path(""));
    let mut command = bench.command("");
    let ran = outcome(command.args(arguments(case)).output().unwrap());
    let expect = &case["expect"];
    let wrong = |what: &str| Err(format!("{name}: {what}: {ran:?}"));
    if expect["status"] != ran.status {
        return wrong(&format!("status {}", expect["status"]));
    }
    if ran.status != 0 {
        let error = ran.stderr.lines().find_map(|line| serde_json::from_str::<Value>(line).ok());
        let code = error.map_or(Value::Null, |error| error["error"]["code"].clone());
        if code != expect["code"] {
            return wrong(&format!("code {} instead of {code}", expect["code"]));
        }
        if bench.path("out").exists() {
            return wrong("something was written");
        }
        return Ok(());
    }
    let report: Value = serde_json::from_str(&bench.read("out/report.json")).unwrap();
    for (key, value) in expect.as_object().unwrap() {
        if !matches!(key.as_str(), "status" | "kept_ids") && report[key] != *value {
            return wrong(&format!("{key} is {}, expected {value}", report[key]));
        }
    }
    let kept = bench.read("out/kept.jsonl");
    if let Some(ids) = expect["kept_ids"].as_array() {
        let found: Vec<Value> = json_lines(&kept).iter().map(|row| row["id"].clone()).collect();
        if found != *ids {
            return wrong(&format!("kept {found:?}"));
        }
    }
    whole(&bench, &report).or_else(|what| wrong(&what))
}

/// Every row is kept, removed or rejected, and once: by count, and by content where rows are lines.
pub(crate) fn whole(bench: &Bench, report: &Value) -> Result<(), String> {
    let count = |name: &str| report[name].as_u64().unwrap();
    if count("rows") != count("kept") + count("removed") + count("rejects") {
        return Err("rows in are not rows out".to_owned());
    }
    let kept = bench.read("out/kept.jsonl");
    let duplicates = json_lines(&bench.read("out/duplicates.jsonl"));
    let rejects = json_lines(&bench.read("out/rejects.jsonl"));
    let found = (kept.lines().count(), duplicates.len(), rejects.len());
    if found.0 as u64 != count("kept")
        || found.1 as u64 != count("removed")
        || found.2 as u64 != count("rejects")
    {
        return Err(format!("files of {found:?} rows"));
    }
    let sources = report["settings"]["inputs"].as_array().unwrap();
    let mut files: Vec<&str> = sources.iter().map(|source| source.as_str().unwrap()).collect();
    files.dedup();
    if !files.iter().all(|file| {
        bench.path(file).is_file() && Path::new(file).extension() == Some("jsonl".as_ref())
    }) {
        return Ok(());
    }
    let mut lines: BTreeMap<String, i64> = BTreeMap::new();
    let mut places: BTreeMap<String, String> = BTreeMap::new();
    for file in files {
        let content = std::fs::read(bench.path(file)).unwrap();
        let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&content);
        for (number, line) in (1..).zip(content.split(|&byte| byte == b'\n')) {
            let line = String::from_utf8_lossy(line).trim_end_matches('\r').to_owned();
            if !line.trim().is_empty() {
                *lines.entry(line.clone()).or_default() += 1;
                places.insert(format!("{file}:{number}"), line);
            }
        }
    }
    let mut out =
        |line: &str| *lines.entry(line.trim_end_matches('\r').to_owned()).or_default() -= 1;
    kept.lines().for_each(&mut out);
    for duplicate in &duplicates {
        out(&places[duplicate["at"].as_str().unwrap()]);
    }
    for reject in &rejects {
        out(&places[&format!("{}:{}", reject["file"].as_str().unwrap(), reject["line"])]);
    }
    match lines.iter().find(|&(_, &left)| left != 0) {
        Some((line, left)) => Err(format!("{left} too few of {line:?}")),
        None => Ok(()),
    }
}

#[test]
fn the_demo_finds_copies_in_every_language_and_leaves_texts_results_and_page() {
    let bench = Bench::new();
    let ran = bench.ok("demo");
    assert!(ran.stdout.starts_with("$ hamdex dedup hamdex-demo/texts.jsonl -o "), "{ran:?}");
    assert!(!ran.stderr.contains("warning"), "{ran:?}");
    let texts = json_lines(&bench.read("hamdex-demo/texts.jsonl"));
    let kept = json_lines(&bench.read("hamdex-demo/results/kept.jsonl"));
    let removed = json_lines(&bench.read("hamdex-demo/results/duplicates.jsonl"));
    assert_eq!(texts.len(), kept.len() + removed.len());
    let language = |row: &Value, field: &str| {
        row[field].as_str().and_then(|id| id.split('/').next()).map(ToOwned::to_owned)
    };
    for language_of in ["en", "de", "fr", "es", "pt", "ru", "ar", "hi", "zh", "ja", "ko"] {
        let mine = removed.iter().filter(|row| language(row, "id").as_deref() == Some(language_of));
        let mut pairs = 0;
        for row in mine {
            assert_eq!(language(row, "kept_id"), language(row, "id"), "{row}");
            pairs += 1;
        }
        assert!(pairs > 0, "{language_of}");
    }
    assert!(bench.read("hamdex-demo/report.html").contains("<html"));
    // Copies, with what is their own in brackets.
    for own in ["[(Morning Wire) - ]", "【转载】", "[وكالة"] {
        assert!(ran.stdout.contains(own), "{own} {ran:?}");
    }
}

#[test]
fn the_demo_replaces_nothing_unasked() {
    let bench = Bench::new();
    bench.ok("demo -o first");
    bench.file("first/texts.jsonl", "mine\n");
    let ran = bench.run("demo -o first --json");
    assert_eq!((ran.status, bench.read("first/texts.jsonl").as_str()), (2, "mine\n"), "{ran:?}");
    let report = bench.ok("demo -o first --overwrite --json");
    assert_eq!(report.json()[0]["documents"], 36);
}
