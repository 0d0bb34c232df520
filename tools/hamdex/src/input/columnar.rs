//! Parquet: rows of a columnar file become lines of JSON, some of a row group at a time.
//!
//! From there on they are read as any other rows; only what has to come back unchanged is taken
//! from the columns themselves (`dedup --format parquet`).

use std::fmt::LowerHex;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, RecordBatch, StringArray};
use arrow_json::WriterBuilder;
use arrow_json::writer::LineDelimited;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder, RowSelection, RowSelector,
};

use super::open::{self, Meter, Pieces, Reader};
use super::row::{FINGERPRINT, Fields};
use crate::failure::{Failure, Result};

/// Rows that are decoded together: some megabytes of long texts.
const BATCH: usize = 256;

/// Row groups that a sample is taken from.
const SAMPLED_GROUPS: usize = 16;

/// A Parquet file whose columns can be read.
#[derive(Debug)]
pub(crate) struct Columnar {
    path: PathBuf,
    metadata: ArrowReaderMetadata,
    /// Positions of the columns that make a document.
    needed: Vec<usize>,
}

impl Columnar {
    /// Reads the footer, and refuses columns that cannot be what their names say.
    pub(super) fn look(path: &Path, fields: &Fields) -> Result<Self> {
        let file = File::open(path).map_err(|e| Failure::io(path, e))?;
        let metadata =
            ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()).map_err(|e| {
                Failure::file(path, format!("cannot be read as Parquet: {e}; write it again"))
            })?;
        let schema = Arc::clone(metadata.schema());
        let position = |name: &str| schema.fields().iter().position(|field| field.name() == name);
        let column = |name: &str, accepted: fn(&DataType) -> bool, what: &str| {
            let Some(at) = position(name) else { return Ok(None) };
            let kind = schema.field(at).data_type();
            if accepted(kind) {
                return Ok(Some(at));
            }
            Err(Failure::file(
                path,
                format!(
                    "column \"{name}\" is {kind}, expected {what}; name another one, as by --text-field"
                ),
            ))
        };
        let text = column(&fields.text, is_string, "strings")?;
        let fingerprint = column(FINGERPRINT, is_fingerprint, "hexadecimal strings or integers")?;
        if text.or(fingerprint).is_none() {
            return Err(Failure::file(path, missing(&fields.text, names(&schema))));
        }
        let id = column(&fields.id, is_id, "strings or integers")?;
        let stamp = fields.stamp.as_deref().and_then(position);
        let mut needed: Vec<usize> = [text, fingerprint, id, stamp].into_iter().flatten().collect();
        needed.sort_unstable();
        needed.dedup();
        Ok(Self { path: path.to_path_buf(), metadata, needed })
    }

    pub(crate) fn rows(&self) -> u64 {
        let rows = self.metadata.metadata().file_metadata().num_rows();
        u64::try_from(rows).unwrap_or(0)
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        self.metadata.schema()
    }

    /// Reads all columns of all rows.
    pub(crate) fn batches(&self) -> Result<ParquetRecordBatchReader> {
        self.read(Ok)
    }

    /// Reads all rows as lines of JSON: the columns that matter, or `whole` rows.
    pub(super) fn lines(&self, whole: bool, meter: &Meter) -> Result<Reader> {
        let batches =
            self.read(|builder| Ok(if whole { builder } else { self.project(builder) }))?;
        let bytes = self.path.metadata().map_err(|e| Failure::io(&self.path, e))?.len();
        let rows = self.rows().max(1);
        Ok(open::joined(Lines { batches, meter: meter.clone(), bytes, rows }))
    }

    /// Reads so many rows as lines of JSON, from row groups all over the file.
    pub(super) fn sample(&self, rows: usize) -> Result<Reader> {
        let groups = self.metadata.metadata().row_groups();
        let sampled = groups.len().min(SAMPLED_GROUPS);
        let chosen: Vec<usize> = (0..sampled).map(|n| n * groups.len() / sampled).collect();
        let quota = rows.div_ceil(sampled.max(1));
        let selectors = chosen.iter().filter_map(|&group| groups.get(group)).flat_map(|group| {
            let rows = usize::try_from(group.num_rows()).unwrap_or(0);
            let some = rows.min(quota);
            [RowSelector::select(some), RowSelector::skip(rows - some)]
        });
        let selection = RowSelection::from(selectors.collect::<Vec<_>>());
        let batches = self.read(|builder| {
            Ok(self.project(builder).with_row_groups(chosen).with_row_selection(selection))
        })?;
        Ok(open::joined(Lines { batches, meter: Meter::default(), bytes: 0, rows: 1 }))
    }

    fn project(
        &self,
        builder: ParquetRecordBatchReaderBuilder<File>,
    ) -> ParquetRecordBatchReaderBuilder<File> {
        let mask = ProjectionMask::roots(builder.parquet_schema(), self.needed.iter().copied());
        builder.with_projection(mask)
    }

    fn read(
        &self,
        with: impl FnOnce(
            ParquetRecordBatchReaderBuilder<File>,
        ) -> Result<ParquetRecordBatchReaderBuilder<File>>,
    ) -> Result<ParquetRecordBatchReader> {
        let file = File::open(&self.path).map_err(|e| Failure::io(&self.path, e))?;
        let builder =
            ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone());
        with(builder.with_batch_size(BATCH))?
            .build()
            .map_err(|e| Failure::file(&self.path, e.to_string()))
    }
}

