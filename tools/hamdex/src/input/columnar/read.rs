//! Reading: rows of a columnar file become lines of JSON, a few hundred at a time.
//!
//! Later code treats them as any other rows; only values that must be returned unchanged are copied
//! from the columns themselves (`dedup --format parquet`).

use std::fmt::LowerHex;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, RecordBatch, StringArray};
use arrow_cast::cast;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_json::WriterBuilder;
use arrow_json::writer::LineDelimited;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection,
    RowSelector,
};

use crate::failure::{Failure, Result};
use crate::input::fields::{FINGERPRINT, Fields, Names};
use crate::input::open::{self, Meter, Pieces, Reader};
use crate::input::row::parse;

/// Rows that are decoded together: some megabytes of long texts.
const BATCH: usize = 256;

/// Row groups that a sample is taken from.
const SAMPLED_GROUPS: usize = 16;

/// A columnar file.
#[derive(Debug)]
pub(crate) struct Columnar {
    path: PathBuf,
    table: Table,
    /// Positions of the columns that make a document.
    needed: Vec<usize>,
    /// Text columns of bytes, which are UTF-8 in other tools' files.
    bytes: Vec<String>,
}

#[derive(Debug)]
enum Table {
    Parquet(ArrowReaderMetadata),
    /// An Arrow file, also known as Feather.
    File(SchemaRef),
    /// An Arrow stream.
    Stream(SchemaRef),
}

/// Batches of rows, in order.
pub(super) type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>;

impl Columnar {
    /// Reads the footer of a Parquet file.
    pub(in crate::input) fn parquet(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|e| Failure::io(path, e))?;
        let metadata =
            ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()).map_err(|e| {
                Failure::file(path, format!("cannot be read as Parquet: {e}; write it again"))
            })?;
        Ok(Self::over(path, Table::Parquet(metadata)))
    }

    /// Reads the schema of an Arrow file or stream.
    pub(in crate::input) fn arrow(path: &Path) -> Result<Self> {
        let open = || File::open(path).map(BufReader::new).map_err(|e| Failure::io(path, e));
        let table = if let Ok(reader) = FileReader::try_new(open()?, None) {
            Table::File(reader.schema())
        } else {
            let reader = StreamReader::try_new(open()?, None).map_err(|e| {
                Failure::file(path, format!("cannot be read as Arrow: {e}; write it again"))
            })?;
            Table::Stream(reader.schema())
        };
        Ok(Self::over(path, table))
    }

    fn over(path: &Path, table: Table) -> Self {
        Self { path: path.to_path_buf(), table, needed: Vec::new(), bytes: Vec::new() }
    }

    /// Chooses the columns to read, and refuses those that cannot be what their names say.
    pub(in crate::input) fn choose(&mut self, fields: &Fields) -> Result<()> {
        let schema = Arc::clone(self.schema());
        let wrong = |name: &str, kind: &DataType, expected: &str, option: &str| {
            let reason = format!(
                "column \"{name}\" is {kind}, expected {expected}; choose another column with \
                    {option}"
            );
            Err(Failure::file(&self.path, reason))
        };
        for text in &fields.texts {
            match find(schema.fields(), text) {
                Some(kind) if is_bytes(kind) => self.bytes.push(text.clone()),
                Some(kind) if !is_string(kind) => {
                    return wrong(text, kind, "strings", "--text-field");
                }
                _ => {}
            }
        }
        match find(schema.fields(), FINGERPRINT) {
            Some(kind)
                if !is_fingerprint(kind) && !fields.texts.iter().any(|t| t == FINGERPRINT) =>
            {
                return wrong(FINGERPRINT, kind, "hexadecimal strings or integers", "--text-field");
            }
            _ => {}
        }
        let position = |name: &str| schema.fields().iter().position(|field| field.name() == name);
        self.needed = fields.top().filter_map(position).collect();
        self.needed.sort_unstable();
        self.needed.dedup();
        Ok(())
    }

    /// Returns the number of rows, if the file's header has it.
    pub(in crate::input) fn rows(&self) -> Option<u64> {
        let Table::Parquet(metadata) = &self.table else { return None };
        u64::try_from(metadata.metadata().file_metadata().num_rows()).ok()
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        match &self.table {
            Table::Parquet(metadata) => metadata.schema(),
            Table::File(schema) | Table::Stream(schema) => schema,
        }
    }

    /// Returns the names of the columns.
    pub(in crate::input) fn names(&self) -> Vec<String> {
        self.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Returns whether a column, or one within a column, is there.
    pub(in crate::input) fn has(&self, name: &str) -> bool {
        find(self.schema().fields(), name).is_some()
    }

    /// Reads all columns of all rows.
    pub(super) fn batches(&self) -> Result<Batches> {
        self.read(None, None)
    }

    /// Reads all rows as lines of JSON: the columns that matter, or `whole` rows.
    pub(in crate::input) fn lines(&self, whole: bool, meter: &Meter) -> Result<Reader> {
        let batches = self.read((!whole).then_some(&self.needed), None)?;
        let bytes = self.path.metadata().map_err(|e| Failure::io(&self.path, e))?.len();
        let rows = self.rows().unwrap_or(0);
        Ok(self.joined(batches, meter, bytes, rows))
    }

    /// Reads `rows` rows as lines of JSON, from all over a Parquet file, else from the beginning.
    pub(in crate::input) fn sample(&self, rows: usize) -> Result<Reader> {
        let batches = self.read(Some(&self.needed), Some(rows))?;
        Ok(self.joined(batches, &Meter::default(), 0, 1))
    }

    fn joined(&self, batches: Batches, meter: &Meter, bytes: u64, rows: u64) -> Reader {
        let waiting = None;
        let (meter, as_text) = (meter.clone(), self.bytes.clone());
        open::joined(Lines { batches, waiting, meter, bytes, rows, as_text })
    }

    fn read(&self, columns: Option<&Vec<usize>>, sampled: Option<usize>) -> Result<Batches> {
        let file = File::open(&self.path).map_err(|e| Failure::io(&self.path, e))?;
        let failed = |e: ArrowError| Failure::file(&self.path, e.to_string());
        let batches: Batches = match &self.table {
            Table::Parquet(metadata) => {
                let mut builder =
                    ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata.clone());
                if let Some(columns) = columns {
                    let columns = columns.iter().copied();
                    let mask = ProjectionMask::roots(builder.parquet_schema(), columns);
                    builder = builder.with_projection(mask);
                }
                if let Some(rows) = sampled {
                    let (groups, selection) = spread(metadata, rows);
                    builder = builder.with_row_groups(groups).with_row_selection(selection);
                }
                let reader = builder.with_batch_size(BATCH).build();
                return Ok(Box::new(reader.map_err(|e| failed(e.into()))?));
            }
            Table::File(_) => {
                let reader = FileReader::try_new(BufReader::new(file), columns.cloned());
                Box::new(reader.map_err(failed)?)
            }
            Table::Stream(_) => {
                let reader = StreamReader::try_new(BufReader::new(file), columns.cloned());
                Box::new(reader.map_err(failed)?)
            }
        };
        Ok(match sampled {
            Some(rows) => Box::new(First { batches, left: rows }),
            None => batches,
        })
    }
}

