//! Sources: an input path becomes a kind of source, chosen by its extension.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, Cursor, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use hamdex::Progress;
use tempfile::NamedTempFile;

use super::chunk::{MAX_ROW, Rows};
use super::columnar::Columnar;
use super::delimited;
use super::device;
use super::open::{self, Meter, Reader};
use super::row::{self, Fields};
use super::walk::{self, Listing};
use super::warc::Records;
use crate::console::Console;
use crate::failure::{Failure, Result};
use crate::output;

/// How the name of standard input is spelled.
const STDIN: &str = "-";

/// Bytes that a row of JSON Lines is taken to have, compressed or not.
const TYPICAL_ROW: u64 = 1000;

/// Bytes that a page of a crawl is taken to have, compressed.
const TYPICAL_RECORD: u64 = 10_000;

/// What kind of rows a source holds.
#[derive(Debug)]
pub(crate) enum Kind {
    /// JSON Lines.
    Lines,
    /// Parquet.
    Columnar(Columnar),
    /// CSV, with that byte between cells.
    Delimited(u8),
    /// Little-endian fingerprints of that many bits.
    Raw(u32),
    /// One document.
    Text,
    /// Records of a web crawl, compressed or not.
    Warc,
    /// One document per text file.
    Directory(Listing),
}

/// One input.
#[derive(Debug)]
pub(crate) struct Source {
    /// The path as it was given.
    pub(crate) name: String,
    pub(crate) kind: Kind,
    path: PathBuf,
    /// What can be read only once: a pipe, with what was looked at put back in front.
    stream: Option<Stream>,
    /// Lines of the stream were made of CSV or TSV.
    converted: bool,
    /// A pipe's content, where a second pass needs it.
    spool: Option<NamedTempFile>,
}

struct Stream(Mutex<Option<Reader>>);

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stream")
    }
}

impl Source {
    fn new(path: &Path, fields: &Fields) -> Result<Self> {
        let name = path.display().to_string();
        let source = |kind, stream: Option<Reader>| Self {
            name: name.clone(),
            kind,
            path: path.to_path_buf(),
            stream: stream.map(|reader| Stream(Mutex::new(Some(reader)))),
            converted: false,
            spool: None,
        };
        if name == STDIN {
            return Ok(source(Kind::Lines, Some(open::buffered(io::stdin()))));
        }
        let found = path.metadata().map_err(|e| Failure::io(path, e))?;
        if found.is_dir() {
            return Ok(source(Kind::Directory(walk::list(path)?), None));
        }
        if is_parquet(path) {
            if !found.is_file() {
                return Err(Failure::file(
                    path,
                    "is no regular file, as Parquet has to be; save it to one first",
                ));
            }
            return Ok(source(Kind::Columnar(Columnar::look(path, fields)?), None));
        }
        device::refuse(path, &found)?;
        let kind = kind(path, found.is_file())?;
        // Opening at once finds a file without permission before anything is written.
        let file = File::open(path).map_err(|e| Failure::io(path, e))?;
        if !found.is_file() {
            if let Kind::Warc = kind {
                return Ok(source(kind, Some(open::buffered(file))));
            }
            let reader = open::decompressed(path, file)?;
            let Kind::Delimited(delimiter) = kind else { return Ok(source(kind, Some(reader))) };
            // What can be read only once becomes JSON Lines as it comes in.
            let lines = delimited::lines(&name, delimiter, fields, reader)?;
            return Ok(Self { converted: true, ..source(Kind::Lines, Some(lines)) });
        }
        let source = source(kind, None);
        if let Kind::Delimited(_) = source.kind {
            source.open_rows(fields, Rows::Needed, &Meter::default())?;
        }
        Ok(source)
    }

