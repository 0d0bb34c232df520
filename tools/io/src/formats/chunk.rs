//! Chunks: reading threads turn sources into batches of whole rows, ahead of the work.
//!
//! A chunk has about [`CHUNK`] bytes and never above one row more, so memory does not depend on the
//! size of the input.

use std::io::Read;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Sender;

use hamdex::text::Encoding;

use super::columnar::{Batch, Columnar};
use super::fields::Fields;
use super::flow::{End, Event, Share, Unit, for_each_made};
use super::gate::Gate;
use super::warc::Page;
use crate::documents::reject::Reason;
use crate::face::failure::{Failure, Result};
use crate::face::host::Host;
use crate::sources::inputs::Inputs;
use crate::sources::kind::Kind;
use crate::sources::open::{Meter, Reader, is_html};
use crate::sources::source::Source;
use crate::sources::walk::Listing;

/// Bytes of rows that are handed on together.
pub(crate) const CHUNK: usize = 1 << 20;
/// Bytes of the first chunk of a source; each has twice those of the one before.
const FIRST: usize = 1 << 16;
/// Rows that are handed on together at most.
pub(crate) const ROWS: usize = 8192;
/// The longest row or text file; anything longer is a bad row.
pub(crate) const MAX_ROW: u64 = 128 << 20;

pub(super) const BOM: &[u8] = b"\xef\xbb\xbf";

/// Consecutive rows of one source.
#[derive(Debug)]
pub struct Chunk {
    /// Position of the source among the inputs.
    pub source: usize,
    /// Origin of the first row of the source, if it is known yet.
    pub base: Option<u64>,
    /// Bytes read of all sources when this chunk was complete.
    pub read: u64,
    pub body: Body,
}

/// The rows of a chunk. Ordinals are counted from 0 within the source, blank lines included.
#[derive(Debug)]
pub enum Body {
    Lines { bytes: Vec<u8>, lines: Vec<Line> },
    Raw { first: u64, rows: u64, bytes: Vec<u8> },
    Texts(Vec<Text>),
    Table(Batch),
}

impl Body {
    pub fn rows(&self) -> u64 {
        match self {
            Self::Lines { lines, .. } => lines.len() as u64,
            Self::Raw { rows, .. } => *rows,
            Self::Texts(texts) => texts.len() as u64,
            Self::Table(batch) => batch.rows(),
        }
    }

    /// Returns the bytes of the rows in memory.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Lines { bytes, .. } | Self::Raw { bytes, .. } => bytes.len(),
            Self::Texts(texts) => texts.iter().map(Text::len).sum(),
            Self::Table(batch) => batch.bytes(),
        }
    }

    /// Turns rows of a table into lines of JSON.
    pub fn lines(self) -> Result<Self> {
        let Self::Table(batch) = self else { return Ok(self) };
        let (bytes, ends) = batch.json()?;
        let mut start = 0;
        let line = |(end, ordinal): (usize, u64)| {
            let bytes = std::mem::replace(&mut start, end)..end;
            Line { ordinal, bytes, fault: None }
        };
        let lines = ends.into_iter().zip(batch.first()..).map(line).collect();
        Ok(Self::Lines { bytes, lines })
    }
}

/// One line of JSON Lines within the chunk's bytes, its line end included.
#[derive(Debug)]
pub struct Line {
    pub ordinal: u64,
    pub bytes: Range<usize>,
    /// Why it is no row, if that is known before parsing.
    pub fault: Option<Reason>,
}

/// One text file or page of a crawl, or why there is none.
#[derive(Debug)]
pub struct Text {
    pub ordinal: u64,
    /// Path within the directory; the name as given for a file that is an input itself.
    pub name: String,
    pub bytes: Result<Vec<u8>, Reason>,
    /// What the crawl records about the page.
    pub page: Option<Page>,
}

impl Text {
    fn len(&self) -> usize {
        self.bytes.as_ref().map_or(0, Vec::len)
    }

