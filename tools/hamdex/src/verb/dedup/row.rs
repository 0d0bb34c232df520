//! Rows of the second pass: each becomes its id, as JSON that is exactly what the row has, or its
//! line of kept.jsonl.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};
use std::ops::Range;

use hamdex::Fingerprint;
use hamdex::text::{self, Encoding};
use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::failure::Result;
use crate::input::{
    self, Body, Fields, Inputs, changed, json_string, row_label, row_text, text_parts,
};
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

impl<'a> TextRow<'a> {
    fn of(text: &'a input::Text, content: &'a str) -> Self {
        let page = text.page.as_ref();
        Self {
            id: &text.name,
            url: page.and_then(|page| page.uri.as_deref()),
            date: page.and_then(|page| page.date.as_deref()),
            text: content,
        }
    }
}

#[derive(serde::Serialize)]
struct Raw<'a> {
    id: Name<'a>,
    fingerprint: &'a str,
}

impl<'a, F: Fingerprint> Row<'a, F> {
    /// Returns the rows of a chunk with their ordinals over all inputs, without fingerprints.
    ///
    /// The chunk is given as its source, the origin of that source's first row, and its rows;
    /// `labels` has the labels of lines that are known, by rising ordinals.
    pub(super) fn of_chunk(
        inputs: &'a Inputs,
        (source, base): (usize, u64),
        body: &'a Body,
        labels: &'a [(u64, String)],
    ) -> Vec<(u64, Self)> {
        let Some(source) = inputs.sources.get(source) else { return Vec::new() };
        let (file, fields) = (source.name.as_str(), &source.fields);
        let mut labels = labels.iter().peekable();
        match body {
            Body::Lines { bytes, lines } => {
                let row = |line: &input::Line| {
                    let bytes = bytes.get(line.bytes.clone()).unwrap_or_default();
                    let ordinal = line.ordinal;
                    let label = labels.next_if(|(labelled, _)| *labelled == ordinal);
                    let label = label.map(|(_, label)| label.as_str());
                    (base + ordinal, Self::Line { file, ordinal, bytes, fields, label })
                };
                lines.iter().map(row).collect()
            }
            Body::Texts(texts) => {
                let row = |text: &'a input::Text| {
                    let bytes = text.bytes.as_ref().ok()?;
                    let encoding = text.encoding(fields);
                    Some((base + text.ordinal, Self::Text { text, bytes, encoding }))
                };
                texts.iter().filter_map(row).collect()
            }
            // Rows of tables are lines by now.
            Body::Raw { .. } | Body::Table(_) => Vec::new(),
        }
    }
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

    /// Returns whether the main text stands for the whole one; `html` says so of every text.
    pub(super) fn is_html(&self, html: bool) -> bool {
        match self {
            Self::Line { .. } => html,
            Self::Text { text, .. } => html || text.is_html(),
            Self::Raw { .. } => false,
        }
    }

    /// Returns the parts of the text, each with its bytes in a line of JSON.
    ///
    /// Of HTML that is the main text.
    pub(super) fn parts(&self, html: bool) -> Vec<(Range<usize>, Cow<'_, str>)> {
        let mut parts = match self {
            Self::Line { bytes, fields, .. } => text_parts(fields, bytes),
            Self::Text { bytes, encoding, .. } => vec![(0..0, encoding.decode(bytes).text)],
            Self::Raw { .. } => Vec::new(),
        };
        if self.is_html(html) {
            for (_, part) in &mut parts {
                *part = Cow::Owned(text::main_text(part));
            }
        }
        parts
    }

    /// Returns the line of kept.jsonl with other texts in its parts; `None` of a fingerprint.
    pub(super) fn rewritten(&self, parts: &[(Range<usize>, Cow<'_, str>)]) -> Option<Vec<u8>> {
        match *self {
            Self::Line { bytes, .. } => {
                let mut sorted: Vec<_> = parts.iter().collect();
                sorted.sort_by_key(|(at, _)| at.start);
                let (mut line, mut from) = (Vec::with_capacity(bytes.len()), 0);
                for (at, text) in sorted {
                    line.extend_from_slice(bytes.get(from..at.start)?);
                    line.extend_from_slice(json_string(text).as_bytes());
                    from = at.end;
                }
                line.extend_from_slice(bytes.get(from..)?);
                if !line.ends_with(b"\n") {
                    line.push(b'\n');
                }
                Some(line)
            }
            Self::Text { text, .. } => {
                let (_, part) = parts.first()?;
                let mut line = serde_json::to_vec(&TextRow::of(text, part)).ok()?;
                line.push(b'\n');
                Some(line)
            }
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
                let decoded = encoding.decode(bytes).text;
                serde_json::to_writer(&mut *out, &TextRow::of(text, &decoded))?;
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
pub(super) struct Label<'a>(Cow<'a, str>);

impl<'a> Label<'a> {
    /// Takes JSON.
    pub(super) fn of(json: &'a [u8]) -> Self {
        Self(String::from_utf8_lossy(json))
    }

    /// Takes JSON that nobody else needs.
    pub(super) fn owned(json: Vec<u8>) -> Self {
        let text = String::from_utf8(json);
        Self(text.unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()).into())
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
