//! CSV and TSV: records become lines of JSON, each at the number of the line it begins at.
//!
//! The header's line and the further lines of a record that has several stay blank, so that any
//! message about a row names its line in the file.

use std::collections::HashSet;
use std::io::{self, BufRead, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use csv::ByteRecord;
use encoding_rs::{UTF_8, UTF_16BE, UTF_16LE};
use encoding_rs_io::DecodeReaderBytesBuilder;
use hamdex::text::Encoding;

use super::chunk::MAX_ROW;
use super::fields::Names;
use crate::face::failure::{BadTable, Failure, Result};
use crate::sources::open::{self, Pieces, Reader};

/// Stands before and behind the reason why a record is no row; no line that was made of a record
/// begins with it. Lines of other sources may.
const REFUSED: u8 = 0;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// Reads records as lines of JSON; the first record names the columns.
pub(crate) fn lines(table: Table) -> Reader {
    open::joined(Lines { table, line: 0 })
}

/// A table with its header.
pub(crate) struct Table {
    rows: csv::Reader<Limited>,
    record: ByteRecord,
    /// Names of the columns; of an empty file none.
    pub(crate) header: Vec<String>,
    id: Option<String>,
    encoding: &'static encoding_rs::Encoding,
    left: Arc<AtomicU64>,
}

/// Reads the header. `usual` is the byte between cells, unless the header has more of another.
pub(crate) fn begin(name: &str, usual: u8, names: &Names, mut reader: Reader) -> Result<Table> {
    let head = reader.fill_buf().map_err(|e| Failure::io(name, e))?;
    let mut encoding = resolve(name, names.encoding, head)?;
    // Commas and line ends are characters there, not bytes.
    if [UTF_16LE, UTF_16BE].contains(&encoding) {
        let decoder = DecodeReaderBytesBuilder::new().encoding(Some(encoding)).build(reader);
        (reader, encoding) = (open::buffered(decoder), UTF_8);
    }
    let head = reader.fill_buf().map_err(|e| Failure::io(name, e))?;
    let mark = if head.starts_with(BOM) { BOM.len() } else { 0 };
    let delimiter = names.delimiter.unwrap_or_else(|| sniff(usual, head));
    reader.consume(mark);
    let left = Arc::new(AtomicU64::new(MAX_ROW));
    let mut rows = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .flexible(true)
        .from_reader(Limited { reader, left: Arc::clone(&left), end: END });
    let mut record = ByteRecord::new();
    rows.read_byte_record(&mut record).map_err(|e| Failure::file(name, e.to_string()))?;
    if is_end(&record) {
        record.clear();
    }
    let mut header: Vec<String> =
        record.iter().map(|cell| encoding.decode_with_bom_removal(cell).0.into_owned()).collect();
    for (name, number) in header.iter_mut().zip(1..) {
        if name.is_empty() {
            *name = format!("column{number}");
        }
    }
    let mut seen = HashSet::new();
    if let Some(twice) = header.iter().find(|&name| !seen.insert(name)) {
        let reason = format!("has two columns named \"{twice}\"; rename one of them");
        return Err(Failure::table(name, reason));
    }
    let id = names.with_id_among(&header).id;
    Ok(Table { rows, record, header, id, encoding, left })
}

/// Returns the byte that most often separates the cells of the first line, outside quotes.
fn sniff(usual: u8, head: &[u8]) -> u8 {
    let line = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let mut quoted = false;
    let mut counts = [(usual, 0_u32), (b',', 0), (b';', 0), (b'\t', 0), (b'|', 0)];
    for &byte in line {
        quoted ^= byte == b'"';
        if let Some((_, count)) = counts.iter_mut().find(|(known, _)| *known == byte && !quoted) {
            *count += 1;
        }
    }
    let most = counts.iter().rev().max_by_key(|(_, count)| *count);
    most.map_or(usual, |&(delimiter, _)| delimiter)
}

/// Returns why a line that was made from a record is no row, and the record.
pub(crate) fn refused(line: &[u8]) -> Option<(&str, &[u8])> {
    let rest = line.strip_prefix(&[REFUSED])?;
    let end = rest.iter().position(|&byte| byte == REFUSED)?;
    let reason = std::str::from_utf8(rest.get(..end)?).ok()?;
    Some((reason, rest.get(end + 1..)?))
}

/// Returns the encoding of a table: the named one, else what the first lines show.
fn resolve(name: &str, named: Encoding, head: &[u8]) -> Result<&'static encoding_rs::Encoding> {
    let zeros = head.contains(&0);
    // The line end of UTF-16 is two bytes.
    let end = head.iter().rposition(|&byte| byte == b'\n').filter(|_| !zeros);
    let lines = end.and_then(|end| head.get(..=end)).unwrap_or(head);
    let found = named.decode(lines).encoding;
    let encoding = encoding_rs::Encoding::for_label(found.as_bytes());
    let encoding = encoding.expect("the name of an encoding is one of its labels");
    if zeros && ![UTF_16LE, UTF_16BE].contains(&encoding) {
        return Err(Failure::table(name, "contains zero bytes, so it is no text"));
    }
    Ok(encoding)
}

