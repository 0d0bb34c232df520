//! Fingerprints: computes the fingerprints of a column or a list of texts.

use std::sync::Arc;

use arrow_array::builder::FixedSizeBinaryBuilder;
use arrow_array::{ArrayRef, UInt32Array, UInt64Array};
use hamdex::Fingerprint;
use hamdex_io::{Document, Wanted};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyList;

use crate::failure::{Failure, Result};
use crate::interrupt::{Watch, interruptible};
use crate::pipeline::Asked;
use crate::rows::{Columns, LABELS, Rows};
use crate::table::Table;
use crate::tables::Tables;

/// Runs an expression with the fingerprint type of a width.
macro_rules! for_width {
    ($bits:expr, $F:ident => $body:expr) => {
        hamdex::for_width!($crate::fingerprints::supported($bits)?, $F => $body)
    };
}
pub(crate) use for_width;

/// Refuses widths that there are not, before anything is done.
pub(crate) fn supported(bits: u32) -> Result<u32> {
    let unsupported = || Failure::usage(format!("{bits} bits: supported are 32, 64 and 128"));
    hamdex::for_width!(bits, F => Ok::<_, hamdex::Error>(F::BITS)).map_err(|_| unsupported())
}

/// Returns the fingerprint of one text.
pub(crate) fn sketch(pipeline: &hamdex::Pipeline, text: &str, bits: u32) -> Result<Option<u128>> {
    let sketch = pipeline.fingerprint_of_bits(text, supported(bits)?)?;
    Ok(sketch.map(|sketch| sketch.fingerprint))
}

/// Returns the fingerprint of each text: a list for a list, a column for a table.
#[pyfunction]
#[pyo3(signature = (data, column, *, pipeline, bits, tables))]
#[allow(clippy::needless_pass_by_value)] // extracted from a dict of Python
pub(crate) fn fingerprint<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    column: &str,
    pipeline: Option<&Bound<'py, PyAny>>,
    bits: u32,
    tables: Tables,
) -> PyResult<Bound<'py, PyAny>> {
    let asked = Asked::of(pipeline, &tables)?;
    if let Ok(list) = data.cast::<PyList>() {
        let texts: Vec<Option<PyBackedStr>> = list.extract()?;
        let table = Table::of_list(&texts)?;
        let prints: Vec<Option<u128>> = interruptible(py, |watch| {
            for_width!(bits, F => {
                let prints = prints::<F>(&table, column, &asked, watch)?;
                Ok(prints.into_iter().map(|print| print.map(F::widen)).collect())
            })
        })?;
        return Ok(PyList::new(py, prints)?.into_any());
    }
    let table = data.cast::<Table>()?.get();
    let prints = interruptible(
        py,
        |watch| for_width!(bits, F => column_of::<F>(&prints(table, column, &asked, watch)?)),
    )?;
    Ok(Bound::new(py, Table::of(vec![("fingerprint", prints)])?)?.into_any())
}

fn prints<F: Fingerprint>(
    table: &Table,
    column: &str,
    asked: &Asked,
    watch: &Watch,
) -> Result<Vec<Option<F>>> {
    let columns = Columns { text: column, ..Columns::default() };
    let rows = Rows::of(table, &columns, Vec::new())?;
    let pipeline = asked.pipeline(&|pipeline| rows.learn(pipeline, watch))?;
    let mut prints = vec![None; rows.len];
    let mut sink = |document: Document<'_, F>| {
        let row = usize::try_from(document.origin).ok();
        if let Some(slot) = row.and_then(|row| prints.get_mut(row)) {
            *slot = Some(document.fingerprint);
        }
        Ok(())
    };
    rows.read(&pipeline, watch, LABELS, Wanted::NOTHING, &mut sink)?;
    Ok(prints)
}

fn column_of<F: Fingerprint>(prints: &[Option<F>]) -> Result<ArrayRef> {
    let narrow = prints.iter().map(|print| print.map(Fingerprint::widen));
    match F::BITS {
        32 => {
            let narrow = narrow.map(|print| print.and_then(|print| u32::try_from(print).ok()));
            Ok(Arc::new(narrow.collect::<UInt32Array>()))
        }
        64 => {
            let narrow = narrow.map(|print| print.and_then(|print| u64::try_from(print).ok()));
            Ok(Arc::new(narrow.collect::<UInt64Array>()))
        }
        // Arrow has no 128-bit integer, so these are 16 bytes, the most significant first.
        _ => {
            let mut bytes = FixedSizeBinaryBuilder::with_capacity(prints.len(), 16);
            for print in prints {
                match print {
                    Some(print) => bytes.append_value(print.to_bytes()).map_err(Failure::from)?,
                    None => bytes.append_null(),
                }
            }
            Ok(Arc::new(bytes.finish()))
        }
    }
}
