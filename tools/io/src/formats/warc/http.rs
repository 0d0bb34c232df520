//! HTTP: a response stored by a crawler becomes the payload that a browser would show.
//!
//! Crawlers store some payloads as sent and others decoded, under the same fields. A payload that
//! is not in the coding of its fields is used unchanged.

use std::borrow::Cow;
use std::io::Read;

use flate2::bufread::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use httparse::Status;

use crate::documents::reject::Reason;
use crate::formats::chunk::MAX_ROW;
use crate::sources::open::WINDOW_LOG;

/// Bytes of all fields of a response.
const LONGEST_HEAD: usize = 1 << 20;

/// Codings that are undone of one payload.
const MOST_CODINGS: usize = 4;

/// A response whose status is 200.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) content_type: Option<String>,
    pub(super) payload: Vec<u8>,
}

impl Response {
    /// Reads a response; any other status is a reason to pass over it.
    pub(super) fn read(block: Vec<u8>) -> Result<Self, Reason> {
        let broken = |what: &str| Reason::Record(what.to_owned());
        if !block.starts_with(b"HTTP/") {
            return Err(broken("the record has no HTTP response"));
        }
        let (head, body) =
            Head::cut(&block, LONGEST_HEAD).ok_or_else(|| broken("HTTP fields do not end"))?;
        let status =
            head.first().split(|&byte| byte == b' ').filter(|word| !word.is_empty()).nth(1);
        let status = status.and_then(|word| std::str::from_utf8(word).ok()?.parse().ok());
        match status {
            Some(200) => {}
            Some(other) => return Err(Reason::Status(other)),
            None => return Err(broken("HTTP response without a status")),
        }
        let chunked = head.get("Transfer-Encoding");
        let chunked = chunked.is_some_and(|value| value.to_ascii_lowercase().contains("chunked"));
        let codings = head.get("Content-Encoding").unwrap_or_default().to_ascii_lowercase();
        let content_type = head.get("Content-Type").map(std::borrow::Cow::into_owned);
        let whole = if chunked { dechunked(body) } else { None };
        let mut payload = whole.unwrap_or_else(|| body.to_vec());
        drop(block);
        for coding in codings.rsplit(',').take(MOST_CODINGS) {
            payload = decoded(coding.trim(), payload)?;
        }
        Ok(Self { content_type, payload })
    }
}

/// Joins the chunks of a body; `None` where it does not begin with the size of one.
fn dechunked(body: &[u8]) -> Option<Vec<u8>> {
    let mut rest = body;
    let mut whole = Vec::new();
    loop {
        // A truncated payload is decoded up to its end.
        let size = rest.first().filter(|byte| byte.is_ascii_hexdigit());
        let Some(Ok(Status::Complete((at, size)))) = size.map(|_| httparse::parse_chunk_size(rest))
        else {
            return (rest.len() < body.len()).then_some(whole);
        };
        if size == 0 {
            return Some(whole);
        }
        rest = rest.get(at..).unwrap_or_default();
        let size = usize::try_from(size).unwrap_or(usize::MAX).min(rest.len());
        let (chunk, behind) = rest.split_at_checked(size)?;
        whole.extend_from_slice(chunk);
        rest = behind.strip_prefix(b"\r\n").or(behind.strip_prefix(b"\n")).unwrap_or(behind);
    }
}

/// Undoes a coding of the content.
fn decoded(coding: &str, payload: Vec<u8>) -> Result<Vec<u8>, Reason> {
    let bytes = payload.as_slice();
    // These two codings have no magic bytes, and their output would not be text.
    if ["deflate", "br"].contains(&coding) && std::str::from_utf8(bytes).is_ok() {
        return Ok(payload);
    }
    let decoder: Box<dyn Read + '_> = match coding {
        "gzip" | "x-gzip" => Box::new(MultiGzDecoder::new(bytes)),
        "deflate" if is_zlib(bytes) => Box::new(ZlibDecoder::new(bytes)),
        "deflate" => Box::new(DeflateDecoder::new(bytes)),
        "br" => Box::new(brotli_decompressor::Decompressor::new(bytes, 1 << 12)),
        "zstd" => {
            let decoder = zstd::Decoder::with_buffer(bytes).and_then(|mut decoder| {
                decoder.window_log_max(WINDOW_LOG)?;
                Ok(decoder)
            });
            match decoder {
                Ok(decoder) => Box::new(decoder),
                Err(_) => return Ok(payload),
            }
        }
        _ => return Ok(payload),
    };
    let mut plain = Vec::new();
    let read = decoder.take(MAX_ROW + 1).read_to_end(&mut plain);
    if plain.len() as u64 > MAX_ROW {
        return Err(Reason::TooLong(MAX_ROW));
    }
    // A truncated payload is decoded up to its end, but text is not a coding.
    if read.is_err() && (plain.is_empty() || std::str::from_utf8(bytes).is_ok()) {
        return Ok(payload);
    }
    Ok(plain)
}

