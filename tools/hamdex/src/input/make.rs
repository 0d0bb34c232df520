//! Making documents: one row or file becomes a key and a fingerprint, or the reason why not.

use std::borrow::Cow;

use hamdex::Fingerprint;
use hamdex::text::{self, Pipeline};

use super::chunk::Text;
use super::proof::{Proofs, Wanted};
use super::reject::Reason;
use super::row::{self, Fields, Row, Stamp};
use crate::key;

/// The field of a page of a crawl that tells when it was fetched.
const DATE: &str = "date";

/// A row on its way to a document.
#[derive(Debug)]
pub(super) struct Made<F> {
    pub(super) key: Vec<u8>,
    pub(super) fingerprint: F,
    pub(super) features: Option<usize>,
    pub(super) length: u64,
    pub(super) stamp: Stamp,
    pub(super) proofs: Proofs,
    /// Malformed places of the text, each a U+FFFD now.
    pub(super) replaced: usize,
}

/// Turns rows into documents; shared by all threads.
#[derive(Debug)]
pub(super) struct Maker<'a> {
    pub(super) fields: &'a Fields,
    /// `None` takes fingerprints only.
    pub(super) pipeline: Option<&'a Pipeline>,
    /// Evidence to make of every text.
    pub(super) wanted: Wanted,
}

impl Maker<'_> {
    /// Fingerprints a line of JSON.
    pub(super) fn line<F: Fingerprint>(
        &self,
        file: &str,
        ordinal: u64,
        bytes: &[u8],
    ) -> Result<Made<F>, Reason> {
        let row = row::parse(self.fields, bytes)?;
        let key = key_of(&row, file, ordinal)?;
        let (fingerprint, features, proofs) = match (&row.text, &row.fingerprint) {
            (Some(text), _) => self.sketch(text, false)?,
            (None, Some(hex)) => {
                (F::from_hex(hex).map_err(Reason::Fingerprint)?, None, Proofs::default())
            }
            (None, None) => return Err(Reason::NoText(self.fields.text.clone())),
        };
        let length = row.text.map_or(0, |text| text.chars().count() as u64);
        Ok(Made { key, fingerprint, features, length, stamp: row.stamp, proofs, replaced: 0 })
    }

    /// Fingerprints a text file or page, its bytes taken out of it.
    pub(super) fn text<F: Fingerprint>(
        &self,
        text: &Text,
        bytes: Result<Vec<u8>, Reason>,
    ) -> Result<Made<F>, Reason> {
        let bytes = bytes?;
        let decoded = text.encoding(self.fields).decode_text(&bytes).ok_or(Reason::Binary)?;
        let key = key::of_text(&text.name).map_err(|reason| match (&reason, &text.page) {
            (Reason::LongId(bytes), Some(_)) => Reason::LongUri(*bytes),
            _ => reason,
        })?;
        let (fingerprint, features, proofs) = self.sketch(&decoded.text, text.is_html())?;
        let length = decoded.text.chars().count() as u64;
        let (stamp, replaced) = (self.date(text), decoded.replaced);
        Ok(Made { key, fingerprint, features, length, stamp, proofs, replaced })
    }

    /// The date of a page, where that is what documents are ordered by.
    fn date(&self, text: &Text) -> Stamp {
        let wanted = self.fields.stamp.as_deref() == Some(DATE);
        let date = text.page.as_ref().and_then(|page| page.date.as_deref());
        date.filter(|_| wanted).map_or(Stamp::Missing, |date| Stamp::Text(date.into()))
    }

    fn sketch<F: Fingerprint>(
        &self,
        text: &str,
        html: bool,
    ) -> Result<(F, Option<usize>, Proofs), Reason> {
        let pipeline = self.pipeline.ok_or(Reason::TextRefused)?;
        if text.trim().is_empty() {
            return Err(Reason::EmptyText);
        }
        let content = content(pipeline, text, html);
        let sketch = pipeline.fingerprint::<F>(&content).ok_or(Reason::NoFeatures)?;
        let proofs = Proofs::of(self.wanted, pipeline, &content);
        Ok((sketch.fingerprint, Some(sketch.features), proofs))
    }
}

/// Returns the key of a row that was read before.
pub(crate) fn row_key(
    fields: &Fields,
    file: &str,
    ordinal: u64,
    bytes: &[u8],
) -> Result<Vec<u8>, Reason> {
    key_of(&row::parse(fields, bytes)?, file, ordinal)
}

/// Returns the text of a row that was read before; `None` where there is none.
pub(crate) fn row_text<'a>(fields: &Fields, bytes: &'a [u8]) -> Option<Cow<'a, str>> {
    row::parse(fields, bytes).ok()?.text
}

/// A row without an id is named by its file and line.
fn key_of(row: &Row<'_>, file: &str, ordinal: u64) -> Result<Vec<u8>, Reason> {
    match row.id.map(key::of_json).transpose()?.flatten() {
        Some(key) => Ok(key),
        None => key::of_text(&format!("{file}:{}", ordinal + 1)),
    }
}

/// The main content of a page, unless the pipeline looks for it.
pub(super) fn content<'t>(pipeline: &Pipeline, text: &'t str, html: bool) -> Cow<'t, str> {
    if html && !takes_html(pipeline) {
        Cow::Owned(text::main_text(text))
    } else {
        Cow::Borrowed(text)
    }
}

/// Tells whether the pipeline finds the main content of a page by itself.
pub(crate) fn takes_html(pipeline: &Pipeline) -> bool {
    says_html(pipeline.descriptor())
}

/// Tells the same of a pipeline's descriptor.
pub(crate) fn says_html(descriptor: &str) -> bool {
    descriptor.split(';').any(|field| field == "html=reader")
}

#[cfg(test)]
mod tests {
    use hamdex::text::PipelineOptions;

    use super::*;
    use crate::input::WarcId;

    #[test]
    fn a_page_counts_as_its_main_text_with_either_pipeline() {
        let fields = Fields {
            id: "id".to_owned(),
            text: "text".to_owned(),
            stamp: None,
            encoding: text::Encoding::AUTO,
            warc_id: WarcId::Uri,
        };
        let page = b"<html><body><p>sunny days are here again</p></body></html>".to_vec();
        let fingerprint = |options: PipelineOptions, name: &str, bytes: Vec<u8>| {
            let pipeline = Pipeline::new(&options).unwrap();
            let maker = Maker { fields: &fields, pipeline: Some(&pipeline), wanted: Wanted::ALL };
            let name = name.to_owned();
            let text = Text { ordinal: 0, name, bytes: Ok(Vec::new()), page: None };
            let made = maker.text::<u64>(&text, Ok(bytes)).unwrap();
            (made.fingerprint, String::from_utf8(made.proofs.text).unwrap().trim().to_owned())
        };
        let text = PipelineOptions::new();
        let plain = fingerprint(text.clone(), "a.txt", b"sunny days are here again".to_vec());
        assert_eq!(fingerprint(text.clone(), "a.html", page.clone()), plain);
        assert_eq!(fingerprint(text.html(true), "a.html", page), plain);
    }
}
