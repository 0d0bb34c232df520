//! Making documents: one row or file becomes a key and a fingerprint, or the reason why not.

use std::borrow::Cow;

use hamdex::Fingerprint;
use hamdex::dedup::Stamp;
use hamdex::text::{self, Pipeline};
use hamdex::verify::EvidencePreparer;

use super::evidence::{Proofs, Wanted};
use super::key;
use super::reject::Reason;
use super::seen::Seeds;
use crate::formats::chunk::Text;
use crate::formats::fields::Fields;
use crate::formats::row::{self, Missing, Row};
use crate::sources::exported;

/// A row on its way to a document.
#[derive(Debug)]
pub(crate) struct Made<F> {
    pub(crate) key: Vec<u8>,
    pub(crate) stamp: Stamp,
    /// Stands for the value that the row must not share.
    pub(crate) unique: Option<u128>,
    /// Source of the row, by a field.
    pub(crate) source: Option<Box<str>>,
    /// Characters of the text.
    pub(crate) length: u64,
    /// Malformed places of the text, each a U+FFFD now.
    pub(crate) replaced: usize,
    /// The text to compare, else why there is none.
    pub(crate) sketch: Result<Sketch<F>, Reason>,
}

/// The text of a row that is compared.
#[derive(Debug)]
pub(crate) struct Sketch<F> {
    pub(crate) fingerprint: F,
    /// Features of the text; `None` for a row that brought its fingerprint.
    pub(crate) features: Option<usize>,
    pub(crate) proofs: Proofs,
}

/// Turns rows into documents; shared by all threads.
#[derive(Debug)]
pub(crate) struct Maker<'a> {
    /// `None` takes fingerprints only.
    pub(crate) pipeline: Option<&'a Pipeline>,
    /// Evidence to make of every text.
    pub(crate) wanted: Wanted,
    /// Prepares the evidence of texts; `None` leaves that to the sink.
    pub(crate) preparer: Option<EvidencePreparer>,
    /// Ids have to be keys; else they are labels, and any value will do.
    pub(crate) keyed: bool,
    /// Makes values that a row must not share comparable.
    pub(crate) seeds: Seeds,
}

impl Maker<'_> {
    /// Fingerprints a line of JSON.
    pub(crate) fn line<F: Fingerprint>(
        &self,
        fields: &Fields,
        place: (&str, u64),
        bytes: &[u8],
    ) -> Result<Made<F>, Reason> {
        self.row(fields, place, row::parse(fields, bytes)?)
    }

    /// Fingerprints a row by its fields.
    pub(crate) fn row<F: Fingerprint>(
        &self,
        fields: &Fields,
        (file, ordinal): (&str, u64),
        row: Row<'_>,
    ) -> Result<Made<F>, Reason> {
        let key = self.key(key_of(&row, file, ordinal), row.id.unwrap_or_default())?;
        let sketch = match (&row.text, &row.fingerprint) {
            (Some(text), _) => self.sketch(text, false)?,
            (None, Some(hex)) => {
                let fingerprint = F::from_hex(hex).map_err(Reason::Fingerprint)?;
                let proofs = exported::proofs(self.wanted, row.features.as_deref())?;
                Ok(Sketch { fingerprint, features: None, proofs })
            }
            (None, None) => Err(missing(&row, fields)),
        };
        let unique = row.unique.map(|value| self.seeds.json(value));
        let length = row.text.map_or(0, |text| text.chars().count() as u64);
        let source = row.source.map(|value| value.as_ref().into());
        Ok(Made { key, stamp: row.stamp, unique, source, length, replaced: 0, sketch })
    }

    /// Fingerprints a text file or page, its bytes taken out of it.
    pub(crate) fn text<F: Fingerprint>(
        &self,
        fields: &Fields,
        text: &Text,
        bytes: Result<Vec<u8>, Reason>,
    ) -> Result<Made<F>, Reason> {
        let bytes = bytes?;
        let decoded = text.encoding(fields).decode_text(&bytes).ok_or(Reason::Binary)?;
        let key = key::of_text(&text.name).map_err(|reason| match (&reason, &text.page) {
            (Reason::LongId(bytes), Some(_)) => Reason::LongUri(*bytes),
            _ => reason,
        });
        let key = self.key(key, &text.name)?;
        let sketch = self.sketch(&decoded.text, text.is_html())?;
        let length = decoded.text.chars().count() as u64;
        let stamp = named(fields.stamp.as_deref(), text).map_or(Stamp::Missing, Stamp::from_text);
        let unique = named(fields.unique.as_deref(), text).map(|value| self.seeds.text(value));
        let source = named(fields.source.as_deref(), text).map(Box::from);
        Ok(Made { key, stamp, unique, source, length, replaced: decoded.replaced, sketch })
    }

    /// Returns the key; a label that cannot be one is used unchanged.
    fn key(&self, key: Result<Vec<u8>, Reason>, label: &str) -> Result<Vec<u8>, Reason> {
        key.or_else(|reason| if self.keyed { Err(reason) } else { Ok(label.as_bytes().to_vec()) })
    }

    /// Fails where texts cannot be taken at all; within, where this one has nothing to compare.
    fn sketch<F: Fingerprint>(
        &self,
        text: &str,
        html: bool,
    ) -> Result<Result<Sketch<F>, Reason>, Reason> {
        let pipeline = self.pipeline.ok_or(Reason::TextRefused)?;
        if text.trim().is_empty() {
            return Ok(Err(Reason::EmptyText));
        }
        let content = content(pipeline, text, html);
        let made = Proofs::with_sketch::<F>(self.wanted, pipeline, &content);
        let Some((sketch, mut proofs)) = made else { return Ok(Err(Reason::NoFeatures)) };
        if let Some(preparer) = &self.preparer {
            proofs.prepare(preparer);
        }
        let (fingerprint, features) = (sketch.fingerprint, Some(sketch.features));
        Ok(Ok(Sketch { fingerprint, features, proofs }))
    }
}

