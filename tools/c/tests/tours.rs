//! The header and the libraries, tested by programs in C and C++.
#![allow(clippy::unwrap_used)] // a test that fails may panic

use std::path::PathBuf;
use std::process::Command;

/// Returns the package's folder. Read at run time, because a shared target folder may hold a binary
/// that was compiled in another clone.
fn root() -> PathBuf {
    PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
}

/// The sources in the order of the header.
const SOURCES: [&str; 9] =
    ["fingerprint", "slices", "error", "pipeline", "index", "write", "search", "upkeep", "bulk"];

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
    let program = directory.path().join("pages");
    let mut command = Command::new("cc");
    command.args(["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I"]).arg(root());
    command.arg(&source).arg(library(SHARED)).arg("-o").arg(&program);
    command.arg(format!("-Wl,-rpath,{}", library(SHARED).parent().unwrap().display()));
    let built = command.output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
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
