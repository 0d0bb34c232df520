//! Refusals: a call that cannot be served says why and what to do, and changes nothing.
//!
//! After damage the doctor sees a bad seal, and a repair does without the list of files.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::support::{Bench, EXPORTED, PRINTS, outcome, stored};

#[test]
fn what_is_no_index_is_named_with_the_remedy() {
    let bench = Bench::new();
    bench.file("docs/a.txt", "sunny days").file("plain.txt", "x").file("a.u64", [0; 8]);
    for verb in [
        "query absent --fingerprint 00",
        "stats absent",
        "check absent",
        "export absent",
        "index merge absent",
    ] {
        bench.run(verb).refused(6, &["absent", "hamdex build"]);
    }
    bench.run("remove docs --id a").refused(6, &["docs", "hamdex build"]);
    for verb in ["build", "insert"] {
        bench.run(&format!("{verb} docs a.u64")).refused(1, &["docs"]);
        bench.run(&format!("{verb} plain.txt a.u64")).refused(1, &["plain.txt"]);
    }
    assert_eq!(bench.read("docs/a.txt"), "sunny days");
    assert_eq!(std::fs::read_dir(bench.path("docs")).unwrap().count(), 1);
}

#[test]
fn inputs_that_are_not_there_stop_the_call_before_it_writes() {
    let bench = Bench::new();
    bench.run("build idx absent.jsonl").refused(6, &["absent.jsonl", "check the path"]);
    bench.run("dedup absent.jsonl -o out").refused(6, &["absent.jsonl"]);
    bench.run("evaluate absent.jsonl --pairs absent.tsv").refused(6, &["absent.tsv"]);
    assert!(!bench.path("idx").exists() && !bench.path("out").exists());
}

#[test]
fn inputs_before_the_index_are_told_the_order() {
    let bench = stored();
    for call in ["build prints.jsonl new", "insert prints.jsonl idx", "query prints.jsonl idx"] {
        bench.run(call).refused(1, &["prints.jsonl: is a file", "the index comes first"]);
    }
    assert!(!bench.path("new").exists());
}

#[test]
fn directories_that_cannot_be_written_are_named() {
    let bench = stored();
    // A file where a directory is needed refuses every user, the superuser too.
    bench.file("file", "precious");
    bench.run("build file/idx prints.jsonl").refused(6, &["file/idx"]);
    bench.run("dedup prints.jsonl -o file/out").refused(6, &["file/out"]);
    bench.run("dedup prints.jsonl -o file").refused(6, &["file"]);
    bench.run("pairs prints.jsonl -o file/pairs.tsv").refused(6, &["file"]);
    bench.run("build other prints.jsonl --tmp file/tmp").refused(6, &["file/tmp"]);
    bench.run("fingerprint prints.jsonl --rejects file/bad").refused(6, &["file/bad"]);
    assert_eq!(bench.read("file"), "precious");
    assert_eq!(bench.export("idx"), EXPORTED);
}

#[test]
fn files_without_permission_are_named() {
    use std::os::unix::fs::PermissionsExt;

    let bench = stored();
    let shut = std::fs::Permissions::from_mode(0o000);
    bench
        .file("shut.jsonl", "{}")
        .file("docs/a.txt", "sunny days")
        .file("docs/inner/b.txt", "rain");
    for name in ["shut.jsonl", "docs/inner"] {
        std::fs::set_permissions(bench.path(name), shut.clone()).unwrap();
    }
    if std::fs::File::open(bench.path("shut.jsonl")).is_ok() {
        eprintln!("skipped: this user may read everything, so no permission can be missing");
        return;
    }
    bench
        .run("build other shut.jsonl")
        .refused(6, &["shut.jsonl", "Permission denied", "check the permissions"]);
    assert!(!bench.path("other").exists());
    let outcome = bench.ok("fingerprint docs");
    assert!(outcome.stderr.contains("inner"), "{}", outcome.stderr);
    assert_eq!(outcome.json().len(), 1);
    std::fs::set_permissions(bench.path("docs/inner"), std::fs::Permissions::from_mode(0o755))
        .unwrap();
}

