//! Inputs: every form of document is read, and gets the key that the manual promises.
//!
//! And ordinary trouble that no folder of fixtures can hold: pipes, rights, growth, size, chance.

use std::fmt::Write as _;
use std::io::Write;

use serde_json::{Value, json};

use super::first_contact::whole;
use crate::support::{Bench, Outcome, json_lines};

fn ids(outcome: &Outcome) -> Vec<serde_json::Value> {
    outcome.json().into_iter().map(|row| row["id"].clone()).collect()
}

#[test]
fn json_rows_keep_their_ids_and_lines_without_one_are_named() {
    let bench = Bench::new();
    let rows = "\u{feff}{\"id\":\"a\",\"text\":\"one two\"}\r\n\n{\"text\":\"three\"}\n{\"id\":7,\"text\":\"x y\"}";
    bench.file("rows.jsonl", rows);
    let outcome = bench.ok("fingerprint rows.jsonl --segment words");
    assert_eq!(ids(&outcome), [json!("a"), json!("rows.jsonl:3"), json!(7)]);
    assert_eq!(outcome.json()[0]["features"], 2);
    let piped = bench.feed("fingerprint -", rows.as_bytes());
    assert_eq!(ids(&piped), [json!("a"), json!("-:3"), json!(7)]);
}

#[test]
fn standard_input_has_the_format_that_was_named() {
    let bench = Bench::new();
    let rows: [(&str, &[u8]); 3] = [
        ("csv", b"id,text\na,sunny days are here\nb,something else\n"),
        ("json", b"[{\"id\":\"a\",\"text\":\"sunny days\"},\n{\"id\":\"b\",\"text\":\"x y\"}]"),
        ("jsonl", b"{\"id\":\"a\",\"text\":\"sunny days\"}\n"),
    ];
    for (format, rows) in rows {
        bench.file(&format!("rows.{format}"), rows);
        let file = bench.ok(&format!("fingerprint rows.{format}"));
        let piped = bench.feed(&format!("fingerprint - --input-format {format}"), rows);
        assert_eq!((piped.status, piped.json()), (0, file.json()), "{format}");
    }
    let text = bench.feed("fingerprint - --input-format text", b"sunny days");
    assert_eq!(ids(&text), ["-"]);
    let raw: Vec<u8> = (0..999_u64).flat_map(|n| (n << 20).to_le_bytes()).collect();
    bench.file("raw.u64", &raw).ok("build stored raw.u64 -k 3");
    let built = bench.feed("build piped - --input-format u64 -k 3", &raw);
    assert_eq!(built.status, 0);
    assert!(!built.stderr.contains("text"), "{}", built.stderr);
    assert_eq!(bench.export("piped"), bench.export("stored"));
    bench.feed("fingerprint - --input-format parquet", b"PAR1").refused(3, &["regular file"]);
}

#[test]
fn field_names_can_be_chosen() {
    let bench = Bench::new();
    bench.file("rows.ndjson", "{\"key\":\"k\",\"body\":\"some words\",\"text\":7}\n");
    let outcome = bench.ok("fingerprint rows.ndjson --id-field key --text-field body");
    assert_eq!(ids(&outcome), [json!("k")]);
    let outcome = bench.ok("fingerprint rows.ndjson --id-field key");
    assert_eq!(ids(&outcome), [json!("k")], "a text that is none is no reason to stop");
    bench.file("rows.ndjson", "{\"id\":1,\"turns\":[{\"who\":\"a\",\"said\":\"some words\"}]}\n");
    let run = bench.run("fingerprint rows.ndjson");
    run.refused(3, &["(fields: id, turns.who, turns.said)", "--text-field"]);
    let joined = bench.ok("fingerprint rows.ndjson --text-field turns.said,turns.who").json();
    bench.file("flat.jsonl", "{\"id\":1,\"text\":\"some words\\na\"}\n");
    assert_eq!(joined, bench.ok("fingerprint flat.jsonl").json());
}

