//! Formats and files of the kept rows: copied JSON Lines, Parquet, or CSV; one file, or one for each
//! source.
//!
//! Rows of Parquet files with equal columns keep these with their types: only the numbers of the
//! kept rows are recorded, and the files are read again. Other rows become JSON, whose values
//! decide the columns. CSV is made from CSV alone, cell by cell.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::PathBuf;

use super::files::{Files, Rows as Kept};
use crate::console::Console;
use crate::failure::{Failure, Result};
use crate::input::columnar::{self, Chosen, Columnar};
use crate::input::{Inputs, Kind, Origins, Rows, Source, changed};
use crate::output::Output;
use crate::session::Session;

/// Lists the formats of the kept rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Form {
    /// kept.jsonl
    Jsonl,
    /// kept.parquet, compressed with Zstandard
    Parquet,
    /// kept.csv, from CSV and TSV with equal columns
    Csv,
    /// kept.tsv, from CSV and TSV with equal columns
    Tsv,
}

impl Form {
    /// Returns the extension of such a file.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Parquet => "parquet",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
        }
    }

    /// Returns the byte between cells; `None` for formats without one.
    fn delimiter(self) -> Option<u8> {
        match self {
            Self::Jsonl | Self::Parquet => None,
            Self::Csv => Some(b','),
            Self::Tsv => Some(b'\t'),
        }
    }

    /// Refuses inputs that cannot be written so, before anything is done.
    pub(super) fn require(self, inputs: &Inputs) -> Result<()> {
        if self == Self::Parquet {
            columnar::require()?;
        }
        if self.delimiter().is_none() || inputs.header()?.is_some() {
            return Ok(());
        }
        Err(Failure::Usage(format!(
            "{} needs CSV and TSV inputs with equal, distinct columns; write these inputs as \
                .jsonl or .parquet",
            self.name()
        )))
    }
}

/// Receives the kept rows of some sources.
#[derive(Debug)]
pub(super) enum Sink {
    Lines(Output),
    /// Rows as lines that become columns at the end.
    Spool(BufWriter<File>, Output),
    /// Ordinals of rows over all inputs.
    Ordinals(Ordinals),
    /// Rows as records of CSV.
    Cells(Box<Cells>),
}

/// Rows of Parquet or Arrow files with equal columns, by their ordinals.
#[derive(Debug)]
pub(super) struct Ordinals {
    chosen: Chosen,
    sources: Range<usize>,
    /// Ordinal of the first row of these sources.
    base: u64,
    output: Output,
}

impl Sink {
    pub(super) fn new(
        form: Form,
        output: Output,
        inputs: &Inputs,
        sources: Range<usize>,
        base: u64,
    ) -> Result<Self> {
        let some = inputs.sources.get(sources.clone()).unwrap_or_default();
        if let Some(delimiter) = form.delimiter() {
            let header = match some {
                [source] => source.header()?,
                _ => inputs.header()?,
            };
            let cells = Cells::new(output, delimiter, header.unwrap_or_default())?;
            return Ok(Self::Cells(Box::new(cells)));
        }
        Ok(match form {
            Form::Parquet if columnar(some).is_some_and(|files| columnar::agree(&files)) => {
                Self::Ordinals(Ordinals { chosen: Chosen::default(), sources, base, output })
            }
            Form::Parquet => {
                // A file without a name, so that nothing is left of it.
                let spool = tempfile::tempfile();
                let spool = spool.map_err(|e| Failure::io(std::env::temp_dir(), e))?;
                Self::Spool(BufWriter::new(spool), output)
            }
            Form::Jsonl | Form::Csv | Form::Tsv => Self::Lines(output),
        })
    }

    /// Returns how much of a row has to be read.
    pub(super) fn reads(&self) -> Rows {
        if let Self::Ordinals(_) = self { Rows::Needed } else { Rows::Whole }
    }

    /// Receives a row: a line of JSON with other texts than it had, or what `copy` writes as one.
    pub(super) fn row(
        &mut self,
        origin: u64,
        line: Option<&[u8]>,
        copy: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
    ) -> Result<()> {
        let copy = |out: &mut dyn Write| match line {
            Some(line) => out.write_all(line),
            None => copy(out),
        };
        match self {
            Self::Lines(output) => output.with(copy),
            Self::Ordinals(ordinals) => ordinals.chosen.push(origin, line),
            Self::Spool(file, _) => copy(file).map_err(|e| Failure::io(std::env::temp_dir(), e)),
            Self::Cells(cells) => {
                let mut line = Vec::new();
                copy(&mut line).map_err(|e| Failure::io("kept rows", e))?;
                cells.line(&line)
            }
        }
    }

    /// Writes the remaining rows.
    pub(super) fn close(self, inputs: &Inputs, console: &Console) -> Result<Output> {
        match self {
            Self::Lines(output) => Ok(output),
            Self::Ordinals(Ordinals { chosen, sources, base, output }) => {
                let some = inputs.sources.get(sources).unwrap_or_default();
                let Some(files) = columnar(some) else {
                    return Err(changed(output.name()));
                };
                let texts = some.iter().map(|source| source.fields.texts.as_slice());
                let files: Vec<_> = files.into_iter().zip(texts).collect();
                columnar::filter(&files, base, chosen, output, console)
            }
            Self::Spool(file, output) => {
                let spool = file.into_inner();
                let spool = spool.map_err(|e| Failure::io(output.name(), e.into_error()))?;
                columnar::from_lines(spool, output, console)
            }
            Self::Cells(cells) => cells.finish(),
        }
    }
}

/// Returns the inputs if all are Parquet or Arrow files.
fn columnar(sources: &[Source]) -> Option<Vec<&Columnar>> {
    let columnar = sources.iter().map(|source| {
        if let Kind::Columnar(columnar) = &source.kind { Some(columnar) } else { None }
    });
    columnar.collect()
}

