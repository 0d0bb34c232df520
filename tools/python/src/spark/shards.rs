//! Shards: converts documents into index rows, and sorted rows into index files.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::builder::BinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::DataType;
use hamdex::build::shards::{Layout, Manifest, Shard, ShardWriter};
use hamdex::plan::Plan;
use hamdex_io::columnar;
use pyo3::prelude::*;

use super::columns::{Column, fingerprints};
use super::finished;
use crate::failure::{Failure, Result};
use crate::fingerprints::for_width;
use crate::interrupt::detached;
use crate::rows::require_ids;
use crate::table::Table;

/// The settings of an index of shards.
#[pyclass(frozen, module = "hamdex", name = "_Layout")]
pub(crate) struct ShardLayout {
    inner: Layout,
}

#[pymethods]
impl ShardLayout {
    #[new]
    fn new(bits: u32, plan: &str, distance: u32, count: u64, pipeline: &str) -> PyResult<Self> {
        let make = || -> Result<Layout> {
            let plan = Plan::parse(plan, bits, distance, Some(count))?;
            Ok(Layout::new(plan, distance, pipeline)?)
        };
        Ok(Self { inner: make()? })
    }

    /// Returns the plan as text that does not depend on the count.
    #[getter]
    fn plan(&self) -> String {
        self.inner.plan().to_string()
    }

    /// Returns the index rows of documents: family, key and, in family 0, fingerprint.
    fn rows(&self, py: Python<'_>, table: &Bound<'_, Table>) -> PyResult<Table> {
        let table = table.get();
        let rows = detached(py, || for_width!(self.bits(), F => rows::<F>(&self.inner, table)));
        Ok(rows?)
    }

    /// Returns a writer for the rows of one range.
    fn writer(&self, directory: PathBuf, stem: &str) -> PyResult<Shards> {
        let make = || -> Result<Box<dyn Writing>> {
            for_width!(self.bits(), F => {
                Ok(Box::new(ShardWriter::<F>::new(directory, stem, &self.inner)?))
            })
        };
        Ok(Shards { inner: Mutex::new(Some(make()?)) })
    }

    /// Writes the manifest of all written files; returns the numbers of documents and fingerprints.
    fn write_manifest(
        &self,
        py: Python<'_>,
        directory: PathBuf,
        files: &Bound<'_, Table>,
    ) -> PyResult<(u64, u64)> {
        let files = files.get();
        Ok(detached(py, || {
            let manifest = Manifest::new(&self.inner, shards(files)?)?;
            manifest.write(directory)?;
            Ok((manifest.documents(), manifest.fingerprints()))
        })?)
    }
}

impl ShardLayout {
    fn bits(&self) -> u32 {
        self.inner.plan().bits()
    }
}

/// The files of one range that is being written.
#[pyclass(frozen, module = "hamdex", name = "_Shards")]
pub(crate) struct Shards {
    inner: Mutex<Option<Box<dyn Writing>>>,
}

#[pymethods]
impl Shards {
    /// Adds sorted rows.
    fn push(&self, py: Python<'_>, table: &Bound<'_, Table>) -> PyResult<()> {
        let table = table.get();
        Ok(detached(py, || {
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            inner.as_mut().ok_or_else(finished)?.push(table)
        })?)
    }

    /// Finishes the last file and returns the written files.
    fn finish(&self, py: Python<'_>) -> PyResult<Table> {
        Ok(detached(py, || {
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            to_table(&inner.take().ok_or_else(finished)?.finish()?)
        })?)
    }
}

/// A writer of any width.
trait Writing: Send {
    fn push(&mut self, table: &Table) -> Result<()>;
    fn finish(self: Box<Self>) -> Result<Vec<Shard>>;
}