/// Returns why a row has nothing to compare.
fn missing(row: &Row<'_>, fields: &Fields) -> Reason {
    match row.missing {
        Missing::Absent => Reason::NoText(fields.text()),
        Missing::Null => Reason::NullText(fields.text()),
        Missing::NoString => Reason::NoString(fields.text()),
    }
}

/// Returns a field of a text file or page, named as in the written row.
fn named<'t>(field: Option<&str>, text: &'t Text) -> Option<&'t str> {
    let page = text.page.as_ref();
    match field? {
        "id" => Some(&text.name),
        "url" => page?.uri.as_deref(),
        "date" => page?.date.as_deref(),
        _ => None,
    }
}

/// Returns the label of a row that was read before, as JSON: its id, else its place.
pub fn row_label(
    fields: &Fields,
    file: &str,
    ordinal: u64,
    bytes: &[u8],
) -> Result<String, Reason> {
    let id = row::id(fields, bytes)?;
    Ok(id.map_or_else(|| json_string(&format!("{file}:{}", ordinal + 1)), str::to_owned))
}

/// Writes a text as JSON.
pub fn json_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Returns the text of a row that was read before; `None` where there is none.
pub fn row_text<'a>(fields: &Fields, bytes: &'a [u8]) -> Option<Cow<'a, str>> {
    row::parse(fields, bytes).ok()?.text
}

/// Returns the key of a row; without an id it is named by file and line, in memory by its number.
fn key_of(row: &Row<'_>, file: &str, ordinal: u64) -> Result<Vec<u8>, Reason> {
    match row.id.map(key::of_json).transpose()?.flatten() {
        Some(key) => Ok(key),
        None if file.is_empty() => Ok(key::of_number(ordinal).to_vec()),
        None => key::of_text(&format!("{file}:{}", ordinal + 1)),
    }
}

/// Returns the main content of a page, unless the pipeline extracts it.
pub(crate) fn content<'t>(pipeline: &Pipeline, text: &'t str, html: bool) -> Cow<'t, str> {
    if html && !takes_html(pipeline) {
        Cow::Owned(text::main_text(text))
    } else {
        Cow::Borrowed(text)
    }
}

/// Returns whether the pipeline finds the main content of a page by itself.
pub fn takes_html(pipeline: &Pipeline) -> bool {
    says_html(pipeline.descriptor())
}

/// Returns the same for the descriptor of a pipeline.
pub fn says_html(descriptor: &str) -> bool {
    descriptor.split(';').any(|field| field.starts_with("html=reader"))
}

#[cfg(test)]
mod tests {
    use hamdex::text::PipelineOptions;

    use super::*;

    #[test]
    fn a_page_counts_as_its_main_text_with_either_pipeline() {
        let fields = Fields::default();
        let page = b"<html><body><p>sunny days are here again</p></body></html>".to_vec();
        let fingerprint = |options: PipelineOptions, name: &str, bytes: Vec<u8>| {
            let pipeline = Pipeline::new(&options).unwrap();
            let maker = Maker {
                pipeline: Some(&pipeline),
                wanted: Wanted::ALL,
                preparer: None,
                keyed: true,
                seeds: Seeds::default(),
            };
            let name = name.to_owned();
            let text = Text { ordinal: 0, name, bytes: Ok(Vec::new()), page: None };
            let made = maker.text::<u64>(&fields, &text, Ok(bytes)).unwrap().sketch.unwrap();
            (made.fingerprint, made.proofs.text.trim().to_owned())
        };
        let text = PipelineOptions::new();
        let plain = fingerprint(text.clone(), "a.txt", b"sunny days are here again".to_vec());
        assert_eq!(fingerprint(text.clone(), "a.html", page.clone()), plain);
        assert_eq!(fingerprint(text.html(true), "a.html", page), plain);
    }
}
