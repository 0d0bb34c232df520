//! Writing: rows that are kept become a Parquet file.

use std::fs::File;
use std::io::{BufReader, Seek};
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

use super::Columnar;
use crate::chunk::changed;
use crate::failure::{Failure, Result};
use crate::host::Host;
use crate::output::Output;

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

/// Writes the rows of these rising ordinals, counted over all files from `base` on.
pub fn filter(
    files: &[&Columnar],
    base: u64,
    ordinals: &[u64],
    output: Output,
    console: &dyn Host,
) -> Result<Output> {
    let Some(schema) = common_columns(files) else {
        return Err(changed(output.name()));
    };
    let mut table = Table::new(output, schema)?;
    table.filter(files, base, ordinals, console)?;
    table.finish()
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

    /// Writes the rows of these rising ordinals, counted over all files.
    fn filter(
        &mut self,
        files: &[&Columnar],
        mut first: u64,
        ordinals: &[u64],
        console: &dyn Host,
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
