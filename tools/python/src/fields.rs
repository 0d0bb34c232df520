//! Fields: resolve the name of one or several columns into the text of each row.
//!
//! A name is a column or a path into struct columns, `a.b`. Several comma-separated names are
//! joined by line ends. A column with exactly the given name takes precedence.

use std::borrow::Cow;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use pyo3::prelude::*;

use crate::column::Texts;
use crate::failure::{Failure, Result};
use crate::table::Table;

/// Default text columns, in order of preference.
const USUAL: [&str; 7] =
    ["text", "content", "body", "raw_content", "document", "markdown", "article"];

/// Returns the default text field among some columns.
///
/// # Errors
///
/// A usage error if no column has a default name.
pub(crate) fn detected(names: &[String]) -> Result<&'static str> {
    let known = |usual: &&&str| names.iter().any(|name| name == **usual);
    USUAL.iter().find(known).copied().ok_or_else(|| {
        Failure::usage(format!(
            "no column is named {}; set text to one of {}",
            USUAL.join(", "),
            names.join(", ")
        ))
    })
}

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

/// Returns the default text field.
#[pyfunction]
#[pyo3(name = "_text_field")]
#[allow(clippy::needless_pass_by_value)] // extracted from a list of Python
pub(crate) fn text_field(names: Vec<String>) -> PyResult<&'static str> {
    Ok(detected(&names)?)
}

/// Returns one column of a table, followed into structs, batch by batch.
pub(crate) fn pieces(table: &Table, field: &str) -> Result<Vec<Followed>> {
    let paths = paths(&table.names(), field)?;
    match paths.as_slice() {
        [path] => followed(table, path, field),
        _ => Err(Failure::usage(format!("\"{field}\" names several columns; name one"))),
    }
}

fn followed(table: &Table, path: &Path, field: &str) -> Result<Vec<Followed>> {
    let follow = |array: ArrayRef| {
        let mut found = Followed { array, within: Vec::new() };
        for name in &path.below {
            let inner = found
                .array
                .as_struct_opt()
                .and_then(|fields| fields.column_by_name(name))
                .map(ArrayRef::clone)
                .ok_or_else(|| {
                    let kind = found.array.data_type();
                    Failure::usage(format!(
                        "there is no column \"{field}\": no field \"{name}\" in {kind}"
                    ))
                })?;
            found.within.push(std::mem::replace(&mut found.array, inner));
        }
        Ok(found)
    };
    table.column(&path.column)?.into_iter().map(follow).collect()
}

/// A batch of a column, and the structs around it, whose nulls are its nulls.
#[derive(Debug)]
pub(crate) struct Followed {
    pub(crate) array: ArrayRef,
    within: Vec<ArrayRef>,
}

impl Followed {
    /// Returns another array in the same structs.
    pub(crate) fn with(&self, array: ArrayRef) -> Self {
        Self { array, within: self.within.clone() }
    }

    pub(crate) fn is_valid(&self, row: usize) -> bool {
        self.within.iter().all(|array| array.is_valid(row))
    }
}

/// The texts of a table, by row.
#[derive(Debug)]
pub(crate) struct TextColumn {
    field: String,
    /// For each batch of the table, the fields that make up a text.
    pieces: Vec<Vec<Followed>>,
    pub(crate) len: usize,
}

impl TextColumn {
    pub(crate) fn of(table: &Table, field: &str) -> Result<Self> {
        let len = table.rows();
        let mut pieces: Vec<Vec<Followed>> = Vec::new();
        pieces.resize_with(table.batches().len(), Vec::new);
        for path in paths(&table.names(), field)? {
            for (piece, found) in pieces.iter_mut().zip(followed(table, &path, field)?) {
                piece.push(found);
            }
        }
        Ok(Self { field: field.to_owned(), pieces, len })
    }

    /// Returns the batches, each with the number of its first row.
    pub(crate) fn pieces(&self) -> Result<Vec<(usize, TextPiece<'_>)>> {
        let mut all = Vec::with_capacity(self.pieces.len());
        let mut first = 0;
        for fields in &self.pieces {
            let len = fields.first().map_or(0, |field| field.array.len());
            let mut parts = Vec::with_capacity(fields.len());
            for field in fields {
                parts.push((field, Texts::of(field.array.as_ref(), &self.field)?));
            }
            all.push((first, TextPiece { parts, len }));
            first += len;
        }
        Ok(all)
    }
}

/// The texts of one batch.
#[derive(Debug)]
pub(crate) struct TextPiece<'a> {
    parts: Vec<(&'a Followed, Texts<'a>)>,
    pub(crate) len: usize,
}

impl<'a> TextPiece<'a> {
    /// Returns the text of a row; `None` if all of its fields are null.
    pub(crate) fn get(&self, row: usize) -> Option<Cow<'a, str>> {
        let mut found = self
            .parts
            .iter()
            .filter_map(|(part, texts)| texts.get(row).filter(|_| part.is_valid(row)));
        let first = found.next()?;
        let Some(second) = found.next() else { return Some(Cow::Borrowed(first)) };
        let mut joined = format!("{first}\n{second}");
        for text in found {
            joined.push('\n');
            joined.push_str(text);
        }
        Some(Cow::Owned(joined))
    }
}
