//! Reading: chunks of rows become documents, made on all threads and handed on in order.

use std::ops::Range;
use std::sync::Arc;

use super::evidence::{Proofs, Wanted};
use super::key::{self, Name};
use super::make::{Made, Maker, Sketch};
use super::reject::{At, Kinds, Place, Reason, Rejects};
use super::seen::{Seeds, Seen};
use super::sink::{Bad, Blank, Document, Sink};
use crate::face::failure::Result;
use crate::face::host::Host;
use crate::face::size;
use crate::formats::chunk::{Body, Chunk, Extents, Line, Rows, Text};
use crate::formats::flow::for_each_made;
use crate::formats::warc::WarcId;
use crate::sources::inputs::{Inputs, Origins};
use crate::sources::kind::Kind;
use crate::sources::source::Source;
use hamdex::Fingerprint;
use hamdex::dedup::Stamp;
use hamdex::text::Pipeline;

/// The kind of ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ids {
    /// Keys of an index; rows whose id cannot be one are rejected.
    Keys(Repeat),
    /// Labels: any value, repeated or not.
    Labels,
}

/// What becomes of a row whose id an earlier row has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// The sink gets it like any other.
    Pass,
    /// It is counted and dropped.
    Drop,
    /// It is a bad row.
    Reject,
}

/// The inputs and how to read them.
#[derive(Debug)]
pub struct Reading<'a> {
    pub inputs: &'a Arc<Inputs>,
    /// `None` takes fingerprints only.
    pub pipeline: Option<&'a Pipeline>,
    pub console: &'a dyn Host,
    pub ids: Ids,
    /// Hand rows with nothing to compare to the sink; else they are rejected.
    pub keep_blank: bool,
    /// Pass over the rows up to and including this origin.
    pub after: Option<u64>,
    /// Evidence to make of every text.
    pub wanted: Wanted,
}

/// Skipped responses of crawls.
#[derive(Debug, Default, Clone, Copy)]
pub struct Passed {
    /// Of another status than 200.
    pub status: u64,
    /// Of a type that is no text.
    pub kind: u64,
}

/// The result of a reading.
#[derive(Debug, Default)]
pub struct Totals {
    /// All rows, good and bad.
    pub rows: u64,
    pub documents: u64,
    /// Rows with nothing to compare that are no rejects, by the reason.
    pub blank: Kinds,
    /// Rows that were dropped for the id of an earlier one.
    pub repeated: u64,
    /// Files of directories that hold no text.
    pub binary: u64,
    pub passed: Passed,
    /// Text files with malformed places.
    pub malformed: u64,
    pub origins: Origins,
    /// How far every source was read.
    pub extents: Extents,
}

impl Reading<'_> {
    /// Calls the sink with every good document and notes every bad row.
    pub fn run<F: Fingerprint>(
        &self,
        rejects: &mut Rejects,
        sink: &mut dyn Sink<F>,
    ) -> Result<Totals> {
        self.console.begin_reading("reading", self.inputs.bytes());
        let maker = Maker {
            pipeline: self.pipeline,
            wanted: self.wanted,
            preparer: sink.preparer(),
            keyed: self.ids != Ids::Labels,
            seeds: Seeds::default(),
        };
        let unique = matches!(self.ids, Ids::Keys(Repeat::Drop | Repeat::Reject));
        let seen = unique.then(Seen::default);
        let mut work =
            Work { reading: self, rejects, sink, seen, raw_rows: 0, totals: Totals::default() };
        let make = |chunk| {
            let made: MadeBody<F> = maker.chunk(self, chunk)?;
            let bytes = made.bytes();
            Ok((made, bytes))
        };
        let visit = |at: usize, base, made| {
            work.chunk(at, base, made)?;
            let is_live = self.inputs.sources.get(at).is_some_and(Source::is_live);
            if is_live { work.sink.pause() } else { Ok(()) }
        };
        let rows = Rows::Needed;
        work.totals.extents = for_each_made(self.inputs, rows, None, self.console, make, visit)?;
        self.console.end_phase();
        let Totals { rows, documents, blank, .. } = &work.totals;
        // A resumed build sees only the rest, which does not represent the whole.
        if self.after.is_none() {
            work.rejects.judge(*rows, *documents, blank)?;
        }
        let malformed = work.totals.malformed;
        if malformed > 0 {
            let files = if malformed == 1 { "file holds" } else { "files hold" };
            self.console.say(&format!(
                "{malformed} text {files} malformed bytes, read as U+FFFD; pass their encoding \
                    with --encoding NAME"
            ));
        }
        let Passed { status, kind } = work.totals.passed;
        if status + kind > 0 {
            self.console.say(&format!(
                "skipped {} responses with a status other than 200 and {} that are not text",
                size::thousands(status),
                size::thousands(kind)
            ));
        }
        Ok(work.totals)
    }

    fn passes_over(&self, origin: u64) -> bool {
        self.after.is_some_and(|after| origin <= after)
    }
}