#[test]
fn compressed_files_are_read_through_all_their_members() {
    let bench = Bench::new();
    let member = |id: &str| {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        writeln!(gz, "{{\"id\":\"{id}\",\"text\":\"some words\"}}").unwrap();
        gz.finish().unwrap()
    };
    bench.file("rows.jsonl.gz", [member("a"), member("b")].concat());
    let row = b"{\"id\":\"c\",\"text\":\"some words\"}\n";
    bench.file("rows.jsonl.zst", zstd::encode_all(&row[..], 1).unwrap());
    let outcome = bench.ok("fingerprint rows.jsonl.gz rows.jsonl.zst");
    assert_eq!(ids(&outcome), [json!("a"), json!("b"), json!("c")]);
    let whole = std::fs::read(bench.path("rows.jsonl.gz")).unwrap();
    bench.file("cut.jsonl.gz", &whole[..whole.len() - 9]);
    assert_eq!(bench.run("fingerprint cut.jsonl.gz").status, 3);
    bench.run("build idx cut.jsonl.gz").refused(3, &["cut.jsonl.gz"]);
    assert!(!bench.path("idx").exists());
    bench.ok("build idx rows.jsonl.gz");
    let before = bench.export("idx");
    bench.run("build idx cut.jsonl.gz").refused(3, &["cut.jsonl.gz"]);
    assert_eq!(bench.export("idx"), before);
}

#[test]
fn files_of_a_directory_are_documents_named_by_their_path() {
    let bench = Bench::new();
    bench
        .file("docs/b/two.html", "<html><body><p>sunny days are here</p></body></html>")
        .file("docs/a.txt", "sunny days are here")
        .file("docs/c.md", "something else altogether")
        .file("docs/b/picture.png", b"\x89PNG\x00\x00");
    let rows = bench.ok("fingerprint docs").json();
    let ids: Vec<_> = rows.iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["a.txt", "b/two.html", "c.md"]);
    assert_eq!(rows[0]["fingerprint"], rows[1]["fingerprint"], "tags of a page do not count");
    let summary = bench.ok("build idx docs --json").json();
    assert_eq!((&summary[0]["documents"], &summary[0]["skipped_binary"]), (&3.into(), &1.into()));
}

#[test]
fn a_text_file_is_one_document() {
    let bench = Bench::new();
    bench.file("notes.txt", "sunny days").file("noise.txt", b"a\x00b");
    assert_eq!(
        ids(&bench.ok("fingerprint ./notes.txt notes.txt")),
        [json!("./notes.txt"), json!("notes.txt")]
    );
    bench.run("fingerprint noise.txt --strict").refused(3, &["noise.txt: not a text file"]);
}

#[test]
fn raw_fingerprints_are_keyed_by_position_over_all_files() {
    let bench = Bench::new();
    let bytes = |values: &[u64]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    bench.file("one.u64", bytes(&[1, 2])).file("two.u64", bytes(&[0xff00_0000_0000_0000]));
    bench.ok("build idx one.u64 two.u64");
    let lines = [
        "{\"id\":0,\"fingerprint\":\"0000000000000001\"}",
        "{\"id\":1,\"fingerprint\":\"0000000000000002\"}",
        "{\"id\":2,\"fingerprint\":\"ff00000000000000\"}",
    ];
    assert_eq!(bench.export("idx").lines().collect::<Vec<_>>(), lines);
    assert_eq!(bench.ok("pairs idx").stdout, "0\t1\t2\n");
    assert_eq!(
        bench.ok("remove idx --id 1 --json").stdout,
        "{\"removed\":1,\"by_number\":1,\"not_found\":0}\n"
    );
}

#[test]
fn widths_come_from_raw_files_and_differing_ones_are_refused() {
    let bench = Bench::new();
    bench.file("a.u32", [0; 8]).file("a.u128", [0; 32]).file("a.u64", [0; 16]);
    for (name, digits) in [("a.u32", 8), ("a.u128", 32), ("a.u64", 16)] {
        let row = &bench.ok(&format!("fingerprint {name}")).json()[1];
        assert_eq!(row["fingerprint"].as_str().unwrap().len(), digits);
    }
    bench
        .run("build idx a.u32 --bits 64")
        .refused(1, &["a.u32", "32-bit", "--bits asks for 64-bit"]);
    bench.run("build idx a.u32 a.u64").refused(3, &["a.u64", "64-bit", "a.u32", "32-bit"]);
    assert!(!bench.path("idx").exists());
}

#[test]
fn inputs_mix_and_every_width_is_answered() {
    let bench = Bench::new();
    bench
        .file("a.jsonl", "{\"id\":\"a\",\"text\":\"sunny days are here again\"}\n")
        .file("docs/b.txt", "sunny days are here again");
    for bits in [32, 64, 128] {
        let index = format!("idx{bits}");
        bench.ok(&format!("build {index} a.jsonl docs --bits {bits}"));
        let found = bench.ok(&format!("query {index} a.jsonl -k {}", bits / 4)).json();
        let wanted = |id: &str| json!({ "query": "a", "id": id, "distance": 0 });
        assert_eq!(found, [wanted("a"), wanted("b.txt")]);
    }
}

