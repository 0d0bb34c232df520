//! Matching: converts tables of keyed rows into tables of pairs, rows to split, and counts.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, BooleanArray, Int8Array, Int32Array, Int64Array};
use hamdex::join::Pair;
use hamdex::spread::{Counts, Found, Groups, Row, Wanted};

use super::columns::{Column, fingerprints};
use crate::failure::{Failure, Result};
use crate::table::Table;

/// Kinds of result rows. A pair has a distance. A row to split is unchanged, with `second` as a
/// distance of 1. A count has its number as the distance and its value as the key.
const PAIR: i8 = 0;
const SKEWED: i8 = 1;
const COUNT: i8 = 2;

/// Keys of any width.
pub(crate) trait Spreading: Send + Sync {
    fn tables(&self) -> usize;
    fn levels(&self) -> usize;
    fn first(&self, table: &Table) -> Result<Table>;
    fn below(&self, table: &Table) -> Result<Table>;
    fn groups(&self, wanted: Wanted, limit: usize) -> Box<dyn Matching>;
}

/// Groups of any width.
pub(crate) trait Matching: Send {
    fn push(&mut self, table: &Table) -> Result<Table>;
    fn finish(self: Box<Self>) -> Result<Table>;
}

/// Returns a row for each key that `keys` returns for each key and fingerprint of a table.
///
/// Without a key column every key is 0.
pub(crate) fn expand<F: Column, K: Iterator<Item = u64>>(
    table: &Table,
    keys: impl Fn(u64, F) -> K,
) -> Result<Table> {
    let values = fingerprints::<F>(table, "fingerprint")?;
    let old = if has(table, "key") { longs(table, "key")? } else { vec![0; values.len()] };
    let second = if has(table, "second") { Some(flags(table, "second")?) } else { None };
    let (mut made, mut prints, mut seconds) = (Vec::new(), Vec::new(), Vec::new());
    for (row, (&value, key)) in values.iter().zip(old).enumerate() {
        for key in keys(key.cast_unsigned(), value) {
            made.push(key.cast_signed());
            prints.push(value);
            if let Some(second) = &second {
                seconds.push(second.get(row).copied().unwrap_or(false));
            }
        }
    }
    let mut columns: Vec<(&str, ArrayRef)> = vec![
        ("key", Arc::new(Int64Array::from(made))),
        ("fingerprint", F::column(prints.into_iter().map(Some))),
    ];
    if second.is_some() {
        columns.push(("second", Arc::new(BooleanArray::from(seconds))));
    }
    Table::of(columns)
}

/// Groups of one width that read tables.
pub(crate) struct Stream<F> {
    groups: Groups<F>,
}

impl<F: Column> Stream<F> {
    pub(crate) fn new(groups: Groups<F>) -> Self {
        Self { groups }
    }
}

impl<F: Column> Matching for Stream<F> {
    fn push(&mut self, table: &Table) -> Result<Table> {
        let prints = fingerprints::<F>(table, "fingerprint")?;
        let keys = longs(table, "key")?;
        let second = if has(table, "second") { flags(table, "second")? } else { Vec::new() };
        let mut found = Found::default();
        for (at, (fingerprint, key)) in prints.into_iter().zip(keys).enumerate() {
            let second = second.get(at).copied().unwrap_or(false);
            let row = Row { key: key.cast_unsigned(), fingerprint, second };
            self.groups.push(row, &mut found)?;
        }
        to_table(&found, None)
    }

    fn finish(self: Box<Self>) -> Result<Table> {
        let mut found = Found::default();
        let counts = self.groups.finish(&mut found)?;
        to_table(&found, Some(counts))
    }
}

fn to_table<F: Column>(found: &Found<F>, counts: Option<Counts>) -> Result<Table> {
    let counts: Vec<u64> = counts
        .map(|Counts { rows, groups, largest, pairs, skewed, .. }| {
            vec![rows, groups, largest, pairs, skewed]
        })
        .unwrap_or_default();
    let Found { pairs, skewed, .. } = found;
    let kinds = pairs.iter().map(|_| PAIR).chain(skewed.iter().map(|_| SKEWED));
    let kinds: Int8Array = kinds.chain(counts.iter().map(|_| COUNT)).map(Some).collect();
    let keys = pairs.iter().map(|_| None);
    let keys = keys.chain(skewed.iter().map(|row| Some(row.key.cast_signed())));
    let keys: Int64Array =
        keys.chain(counts.iter().map(|&count| i64::try_from(count).ok())).collect();
    let a = pairs.iter().map(|pair| Some(pair.a));
    let a = a.chain(skewed.iter().map(|row| Some(row.fingerprint)));
    let a = F::column(a.chain(counts.iter().map(|_| None)));
    let b = pairs.iter().map(|pair| Some(pair.b)).chain(skewed.iter().map(|_| None));
    let b = F::column(b.chain(counts.iter().map(|_| None)));
    let distances = pairs.iter().map(|pair: &Pair<F>| i32::try_from(pair.distance).ok());
    let distances = distances.chain(skewed.iter().map(|row| Some(i32::from(row.second))));
    let distances: Int32Array = distances.chain((0..).take(counts.len()).map(Some)).collect();
    Table::of(vec![
        ("kind", Arc::new(kinds)),
        ("key", Arc::new(keys)),
        ("a", a),
        ("b", b),
        ("distance", Arc::new(distances)),
    ])
}

fn has(table: &Table, column: &str) -> bool {
    table.column(column).is_ok()
}

fn longs(table: &Table, column: &str) -> Result<Vec<i64>> {
    let mut values = Vec::with_capacity(table.rows());
    for piece in table.column(column)? {
        let piece = piece.as_primitive_opt::<Int64Type>().filter(|piece| piece.null_count() == 0);
        let piece = piece.ok_or_else(|| {
            Failure::usage(format!("column \"{column}\" is not a column of integers"))
        })?;
        values.extend_from_slice(piece.values());
    }
    Ok(values)
}

fn flags(table: &Table, column: &str) -> Result<Vec<bool>> {
    let mut values = Vec::with_capacity(table.rows());
    for piece in table.column(column)? {
        let piece = piece.as_boolean_opt().ok_or_else(|| {
            Failure::usage(format!("column \"{column}\" is not a column of booleans"))
        })?;
        values.extend(piece.iter().map(|flag| flag == Some(true)));
    }
    Ok(values)
}