#[test]
fn an_index_that_another_process_writes_is_left_alone() {
    let bench = stored();
    let mut command = bench.command("insert idx -");
    let mut writer = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = writer.stdin.take().unwrap();
    stdin.write_all(b"{\"id\":\"d\",\"fingerprint\":\"0000000000000000\"}\n").unwrap();
    // What was read is written at once; seeing it means that the other process has the lock.
    while !bench.export("idx").contains("\"d\"") {
        assert!(writer.try_wait().unwrap().is_none(), "the writer ended by itself");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let locked = ["idx", "in use by another process", "wait"];
    bench.run("remove idx --id a").refused(5, &locked);
    bench.run("insert idx prints.jsonl").refused(5, &locked);
    bench.run("build idx prints.jsonl").refused(5, &locked);
    bench.run("index merge idx").refused(5, &locked);
    bench.ok("query idx --fingerprint 00000000000000ff");
    drop(stdin);
    assert!(writer.wait().unwrap().success());
    bench.ok("remove idx --id d");
    assert_eq!(bench.export("idx"), EXPORTED);
}

#[test]
fn fingerprints_of_another_width_are_refused_with_both_sides() {
    let bench = stored();
    bench.file("a.u32", [0; 4]);
    let both = ["64-bit", "32"];
    bench.run("query idx --fingerprint 0123abcd").refused(2, &["0123abcd", "64-bit"]);
    bench.run("explain idx --fingerprint 0123abcd").refused(2, &["0123abcd", "64-bit"]);
    bench.run("query idx --fingerprint 00000000000000ff --bits 32").refused(1, &both);
    bench.run("build idx prints.jsonl --bits 32").refused(1, &both);
    bench.run("insert idx prints.jsonl --bits 32").refused(1, &both);
    for verb in ["build idx", "insert idx", "query idx", "dedup -o out --against idx"] {
        bench.run(&format!("{verb} a.u32")).refused(1, &["a.u32", "32-bit", "index has 64-bit"]);
    }
    assert_eq!(bench.export("idx"), EXPORTED);
}

#[test]
fn settings_that_differ_from_the_stored_ones_are_refused_with_both_sides() {
    let bench = stored();
    bench.file("texts.jsonl", "{\"id\":\"t\",\"text\":\"sunny days\"}\n");
    bench.run("build idx prints.jsonl --plan 10").refused(1, &["plan", "\"4\"", "\"10\""]);
    bench.run("insert idx prints.jsonl --plan 10").refused(1, &["plan", "\"4\"", "\"10\""]);
    bench.run("build idx prints.jsonl -k 5").refused(1, &["distance", "\"3\"", "\"5\""]);
    bench.run("build idx texts.jsonl --pipeline post").refused(1, &["pipeline", "hamdex-text"]);
    for verb in [
        "build idx texts.jsonl",
        "insert idx texts.jsonl",
        "query idx texts.jsonl",
        "query idx --text sunny",
    ] {
        bench.run(verb).refused(1, &["idx", "built from fingerprints only"]);
    }
    assert_eq!(bench.export("idx"), EXPORTED);
    bench.ok("build words texts.jsonl");
    let before = bench.export("words");
    bench.run("insert words texts.jsonl --ngram 5").refused(1, &["pipeline", "ngram=5"]);
    assert_eq!(bench.export("words"), before);
}

#[test]
fn an_index_of_another_format_is_refused_and_left_as_it_is() {
    let bench = Bench::new();
    bench.file("prints.jsonl", PRINTS);
    bench.ok("insert idx prints.jsonl");
    let log = std::fs::read_dir(bench.path("idx")).unwrap().map(|entry| entry.unwrap().path());
    let log = log.into_iter().find(|path| path.extension().is_some_and(|e| e == "log")).unwrap();
    let written = std::fs::read(&log).unwrap();
    std::fs::write(&log, with_format(&written, 9)).unwrap();
    let before = contents(&bench.path("idx"));
    for verb in [
        "query idx --fingerprint 00000000000000ff",
        "build idx prints.jsonl",
        "insert idx prints.jsonl",
        "remove idx --id a",
        "pairs idx",
        "clusters idx",
        "dedup prints.jsonl -o out --against idx",
        "explain idx --fingerprint 00000000000000ff",
        "stats idx",
        "check idx",
        "index merge idx",
        "compact idx",
        "repair idx new",
        "export idx",
        "build idx prints.jsonl --resume",
        "build idx --abandon",
    ] {
        bench
            .run(verb)
            .refused(4, &["format version 9", "versions up to 8", "build the index again"]);
        assert!(contents(&bench.path("idx")) == before, "{verb} changed the index");
    }
    std::fs::write(&log, written).unwrap();
    assert_eq!(bench.export("idx"), EXPORTED);
}

/// Puts another format version into the header, which the first record of the log holds.
///
/// A log record of the storage engine is a masked CRC-32C, a length, a kind and the payload; the
/// checksum covers the last two.
fn with_format(log: &[u8], format: u32) -> Vec<u8> {
    let mut log = log.to_vec();
    let magic = log.windows(6).position(|bytes| bytes == b"hamdex").unwrap();
    log[magic + 6..magic + 10].copy_from_slice(&format.to_be_bytes());
    let len = usize::from(u16::from_le_bytes([log[4], log[5]]));
    let sum = crc32c(&log[6..7 + len]).rotate_right(15).wrapping_add(0xa282_ead8);
    log[..4].copy_from_slice(&sum.to_le_bytes());
    log
}

fn crc32c(bytes: &[u8]) -> u32 {
    let fold = |sum: u32, _| (sum >> 1) ^ (0x82f6_3b78 & 0_u32.wrapping_sub(sum & 1));
    !bytes.iter().fold(!0, |sum, &byte| (0..8).fold(sum ^ u32::from(byte), fold))
}

/// Every file of a directory with its bytes.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

#[test]
fn damage_is_told_by_check_and_by_whoever_meets_it() {
    let bench = Bench::new();
    bench.file("many.u64", (0..5000_u64).flat_map(u64::to_le_bytes).collect::<Vec<u8>>());
    bench.ok("build idx many.u64");
    let tables: Vec<_> = contents(&bench.path("idx")).into_keys().collect();
    for path in tables.iter().filter(|path| path.extension().is_some_and(|e| e == "sst")) {
        let mut bytes = std::fs::read(path).unwrap();
        bytes[100] ^= 1;
        std::fs::write(path, bytes).unwrap();
    }
    let check = bench.run("check idx");
    assert_eq!(check.status, 1, "{check:?}");
    assert!(check.stderr.contains("idx") && check.stderr.contains("again"), "{check:?}");
    let export = bench.run("export idx");
    assert_eq!(export.status, 4, "{export:?}");
    assert!(export.stderr.contains("damaged index"), "{export:?}");
}

#[test]
fn a_repair_leaves_the_damaged_index_and_makes_another() {
    let bench = Bench::new();
    bench.file("prints.jsonl", PRINTS);
    bench.ok("insert idx prints.jsonl");
    bench.ok("compact idx");
    assert_eq!(bench.ok("check idx --deep").stdout, "3 documents, 3 fingerprints, 0 problems\n");
    let tables = contents(&bench.path("idx"));
    // A table file tells in itself which family it is of.
    let of_the_last_table = |bytes: &[u8]| bytes.windows(10).any(|part| part == b"table003.1");
    let (path, sound) = tables
        .iter()
        .filter(|(path, _)| path.extension().is_some_and(|e| e == "sst"))
        .find(|(_, bytes)| of_the_last_table(bytes))
        .unwrap();
    let mut bytes = sound.clone();
    bytes[5] ^= 1;
    std::fs::write(path, bytes).unwrap();
    assert_eq!(bench.run("check idx --deep").status, 1);
    let before = contents(&bench.path("idx"));
    let report = &bench.ok("repair idx new --json").json()[0];
    assert_eq!((&report["documents"], &report["problem_count"]), (&3.into(), &0.into()));
    assert!(bench.ok("repair idx other").stdout.contains("documents"));
    assert!(contents(&bench.path("idx")) == before, "the damaged index is touched");
    assert_eq!(bench.export("new"), EXPORTED);
    bench.run("repair idx new").refused(1, &["already holds"]);
}

#[test]
fn indexes_stand_alone_where_documents_are_read() {
    let bench = stored();
    bench.run("pairs idx prints.jsonl").refused(2, &["cannot be combined"]);
    bench.run("clusters prints.jsonl idx").refused(2, &["cannot be combined"]);
}

#[test]
fn the_doctor_tells_a_missing_a_damaged_and_a_foreign_seal() {
    let bench = stored();
    bench.file("more.jsonl", "{\"id\":\"d\",\"fingerprint\":\"0000000000000000\"}\n");
    bench.ok("build other prints.jsonl");
    let foreign = fs::read(bench.path("other/hamdex.seal")).unwrap();
    for _ in 0..3 {
        bench.ok("insert idx more.jsonl");
    }
    let seal = bench.path("idx/hamdex.seal");
    let whole = fs::read(&seal).unwrap();
    let graded = || {
        let outcome = bench.run("doctor idx --json");
        let line = outcome.json().into_iter().find(|line| line["check"] == "seal").unwrap();
        let found = line["found"].as_str().unwrap().to_owned();
        (outcome.status, line["grade"].as_str().unwrap().to_owned(), found)
    };
    assert_eq!(graded().1, "good");
    for at in [0, 1, 8, 20, 100, 1000, 4000] {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xff;
        fs::write(&seal, bytes).unwrap();
        let (status, grade, found) = graded();
        assert_eq!((status, &*grade), (1, "bad"), "byte {at}: {found}");
        assert!(found.contains("damaged"), "{found}");
        for verb in ["check", "stats"] {
            let outcome = bench.ok(&format!("{verb} idx"));
            assert!(outcome.stderr.contains("hamdex.seal"), "{verb}: {}", outcome.stderr);
        }
    }
    fs::write(&seal, foreign).unwrap();
    let (status, grade, found) = graded();
    assert_eq!((status, &*grade), (1, "bad"), "{found}");
    fs::remove_file(&seal).unwrap();
    let (status, grade, found) = graded();
    assert_eq!((status, &*grade), (1, "bad"), "{found}");
    assert!(found.contains("missing"), "{found}");
}

#[test]
fn a_repair_does_without_the_list_of_files() {
    for name in ["CURRENT", "MANIFEST"] {
        let bench = stored();
        let files = fs::read_dir(bench.path("idx")).unwrap().map(|entry| entry.unwrap().path());
        let file = files
            .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(name))
            .max()
            .unwrap();
        let mut bytes = fs::read(&file).unwrap();
        bytes[2] ^= 0xff;
        fs::write(&file, bytes).unwrap();
        assert_ne!(bench.run("stats idx").status, 0, "{name}");
        let outcome = bench.ok("repair idx repaired --json");
        let summary = &outcome.json()[0];
        assert_eq!((&summary["documents"], &summary["from_files"]), (&3.into(), &true.into()));
        assert_eq!(bench.export("repaired"), PRINTS);
    }
}

#[test]
fn what_cannot_be_repaired_is_not_sent_back_to_repair() {
    let bench = stored();
    for entry in fs::read_dir(bench.path("idx")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "sst" || extension == "log") {
            fs::remove_file(&path).unwrap();
        }
    }
    let outcome = bench.run("repair idx repaired");
    assert_ne!(outcome.status, 0);
    assert!(!outcome.stderr.contains("'hamdex index repair'"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("'hamdex index restore'"), "{}", outcome.stderr);
    assert!(!bench.path("repaired").exists());
}

#[test]
fn a_text_given_as_a_file_is_refused_with_the_option_for_texts() {
    let bench = stored();
    let query = |input: &str| outcome(bench.command("query idx").arg(input).output().unwrap());
    query("sunny days are here").refused(2, &["sunny days are here: no such file", "--text"]);
    query("absent.jsonl").refused(6, &["absent.jsonl"]);
    bench.file("in two words.jsonl", "{\"fingerprint\":\"00000000000000ff\"}\n");
    assert_eq!(query("in two words.jsonl").status, 0);
}