/// A text of words that hardly any other one has.
fn text(n: u64) -> String {
    let mut x = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut text = String::new();
    for _ in 0..12 {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let _ = write!(text, "w{:x} ", x >> 40);
    }
    text
}

fn rows(range: std::ops::Range<u64>) -> String {
    range.fold(String::new(), |mut rows, n| {
        let _ = writeln!(rows, "{{\"id\":{n},\"text\":\"{}\"}}", text(n));
        rows
    })
}

fn report(bench: &Bench) -> Value {
    serde_json::from_str(&bench.read("out/report.json")).unwrap()
}

#[test]
fn templated_lines_are_removed_with_a_warning_that_shows_the_template() {
    let bench = Bench::new();
    let towns = ["Oslo", "Rome", "Lima", "Cairo", "Quito", "Delhi", "Tunis", "Paris", "Minsk"];
    let lines = (0..2000_usize).fold(rows(0..50), |mut rows, n| {
        let (town, degrees) = (towns[n % towns.len()], n % 37);
        let _ = writeln!(
            rows,
            "{{\"id\":\"w{n}\",\"text\":\"Weather report for the city of {town}: the temperature \
             is {degrees} degrees, with light wind from the west and a clear sky until the evening\"}}"
        );
        rows
    });
    bench.file("a.jsonl", lines);
    let ran = bench.ok("dedup a.jsonl -o out --quiet");
    let warning = ran.stderr.lines().find(|line| line.starts_with("warning: one group has"));
    assert!(warning.is_some_and(|line| line.contains("Weather report for the city of")), "{ran:?}");
    let report = report(&bench);
    let crowd = &report["crowds"][0];
    assert!(crowd["share"].as_f64().unwrap() > 0.01, "{crowd}");
    assert!(crowd["template"].as_str().unwrap().contains("degrees"), "{crowd}");
    assert!(report["sources"][0]["removed"].as_u64().unwrap() > 1000);
    assert_eq!(report["warnings"].as_array().unwrap().len(), 2, "the crowd and the source");
    whole(&bench, &report).unwrap();
}

#[test]
fn a_row_of_a_hundred_thousand_columns_is_a_row() {
    let bench = Bench::new();
    let header: Vec<String> = (0..100_000).map(|n| format!("c{n}")).collect();
    let cells = "1,".repeat(100_000);
    let table = format!("{},text\n{cells}{}\n{cells}{}\n", header.join(","), text(1), text(1));
    let fields: Vec<String> = header.iter().map(|name| format!("\"{name}\":1")).collect();
    let object = format!("{{{},\"text\":\"{}\"}}\n", fields.join(","), text(1));
    bench.file("a.csv", table).file("b.jsonl", object);
    bench.ok("dedup a.csv b.jsonl -o out");
    let report = report(&bench);
    assert_eq!((&report["rows"], &report["kept"]), (&3.into(), &1.into()));
}

#[test]
fn an_unreadable_file_among_good_ones_is_a_reject() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new();
    bench.file("d/a.jsonl", rows(0..20)).file("d/b.txt", text(50)).file("d/c.jsonl", rows(20..22));
    // To the superuser every file is readable: a link to nothing within a file's name is not.
    std::fs::set_permissions(bench.path("d/c.jsonl"), PermissionsExt::from_mode(0o000)).unwrap();
    let ran = bench.ok("dedup d -o out");
    let report = report(&bench);
    let readable = std::fs::File::open(bench.path("d/c.jsonl")).is_ok();
    let expected = if readable { (23, 0) } else { (22, 1) };
    assert_eq!((report["rows"].as_u64().unwrap(), report["rejects"].as_u64().unwrap()), expected);
    assert_eq!(ran.stderr.contains("d/c.jsonl"), !readable);
    whole(&bench, &report).unwrap();
}

#[test]
fn pipes_in_a_directory_are_skipped_and_said() {
    let bench = Bench::new();
    bench.file("d/a.jsonl", rows(0..3));
    let made = std::process::Command::new("mkfifo").arg(bench.path("d/pipe")).status();
    assert!(made.unwrap().success());
    std::os::unix::fs::symlink("a.jsonl", bench.path("d/link.jsonl")).unwrap();
    let ran = bench.ok("dedup d -o out");
    let line = "d: 1 data file, 1 symbolic link skipped, 1 special file skipped";
    assert!(ran.stderr.lines().any(|told| told == line), "{}", ran.stderr);
    assert_eq!(report(&bench)["rows"], 3);
}

