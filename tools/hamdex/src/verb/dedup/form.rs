//! Forms of the kept rows: JSON Lines as they are copied, Parquet, or CSV.
//!
//! Rows of Parquet files with equal columns keep these, types and all: only the numbers of the
//! rows to keep are noted, and the files are read again. Rows of anything else go through JSON,
//! whose values settle the columns. CSV is made of CSV alone, cell by cell.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;

use crate::console::Console;
use crate::failure::{Failure, Result};
use crate::input::columnar::{self, Columnar};
use crate::input::{Inputs, Kind, Rows, Source, changed};
use crate::output::Output;

/// What the kept rows are written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Form {
    /// kept.jsonl
    Jsonl,
    /// kept.parquet, compressed by Zstandard
    Parquet,
    /// kept.csv, of CSV and TSV with equal columns
    Csv,
    /// kept.tsv, of the same
    Tsv,
}

impl Form {
    /// The extension of such a file.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Parquet => "parquet",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
        }
    }

    /// The byte between cells; `None` for what has none.
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
            "{} is made of CSV and TSV files with equal columns, each named once; write these \
             inputs as .jsonl or .parquet",
            self.name()
        )))
    }
}

/// Takes the rows to keep of some sources.
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
    wanted: Vec<u64>,
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
                Self::Ordinals(Ordinals { wanted: Vec::new(), sources, base, output })
            }
            Form::Parquet => {
                // Nameless, so that nothing can be left of it.
                let spool = tempfile::tempfile();
                let spool = spool.map_err(|e| Failure::io(std::env::temp_dir(), e))?;
                Self::Spool(BufWriter::new(spool), output)
            }
            Form::Jsonl | Form::Csv | Form::Tsv => Self::Lines(output),
        })
    }

    /// How much of a row has to be read for it.
    pub(super) fn reads(&self) -> Rows {
        if let Self::Ordinals(_) = self { Rows::Needed } else { Rows::Whole }
    }

    /// Takes a row, which `copy` writes as a line of JSON.
    pub(super) fn row(
        &mut self,
        origin: u64,
        copy: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
    ) -> Result<()> {
        match self {
            Self::Lines(output) => output.with(copy),
            Self::Ordinals(ordinals) => {
                ordinals.wanted.push(origin);
                Ok(())
            }
            Self::Spool(file, _) => copy(file).map_err(|e| Failure::io(std::env::temp_dir(), e)),
            Self::Cells(cells) => {
                let mut line = Vec::new();
                copy(&mut line).map_err(|e| Failure::io("kept rows", e))?;
                cells.line(&line)
            }
        }
    }

    /// Writes what is not written yet.
    pub(super) fn close(self, inputs: &Inputs, console: &Console) -> Result<Output> {
        match self {
            Self::Lines(output) => Ok(output),
            Self::Ordinals(Ordinals { wanted, sources, base, output }) => {
                let some = inputs.sources.get(sources).unwrap_or_default();
                let Some(files) = columnar(some) else {
                    return Err(changed(output.name()));
                };
                columnar::filter(&files, base, &wanted, output, console)
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