/// Selects rows from row groups all over a file.
fn spread(metadata: &ArrowReaderMetadata, rows: usize) -> (Vec<usize>, RowSelection) {
    let groups = metadata.metadata().row_groups();
    let sampled = groups.len().min(SAMPLED_GROUPS);
    let chosen: Vec<usize> = (0..sampled).map(|n| n * groups.len() / sampled).collect();
    let quota = rows.div_ceil(sampled.max(1));
    let selectors = chosen.iter().filter_map(|&group| groups.get(group)).flat_map(|group| {
        let rows = usize::try_from(group.num_rows()).unwrap_or(0);
        let some = rows.min(quota);
        [RowSelector::select(some), RowSelector::skip(rows - some)]
    });
    let selection = RowSelection::from(selectors.collect::<Vec<_>>());
    (chosen, selection)
}

/// The first rows of some batches.
struct First {
    batches: Batches,
    left: usize,
}

impl Iterator for First {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        let batch = self.batches.next()?.map(|batch| {
            let some = batch.num_rows().min(self.left);
            self.left -= some;
            batch.slice(0, some)
        });
        Some(batch)
    }
}

/// Finds a column by its name, or by a path into columns of structures.
fn find<'s>(columns: &'s arrow_schema::Fields, name: &str) -> Option<&'s DataType> {
    if let Some((_, field)) = columns.find(name) {
        return Some(field.data_type());
    }
    let (first, rest) = name.split_once('.')?;
    let DataType::Struct(inner) = columns.find(first)?.1.data_type() else { return None };
    find(inner, rest)
}

fn is_string(kind: &DataType) -> bool {
    if let DataType::Dictionary(_, values) = kind {
        return is_string(values);
    }
    kind.is_string() || kind.is_null() || is_bytes(kind)
}