/// A file of records being written, of rows that were read as lines of JSON.
#[derive(Debug)]
pub(super) struct Cells {
    writer: csv::Writer<Output>,
    header: Vec<String>,
    path: String,
}

impl Cells {
    /// Begins with the header; inputs without a row have none.
    fn new(output: Output, delimiter: u8, header: Vec<String>) -> Result<Self> {
        let path = output.name().to_owned();
        let writer = csv::WriterBuilder::new().delimiter(delimiter).from_writer(output);
        let mut cells = Self { writer, header: Vec::new(), path };
        if !header.is_empty() {
            cells.record(header.iter().map(String::as_str))?;
        }
        Ok(Self { header, ..cells })
    }

    /// Takes a row; a cell that the line leaves out is empty.
    fn line(&mut self, line: &[u8]) -> Result<()> {
        let row: HashMap<String, String> =
            serde_json::from_slice(line).map_err(|e| Failure::io(&self.path, e.into()))?;
        let header = std::mem::take(&mut self.header);
        let cell = |column: &String| row.get(column).map_or("", String::as_str);
        let written = self.record(header.iter().map(cell));
        self.header = header;
        written
    }

    fn record<'a>(&mut self, cells: impl Iterator<Item = &'a str>) -> Result<()> {
        self.writer.write_record(cells).map_err(|e| Failure::of_write(&self.path, e.into()))
    }

    /// Returns the file, complete but without its name yet.
    fn finish(self) -> Result<Output> {
        let Self { writer, path, .. } = self;
        writer.into_inner().map_err(|e| Failure::of_write(&path, e.into_error()))
    }
}

/// Receives the kept rows.
#[derive(Debug)]
pub(super) enum Sinks {
    One(Sink),
    Shards(Shards),
}

/// A file for each source, one after another.
#[derive(Debug)]
pub(super) struct Shards {
    sources: Vec<Shard>,
    /// The current source.
    current: Option<(usize, Sink)>,
    done: Vec<Output>,
}

/// What the file of a source is made of.
#[derive(Debug)]
struct Shard {
    path: PathBuf,
    form: Form,
    /// Ordinal of its first row.
    base: u64,
}

impl Sinks {
    pub(super) fn new(
        files: &Files,
        inputs: &Inputs,
        origins: &Origins,
        session: &Session,
    ) -> Result<Self> {
        let all = 0..inputs.sources.len();
        Ok(match &files.rows {
            Kept::Stdout => {
                let output = Output::stdout(&session.console);
                Self::One(Sink::new(files.form, output, inputs, all, 0)?)
            }
            Kept::File(path) => {
                let output = Output::file(path, files.overwrite)?;
                Self::One(Sink::new(files.form, output, inputs, all, 0)?)
            }
            Kept::Shards(paths) => {
                let shard = |(at, path): (usize, &PathBuf)| Shard {
                    path: path.clone(),
                    form: match inputs.sources.get(at).map(|source| &source.kind) {
                        Some(Kind::Columnar(_)) => Form::Parquet,
                        Some(Kind::Delimited(b'\t')) => Form::Tsv,
                        Some(Kind::Delimited(_)) => Form::Csv,
                        _ => Form::Jsonl,
                    },
                    base: origins.start(at).unwrap_or(0),
                };
                let sources: Vec<Shard> = paths.iter().enumerate().map(shard).collect();
                Self::Shards(Shards { sources, current: None, done: Vec::new() })
            }
        })
    }

    /// Returns how much of a row has to be read.
    pub(super) fn reads(&self) -> Rows {
        match self {
            Self::One(sink) => sink.reads(),
            Self::Shards(_) => Rows::Whole,
        }
    }

    /// Receives a row: a line of JSON with other texts than it had, or what `copy` writes as one.
    pub(super) fn row(
        &mut self,
        inputs: &Inputs,
        files: &Files,
        (source, origin, line): (usize, u64, Option<&[u8]>),
        console: &Console,
        copy: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
    ) -> Result<()> {
        match self {
            Self::One(sink) => sink.row(origin, line, copy),
            Self::Shards(shards) => {
                shards.reach(Some(source), inputs, files, console)?;
                match &mut shards.current {
                    Some((_, sink)) => sink.row(origin, line, copy),
                    None => Ok(()),
                }
            }
        }
    }

    /// Writes the remaining rows.
    pub(super) fn close(
        self,
        inputs: &Inputs,
        files: &Files,
        console: &Console,
    ) -> Result<Vec<Output>> {
        match self {
            Self::One(sink) => Ok(vec![sink.close(inputs, console)?]),
            Self::Shards(mut shards) => {
                shards.reach(None, inputs, files, console)?;
                Ok(shards.done)
            }
        }
    }
}

impl Shards {
    /// Closes the files of all sources before this one; each source has a file, be it empty.
    fn reach(
        &mut self,
        source: Option<usize>,
        inputs: &Inputs,
        files: &Files,
        console: &Console,
    ) -> Result<()> {
        loop {
            let at = match self.current.take() {
                Some((at, sink)) if Some(at) == source => {
                    self.current = Some((at, sink));
                    return Ok(());
                }
                Some((at, sink)) => {
                    self.done.push(sink.close(inputs, console)?);
                    at + 1
                }
                None => self.done.len(),
            };
            let Some(Shard { path, form, base }) = self.sources.get(at) else { return Ok(()) };
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent).map_err(|e| Failure::io(parent, e))?;
            }
            let output = Output::file(path, files.overwrite)?;
            self.current = Some((at, Sink::new(*form, output, inputs, at..at + 1, *base)?));
        }
    }
}