    /// Returns whether the main content is to be found first.
    pub fn is_html(&self) -> bool {
        self.page.as_ref().map_or_else(|| is_html(&self.name), |page| page.html)
    }

    /// Returns the encoding to decode: the user's choice, else the server's.
    pub fn encoding(&self, fields: &Fields) -> Encoding {
        match &self.page {
            Some(page) if fields.encoding == Encoding::AUTO => page.encoding,
            _ => fields.encoding,
        }
    }
}

/// How much of a row to read if columns can be skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    /// The parts of a document.
    Needed,
    Whole,
}

/// Rows of every source, blank lines included.
pub(crate) type Extents = Vec<u64>;

/// Calls the visitor with every chunk, in order, while the next ones are being read.
///
/// Rows of tables are lines of JSON by then. Else as [`for_each_made`](crate::for_each_made).
pub fn for_each_chunk(
    inputs: &Arc<Inputs>,
    rows: Rows,
    extents: Option<&Extents>,
    console: &dyn Host,
    mut visit: impl FnMut(Chunk) -> Result<()>,
) -> Result<Extents> {
    let make = |chunk: Chunk| {
        let body = chunk.body.lines()?;
        let bytes = body.bytes();
        Ok((Chunk { body, ..chunk }, bytes))
    };
    for_each_made(inputs, rows, extents, console, make, |_, base, chunk| {
        visit(Chunk { base: Some(base), ..chunk })
    })
}

/// `None` once no result is wanted.
pub(super) type Stop = Option<Failure>;

/// What every reading thread reads with.
pub(crate) struct Out {
    pub(crate) gate: Arc<Gate>,
    pub(crate) units: Arc<[Unit]>,
    /// Threads to unpack one unit, if it allows that.
    pub(crate) threads: usize,
    pub(crate) read: Sender<Event>,
    pub(crate) rows: Rows,
    /// Rows that an earlier pass read of each source.
    pub(crate) before: Option<Extents>,
    pub(crate) meter: Meter,
}

impl Out {
    /// Reads one unit after another, until all are read or no result is wanted.
    pub(crate) fn run(&self, inputs: &Inputs) {
        while let Some((position, unit)) = self.gate.next(&self.units) {
            let Some(source) = inputs.sources.get(unit.source) else { return };
            let (before, base) = match &self.before {
                Some(before) => {
                    let earlier = before.get(..unit.source).unwrap_or_default();
                    (before.get(unit.source).copied(), Some(earlier.iter().sum()))
                }
                None => (None, None),
            };
            let before = match (before, &unit.share) {
                (Some(before), Share::Groups(part)) => {
                    Some(before.saturating_sub(part.first).min(part.rows))
                }
                (before, _) => before,
            };
            let mut reading =
                One { out: self, source, unit, position, before, base, sent: 0, grown: false };
            let read = catch_unwind(AssertUnwindSafe(|| reading.run()));
            let event = match read {
                Ok(Err(None)) => return,
                Ok(Err(Some(failure))) => Event::End(position, reading.sent, Err(failure)),
                Ok(Ok(rows)) => {
                    let end = End { rows, grown: reading.grown };
                    Event::End(position, reading.sent, Ok(end))
                }
                Err(panic) => Event::Panic(panic),
            };
            if self.read.send(event).is_err() {
                return;
            }
        }
    }
}

/// A source that is being read, or a part of it.
pub(super) struct One<'a> {
    pub(super) out: &'a Out,
    pub(super) source: &'a Source,
    pub(super) unit: &'a Unit,
    /// Position among the units.
    pub(super) position: usize,
    /// Its rows in an earlier pass; of a range of lines those of the source.
    pub(super) before: Option<u64>,
    /// Origin of the source's first row, if it is known.
    base: Option<u64>,
    /// Chunks that were sent.
    pub(super) sent: u64,
    pub(super) grown: bool,
}

