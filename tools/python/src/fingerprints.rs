//! Fingerprints: a column or a list of texts becomes as many numbers.

use std::sync::Arc;

use arrow_array::builder::FixedSizeBinaryBuilder;
use arrow_array::{Array, ArrayRef, UInt32Array, UInt64Array};
use hamdex::Fingerprint;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyList;
use rayon::prelude::*;

use crate::column::Texts;
use crate::failure::{Failure, Result};
use crate::interrupt::{Watch, interruptible};
use crate::pipeline::Asked;
use crate::table::Table;

/// Texts that are read together, on all threads.
const BATCH: usize = 1024;

/// Does something for the width that a number of bits names.
macro_rules! for_width {
    ($bits:expr, $F:ident => $body:expr) => {
        match $bits {
            32 => {
                type $F = u32;
                $body
            }
            64 => {
                type $F = u64;
                $body
            }
            128 => {
                type $F = u128;
                $body
            }
            bits => Err($crate::failure::Failure::usage(format!(
                "{bits} bits: supported are 32, 64 and 128"
            ))),
        }
    };
}
pub(crate) use for_width;

/// Returns the fingerprint of one text.
pub(crate) fn sketch(pipeline: &hamdex::Pipeline, text: &str, bits: u32) -> Result<Option<u128>> {
    for_width!(bits, F => {
        Ok(pipeline.fingerprint::<F>(text).map(|sketch| sketch.fingerprint.widen()))
    })
}

/// Returns a fingerprint for each text: of a list as a list, of a table as a column.
#[pyfunction]
#[pyo3(signature = (data, column, *, pipeline = None, bits = 64))]
pub(crate) fn fingerprint<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    column: &str,
    pipeline: Option<&Bound<'py, PyAny>>,
    bits: u32,
) -> PyResult<Bound<'py, PyAny>> {
    let asked = Asked::of(pipeline)?;
    if let Ok(list) = data.cast::<PyList>() {
        let texts: Vec<Option<PyBackedStr>> = list.extract()?;
        let prints: Vec<Option<u128>> = interruptible(py, |watch| {
            let pipeline = asked.pipeline()?;
            let get = |row: usize| texts.get(row)?.as_deref();
            for_width!(bits, F => many::<F>(&pipeline, texts.len(), get, watch)
                .map(|prints| prints.into_iter().map(|print| print.map(F::widen)).collect()))
        })?;
        return Ok(PyList::new(py, prints)?.into_any());
    }
    let table = data.cast::<Table>()?.get();
    let pieces = table.column(column)?;
    let prints = interruptible(py, |watch| {
        let pipeline = asked.pipeline()?;
        for_width!(bits, F => column_of::<F>(&pipeline, &pieces, column, watch))
    })?;
    Ok(Bound::new(py, Table::of(vec![("fingerprint", prints)])?)?.into_any())
}

fn many<'t, F: Fingerprint>(
    pipeline: &hamdex::Pipeline,
    rows: usize,
    get: impl Fn(usize) -> Option<&'t str> + Sync,
    watch: &Watch,
) -> Result<Vec<Option<F>>> {
    let mut prints = Vec::with_capacity(rows);
    for first in (0..rows).step_by(BATCH) {
        watch.check()?;
        let batch = (first..rows.min(first + BATCH)).into_par_iter();
        let sketch = |row| Some(pipeline.fingerprint::<F>(get(row)?)?.fingerprint);
        prints.par_extend(batch.map(sketch));
    }
    Ok(prints)
}

fn column_of<F: Fingerprint>(
    pipeline: &hamdex::Pipeline,
    pieces: &[ArrayRef],
    column: &str,
    watch: &Watch,
) -> Result<ArrayRef> {
    let mut prints: Vec<Option<F>> = Vec::new();
    for piece in pieces {
        let texts = Texts::of(piece.as_ref(), column)?;
        prints.extend(many::<F>(pipeline, piece.len(), |row| texts.get(row), watch)?);
    }
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
        // No integer of Arrow is as wide: 16 bytes, the most significant first.
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
