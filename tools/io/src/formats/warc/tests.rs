//! Records of plain and compressed files, whole and damaged.

use std::fmt::Write as _;
use std::io::{Cursor, Write};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;

/// Compresses one record.
type Pack = fn(&[u8]) -> Vec<u8>;

const SUN: &str = "<p>sunny days are here again</p>";

/// Returns a record with these fields around a block.
fn record(fields: &str, block: &[u8]) -> Vec<u8> {
    let head = format!("WARC/1.0\r\n{fields}Content-Length: {}\r\n\r\n", block.len());
    [head.as_bytes(), block, b"\r\n\r\n"].concat()
}

fn response(uri: &str, status: u32, kind: &str, body: &str) -> Vec<u8> {
    let fields = format!(
        "WARC-Type: response\r\nWARC-Target-URI: {uri}\r\nWARC-Record-ID: <urn:uuid:{uri}>\r\n\
         WARC-Date: 2026-11-22T00:00:00Z\r\nContent-Type: application/http; msgtype=response\r\n"
    );
    let http = format!("HTTP/1.1 {status} Any\r\nContent-Type: {kind}\r\n\r\n{body}");
    record(&fields, http.as_bytes())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

/// Returns five records: a description, a page, one with status 404, a plain text and a picture.
fn sample() -> Vec<Vec<u8>> {
    vec![
        record(
            "WARC-Type: warcinfo\r\nContent-Type: application/warc-fields\r\n",
            b"robots: obey\r\n",
        ),
        response("http://a.example/", 200, "text/html; charset=utf-8", SUN),
        response("http://b.example/", 404, "text/html", "gone"),
        record(
            "WARC-Type: conversion\r\nWARC-Target-URI: <http://c.example/>\r\nContent-Type: text/plain\r\n",
            "rain again\n".as_bytes(),
        ),
        response("http://d.example/", 200, "image/png", "\u{89}PNG"),
    ]
}

/// Returns one line for each record: its offset, and its address or why there is none.
fn told(bytes: &[u8]) -> Vec<String> {
    lines_of(Records::new(open::buffered(Cursor::new(bytes.to_vec()))).unwrap())
}

fn lines_of(mut records: Records) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(record) = records.next().unwrap() {
        assert_eq!(record.ordinal, lines.len() as u64);
        let mut line = format!("{} ", record.offset);
        match record.page {
            None => line.push('-'),
            Some(Err(reason)) => write!(line, "{reason}").unwrap(),
            Some(Ok((page, bytes))) => {
                let (id, text) = (page.id(WarcId::Uri).unwrap_or("?"), bytes.escape_ascii());
                write!(line, "{id} {} {text}", if page.html { "page" } else { "text" }).unwrap();
            }
        }
        lines.push(line);
    }
    lines
}

/// Returns the lines without the offsets.
fn bare(lines: &[String]) -> Vec<&str> {
    lines.iter().map(|line| line.split_once(' ').unwrap().1).collect()
}

const EXPECTED: [&str; 5] = [
    "-",
    "http://a.example/ page <p>sunny days are here again</p>",
    "HTTP status 404",
    "http://c.example/ text rain again\\n",
    "of type image/png, which is not text",
];

#[test]
fn records_are_the_same_however_they_are_compressed() {
    let records = sample();
    let plain = told(&records.concat());
    assert_eq!(bare(&plain), EXPECTED);
    let second = records[0].len();
    assert!(plain[1].starts_with(&format!("{second} ")), "{plain:?}");
    let zstandard = |bytes: &Vec<u8>| zstd::encode_all(&bytes[..], 1).unwrap();
    for members in [
        records.iter().map(|record| gzip(record)).collect::<Vec<_>>(),
        records.iter().map(zstandard).collect(),
    ] {
        let found = told(&members.concat());
        assert_eq!(bare(&found), EXPECTED);
        let fourth: usize = members[..3].iter().map(Vec::len).sum();
        assert!(found[3].starts_with(&format!("{fourth} ")), "{found:?}");
    }
    // Members that have nothing to do with records, as of pigz or bgzip.
    let blocks: Vec<u8> = records.concat().chunks(100).flat_map(gzip).collect();
    assert_eq!(bare(&told(&blocks)), EXPECTED);
    assert_eq!(bare(&told(&gzip(&records.concat()))), EXPECTED);
    assert_eq!(bare(&told(&zstandard(&records.concat()))), EXPECTED);
}

/// Returns the frame of a dictionary, which precedes all others.
fn with_length(dictionary: &[u8]) -> Vec<u8> {
    let mut length = u32::try_from(dictionary.len()).unwrap().to_be_bytes();
    length.reverse();
    [b"\x5d\x2a\x4d\x18", &length[..], dictionary].concat()
}

