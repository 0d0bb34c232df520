//! Tables: Arrow data that is exchanged through capsules without copying.

use std::sync::Arc;

use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{
    Array, ArrayRef, BooleanArray, LargeStringArray, RecordBatch, RecordBatchIterator,
    RecordBatchReader, new_empty_array,
};
use arrow_pyarrow::FromPyArrow;
use arrow_schema::{Field, Schema, SchemaRef};
use arrow_select::concat::concat;
use arrow_select::filter::filter_record_batch;
use hamdex_io::host::Host;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyCapsule;

use crate::failure::{Failure, Result};
use crate::interrupt::{detached, interruptible};

/// Arrow data with `__arrow_c_stream__`, readable by any Arrow library.
#[pyclass(frozen, module = "hamdex")]
#[derive(Debug)]
pub(crate) struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    /// Creates a table of columns of equal length.
    pub(crate) fn of(columns: Vec<(&str, ArrayRef)>) -> Result<Self> {
        let field =
            |(name, column): &(&str, ArrayRef)| Field::new(*name, column.data_type().clone(), true);
        let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
        let columns = columns.into_iter().map(|(_, column)| column).collect();
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns)?;
        Ok(Self { schema, batches: vec![batch] })
    }

    /// Reads an object with `__arrow_c_stream__`.
    pub(crate) fn take(object: &Bound<'_, PyAny>) -> Result<Self> {
        let stream = RecordBatchStreamReader::from_pyarrow_bound(object)?;
        // A stream may run Python code while it is read, which needs the GIL.
        interruptible(object.py(), |watch| {
            let schema = RecordBatchReader::schema(&stream);
            let mut batches = Vec::new();
            for batch in stream {
                watch.check()?;
                batches.push(batch?);
            }
            Ok(Self { schema, batches })
        })
    }

    /// Creates a table of texts with the column "text".
    pub(crate) fn of_list(texts: &[Option<PyBackedStr>]) -> Result<Self> {
        let texts: LargeStringArray = texts.iter().map(Option::as_deref).collect();
        Self::of(vec![("text", Arc::new(texts))])
    }

    pub(crate) fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// Returns all rows, batch by batch.
    pub(crate) fn batches(&self) -> &[RecordBatch] {
        &self.batches
    }

    /// Returns the names of the columns.
    pub(crate) fn names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Returns the batches of a column.
    pub(crate) fn column(&self, name: &str) -> Result<Vec<ArrayRef>> {
        let at = self.schema.index_of(name).map_err(|_| {
            let names = self.names().join(", ");
            Failure::usage(format!("there is no column \"{name}\" among {names}"))
        })?;
        Ok(self.batches.iter().map(|batch| Arc::clone(batch.column(at))).collect())
    }

    /// Returns a column as one array, copied if it has several batches.
    pub(crate) fn whole(&self, name: &str) -> Result<ArrayRef> {
        let pieces = self.column(name)?;
        let pieces: Vec<&dyn Array> = pieces.iter().map(AsRef::as_ref).collect();
        if pieces.is_empty() {
            return Ok(new_empty_array(self.schema.field_with_name(name)?.data_type()));
        }
        Ok(concat(&pieces)?)
    }
}

#[pymethods]
impl Table {
    /// Reads an object that provides Arrow data.
    #[new]
    fn new(data: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self::take(data)?)
    }

    /// Creates a table of a list of texts with the column "text".
    #[staticmethod]
    #[pyo3(name = "_of_texts")]
    #[allow(clippy::needless_pass_by_value)] // extracted from a list of Python
    fn of_texts(texts: Vec<Option<PyBackedStr>>) -> PyResult<Self> {
        Ok(Self::of_list(&texts)?)
    }

    /// Creates a table with one column, "kept", that is true where a byte of `mask` is not 0.
    #[staticmethod]
    #[pyo3(name = "_of_mask")]
    fn of_mask(mask: &[u8]) -> PyResult<Self> {
        let kept: BooleanArray = mask.iter().map(|&byte| Some(byte != 0)).collect();
        Ok(Self::of(vec![("kept", Arc::new(kept))])?)
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A hint that a producer may ignore.
        let _ = requested_schema;
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, Arc::clone(&self.schema));
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// Returns the rows for which a byte of `mask` is not 0.
    fn filter(&self, py: Python<'_>, mask: &[u8]) -> PyResult<Self> {
        if mask.len() != self.rows() {
            let (bytes, rows) = (mask.len(), self.rows());
            return Err(Failure::usage(format!("mask has {bytes} bytes for {rows} rows")).into());
        }
        let filtered = detached(py, || {
            let mut mask = mask.iter();
            let keep = |batch: &RecordBatch| {
                let wanted: BooleanArray =
                    mask.by_ref().take(batch.num_rows()).map(|&byte| Some(byte != 0)).collect();
                filter_record_batch(batch, &wanted)
            };
            let batches = self.batches.iter().map(keep).collect::<Result<Vec<_>, _>>()?;
            Ok(Self { schema: Arc::clone(&self.schema), batches })
        });
        Ok(filtered?)
    }

    #[getter]
    fn num_rows(&self) -> usize {
        self.rows()
    }

    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.names()
    }

    fn __len__(&self) -> usize {
        self.rows()
    }

    fn __repr__(&self) -> String {
        format!("hamdex.Table({} rows: {})", self.rows(), self.column_names().join(", "))
    }
}