/// Distinguishes the two codings that servers call deflate.
fn is_zlib(bytes: &[u8]) -> bool {
    let [first, second, ..] = bytes else { return false };
    first & 0x0f == 8 && (u16::from(*first) << 8 | u16::from(*second)) % 31 == 0
}

/// A first line and the fields behind it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head<'a>(&'a [u8]);

impl<'a> Head<'a> {
    /// Cuts a head of at most `limit` bytes off the front; `None` without an empty line.
    pub(super) fn cut(bytes: &'a [u8], limit: usize) -> Option<(Self, &'a [u8])> {
        let mut from = 0;
        while from < limit {
            let line = line(bytes.get(from..)?)?;
            from += line.len();
            if line.trim_ascii().is_empty() {
                return bytes.split_at_checked(from).map(|(head, rest)| (Self(head), rest));
            }
        }
        None
    }

    /// Returns the first line without its end.
    pub(super) fn first(&self) -> &'a [u8] {
        line(self.0).unwrap_or(self.0).trim_ascii_end()
    }

    /// Returns the value of the first field of that name, in any letter case; folded lines are
    /// joined.
    pub(super) fn get(&self, name: &str) -> Option<Cow<'a, str>> {
        let mut lines = self.0.split_inclusive(|&byte| byte == b'\n').skip(1).peekable();
        while let Some(line) = lines.next() {
            let Some(at) = line.iter().position(|&byte| byte == b':') else { continue };
            let (found, value) = line.split_at(at);
            if !found.trim_ascii_end().eq_ignore_ascii_case(name.as_bytes()) {
                continue;
            }
            let value = value.get(1..).unwrap_or_default().trim_ascii();
            let mut value = String::from_utf8_lossy(value);
            while let Some(folded) =
                lines.next_if(|line| line.starts_with(b" ") || line.starts_with(b"\t"))
            {
                let value = value.to_mut();
                value.push(' ');
                value.push_str(&String::from_utf8_lossy(folded.trim_ascii()));
            }
            return Some(value);
        }
        None
    }
}

/// Returns the first line with its end; `None` if no line ends.
fn line(bytes: &[u8]) -> Option<&[u8]> {
    let end = bytes.iter().position(|&byte| byte == b'\n')?;
    bytes.get(..=end)
}

