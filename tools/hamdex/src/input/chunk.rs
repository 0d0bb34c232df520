//! Chunks: a reading thread turns sources into batches of whole rows, a few ahead of the work.
//!
//! At most [`AHEAD`] chunks wait, each of about [`CHUNK`] bytes and never above one row more, so
//! memory does not depend on the size of the input.

use std::io::{BufRead, Read};
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

use hamdex::text::{self, Encoding};

use super::exported;
use super::fields::Fields;
use super::inputs::Inputs;
use super::open::{Meter, Reader, is_html};
use super::reject::Reason;
use super::source::{Kind, Source};
use super::warc::Page;
use crate::console::Console;
use crate::failure::{Failure, Result};

/// Bytes of rows that are handed on together.
const CHUNK: usize = 1 << 22;
/// Rows that are handed on together at most.
const ROWS: usize = 8192;
/// Chunks that may wait for the work.
const AHEAD: usize = 2;
/// The longest row or text file; anything longer is a bad row.
pub(crate) const MAX_ROW: u64 = 128 << 20;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// Consecutive rows of one source.
#[derive(Debug)]
pub(crate) struct Chunk {
    /// Position of the source among the inputs.
    pub(crate) source: usize,
    /// Origin of the first row of the source that this chunk may hold.
    pub(crate) base: u64,
    /// Bytes read of all sources when this chunk was complete.
    pub(crate) read: u64,
    pub(crate) body: Body,
}

/// The rows of a chunk. Ordinals are counted from 0 within the source, blank lines included.
#[derive(Debug)]
pub(crate) enum Body {
    Lines { bytes: Vec<u8>, lines: Vec<Line> },
    Raw { first: u64, rows: u64, bytes: Vec<u8> },
    Texts(Vec<Text>),
}

impl Body {
    pub(crate) fn rows(&self) -> u64 {
        match self {
            Self::Lines { lines, .. } => lines.len() as u64,
            Self::Raw { rows, .. } => *rows,
            Self::Texts(texts) => texts.len() as u64,
        }
    }
}

/// One line of JSON Lines within the chunk's bytes, its line end included.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) ordinal: u64,
    pub(crate) bytes: Range<usize>,
    /// Why it is no row, if that is known before parsing.
    pub(crate) fault: Option<Reason>,
}

/// One text file or page of a crawl, or why there is none.
#[derive(Debug)]
pub(crate) struct Text {
    pub(crate) ordinal: u64,
    /// Path within the directory; the name as given for a file that is an input itself.
    pub(crate) name: String,
    pub(crate) bytes: Result<Vec<u8>, Reason>,
    /// What the crawl records about the page.
    pub(crate) page: Option<Page>,
}

impl Text {
    /// Returns whether the main content is to be found first.
    pub(crate) fn is_html(&self) -> bool {
        self.page.as_ref().map_or_else(|| is_html(&self.name), |page| page.html)
    }

    /// Returns the encoding to decode: the user's choice, else the server's.
    pub(crate) fn encoding(&self, fields: &Fields) -> Encoding {
        match &self.page {
            Some(page) if fields.encoding == Encoding::AUTO => page.encoding,
            _ => fields.encoding,
        }
    }
}

/// How much of a row to read if columns can be skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rows {
    /// The parts of a document.
    Needed,
    Whole,
}

/// Rows of every source, blank lines included.
pub(crate) type Extents = Vec<u64>;

/// Calls the visitor with every chunk, in order, while the next ones are being read.
///
/// Returns the number of rows of every source. Given those of an earlier pass, no source is read
/// further than then, as if it had not grown; one that has shrunk is an error.
pub(crate) fn for_each_chunk(
    inputs: &Arc<Inputs>,
    rows: Rows,
    extents: Option<&Extents>,
    console: &Console,
    mut visit: impl FnMut(Chunk) -> Result<()>,
) -> Result<Extents> {
    let (sender, receiver) = sync_channel(AHEAD);
    let reading = Arc::clone(inputs);
    let before = extents.cloned();
    // Not a scoped thread: it may wait for a terminal long after the work has failed.
    let thread = std::thread::Builder::new().name("reader".to_owned());
    let spawn = thread.spawn(move || {
        let mut out = Out { sender, rows, before, grown: Vec::new(), meter: Meter::default() };
        match out.inputs(&reading) {
            Ok(extents) => (extents, out.grown),
            Err(failure) => {
                if let Some(failure) = failure {
                    // A closed channel means that the work is over already.
                    let _ = out.sender.send(Err(failure));
                }
                (Extents::new(), Vec::new())
            }
        }
    });
    let thread = spawn.map_err(|e| Failure::io("reading thread", e))?;
    for chunk in receiver {
        let mut chunk = chunk?;
        let (rows, read) = (chunk.body.rows(), chunk.read);
        console.check()?;
        inputs.leave_drawn(&mut chunk);
        visit(chunk)?;
        // Waiting chunks are not done yet.
        console.reach(read, rows);
    }
    let (extents, grown) = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    for name in grown {
        console.warn(&format!("{name} grew while it was read; the new rows are skipped"));
    }
    Ok(extents)
}