impl<F: Column> Writing for ShardWriter<F> {
    fn push(&mut self, table: &Table) -> Result<()> {
        for batch in table.batches() {
            let families = of_type(batch, "family", ArrayRef::as_primitive_opt::<Int32Type>)?;
            let keys = of_type(batch, "key", ArrayRef::as_binary_opt::<i32>)?;
            let prints =
                batch.column_by_name("fingerprint").ok_or_else(|| missing("fingerprint"))?;
            for row in 0..batch.num_rows() {
                let family = u32::try_from(families.value(row)).unwrap_or(u32::MAX);
                ShardWriter::push(self, family, keys.value(row), print(prints, row)?)?;
            }
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Vec<Shard>> {
        Ok(ShardWriter::finish(*self)?)
    }
}

/// Reads the fingerprint of a row, which only documents have.
#[allow(clippy::wildcard_enum_match_arm)] // Arrow has dozens of types
fn print<F: Column>(column: &ArrayRef, row: usize) -> Result<Option<F>> {
    if column.is_null(row) {
        return Ok(None);
    }
    let wide = match column.data_type() {
        DataType::Int64 => {
            let value = column.as_primitive::<Int64Type>().value(row);
            Some(F::truncate(u128::from(value.cast_unsigned())))
        }
        _ => column.as_binary_opt::<i32>().and_then(|bytes| F::from_bytes(bytes.value(row))),
    };
    wide.map(Some).ok_or_else(|| missing("fingerprint"))
}

fn rows<F: Column>(layout: &Layout, table: &Table) -> Result<Table> {
    let prints = fingerprints::<F>(table, "fingerprint")?;
    let mut prints = prints.into_iter();
    let (mut families, mut keys, mut values) = (Vec::new(), BinaryBuilder::new(), Vec::new());
    require_ids(table, "id")?;
    for piece in table.column("id")? {
        for (key, fingerprint) in columnar::keys(&piece)?.into_iter().zip(prints.by_ref()) {
            let key = key.map_err(|reason| Failure::usage(reason.to_string()))?;
            let key = key.ok_or_else(|| missing("id"))?;
            layout.rows(&key, fingerprint, |family, key, fingerprint: Option<F>| {
                families.push(i32::try_from(family).unwrap_or(i32::MAX));
                keys.append_value(key);
                values.push(fingerprint);
            })?;
        }
    }
    Table::of(vec![
        ("family", Arc::new(Int32Array::from(families))),
        ("key", Arc::new(keys.finish())),
        ("fingerprint", F::column(values.into_iter())),
    ])
}

fn to_table(shards: &[Shard]) -> Result<Table> {
    let long = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let (mut firsts, mut lasts) = (BinaryBuilder::new(), BinaryBuilder::new());
    for shard in shards {
        firsts.append_value(&shard.first);
        lasts.append_value(&shard.last);
    }
    let families = shards.iter().map(|shard| i32::try_from(shard.family).unwrap_or(i32::MAX));
    let longs = |value: &dyn Fn(&Shard) -> i64| -> ArrayRef {
        Arc::new(shards.iter().map(value).collect::<Int64Array>())
    };
    Table::of(vec![
        ("family", Arc::new(families.collect::<Int32Array>())),
        ("file", Arc::new(StringArray::from_iter_values(shards.iter().map(|shard| &shard.file)))),
        ("members", longs(&|shard| long(shard.members))),
        ("bytes", longs(&|shard| long(shard.bytes))),
        ("checksum", longs(&|shard| shard.checksum.cast_signed())),
        ("first", Arc::new(firsts.finish())),
        ("last", Arc::new(lasts.finish())),
    ])
}

fn shards(table: &Table) -> Result<Vec<Shard>> {
    let mut shards = Vec::with_capacity(table.rows());
    for batch in table.batches() {
        let families = of_type(batch, "family", ArrayRef::as_primitive_opt::<Int32Type>)?;
        let files = of_type(batch, "file", ArrayRef::as_string_opt::<i32>)?;
        let long = |name| of_type(batch, name, ArrayRef::as_primitive_opt::<Int64Type>);
        let bytes = |name| of_type(batch, name, ArrayRef::as_binary_opt::<i32>);
        let (members, lengths, sums) = (long("members")?, long("bytes")?, long("checksum")?);
        let (firsts, lasts) = (bytes("first")?, bytes("last")?);
        for row in 0..batch.num_rows() {
            shards.push(Shard {
                family: u32::try_from(families.value(row)).unwrap_or(u32::MAX),
                file: files.value(row).to_owned(),
                members: members.value(row).cast_unsigned(),
                bytes: lengths.value(row).cast_unsigned(),
                checksum: sums.value(row).cast_unsigned(),
                first: firsts.value(row).to_vec(),
                last: lasts.value(row).to_vec(),
            });
        }
    }
    Ok(shards)
}

/// Returns a column of a given type.
fn of_type<'a, A: ?Sized>(
    batch: &'a RecordBatch,
    name: &str,
    cast: impl FnOnce(&'a ArrayRef) -> Option<&'a A>,
) -> Result<&'a A> {
    batch.column_by_name(name).and_then(cast).ok_or_else(|| missing(name))
}

fn missing(name: &str) -> Failure {
    Failure::usage(format!("column \"{name}\" is missing or has an unreadable value"))
}
