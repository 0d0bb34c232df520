//! Lines: a source whose rows are lines, or a range of its bytes, becomes chunks of whole lines.
//!
//! A range has the lines that begin in it. How many lines come before it is known only once the
//! ranges before it have been read, by other threads; until then its chunks are held back.

use std::io::{BufRead, Read};
use std::ops::Range;

use super::chunk::{BOM, Body, CHUNK, Line, MAX_ROW, One, ROWS, Stop, changed};
use crate::documents::reject::Reason;
use crate::face::failure::{Failure, Result};
use crate::sources::exported;
use crate::sources::open::Reader;
use crate::sources::source::Source;
use hamdex::text;

/// Bytes of a range; a test reads some of a few bytes.
const RANGE: u64 = if cfg!(test) { 5000 } else { 8 << 20 };

/// Cuts a plain file into ranges of bytes; a short one, or what is read in order, has none.
pub(crate) fn ranges(source: &Source) -> Vec<Range<u64>> {
    let ranges = source.plain_bytes().unwrap_or(0) / RANGE;
    // The last one is read to the end of the file, wherever that is by then.
    let end = |range| if range + 1 == ranges { u64::MAX } else { (range + 1) * RANGE };
    let all = (0..ranges).map(|range| range * RANGE..end(range));
    if ranges > 1 { all.collect() } else { Vec::new() }
}

impl One<'_> {
    /// Reads the lines of a source and returns their number, at most that of an earlier pass.
    pub(super) fn lines(&mut self) -> Result<u64, Stop> {
        let mut lines = Lines::of(self.source, self.source.open_rows(&self.out.meter)?);
        let most = self.before.unwrap_or(u64::MAX);
        while !lines.ended {
            let (bytes, chunk) = lines.next_chunk(self.wanted(), most)?;
            if !chunk.is_empty() {
                self.send(Body::Lines { bytes, lines: chunk })?;
            }
        }
        self.grown = lines.more;
        Ok(lines.ordinal)
    }

    /// Reads the lines that begin in a range of a plain file and returns their number.
    pub(super) fn range(&mut self, range: &Range<u64>) -> Result<u64, Stop> {
        let (gate, unit) = (&*self.out.gate, self.position);
        if range.start == 0 {
            gate.begin_at(unit, 0);
        }
        let mut lines = Lines::within(self.source, range)?;
        let (mut held, mut base, mut read) = (Vec::new(), None, lines.offset);
        while !lines.ended {
            let wanted = if range.start == 0 { self.wanted() } else { CHUNK };
            let (bytes, chunk) = lines.next_chunk(wanted, u64::MAX)?;
            // Not those that a buffer has of the next range.
            self.out.meter.add(lines.offset - std::mem::replace(&mut read, lines.offset));
            if chunk.is_empty() {
                continue;
            }
            base = self.admit(bytes.len())?;
            held.push((bytes, chunk));
            if let Some(first) = gate.first_of(unit) {
                self.release(&mut held, first, base)?;
            }
        }
        if !self.unit.last {
            gate.counted(unit, lines.ordinal);
        }
        let first = gate.wait_for_first(unit).map_err(|()| None)?;
        self.release(&mut held, first, base)?;
        let all = first + lines.ordinal;
        let Some(before) = self.before else { return Ok(lines.ordinal) };
        if self.unit.last && all < before {
            return Err(Some(changed(&self.source.name)));
        }
        self.grown = all > before;
        Ok(all.min(before) - first.min(before))
    }

    /// Hands on chunks of a range whose first line has this ordinal, as far as an earlier pass read.
    fn release(
        &mut self,
        held: &mut Vec<(Vec<u8>, Vec<Line>)>,
        first: u64,
        base: Option<u64>,
    ) -> Result<(), Stop> {
        let before = self.before.unwrap_or(u64::MAX);
        for (bytes, mut lines) in held.drain(..) {
            for line in &mut lines {
                line.ordinal += first;
            }
            lines.retain(|line| line.ordinal < before);
            if lines.is_empty() {
                self.out.gate.resize(self.position, bytes.len(), 0);
            } else {
                self.hand_on(Body::Lines { bytes, lines }, base)?;
            }
        }
        Ok(())
    }
}

