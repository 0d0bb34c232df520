//! Rows of the second pass: each becomes its id, as JSON that is exactly what the row has, or its
//! line of kept.jsonl.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};

use hamdex::Fingerprint;
use hamdex::text::Encoding;
use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::failure::Result;
use crate::input::{self, Fields, changed, json_string, row_label, row_text};
use crate::key::{self, Name};

/// A good row, seen for the second time.
#[derive(Debug)]
pub(super) enum Row<'a, F> {
    /// The label is known already, or is read from the line.
    Line {
        file: &'a str,
        ordinal: u64,
        bytes: &'a [u8],
        fields: &'a Fields,
        label: Option<&'a str>,
    },
    Text {
        text: &'a input::Text,
        bytes: &'a [u8],
        encoding: Encoding,
    },
    Raw {
        position: u64,
        fingerprint: F,
    },
}

#[derive(serde::Serialize)]
struct TextRow<'a> {
    id: &'a str,
    /// Of a page of a crawl, where it came from and when.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    date: Option<&'a str>,
    text: &'a str,
}

#[derive(serde::Serialize)]
struct Raw<'a> {
    id: Name<'a>,
    fingerprint: &'a str,
}

impl<F: Fingerprint> Row<'_, F> {
    /// Returns the row's id as JSON, or its place if it has none.
    pub(super) fn label(&self) -> Result<String> {
        match *self {
            Self::Line { label: Some(label), .. } => Ok(label.to_owned()),
            Self::Line { file, ordinal, bytes, fields, label: None } => {
                row_label(fields, file, ordinal, bytes)
                    .map_err(|_| changed(&format!("{file}:{}", ordinal + 1)))
            }
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

/// The id of a row, or its place where it has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Label<'a>(std::borrow::Cow<'a, str>);

impl<'a> Label<'a> {
    /// Takes JSON.
    pub(super) fn of(json: &'a [u8]) -> Self {
        Self(String::from_utf8_lossy(json))
    }

    /// Takes the key of a stored document.
    pub(super) fn stored(key: &[u8]) -> Self {
        Self(serde_json::to_string(&Name::of(key)).unwrap_or_default().into())
    }
}

impl Serialize for Label<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serde_json::from_str::<&RawValue>(&self.0) {
            Ok(json) => json.serialize(serializer),
            Err(_) => serializer.serialize_none(),
        }
    }
}

impl<'de> Deserialize<'de> for Label<'_> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self(Box::<str>::from(json).into_string().into()))
    }
}

impl fmt::Display for Label<'_> {
    /// Writes a text without its quotes, anything else as JSON.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match serde_json::from_str::<String>(&self.0) {
            Ok(text) => f.write_str(&text),
            Err(_) => f.write_str(&self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_stay_as_the_row_has_them() {
        for json in ["1.0", "\"a\\tb\"", "123456789012345678901234567890", "[1, 2]", "true"] {
            assert_eq!(serde_json::to_string(&Label::of(json.as_bytes())).unwrap(), json);
        }
        assert_eq!(Label::of(b"\"a\\tb\"").to_string(), "a\tb");
        assert_eq!(Label::of(b"7").to_string(), "7");
        assert_eq!(serde_json::to_string(&Label::of(b"")).unwrap(), "null");
        assert_eq!(Label::stored(&7_u64.to_be_bytes()).to_string(), "7");
    }
}
