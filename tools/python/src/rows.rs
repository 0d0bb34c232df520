//! Rows: the columns that a call names become documents by the rules of the command line.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use hamdex::advice::SAMPLE;
use hamdex::text::IdfTable;
use hamdex::{Fingerprint, Pipeline};
use hamdex_io::{
    Blank, Ids, Inputs, MaxBad, Names, Policy, Reading, Rejects, Sink, Totals, Wanted,
};

use crate::failure::{Failure, Result};
use crate::fields;
use crate::interrupt::Watch;
use crate::table::Table;

/// Rows whose ids are labels or are not read.
pub(crate) const LABELS: (Ids, MaxBad) = (Ids::Labels, MaxBad::ANY);

/// The reason of a row whose value is not a text.
const NOT_A_STRING: &str = "not a string";

/// The columns that a call names.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Columns<'a> {
    pub(crate) text: &'a str,
    /// The column of keys; `None` uses row numbers.
    pub(crate) id: Option<&'a str>,
    pub(crate) stamp: Option<&'a str>,
    pub(crate) unique: Option<&'a str>,
    pub(crate) source: Option<&'a str>,
}

/// The rows of a table.
#[derive(Debug)]
pub(crate) struct Rows {
    inputs: Arc<Inputs>,
    /// Numbers of the rows whose value is not a text, ascending.
    odd: Vec<u64>,
    pub(crate) len: usize,
}

/// The counts of a reading.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) totals: Totals,
    /// Rows whose id is invalid or repeated.
    pub(crate) rejects: u64,
}

impl Rows {
    pub(crate) fn of(table: &Table, columns: &Columns<'_>, odd: Vec<u64>) -> Result<Self> {
        let mut named: Vec<(String, Vec<ArrayRef>)> = Vec::new();
        for (at, pieces) in fields::texts(table, columns.text)?.into_iter().enumerate() {
            named.push((format!("text{at}"), pieces));
        }
        let texts: Vec<&str> = named.iter().map(|(name, _)| name.as_str()).collect();
        let mut names = Names { text: Some(texts.join(",")), alone: true, ..Names::default() };
        for (name, column, slot) in [
            ("id", columns.id, &mut names.id),
            ("stamp", columns.stamp, &mut names.stamp),
            ("unique", columns.unique, &mut names.unique),
            ("source", columns.source, &mut names.source),
        ] {
            if let Some(column) = column {
                named.push((name.to_owned(), fields::pieces(table, column)?));
                *slot = Some(name.to_owned());
            }
        }
        let (schema, batches) = batches(&named, table.batches().len())?;
        let inputs = Arc::new(Inputs::of_rows(schema, batches, names)?);
        Ok(Self { inputs, odd, len: table.rows() })
    }

    /// Hands the documents to the sink in row order, and the rows with nothing to compare.
    pub(crate) fn read<F: Fingerprint>(
        &self,
        pipeline: &Pipeline,
        watch: &Watch,
        (ids, max_bad): (Ids, MaxBad),
        wanted: Wanted,
        sink: &mut dyn Sink<F>,
    ) -> Result<Read> {
        let reading = Reading {
            inputs: &self.inputs,
            pipeline: Some(pipeline),
            console: watch,
            ids,
            keep_blank: true,
            after: None,
            wanted,
        };
        let policy = Policy { max_bad, all_unusable: true, ..Policy::default() };
        let mut rejects = Rejects::new(policy, watch)?;
        let mut totals = reading.run::<F>(&mut rejects, sink)?;
        // Such a value is a null in Arrow.
        let odd = self.odd.len() as u64;
        if let Some(nulls) = totals.blank.remove("null text") {
            let counts = [("null text", nulls.saturating_sub(odd)), (NOT_A_STRING, odd)];
            totals.blank.extend(counts.into_iter().filter(|(_, count)| *count > 0));
        }
        Ok(Read { totals, rejects: rejects.count() })
    }

    /// Returns why a row has nothing to compare.
    pub(crate) fn reason(&self, blank: &Blank) -> &'static str {
        if self.odd.binary_search(&blank.origin).is_ok() { NOT_A_STRING } else { blank.reason }
    }

    /// Returns a sample from the whole column.
    pub(crate) fn sample(&self) -> Result<Vec<String>> {
        Ok(self.inputs.sample(SAMPLE)?)
    }

    /// Learns the inverse document frequency of the words of the texts.
    pub(crate) fn learn(&self, pipeline: &Pipeline, watch: &Watch) -> Result<IdfTable> {
        Ok(hamdex_io::learn(&self.inputs, pipeline, watch)?)
    }

    /// Returns the failure of a table without any row to compare.
    pub(crate) fn unusable(&self, read: &Read) -> Failure {
        let counts = read.totals.blank.iter().map(|(reason, count)| format!("{count} {reason}"));
        let counts = counts.collect::<Vec<_>>().join(", ");
        Failure::data(format!("no row of {} has a text to compare: {counts}", self.len))
    }
}

/// Returns the labels of all rows, in one array.
pub(crate) fn labels(table: &Table, id: Option<&str>) -> Result<ArrayRef> {
    match id {
        Some(id) => table.whole(id),
        None => Ok(Arc::new(UInt64Array::from_iter_values(0..table.rows() as u64))),
    }
}

/// Refuses a column that cannot hold keys.
pub(crate) fn require_ids(table: &Table, id: &str) -> Result<()> {
    for piece in table.column(id)? {
        let kind = piece.data_type();
        if !kind.is_integer() && !fields::is_text(kind) {
            return Err(Failure::usage(format!(
                "column \"{id}\" is of type {kind}; supported ids are strings and integers"
            )));
        }
    }
    Ok(())
}

/// Puts columns side by side, batch by batch.
fn batches(
    named: &[(String, Vec<ArrayRef>)],
    count: usize,
) -> Result<(SchemaRef, Vec<RecordBatch>)> {
    let mut schema = Arc::new(Schema::empty());
    let mut batches = Vec::with_capacity(count);
    for at in 0..count {
        let columns = named.iter().filter_map(|(name, pieces)| Some((name, pieces.get(at)?)));
        let field = |(name, piece): (&String, &ArrayRef)| {
            Field::new(name.as_str(), DataType::clone(piece.data_type()), true)
        };
        schema = Arc::new(Schema::new(columns.clone().map(field).collect::<Vec<_>>()));
        let columns = columns.map(|(_, piece)| Arc::clone(piece)).collect();
        batches.push(RecordBatch::try_new(Arc::clone(&schema), columns)?);
    }
    Ok((schema, batches))
}
