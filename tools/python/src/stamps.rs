//! Stamps: the order of rows by a column of dates, numbers or texts.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, BinaryArray};
use arrow_cast::cast;
use arrow_schema::{DataType, TimeUnit};
use hamdex::dedup::Stamp;
use pyo3::prelude::*;
use rayon::prelude::*;

use crate::column::Texts;
use crate::failure::{Failure, Result};
use crate::fields::{self, Followed};
use crate::interrupt::detached;
use crate::table::Table;

const SECONDS_PER_DAY: i64 = 86_400;
const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Returns the rank of every row by its value in a column, ascending; equal values share one.
///
/// # Errors
///
/// A usage error if the values have no order, or if there are none.
pub(crate) fn ranks(table: &Table, word: &str, column: &str) -> Result<Vec<u32>> {
    let mut stamps = Vec::with_capacity(table.rows());
    for piece in fields::pieces(table, column)? {
        stamps_of(&piece, column, &mut stamps)?;
    }
    if !stamps.is_empty() && stamps.iter().all(Stamp::is_missing) {
        return Err(Failure::usage(format!(
            "keep=\"{word}:{column}\": no row has a value in that column"
        )));
    }
    let mut order: Vec<(&Stamp, usize)> = stamps.iter().zip(0..).collect();
    order.par_sort_unstable();
    let mut ranks = vec![0; stamps.len()];
    let (mut place, mut last) = (0, None);
    for (stamp, row) in order {
        place += u32::from(last.is_some_and(|last| last != stamp));
        last = Some(stamp);
        if let Some(rank) = ranks.get_mut(row) {
            *rank = place;
        }
    }
    Ok(ranks)
}

/// Returns binary keys that sort like the values of a column; null for a missing value.
#[pyfunction]
#[pyo3(name = "_stamps")]
pub(crate) fn keys(py: Python<'_>, table: &Table, column: &str) -> PyResult<Table> {
    Ok(detached(py, || {
        let mut stamps = Vec::with_capacity(table.rows());
        for piece in fields::pieces(table, column)? {
            stamps_of(&piece, column, &mut stamps)?;
        }
        let key = |stamp: &Stamp| (!stamp.is_missing()).then(|| stamp.to_key());
        let keys: BinaryArray = stamps.iter().map(key).collect();
        Table::of(vec![("key", Arc::new(keys))])
    })?)
}

#[allow(clippy::wildcard_enum_match_arm)] // Arrow has dozens of types
fn stamps_of(piece: &Followed, column: &str, stamps: &mut Vec<Stamp>) -> Result<()> {
    let array = &piece.array;
    let mut push = |row: usize, stamp: Option<Stamp>| {
        stamps.push(stamp.filter(|_| piece.is_valid(row)).unwrap_or_default());
    };
    match array.data_type() {
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => {
            let values = longs(array)?;
            values.iter().enumerate().for_each(|(row, value)| push(row, value.map(Stamp::from)));
        }
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => {
            let values = cast(array, &DataType::UInt64)?;
            let values = values.as_primitive::<UInt64Type>().iter().enumerate();
            values.for_each(|(row, value)| push(row, value.map(Stamp::from)));
        }
        DataType::Float16 | DataType::Float32 | DataType::Float64 => {
            let values = cast(array, &DataType::Float64)?;
            let values = values.as_primitive::<Float64Type>().iter().enumerate();
            values.for_each(|(row, value)| push(row, value.map(Stamp::from)));
        }
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => {
            let units = units_per_second(array.data_type());
            let values = longs(array)?;
            for (row, value) in values.iter().enumerate() {
                push(row, value.map(|value| time(value, units)));
            }
        }
        DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => {
            let values = cast(array, &DataType::Utf8)?;
            let values = values.as_string::<i32>().iter().enumerate();
            values.for_each(|(row, value)| push(row, value.map(Stamp::from_text)));
        }
        DataType::Dictionary(_, values) if !values.is_string() => {
            let array = cast(array, values)?;
            stamps_of(&piece.with(array), column, stamps)?;
        }
        other => {
            let texts = Texts::of(array.as_ref(), column).map_err(|_| {
                Failure::usage(format!(
                    "keep: values of column \"{column}\" of type {other} have no order; supported are \
                     numbers, dates, timestamps and strings"
                ))
            })?;
            for row in 0..array.len() {
                push(row, texts.get(row).map(Stamp::from_text));
            }
        }
    }
    Ok(())
}

fn longs(array: &ArrayRef) -> Result<arrow_array::Int64Array> {
    // Arrow casts a 32-bit date only to a 32-bit integer.
    let narrow = if *array.data_type() == DataType::Date32 {
        cast(array, &DataType::Int32)?
    } else {
        ArrayRef::clone(array)
    };
    Ok(cast(&narrow, &DataType::Int64)?.as_primitive::<Int64Type>().clone())
}

/// Returns the units per second of a time type; a negative number is seconds per unit.
#[allow(clippy::wildcard_enum_match_arm)] // called with time types only
fn units_per_second(kind: &DataType) -> i64 {
    match kind {
        DataType::Date32 => -SECONDS_PER_DAY,
        DataType::Timestamp(TimeUnit::Second, _) => 1,
        DataType::Date64 | DataType::Timestamp(TimeUnit::Millisecond, _) => 1_000,
        DataType::Timestamp(TimeUnit::Microsecond, _) => 1_000_000,
        _ => NANOS_PER_SECOND,
    }
}

fn time(value: i64, units: i64) -> Stamp {
    if units < 0 {
        return Stamp::Time { seconds: value.saturating_mul(-units), nanos: 0 };
    }
    let nanos = value.rem_euclid(units) * (NANOS_PER_SECOND / units);
    Stamp::Time { seconds: value.div_euclid(units), nanos: u32::try_from(nanos).unwrap_or(0) }
}
