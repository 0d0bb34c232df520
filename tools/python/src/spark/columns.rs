//! Columns: convert fingerprints to and from Spark's types.

use std::sync::Arc;

use arrow_array::builder::BinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, Int64Array};
use arrow_schema::DataType;
use hamdex::Fingerprint;

use crate::failure::{Failure, Result};
use crate::table::Table;

/// A width of fingerprints that has a Spark column type.
pub(crate) trait Column: Fingerprint {
    /// Creates the column; missing values are null.
    fn column(values: impl Iterator<Item = Option<Self>>) -> ArrayRef;
}

/// Converts fingerprints of up to 64 bits to signed integers with the same bits.
fn longs(values: impl Iterator<Item = Option<u64>>) -> ArrayRef {
    Arc::new(values.map(|value| value.map(u64::cast_signed)).collect::<Int64Array>())
}

impl Column for u32 {
    fn column(values: impl Iterator<Item = Option<Self>>) -> ArrayRef {
        longs(values.map(|value| value.map(u64::from)))
    }
}

impl Column for u64 {
    fn column(values: impl Iterator<Item = Option<Self>>) -> ArrayRef {
        longs(values)
    }
}

impl Column for u128 {
    fn column(values: impl Iterator<Item = Option<Self>>) -> ArrayRef {
        let mut bytes = BinaryBuilder::new();
        values.for_each(|value| bytes.append_option(value.map(Self::to_bytes)));
        Arc::new(bytes.finish())
    }
}

/// Reads a column of fingerprints without nulls.
pub(crate) fn fingerprints<F: Fingerprint>(table: &Table, column: &str) -> Result<Vec<F>> {
    let mut values = Vec::with_capacity(table.rows());
    for piece in table.column(column)? {
        if piece.null_count() > 0 {
            return Err(Failure::usage(format!("column \"{column}\" has nulls")));
        }
        read(&piece, column, &mut values)?;
    }
    Ok(values)
}

#[allow(clippy::wildcard_enum_match_arm)] // Arrow has dozens of types
fn read<F: Fingerprint>(piece: &ArrayRef, column: &str, values: &mut Vec<F>) -> Result<()> {
    let wide = |value: u64| {
        let fits = u64::BITS <= F::BITS || value >> F::BITS == 0;
        let misfit = || {
            let bits = F::BITS;
            Failure::usage(format!("column \"{column}\" holds {value}, which exceeds {bits} bits"))
        };
        if fits { Ok(F::truncate(u128::from(value))) } else { Err(misfit()) }
    };
    match piece.data_type() {
        DataType::Int64 if F::BITS <= 64 => {
            for &value in piece.as_primitive::<Int64Type>().values() {
                values.push(wide(value.cast_unsigned())?);
            }
        }
        DataType::UInt64 if F::BITS <= 64 => {
            for &value in piece.as_primitive::<UInt64Type>().values() {
                values.push(wide(value)?);
            }
        }
        DataType::UInt32 if F::BITS <= 64 => {
            for &value in piece.as_primitive::<UInt32Type>().values() {
                values.push(wide(u64::from(value))?);
            }
        }
        DataType::Binary => {
            for value in piece.as_binary::<i32>() {
                values.push(of_bytes(value.unwrap_or_default(), column)?);
            }
        }
        DataType::FixedSizeBinary(_) => {
            for value in piece.as_fixed_size_binary() {
                values.push(of_bytes(value.unwrap_or_default(), column)?);
            }
        }
        other => {
            return Err(Failure::usage(format!(
                "column \"{column}\" is of type {other}, which cannot hold {}-bit fingerprints",
                F::BITS
            )));
        }
    }
    Ok(())
}

fn of_bytes<F: Fingerprint>(bytes: &[u8], column: &str) -> Result<F> {
    F::from_bytes(bytes).ok_or_else(|| {
        let (len, bits) = (bytes.len(), F::BITS);
        Failure::usage(format!("column \"{column}\" holds {len} bytes for {bits} bits"))
    })
}