    /// Tells why a line of rows stands for a record that is none, and what the record was.
    pub(super) fn refused<'l>(&self, line: &'l [u8]) -> Option<(&'l str, &'l [u8])> {
        let of_records = self.converted || matches!(self.kind, Kind::Delimited(_));
        of_records.then(|| delimited::refused(line)).flatten()
    }

    /// Opens the source for reading rows of JSON from its start.
    pub(super) fn open_rows(&self, fields: &Fields, rows: Rows, meter: &Meter) -> Result<Reader> {
        match &self.kind {
            Kind::Columnar(columnar) => columnar.lines(rows == Rows::Whole, meter),
            Kind::Delimited(delimiter) => {
                delimited::lines(&self.name, *delimiter, fields, self.open(meter)?)
            }
            Kind::Lines | Kind::Raw(_) | Kind::Warc | Kind::Text | Kind::Directory(_) => {
                self.open(meter)
            }
        }
    }

    /// Opens the records of a crawl, which tell their offsets in the file as it is.
    pub(super) fn open_records(&self, meter: &Meter) -> Result<Records> {
        let reader = match (&self.spool, &self.stream) {
            (None, None) => open::as_it_is(&self.path, meter)?,
            _ => self.open(meter)?,
        };
        Records::new(reader).map_err(|e| Failure::io(&self.name, e))
    }

    /// Opens the source for reading from its start.
    pub(super) fn open(&self, meter: &Meter) -> Result<Reader> {
        if let Some(spool) = &self.spool {
            return open::counted(spool.path(), meter);
        }
        let Some(Stream(stream)) = &self.stream else { return open::counted(&self.path, meter) };
        let mut stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
        stream.take().ok_or_else(|| {
            Failure::file(&self.name, "can be read only once; save it to a file and give that")
        })
    }

    /// Opens an uncompressed file at an offset; `None` for what can only be read in order.
    pub(super) fn open_at(&self, offset: u64) -> Result<Option<Reader>> {
        let Some(path) = self.plain_path() else { return Ok(None) };
        let mut file = File::open(path).map_err(|e| Failure::io(path, e))?;
        file.seek(SeekFrom::Start(offset)).map_err(|e| Failure::io(path, e))?;
        Ok(Some(open::buffered(file)))
    }

    /// Bytes of an uncompressed file; `None` for what can only be read in order.
    pub(super) fn plain_bytes(&self) -> Option<u64> {
        self.plain_path()?.metadata().ok().map(|found| found.len())
    }

    fn plain_path(&self) -> Option<&Path> {
        if let Kind::Columnar(_) | Kind::Delimited(_) | Kind::Warc = self.kind {
            return None;
        }
        match (&self.spool, &self.stream) {
            (Some(spool), _) => Some(spool.path()),
            (None, Some(_)) => None,
            (None, None) => {
                (open::without_compression(&self.path) == self.path).then_some(&*self.path)
            }
        }
    }

    /// Opens one file of a directory.
    pub(super) fn open_file(&self, relative: &str, meter: &Meter) -> Result<Reader> {
        open::counted(&self.path.join(relative), meter)
    }

    /// Copies a pipe into a temporary file, so that it can be read twice.
    fn spool(&mut self, directory: Option<&Path>, console: &Console) -> Result<()> {
        if self.stream.is_none() {
            return Ok(());
        }
        let mut reader = self.open(&Meter::default())?;
        let directory = directory.map_or_else(std::env::temp_dir, Path::to_path_buf);
        let mut file = output::private(&directory)?;
        console.begin_reading("spooling", None);
        loop {
            let bytes = reader.fill_buf().map_err(|e| Failure::io(&self.name, e))?;
            let len = bytes.len();
            if len == 0 {
                break;
            }
            file.write_all(bytes).map_err(|e| Failure::io(file.path(), e))?;
            reader.consume(len);
            console.check()?;
            console.advance(len as u64);
        }
        console.end_phase();
        self.spool = Some(file);
        Ok(())
    }

    /// Tells whether the first row is a fingerprint without text; an empty source tells nothing.
    fn begins_with_fingerprint(&self, fields: &Fields) -> Result<Option<bool>> {
        match self.kind {
            Kind::Raw(_) => return Ok(Some(true)),
            Kind::Text | Kind::Warc | Kind::Directory(_) => return Ok(Some(false)),
            Kind::Lines | Kind::Columnar(_) | Kind::Delimited(_) => {}
        }
        let mut reader = self.open_rows(fields, Rows::Needed, &Meter::default())?;
        let mut head = Vec::new();
        let mut answer = None;
        while answer.is_none() {
            let start = head.len();
            let mut limited = (&mut reader).take(MAX_ROW);
            let read =
                limited.read_until(b'\n', &mut head).map_err(|e| Failure::io(&self.name, e))?;
            let line = head.get(start..).unwrap_or_default();
            if read == 0 {
                break;
            }
            if !line.trim_ascii().is_empty() {
                answer = row::parse(fields, line).ok().map(|row| row.text.is_none());
                if answer.is_none() && head.len() as u64 > MAX_ROW {
                    break;
                }
            }
        }
        if let Some(Stream(stream)) = &self.stream
            && self.spool.is_none()
        {
            let whole = open::buffered(Cursor::new(head).chain(reader));
            *stream.lock().unwrap_or_else(PoisonError::into_inner) = Some(whole);
        }
        Ok(answer)
    }
}