/// `None` once no consumer takes chunks.
type Stop = Option<Failure>;

struct Out {
    sender: SyncSender<Result<Chunk>>,
    rows: Rows,
    /// Rows and bytes that an earlier pass read of each source.
    before: Option<Extents>,
    /// Sources that have more than then.
    grown: Vec<String>,
    meter: Meter,
}

impl Out {
    fn inputs(&mut self, inputs: &Inputs) -> Result<Extents, Stop> {
        let mut base = 0;
        let mut extents = Extents::new();
        for (position, source) in inputs.sources.iter().enumerate() {
            let before = self.before.as_ref().and_then(|before| before.get(position)).copied();
            let rows = match &source.kind {
                Kind::Lines | Kind::Json | Kind::Columnar(_) | Kind::Delimited(_) => {
                    self.lines(source, position, base, before)?
                }
                Kind::Raw(bits) => self.raw(source, position, base, *bits, before)?,
                Kind::Text => self.text(source, position, base)?,
                Kind::Directory(_) => self.directory(source, position, base)?,
                Kind::Warc => self.records(source, position, base, before)?,
            };
            if let Some(before) = before
                && rows < before
            {
                return Err(Some(changed(&source.name)));
            }
            // The rows of the next source are counted as before, although this one has changed.
            let rows = before.unwrap_or(rows);
            base += rows;
            extents.push(rows);
        }
        Ok(extents)
    }

    fn send(&self, source: usize, base: u64, body: Body) -> Result<(), Stop> {
        let read = self.meter.bytes();
        self.sender.send(Ok(Chunk { source, base, read, body })).map_err(|_| None)
    }

    /// Reads at most `most` lines of JSON Lines and returns their number.
    fn lines(
        &mut self,
        source: &Source,
        position: usize,
        base: u64,
        before: Option<u64>,
    ) -> Result<u64, Stop> {
        let mut reader = source.open_rows(self.rows, &self.meter)?;
        let mut ordinal = 0;
        loop {
            let mut bytes = Vec::with_capacity(CHUNK + CHUNK / 8);
            let mut lines = Vec::new();
            let mut end = false;
            while bytes.len() < CHUNK && lines.len() < ROWS {
                // A writer of single rows wants each to appear at once.
                if source.is_live() && !lines.is_empty() && reader.buffer().is_empty() {
                    break;
                }
                let start = bytes.len();
                if before.is_some_and(|before| ordinal >= before) {
                    let more = reader.fill_buf().map_err(|e| Failure::io(&source.name, e))?;
                    if !more.is_empty() {
                        self.grown.push(source.name.clone());
                    }
                    end = true;
                    break;
                }
                let read =
                    read_line(&mut reader, &mut bytes).map_err(|e| Failure::io(&source.name, e))?;
                let Some(too_long) = read else {
                    end = true;
                    break;
                };
                if ordinal == 0 && is_utf16(&bytes) {
                    return Err(Some(Failure::file(
                        &source.name,
                        "is UTF-16, but JSON Lines are UTF-8; convert it with 'iconv -f UTF-16 \
                            -t UTF-8'",
                    )));
                }
                if ordinal == 0 && bytes.starts_with(BOM) {
                    bytes.drain(..BOM.len());
                }
                let line = bytes.get(start..).unwrap_or_default();
                if too_long {
                    let fault = Some(Reason::TooLong(MAX_ROW));
                    lines.push(Line { ordinal, bytes: start..start, fault });
                } else if let Some((reason, record)) = source.refused(line) {
                    let fault = Some(Reason::Record(reason.to_owned()));
                    let record = bytes.len() - record.len()..bytes.len();
                    lines.push(Line { ordinal, bytes: record, fault });
                } else if !line.trim_ascii().is_empty() && !exported::is_header(line) {
                    lines.push(Line { ordinal, bytes: start..bytes.len(), fault: None });
                } else {
                    bytes.truncate(start);
                }
                ordinal += 1;
            }
            if !lines.is_empty() {
                // One long line may leave twice its length allocated while chunks wait.
                bytes.shrink_to(CHUNK + CHUNK / 8);
                self.send(position, base, Body::Lines { bytes, lines })?;
            }
            if end {
                return Ok(ordinal);
            }
        }
    }