/// Returns an error if a record never ends, such as behind a quote that is not closed.
struct Limited {
    reader: Reader,
    left: Arc<AtomicU64>,
    /// The rest of [`END`].
    end: &'static [u8],
}

impl Read for Limited {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let left = self.left.load(Relaxed);
        if left == 0 {
            let reason = format!(
                "a record is longer than {} MiB; check for a quote that is not \
                                  closed",
                MAX_ROW >> 20
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, BadTable(reason)));
        }
        let mut read = self.reader.read(to)?;
        if read == 0 {
            read = self.end.read(to)?;
        }
        self.left.store(left.saturating_sub(read as u64), Relaxed);
        Ok(read)
    }
}

/// Follows the last record. Within an open quote it becomes a part of that record instead.
const END: &[u8] = b"\n\0end of the table\0\n";

fn is_end(record: &ByteRecord) -> bool {
    record.len() == 1 && record.get(0) == Some(END.trim_ascii())
}

/// Lines of JSON, made as they are read.
struct Lines {
    table: Table,
    /// The line of the file that the last line of JSON stood for.
    line: u64,
}

impl Pieces for Lines {
    /// Makes the line of the next record, and the blank ones before it.
    fn next_into(&mut self, buffer: &mut Vec<u8>) -> io::Result<bool> {
        // The line of the header is blank.
        if self.line == 0 {
            self.line = 1;
            buffer.push(b'\n');
            return Ok(true);
        }
        let Self { table, line } = self;
        table.left.store(MAX_ROW, Relaxed);
        let position = |error: csv::Error| {
            io::Error::new(io::ErrorKind::InvalidData, format!("after line {line}: {error}"))
        };
        let more = table.rows.read_byte_record(&mut table.record).map_err(position)?;
        if !more || is_end(&table.record) {
            return Ok(false);
        }
        // The reader is behind the record and its line end.
        let behind = table.rows.position().line();
        let bytes = table.record.as_slice().iter();
        let inside: u64 = bytes.map(|&byte| u64::from(byte == b'\n')).sum();
        let first = behind.saturating_sub(inside + 1).max(*line + 1);
        if table.record.iter().any(|cell| cell.ends_with(END)) {
            // Every later row would be a part of this one.
            let first = first.min(behind.saturating_sub(inside).max(*line + 1));
            let reason = format!(
                "line {first}: a quote is never closed, so the rest of the table is unreadable; \
                    close it, or double it if it is part of the text"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, BadTable(reason)));
        }
        for _ in *line + 1..first {
            buffer.push(b'\n');
        }
        *line = first;
        let (found, wanted) = (table.record.len(), table.header.len());
        if found == wanted {
            table.row(buffer)?;
        } else {
            write!(buffer, "\0record of {found} fields under a header of {wanted}\0")?;
            let cells =
                table.record.iter().map(|cell| table.encoding.decode_with_bom_removal(cell).0);
            let cells = cells.collect::<Vec<_>>().join(",").replace(['\n', '\r'], " ");
            buffer.extend_from_slice(cells.as_bytes());
        }
        buffer.push(b'\n');
        Ok(true)
    }
}

