//! Pages: a record with text in it becomes bytes, their encoding and their names.

use hamdex::text::Encoding;

use super::WarcId;
use super::http::{Head, Response, media_type};
use crate::documents::reject::Reason;

/// Bytes of a payload without a type that are looked at for the beginning of a page.
const LOOK: usize = 512;

/// Types of text that are not for readers.
const NOT_READ: [&str; 5] =
    ["text/css", "text/javascript", "text/ecmascript", "text/calendar", "text/vcard"];

/// Kinds of records that may hold a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordKind {
    /// An HTTP response.
    Response,
    /// The payload itself: `resource`, and `conversion` as in WET files.
    Payload,
}

impl RecordKind {
    /// Returns the page of a head; `None` for kinds without one, such as `request` and `revisit`.
    pub(super) fn of(head: &Head<'_>) -> Option<Self> {
        let is = |value: &str, name: &str| value.eq_ignore_ascii_case(name);
        let kind = head.get("WARC-Type")?;
        if is(&kind, "resource") || is(&kind, "conversion") {
            return Some(Self::Payload);
        }
        // Responses of other protocols, as of DNS, are no pages.
        let block = media_type(&head.get("Content-Type")?).0;
        (is(&kind, "response") && block == "application/http").then_some(Self::Response)
    }
}

/// A page as it was crawled.
#[derive(Debug, Default)]
pub struct Page {
    /// Where its record begins: the offset of that in a plain file, else of the member it is in.
    pub offset: u64,
    /// `WARC-Target-URI`.
    pub uri: Option<String>,
    /// `WARC-Record-ID`, as it stands there.
    pub record: Option<String>,
    /// `WARC-Date`.
    pub date: Option<String>,
    /// Whether the main content is to be found first.
    pub html: bool,
    /// The server's charset, unless it is impossible.
    pub encoding: Encoding,
}

impl Page {
    /// Reads a record into a page and its bytes.
    pub(super) fn read(
        kind: RecordKind,
        head: &Head<'_>,
        block: Vec<u8>,
    ) -> Result<(Self, Vec<u8>), Reason> {
        let (told, bytes) = match kind {
            RecordKind::Response => {
                let response = Response::read(block)?;
                (response.content_type, response.payload)
            }
            RecordKind::Payload => (head.get("Content-Type").map(Into::into), block),
        };
        let (told, charset) = told.as_deref().map(media_type).unwrap_or_default();
        let identified = head.get("WARC-Identified-Payload-Type");
        // Servers err; crawlers that looked at the payload know better.
        let kind = identified.map_or(told, |identified| media_type(&identified).0);
        let html = match kind.as_str() {
            "text/html" | "application/xhtml+xml" => true,
            "" => begins_page(&bytes),
            kind if kind.starts_with("text/") && !NOT_READ.contains(&kind) => false,
            _ => return Err(Reason::OtherType(kind)),
        };
        let encoding = encoding(charset, &bytes);
        let field = |name: &str| {
            let value = head.get(name)?;
            // Old crawlers put addresses into angle brackets, too.
            Some(value.into_owned()).filter(|value| !value.is_empty())
        };
        let uri = field("WARC-Target-URI").map(|uri| match uri.strip_prefix('<') {
            Some(inside) => inside.strip_suffix('>').unwrap_or(inside).to_owned(),
            None => uri,
        });
        let (record, date) = (field("WARC-Record-ID"), field("WARC-Date"));
        Ok((Self { offset: 0, uri, record, date, html, encoding }, bytes))
    }

    /// Returns the chosen name, or the other one if the record does not have it.
    pub fn id(&self, chosen: WarcId) -> Option<&str> {
        let (uri, record) = (self.uri.as_deref(), self.record.as_deref());
        match chosen {
            WarcId::Uri => uri.or(record),
            WarcId::Record => record.or(uri),
        }
    }
}

/// Returns the server's charset, unless the bytes contradict it: valid UTF-8 is UTF-8.
fn encoding(charset: Option<&str>, bytes: &[u8]) -> Encoding {
    let told = charset.filter(|label| *label != "auto").and_then(|label| label.parse().ok());
    let utf8 = !bytes.is_ascii() && std::str::from_utf8(bytes).is_ok();
    told.filter(|told: &Encoding| !utf8 && told.to_string() != "UTF-8").unwrap_or(Encoding::AUTO)
}

/// Detects a page by its beginning, if no field names its type.
fn begins_page(bytes: &[u8]) -> bool {
    let head = bytes.get(..LOOK).unwrap_or(bytes).to_ascii_lowercase();
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&head).trim_ascii_start();
    [&b"<!doctype html"[..], b"<html"].iter().any(|begin| head.starts_with(begin))
}
