//! The header and the libraries, tested by programs in C and C++.
#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a test that fails may panic

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use hamdex::verify::FeatureSet;
use hamdex::{Durability, Index, IndexOptions, NewDocument, Pipeline, PipelineOptions};
use serde_json::Value;

/// Returns the package's folder. Read at run time, because a shared target folder may hold a binary
/// that was compiled in another clone.
fn root() -> PathBuf {
    PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
}

/// The sources in the order of the header.
const SOURCES: [&str; 10] =
    ["pipeline", "slices", "error", "index", "write", "search", "upkeep", "stop", "files", "dedup"];

#[test]
fn the_header_is_generated_from_the_sources() {
    let root = root();
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).unwrap();
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in SOURCES {
        builder = builder.with_src(root.join(format!("src/{source}.rs")));
    }
    let mut made = Vec::new();
    builder.generate().unwrap().write(&mut made);
    let made = String::from_utf8(made).unwrap();
    let place = root.join("hamdex.h");
    if std::env::var_os("HAMDEX_WRITE_HEADER").is_some() {
        std::fs::write(&place, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&place).unwrap_or_default();
    assert!(kept == made, "hamdex.h is not up to date: run this test with HAMDEX_WRITE_HEADER=1");
    // Every exported function is declared and documented.
    for source in std::fs::read_dir(root.join("src")).unwrap() {
        let text = std::fs::read_to_string(source.unwrap().path()).unwrap();
        for function in text.split("pub extern \"C\" fn ").skip(1) {
            let name = function.split('(').next().unwrap();
            // A type precedes the name in a declaration, a back quote does in documentation.
            let declared = [" ", "*"].map(|before| made.split_once(&format!("{before}{name}(")));
            let Some((before, _)) = declared.into_iter().flatten().next() else {
                panic!("{name} is not in the header");
            };
            let mut lines = before.lines().rev().skip(1);
            let documented = lines.find(|line| !line.is_empty() && *line != "HAMDEX_MUST_USE");
            assert_eq!(documented.map(str::trim), Some("*/"), "{name} is not documented");
        }
    }
}

/// Returns the path of a library, which cargo puts beside this program or one folder above.
fn library(name: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let found = own.ancestors().skip(1).take(2).map(|folder| folder.join(name));
    found.into_iter().find(|path| path.exists()).unwrap_or_else(|| panic!("no {name}"))
}

const SHARED: &str = if cfg!(target_os = "macos") { "libhamdex_c.dylib" } else { "libhamdex_c.so" };

/// The system libraries that users of the static library have to link.
const SYSTEM: &[&str] = if cfg!(target_os = "macos") {
    &["-lc++", "-framework", "CoreFoundation"]
} else {
    &["-lstdc++", "-lgcc_s", "-lpthread", "-ldl", "-lm", "-lrt"]
};

