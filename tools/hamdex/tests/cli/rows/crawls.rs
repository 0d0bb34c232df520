//! WARC files: pages of a crawl are documents, and what else it holds is counted.

use std::io::Write;

use serde_json::json;

use crate::support::{Bench, json_lines};

const QUICK: &str = "--pipeline page -k 3";

/// A page as sites make them: much around a text.
pub(crate) fn page(navigation: &str, text: &str) -> String {
    let body = format!("<p>{text}</p>").repeat(12);
    format!(
        "<html><head><title>a page</title></head><body><nav><a href='/'>{navigation}</a></nav>\
         <article><h1>a page</h1>{body}</article></body></html>"
    )
}

const SUN: &str = "Sunny days are here again, and everybody goes outside to sit in the grass.";
const SNAIL: &str = "Researchers measured how fast snails climb wet glass: small ones are faster.";

fn record(fields: &str, block: &[u8]) -> Vec<u8> {
    let head = format!("WARC/1.1\r\n{fields}Content-Length: {}\r\n\r\n", block.len());
    [head.as_bytes(), block, b"\r\n\r\n"].concat()
}

fn names(uri: &str, number: usize) -> String {
    format!(
        "WARC-Target-URI: {uri}\r\nWARC-Record-ID: <urn:uuid:{number}>\r\n\
         WARC-Date: 2026-11-{number:02}T00:00:00Z\r\n"
    )
}

pub(crate) fn response(uri: &str, number: usize, head: &str, body: &[u8]) -> Vec<u8> {
    let kind = "WARC-Type: response\r\nContent-Type: application/http; msgtype=response\r\n";
    record(&format!("{kind}{}", names(uri, number)), &[head.as_bytes(), b"\r\n", body].concat())
}

pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n";

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

fn chunked(bytes: &[u8]) -> Vec<u8> {
    let chunk =
        |chunk: &[u8]| [format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat();
    [bytes.chunks(100).flat_map(chunk).collect(), b"0\r\n\r\n".to_vec()].concat()
}

/// A crawl: three pages of which two are alike, and all sorts of other records.
fn crawl() -> Vec<Vec<u8>> {
    let (sun, snail) = (page("home", SUN), page("contact us", SNAIL));
    let again = page("another menu altogether", SUN);
    let coded = format!("{OK}Transfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n");
    vec![
        record("WARC-Type: warcinfo\r\nContent-Type: application/warc-fields\r\n", b"a: b\r\n"),
        record(&format!("WARC-Type: request\r\n{}", names("http://a.example/", 1)), b"GET /\r\n"),
        response("http://a.example/", 2, OK, sun.as_bytes()),
        response("http://b.example/", 3, &coded, &chunked(&gzip(snail.as_bytes()))),
        response("http://gone.example/", 4, "HTTP/1.1 404 Not Found\r\n", b"gone"),
        response("http://c.example/", 5, OK, again.as_bytes()),
        response(
            "http://p.example/",
            6,
            "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n",
            b"\x89PNG",
        ),
        response("http://l.example/", 7, OK, b"\0\x01\x02\0\0\0\0\0\0"),
        response(
            "http://a.example/",
            8,
            OK,
            page("home", "Something new stands there. ").as_bytes(),
        ),
        record(
            "WARC-Type: revisit\r\nContent-Type: application/http\r\n",
            b"HTTP/1.1 200 OK\r\n\r\n",
        ),
    ]
}

#[test]
fn pages_of_a_crawl_are_documents_by_their_address() {
    let bench = Bench::new();
    bench.file("crawl.warc", crawl().concat());
    bench.file("crawl.warc.gz", crawl().iter().flat_map(|record| gzip(record)).collect::<Vec<_>>());
    let frames = crawl().into_iter().flat_map(|record| zstd::encode_all(&record[..], 1).unwrap());
    bench.file("crawl.warc.zst", frames.collect::<Vec<_>>());
    let mut same = Vec::new();
    for name in ["crawl.warc", "crawl.warc.gz", "crawl.warc.zst"] {
        let outcome = bench.ok(&format!("fingerprint {name} {QUICK}").replace(" -k 3", ""));
        let told = "skipped 1 responses with a status other than 200 and 2 that are not text";
        assert!(outcome.stderr.contains(told), "{}", outcome.stderr);
        same.push(outcome.stdout);
    }
    let rows = json_lines(&same[0]);
    let ids: Vec<_> = rows.iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(ids[..3], ["http://a.example/", "http://b.example/", "http://c.example/"]);
    assert_eq!(rows[0]["fingerprint"], rows[2]["fingerprint"], "the menu does not count");
    assert!(same.iter().all(|other| *other == same[0]));
}

#[test]
fn a_crawl_goes_through_dedup_and_captures_are_told_apart_by_record() {
    let bench = Bench::new();
    let gz: Vec<u8> = crawl().iter().flat_map(|record| gzip(record)).collect();
    bench.file("crawl.warc.gz", &gz);
    bench.ok(&format!("dedup crawl.warc.gz -o uri {QUICK} --unique-by url"));
    let kept = json_lines(&bench.read("uri/kept.jsonl"));
    assert_eq!(kept.len(), 2);
    assert_eq!(kept[0]["url"], "http://a.example/");
    assert_eq!(kept[0]["date"], "2026-11-02T00:00:00Z");
    assert_eq!(kept[0]["text"], page("home", SUN));
    assert_eq!(kept[1]["text"], page("contact us", SNAIL), "chunks and gzip are undone");
    let removed = json_lines(&bench.read("uri/duplicates.jsonl"));
    let second = removed.iter().find(|row| row["unique_by"] == "url").unwrap();
    assert_eq!((&second["at"], &second["id"]), (&json!("crawl.warc.gz:9"), &kept[0]["id"]));
    let report: serde_json::Value = serde_json::from_str(&bench.read("uri/report.json")).unwrap();
    assert_eq!((&report["skipped_status"], &report["skipped_type"]), (&json!(1), &json!(2)));

    bench.ok(&format!("dedup crawl.warc.gz -o rec {QUICK} --warc-id record --prefer newest:date"));
    let kept = json_lines(&bench.read("rec/kept.jsonl"));
    let ids: Vec<_> = kept.iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["<urn:uuid:3>", "<urn:uuid:5>", "<urn:uuid:8>"]);
    assert_eq!(kept[2]["url"], "http://a.example/");
    assert_eq!(bench.read("rec/rejects.jsonl"), "");
}

