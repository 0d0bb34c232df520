//! Forms of the kept rows: JSON Lines as they are copied, Parquet, or CSV.
//!
//! Rows of Parquet files with equal columns keep these, types and all: only the numbers of the
//! rows to keep are noted, and the files are read again. Rows of anything else go through JSON,
//! whose values settle the columns. CSV is made of CSV alone, cell by cell.

use std::fs::File;
use std::io::{BufReader, Seek, Write};
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_json::ReaderBuilder;
use arrow_json::reader::infer_json_schema;
use arrow_schema::{Field, Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use tempfile::NamedTempFile;

use super::cells::Cells;
use super::files::Files;
use crate::console::Console;
use crate::failure::{Failure, Result};
use crate::input::{Columnar, Inputs, Kind, Rows};
use crate::output::{self, Output};

/// Bytes of a row group, as they will be written.
const ROW_GROUP: usize = 64 << 20;

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

/// Takes the rows to keep.
#[derive(Debug)]
pub(super) enum Sink {
    Lines(Output),
    /// Rows as lines that become columns at the end.
    Spool(std::io::BufWriter<NamedTempFile>),
    /// Ordinals of rows over all inputs.
    Ordinals(Vec<u64>),
    /// Rows as records of CSV.
    Cells(Box<Cells>),
}

impl Sink {
    pub(super) fn new(files: &Files, inputs: &Inputs) -> Result<Self> {
        if let Some(delimiter) = files.form.delimiter() {
            let header = inputs.header()?.unwrap_or_default();
            return Ok(Self::Cells(Box::new(Cells::new(files, delimiter, header)?)));
        }
        Ok(match files.form {
            Form::Parquet if common_columns(inputs).is_some() => Self::Ordinals(Vec::new()),
            Form::Parquet => {
                Self::Spool(std::io::BufWriter::new(output::temporary(files.place())?))
            }
            Form::Jsonl | Form::Csv | Form::Tsv => Self::Lines(Output::file(&files.kept)?),
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
                ordinals.push(origin);
                Ok(())
            }
            Self::Spool(file) => copy(file).map_err(|e| Failure::io(file.get_ref().path(), e)),
            Self::Cells(cells) => {
                let mut line = Vec::new();
                copy(&mut line).map_err(|e| Failure::io("kept rows", e))?;
                cells.line(&line)
            }
        }
    }

    /// Writes what is not written yet.
    pub(super) fn close(self, inputs: &Inputs, files: &Files, console: &Console) -> Result<Kept> {
        let path = &files.kept;
        match self {
            Self::Lines(output) => Ok(Kept::Lines(output)),
            Self::Ordinals(ordinals) => {
                let Some((schema, sources)) = common_columns(inputs) else {
                    return Err(Failure::file(
                        path,
                        "is not written: inputs changed between the two passes; leave them alone and run it again",
                    ));
                };
                let mut table = Table::new(files, schema)?;
                table.filter(&sources, &ordinals, console)?;
                table.finish()
            }
            Self::Spool(file) => {
                let spool = file.into_inner().map_err(|e| Failure::io(path, e.into_error()))?;
                columns_of_lines(spool, files, console)
            }
            Self::Cells(cells) => {
                let (file, path) = cells.finish()?;
                Ok(Kept::File(file, path))
            }
        }
    }
}

/// A file of kept rows that is complete but for its name.
#[derive(Debug)]
pub(super) enum Kept {
    Lines(Output),
    File(NamedTempFile, PathBuf),
}

impl Kept {
    pub(super) fn finish(self) -> Result<()> {
        match self {
            Self::Lines(output) => output.finish(),
            Self::File(file, path) => {
                file.persist(&path).map(drop).map_err(|e| Failure::io(&path, e.error))
            }
        }
    }
}

/// Returns the columns that all inputs have, if all are Parquet files and agree.
fn common_columns(inputs: &Inputs) -> Option<(SchemaRef, Vec<&Columnar>)> {
    let columnar = inputs.sources.iter().map(|source| {
        if let Kind::Columnar(columnar) = &source.kind { Some(columnar) } else { None }
    });
    let files: Vec<&Columnar> = columnar.collect::<Option<_>>()?;
    let first = files.first()?.schema();
    let mut fields: Vec<Field> =
        first.fields().iter().map(|field| field.as_ref().clone()).collect();
    for file in &files {
        let others = file.schema().fields();
        let alike = |(own, other): (&Field, &Arc<Field>)| {
            own.name() == other.name() && own.data_type() == other.data_type()
        };
        if others.len() != fields.len() || !fields.iter().zip(others).all(alike) {
            return None;
        }
        for (own, other) in fields.iter_mut().zip(others) {
            // A shard without nulls may say that it cannot have any.
            own.set_nullable(own.is_nullable() || other.is_nullable());
        }
    }
    let schema = Schema::new_with_metadata(fields, first.metadata().clone());
    Some((Arc::new(schema), files))
}

/// Reads lines of JSON twice: for their columns, and to write these.
fn columns_of_lines(mut spool: NamedTempFile, files: &Files, console: &Console) -> Result<Kept> {
    let path = &files.kept;
    let failed = |e: arrow_schema::ArrowError| {
        Failure::file(path, format!("rows do not fit into columns: {e}; use --format jsonl"))
    };
    let rewind = |spool: &mut NamedTempFile| -> Result<BufReader<File>> {
        spool.rewind().map_err(|e| Failure::io(path, e))?;
        spool.reopen().map(BufReader::new).map_err(|e| Failure::io(path, e))
    };
    let (schema, _) = infer_json_schema(rewind(&mut spool)?, None).map_err(failed)?;
    let schema = Arc::new(schema);
    let mut table = Table::new(files, Arc::clone(&schema))?;
    let batches = ReaderBuilder::new(schema).with_coerce_primitive(true);
    for batch in batches.build(rewind(&mut spool)?).map_err(failed)? {
        console.check()?;
        table.write(&batch.map_err(failed)?)?;
    }
    table.finish()
}

/// A Parquet file being written.
struct Table {
    path: PathBuf,
    schema: SchemaRef,
    writer: ArrowWriter<NamedTempFile>,
}

impl Table {
    fn new(files: &Files, schema: SchemaRef) -> Result<Self> {
        let path = &files.kept;
        let compression = Compression::ZSTD(ZstdLevel::default());
        let properties = WriterProperties::builder().set_compression(compression).build();
        let file = output::temporary(files.place())?;
        let writer = ArrowWriter::try_new(file, Arc::clone(&schema), Some(properties))
            .map_err(|e| Failure::file(path, e.to_string()))?;
        Ok(Self { path: path.clone(), schema, writer })
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let written = self.writer.write(batch);
        written.map_err(|e| Failure::file(&self.path, e.to_string()))?;
        // Row groups are bounded by rows; long texts would make them huge.
        if self.writer.in_progress_size() > ROW_GROUP {
            self.writer.flush().map_err(|e| Failure::file(&self.path, e.to_string()))?;
        }
        Ok(())
    }

    /// Writes the rows of these rising ordinals, counted over all files.
    fn filter(&mut self, files: &[&Columnar], ordinals: &[u64], console: &Console) -> Result<()> {
        let (mut first, mut wanted) = (0, ordinals.iter().copied().peekable());
        for file in files {
            for batch in file.batches()? {
                console.check()?;
                let batch = batch.map_err(|e| Failure::file(&self.path, e.to_string()))?;
                let rows = first..first + batch.num_rows() as u64;
                first = rows.end;
                let keep = rows.map(|row| wanted.next_if_eq(&row).is_some());
                let keep: BooleanArray = keep.map(Some).collect();
                let kept = filter_record_batch(&batch, &keep)
                    .and_then(|kept| {
                        RecordBatch::try_new(Arc::clone(&self.schema), kept.columns().to_vec())
                    })
                    .map_err(|e| Failure::file(&self.path, e.to_string()))?;
                self.write(&kept)?;
            }
        }
        match wanted.next() {
            None => Ok(()),
            Some(_) => Err(Failure::file(
                &self.path,
                "is not written: an input changed between the two passes; leave the inputs alone and run it again",
            )),
        }
    }

    fn finish(self) -> Result<Kept> {
        let file =
            self.writer.into_inner().map_err(|e| Failure::file(&self.path, e.to_string()))?;
        Ok(Kept::File(file, self.path))
    }
}
