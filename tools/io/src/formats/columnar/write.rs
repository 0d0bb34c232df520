//! Writing: rows that are kept become a Parquet file.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Seek, Write};
use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_json::ReaderBuilder;
use arrow_json::reader::infer_json_schema;
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use serde_json::Value;

use super::{Columnar, texts};
use crate::face::failure::{Failure, Result};
use crate::face::host::Host;
use crate::face::output::Output;
use crate::formats::chunk::changed;

/// Bytes of a row group, as they will be written.
const ROW_GROUP: usize = 64 << 20;

/// Refuses nothing: this build writes Parquet.
#[allow(clippy::unnecessary_wraps)]
pub fn require() -> Result<()> {
    Ok(())
}

/// Returns whether files have the same columns, so that rows of all fit into one.
pub fn agree(files: &[&Columnar]) -> bool {
    common_columns(files).is_some()
}

/// Rows to write: as files have them, or with other texts.
#[derive(Debug, Default)]
pub struct Chosen {
    /// Rising ordinals of all rows.
    ordinals: Vec<u64>,
    /// An ordinal and a line of JSON for each row with other texts; a file without a name.
    edits: Option<BufWriter<File>>,
}

impl Chosen {
    /// Adds the next row; `line` is a line of JSON with the texts to write instead.
    pub fn push(&mut self, ordinal: u64, line: Option<&[u8]>) -> Result<()> {
        self.ordinals.push(ordinal);
        let Some(line) = line else { return Ok(()) };
        let failed = |e| Failure::io(std::env::temp_dir(), e);
        let edits = match &mut self.edits {
            Some(edits) => edits,
            None => self.edits.insert(BufWriter::new(tempfile::tempfile().map_err(failed)?)),
        };
        write!(edits, "{ordinal} ").and_then(|()| edits.write_all(line)).map_err(failed)
    }
}

/// Writes chosen rows, counted over all files from `base` on.
///
/// Each file comes with the names of its text fields.
pub fn filter(
    files: &[(&Columnar, &[String])],
    base: u64,
    chosen: Chosen,
    output: Output,
    console: &dyn Host,
) -> Result<Output> {
    let columnar: Vec<&Columnar> = files.iter().map(|(file, _)| *file).collect();
    let Some(schema) = common_columns(&columnar) else {
        return Err(changed(output.name()));
    };
    let mut table = Table::new(output, schema)?;
    table.filter(files, base, chosen, console)?;
    table.finish()
}

/// The rows with other texts, one after another.
struct Edits {
    file: Option<BufReader<File>>,
    /// Ordinal and line of the next one.
    next: Option<(u64, Vec<u8>)>,
}

impl Edits {
    fn of(file: Option<BufWriter<File>>) -> std::io::Result<Self> {
        let rewound = |file: BufWriter<File>| {
            let mut file = file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
            file.rewind().map(|()| BufReader::new(file))
        };
        let mut edits = Self { file: file.map(rewound).transpose()?, next: None };
        edits.read()?;
        Ok(edits)
    }

    fn read(&mut self) -> std::io::Result<()> {
        self.next = None;
        let Some(file) = &mut self.file else { return Ok(()) };
        let (mut ordinal, mut line) = (Vec::new(), Vec::new());
        file.read_until(b' ', &mut ordinal)?;
        file.read_until(b'\n', &mut line)?;
        let ordinal = std::str::from_utf8(&ordinal).ok().and_then(|text| text.trim().parse().ok());
        self.next = ordinal.map(|ordinal| (ordinal, line));
        Ok(())
    }

    /// Returns the line of a row if it is the next one.
    fn take(&mut self, ordinal: u64) -> std::io::Result<Option<Vec<u8>>> {
        let Some((_, line)) = self.next.take_if(|(next, _)| *next == ordinal) else {
            return Ok(None);
        };
        self.read()?;
        Ok(Some(line))
    }
}

/// Returns the columns that all files have, if they agree.
fn common_columns(files: &[&Columnar]) -> Option<SchemaRef> {
    let first = files.first()?.schema();
    let mut fields: Vec<Field> =
        first.fields().iter().map(|field| field.as_ref().clone()).collect();
    for file in files {
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
    Some(Arc::new(schema))
}

/// Reads lines of JSON twice: for their columns, and to write these.
pub fn from_lines(mut spool: File, output: Output, console: &dyn Host) -> Result<Output> {
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

    /// Writes the chosen rows, counted over all files.
    fn filter(
        &mut self,
        files: &[(&Columnar, &[String])],
        mut first: u64,
        chosen: Chosen,
        console: &dyn Host,
    ) -> Result<()> {
        let Chosen { ordinals, edits } = chosen;
        let spooled = |e| Failure::io(std::env::temp_dir(), e);
        let mut edits = Edits::of(edits).map_err(spooled)?;
        let mut wanted = ordinals.into_iter().peekable();
        for (file, names) in files {
            for batch in file.batches()? {
                console.check()?;
                let batch = batch.map_err(|e| Failure::file(&self.path, e.to_string()))?;
                let rows = first..first + batch.num_rows() as u64;
                first = rows.end;
                let mut lines: Vec<Option<Vec<u8>>> = Vec::new();
                let mut keep = Vec::with_capacity(batch.num_rows());
                for row in rows {
                    let kept = wanted.next_if_eq(&row).is_some();
                    if kept {
                        lines.push(edits.take(row).map_err(spooled)?);
                    }
                    keep.push(kept);
                }
                let kept = filter_record_batch(&batch, &BooleanArray::from(keep))
                    .and_then(|kept| self.with_texts(&kept, names, &lines))
                    .map_err(|e| Failure::file(&self.path, e.to_string()))?;
                self.write(&kept)?;
            }
        }
        let all = wanted.next().is_none() && edits.next.is_none();
        if all { Ok(()) } else { Err(changed(&self.path)) }
    }

    /// Returns rows in the columns of the file, with the texts of the lines.
    fn with_texts(
        &self,
        rows: &RecordBatch,
        names: &[String],
        lines: &[Option<Vec<u8>>],
    ) -> Result<RecordBatch, ArrowError> {
        let mut columns = rows.columns().to_vec();
        if lines.iter().any(Option::is_some) {
            let parsed = lines.iter().map(|line| {
                let parsed = line.as_ref().map(|line| serde_json::from_slice(line));
                parsed.transpose().map_err(|e| ArrowError::JsonError(e.to_string()))
            });
            let parsed: Vec<Option<Value>> = parsed.collect::<Result<_, _>>()?;
            let rows_of_json: Vec<Option<&Value>> = parsed.iter().map(Option::as_ref).collect();
            for name in names {
                texts::set(rows.schema_ref().fields(), &mut columns, name, &rows_of_json)?;
            }
        }
        RecordBatch::try_new(Arc::clone(&self.schema), columns)
    }

    fn finish(self) -> Result<Output> {
        let Self { path, writer, .. } = self;
        writer.into_inner().map_err(|e| failed(&path, e))
    }
}

/// Returns the failure of a write; a reader that closed its end stops it quietly.
fn failed(path: &str, error: ParquetError) -> Failure {
    let ParquetError::External(source) = error else {
        return Failure::file(path, error.to_string());
    };
    match source.downcast::<std::io::Error>() {
        Ok(source) => Failure::of_write(path, *source),
        Err(source) => Failure::file(path, source.to_string()),
    }
}
