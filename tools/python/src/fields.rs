//! Fields: resolve the name of one or several columns into the text of each row.
//!
//! A name is a column or a path into struct columns, `a.b`. Several comma-separated names are
//! joined by line ends, as are the texts of a list. A column with exactly the given name takes
//! precedence.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, make_array};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use hamdex::dedup::Stamp;
use hamdex_io::{ID_FIELD, TEXT_FIELDS, columnar, default_among};
use pyo3::prelude::*;

use crate::failure::{Failure, Result};
use crate::interrupt::detached;
use crate::table::Table;

/// A column, and the fields to follow within its structs.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Path {
    column: String,
    below: Vec<String>,
}

impl Path {
    /// Finds the column whose name is the longest prefix of the path.
    fn of(names: &[String], field: &str) -> Option<Self> {
        let ends = field.match_indices('.').map(|(at, _)| at).chain([field.len()]);
        let ends = ends.collect::<Vec<_>>().into_iter().rev();
        ends.into_iter().find_map(|end| {
            let (column, rest) = field.split_at_checked(end)?;
            let below = rest.strip_prefix('.').unwrap_or_default();
            names.iter().any(|name| name == column).then(|| Self {
                column: column.to_owned(),
                below: below
                    .split('.')
                    .filter(|name| !name.is_empty())
                    .map(str::to_owned)
                    .collect(),
            })
        })
    }
}

fn paths(names: &[String], text: &str) -> Result<Vec<Path>> {
    if names.iter().any(|name| name == text) {
        return Ok(vec![Path { column: text.to_owned(), below: Vec::new() }]);
    }
    let path = |field: &str| {
        Path::of(names, field).ok_or_else(|| {
            Failure::usage(format!("there is no column \"{field}\" among {}", names.join(", ")))
        })
    };
    text.split(',').map(str::trim).map(path).collect()
}

/// Returns the columns that a field needs.
#[pyfunction]
#[pyo3(name = "_columns_of")]
#[allow(clippy::needless_pass_by_value)] // extracted from a list of Python
pub(crate) fn columns_of(names: Vec<String>, field: &str) -> PyResult<Vec<String>> {
    Ok(paths(&names, field)?.into_iter().map(|path| path.column).collect())
}

/// Returns the default text field among some columns.
#[pyfunction]
#[pyo3(name = "_text_field")]
#[allow(clippy::needless_pass_by_value)] // extracted from a list of Python
pub(crate) fn text_field(names: Vec<String>) -> PyResult<String> {
    let known = TEXT_FIELDS.into_iter().find_map(|usual| {
        let leads_there = || Path::of(&names, usual).map(|_| usual);
        default_among(&names, usual).or_else(leads_there).map(str::to_owned)
    });
    Ok(known.ok_or_else(|| {
        Failure::usage(format!(
            "no column is named {}; set text to one of {}",
            TEXT_FIELDS.join(", "),
            names.join(", ")
        ))
    })?)
}

/// Returns the default id column among some columns.
#[pyfunction]
#[pyo3(name = "_id_field")]
#[allow(clippy::needless_pass_by_value)] // extracted from a list of Python
pub(crate) fn id_field(names: Vec<String>) -> Option<String> {
    default_among(&names, ID_FIELD).map(str::to_owned)
}

/// Returns one column of a table, followed into structs, batch by batch.
pub(crate) fn pieces(table: &Table, field: &str) -> Result<Vec<ArrayRef>> {
    let paths = paths(&table.names(), field)?;
    match paths.as_slice() {
        [path] => followed(table, path, field),
        _ => Err(Failure::usage(format!("\"{field}\" names several columns; name one"))),
    }
}

/// Returns the columns that make up the text, batch by batch.
pub(crate) fn texts(table: &Table, field: &str) -> Result<Vec<Vec<ArrayRef>>> {
    let mut columns = Vec::new();
    for path in paths(&table.names(), field)? {
        let pieces = match list_texts(table, &path)? {
            Some(pieces) => pieces,
            None => followed(table, &path, field)?,
        };
        if let Some(other) = pieces.iter().map(Array::data_type).find(|kind| !is_text(kind)) {
            return Err(Failure::usage(format!(
                "column \"{field}\" is of type {other}; supported are string, large_string, \
                 string_view, and dictionaries and lists of them"
            )));
        }
        columns.push(pieces);
    }
    Ok(columns)
}

/// Returns whether values of a type are texts.
pub(crate) fn is_text(kind: &DataType) -> bool {
    if let DataType::Dictionary(_, values) = kind {
        return is_text(values);
    }
    kind.is_string() || kind.is_null()
}

/// Returns the texts of lists; `None` if a batch has no lists on the way.
fn list_texts(table: &Table, path: &Path) -> Result<Option<Vec<ArrayRef>>> {
    let pieces = table.column(&path.column)?.into_iter();
    let texts = pieces.map(|piece| Ok(columnar::list_texts(&piece, &path.below)?));
    texts.collect()
}

fn followed(table: &Table, path: &Path, field: &str) -> Result<Vec<ArrayRef>> {
    let follow = |array: ArrayRef| {
        path.below.iter().try_fold(array, |outer, name| {
            let inner = outer.as_struct_opt().and_then(|fields| fields.column_by_name(name));
            let inner = inner.ok_or_else(|| {
                let kind = outer.data_type();
                Failure::usage(format!(
                    "there is no column \"{field}\": no field \"{name}\" in {kind}"
                ))
            })?;
            if outer.null_count() == 0 || inner.data_type().is_null() {
                return Ok(Arc::clone(inner));
            }
            // The nulls of a struct are those of its fields.
            let nulls = NullBuffer::union(outer.nulls(), inner.nulls());
            Ok(make_array(inner.to_data().into_builder().nulls(nulls).build()?))
        })
    };
    table.column(&path.column)?.into_iter().map(follow).collect()
}

/// Refuses a column whose values have no order.
pub(crate) fn require_order(pieces: &[ArrayRef], column: &str) -> Result<()> {
    fn ordered(kind: &DataType) -> bool {
        if let DataType::Dictionary(_, values) = kind {
            return ordered(values);
        }
        let time = matches!(kind, DataType::Date32 | DataType::Date64 | DataType::Timestamp(..));
        time || kind.is_numeric() || is_text(kind)
    }
    match pieces.iter().map(Array::data_type).find(|kind| !ordered(kind)) {
        None => Ok(()),
        Some(other) => Err(Failure::usage(format!(
            "keep: values of column \"{column}\" of type {other} have no order; supported are \
             numbers, dates, timestamps and strings"
        ))),
    }
}

/// Returns binary keys that sort like the values of a column; null for a missing value.
#[pyfunction]
#[pyo3(name = "_stamps")]
pub(crate) fn stamps(py: Python<'_>, table: &Table, column: &str) -> PyResult<Table> {
    Ok(detached(py, || {
        let pieces = pieces(table, column)?;
        require_order(&pieces, column)?;
        let mut keys = Vec::with_capacity(table.rows());
        let key = |stamp: Stamp| (!stamp.is_missing()).then(|| stamp.to_key());
        for piece in &pieces {
            keys.extend(columnar::stamps(piece)?.into_iter().map(key));
        }
        Table::of(vec![("key", Arc::new(keys.into_iter().collect::<BinaryArray>()))])
    })?)
}
