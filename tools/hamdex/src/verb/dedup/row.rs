//! Rows of the second pass: each becomes its id or its line of kept.jsonl.

use std::borrow::Cow;
use std::io::{self, Write};

use hamdex::Fingerprint;
use hamdex::text::Encoding;
use serde::Serialize;

use crate::failure::Result;
use crate::input::{self, Fields, changed, json_string, row_label, row_text};
use crate::key::{self, Name};

/// A good row, seen for the second time.
#[derive(Debug)]
pub(super) enum Row<'a, F> {
    Line { file: &'a str, ordinal: u64, bytes: &'a [u8], fields: &'a Fields },
    Text { text: &'a input::Text, bytes: &'a [u8], encoding: Encoding },
    Raw { position: u64, fingerprint: F },
}

#[derive(Serialize)]
struct TextRow<'a> {
    id: &'a str,
    /// Of a page of a crawl, where it came from and when.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    date: Option<&'a str>,
    text: &'a str,
}

#[derive(Serialize)]
struct Raw<'a> {
    id: Name<'a>,
    fingerprint: &'a str,
}

impl<F: Fingerprint> Row<'_, F> {
    /// Returns the row's id as JSON, or its place if it has none.
    pub(super) fn label(&self) -> Result<String> {
        match *self {
            Self::Line { file, ordinal, bytes, fields } => row_label(fields, file, ordinal, bytes)
                .map_err(|_| changed(&format!("{file}:{}", ordinal + 1))),
            Self::Text { text, .. } => Ok(json_string(&text.name)),
            Self::Raw { position, .. } => Ok(position.to_string()),
        }
    }

    /// Returns the row's text; `None` of a fingerprint.
    pub(super) fn text(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Line { bytes, fields, .. } => row_text(fields, bytes),
            Self::Text { bytes, encoding, .. } => Some(encoding.decode(bytes).text),
            Self::Raw { .. } => None,
        }
    }

    /// Copies a JSON row byte for byte; other inputs become a JSON row, texts as they were read.
    pub(super) fn copy(&self, out: &mut dyn Write) -> io::Result<()> {
        match *self {
            Self::Line { bytes, .. } => {
                out.write_all(bytes)?;
                if bytes.ends_with(b"\n") { Ok(()) } else { out.write_all(b"\n") }
            }
            Self::Text { text, bytes, encoding } => {
                let page = text.page.as_ref();
                let row = TextRow {
                    id: &text.name,
                    url: page.and_then(|page| page.uri.as_deref()),
                    date: page.and_then(|page| page.date.as_deref()),
                    text: &encoding.decode(bytes).text,
                };
                serde_json::to_writer(&mut *out, &row)?;
                out.write_all(b"\n")
            }
            Self::Raw { position, fingerprint } => {
                let (key, hex) = (key::of_number(position), fingerprint.hex().to_string());
                serde_json::to_writer(&mut *out, &Raw { id: Name::of(&key), fingerprint: &hex })?;
                out.write_all(b"\n")
            }
        }
    }
}