impl One<'_> {
    /// Returns the number of rows.
    fn run(&mut self) -> Result<u64, Stop> {
        if let Share::Lines(range) = &self.unit.share {
            return self.range(range);
        }
        let rows = match &self.source.kind {
            Kind::Lines | Kind::Json | Kind::Delimited(_) => self.lines()?,
            Kind::Columnar(columnar) => self.table(columnar)?,
            Kind::Raw(bits) => self.raw(*bits)?,
            Kind::Text => self.text()?,
            Kind::Directory(listing) => self.directory(listing)?,
            Kind::Warc => self.records()?,
        };
        match self.before {
            Some(before) if rows < before => Err(Some(changed(&self.source.name))),
            // The rows of the next source are counted as before, although this one has changed.
            Some(before) => Ok(before),
            None => Ok(rows),
        }
    }

    pub(super) fn send(&mut self, body: Body) -> Result<(), Stop> {
        let known = self.admit(body.bytes())?;
        self.hand_on(body, known)
    }

    /// Waits until there is room for a chunk; returns the origin of the source if it is known.
    pub(super) fn admit(&self, bytes: usize) -> Result<Option<u64>, Stop> {
        let known = self.out.gate.admit(self.position, bytes).map_err(|()| None)?;
        Ok(self.base.or(known))
    }

    /// Hands on a chunk that there is room for.
    pub(super) fn hand_on(&mut self, body: Body, base: Option<u64>) -> Result<(), Stop> {
        let chunk = Chunk { source: self.unit.source, base, read: self.out.meter.bytes(), body };
        self.sent += 1;
        self.out.read.send(Event::Chunk(self.position, self.sent - 1, chunk)).map_err(|_| None)
    }

    /// Returns the bytes of the next chunk: the first ones are small, so that all threads begin.
    pub(super) fn wanted(&self) -> usize {
        CHUNK.min(FIRST << self.sent.min(8))
    }

    /// Reads a table batch by batch.
    #[cfg_attr(
        not(feature = "parquet"),
        expect(unreachable_code, unused_mut, unused_variables, reason = "there are no batches")
    )]
    fn table(&mut self, columnar: &Columnar) -> Result<u64, Stop> {
        let mut rows = 0;
        let most = self.before.unwrap_or(u64::MAX);
        let (part, whole) = (self.unit.share.groups(), self.out.rows == Rows::Whole);
        let first = part.map_or(0, |part| part.first);
        for batch in columnar.batches_of(whole, part, &self.out.meter)? {
            let batch = batch.map_err(|e| Failure::io(&self.source.name, e))?;
            self.grown = batch.rows() > most - rows;
            let batch = batch.beginning_at(first + rows, most - rows);
            rows += batch.rows();
            if batch.rows() > 0 {
                self.send(Body::Table(batch))?;
            }
            if self.grown {
                break;
            }
        }
        Ok(rows)
    }

    /// Reads raw fingerprints; returns their number, a partial one at the end included.
    fn raw(&mut self, bits: u32) -> Result<u64, Stop> {
        let (source, width) = (self.source, u64::from(bits / 8));
        let most = self.before.map_or(u64::MAX, |before| before * width);
        let mut reader = source.open(&self.out.meter)?.take(most);
        let limit = ROWS as u64 * width;
        let mut first = 0;
        loop {
            let mut bytes = Vec::new();
            let limited = (&mut reader).take(limit);
            let read = read_all(limited, &mut bytes).map_err(|e| Failure::io(&source.name, e))?;
            if read == 0 {
                return Ok(first);
            }
            let rows = read.div_ceil(width);
            self.send(Body::Raw { first, rows, bytes })?;
            first += rows;
        }
    }

    fn text(&mut self) -> Result<u64, Stop> {
        let source = self.source;
        let reader = source.open(&self.out.meter)?;
        let bytes = read_text(reader).map_err(|e| Failure::io(&source.name, e))?;
        let name = source.name.replace('\\', "/");
        let text = Text { ordinal: 0, name, bytes, page: None };
        self.send(Body::Texts(vec![text]))?;
        Ok(1)
    }

    /// Reads the files of a directory; returns their number, unreadable ones included.
    fn directory(&mut self, listing: &Listing) -> Result<u64, Stop> {
        let source = self.source;
        let mut ordinal = 0;
        let mut gathered = Gathered::default();
        for name in &listing.files {
            let read = source
                .open_file(name, &self.out.meter)
                .and_then(|reader| read_text(reader).map_err(|e| Failure::io(name, e)));
            // One file that cannot be read is a bad row among good ones.
            let bytes = read.unwrap_or_else(|failure| Err(Reason::Unreadable(failure.cause())));
            let text = Text { ordinal, name: name.clone(), bytes, page: None };
            ordinal += 1;
            if let Some(texts) = gathered.push(text, self.wanted()) {
                self.send(Body::Texts(texts))?;
            }
        }
        for (name, reason) in &listing.unreadable {
            let bytes = Err(Reason::Unreadable(reason.clone()));
            gathered.texts.push(Text { ordinal, name: name.clone(), bytes, page: None });
            ordinal += 1;
        }
        self.send(Body::Texts(gathered.texts))?;
        Ok(ordinal)
    }

    /// Reads the pages of a crawl and returns the number of records, pages or not.
    fn records(&mut self) -> Result<u64, Stop> {
        let (source, before) = (self.source, self.before);
        let mut records = source.open_records(self.out.threads, &self.out.meter)?;
        let mut ordinal = 0;
        let mut gathered = Gathered::default();
        while let Some(record) = records.next().map_err(|e| Failure::io(&source.name, e))? {
            if before.is_some_and(|before| record.ordinal >= before) {
                break;
            }
            ordinal = record.ordinal + 1;
            let Some(page) = record.page else { continue };
            let (page, bytes) =
                page.map_or_else(|e| (Page::default(), Err(e)), |(page, bytes)| (page, Ok(bytes)));
            let page = Page { offset: record.offset, ..page };
            let name = page.id(source.fields.warc_id);
            let name = name.map_or_else(|| format!("{}:{ordinal}", source.name), str::to_owned);
            let text = Text { ordinal: record.ordinal, name, bytes, page: Some(page) };
            if let Some(texts) = gathered.push(text, self.wanted()) {
                self.send(Body::Texts(texts))?;
            }
        }
        self.send(Body::Texts(gathered.texts))?;
        Ok(ordinal)
    }
}

