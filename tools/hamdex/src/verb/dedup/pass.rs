//! The second pass: rows to keep are copied, of all others only the ids are noted.

use std::path::Path;
use std::sync::Arc;

use hamdex::Fingerprint;

use super::choose::Choice;
use super::collect::Documents;
use super::form::{Form, Sink};
use super::near::Stored;
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
    fates: Vec<Fate>,
}

/// Why a document is not alone.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fate {
    /// Near a stored document; the origin of its row.
    Stored(u64),
    /// Member of a cluster; its position among the documents.
    Member(usize),
}

impl Ids {
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], Fate)> {
        self.fates.iter().enumerate().map(|(slot, &fate)| (self.keys.get(slot), fate))
    }

    pub(super) fn get(&self, slot: usize) -> &[u8] {
        self.keys.get(slot)
    }
}

/// Reads all inputs again.
pub(super) fn run<F: Fingerprint>(
    session: &Session,
    inputs: &Arc<Inputs>,
    (form, directory): (Form, &Path),
    documents: &Documents<F>,
    choice: &Choice,
    stored: &Stored,
    seen: Option<&mut Seen>,
) -> Result<Kept> {
    let rows = Sink::new(form, inputs, directory)?;
    let read = rows.reads();
    let kept = Kept { rows, count: 0, ids: Ids::default() };
    let mut pass = Pass { inputs, documents, choice, stored, next: 0, raw_rows: 0, kept, seen };
    session.console.begin_reading("writing", inputs.bytes());
    for_each_chunk(inputs, read, &session.console, |chunk| pass.chunk(&chunk))?;
    session.console.end_phase();
    if pass.next < documents.len() || pass.kept.ids.stored() < stored.len() {
        return Err(Failure::file(
            directory,
            "is not written: an input changed between the two passes; leave the inputs alone and run it again",
        ));
    }
    Ok(pass.kept)
}

impl Ids {
    fn stored(&self) -> usize {
        self.fates.iter().filter(|fate| matches!(fate, Fate::Stored(_))).count()
    }
}

struct Pass<'a, F> {
    inputs: &'a Inputs,
    documents: &'a Documents<F>,
    choice: &'a Choice,
    stored: &'a Stored,
    /// Position of the next document to come.
    next: usize,
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
                    let fingerprint = self.documents.fingerprints.get(self.next).copied();
                    let row = Row::Raw {
                        position: self.raw_rows,
                        fingerprint: fingerprint.unwrap_or_default(),
                    };
                    self.raw_rows += 1;
                    self.row(origin, &row)
                })
            }
        }
    }

    fn row(&mut self, origin: u64, row: &Row<'_, F>) -> Result<()> {
        let position = self.next;
        if self.documents.origins.get(position) != Some(&origin) {
            // Near a stored document, or a bad row that the first pass has dealt with.
            return if self.stored.of(origin).is_some() {
                self.see(row, None, false)?;
                self.note(row, Fate::Stored(origin))
            } else {
                Ok(())
            };
        }
        self.next += 1;
        let cluster = self.choice.cluster(position);
        let kept = cluster.is_none_or(|cluster| self.choice.kept(cluster) == position);
        self.see(row, Some(position), kept)?;
        if cluster.is_some() {
            self.note(row, Fate::Member(position))?;
        }
        if !kept {
            return Ok(());
        }
        self.kept.count += 1;
        self.kept.rows.row(origin, |out| row.copy(out))
    }

    fn see(&mut self, row: &Row<'_, F>, position: Option<usize>, kept: bool) -> Result<()> {
        self.seen.as_mut().map_or(Ok(()), |seen| seen.row(row, position, kept))
    }

    fn note(&mut self, row: &Row<'_, F>, fate: Fate) -> Result<()> {
        self.kept.ids.keys.push(&row.key(&self.inputs.fields)?);
        self.kept.ids.fates.push(fate);
        Ok(())
    }
}