#[test]
fn a_crawl_is_taken_by_the_other_verbs_and_chosen_for() {
    let bench = Bench::new();
    bench.file("crawl.warc", crawl().concat());
    let built = bench.ok("build idx crawl.warc --on-repeat first");
    assert!(built.stderr.contains("pipeline text"), "{}", built.stderr);
    assert!(built.stdout.contains("repeated ids dropped"), "{}", built.stdout);
    bench
        .run("build other crawl.warc")
        .refused(3, &["crawl.warc:9", "crawl.warc:3", "--on-repeat"]);
    let found = bench.ok("query idx crawl.warc -k 0").json();
    assert!(
        found
            .iter()
            .any(|row| row["query"] == "http://a.example/" && row["id"] == "http://c.example/")
    );
    let pairs = bench.ok(&format!("pairs crawl.warc {QUICK}")).stdout;
    assert_eq!(pairs, "http://a.example/\thttp://c.example/\t0\t1.0000\n");
    let wet = record(
        &format!(
            "WARC-Type: conversion\r\nContent-Type: text/plain\r\n{}",
            names("http://w.example/", 1)
        ),
        SUN.as_bytes(),
    );
    bench.file("a.warc.wet.gz", gzip(&wet)).file("a.warc.wat.gz", gzip(&wet));
    let rows = bench.ok("fingerprint a.warc.wet.gz").json();
    assert_eq!(rows[0]["id"], "http://w.example/");
    bench.run("fingerprint a.warc.wat.gz").refused(2, &["metadata of a crawl"]);
}

#[test]
fn bombs_and_lies_of_a_crawl_are_bad_records_in_bounded_memory() {
    let bench = Bench::new();
    let zeros = gzip(&vec![0; 16 << 20]);
    let coded = format!("{OK}Content-Encoding: gzip\r\n");
    let bomb = response("http://bomb.example/", 1, &coded, &zeros.repeat(640 / 16));
    let mut long = gzip(
        format!("WARC/1.0\r\nWARC-Type: resource\r\nContent-Length: {}\r\n\r\n", 640_u64 << 20)
            .as_bytes(),
    );
    long.extend(zeros.repeat(640 / 16));
    let lie =
        b"WARC/1.0\r\nWARC-Type: resource\r\nContent-Length: 18000000000000000000\r\n\r\n".to_vec();
    let good = response("http://good.example/", 2, OK, page("home", SUN).as_bytes());
    let file = [gzip(&bomb), long, gzip(&lie), gzip(&good)].concat();
    assert!(file.len() < 8 << 20, "a bomb is small: {}", file.len());
    bench.file("crawl.warc.gz", &file);
    let outcome = crate::rows::bad_rows::confined(
        &bench,
        "fingerprint crawl.warc.gz --pipeline code --max-bad 3",
    );
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert_eq!(outcome.json().len(), 1, "{outcome:?}");
    for told in [
        "crawl.warc.gz at byte 0 (record 1): longer than 128 MiB",
        "(record 2): longer than 128 MiB",
        "before its Content-Length of 18000000000000000000",
    ] {
        assert!(outcome.stderr.contains(told), "no {told:?} in {}", outcome.stderr);
    }
    let strict = bench.run("fingerprint crawl.warc.gz --pipeline code --strict");
    strict.refused(3, &["(record 1)", "--strict"]);
}