impl Table {
    fn row(&self, buffer: &mut Vec<u8>) -> io::Result<()> {
        buffer.push(b'{');
        for (column, cell) in self.header.iter().zip(&self.record) {
            // A cell cannot be left out, so an empty id is none.
            if cell.is_empty() && Some(column) == self.id.as_ref() {
                continue;
            }
            if !buffer.ends_with(b"{") {
                buffer.push(b',');
            }
            serde_json::to_writer(&mut *buffer, column)?;
            buffer.push(b':');
            serde_json::to_writer(&mut *buffer, &self.encoding.decode_with_bom_removal(cell).0)?;
        }
        buffer.push(b'}');
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::open;

    fn table(content: &[u8]) -> Result<Table> {
        let reader = open::buffered(io::Cursor::new(content.to_vec()));
        begin("a.csv", b',', &Names::default(), reader)
    }

    fn json(content: &[u8]) -> String {
        let mut json = String::new();
        lines(table(content).unwrap()).read_to_string(&mut json).unwrap();
        json
    }

    #[test]
    fn rows_stand_at_the_lines_of_their_records() {
        let content = b"id,text\r\n1,\"two\nlines\"\r\n\r\n2,\"say \"\"hi\"\"\"\n,x";
        let json = json(content);
        let lines: Vec<&str> = json.lines().collect();
        assert_eq!(lines[0], "");
        assert_eq!(lines[1], r#"{"id":"1","text":"two\nlines"}"#);
        assert_eq!(lines[2..4], ["", ""]);
        assert_eq!(lines[4], r#"{"id":"2","text":"say \"hi\""}"#);
        assert_eq!(lines[5], r#"{"text":"x"}"#);
        assert_eq!(lines.len(), 6);
    }

    #[test]
    fn records_of_another_length_are_told_and_kept_apart() {
        let json = json(b"id,text\n1\n2,b\n3,c,\"d\ne\"\n");
        let refused: Vec<_> = json.lines().map(|line| refused(line.as_bytes())).collect();
        assert_eq!(refused[1], Some(("record of 1 fields under a header of 2", &b"1"[..])));
        assert_eq!(refused[2], None);
        assert_eq!(refused[3], Some(("record of 3 fields under a header of 2", &b"3,c,d e"[..])));
    }

    #[test]
    fn cells_are_decoded_from_what_the_beginning_is_in() {
        let gb18030: Encoding = "gb18030".parse().unwrap();
        let bytes = b"id,text\n1,\xc8\xcb\xc3\xf1\xc8\xd5\xb1\xa8\xb5\xc4\xbc\xc7\xd5\xdf\n";
        assert_eq!(json(bytes).lines().nth(1).unwrap(), r#"{"id":"1","text":"人民日报的记者"}"#);
        assert_eq!(gb18030.decode(b"\xc8\xcb").text, "人");
        assert_eq!(json(b"\xef\xbb\xbfid,text\n1,a\n").lines().nth(1).unwrap().len(), 21);
    }

    #[test]
    fn tables_in_utf_16_are_read_with_and_without_a_mark() {
        let rows = "id,text\r\n1,\"人民日报,\n的记者\"\r\n2,😀\n";
        let lines =
            ["", r#"{"id":"1","text":"人民日报,\n的记者"}"#, "", r#"{"id":"2","text":"😀"}"#];
        let units = || rows.encode_utf16();
        let big: Vec<u8> = units().flat_map(u16::to_be_bytes).collect();
        let little: Vec<u8> = units().map(u16::swap_bytes).flat_map(u16::to_be_bytes).collect();
        let marked =
            [[b"\xff\xfe", little.as_slice()].concat(), [b"\xfe\xff", big.as_slice()].concat()];
        for bytes in marked.iter().chain([&little, &big]) {
            assert_eq!(json(bytes).lines().collect::<Vec<_>>(), lines);
        }
    }

    #[test]
    fn tables_that_cannot_be_read_are_refused_by_name() {
        let refusal = |content: &[u8]| table(content).err().unwrap().to_string();
        assert!(refusal(b"id,text\n\x01\0,a\n").contains("zero bytes"));
        assert!(refusal(b"id,text,text\n1,a,b\n").contains("two columns named \"text\""));
        assert_eq!(json(b""), "\n");
        assert_eq!(table(b"id,,text,\n").unwrap().header, ["id", "column2", "text", "column4"]);
    }

    #[test]
    fn the_header_shows_what_is_between_cells() {
        for delimiter in [",", ";", "\t", "|"] {
            let content = ["id", "text", "\"a,b;c\"\n1"].join(delimiter);
            assert_eq!(table(content.as_bytes()).unwrap().header.len(), 3, "{delimiter}");
        }
        assert_eq!(table(b"text\na\n").unwrap().header, ["text"]);
    }

    #[test]
    fn a_quote_that_is_never_closed_is_an_error_at_its_line() {
        for content in [
            &b"id,text\n1,a\n2,\"open\n3,b\n"[..],
            b"id,text\n1,a\n2,\"open\n3,b",
            b"id,text\n1,a\n2,\"open",
        ] {
            let mut json = String::new();
            let error = lines(table(content).unwrap()).read_to_string(&mut json).unwrap_err();
            assert!(error.to_string().starts_with("line 3: a quote is never closed"), "{error}");
        }
        assert_eq!(json(b"id,text\n1,\"a\n\"\n").lines().nth(1).unwrap().len(), 23);
    }
}