fn is_bytes(kind: &DataType) -> bool {
    matches!(kind, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
}

fn is_fingerprint(kind: &DataType) -> bool {
    is_string(kind) || matches!(kind, DataType::Int64 | DataType::UInt64 | DataType::UInt32)
}

/// Lines of JSON, made as they are read.
struct Lines {
    batches: Batches,
    /// The rest of the previous batch; a file may be one batch.
    waiting: Option<RecordBatch>,
    meter: Meter,
    /// Bytes and rows of the file: each row is treated as an equal share.
    bytes: u64,
    rows: u64,
    /// Columns of bytes that are texts.
    as_text: Vec<String>,
}

impl Pieces for Lines {
    fn next_into(&mut self, buffer: &mut Vec<u8>) -> io::Result<bool> {
        let batch = match self.waiting.take() {
            Some(batch) => batch,
            None => match self.batches.next() {
                Some(batch) => batch.map_err(io::Error::other)?,
                None => return Ok(false),
            },
        };
        let rows = batch.num_rows();
        if rows > BATCH {
            self.waiting = Some(batch.slice(BATCH, rows - BATCH));
        }
        let batch = batch.slice(0, rows.min(BATCH));
        let batch =
            with_texts(batch, &self.as_text).and_then(with_hex).map_err(io::Error::other)?;
        let builder = WriterBuilder::new().with_explicit_nulls(true);
        let mut writer = builder.build::<_, LineDelimited>(buffer);
        writer.write(&batch).and_then(|()| writer.finish()).map_err(io::Error::other)?;
        let share = (self.bytes * batch.num_rows() as u64).checked_div(self.rows);
        self.meter.add(share.unwrap_or(0));
        Ok(true)
    }
}

/// Returns the values of a column as `--source-field` reads them; `None` of nulls and blank texts.
pub(crate) fn source_values(column: &ArrayRef) -> Result<Vec<Option<Box<str>>>, ArrowError> {
    const NAME: &str = "source";
    let fields = Fields::of(&Names { source: Some(NAME.to_owned()), ..Names::default() }, "text");
    let schema = Schema::new(vec![Field::new(NAME, column.data_type().clone(), true)]);
    let schema = Arc::new(schema);
    let mut values = Vec::with_capacity(column.len());
    let mut buffer = Vec::new();
    for first in (0..column.len()).step_by(BATCH) {
        let some = column.slice(first, BATCH.min(column.len() - first));
        buffer.clear();
        let builder = WriterBuilder::new().with_explicit_nulls(true);
        let mut writer = builder.build::<_, LineDelimited>(&mut buffer);
        writer.write(&RecordBatch::try_new(Arc::clone(&schema), vec![some])?)?;
        writer.finish()?;
        drop(writer);
        let lines = buffer.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        let value = |line| parse(&fields, line).ok()?.source.map(Box::from);
        values.extend(lines.map(value));
    }
    Ok(values)
}

/// Reads columns of bytes as texts; what is no UTF-8 becomes null.
fn with_texts(batch: RecordBatch, names: &[String]) -> Result<RecordBatch, ArrowError> {
    names.iter().try_fold(batch, |batch, name| {
        let Some((at, _)) = batch.schema_ref().column_with_name(name) else { return Ok(batch) };
        let text = cast(batch.column(at), &DataType::LargeUtf8)?;
        with_column(&batch, at, name, text)
    })
}

/// Replaces a column by a column of strings.
fn with_column(
    batch: &RecordBatch,
    at: usize,
    name: &str,
    column: ArrayRef,
) -> Result<RecordBatch, ArrowError> {
    let fields = batch.schema_ref().fields().iter().enumerate().map(|(position, field)| {
        if position == at {
            Arc::new(Field::new(name, column.data_type().clone(), true))
        } else {
            Arc::clone(field)
        }
    });
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let mut columns = batch.columns().to_vec();
    if let Some(old) = columns.get_mut(at) {
        *old = column;
    }
    RecordBatch::try_new(schema, columns)
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
    with_column(&batch, at, FINGERPRINT, Arc::new(hex))
}

/// Returns the hexadecimal digits of every value, at the full width of its type.
fn hex<T: ArrowPrimitiveType<Native: LowerHex>>(column: &dyn Array) -> StringArray {
    let digits = size_of::<T::Native>() * 2;
    let values = column.as_primitive::<T>().iter();
    values.map(|value| value.map(|value| format!("{value:0digits$x}"))).collect()
}
