//! Inputs: every form of document is read, and gets the key that the manual promises.

use std::io::Write;

use serde_json::json;

use crate::support::{Bench, Outcome};

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
fn field_names_can_be_chosen() {
    let bench = Bench::new();
    bench.file("rows.ndjson", "{\"key\":\"k\",\"body\":\"some words\",\"text\":7}\n");
    let outcome = bench.ok("fingerprint rows.ndjson --id-field key --text-field body");
    assert_eq!(ids(&outcome), [json!("k")]);
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