fn is_parquet(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("parquet"))
}

/// Chooses the kind of a file that is not a directory.
fn kind(path: &Path, regular: bool) -> Result<Kind> {
    const ACCEPTED: &str = "accepted are JSON Lines (.jsonl, .ndjson), Parquet, .csv, .tsv, .warc, .txt, .md, .html, raw \
                            fingerprints (.u32, .u64, .u128), directories, and - for JSON Lines on standard input";
    let refused = |what: &str| {
        let name = path.display();
        Err(Failure::Usage(format!("{name}: {what} is not supported; {ACCEPTED}")))
    };
    let plain = open::without_compression(path);
    let extension =
        plain.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
    match extension.as_str() {
        "jsonl" | "ndjson" => Ok(Kind::Lines),
        "u32" => Ok(Kind::Raw(32)),
        "u64" => Ok(Kind::Raw(64)),
        "u128" => Ok(Kind::Raw(128)),
        "csv" => Ok(Kind::Delimited(b',')),
        "tsv" => Ok(Kind::Delimited(b'\t')),
        "warc" | "wet" => Ok(Kind::Warc),
        "wat" => refused("the metadata of a crawl (its texts are in the .warc and .wet files)"),
        "parquet" => refused("compressed Parquet (it is compressed inside)"),
        "json" => refused("a JSON document (rename it to .jsonl if every line is an object)"),
        // What a shell passes for <(command) has no extension to tell by.
        "" if !regular => Ok(Kind::Lines),
        _ => Ok(Kind::Text),
    }
}

/// What rows bring with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bring {
    /// There are no rows, or none that can be read.
    Nothing,
    Fingerprints,
    /// Texts, some of them at least.
    Texts,
}

/// All inputs of a run, in the order given.
#[derive(Debug)]
pub(crate) struct Inputs {
    pub(crate) sources: Vec<Source>,
    pub(crate) fields: Fields,
}

impl Inputs {
    /// Looks at every path; fails before anything is read or written.
    pub(crate) fn resolve(paths: &[PathBuf], fields: Fields) -> Result<Self> {
        if paths.iter().filter(|path| path.as_os_str() == STDIN).count() > 1 {
            return Err(Failure::Usage(
                "- stands for standard input and can be given once".to_owned(),
            ));
        }
        let sources = paths.iter().map(|path| Source::new(path, &fields)).collect::<Result<_>>()?;
        Ok(Self { sources, fields })
    }

    /// Makes every source readable twice.
    pub(crate) fn spool(&mut self, directory: Option<&Path>, console: &Console) -> Result<()> {
        self.sources.iter_mut().try_for_each(|source| source.spool(directory, console))
    }

    /// The width of the raw files and the name of one; they must agree.
    pub(crate) fn raw_width(&self) -> Result<Option<(u32, &str)>> {
        let mut found: Option<(u32, &str)> = None;
        for source in &self.sources {
            let Kind::Raw(bits) = source.kind else { continue };
            match found {
                Some((other, name)) if other != bits => {
                    return Err(Failure::file(
                        &source.name,
                        format!(
                            "holds {bits}-bit fingerprints, {name} holds {other}-bit ones; give files of one width"
                        ),
                    ));
                }
                _ => found = Some((bits, &source.name)),
            }
        }
        Ok(found)
    }

    /// Tells what the inputs bring, judged by the first row of each.
    pub(crate) fn bring(&self) -> Result<Bring> {
        let mut bring = Bring::Nothing;
        for source in &self.sources {
            match source.begins_with_fingerprint(&self.fields)? {
                Some(true) => bring = Bring::Fingerprints,
                Some(false) => return Ok(Bring::Texts),
                None => {}
            }
        }
        Ok(bring)
    }