/// A document or why there is none; `None` for a skipped row.
type MadeRow<F> = Option<Result<Made<F>, Reason>>;

/// The documents of a chunk. Lines that became one are empty by then.
enum MadeBody<F> {
    Lines { bytes: Vec<u8>, made: Vec<(u64, Range<usize>, MadeRow<F>)> },
    Texts(Vec<(Text, MadeRow<F>)>),
    Raw { first: u64, bytes: Vec<u8> },
}

/// Bytes that a document takes besides its id and its evidence.
const DOCUMENT: usize = 256;

impl<F> MadeBody<F> {
    /// Returns the bytes in memory, roughly.
    fn bytes(&self) -> usize {
        let of = |made: &MadeRow<F>| match made {
            Some(Ok(Made { key, sketch: Ok(sketch), .. })) => {
                DOCUMENT + key.len() + sketch.proofs.len()
            }
            _ => DOCUMENT,
        };
        match self {
            Self::Lines { bytes, made } => {
                bytes.len() + made.iter().map(|(.., made)| of(made)).sum::<usize>()
            }
            Self::Texts(texts) => texts.iter().map(|(_, made)| of(made)).sum(),
            Self::Raw { bytes, .. } => bytes.len(),
        }
    }
}

/// Returns whether a row may be shown as a bad one.
fn is_bad<F>(made: Option<&Result<Made<F>, Reason>>) -> bool {
    !matches!(made, None | Some(Ok(Made { sketch: Ok(_), .. })))
}

impl Maker<'_> {
    /// Makes the documents of a chunk.
    fn chunk<F: Fingerprint>(&self, reading: &Reading<'_>, chunk: Chunk) -> Result<MadeBody<F>> {
        let Chunk { source: at, base, body, .. } = chunk;
        // Of a source that is read ahead, rows to skip are found later.
        let wanted = |ordinal: u64| !base.is_some_and(|base| reading.passes_over(base + ordinal));
        let Some(source) = reading.inputs.sources.get(at) else {
            return Ok(MadeBody::Texts(Vec::new()));
        };
        let (file, fields) = (source.name.as_str(), &source.fields);
        Ok(match body {
            Body::Raw { first, bytes, .. } => MadeBody::Raw { first, bytes },
            Body::Lines { mut bytes, lines } => {
                let make = |Line { ordinal, bytes: range, fault }| {
                    let row = bytes.get(Range::clone(&range)).unwrap_or_default();
                    let made = wanted(ordinal).then(|| match fault {
                        Some(reason) => Err(reason),
                        None => self.line::<F>(fields, (file, ordinal), row),
                    });
                    (ordinal, range, made)
                };
                let made: Vec<_> = lines.into_iter().map(make).collect();
                if !made.iter().any(|(.., made)| is_bad(made.as_ref())) {
                    bytes = Vec::new();
                }
                MadeBody::Lines { bytes, made }
            }
            Body::Table(batch) => {
                let mut ordinals = batch.first()..;
                let rows = batch.each(fields, |row, parsed| {
                    let ordinal = ordinals.next().unwrap_or_default();
                    let make = || self.row::<F>(fields, (file, ordinal), parsed?);
                    (row, ordinal, wanted(ordinal).then(make))
                })?;
                let (mut bytes, mut made) = (Vec::new(), Vec::with_capacity(rows.len()));
                for (row, ordinal, document) in rows {
                    let start = bytes.len();
                    if is_bad(document.as_ref())
                        && !matches!(document, Some(Err(Reason::TooLong(_))))
                    {
                        bytes.append(&mut batch.line(row)?);
                    }
                    made.push((ordinal, start..bytes.len(), document));
                }
                MadeBody::Lines { bytes, made }
            }
            Body::Texts(texts) => {
                let make = |mut text: Text| {
                    let bytes = std::mem::replace(&mut text.bytes, Ok(Vec::new()));
                    let make = || self.text::<F>(fields, &text, bytes);
                    let made = wanted(text.ordinal).then(make);
                    (text, made)
                };
                MadeBody::Texts(texts.into_iter().map(make).collect())
            }
        })
    }
}