#[test]
fn frames_with_a_dictionary_before_them_are_read() {
    let records = sample();
    let samples: Vec<Vec<u8>> = (0..200)
        .map(|n| response(&format!("http://{n}.example/"), 200, "text/html", SUN))
        .collect();
    let dictionary = zstd::dict::from_samples(&samples, 4096).unwrap();
    let frames: Vec<u8> = records
        .iter()
        .flat_map(|record| {
            zstd::bulk::Compressor::with_dictionary(3, &dictionary)
                .unwrap()
                .compress(record)
                .unwrap()
        })
        .collect();
    for stored in [dictionary.clone(), zstd::encode_all(&dictionary[..], 3).unwrap()] {
        let file = [with_length(&stored), frames.clone()].concat();
        assert_eq!(bare(&told(&file)), EXPECTED);
    }
    assert!(bare(&told(&frames))[0].starts_with("damaged: "));
}

#[test]
fn what_is_wrong_with_one_record_is_told_and_the_next_ones_are_read() {
    let records = sample();
    let length = |record: &[u8], wrong: &str| {
        let text = String::from_utf8(record.to_vec()).unwrap();
        let at = text.find("Content-Length: ").unwrap() + 16;
        let end = at + text[at..].find('\r').unwrap();
        format!("{}{wrong}{}", &text[..at], &text[end..]).into_bytes()
    };
    let wrong: [(Vec<u8>, &str); 7] = [
        (b"stray bytes\r\nmore of them\r\n".to_vec(), "no record begins here"),
        (length(&records[1], "x"), "Content-Length is no number of bytes"),
        (length(&records[1], "-1"), "Content-Length is no number of bytes"),
        (length(&records[1], "10"), "goes on behind its Content-Length of 10"),
        (b"WARC/1.0\r\nWARC-Type: response\r\n\r\n".to_vec(), "no Content-Length"),
        (response("http://x/", 0, "a", "").replace_http(), "the record has no HTTP response"),
        (length(&records[1], "99999999999999999999"), "Content-Length is no number of bytes"),
    ];
    for (bad, reason) in &wrong {
        let file = [&records[0][..], bad, &records[1]].concat();
        let found = told(&file);
        let offset = records[0].len();
        assert_eq!(found[1], format!("{offset} {reason}"), "{found:?}");
        assert_eq!(bare(&found)[2..], [EXPECTED[1]], "{reason}");
        let members = [gzip(&records[0]), gzip(bad), gzip(&records[1])].concat();
        assert_eq!(bare(&told(&members)), [EXPECTED[0], *reason, EXPECTED[1]]);
    }
    // A length that is too long takes the next record with it, unless members tell them apart.
    let long = length(&records[1], "17000000000000000000");
    assert_eq!(told(&long).len(), 1);
    assert!(told(&long)[0].contains("before its Content-Length of 17000000000000000000"));
    let members = [gzip(&length(&records[1], "500")), gzip(&records[3])].concat();
    let found = told(&members);
    assert!(found[0].contains("bytes before its Content-Length of 500"), "{found:?}");
    assert_eq!(bare(&found)[1..], [EXPECTED[3]]);
}

/// Returns a record whose member contains others, which are not compressed again.
fn crawl_of_a_crawl(inner: &[u8]) -> Vec<u8> {
    let fields = "WARC-Type: resource\r\nContent-Type: text/plain\r\n";
    let mut packed = GzEncoder::new(Vec::new(), Compression::none());
    packed.write_all(&record(fields, inner)).unwrap();
    packed.finish().unwrap()
}

#[test]
fn what_threads_unpack_ahead_is_what_is_read_in_order() {
    let many: Vec<Vec<u8>> = (0..300)
        .map(|n| response(&format!("http://{n}.example/"), 200, "text/plain", &SUN.repeat(n % 40)))
        .collect();
    let frame = |bytes: &Vec<u8>| zstd::encode_all(&bytes[..], 1).unwrap();
    let dictionary = zstd::dict::from_samples(&many, 4096).unwrap();
    let mut learnt = with_length(&dictionary);
    for record in &many {
        let mut packing = zstd::bulk::Compressor::with_dictionary(3, &dictionary).unwrap();
        learnt.extend(packing.compress(record).unwrap());
    }
    let members: Vec<Vec<u8>> = many.iter().map(|record| gzip(record)).collect();
    let nested = crawl_of_a_crawl(&members.concat());
    let large =
        gzip(&record("WARC-Type: resource\r\nContent-Type: text/plain\r\n", &vec![b'x'; 9 << 20]));
    let damaged = |mut bytes: Vec<u8>| {
        (1..9).for_each(|part| bytes[part * 1000] ^= 0x55);
        bytes
    };
    let files = [
        members.concat(),
        many.iter().flat_map(frame).collect(),
        learnt.clone(),
        gzip(&many.concat()),
        many.concat().chunks(700).flat_map(gzip).collect(),
        [&members[..90], &[nested], &members[90..]].concat().concat(),
        [&members[..90], &[large], &members[90..]].concat().concat(),
        damaged(members.concat()),
        damaged(many.iter().flat_map(frame).collect()),
        damaged(learnt),
    ];
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("crawl.warc");
    for (at, file) in files.iter().enumerate() {
        std::fs::write(&path, file).unwrap();
        for (threads, range) in [(2, 4000), (3, 300), (7, 1500), (2, 50), (2, 1 << 19)] {
            let records = Records::open_in_ranges(&path, threads, range, &Meter::default());
            let found = lines_of(records.unwrap());
            assert!(found == told(file), "file {at}, {threads} threads, ranges of {range} bytes");
        }
    }
    assert_eq!(told(&files[5]).len(), 301, "the members within are one record");
    assert_eq!(told(&files[6]).len(), 301);
    assert!((250..300).contains(&told(&files[7]).len()), "damage takes some records along");
}