/// Texts that will make one chunk.
#[derive(Default)]
struct Gathered {
    texts: Vec<Text>,
    size: usize,
}

impl Gathered {
    /// Adds a text; returns all of them once they fill a chunk of that many bytes.
    fn push(&mut self, text: Text, wanted: usize) -> Option<Vec<Text>> {
        self.size += text.len();
        self.texts.push(text);
        let full = self.size >= wanted || self.texts.len() >= ROWS;
        full.then(|| std::mem::take(self).texts)
    }
}

/// Returns the failure of a source that changed during the run.
pub fn changed(name: &str) -> Failure {
    Failure::file(
        name,
        "changed while it was read, so nothing was written; run again once the inputs are stable",
    )
}

fn read_all(mut reader: impl Read, bytes: &mut Vec<u8>) -> std::io::Result<u64> {
    reader.read_to_end(bytes).map(|read| read as u64)
}

/// Reads a whole text file unless it is too long.
fn read_text(reader: Reader) -> std::io::Result<Result<Vec<u8>, Reason>> {
    let mut bytes = Vec::new();
    read_all(reader.take(MAX_ROW + 1), &mut bytes)?;
    if bytes.len() as u64 > MAX_ROW {
        return Ok(Err(Reason::TooLong(MAX_ROW)));
    }
    if bytes.starts_with(BOM) {
        bytes.drain(..BOM.len());
    }
    Ok(Ok(bytes))
}
