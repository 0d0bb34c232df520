//! Sources: an input becomes something to read rows or documents from.

use std::fs::{File, Metadata};
use std::io::{self, BufRead, Cursor, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tempfile::NamedTempFile;

use super::detect::{self, Format, Named};
use super::exported::Export;
use super::kind::Kind;
use super::look::{self, Bring, Head, Shown};
use super::open::{self, Compression, Meter, Reader};
use super::walk::{self, Listing};
use crate::face::failure::{Failure, Result};
use crate::face::host::Host;
use crate::face::temporary;
use crate::formats::delimited;
use crate::formats::fields::{Fields, Names};
use crate::formats::json;
use crate::formats::warc::Records;

/// How the name of standard input is spelled.
pub(crate) const STDIN: &str = "-";

/// One input, or a data file of a directory.
#[derive(Debug)]
pub struct Source {
    /// The path as it was given.
    pub name: String,
    pub kind: Kind,
    pub fields: Fields,
    pub bring: Bring,
    /// The directory that was given, and the path within it.
    pub within: Option<String>,
    pub(crate) path: PathBuf,
    /// The first line, if the source is an exported index.
    pub(crate) export: Option<Export>,
    /// Whether a row among the first ones has an id.
    pub(crate) has_id: bool,
    compression: Option<Compression>,
    names: Names,
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

/// What every file of a run is read with.
#[derive(Debug, Clone, Default)]
pub struct Options {
    pub names: Names,
    pub reading: walk::Reading,
}

impl Source {
    fn over(name: String, path: &Path, kind: Kind, names: &Names) -> Self {
        Self {
            name,
            kind,
            fields: Fields::of(
                names,
                names.text.as_deref().unwrap_or(crate::formats::fields::TEXT_FIELDS[0]),
            ),
            bring: Bring::Texts,
            within: None,
            path: path.to_path_buf(),
            export: None,
            has_id: true,
            compression: None,
            names: names.clone(),
            stream: None,
            converted: false,
            spool: None,
        }
    }

    /// Takes the documents of a directory.
    pub(crate) fn documents(name: &str, path: &Path, listing: Listing, names: &Names) -> Self {
        Self::over(name.to_owned(), path, Kind::Directory(listing), names)
    }

    /// Takes rows in memory.
    #[cfg(feature = "parquet")]
    pub(crate) fn memory(
        schema: arrow_schema::SchemaRef,
        batches: Vec<arrow_array::RecordBatch>,
        names: &Names,
    ) -> Result<Self> {
        let mut columnar = crate::formats::columnar::Columnar::memory(schema, batches);
        let none = Self::over(String::new(), Path::new(""), Kind::Text, names);
        columnar.choose(&none.fields)?;
        Ok(Self { kind: Kind::Columnar(columnar), ..none })
    }

    /// Takes a file of rows that was found in a directory.
    pub(crate) fn data(
        root: &Path,
        file: walk::DataFile,
        options: &Options,
    ) -> Result<Option<Self>> {
        let path = root.join(&file.name);
        let found = (file.format, file.compression);
        let made = Self::regular(&path, found, options);
        let source = match made {
            // A lone JSON object without a text is a document among others, such as a setting.
            Err(Failure::NoTextField { .. }) if detect::alone(&path, found) => return Ok(None),
            made => made?,
        };
        Ok(Some(Self { within: Some(file.name), ..source }))
    }

    /// Takes a file, a pipe or standard input.
    pub(crate) fn file(path: &Path, found: Option<&Metadata>, options: &Options) -> Result<Self> {
        let name = path.display().to_string();
        let Some(found) = found else {
            let format = options.reading.format.unwrap_or(Format::Jsonl);
            return Self::streamed(path, (format, None), io::stdin(), options);
        };
        walk::refuse_device(path, found)?;
        if !found.is_file() {
            return Self::pipe(path, options);
        }
        let known = if options.reading.as_documents {
            (Format::Text, Compression::of_name(path))
        } else {
            match (options.reading.format, detect::by_name(path)) {
                (Some(format), _) | (None, Named::Certain(format)) => {
                    (format, Compression::of_name(path))
                }
                (None, Named::Refused(what)) => {
                    return Err(Failure::Usage(format!("{name}: {what}")));
                }
                (None, Named::Open) => {
                    let (format, compression) = detect::by_content(path)?;
                    // Such a name means rows, with any contents.
                    let json = open::without_compression(path)
                        .extension()
                        .is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
                    let format =
                        if json && format == Format::Text { Format::Jsonl } else { format };
                    (format, compression)
                }
            }
        };
        Self::regular(path, known, options)
    }

    fn regular(
        path: &Path,
        (format, compression): (Format, Option<Compression>),
        options: &Options,
    ) -> Result<Self> {
        // Opening at once finds a file without permission before anything is written.
        File::open(path).map_err(|e| Failure::io(path, e))?;
        let kind = Kind::of(path, format)?;
        let name = path.display().to_string();
        let mut source = Self { compression, ..Self::over(name, path, kind, &options.names) };
        source.look()?;
        Ok(source)
    }

    /// Opens a pipe; its name shows the format, else it is JSON Lines.
    fn pipe(path: &Path, options: &Options) -> Result<Self> {
        let format = match (options.reading.format, detect::by_name(path)) {
            (Some(format), _) | (None, Named::Certain(format)) => format,
            (None, Named::Refused(what)) => {
                return Err(Failure::Usage(format!("{}: {what}", path.display())));
            }
            // A shell passes a name without extension for <(command).
            (None, Named::Open) => match path.extension() {
                None => Format::Jsonl,
                Some(extension) if extension == "json" => Format::Json,
                Some(_) => Format::Text,
            },
        };
        let file = File::open(path).map_err(|e| Failure::io(path, e))?;
        Self::streamed(path, (format, Compression::of_name(path)), file, options)
    }

    /// Takes what can be read only once.
    fn streamed(
        path: &Path,
        (format, compression): (Format, Option<Compression>),
        reader: impl Read + Send + 'static,
        options: &Options,
    ) -> Result<Self> {
        if let Format::Parquet | Format::Arrow = format {
            return Err(Failure::file(
                path,
                "is not a regular file, which columnar formats need; save it to a file first",
            ));
        }
        // Records tell how they are compressed.
        let compression = compression.filter(|_| format != Format::Warc);
        let reader = open::decompressed(path, compression, reader)?;
        let name = path.display().to_string();
        let mut source = Self::over(name, path, Kind::Lines, &options.names);
        match Kind::of(path, format)? {
            Kind::Lines => source.live(reader, options)?,
            Kind::Json => source.live(json::lines(reader), options)?,
            Kind::Delimited(delimiter) => {
                // A pipe becomes JSON Lines while it is read.
                let table = delimited::begin(&source.name, delimiter, &options.names, reader)?;
                source.converted = true;
                source.columns(&table.header.clone())?;
                source.stream = Some(Stream(Mutex::new(Some(delimited::lines(table)))));
            }
            kind @ (Kind::Columnar(_)
            | Kind::Raw(_)
            | Kind::Warc
            | Kind::Text
            | Kind::Directory(_)) => {
                source.kind = kind;
                source.look()?;
                source.stream = Some(Stream(Mutex::new(Some(reader))));
            }
        }
        Ok(source)
    }

    /// Looks at the first rows of a stream, and puts them back in front.
    fn live(&mut self, mut reader: Reader, options: &Options) -> Result<()> {
        let names = &options.names;
        let head = Head::read(&mut reader, Some(names)).map_err(|e| Failure::io(&self.name, e))?;
        self.resolve(&head)?;
        let whole = open::buffered(Cursor::new(head.bytes).chain(reader));
        self.stream = Some(Stream(Mutex::new(Some(whole))));
        Ok(())
    }

    /// Detects the fields of the rows, and whether they have texts or fingerprints.
    fn look(&mut self) -> Result<()> {
        match &self.kind {
            Kind::Raw(_) => self.bring = Bring::Fingerprints,
            Kind::Text | Kind::Warc | Kind::Directory(_) => {}
            Kind::Lines | Kind::Json => {
                let head = self.head()?;
                self.resolve(&head)?;
            }
            Kind::Delimited(delimiter) => {
                let reader = self.open(&Meter::default())?;
                let table = delimited::begin(&self.name, *delimiter, &self.names, reader)?;
                self.columns(&table.header)?;
            }
            Kind::Columnar(columnar) => {
                let found = columnar.names();
                let shown = look::Schema::of(columnar);
                self.fields = look::choose(&self.name, &self.names, &shown)?;
                self.has_id = columnar.has(&self.fields.id);
                if let Kind::Columnar(columnar) = &mut self.kind {
                    columnar.choose(&self.fields)?;
                }
                self.choose_bring(&found)?;
            }
        }
        Ok(())
    }

    fn columns(&mut self, header: &[String]) -> Result<()> {
        self.fields = look::choose(&self.name, &self.names, &look::Header(header))?;
        self.has_id = header.is_empty() || header.contains(&self.fields.id);
        self.choose_bring(header)
    }

    /// Chooses texts, unless there are fingerprints and all texts are null.
    fn choose_bring(&mut self, columns: &[String]) -> Result<()> {
        let fingerprints = columns.iter().any(|name| name == crate::formats::fields::FINGERPRINT);
        let is_within = |text: &str| matches!(&self.kind, Kind::Columnar(columns) if columns.has_text(text, false));
        let is_there = |text: &String| columns.contains(text) || is_within(text);
        let texts = self.fields.texts.iter().any(is_there);
        self.bring = match (texts, fingerprints) {
            (true, true) if self.stream.is_none() && !self.converted => {
                if let Kind::Columnar(columnar) = &self.kind {
                    look::bring_of(&self.name, columnar, &self.fields)?
                } else {
                    self.head()?.bring(&self.fields)
                }
            }
            (false, true) => Bring::Fingerprints,
            _ => Bring::Texts,
        };
        Ok(())
    }

    fn head(&self) -> Result<Head> {
        let mut reader = self.open_rows(&Meter::default())?;
        Head::read(&mut reader, None).map_err(|e| Failure::io(&self.name, e))
    }

    fn resolve(&mut self, head: &Head) -> Result<()> {
        self.export = head.export(&self.name)?;
        let shown = head.shown(&self.names);
        self.fields = look::choose(&self.name, &self.names, &shown)?;
        if self.names.text.is_none() {
            // Rows of several sources may be in one file, such as those that `dedup` kept.
            self.fields = std::mem::take(&mut self.fields).or_other_defaults();
        }
        self.bring = head.bring(&self.fields);
        self.has_id = shown.names().is_empty() || head.has_id(&self.fields);
        Ok(())
    }

    /// Returns why a line is no record, and what the record was.
    pub(crate) fn refused<'l>(&self, line: &'l [u8]) -> Option<(&'l str, &'l [u8])> {
        let of_records = self.converted || matches!(self.kind, Kind::Delimited(_));
        of_records.then(|| delimited::refused(line)).flatten()
    }

    /// Opens the source for reading rows of JSON from its start.
    pub(crate) fn open_rows(&self, meter: &Meter) -> Result<Reader> {
        match &self.kind {
            Kind::Delimited(delimiter) => {
                let reader = self.open(meter)?;
                let table = delimited::begin(&self.name, *delimiter, &self.names, reader)?;
                Ok(delimited::lines(table))
            }
            Kind::Json => Ok(json::lines(self.open(meter)?)),
            Kind::Lines
            | Kind::Columnar(_)
            | Kind::Raw(_)
            | Kind::Warc
            | Kind::Text
            | Kind::Directory(_) => self.open(meter),
        }
    }

    /// Opens the records of a crawl, which tell their offsets in the file as it is.
    ///
    /// Of a regular file, `threads` unpack the members.
    pub(crate) fn open_records(&self, threads: usize, meter: &Meter) -> Result<Records> {
        let records = match (&self.spool, &self.stream) {
            (None, None) => Records::open(&self.path, threads, meter),
            _ => Records::new(self.open(meter)?),
        };
        records.map_err(|e| Failure::io(&self.name, e))
    }

    /// Opens the source for reading from its start.
    pub(crate) fn open(&self, meter: &Meter) -> Result<Reader> {
        if let Some(spool) = &self.spool {
            return open::counted(spool.path(), None, meter);
        }
        let Some(Stream(stream)) = &self.stream else {
            return open::counted(&self.path, self.compression, meter);
        };
        let mut stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
        stream.take().ok_or_else(|| {
            Failure::file(&self.name, "can be read only once; save it to a file and give the file")
        })
    }

    /// Opens an uncompressed file at an offset; `None` for what can only be read in order.
    pub(crate) fn open_at(&self, offset: u64) -> Result<Option<Reader>> {
        let Some(path) = self.plain_path() else { return Ok(None) };
        let mut file = File::open(path).map_err(|e| Failure::io(path, e))?;
        file.seek(SeekFrom::Start(offset)).map_err(|e| Failure::io(path, e))?;
        Ok(Some(open::buffered(file)))
    }

    /// Returns the bytes of an uncompressed file; `None` for a stream.
    pub(crate) fn plain_bytes(&self) -> Option<u64> {
        self.plain_path()?.metadata().ok().map(|found| found.len())
    }

    fn plain_path(&self) -> Option<&Path> {
        if let Kind::Columnar(_) | Kind::Delimited(_) | Kind::Json | Kind::Warc = self.kind {
            return None;
        }
        match (&self.spool, &self.stream) {
            (Some(spool), _) => Some(spool.path()),
            (None, Some(_)) => None,
            (None, None) => self.compression.is_none().then_some(&*self.path),
        }
    }

    /// Opens one file of a directory.
    pub(crate) fn open_file(&self, relative: &str, meter: &Meter) -> Result<Reader> {
        let path = self.path.join(relative);
        open::counted(&path, Compression::of_name(&path), meter)
    }

    /// Copies a pipe into a temporary file, so that it can be read twice.
    pub(crate) fn spool(&mut self, directory: Option<&Path>, console: &dyn Host) -> Result<()> {
        if self.stream.is_none() {
            return Ok(());
        }
        let mut reader = self.open(&Meter::default())?;
        let directory = directory.map_or_else(std::env::temp_dir, Path::to_path_buf);
        let mut file = temporary::private(&directory)?;
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

    /// Returns true if the next read may wait for a writer.
    pub fn is_live(&self) -> bool {
        self.stream.is_some() && self.spool.is_none()
    }

    /// Returns the bytes on disk; `None` for a pipe.
    pub(crate) fn bytes(&self) -> Option<u64> {
        match (&self.kind, &self.spool, &self.stream) {
            (Kind::Directory(listing), ..) => Some(listing.bytes),
            (_, Some(spool), _) => spool.path().metadata().ok().map(|found| found.len()),
            (_, None, Some(_)) => None,
            (_, None, None) => self.path.metadata().ok().map(|found| found.len()),
        }
    }

    /// Returns the columns of a table of cells; `None` for other formats.
    pub fn header(&self) -> Result<Option<Vec<String>>> {
        let Kind::Delimited(delimiter) = self.kind else { return Ok(None) };
        let reader = self.open(&Meter::default())?;
        Ok(Some(delimited::begin(&self.name, delimiter, &self.names, reader)?.header))
    }

    /// Returns the directory that was given, if the source is in one.
    pub fn directory(&self) -> Option<&Path> {
        match (&self.kind, &self.within) {
            (Kind::Directory(_), _) => Some(&self.path),
            (_, Some(within)) => {
                let parts = Path::new(within).components().count();
                self.path.ancestors().nth(parts)
            }
            _ => None,
        }
    }

    /// Returns whether rows have named fields.
    pub(crate) fn has_fields(&self) -> bool {
        matches!(self.kind, Kind::Lines | Kind::Json | Kind::Columnar(_) | Kind::Delimited(_))
    }

    /// Returns the place of a row: the source with the row's number from 1, or a file alone.
    pub fn at(&self, ordinal: u64) -> String {
        match &self.kind {
            Kind::Text => self.name.clone(),
            Kind::Directory(listing) => {
                let file = usize::try_from(ordinal).ok().and_then(|at| listing.files.get(at));
                file.map_or_else(|| self.name.clone(), |file| format!("{}/{file}", self.name))
            }
            Kind::Lines
            | Kind::Json
            | Kind::Columnar(_)
            | Kind::Delimited(_)
            | Kind::Raw(_)
            | Kind::Warc => format!("{}:{}", self.name, ordinal + 1),
        }
    }
}
