//! Rows of the second pass: each becomes its id or its line of kept.jsonl.

use std::io::{self, Write};

use hamdex::Fingerprint;
use hamdex::text::Encoding;
use serde::Serialize;

use crate::failure::{Failure, Result};
use crate::input::{Fields, row_key};
use crate::key::{self, Name};

/// A good row, seen for the second time.
#[derive(Debug)]
pub(super) enum Row<'a, F> {
    Line { file: &'a str, ordinal: u64, bytes: &'a [u8] },
    Text { name: &'a str, bytes: &'a [u8], encoding: Encoding },
    Raw { position: u64, fingerprint: F },
}

#[derive(Serialize)]
struct Text<'a> {
    id: &'a str,
    text: &'a str,
}

#[derive(Serialize)]
struct Raw<'a> {
    id: Name<'a>,
    fingerprint: &'a str,
}

impl<F: Fingerprint> Row<'_, F> {
    /// Returns the row's key, as the first pass saw it.
    pub(super) fn key(&self, fields: &Fields) -> Result<Vec<u8>> {
        match *self {
            Self::Line { file, ordinal, bytes } => {
                row_key(fields, file, ordinal, bytes).map_err(|reason| {
                    Failure::file(file, format!("line {} changed: {reason}", ordinal + 1))
                })
            }
            Self::Text { name, .. } => Ok(name.as_bytes().to_vec()),
            Self::Raw { position, .. } => Ok(key::of_number(position).to_vec()),
        }
    }

    /// Copies a JSON row byte for byte; other inputs become a JSON row, texts as they were read.
    pub(super) fn copy(&self, out: &mut dyn Write) -> io::Result<()> {
        match *self {
            Self::Line { bytes, .. } => {
                out.write_all(bytes)?;
                if bytes.ends_with(b"\n") { Ok(()) } else { out.write_all(b"\n") }
            }
            Self::Text { name, bytes, encoding } => {
                let text = &encoding.decode(bytes).text;
                serde_json::to_writer(&mut *out, &Text { id: name, text })?;
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