    /// Reads raw fingerprints; returns their number, a partial one at the end included.
    fn raw(
        &self,
        source: &Source,
        position: usize,
        base: u64,
        bits: u32,
        before: Option<u64>,
    ) -> Result<u64, Stop> {
        let width = u64::from(bits / 8);
        let most = before.map_or(u64::MAX, |before| before * width);
        let mut reader = source.open(&self.meter)?.take(most);
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
            self.send(position, base, Body::Raw { first, rows, bytes })?;
            first += rows;
        }
    }

    fn text(&self, source: &Source, position: usize, base: u64) -> Result<u64, Stop> {
        let reader = source.open(&self.meter)?;
        let bytes = read_text(reader).map_err(|e| Failure::io(&source.name, e))?;
        let name = source.name.replace('\\', "/");
        let text = Text { ordinal: 0, name, bytes, page: None };
        self.send(position, base, Body::Texts(vec![text]))?;
        Ok(1)
    }

    /// Reads the files of a directory; returns their number, unreadable ones included.
    fn directory(&self, source: &Source, position: usize, base: u64) -> Result<u64, Stop> {
        let Kind::Directory(listing) = &source.kind else { return Ok(0) };
        let mut ordinal = 0;
        let mut gathered = Gathered::default();
        for name in &listing.files {
            let read = source
                .open_file(name, &self.meter)
                .and_then(|reader| read_text(reader).map_err(|e| Failure::io(name, e)));
            // One file that cannot be read is a bad row among good ones.
            let bytes = read.unwrap_or_else(|failure| Err(Reason::Unreadable(failure.cause())));
            let text = Text { ordinal, name: name.clone(), bytes, page: None };
            ordinal += 1;
            if let Some(texts) = gathered.push(text) {
                self.send(position, base, Body::Texts(texts))?;
            }
        }
        for (name, reason) in &listing.unreadable {
            let bytes = Err(Reason::Unreadable(reason.clone()));
            gathered.texts.push(Text { ordinal, name: name.clone(), bytes, page: None });
            ordinal += 1;
        }
        self.send(position, base, Body::Texts(gathered.texts))?;
        Ok(ordinal)
    }

    /// Reads the pages of a crawl and returns the number of records, pages or not.
    fn records(
        &self,
        source: &Source,
        position: usize,
        base: u64,
        before: Option<u64>,
    ) -> Result<u64, Stop> {
        let mut records = source.open_records(&self.meter)?;
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
            if let Some(texts) = gathered.push(text) {
                self.send(position, base, Body::Texts(texts))?;
            }
        }
        self.send(position, base, Body::Texts(gathered.texts))?;
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
    /// Adds a text; returns all of them once they fill a chunk.
    fn push(&mut self, text: Text) -> Option<Vec<Text>> {
        self.size += text.bytes.as_ref().map_or(0, Vec::len);
        self.texts.push(text);
        let full = self.size >= CHUNK || self.texts.len() >= ROWS;
        full.then(|| std::mem::take(self).texts)
    }
}

/// Returns the failure of a source that changed during the run.
pub(crate) fn changed(name: &str) -> Failure {
    Failure::file(
        name,
        "changed while it was read, so nothing was written; run again once the inputs are stable",
    )
}

/// Returns whether the first line of a file is UTF-16, whose line end is cut in two.
fn is_utf16(line: &[u8]) -> bool {
    let whole = line.get(..line.len() & !1).unwrap_or_default();
    whole.contains(&0) && text::decode(whole).encoding.starts_with("UTF-16")
}

/// Appends a line with its end; returns whether it was too long and dropped, `None` at the end.
fn read_line(reader: &mut Reader, bytes: &mut Vec<u8>) -> std::io::Result<Option<bool>> {
    let start = bytes.len();
    let read = (&mut *reader).take(MAX_ROW).read_until(b'\n', bytes)?;
    if read == 0 {
        return Ok(None);
    }
    if (read as u64) < MAX_ROW || bytes.ends_with(b"\n") {
        return Ok(Some(false));
    }
    bytes.truncate(start);
    reader.skip_until(b'\n')?;
    Ok(Some(true))
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
