//! Unique values: keeps the preferred row of those with an equal value in a column.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use arrow_array::{Array, ArrayRef};
use arrow_cast::cast;
use arrow_ord::rank::rank;
use arrow_schema::DataType;
use arrow_select::concat::concat;
use rayon::prelude::*;

use crate::failure::{Failure, Result};
use crate::fields::{Followed, TextColumn};
use crate::interrupt::Watch;
use crate::read::BATCH;

/// Numbers the values of a column: equal values get equal numbers, nulls get none.
pub(super) fn classes(pieces: &[Followed], column: &str) -> Result<Vec<Option<u32>>> {
    let arrays: Vec<&dyn Array> = pieces.iter().map(|piece| piece.array.as_ref()).collect();
    if arrays.is_empty() {
        return Ok(Vec::new());
    }
    let whole = comparable(concat(&arrays)?)?;
    let ranks = rank(&whole, None).map_err(|_| {
        let kind = whole.data_type();
        Failure::usage(format!("unique_by: values of type {kind} in \"{column}\" have no order"))
    })?;
    let there = pieces.iter().flat_map(|piece| {
        (0..piece.array.len()).map(|row| piece.is_valid(row) && piece.array.is_valid(row))
    });
    Ok(ranks.into_iter().zip(there).map(|(rank, there)| there.then_some(rank)).collect())
}

/// Casts layouts without an order to ones that have one.
#[allow(clippy::wildcard_enum_match_arm)] // Arrow has dozens of types
fn comparable(array: ArrayRef) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::Utf8View => Ok(cast(&array, &DataType::LargeUtf8)?),
        DataType::BinaryView => Ok(cast(&array, &DataType::LargeBinary)?),
        DataType::Dictionary(_, values) => comparable(cast(&array, values)?),
        _ => Ok(array),
    }
}

/// Returns for each row whether a preferred row, or an earlier one of equals, has its value.
pub(super) fn repeated<R: Ord + Send>(
    classes: &[Option<u32>],
    texts: &TextColumn,
    watch: &Watch,
    rank: &(impl Fn(usize, &str) -> R + Sync),
) -> Result<Vec<bool>> {
    let mut best: HashMap<u32, (R, Reverse<usize>)> = HashMap::new();
    let mut repeated = vec![false; texts.len];
    for (base, piece) in texts.pieces()? {
        for first in (0..piece.len).step_by(BATCH) {
            watch.check()?;
            let batch = (first..piece.len.min(first + BATCH)).into_par_iter();
            let ranked = batch.filter_map(|at| {
                let row = base + at;
                let class = classes.get(row).copied().flatten()?;
                Some((class, (rank(row, &piece.get(at).unwrap_or_default()), Reverse(row))))
            });
            for (class, found) in ranked.collect::<Vec<_>>() {
                let loser = match best.entry(class) {
                    Entry::Vacant(free) => {
                        free.insert(found);
                        continue;
                    }
                    Entry::Occupied(mut there) if found > *there.get() => there.insert(found).1.0,
                    Entry::Occupied(_) => found.1.0,
                };
                if let Some(slot) = repeated.get_mut(loser) {
                    *slot = true;
                }
            }
        }
    }
    Ok(repeated)
}
