//! Reading: a columnar file becomes batches of rows, each of about the bytes of a chunk.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection,
    RowSelector,
};
use parquet::file::metadata::RowGroupMetaData;

use super::batch::Batch;
use crate::chunk::{CHUNK, ROWS};
use crate::failure::{Failure, Result};
use crate::fields::{FINGERPRINT, Fields};
use crate::open::{self, Meter, Pieces, Reader};

/// Rows that are decoded together at least.
const FEWEST: usize = 256;

/// Row groups that a sample is taken from.
const SAMPLED_GROUPS: usize = 16;

/// A columnar file.
#[derive(Debug)]
pub struct Columnar {
    path: PathBuf,
    table: Table,
    /// Positions of the columns that make a document.
    needed: Vec<usize>,
    /// Text columns of bytes, which are UTF-8 in other tools' files.
    bytes: Arc<Vec<String>>,
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
    pub(crate) fn parquet(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|e| Failure::io(path, e))?;
        let metadata =
            ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()).map_err(|e| {
                Failure::file(path, format!("cannot be read as Parquet: {e}; write it again"))
            })?;
        Ok(Self::over(path, Table::Parquet(metadata)))
    }

    /// Reads the schema of an Arrow file or stream.
    pub(crate) fn arrow(path: &Path) -> Result<Self> {
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
        Self { path: path.to_path_buf(), table, needed: Vec::new(), bytes: Arc::default() }
    }

    /// Chooses the columns to read, and refuses those that cannot be what their names say.
    pub(crate) fn choose(&mut self, fields: &Fields) -> Result<()> {
        let schema = Arc::clone(self.schema());
        let wrong = |name: &str, kind: &DataType, expected: &str, option: &str| {
            let reason = format!(
                "column \"{name}\" is {kind}, expected {expected}; choose another column with \
                    {option}"
            );
            Err(Failure::file(&self.path, reason))
        };
        let mut bytes = Vec::new();
        for text in &fields.texts {
            match find(schema.fields(), text) {
                Some(kind) if is_bytes(kind) => bytes.push(text.clone()),
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
        self.bytes = Arc::new(bytes);
        let position = |name: &str| schema.fields().iter().position(|field| field.name() == name);
        self.needed = fields.top().filter_map(position).collect();
        self.needed.sort_unstable();
        self.needed.dedup();
        Ok(())
    }

    /// Returns the number of rows, if the file's header has it.
    pub(crate) fn rows(&self) -> Option<u64> {
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
    pub(crate) fn names(&self) -> Vec<String> {
        self.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Returns whether a column, or one within a column, is there.
    pub(crate) fn has(&self, name: &str) -> bool {
        find(self.schema().fields(), name).is_some()
    }

    /// Reads all columns of all rows.
    pub(super) fn batches(&self) -> Result<Batches> {
        self.read(None, None)
    }

    /// Reads all rows in batches: the columns that matter, or `whole` rows.
    pub(crate) fn batches_of(
        &self,
        whole: bool,
        meter: &Meter,
    ) -> Result<impl Iterator<Item = io::Result<Batch>> + use<>> {
        let batches = self.read((!whole).then_some(&self.needed), None)?;
        let bytes = self.path.metadata().map_err(|e| Failure::io(&self.path, e))?.len();
        let rows = self.rows().unwrap_or(0);
        let meter = meter.clone();
        Ok(self.cut(batches).inspect(move |batch| {
            if let Ok(batch) = batch {
                // Each row is treated as an equal share of the file.
                meter.add((bytes * batch.rows()).checked_div(rows).unwrap_or(0));
            }
        }))
    }

    /// Reads rows as lines of JSON: that many from all over a Parquet file, else from the beginning.
    pub(crate) fn sample(&self, rows: usize) -> Result<Reader> {
        Ok(open::joined(Lines { batches: self.cut(self.read(Some(&self.needed), Some(rows))?) }))
    }

    /// Reads the rows from the beginning as lines of JSON.
    pub(crate) fn lines(&self) -> Result<Reader> {
        Ok(open::joined(Lines { batches: self.cut(self.read(Some(&self.needed), None)?) }))
    }

    fn cut(&self, batches: Batches) -> Cut {
        let (path, texts) = (Arc::from(self.path.as_path()), Arc::clone(&self.bytes));
        Cut { batches, waiting: None, path, texts }
    }

    /// Returns the rows to decode together, by the bytes that they have on average.
    fn batch_rows(&self) -> usize {
        let Table::Parquet(metadata) = &self.table else { return FEWEST };
        let groups = metadata.metadata().row_groups();
        let bytes: i64 = groups.iter().map(RowGroupMetaData::total_byte_size).sum();
        let rows = self.rows().unwrap_or(0);
        fitting(usize::try_from(bytes).unwrap_or(0), usize::try_from(rows).unwrap_or(0))
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
                let reader = builder.with_batch_size(self.batch_rows()).build();
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

/// Returns how many rows have the bytes of a chunk, if `rows` have `bytes`.
fn fitting(bytes: usize, rows: usize) -> usize {
    (CHUNK * rows).checked_div(bytes).unwrap_or(ROWS).clamp(FEWEST, ROWS)
}

/// Batches cut to the bytes of a chunk; a file may be one batch.
struct Cut {
    batches: Batches,
    /// The rest of the previous batch.
    waiting: Option<RecordBatch>,
    path: Arc<Path>,
    texts: Arc<Vec<String>>,
}

impl Iterator for Cut {
    type Item = io::Result<Batch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = match self.waiting.take() {
            Some(batch) => batch,
            None => match self.batches.next()? {
                Ok(batch) => batch,
                Err(error) => return Some(Err(io::Error::other(error))),
            },
        };
        let rows = batch.num_rows();
        let some = fitting(super::batch::bytes(&batch), rows);
        if rows > some {
            self.waiting = Some(batch.slice(some, rows - some));
        }
        let batch = batch.slice(0, rows.min(some));
        Some(Ok(Batch::new(batch, Arc::clone(&self.path), Arc::clone(&self.texts))))
    }
}

/// Lines of JSON, made as they are read.
struct Lines {
    batches: Cut,
}

impl Pieces for Lines {
    fn next_into(&mut self, buffer: &mut Vec<u8>) -> io::Result<bool> {
        let Some(batch) = self.batches.next() else { return Ok(false) };
        batch?.write(buffer).map_err(io::Error::other)?;
        Ok(true)
    }
}
