//! Forms of the kept rows: JSON Lines as they are copied, Parquet, or CSV.
//!
//! Rows of Parquet files with equal columns keep these, types and all: only the numbers of the
//! rows to keep are noted, and the files are read again. Rows of anything else go through JSON,
//! whose values settle the columns. CSV is made of CSV alone, cell by cell.

use std::fs::File;
use std::io::{BufReader, BufWriter, Seek, Write};
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_json::ReaderBuilder;
use arrow_json::reader::infer_json_schema;
use arrow_schema::{Field, Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use super::cells::Cells;
use crate::console::Console;
use crate::failure::{Failure, Result};
use crate::input::{Columnar, Inputs, Kind, Rows, Source, changed};
use crate::output::Output;

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
            Form::Parquet if common_columns(some).is_some() => {
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
                let Some((schema, files)) = common_columns(some) else {
                    return Err(changed(output.name()));
                };
                let mut table = Table::new(output, schema)?;
                table.filter(&files, base, &wanted, console)?;
                table.finish()
            }
            Self::Spool(file, output) => {
                let spool = file.into_inner();
                let spool = spool.map_err(|e| Failure::io(output.name(), e.into_error()))?;
                columns_of_lines(spool, output, console)
            }
            Self::Cells(cells) => cells.finish(),
        }
    }
}

/// Returns the columns that all inputs have, if all are Parquet files and agree.
fn common_columns(sources: &[Source]) -> Option<(SchemaRef, Vec<&Columnar>)> {
    let columnar = sources.iter().map(|source| {
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
fn columns_of_lines(mut spool: File, output: Output, console: &Console) -> Result<Output> {
    let path = output.name().to_owned();
    let failed = |e: arrow_schema::ArrowError| {
        Failure::file(&path, format!("rows do not fit into columns: {e}; use --format jsonl"))
    };
    let mut rewind = || -> Result<BufReader<File>> {
        spool.rewind().map_err(|e| Failure::io(&path, e))?;
        spool.try_clone().map(BufReader::new).map_err(|e| Failure::io(&path, e))
    };
    let (schema, _) = infer_json_schema(rewind()?, None).map_err(failed)?;
    let schema = Arc::new(schema);
    let mut table = Table::new(output, Arc::clone(&schema))?;
    let batches = ReaderBuilder::new(schema).with_coerce_primitive(true);
    for batch in batches.build(rewind()?).map_err(failed)? {
        console.check()?;
        table.write(&batch.map_err(failed)?)?;
    }
    table.finish()
}

/// A Parquet file being written.
struct Table {
    path: String,
    schema: SchemaRef,
    writer: ArrowWriter<Output>,
}

impl Table {
    fn new(output: Output, schema: SchemaRef) -> Result<Self> {
        let path = output.name().to_owned();
        let compression = Compression::ZSTD(ZstdLevel::default());
        let properties = WriterProperties::builder().set_compression(compression).build();
        let writer = ArrowWriter::try_new(output, Arc::clone(&schema), Some(properties))
            .map_err(|e| failed(&path, e))?;
        Ok(Self { path, schema, writer })
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let written = self.writer.write(batch);
        written.map_err(|e| failed(&self.path, e))?;
        // Row groups are bounded by rows; long texts would make them huge.
        if self.writer.in_progress_size() > ROW_GROUP {
            self.writer.flush().map_err(|e| failed(&self.path, e))?;
        }
        Ok(())
    }

    /// Writes the rows of these rising ordinals, counted over all files.
    fn filter(
        &mut self,
        files: &[&Columnar],
        mut first: u64,
        ordinals: &[u64],
        console: &Console,
    ) -> Result<()> {
        let mut wanted = ordinals.iter().copied().peekable();
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
        if wanted.next().is_none() { Ok(()) } else { Err(changed(&self.path)) }
    }

    fn finish(self) -> Result<Output> {
        let Self { path, writer, .. } = self;
        writer.into_inner().map_err(|e| failed(&path, e))
    }
}

/// A reader that goes away is an ordinary end here, too.
fn failed(path: &str, error: ParquetError) -> Failure {
    let ParquetError::External(source) = error else {
        return Failure::file(path, error.to_string());
    };
    match source.downcast::<std::io::Error>() {
        Ok(source) => Failure::of_write(path, *source),
        Err(source) => Failure::file(path, source.to_string()),
    }
}
