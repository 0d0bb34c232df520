//! Detection: the name of a file decides its format, else its first bytes.
//!
//! A file whose lines are JSON objects holds rows, under any name.

use std::fs::File;
use std::io::{BufRead, Cursor, Read};
use std::path::Path;

use serde::de::IgnoredAny;

use super::open::{self, Compression, Meter};
use crate::face::failure::{Failure, Result};
use crate::formats::json;

/// Bytes to inspect.
const HEAD: u64 = 1 << 16;

/// Lines to inspect.
const LINES: usize = 50;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Jsonl,
    Json,
    Csv,
    Tsv,
    Parquet,
    Arrow,
    Warc,
    Text,
    U32,
    U64,
    U128,
}

impl Format {
    /// Every format by its name, with its meaning.
    pub const ALL: [(&'static str, Self, &'static str); 11] = [
        ("jsonl", Self::Jsonl, "JSON objects, one a line"),
        ("json", Self::Json, "JSON objects one after another, or in an array"),
        ("csv", Self::Csv, "Comma-separated values"),
        ("tsv", Self::Tsv, "Tab-separated values"),
        ("parquet", Self::Parquet, "Parquet"),
        ("arrow", Self::Arrow, "Arrow IPC, as a file (Feather) or a stream"),
        ("warc", Self::Warc, "Records of a web crawl"),
        ("text", Self::Text, "A document"),
        ("u32", Self::U32, "32-bit fingerprints, little-endian"),
        ("u64", Self::U64, "64-bit fingerprints"),
        ("u128", Self::U128, "128-bit fingerprints"),
    ];
}

/// The format that a name shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Named {
    Certain(Format),
    /// The contents of the file decide.
    Open,
    /// It is something that is not read.
    Refused(&'static str),
}

/// Uses the extension in front of that of a compression.
pub(crate) fn by_name(path: &Path) -> Named {
    let plain = open::without_compression(path);
    let packed = plain != path;
    let extension = plain.extension().and_then(|e| e.to_str()).unwrap_or_default();
    match extension.to_ascii_lowercase().as_str() {
        "jsonl" | "ndjson" | "jl" | "jsonlines" => Named::Certain(Format::Jsonl),
        "u32" => Named::Certain(Format::U32),
        "u64" => Named::Certain(Format::U64),
        "u128" => Named::Certain(Format::U128),
        "csv" => Named::Certain(Format::Csv),
        "tsv" | "tab" => Named::Certain(Format::Tsv),
        "warc" | "wet" => Named::Certain(Format::Warc),
        "wat" => Named::Refused(
            "the metadata of a crawl is not supported; give its .warc or .wet files, which have \
                the texts",
        ),
        "parquet" | "arrow" | "arrows" | "feather" | "ipc" if packed => Named::Refused(
            "a second compression is not supported, because the format compresses its data; \
                decompress it first",
        ),
        "parquet" => Named::Certain(Format::Parquet),
        "arrow" | "arrows" | "feather" | "ipc" => Named::Certain(Format::Arrow),
        "html" | "htm" | "xhtml" | "md" | "markdown" | "rst" => Named::Certain(Format::Text),
        _ => Named::Open,
    }
}

/// Inspects the first bytes of a file; also returns its compression.
pub(crate) fn by_content(path: &Path) -> Result<(Format, Option<Compression>)> {
    let mut raw = Vec::new();
    let file = File::open(path).map_err(|e| Failure::io(path, e))?;
    let mut file = file.take(HEAD);
    file.read_to_end(&mut raw).map_err(|e| Failure::io(path, e))?;
    let compression = Compression::of_name(path).or_else(|| Compression::of_bytes(&raw));
    if compression.is_none() {
        return Ok((of_head(&raw, (raw.len() as u64) < HEAD), None));
    }
    let mut head = Vec::new();
    let unpacked = open::decompressed(path, compression, Cursor::new(raw));
    // The reader of the file reports a beginning that cannot be decompressed.
    if let Ok(unpacked) = unpacked {
        let _ = unpacked.take(HEAD).read_to_end(&mut head);
    }
    Ok((of_head(&head, false), compression))
}