    /// The columns of CSV files; `None` unless all inputs are such, and agree on distinct ones.
    pub(crate) fn header(&self) -> Result<Option<Vec<String>>> {
        let mut common: Option<Vec<String>> = None;
        for source in &self.sources {
            let Kind::Delimited(delimiter) = source.kind else { return Ok(None) };
            let reader = source.open(&Meter::default())?;
            let header = delimited::header(&source.name, delimiter, &self.fields, reader)?;
            // An empty file has no rows that would miss a column.
            if header.is_empty() {
                continue;
            }
            let distinct: HashSet<&String> = header.iter().collect();
            let agrees = common.as_ref().is_none_or(|common| *common == header);
            if distinct.len() < header.len() || !agrees {
                return Ok(None);
            }
            common = Some(header);
        }
        Ok(Some(common.unwrap_or_default()))
    }

    /// A rough number of rows, for choosing a plan: exact for raw files only.
    pub(crate) fn estimated_rows(&self, fingerprint_bytes: usize) -> u64 {
        let rows = |source: &Source| match &source.kind {
            Kind::Raw(_) => source.bytes().unwrap_or(0) / fingerprint_bytes as u64,
            Kind::Lines | Kind::Delimited(_) => source.bytes().unwrap_or(0) / TYPICAL_ROW,
            Kind::Columnar(columnar) => columnar.rows(),
            Kind::Warc => source.bytes().unwrap_or(0) / TYPICAL_RECORD,
            Kind::Text => 1,
            Kind::Directory(listing) => listing.files.len() as u64,
        };
        self.sources.iter().map(rows).sum()
    }

    /// Bytes on disk; `None` when a pipe is among the sources.
    pub(crate) fn bytes(&self) -> Option<u64> {
        self.sources.iter().map(Source::bytes).sum()
    }
}

impl Source {
    /// Tells whether reading on may mean waiting for whoever writes.
    pub(crate) fn is_live(&self) -> bool {
        self.stream.is_some() && self.spool.is_none()
    }

    fn bytes(&self) -> Option<u64> {
        match (&self.kind, &self.spool, &self.stream) {
            (Kind::Directory(listing), ..) => Some(listing.bytes),
            (_, Some(spool), _) => spool.path().metadata().ok().map(|found| found.len()),
            (_, None, Some(_)) => None,
            (_, None, None) => self.path.metadata().ok().map(|found| found.len()),
        }
    }
}

/// Finds the file and line of an origin again.
#[derive(Debug, Default)]
pub(crate) struct Origins {
    /// Origin of each source's first row, rising, and the source's position.
    starts: Vec<(u64, usize)>,
}

impl Origins {
    pub(crate) fn note(&mut self, origin: u64, source: usize) {
        if self.starts.last().is_none_or(|&(_, last)| last != source) {
            self.starts.push((origin, source));
        }
    }

    /// Returns the source and the ordinal of the row within it, from 0.
    pub(crate) fn find(&self, origin: u64) -> Option<(usize, u64)> {
        let after = self.starts.partition_point(|&(start, _)| start <= origin);
        let &(start, source) = self.starts.get(after.checked_sub(1)?)?;
        Some((source, origin - start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_choose_the_kind_behind_compression() {
        let kind = |name: &str| kind(Path::new(name), true);
        assert!(matches!(kind("a.jsonl.gz"), Ok(Kind::Lines)));
        assert!(matches!(kind("a.NDJSON"), Ok(Kind::Lines)));
        assert!(matches!(kind("a.u128.zst"), Ok(Kind::Raw(128))));
        assert!(matches!(kind("copyright"), Ok(Kind::Text)));
        assert!(matches!(kind("a.csv"), Ok(Kind::Delimited(b','))));
        assert!(matches!(kind("a.tsv.gz"), Ok(Kind::Delimited(b'\t'))));
        assert!(matches!(kind("a.warc.zst"), Ok(Kind::Warc)));
        assert!(matches!(kind("a.warc.wet.gz"), Ok(Kind::Warc)));
        for name in ["a.parquet.gz", "a.json", "a.warc.wat.gz"] {
            assert!(matches!(kind(name), Err(Failure::Usage(_))), "{name}");
        }
    }

    #[test]
    fn origins_lead_back_to_source_and_row() {
        let mut origins = Origins::default();
        assert_eq!(origins.find(0), None);
        origins.note(0, 0);
        origins.note(50, 0);
        origins.note(100, 2);
        assert_eq!(origins.find(99), Some((0, 99)));
        assert_eq!(origins.find(100), Some((2, 0)));
    }
}
