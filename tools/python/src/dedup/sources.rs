//! Sources: counts rows by a column, like the library and the command line.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, StringArray, UInt64Array};
use arrow_select::take::take;
use hamdex::Fingerprint;
use hamdex::dedup::{self, Decisions, SourceCounts, Sources};
use hamdex_io::columnar;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::column::Ids;
use crate::failure::{Failure, Result};
use crate::fields;
use crate::interrupt::detached;
use crate::read::{Read, Rows};
use crate::table::Table;

/// The values of the source column.
#[derive(Debug)]
pub(super) struct Column {
    values: Vec<Option<Box<str>>>,
    /// For each row, the index of its value.
    of_row: Vec<usize>,
}

impl Column {
    /// Reads a column of a table.
    ///
    /// # Errors
    ///
    /// A usage error if there is no such column, a data error if it has no value.
    pub(super) fn of(table: &Table, name: &str) -> Result<Self> {
        let mut column = Self { values: Vec::new(), of_row: Vec::with_capacity(table.rows()) };
        let mut known = HashMap::new();
        for value in values(table, name)? {
            let next = column.values.len();
            let place = *known.entry(value).or_insert_with_key(|value| {
                column.values.push(value.clone());
                next
            });
            column.of_row.push(place);
        }
        if !column.of_row.is_empty() && column.values.iter().all(Option::is_none) {
            return Err(Failure::data(format!(
                "source_field=\"{name}\": no row has a value in that column"
            )));
        }
        Ok(column)
    }

    fn value(&self, row: usize) -> Option<&str> {
        self.values.get(*self.of_row.get(row)?)?.as_deref()
    }
}

/// Reads the values of a column as the command line reads those of `--source-field`.
fn values(table: &Table, name: &str) -> Result<Vec<Option<Box<str>>>> {
    let mut all = Vec::with_capacity(table.rows());
    for piece in fields::pieces(table, name)? {
        let values = columnar::source_values(&piece.array)?;
        let rows = values.into_iter().enumerate();
        all.extend(rows.map(|(row, value)| value.filter(|_| piece.is_valid(row))));
    }
    Ok(all)
}

/// The counts of all sources.
#[derive(Debug, Default)]
pub(super) struct Account {
    rows: Vec<Row>,
    pub(super) warnings: Vec<String>,
}

#[derive(Debug)]
struct Row {
    counts: SourceCounts,
    /// Labels of the removed and of the kept document of the farthest pair.
    farthest: [Option<Label>; 2],
}

#[derive(Debug, Clone, IntoPyObject)]
enum Label {
    Text(String),
    Signed(i64),
    Unsigned(u64),
}

impl Account {
    /// Counts rows by source; `kept` returns `None` for rows that are not counted.
    pub(super) fn of<F: Fingerprint>(
        column: &Column,
        decisions: &Decisions<F>,
        (rows, read): (&Rows, &Read),
        kept: impl Fn(usize) -> Option<bool>,
    ) -> Result<Self> {
        let mut sources = Sources::new();
        let mut numbers = Vec::with_capacity(rows.len());
        for row in 0..rows.len() {
            let counted = kept(row).map(|kept| {
                let number = sources.number(column.value(row));
                sources.count(number, kept);
                number
            });
            numbers.push(counted.unwrap_or(u32::MAX));
        }
        let row = |position: u32| read.rows.get(position as usize).copied();
        let source = |position: u32| {
            let row = row(position).and_then(|row| usize::try_from(row).ok());
            row.and_then(|row| numbers.get(row).copied()).unwrap_or(u32::MAX)
        };
        let counts = sources.counts(decisions, source);
        let pair = |counts: &SourceCounts| match counts.farthest {
            Some(pair) => [row(pair.removed), row(pair.kept)],
            None => [None, None],
        };
        let pairs: UInt64Array = counts.iter().flat_map(pair).collect();
        let labels = labels(&rows.names, &pairs)?;
        let warnings = dedup::source_warnings(&counts);
        let mut labels = labels.into_iter();
        let mut label = || labels.next().flatten();
        let rows = counts.into_iter().map(|counts| Row { counts, farthest: [label(), label()] });
        Ok(Self { rows: rows.collect(), warnings })
    }

    /// Returns the counts with the names of report.json.
    pub(super) fn to_list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for Row { counts, farthest: [id, kept_id] } in &self.rows {
            let dict = PyDict::new(py);
            dict.set_item("name", &counts.name)?;
            dict.set_item("documents", counts.documents())?;
            dict.set_item("kept", counts.kept)?;
            dict.set_item("removed", counts.removed)?;
            dict.set_item("removed_share", counts.removed_share())?;
            let group = counts.largest_group.map(|group| {
                let dict = PyDict::new(py);
                dict.set_item("cluster", group.cluster)?;
                dict.set_item("documents", group.documents)?;
                Ok::<_, PyErr>(dict)
            });
            dict.set_item("largest_group", group.transpose()?)?;
            let pair = counts.farthest.map(|pair| {
                let dict = PyDict::new(py);
                dict.set_item("id", id.clone())?;
                dict.set_item("kept_id", kept_id.clone())?;
                dict.set_item("distance", pair.distance)?;
                if let Some(similarity) = pair.similarity {
                    dict.set_item("similarity", similarity)?;
                }
                Ok::<_, PyErr>(dict)
            });
            dict.set_item("farthest", pair.transpose()?)?;
            list.append(dict)?;
        }
        Ok(list)
    }
}

/// Returns the labels of some rows: integers and texts unchanged, others as JSON.
fn labels(names: &ArrayRef, rows: &UInt64Array) -> Result<Vec<Option<Label>>> {
    let names = take(names, rows, None)?;
    let valid = |row: usize| names.is_valid(row);
    let label = |row: usize, ids: &Ids<'_>| match ids {
        Ids::Texts(texts) => texts.get(row).map(|text| Label::Text(text.to_owned())),
        Ids::Signed(ids) => valid(row).then(|| Label::Signed(ids.value(row))),
        Ids::Unsigned(ids) => valid(row).then(|| Label::Unsigned(ids.value(row))),
    };
    if let Ok(ids) = Ids::of(&names, "id") {
        return Ok((0..names.len()).map(|row| label(row, &ids)).collect());
    }
    let texts = columnar::source_values(&names)?.into_iter();
    Ok(texts.map(|text| text.map(|text| Label::Text(text.into()))).collect())
}

/// Returns the source of every row by the values of a column.
#[pyfunction]
#[pyo3(name = "_source_values")]
pub(crate) fn source_values(py: Python<'_>, table: &Table, column: &str) -> PyResult<Table> {
    Ok(detached(py, || {
        let values = values(table, column)?;
        let names = values.iter().map(|value| value.as_deref().unwrap_or(Sources::NONE));
        Table::of(vec![("source", Arc::new(StringArray::from_iter_values(names)))])
    })?)
}

/// Sorts sources that were counted elsewhere; returns order, removed shares and warnings.
#[pyfunction]
#[pyo3(name = "_source_order")]
pub(crate) fn source_order(rows: Vec<(String, u64, u64)>) -> (Vec<String>, Vec<f64>, Vec<String>) {
    let count = |(name, kept, removed)| SourceCounts::new(name, kept, removed);
    let mut counts: Vec<SourceCounts> = rows.into_iter().map(count).collect();
    dedup::sort_sources(&mut counts);
    let shares = counts.iter().map(SourceCounts::removed_share).collect();
    let warnings = dedup::source_warnings(&counts);
    (counts.into_iter().map(|counts| counts.name).collect(), shares, warnings)
}