/// Splits a media type, in lower case, from the charset among its parameters.
pub(super) fn media_type(value: &str) -> (String, Option<&str>) {
    let mut parts = value.split(';');
    let kind = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
    let charset = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches(['"', '\'']))
    });
    (kind, charset)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    const PAGE: &[u8] = b"<p>sunny days are here again, and everybody goes outside</p>";

    /// The page in Brotli.
    const BROTLI: &[u8] =
        b"\x1b;\x00`\x8c\xc38&\xbc\x98Uo1B\xa57\x8f\x0f\x5c\x1dOY\xaar\xb5\xb1=\x09\xa4\xb7 \
        \x85\x8c2\xd1\xd4\x84J\xe9\x01\xb5Nr'\x0f\xf1\x07\xd68\xd7;\x11c\x04\x00k\x9a\xca+K";

    fn response(fields: &str, body: &[u8]) -> Result<Response, Reason> {
        Response::read([b"HTTP/1.1 200 OK\r\n", fields.as_bytes(), b"\r\n", body].concat())
    }

    fn payload(fields: &str, body: &[u8]) -> Vec<u8> {
        response(fields, body).unwrap().payload
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(bytes).unwrap();
        packed.finish().unwrap()
    }

    #[test]
    fn codings_are_undone_and_what_is_not_coded_is_left_as_it_is() {
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
        zlib.write_all(PAGE).unwrap();
        let mut raw = DeflateEncoder::new(Vec::new(), Compression::fast());
        raw.write_all(PAGE).unwrap();
        let cases: [(&str, Vec<u8>); 7] = [
            ("br", BROTLI.to_vec()),
            ("gzip", gzip(PAGE)),
            ("X-GZIP", gzip(PAGE)),
            ("deflate", zlib.finish().unwrap()),
            ("deflate", raw.finish().unwrap()),
            ("zstd", zstd::encode_all(PAGE, 1).unwrap()),
            ("zstd, gzip", gzip(&zstd::encode_all(PAGE, 1).unwrap())),
        ];
        for (coding, body) in cases {
            let fields = format!("content-encoding: {coding}\r\n");
            assert_eq!(payload(&fields, &body), PAGE, "{coding}");
            assert_eq!(payload(&fields, PAGE), PAGE, "{coding} undone already");
        }
        assert_eq!(payload("Content-Encoding: compress\r\n", PAGE), PAGE);
        let cut = gzip(&PAGE.repeat(100));
        let cut = payload("Content-Encoding: gzip\r\n", &cut[..cut.len() - 12]);
        assert!(cut.starts_with(PAGE) && cut.len() <= PAGE.len() * 100, "{}", cut.len());
    }

    #[test]
    fn chunks_are_joined_and_a_body_without_them_is_left_as_it_is() {
        let fields = "Transfer-Encoding: chunked\r\n";
        assert_eq!(payload(fields, b"3\r\nsun\r\n3;x=y\r\nny \r\n0\r\n\r\n"), b"sunny ");
        assert_eq!(payload(fields, b"3\r\nsun\r\nff\r\nny"), b"sunny");
        assert_eq!(payload(fields, b"ffffffffffffffff\r\nsun"), b"sun");
        assert_eq!(payload(fields, PAGE), PAGE);
        assert_eq!(payload(fields, b"\r\n<p>sun"), b"\r\n<p>sun");
        assert_eq!(payload("", b"3\r\nsun\r\n0\r\n\r\n"), b"3\r\nsun\r\n0\r\n\r\n");
    }

    #[test]
    fn other_statuses_and_what_is_no_response_are_told() {
        let reason = |block: &[u8]| Response::read(block.to_vec()).unwrap_err().to_string();
        assert_eq!(reason(b"HTTP/1.1 404 Not Found\r\n\r\n"), "HTTP status 404");
        assert!(reason(b"HTTP/1.1\r\n\r\n").contains("without a status"));
        assert!(reason(b"HTTP/1.1 200 OK\r\nA: b\r\n").contains("do not end"));
        assert!(reason(b"").contains("no HTTP response"));
        assert!(Response::read(b"HTTP/2 200\r\n\r\nx".to_vec()).is_ok());
    }

    #[test]
    fn bombs_are_too_long() {
        let bomb = gzip(&vec![0; 16 << 20]).repeat(9);
        let reason = response("Content-Encoding: gzip\r\n", &bomb).unwrap_err();
        assert!(matches!(reason, Reason::TooLong(_)), "{reason}");
    }

    #[test]
    fn fields_are_found_by_name_whatever_their_case_and_folded_ones_are_joined() {
        let bytes = b"HTTP/1.1 200 OK\r\nno field\r\nContent-TYPE : text/html;\r\n\tcharset=gbk\r\nX:\r\n\r\nbody";
        let (head, rest) = Head::cut(bytes, 1000).unwrap();
        assert_eq!(head.first(), b"HTTP/1.1 200 OK");
        assert_eq!(head.get("content-type").unwrap(), "text/html; charset=gbk");
        assert_eq!(head.get("x").unwrap(), "");
        assert_eq!((head.get("y"), rest), (None, &b"body"[..]));
        assert!(Head::cut(bytes, 20).is_none());
        assert!(Head::cut(b"HTTP/1.1 200 OK\r\nX: y\r\n", 1000).is_none());
        assert_eq!(Head::cut(b"a\n\nb", 1000).unwrap().1, b"b");
    }

    #[test]
    fn media_types_are_told_apart_from_their_parameters() {
        assert_eq!(media_type("Text/HTML"), ("text/html".to_owned(), None));
        assert_eq!(media_type("a/b; q=1; Charset=\"Big5\"").1, Some("Big5"));
        assert_eq!(media_type(";;charset"), (String::new(), None));
    }
}
