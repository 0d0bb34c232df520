//! Reading: a columnar file becomes batches of rows, each of about the bytes of a chunk.

use std::fs::File;
use std::io::{self, BufReader};
use std::ops::Range;
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

use super::Part;
use super::batch::Batch;
use super::schema::{collect, find, find_text, is_bytes, is_fingerprint, is_text};
use crate::face::failure::{Failure, Result};
use crate::formats::chunk::{CHUNK, MAX_ROW, ROWS};
use crate::formats::fields::{FINGERPRINT, Fields};
use crate::sources::open::Meter;

/// Rows that are decoded together at least.
const FEWEST: usize = 256;

/// Bytes of the row groups that are read by one thread, at least, before they are compressed.
const PART: i64 = 4 << 20;

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
    Memory(SchemaRef, Vec<RecordBatch>),
}

/// The rows to read.
enum Chosen {
    All,
    /// Those of some row groups; only Parquet has them.
    Groups(Range<usize>),
    /// That many from all over a Parquet file, else from the beginning.
    Sample(usize),
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

    /// Takes rows in memory.
    pub(crate) fn memory(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self::over(Path::new(""), Table::Memory(schema, batches))
    }

    /// Returns true if the rows are in memory.
    pub(crate) fn in_memory(&self) -> bool {
        matches!(self.table, Table::Memory(..))
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
            match find_text(schema.fields(), text) {
                Some((kind, true)) if is_bytes(kind) => bytes.push(text.clone()),
                Some((kind, _)) if !is_text(kind) => {
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
            Table::File(schema) | Table::Stream(schema) | Table::Memory(schema, _) => schema,
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

    /// Returns whether a text of that name is there: any value, or `only_texts`.
    pub(crate) fn has_text(&self, name: &str, only_texts: bool) -> bool {
        let found = find_text(self.schema().fields(), name);
        found.is_some_and(|(kind, alone)| !only_texts || is_text(kind) || (alone && is_bytes(kind)))
    }

    /// Returns the names of the columns that hold no others, each with the way to it.
    pub(crate) fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        collect(self.schema().fields(), "", &mut paths);
        paths
    }

    /// Reads all columns of all rows.
    pub(super) fn batches(&self) -> Result<Batches> {
        self.read(None, Chosen::All)
    }

    /// Returns the parts that threads can read side by side; none if the file has only one.
    pub(crate) fn parts(&self) -> Vec<Part> {
        let Table::Parquet(metadata) = &self.table else { return Vec::new() };
        let (mut parts, mut first, mut bytes) = (Vec::<Part>::new(), 0, 0);
        for (at, group) in metadata.metadata().row_groups().iter().enumerate() {
            let rows = u64::try_from(group.num_rows()).unwrap_or(0);
            if let Some(part) = parts.last_mut().filter(|_| bytes < PART) {
                part.groups.end = at + 1;
                part.rows += rows;
            } else {
                bytes = 0;
                parts.push(Part { groups: at..at + 1, first, rows });
            }
            first += rows;
            bytes += group.total_byte_size();
        }
        if parts.len() > 1 { parts } else { Vec::new() }
    }

    /// Reads all rows, or those of a part, in batches: the columns that matter, or `whole` rows.
    pub(crate) fn batches_of(
        &self,
        whole: bool,
        part: Option<&Part>,
        meter: &Meter,
    ) -> Result<impl Iterator<Item = io::Result<Batch>> + use<>> {
        let rows = part.map_or(Chosen::All, |part| Chosen::Groups(part.groups.clone()));
        let batches = self.read((!whole).then_some(&self.needed), rows)?;
        let bytes = self.path.metadata().map_or(0, |found| found.len());
        let rows = self.rows().unwrap_or(0);
        let meter = meter.clone();
        Ok(self.cut(batches).inspect(move |batch| {
            if let Ok(batch) = batch {
                // Each row is treated as an equal share of the file.
                meter.add((bytes * batch.rows()).checked_div(rows).unwrap_or(0));
            }
        }))
    }

    /// Reads that many rows from all over a Parquet file, else from the beginning; in memory all.
    pub(crate) fn sample(&self, rows: usize) -> Result<impl Iterator<Item = io::Result<Batch>>> {
        Ok(self.cut(self.read(Some(&self.needed), Chosen::Sample(rows))?))
    }

    fn cut(&self, batches: Batches) -> Cut {
        let (path, texts) = (Arc::from(self.path.as_path()), Arc::clone(&self.bytes));
        let longest = if self.in_memory() { u64::MAX } else { MAX_ROW };
        Cut { batches, waiting: None, path, texts, longest }
    }

    /// Returns the rows to decode together, by the bytes that they have on average.
    fn batch_rows(&self) -> usize {
        let Table::Parquet(metadata) = &self.table else { return FEWEST };
        let groups = metadata.metadata().row_groups();
        let bytes: i64 = groups.iter().map(RowGroupMetaData::total_byte_size).sum();
        let rows = self.rows().unwrap_or(0);
        fitting(usize::try_from(bytes).unwrap_or(0), usize::try_from(rows).unwrap_or(0))
    }

    fn read(&self, columns: Option<&Vec<usize>>, rows: Chosen) -> Result<Batches> {
        if let Table::Memory(_, batches) = &self.table {
            let columns = columns.cloned();
            let batches = batches.clone().into_iter().map(move |batch| match &columns {
                Some(columns) => batch.project(columns),
                None => Ok(batch),
            });
            return Ok(Box::new(batches));
        }
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
                match rows {
                    Chosen::All => {}
                    Chosen::Groups(groups) => builder = builder.with_row_groups(groups.collect()),
                    Chosen::Sample(rows) => {
                        let (groups, selection) = spread(metadata, rows);
                        builder = builder.with_row_groups(groups).with_row_selection(selection);
                    }
                }
                let reader = builder.with_batch_size(self.batch_rows()).build();
                return Ok(Box::new(reader.map_err(|e| failed(e.into()))?));
            }
            Table::File(_) => {
                let reader = FileReader::try_new(BufReader::new(file), columns.cloned());
                Box::new(reader.map_err(failed)?)
            }
            Table::Stream(_) | Table::Memory(..) => {
                let reader = StreamReader::try_new(BufReader::new(file), columns.cloned());
                Box::new(reader.map_err(failed)?)
            }
        };
        Ok(match rows {
            Chosen::Sample(rows) => Box::new(First { batches, left: rows }),
            Chosen::All | Chosen::Groups(_) => batches,
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
    longest: u64,
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
        Some(Ok(Batch {
            rows: batch.slice(0, rows.min(some)),
            first: 0,
            path: Arc::clone(&self.path),
            texts: Arc::clone(&self.texts),
            longest: self.longest,
        }))
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::StringArray;
    use arrow_schema::{Field, Schema};
    use parquet::arrow::ArrowWriter;
    use parquet::file::properties::WriterProperties;

    use super::*;
    use crate::face::host::Silent;
    use crate::{Body, Chunk, Inputs, Options, Rows, for_each_made};

    #[test]
    fn parts_of_a_file_are_read_side_by_side_and_handed_on_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.parquet");
        let schema = Arc::new(Schema::new(vec![Field::new("text", DataType::Utf8, true)]));
        let texts = (0..12_000).map(|row| format!("{row} {}", "x".repeat(900)));
        let texts = Arc::new(StringArray::from_iter_values(texts));
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(1000))
            .set_dictionary_enabled(false);
        let file = File::create(&path).unwrap();
        let mut writer =
            ArrowWriter::try_new(file, Arc::clone(&schema), Some(properties.build())).unwrap();
        writer.write(&RecordBatch::try_new(schema, vec![texts]).unwrap()).unwrap();
        writer.close().unwrap();

        let parts = Columnar::parquet(&path).unwrap().parts();
        assert!(parts.len() > 1, "{parts:?}");
        assert_eq!(parts.iter().map(|part| part.rows).sum::<u64>(), 12_000);
        let inputs = Arc::new(Inputs::resolve(&[path], &Options::default(), &Silent).unwrap());
        for before in [None, Some(vec![12_000]), Some(vec![7500])] {
            let mut ordinals = Vec::new();
            let make = |chunk: Chunk| {
                let Body::Table(batch) = &chunk.body else { panic!("no table") };
                Ok((batch.first()..batch.first() + batch.rows(), 64))
            };
            let visit = |_, base, rows| {
                assert_eq!(base, 0);
                ordinals.extend::<Range<u64>>(rows);
                Ok(())
            };
            let extents =
                for_each_made(&inputs, Rows::Needed, before.as_ref(), &Silent, make, visit);
            assert_eq!(extents.unwrap(), before.unwrap_or_else(|| vec![12_000]));
            assert!(ordinals.iter().copied().eq(0..ordinals.len() as u64), "out of order");
            assert!([7500, 12_000].contains(&ordinals.len()));
        }
    }
}
