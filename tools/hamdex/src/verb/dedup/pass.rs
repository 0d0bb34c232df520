//! The second pass: rows to keep are copied, of all others only the ids are noted.

use std::sync::Arc;

use hamdex::Fingerprint;
use hamdex::dedup::Decision;

use super::collect::Choice;
use super::files::Files;
use super::form::Sink;
use super::page::Seen;
use super::row::Row;
use crate::failure::{Failure, Result};
use crate::input::{Body, Chunk, Inputs, for_each_chunk};
use crate::session::Session;
use crate::verb::gather::Keys;

/// The kept rows, and what is known of the others.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) rows: Sink,
    pub(super) count: u64,
    pub(super) ids: Ids,
}

/// Ids of the documents that are not alone, in the order of the inputs.
#[derive(Debug, Default)]
pub(super) struct Ids {
    keys: Keys,
    /// Position of each among the documents.
    positions: Vec<u32>,
}

impl Ids {
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], u32)> {
        self.positions.iter().enumerate().map(|(slot, &at)| (self.keys.get(slot), at))
    }

    pub(super) fn get(&self, slot: usize) -> &[u8] {
        self.keys.get(slot)
    }

    /// Where the id of a document is noted.
    pub(super) fn slot(&self, position: u32) -> Option<usize> {
        self.positions.binary_search(&position).ok()
    }

    fn note(&mut self, key: &[u8], position: u32) {
        self.keys.push(key);
        self.positions.push(position);
    }
}

/// Reads all inputs again.
pub(super) fn run<F: Fingerprint>(
    session: &Session,
    inputs: &Arc<Inputs>,
    files: &Files,
    choice: &Choice<F>,
    seen: Option<&mut Seen>,
) -> Result<Kept> {
    let rows = Sink::new(files, inputs)?;
    let read = rows.reads();
    let kept = Kept { rows, count: 0, ids: Ids::default() };
    let mut pass = Pass { inputs, choice, next: 0, raw_rows: 0, kept, seen };
    session.console.begin_reading("writing", inputs.bytes());
    for_each_chunk(inputs, read, &session.console, |chunk| pass.chunk(&chunk))?;
    session.console.end_phase();
    if (pass.next as usize) < choice.origins.len() {
        return Err(Failure::file(
            files.shown(),
            "is not written: an input changed between the two passes; leave the inputs alone and run it again",
        ));
    }
    Ok(pass.kept)
}

struct Pass<'a, F> {
    inputs: &'a Inputs,
    choice: &'a Choice<F>,
    /// Position of the next document to come.
    next: u32,
    /// Position of the next raw fingerprint.
    raw_rows: u64,
    kept: Kept,
    /// Looks at every document, where a page is to show some.
    seen: Option<&'a mut Seen>,
}

impl<F: Fingerprint> Pass<'_, F> {
    fn chunk(&mut self, chunk: &Chunk) -> Result<()> {
        let file = self.inputs.sources.get(chunk.source).map_or("", |source| &source.name);
        match &chunk.body {
            Body::Lines { bytes, lines } => lines.iter().try_for_each(|line| {
                let bytes = bytes.get(line.bytes.clone()).unwrap_or_default();
                self.row(
                    chunk.base + line.ordinal,
                    &Row::Line { file, ordinal: line.ordinal, bytes },
                )
            }),
            Body::Texts(texts) => texts.iter().try_for_each(|text| match &text.bytes {
                Ok(bytes) => {
                    let encoding = text.encoding(&self.inputs.fields);
                    let row = Row::Text { text, bytes, encoding };
                    self.row(chunk.base + text.ordinal, &row)
                }
                Err(_) => Ok(()),
            }),
            Body::Raw { first, bytes, .. } => {
                let rows = bytes.chunks_exact(F::BYTES).zip(chunk.base + first..);
                rows.map(|(_, origin)| origin).try_for_each(|origin| {
                    let fingerprint = self.choice.decisions.fingerprint(self.next);
                    let row = Row::Raw { position: self.raw_rows, fingerprint };
                    self.raw_rows += 1;
                    self.row(origin, &row)
                })
            }
        }
    }

    fn row(&mut self, origin: u64, row: &Row<'_, F>) -> Result<()> {
        let position = self.next;
        if self.choice.origins.get(position as usize) != Some(&origin) {
            // A bad row, which the first pass has dealt with.
            return Ok(());
        }
        self.next += 1;
        let decision = self.choice.decisions.of(position);
        if let Some(seen) = &mut self.seen {
            seen.row(row, decision, position)?;
        }
        if decision != (Decision::Kept { cluster: None }) {
            self.kept.ids.note(&row.key(&self.inputs.fields)?, position);
        }
        if !matches!(decision, Decision::Kept { .. }) {
            return Ok(());
        }
        self.kept.count += 1;
        self.kept.rows.row(origin, |out| row.copy(out))
    }
}