fn names(schema: &Schema) -> impl Iterator<Item = &str> {
    schema.fields().iter().map(|field| field.name().as_str())
}

/// Tells that a table has neither texts nor fingerprints, and what it has.
pub(super) fn missing<'a>(text: &str, columns: impl Iterator<Item = &'a str>) -> String {
    let columns = columns.collect::<Vec<_>>().join(", ");
    format!(
        "has no column \"{text}\" and no column \"{FINGERPRINT}\"; its columns are {columns}; \
         --text-field names the one with the text"
    )
}

fn is_string(kind: &DataType) -> bool {
    if let DataType::Dictionary(_, values) = kind {
        return is_string(values);
    }
    kind.is_string() || kind.is_null()
}

fn is_id(kind: &DataType) -> bool {
    is_string(kind) || kind.is_integer()
}

fn is_fingerprint(kind: &DataType) -> bool {
    is_string(kind) || matches!(kind, DataType::Int64 | DataType::UInt64 | DataType::UInt32)
}

/// Lines of JSON, made as they are read.
struct Lines {
    batches: ParquetRecordBatchReader,
    meter: Meter,
    /// Bytes and rows of the file: each row counts as its share.
    bytes: u64,
    rows: u64,
}

impl Pieces for Lines {
    fn next_into(&mut self, buffer: &mut Vec<u8>) -> io::Result<bool> {
        let Some(batch) = self.batches.next() else { return Ok(false) };
        let batch = batch.and_then(with_hex).map_err(io::Error::other)?;
        let builder = WriterBuilder::new().with_explicit_nulls(true);
        let mut writer = builder.build::<_, LineDelimited>(buffer);
        writer.write(&batch).and_then(|()| writer.finish()).map_err(io::Error::other)?;
        self.meter.add(self.bytes * batch.num_rows() as u64 / self.rows);
        Ok(true)
    }
}

/// Writes a column of numeric fingerprints in hexadecimal, as rows of JSON have them.
fn with_hex(batch: RecordBatch) -> Result<RecordBatch, ArrowError> {
    let Some((at, field)) = batch.schema_ref().column_with_name(FINGERPRINT) else {
        return Ok(batch);
    };
    let (column, kind) = (batch.column(at), field.data_type());
    let hex = if *kind == DataType::UInt64 {
        hex::<UInt64Type>(column)
    } else if *kind == DataType::Int64 {
        hex::<Int64Type>(column)
    } else if *kind == DataType::UInt32 {
        hex::<UInt32Type>(column)
    } else {
        return Ok(batch);
    };
    let fields = batch.schema_ref().fields().iter().enumerate().map(|(position, field)| {
        if position == at {
            Arc::new(Field::new(FINGERPRINT, DataType::Utf8, true))
        } else {
            Arc::clone(field)
        }
    });
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let mut columns = batch.columns().to_vec();
    if let Some(column) = columns.get_mut(at) {
        *column = Arc::new(hex) as ArrayRef;
    }
    RecordBatch::try_new(schema, columns)
}

/// Hexadecimal digits of every value, as many as its type holds.
fn hex<T: ArrowPrimitiveType<Native: LowerHex>>(column: &dyn Array) -> StringArray {
    let digits = size_of::<T::Native>() * 2;
    let values = column.as_primitive::<T>().iter();
    values.map(|value| value.map(|value| format!("{value:0digits$x}"))).collect()
}