#[test]
fn a_file_that_grows_is_taken_as_it_was_first_read() {
    let bench = Bench::new();
    bench.file("a.jsonl", rows(0..20_000)).file("b.jsonl", rows(20_000..20_100));
    let path = bench.path("a.jsonl");
    let stop = std::sync::atomic::AtomicBool::new(false);
    let ran = std::thread::scope(|scope| {
        scope.spawn(|| {
            use std::io::Write as _;
            let mut file = std::fs::File::options().append(true).open(&path).unwrap();
            let mut n = 1_000_000;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                file.write_all(rows(n..n + 10).as_bytes()).unwrap();
                n += 10;
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
        });
        let ran = bench.run("dedup a.jsonl b.jsonl -o out --verify none -k 0 --pipeline post");
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        ran
    });
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("warning: a.jsonl grew while it was read"), "{}", ran.stderr);
    let report = report(&bench);
    assert!(report["rows"].as_u64().unwrap() >= 20_100);
    let kept = json_lines(&bench.read("out/kept.jsonl"));
    assert_eq!(kept.len() as u64, report["kept"].as_u64().unwrap());
    // No row of the second file was mistaken for another one.
    let last: Vec<_> = kept[kept.len() - 100..].iter().map(|row| row["id"].clone()).collect();
    assert_eq!(last, (20_000..20_100).map(Value::from).collect::<Vec<_>>());
}

#[test]
fn names_of_files_come_from_a_list_with_zero_bytes_or_lines() {
    let bench = Bench::new();
    bench.file("a b.jsonl", rows(0..3)).file("c.jsonl", rows(2..5));
    bench.file("lines", "a b.jsonl\r\nc.jsonl\n").file("zeros", "a b.jsonl\0c.jsonl\0");
    for list in ["lines", "zeros"] {
        bench.ok(&format!("dedup --files-from {list} -o {list}.out"));
        let report: Value =
            serde_json::from_str(&bench.read(&format!("{list}.out/report.json"))).unwrap();
        assert_eq!((&report["rows"], &report["removed"]), (&6.into(), &1.into()), "{list}");
    }
    let fed = bench.feed("dedup --files-from - -o out", b"c.jsonl\n");
    assert_eq!(fed.status, 0, "{}", fed.stderr);
    assert_eq!(report(&bench)["rows"], 3);
}

/// A row of some kind, by chance: good, equal to another, without text, or no row at all.
fn random_row(random: &mut fastrand::Rng) -> String {
    let id = match random.u8(0..6) {
        0 => "null".to_owned(),
        1 => format!("\"s{}\"", random.u8(0..4)),
        2 => "1.5".to_owned(),
        _ => random.u16(0..20).to_string(),
    };
    let body = match random.u8(0..20) {
        0 => "null".to_owned(),
        1 => "\"\"".to_owned(),
        2 => "\"\u{1f44d}\"".to_owned(),
        3 => random.u8(..).to_string(),
        _ => format!("\"{}\"", text(random.u64(0..60))),
    };
    match random.u8(0..30) {
        0 => "{\"id\":1,\"text\":".to_owned(),
        1 => "[]".to_owned(),
        2 => format!("{{\"id\":{id}}}"),
        3 => format!("{{\"text\":{body}}}"),
        4 => String::new(),
        _ => format!("{{\"url\":\"u{}\",\"id\":{id},\"text\":{body}}}", random.u8(0..40)),
    }
}

#[test]
fn every_row_of_a_random_folder_is_kept_removed_or_rejected() {
    let seed = std::env::var("HAMDEX_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(2311);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    for round in 0..20 {
        let bench = Bench::new();
        for file in 0..random.u8(1..5) {
            let rows: Vec<String> =
                (0..random.u8(1..60)).map(|_| random_row(&mut random)).collect();
            let end = if random.bool() { "\n" } else { "\r\n" };
            bench.file(&format!("d/{file}.jsonl"), rows.join(end));
        }
        let options =
            ["", "--unique-by url", "--prefer longest", "--drop-empty", "--verify none -k 3"];
        let options = options[random.usize(..options.len())];
        let ran = bench.run(&format!("dedup d -o out --max-bad 100% {options}"));
        if ran.status == 3 {
            assert!(!bench.path("out").exists(), "round {round}: {ran:?}");
            continue;
        }
        assert_eq!(ran.status, 0, "round {round}: {ran:?}");
        whole(&bench, &report(&bench))
            .unwrap_or_else(|what| panic!("round {round} {options}: {what}"));
    }
}