trait ReplaceHttp {
    fn replace_http(self) -> Self;
}

impl ReplaceHttp for Vec<u8> {
    fn replace_http(self) -> Self {
        String::from_utf8(self).unwrap().replace("HTTP/1.1", "GTTP/1.1").into_bytes()
    }
}

#[test]
fn a_damaged_member_takes_the_next_along_at_most() {
    let records = sample();
    for pack in [gzip as Pack, |bytes| zstd::encode_all(bytes, 1).unwrap()] {
        let mut members: Vec<Vec<u8>> = records.iter().map(|record| pack(record)).collect();
        let middle = members[1].len() / 2;
        members[1].truncate(middle);
        let file = members.concat();
        let found = told(&file);
        assert!(found[1].contains("damaged: "), "{found:?}");
        // What follows a cut may be read as its rest, until a checksum tells.
        let bare = bare(&found);
        assert_eq!(bare[bare.len() - 2..], EXPECTED[3..], "{found:?}");
        let cut = told(&file[..file.len() - 8]);
        assert!(cut.last().unwrap().contains("damaged: "), "{cut:?}");
    }
}

#[test]
fn servers_are_believed_about_encodings_unless_the_bytes_tell_better() {
    let gbk = b"\xc8\xcb\xc3\xf1\xc8\xd5\xb1\xa8";
    let decoded = |charset: &str, bytes: &[u8]| {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain{charset}\r\n\r\n");
        let fields = "WARC-Type: response\r\nContent-Type: application/http\r\n";
        let file = record(fields, &[head.as_bytes(), bytes].concat());
        let mut records = Records::new(open::buffered(Cursor::new(file))).unwrap();
        let (page, bytes) = records.next().unwrap().unwrap().page.unwrap().unwrap();
        page.encoding.decode_text(&bytes).unwrap().text.into_owned()
    };
    assert_eq!(decoded("; charset=GBK", gbk), "人民日报");
    assert_eq!(decoded("; charset=\"windows-1251\"", b"\xd1\xee\xeb\xed"), "Солн");
    assert_eq!(decoded("; charset=iso-8859-1", "人民日报".as_bytes()), "人民日报");
    assert_eq!(decoded("; charset=utf-8", gbk), decoded("", gbk));
    assert_eq!(decoded("; charset=klingon", b"sun"), "sun");
    assert_eq!(decoded("; charset=iso-2022-jp", b"\x1b$B@2\x1b(B"), "晴");
}

#[test]
fn stray_bytes_are_no_panic_and_come_to_an_end() {
    let records = sample();
    let frames = records.iter().flat_map(|record| zstd::encode_all(&record[..], 1).unwrap());
    let files: [Vec<u8>; 3] = [
        records.concat(),
        records.iter().flat_map(|record| gzip(record)).collect(),
        frames.collect(),
    ];
    for file in files {
        for end in 0..file.len() {
            told(&file[..end]);
        }
        // A fixed sequence of places and values.
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..5000 {
            let mut bytes = file.clone();
            for _ in 0..=state % 3 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let at = usize::try_from(state >> 33).unwrap() % bytes.len();
                bytes[at] = (state >> 20).to_be_bytes()[7];
            }
            told(&bytes);
        }
    }
}

#[test]
fn fields_that_never_end_are_let_go() {
    let mut file = sample().concat();
    file.extend(b"WARC/1.0\r\n");
    file.extend(std::iter::repeat_n(b"a: b\r\n", LONGEST_HEAD).flatten());
    file.extend(b"\r\n");
    file.extend(sample().concat());
    let found = told(&file);
    assert_eq!(bare(&found)[5..7], ["the fields do not end", EXPECTED[0]]);
    assert_eq!(found.len(), 11);
}