/// The serial end of reading: what was made, one after another.
struct Work<'a, F> {
    reading: &'a Reading<'a>,
    rejects: &'a mut Rejects,
    sink: &'a mut dyn Sink<F>,
    seen: Option<Seen>,
    /// Fingerprints of raw files so far: the position of the next one.
    raw_rows: u64,
    totals: Totals,
}

impl<F: Fingerprint> Work<'_, F> {
    fn chunk(&mut self, at: usize, base: u64, made: MadeBody<F>) -> Result<()> {
        let reading = self.reading;
        let Some(source) = reading.inputs.sources.get(at) else { return Ok(()) };
        self.totals.origins.note(base, at);
        match made {
            MadeBody::Lines { bytes, made } => self.lines(base, source, &bytes, made)?,
            MadeBody::Texts(texts) => self.texts(base, source, texts)?,
            MadeBody::Raw { first, bytes } => self.raw(base, &source.name, first, &bytes)?,
        }
        // The rows read so far can be found again, even if the run is killed later.
        self.rejects.flush()
    }

    fn lines(
        &mut self,
        base: u64,
        source: &Source,
        bytes: &[u8],
        made: Vec<(u64, Range<usize>, MadeRow<F>)>,
    ) -> Result<()> {
        let file = source.name.as_str();
        for (ordinal, range, made) in made {
            if let Some(made) = made
                && !self.reading.passes_over(base + ordinal)
            {
                let place = Place { file, at: At::Line(ordinal + 1) };
                self.take(base + ordinal, made, place, bytes.get(range))?;
            }
        }
        Ok(())
    }

    fn texts(&mut self, base: u64, source: &Source, texts: Vec<(Text, MadeRow<F>)>) -> Result<()> {
        for (text, made) in texts {
            let Some(made) = made else { continue };
            if self.reading.passes_over(base + text.ordinal) {
                continue;
            }
            // Directories and crawls contain many kinds of files; a file given by name was meant.
            let passed = match (&made, &source.kind) {
                (Err(Reason::Binary), Kind::Directory(_)) => Some(&mut self.totals.binary),
                (Err(Reason::Binary | Reason::OtherType(_)), Kind::Warc) => {
                    Some(&mut self.totals.passed.kind)
                }
                (Err(Reason::Status(_)), Kind::Warc) => Some(&mut self.totals.passed.status),
                _ => None,
            };
            if let Some(passed) = passed {
                *passed += 1;
                continue;
            }
            let origin = base + text.ordinal;
            match (&text.page, &source.kind) {
                (Some(page), _) => {
                    let at = At::Record(text.ordinal + 1, Some(page.offset));
                    self.take(origin, made, Place { file: &source.name, at }, None)?;
                }
                (None, Kind::Directory(_)) => {
                    let file = format!("{}/{}", source.name, text.name);
                    self.take(origin, made, Place { file: &file, at: At::Whole }, None)?;
                }
                (None, _) => {
                    let place = Place { file: &text.name, at: At::Whole };
                    self.take(origin, made, place, None)?;
                }
            }
        }
        Ok(())
    }

    /// Hands raw fingerprints on as they are.
    fn raw(&mut self, base: u64, file: &str, first: u64, bytes: &[u8]) -> Result<()> {
        let rows = bytes.chunks_exact(F::BYTES);
        let rest = rows.remainder().len();
        let place = |origin: u64| Place { file, at: At::Offset((origin - base) * F::BYTES as u64) };
        let mut next = base + first;
        for row in rows {
            let (key, origin) = (key::of_number(self.raw_rows), next);
            let new = self.seen.as_mut().is_none_or(|seen| seen.insert_position(self.raw_rows));
            self.raw_rows += 1;
            next += 1;
            if self.reading.passes_over(origin) {
                continue;
            }
            self.totals.rows += 1;
            if !new {
                let reason = Reason::DuplicateId(Name::of(&key).to_string());
                self.reject(origin, place(origin), reason, None)?;
                continue;
            }
            self.totals.documents += 1;
            self.sink.document(Document {
                key: &key,
                fingerprint: from_le(row),
                features: None,
                length: 0,
                stamp: Stamp::Missing,
                proofs: Proofs::default(),
                unique: None,
                source: None,
                place: place(origin),
                origin,
            })?;
        }
        if rest > 0 && !self.reading.passes_over(next) {
            self.totals.rows += 1;
            let reason = Reason::Partial { bytes: rest, bits: F::BITS };
            self.reject(next, place(next), reason, None)?;
        }
        Ok(())
    }

    fn reject(
        &mut self,
        origin: u64,
        place: Place<'_>,
        reason: Reason,
        row: Option<&[u8]>,
    ) -> Result<()> {
        let repeats = matches!(reason, Reason::DuplicateId(_) | Reason::DuplicateUri(_));
        if repeats && self.reading.ids == Ids::Keys(Repeat::Drop) {
            self.totals.repeated += 1;
            return Ok(());
        }
        self.sink.bad(&Bad { reason: &reason, place, origin })?;
        self.rejects.add(place, reason, row)
    }

    fn take(
        &mut self,
        origin: u64,
        made: Result<Made<F>, Reason>,
        place: Place<'_>,
        row: Option<&[u8]>,
    ) -> Result<()> {
        self.totals.rows += 1;
        let Made { key, stamp, unique, source, length, replaced, sketch } = match made {
            Ok(made) => made,
            Err(reason) => return self.reject(origin, place, reason, row),
        };
        let Sketch { fingerprint, features, proofs } = match sketch {
            Ok(sketch) => sketch,
            Err(reason) => match reason.not_compared().filter(|_| self.reading.keep_blank) {
                Some(reason) => {
                    *self.totals.blank.entry(reason).or_default() += 1;
                    let blank = Blank { reason, length, stamp, unique, source, origin };
                    return self.sink.blank(blank);
                }
                None => return self.reject(origin, place, reason, row),
            },
        };
        if self.seen.as_mut().is_some_and(|seen| !seen.insert(&key)) {
            let name = Name::of(&key).to_string();
            let reason = match (place.at, self.reading.inputs.names.warc_id) {
                (At::Record(..), WarcId::Uri) => Reason::DuplicateUri(name),
                _ => Reason::DuplicateId(name),
            };
            return self.reject(origin, place, reason, row);
        }
        self.totals.documents += 1;
        self.totals.malformed += u64::from(replaced > 0);
        self.sink.document(Document {
            key: &key,
            fingerprint,
            features,
            length,
            stamp,
            proofs,
            unique,
            source,
            place,
            origin,
        })
    }
}

/// Reads a fingerprint as raw files hold it: little-endian.
fn from_le<F: Fingerprint>(bytes: &[u8]) -> F {
    bytes.iter().rev().fold(F::ZERO, |value, &byte| (value << 8) | F::truncate(u128::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_fingerprints_are_little_endian() {
        assert_eq!(from_le::<u32>(&[1, 2, 3, 4]), 0x0403_0201);
        assert_eq!(from_le::<u64>(&7_u64.to_be_bytes()), 7_u64.swap_bytes());
        assert_eq!(from_le::<u128>(&[0xff; 16]), u128::MAX);
    }
}