/// Compiles and runs a program with both libraries; returns false without a compiler.
fn tour(compiler: &str, standard: &str, source: &str) -> bool {
    if Command::new(compiler).arg("--version").output().is_err() {
        println!("skipped: there is no {compiler}");
        return false;
    }
    let directory = tempfile::tempdir().unwrap();
    let root = root();
    let run_path = format!("-Wl,-rpath,{}", library(SHARED).parent().unwrap().display());
    let found_at_run_time = [run_path.as_str()];
    let linked = [
        ("shared", library(SHARED), &found_at_run_time[..]),
        ("static", library("libhamdex_c.a"), SYSTEM),
    ];
    for (name, library, options) in linked {
        let program = directory.path().join(name);
        let mut command = Command::new(compiler);
        command.args([standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-g"]);
        command.arg("-I").arg(&root).arg(root.join("tests").join(source));
        command.arg(library).args(options).arg("-o").arg(&program);
        let built = command.output().unwrap();
        assert!(built.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&built.stderr));
        let place = directory.path().join(format!("{name} indexes"));
        std::fs::create_dir(&place).unwrap();
        let ran = Command::new(&program).arg(&place).output().unwrap();
        let stderr = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{source}, {name}: {} {stderr}", ran.status);
    }
    true
}

/// Compiles a program with the shared library.
fn compiled(source: &Path, directory: &Path) -> PathBuf {
    let program = directory.join("program");
    let mut command = Command::new("cc");
    command.args(["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I"]).arg(root());
    command.arg(source).arg(library(SHARED)).arg("-o").arg(&program);
    command.arg(format!("-Wl,-rpath,{}", library(SHARED).parent().unwrap().display()));
    let built = command.output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    program
}

#[test]
fn the_program_of_the_guide_prints_what_its_page_shows() {
    if Command::new("cc").arg("--version").output().is_err() {
        println!("skipped: there is no cc");
        return;
    }
    let page = std::fs::read_to_string(root().join("../../src/guide/c.md")).unwrap();
    let block = |begin: &str| {
        let (_, rest) = page.split_once(begin).unwrap();
        rest.split("```").next().unwrap()
    };
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("pages.c");
    std::fs::write(&source, block("```c\n")).unwrap();
    let program = compiled(&source, directory.path());
    let ran = Command::new(&program).current_dir(directory.path()).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(String::from_utf8(ran.stdout).unwrap(), block("$ ./pages\n"));
}

#[test]
fn a_c_program_calls_every_function_of_either_library() {
    if tour("cc", "-std=c99", "tour.c") {
        let program = std::fs::read_to_string(root().join("tests/tour.c")).unwrap();
        let header = std::fs::read_to_string(root().join("hamdex.h")).unwrap();
        for line in header.lines().filter(|line| !line.trim_start().starts_with(['*', '/'])) {
            let Some((before, _)) = line.split_once('(') else { continue };
            let name = before.rsplit([' ', '*']).next().unwrap();
            if name.starts_with("hamdex_") {
                assert!(program.contains(&format!("{name}(")), "{name} is not called");
            }
        }
    }
}

#[test]
fn a_cpp_program_owns_its_objects_with_either_library() {
    tour("c++", "-std=c++17", "tour.cpp");
}

/// Makes the folder of a case: each file is a list of its lines, or its bytes in hexadecimal.
fn lay_out(case: &Value, place: &Path) {
    for (name, content) in case["files"].as_object().unwrap() {
        let path = place.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let content = if let Some(digits) = content["hex"].as_str() {
            hamdex_fuzz::from_hex(digits)
        } else {
            let lines: Vec<&str> =
                content.as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
            lines.join("\n").into_bytes()
        };
        std::fs::write(path, content).unwrap();
    }
}

/// Returns the options of a case in one spelling or the other, then its inputs.
fn words(case: &Value, place: &Path, before: &str, of_true: &str) -> Vec<OsString> {
    let option = |(name, value): (&String, &Value)| match value.as_str() {
        Some(text) => format!("{before}{name}={text}").into(),
        None => format!("{before}{name}{of_true}").into(),
    };
    let options = case["options"].as_object().unwrap().iter().map(option);
    let inputs = case["inputs"].as_array().unwrap().iter();
    let inputs = inputs.map(|input| place.join(input.as_str().unwrap()).into());
    options.chain(inputs).collect()
}

fn json_lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Compares what the C program printed with the results of the command line.
fn compare(printed: &str, out: &Path, report: &Value) {
    let mut rows: Vec<Vec<&str>> =
        printed.lines().map(|line| line.splitn(8, '\t').collect()).collect();
    rows.pop();
    let last: Vec<&str> = printed.lines().last().unwrap().split('\t').collect();
    let blanks = report["not_compared"].as_object().unwrap();
    let blanks: u64 = blanks.values().map(|count| count.as_u64().unwrap()).sum();
    let settings = &report["settings"];
    let expected = [
        &report["rows"],
        &report["documents"],
        &report["kept"],
        &report["removed"],
        &blanks.into(),
        &report["clusters"],
        &report["rejects"],
        &settings["bits"],
        &settings["distance"],
        &settings["verification"],
        &settings["pipeline"],
    ];
    let expected = expected.map(|value| value.as_str().map_or(value.to_string(), str::to_owned));
    assert_eq!(last, [&["report".to_owned()][..], &expected].concat());
    assert_eq!(report["rows"], rows.len());
    let of = |fates: &[&str]| -> Vec<Vec<&str>> {
        rows.iter().filter(|row| fates.contains(&row[0])).cloned().collect()
    };
    let removed = of(&["duplicate", "stored", "repeat"]);
    let duplicates = json_lines(&out.join("duplicates.jsonl"));
    assert_eq!(removed.len(), duplicates.len());
    for (row, duplicate) in removed.iter().zip(&duplicates) {
        let kept_at = duplicate["kept_at"].as_str().unwrap_or_default();
        assert_eq!([duplicate["at"].as_str().unwrap(), kept_at], [row[1], row[2]]);
        if row[0] == "stored" {
            assert_eq!(duplicate["kept_id"], row[3]);
        }
        let number = |field: &str, none: f64| duplicate[field].as_f64().unwrap_or(none);
        let close =
            |number: f64, shown: &str| (number - shown.parse::<f64>().unwrap()).abs() < 2e-4;
        assert!(close(number("distance", -1.0), row[4]));
        assert!(close(number("similarity", -1.0), row[5]));
        assert!(close(number("cluster", 0.0), row[6]));
    }
    let (bad, rejects) = (of(&["bad"]), json_lines(&out.join("rejects.jsonl")));
    assert_eq!(bad.len(), rejects.len());
    for (row, reject) in bad.iter().zip(&rejects) {
        let at = reject["line"].as_u64().map_or(String::new(), |line| format!(":{line}"));
        assert_eq!(row[1], format!("{}{at}", reject["file"].as_str().unwrap()));
        assert_eq!(row[7], reject["reason"]);
    }
    // Rows of JSON Lines are copied as they are.
    let (kept, copied) =
        (of(&["kept", "blank"]), std::fs::read_to_string(out.join("kept.jsonl")).unwrap());
    assert_eq!(kept.len(), copied.lines().count());
    for (row, copy) in kept.iter().zip(copied.lines()) {
        if let Some((file, line)) = row[1].split_once(".jsonl:") {
            let text = std::fs::read(format!("{file}.jsonl")).unwrap();
            let text = String::from_utf8_lossy(&text);
            let line = text.lines().nth(line.parse::<usize>().unwrap() - 1).unwrap();
            assert_eq!(copy, line.trim_start_matches('\u{feff}'));
        }
    }
}

/// Deduplicates with the C program and with the command line, and compares.
fn alike(program: &Path, place: &Path, c: &[OsString], command_line: Vec<OsString>) -> String {
    let ran = Command::new(program).args(c).output().unwrap();
    let printed = String::from_utf8(ran.stdout).unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let out = place.join("out");
    let call = command_line.into_iter().chain(["-o".into(), out.clone().into_os_string()]);
    match hamdex_cli::embed::dedup(call, Arc::default()) {
        Ok(done) => compare(&printed, &out, &serde_json::from_str(&done.report).unwrap()),
        Err(failure) => assert_eq!(printed, format!("error 50\t{failure}\n")),
    }
    printed
}

#[test]
fn a_c_program_keeps_the_rows_that_the_command_line_keeps() {
    if Command::new("cc").arg("--version").output().is_err() {
        println!("skipped: there is no cc");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let program = compiled(&root().join("tests/folder.c"), directory.path());
    let cases = std::fs::read(root().join("../../tests/first_contact.json")).unwrap();
    let cases: BTreeMap<String, Value> = serde_json::from_slice(&cases).unwrap();
    assert!(cases.len() >= 40, "{} folders", cases.len());
    for (name, case) in &cases {
        println!("{name}");
        let place = directory.path().join(name);
        lay_out(case, &place);
        let (c, command_line) = (words(case, &place, "", "="), words(case, &place, "--", ""));
        let printed = alike(&program, &place, &c, command_line);
        let refused = case["expect"]["status"] != 0;
        assert_eq!(printed.starts_with("error"), refused, "{printed}");
    }
}

#[test]
fn a_c_program_removes_what_is_near_an_index_as_the_command_line_does() {
    if Command::new("cc").arg("--version").output().is_err() {
        println!("skipped: there is no cc");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name);
    let program = compiled(&root().join("tests/folder.c"), directory.path());
    let text = |number: u32| {
        let words = (1..20).map(|word| (number * 7919 * word * word % 9973).to_string());
        words.collect::<Vec<_>>().join(" ")
    };
    let pipeline = Pipeline::new(&PipelineOptions::preset("page").unwrap()).unwrap();
    let options = IndexOptions::new().distance(6).text(&pipeline).keep_features(true);
    let index = Index::<u64>::create(place("idx"), &options).unwrap();
    for (id, number) in [("own", 1), ("other", 2)] {
        let fingerprint = pipeline.fingerprint::<u64>(&text(number)).unwrap().fingerprint;
        let features = FeatureSet::of_text(&pipeline, &text(number)).encode();
        let document = NewDocument::new(id.as_bytes(), fingerprint).features(&features);
        index.insert_batch(&[document], Durability::Buffered).unwrap();
    }
    drop(index);
    let row = |id: &str, number| format!("{{\"id\":\"{id}\",\"text\":\"{}\"}}\n", text(number));
    // A document is not compared with the stored one of its key.
    let rows = [row("own", 1), row("a", 2), row("b", 3), row("c", 3)].concat();
    std::fs::write(place("a.jsonl"), rows).unwrap();
    let word = |before: &str, name: &str, path: PathBuf| -> OsString {
        let mut word = OsString::from(format!("{before}{name}="));
        word.push(path);
        word
    };
    let rows = || place("a.jsonl").into_os_string();
    let c = [word("", "against", place("idx")), word("", "tmp", place("")), rows()];
    let command_line = vec![word("--", "against", place("idx")), rows()];
    let printed = alike(&program, directory.path(), &c, command_line);
    let fates: Vec<&str> = printed.lines().map(|line| line.split('\t').next().unwrap()).collect();
    assert_eq!(fates, ["kept", "stored", "kept", "duplicate", "report"]);
}