/// A source, or a range of it, that is read line by line.
struct Lines<'a> {
    source: &'a Source,
    reader: Reader,
    /// Where the next line begins, and where none may begin.
    offset: u64,
    end: u64,
    /// Whether the first line is that of the source.
    leads: bool,
    /// Lines so far.
    ordinal: u64,
    ended: bool,
    /// Whether bytes follow the last wanted line.
    more: bool,
}

impl<'a> Lines<'a> {
    fn of(source: &'a Source, reader: Reader) -> Self {
        let (end, leads) = (u64::MAX, true);
        Self { source, reader, offset: 0, end, leads, ordinal: 0, ended: false, more: false }
    }

    /// Skips the rest of the line that begins before a range.
    fn within(source: &'a Source, range: &Range<u64>) -> Result<Self> {
        let before = range.start.saturating_sub(1);
        let mut reader = source.open_at(before)?.ok_or_else(|| changed(&source.name))?;
        let rest = range.end - before;
        let skipped = if range.start == 0 { Ok(0) } else { skip_line(&mut reader, rest) };
        let offset = before + skipped.map_err(|e| Failure::io(&source.name, e))?;
        let (end, leads) = (range.end, range.start == 0);
        let ended = offset >= end;
        Ok(Self { source, reader, offset, end, leads, ordinal: 0, ended, more: false })
    }

    /// Reads lines of about `wanted` bytes, and stops after `most` of the source.
    fn next_chunk(&mut self, wanted: usize, most: u64) -> Result<(Vec<u8>, Vec<Line>)> {
        let source = self.source;
        let failed = |e| Failure::io(&source.name, e);
        let mut bytes = Vec::with_capacity(wanted + wanted / 8);
        let mut lines = Vec::new();
        while bytes.len() < wanted && lines.len() < ROWS {
            // A writer of single rows wants each to appear at once.
            if source.is_live() && !lines.is_empty() && self.reader.buffer().is_empty() {
                break;
            }
            if self.offset >= self.end {
                self.ended = true;
                break;
            }
            if self.ordinal >= most {
                self.more = !self.reader.fill_buf().map_err(failed)?.is_empty();
                self.ended = true;
                break;
            }
            let start = bytes.len();
            let Some((read, too_long)) = read_line(&mut self.reader, &mut bytes).map_err(failed)?
            else {
                self.ended = true;
                break;
            };
            self.offset += read;
            let leads = self.leads && self.ordinal == 0;
            if leads && is_utf16(&bytes) {
                return Err(Failure::file(
                    &source.name,
                    "is UTF-16, but JSON Lines are UTF-8; convert it with 'iconv -f UTF-16 \
                        -t UTF-8'",
                ));
            }
            if leads && bytes.starts_with(BOM) {
                bytes.drain(..BOM.len());
            }
            let (line, ordinal) = (bytes.get(start..).unwrap_or_default(), self.ordinal);
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
            self.ordinal += 1;
        }
        // One long line may leave twice its length allocated while chunks wait.
        bytes.shrink_to(CHUNK + CHUNK / 8);
        Ok((bytes, lines))
    }
}

/// Returns whether the first line of a file is UTF-16, whose line end is cut in two.
fn is_utf16(line: &[u8]) -> bool {
    let whole = line.get(..line.len() & !1).unwrap_or_default();
    whole.contains(&0) && text::decode(whole).encoding.starts_with("UTF-16")
}

/// Appends a line with its end; returns the bytes read and whether it was too long and dropped.
fn read_line(reader: &mut Reader, bytes: &mut Vec<u8>) -> std::io::Result<Option<(u64, bool)>> {
    let start = bytes.len();
    let read = (&mut *reader).take(MAX_ROW).read_until(b'\n', bytes)? as u64;
    if read == 0 {
        return Ok(None);
    }
    if read < MAX_ROW || bytes.ends_with(b"\n") {
        return Ok(Some((read, false)));
    }
    bytes.truncate(start);
    Ok(Some((read + skip_line(reader, u64::MAX)?, true)))
}

