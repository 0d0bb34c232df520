//! Sources: counts rows by a column, like the library and the command line.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StringArray, UInt64Array};
use arrow_cast::cast;
use arrow_schema::DataType;
use arrow_select::take::take;
use hamdex::Fingerprint;
use hamdex::dedup::{self, SourceCounts, Sources};
use hamdex_io::columnar;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::Found;
use crate::failure::Result;
use crate::fields::{self, is_text};
use crate::interrupt::detached;
use crate::table::Table;

/// The values of the source column.
#[derive(Debug, Default)]
pub(super) struct Column {
    known: HashMap<Option<Box<str>>, usize>,
    /// For each row, the index of its value.
    of_row: Vec<usize>,
}

impl Column {
    /// Notes the value of the next row.
    pub(super) fn push(&mut self, value: Option<Box<str>>) {
        let next = self.known.len();
        self.of_row.push(*self.known.entry(value).or_insert(next));
    }

    /// Returns true if no row has a value.
    pub(super) fn is_empty(&self) -> bool {
        self.known.keys().all(Option::is_none)
    }

    /// Returns the values by their indices.
    fn values(&self) -> Vec<Option<&str>> {
        let mut values = vec![None; self.known.len()];
        for (value, &at) in &self.known {
            if let Some(slot) = values.get_mut(at) {
                *slot = value.as_deref();
            }
        }
        values
    }
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
    Number(i128),
}

impl Account {
    /// Counts rows by source; `kept` returns `None` for rows that are not counted.
    pub(super) fn of<F: Fingerprint>(
        found: &Found<F>,
        labels: &ArrayRef,
        kept: impl Fn(usize) -> Option<bool>,
    ) -> Result<Self> {
        let Found { choice, sources: column, .. } = found;
        let values = column.values();
        let mut sources = Sources::new();
        let mut numbers = Vec::with_capacity(column.of_row.len());
        for (row, &value) in column.of_row.iter().enumerate() {
            let counted = kept(row).map(|kept| {
                let number = sources.number(values.get(value).copied().flatten());
                sources.count(number, kept);
                number
            });
            numbers.push(counted.unwrap_or(u32::MAX));
        }
        let row = |position: u32| choice.origins.get(position as usize);
        let source = |position: u32| {
            let row = row(position).and_then(|row| usize::try_from(row).ok());
            row.and_then(|row| numbers.get(row).copied()).unwrap_or(u32::MAX)
        };
        let counts = sources.counts(&choice.decisions, source);
        let pair = |counts: &SourceCounts| match counts.farthest {
            Some(pair) => [row(pair.removed), row(pair.kept)],
            None => [None, None],
        };
        let pairs: UInt64Array = counts.iter().flat_map(pair).collect();
        let labels = self::labels(labels, &pairs)?;
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
    if is_text(names.data_type()) {
        let texts = cast(&names, &DataType::LargeUtf8)?;
        let texts = texts.as_string::<i64>().iter();
        return Ok(texts.map(|text| text.map(|text| Label::Text(text.to_owned()))).collect());
    }
    let label = |text: Box<str>| match text.parse() {
        Ok(number) if names.data_type().is_integer() => Label::Number(number),
        _ => Label::Text(text.into()),
    };
    let texts = columnar::source_values(&names)?.into_iter();
    Ok(texts.map(|text| text.map(label)).collect())
}

/// Returns the source of every row by the values of a column.
#[pyfunction]
#[pyo3(name = "_source_values")]
pub(crate) fn source_values(py: Python<'_>, table: &Table, column: &str) -> PyResult<Table> {
    Ok(detached(py, || {
        let mut values = Vec::with_capacity(table.rows());
        for piece in fields::pieces(table, column)? {
            values.extend(columnar::source_values(&piece)?);
        }
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