/// Detects the format of this beginning; `whole` if nothing follows it.
fn of_head(head: &[u8], whole: bool) -> Format {
    for (magic, format) in
        [(&b"PAR1"[..], Format::Parquet), (b"ARROW1", Format::Arrow), (b"WARC/", Format::Warc)]
    {
        if head.starts_with(magic) {
            return format;
        }
    }
    let text = head.strip_prefix(BOM).unwrap_or(head).trim_ascii_start();
    match text {
        [b'{', ..] if holds_lines(text, whole) => Format::Jsonl,
        [b'{', ..] if begins_values(text) => Format::Json,
        [b'[', rest @ ..] if rest.trim_ascii_start().starts_with(b"{") && begins_values(text) => {
            Format::Json
        }
        _ => Format::Text,
    }
}

/// Returns whether the lines are objects: the first one, or most of them.
fn holds_lines(text: &[u8], whole: bool) -> bool {
    let mut lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
    if !whole && lines.len() > 1 && !text.ends_with(b"\n") {
        lines.pop();
    }
    let cut = !whole && lines.len() == 1 && !text.ends_with(b"\n");
    if cut {
        // One line that is longer than the inspected bytes.
        return text.get(1..).unwrap_or_default().trim_ascii_start().starts_with(b"\"");
    }
    let object =
        |line: &&[u8]| line.starts_with(b"{") && serde_json::from_slice::<IgnoredAny>(line).is_ok();
    let lines: Vec<&[u8]> = lines.into_iter().map(<[u8]>::trim_ascii).collect();
    let lines = lines.iter().filter(|line| !line.is_empty()).take(LINES);
    let objects: Vec<bool> = lines.map(object).collect();
    let good = objects.iter().filter(|&&object| object).count();
    objects.first() == Some(&true) || 2 * good > objects.len()
}

/// Returns true if the inspected text is JSON.
fn begins_values(text: &[u8]) -> bool {
    let first = serde_json::Deserializer::from_slice(text).into_iter::<IgnoredAny>().next();
    match first {
        Some(Ok(_)) => true,
        Some(Err(error)) => error.is_eof(),
        None => false,
    }
}

/// Returns true if a file contains one JSON object and nothing else.
pub(crate) fn alone(path: &Path, (format, compression): (Format, Option<Compression>)) -> bool {
    let reader = || {
        let reader = open::counted(path, compression, &Meter::default()).ok()?;
        Some(if format == Format::Json { json::lines(reader) } else { reader })
    };
    matches!(format, Format::Json | Format::Jsonl)
        && reader().is_some_and(|reader| {
            let lines = reader.split(b'\n').take(2).flatten();
            lines.filter(|line| !line.trim_ascii().is_empty()).count() == 1
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_decide_behind_compression() {
        let named = |name: &str| by_name(Path::new(name));
        for (name, format) in [
            ("a.jsonl.gz", Format::Jsonl),
            ("a.NDJSON", Format::Jsonl),
            ("a.jl.bz2", Format::Jsonl),
            ("a.u128.zst", Format::U128),
            ("a.csv", Format::Csv),
            ("a.tsv.gz", Format::Tsv),
            ("a.warc.zst", Format::Warc),
            ("a.warc.wet.gz", Format::Warc),
            ("a.feather", Format::Arrow),
        ] {
            assert_eq!(named(name), Named::Certain(format), "{name}");
        }
        for name in ["a.json", "a.json.gz", "copyright", "a.txt", "part-00000"] {
            assert_eq!(named(name), Named::Open, "{name}");
        }
        for name in ["a.parquet.gz", "a.warc.wat.gz"] {
            assert!(matches!(named(name), Named::Refused(_)), "{name}");
        }
    }

    #[test]
    fn contents_decide_where_names_do_not() {
        let cases: [(&[u8], Format); 12] = [
            (b"{\"a\":1}\n{\"a\":2}\n", Format::Jsonl),
            (b"\xef\xbb\xbf\n {\"a\":1}\r\n", Format::Jsonl),
            (b"{broken\n{\"a\":2}\n{\"a\":3}\n", Format::Jsonl),
            (b"{\"a\":1}", Format::Jsonl),
            (b"[{\"a\":1},\n{\"a\":2}]", Format::Json),
            (b"{\n \"a\": 1\n}\n", Format::Json),
            (b"[1,2]", Format::Text),
            (b"{\\rtf1 text}", Format::Text),
            (b"a text\n{\"a\":1}\n", Format::Text),
            (b"", Format::Text),
            (b"PAR1xxxx", Format::Parquet),
            (b"WARC/1.0\r\n", Format::Warc),
        ];
        for (head, format) in cases {
            assert_eq!(of_head(head, true), format, "{}", String::from_utf8_lossy(head));
        }
        assert_eq!(of_head(b"{\"text\":\"and so on and", false), Format::Jsonl);
    }
}