/// Skips to the end of a line, but no further than `most` bytes; returns their number.
fn skip_line(reader: &mut Reader, most: u64) -> std::io::Result<u64> {
    Ok(reader.take(most).skip_until(b'\n')? as u64)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::face::host::Silent;
    use crate::formats::chunk::{Chunk, Extents, Rows};
    use crate::formats::flow::for_each_made;
    use crate::{Inputs, Options};

    /// Ordinal, bytes and fault of every line.
    type Found = Vec<(u64, Vec<u8>, Option<String>)>;

    /// Reads the lines of a file with a pool of this many threads.
    fn read(path: &Path, threads: usize, before: Option<&Extents>) -> Result<(Found, Extents)> {
        let inputs = Inputs::resolve(&[path.to_owned()], &Options::default(), &Silent)?;
        let inputs = Arc::new(inputs);
        let make = |chunk: Chunk| {
            let Body::Lines { bytes, lines } = chunk.body else { panic!("no lines") };
            let line = |line: Line| {
                let fault = line.fault.map(|fault| format!("{fault:?}"));
                (line.ordinal, bytes[line.bytes].to_vec(), fault)
            };
            Ok((lines.into_iter().map(line).collect::<Found>(), 0))
        };
        let mut found = Vec::new();
        let visit = |_, _, mut lines: Found| {
            found.append(&mut lines);
            Ok(())
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let run = || for_each_made(&inputs, Rows::Needed, before, &Silent, make, visit);
        let extents = pool.install(run)?;
        Ok((found, extents))
    }

    /// Files whose lines end before, at and behind the ends of ranges.
    fn files() -> Vec<Vec<u8>> {
        let row = |len: usize| format!("{{\"text\":\"{}\"}}\n", "x".repeat(len - 12)).into_bytes();
        let size = usize::try_from(RANGE).unwrap();
        let filled = |len: usize| row(len).repeat(4 * size / len + 1);
        let with_bom = [BOM, &filled(100)].concat();
        let (crlf, blank) = (b"{\"text\":\"y\"}\r\n".repeat(2000), b"\n".repeat(3 * size));
        let long = [row(70), row(7 * size), row(size), row(50)].concat();
        let unended = [filled(90), b"{\"text\":\"the last\"}".to_vec()].concat();
        let mut files = vec![with_bom, crlf, blank, long, unended, vec![b'['; 3 * size]];
        files.extend((size - 2..size + 3).map(filled));
        files.extend([99, 100, 101, 1250, 2500].map(filled));
        files
    }

    #[test]
    fn ranges_read_side_by_side_are_the_lines_read_in_order() {
        let directory = tempfile::tempdir().unwrap();
        for (at, content) in files().into_iter().enumerate() {
            let path = directory.path().join(format!("{at}.jsonl"));
            std::fs::write(&path, &content).unwrap();
            let in_order = read(&path, 1, None).unwrap();
            assert_eq!(
                read(&path, 2 * crate::formats::flow::READ, None).unwrap(),
                in_order,
                "file {at}"
            );
        }
    }

    #[test]
    fn a_second_pass_over_ranges_ends_where_the_first_one_did() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rows.jsonl");
        let row = |row: u32| format!("{{\"text\":\"row {row}\"}}\n");
        let rows = |rows: std::ops::Range<u32>| rows.map(row).collect::<String>();
        std::fs::write(&path, rows(0..2000)).unwrap();
        let threads = 2 * crate::formats::flow::READ;
        let (found, extents) = read(&path, threads, None).unwrap();
        assert_eq!((found.len(), &extents), (2000, &vec![2000]));
        std::fs::write(&path, rows(0..3000)).unwrap();
        assert_eq!(read(&path, threads, Some(&extents)).unwrap(), (found, extents.clone()));
        std::fs::write(&path, rows(0..1900)).unwrap();
        let failed = read(&path, threads, Some(&extents)).unwrap_err();
        assert!(failed.to_string().contains("changed while it was read"), "{failed}");
    }
}
