//! Batches: rows of a columnar file, which become documents or lines of JSON on any thread.
//!
//! Texts are taken from their columns. Values of other fields pass through JSON, which defines how
//! ids, sources and values of `--unique-by` are written.

use std::fmt::LowerHex;
use std::io::{self, BufRead};
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, LargeStringArray, RecordBatch, StringArray,
    StringViewArray,
};
use arrow_cast::cast;
use arrow_json::WriterBuilder;
use arrow_json::writer::LineDelimited;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use hamdex::dedup::Stamp;

use super::schema::is_list_of_texts;
use crate::documents::key;
use crate::documents::reject::Reason;
use crate::face::failure::{Failure, Result};
use crate::formats::fields::{FINGERPRINT, Fields, Names};
use crate::formats::row::{Row, parse, parse_beside};

/// Values of a column that become JSON together.
const STEP: usize = 256;

/// Consecutive rows of a file.
#[derive(Debug)]
pub struct Batch {
    pub(super) rows: RecordBatch,
    /// Ordinal of the first row within the file.
    pub(super) first: u64,
    pub(super) path: Arc<Path>,
    /// Columns of bytes that are texts.
    pub(super) texts: Arc<Vec<String>>,
    /// Bytes that a text may have.
    pub(super) longest: u64,
}

impl Batch {
    /// Sets the ordinal of the first row, and keeps at most `most` rows.
    pub(crate) fn beginning_at(self, first: u64, most: u64) -> Self {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let rows = self.rows.slice(0, self.rows.num_rows().min(most));
        Self { rows, first, ..self }
    }

    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    pub(crate) fn rows(&self) -> u64 {
        self.len() as u64
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.num_rows()
    }

    pub(crate) fn bytes(&self) -> usize {
        bytes(&self.rows)
    }

    /// Returns the rows as lines of JSON, and where each line ends.
    pub(crate) fn json(&self) -> Result<(Vec<u8>, Vec<usize>)> {
        let mut bytes = Vec::with_capacity(self.bytes() + self.bytes() / 8);
        self.write(&mut bytes).map_err(|e| self.failed(e))?;
        let (mut ends, mut rest) = (Vec::with_capacity(self.rows.num_rows()), bytes.as_slice());
        let mut end = 0;
        while let Ok(read @ 1..) = rest.skip_until(b'\n') {
            end += read;
            ends.push(end);
        }
        Ok((bytes, ends))
    }

    /// Returns a row as a line of JSON.
    pub(crate) fn line(&self, row: usize) -> Result<Vec<u8>> {
        let one = Self {
            rows: self.rows.slice(row, 1),
            first: 0,
            path: Arc::clone(&self.path),
            texts: Arc::clone(&self.texts),
            longest: self.longest,
        };
        Ok(one.json()?.0)
    }

    /// Calls `each` with the fields of every row.
    pub(crate) fn each<T>(
        &self,
        fields: &Fields,
        mut each: impl FnMut(usize, Result<Row<'_>, Reason>) -> T,
    ) -> Result<Vec<T>> {
        let rows = with_texts(self.rows.clone(), &self.texts).map_err(|e| self.failed(e))?;
        let (mut texts, mut others) = (Vec::new(), Vec::new());
        for (at, (field, column)) in
            rows.schema_ref().fields().iter().zip(rows.columns()).enumerate()
        {
            let part = fields.text_alone(field.name());
            match part.and_then(|part| Some((part, Texts::of(column)?))) {
                Some(text) => texts.push(text),
                None => others.push(at),
            }
        }
        let mut json = Vec::new();
        if others.is_empty() {
            json = b"{}\n".repeat(rows.num_rows());
        } else {
            let others = rows.project(&others).and_then(with_hex);
            others.and_then(|others| write(&others, &mut json)).map_err(|e| self.failed(e))?;
        }
        let lines = json.split_inclusive(|&byte| byte == b'\n');
        let row = |(row, line): (usize, &[u8])| {
            let parts = texts.iter().map(|(part, texts)| (*part, texts.get(row)));
            let longest = parts.clone().filter_map(|(_, text)| text).map(str::len).max();
            let parsed = if longest.is_some_and(|bytes| bytes as u64 > self.longest) {
                Err(Reason::TooLong(self.longest))
            } else {
                parse_beside(fields, line, parts)
            };
            each(row, parsed)
        };
        Ok(lines.enumerate().map(row).collect())
    }

    /// Appends the rows as lines of JSON.
    pub(super) fn write(&self, buffer: &mut Vec<u8>) -> Result<(), ArrowError> {
        let rows = with_texts(self.rows.clone(), &self.texts).and_then(with_hex)?;
        write(&rows, buffer)
    }

    fn failed(&self, error: ArrowError) -> Failure {
        Failure::io(&self.path, io::Error::other(error))
    }
}

/// Returns the bytes that these rows take, without those around them.
pub(super) fn bytes(rows: &RecordBatch) -> usize {
    let column = |column: &ArrayRef| column.to_data().get_slice_memory_size().unwrap_or(0);
    rows.columns().iter().map(column).sum()
}

/// A column of texts.
#[derive(Debug, Clone, Copy)]
enum Texts<'a> {
    Small(&'a StringArray),
    Large(&'a LargeStringArray),
    View(&'a StringViewArray),
}

impl<'a> Texts<'a> {
    /// Returns `None` for a column of another type.
    fn of(column: &'a ArrayRef) -> Option<Self> {
        let small = column.as_string_opt::<i32>().map(Self::Small);
        let large = || column.as_string_opt::<i64>().map(Self::Large);
        small.or_else(large).or_else(|| column.as_string_view_opt().map(Self::View))
    }

    fn get(self, row: usize) -> Option<&'a str> {
        match self {
            Self::Small(texts) => texts.is_valid(row).then(|| texts.value(row)),
            Self::Large(texts) => texts.is_valid(row).then(|| texts.value(row)),
            Self::View(texts) => texts.is_valid(row).then(|| texts.value(row)),
        }
    }
}

fn write(rows: &RecordBatch, buffer: &mut Vec<u8>) -> Result<(), ArrowError> {
    let builder = WriterBuilder::new().with_explicit_nulls(true);
    let mut writer = builder.build::<_, LineDelimited>(buffer);
    writer.write(rows)?;
    writer.finish()
}

/// Returns the values of a column as `--source-field` reads them; `None` of nulls and blank texts.
///
/// # Errors
///
/// Returns an error for a type that Arrow does not write as JSON.
pub fn source_values(column: &ArrayRef) -> Result<Vec<Option<Box<str>>>, ArrowError> {
    let names = Names { source: Some(VALUE.to_owned()), ..alone() };
    values(column, &Fields::of(&names, TEXT), |row| row.source.as_deref().map(Box::from))
}

/// Returns the values of a column as `--prefer newest` compares them.
///
/// # Errors
///
/// Returns an error for a type that Arrow does not write as JSON.
pub fn stamps(column: &ArrayRef) -> Result<Vec<Stamp>, ArrowError> {
    let names = Names { stamp: Some(VALUE.to_owned()), ..alone() };
    values(column, &Fields::of(&names, TEXT), |row| row.stamp)
}

/// The key of an id, or why it cannot be one; `None` of a null.
pub type Key = Result<Option<Vec<u8>>, Reason>;

/// Returns the key of every id of a column.
///
/// # Errors
///
/// Returns an error for a type that Arrow does not write as JSON.
pub fn keys(column: &ArrayRef) -> Result<Vec<Key>, ArrowError> {
    let names = Names { id: Some(VALUE.to_owned()), ..alone() };
    values(column, &Fields::of(&names, TEXT), |row| row.id.map_or(Ok(None), key::of_json))
}

/// Returns the texts of a column at a path into structs that leads through lists.
///
/// The texts of a list are joined by line ends. Returns `None` if there is no list on the way, or
/// what it leads to are no texts.
///
/// # Errors
///
/// Returns an error for a type that Arrow does not write as JSON.
pub fn list_texts(column: &ArrayRef, path: &[String]) -> Result<Option<ArrayRef>, ArrowError> {
    if !is_list_of_texts(column.data_type(), path) {
        return Ok(None);
    }
    let way: Vec<&str> = std::iter::once(VALUE).chain(path.iter().map(String::as_str)).collect();
    let fields = Fields::of(&alone(), &way.join("."));
    let texts = values(column, &fields, |row| row.text.as_deref().map(Box::<str>::from))?;
    Ok(Some(Arc::new(LargeStringArray::from_iter(texts))))
}

/// The field that a value alone has, and that of a text beside it, which is not read.
const VALUE: &str = "value";
const TEXT: &str = "text";

fn alone() -> Names {
    Names { alone: true, ..Names::default() }
}

/// Reads the values of a column as a field of rows.
fn values<T>(
    column: &ArrayRef,
    fields: &Fields,
    read: impl Fn(Row<'_>) -> T,
) -> Result<Vec<T>, ArrowError> {
    let schema = Schema::new(vec![Field::new(VALUE, column.data_type().clone(), true)]);
    let schema = Arc::new(schema);
    let mut values = Vec::with_capacity(column.len());
    let mut buffer = Vec::new();
    for first in (0..column.len()).step_by(STEP) {
        let some = column.slice(first, STEP.min(column.len() - first));
        buffer.clear();
        write(&RecordBatch::try_new(Arc::clone(&schema), vec![some])?, &mut buffer)?;
        let lines = buffer.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        values.extend(lines.map(|line| read(parse(fields, line).unwrap_or_default())));
    }
    Ok(values)
}

/// Reads columns of bytes as texts; what is no UTF-8 becomes null.
fn with_texts(batch: RecordBatch, names: &[String]) -> Result<RecordBatch, ArrowError> {
    names.iter().try_fold(batch, |batch, name| {
        let Some((at, _)) = batch.schema_ref().column_with_name(name) else { return Ok(batch) };
        let text = cast(batch.column(at), &DataType::LargeUtf8)?;
        with_column(&batch, at, name, text)
    })
}

/// Replaces a column by a column of strings.
fn with_column(
    batch: &RecordBatch,
    at: usize,
    name: &str,
    column: ArrayRef,
) -> Result<RecordBatch, ArrowError> {
    let fields = batch.schema_ref().fields().iter().enumerate().map(|(position, field)| {
        if position == at {
            Arc::new(Field::new(name, column.data_type().clone(), true))
        } else {
            Arc::clone(field)
        }
    });
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let mut columns = batch.columns().to_vec();
    if let Some(old) = columns.get_mut(at) {
        *old = column;
    }
    RecordBatch::try_new(schema, columns)
}

/// Writes a column of numeric fingerprints in hexadecimal, as rows of JSON have them.
fn with_hex(batch: RecordBatch) -> Result<RecordBatch, ArrowError> {
    let Some((at, field)) = batch.schema_ref().column_with_name(FINGERPRINT) else {
        return Ok(batch);
    };
    let (column, kind) = (batch.column(at), field.data_type());
    let hex = if *kind == DataType::UInt64 {
        hex::<UInt64Type>(column)
    } else if *kind == DataType::Int64 {
        hex::<Int64Type>(column)
    } else if *kind == DataType::UInt32 {
        hex::<UInt32Type>(column)
    } else {
        return Ok(batch);
    };
    with_column(&batch, at, FINGERPRINT, Arc::new(hex))
}

/// Returns the hexadecimal digits of every value, at the full width of its type.
fn hex<T: ArrowPrimitiveType<Native: LowerHex>>(column: &dyn Array) -> StringArray {
    let digits = size_of::<T::Native>() * 2;
    let values = column.as_primitive::<T>().iter();
    values.map(|value| value.map(|value| format!("{value:0digits$x}"))).collect()
}

#[cfg(test)]
mod tests {
    use arrow_array::Float64Array;
    use arrow_schema::Fields as Columns;

    use super::*;
    use crate::formats::columnar::Columnar;
    use crate::sources::open::Meter;

    #[test]
    fn values_of_a_column_are_what_rows_of_json_have() {
        let texts: ArrayRef =
            Arc::new(StringArray::from(vec![Some("a \"b\"\n公园"), None, Some(" "), Some("null")]));
        let told = source_values(&texts).unwrap();
        let told: Vec<Option<&str>> = told.iter().map(Option::as_deref).collect();
        assert_eq!(told, [Some("a \"b\"\n公园"), None, None, Some("null")]);
        let many: ArrayRef = Arc::new(Float64Array::from_iter_values((0..600).map(f64::from)));
        let told = source_values(&many).unwrap();
        assert_eq!((told.len(), told[599].as_deref()), (600, Some("599.0")));
    }
    #[test]
    fn texts_are_found_through_lists_of_a_column() {
        let json = r#"{"m":[{"c":"a","n":1},{"c":null},{"c":"b"}],"l":["x","y"],"s":{"l":["z"]}}
            {"m":null,"l":[],"s":null}"#;
        let item = |kind| Arc::new(Field::new("item", kind, true));
        let kinds = [DataType::Utf8, DataType::Int64, DataType::Binary];
        let message = ["c", "n", "b"].into_iter().zip(kinds);
        let message: Columns = message.map(|(name, kind)| Field::new(name, kind, true)).collect();
        let texts = DataType::LargeList(item(DataType::Utf8));
        let schema = Arc::new(Schema::new(vec![
            Field::new("m", DataType::List(item(DataType::Struct(message))), true),
            Field::new("l", texts.clone(), true),
            Field::new("s", DataType::Struct(vec![Field::new("l", texts, true)].into()), true),
        ]));
        let mut rows = arrow_json::ReaderBuilder::new(schema).build(json.as_bytes()).unwrap();
        let rows = rows.next().unwrap().unwrap();
        let of = |name: &str, path: &[&str]| {
            let path: Vec<String> = path.iter().map(|name| (*name).to_owned()).collect();
            let texts = list_texts(rows.column_by_name(name).unwrap(), &path).unwrap()?;
            let texts = texts.as_string::<i64>().iter();
            Some(texts.map(|text| text.map(str::to_owned)).collect::<Vec<_>>())
        };
        let one = |text: &str| Some(vec![Some(text.to_owned()), None]);
        assert_eq!(of("m", &["c"]), one("a\nb"));
        assert_eq!(of("l", &[]), one("x\ny"));
        assert_eq!(of("s", &["l"]), one("z"));
        for (name, path) in
            [("m", &["n"][..]), ("m", &["x"]), ("m", &[]), ("s", &[]), ("s", &["x"])]
        {
            assert_eq!(of(name, path), None, "{name} {path:?}");
        }
        let wanted = Fields::of(&Names::default(), "m.c,l,s.l");
        let mut columnar = Columnar::memory(rows.schema(), vec![rows]);
        assert_eq!(columnar.paths(), ["m.c", "m.n", "m.b", "l", "s.l"]);
        columnar.choose(&wanted).unwrap();
        let batches = columnar.batches_of(false, None, &Meter::default());
        let read = batches.unwrap().flat_map(|batch| {
            let text = |_, row: Result<Row<'_>, Reason>| row.unwrap().text.map(String::from);
            batch.unwrap().each(&wanted, text).unwrap()
        });
        assert_eq!(read.collect::<Vec<_>>(), [Some("a\nb\nx\ny\nz".to_owned()), None]);
        let json = r#"{"m":[{"c":[{"type":"t","text":"a"},{"type":"i"}]},{"c":[{"text":"b"}]}]}"#;
        let part = DataType::Struct(
            ["type", "text"]
                .map(|name| Field::new(name, DataType::Utf8, true))
                .into_iter()
                .collect(),
        );
        let message = vec![Field::new("c", DataType::List(item(part)), true)];
        let list = DataType::List(item(DataType::Struct(message.into())));
        let schema = Arc::new(Schema::new(vec![Field::new("m", list, true)]));
        let mut rows = arrow_json::ReaderBuilder::new(schema).build(json.as_bytes()).unwrap();
        let chats = rows.next().unwrap().unwrap();
        let path = ["c".to_owned()];
        let texts = list_texts(chats.column(0), &path).unwrap().unwrap();
        assert_eq!(texts.as_string::<i64>().value(0), "a\nb");
        for name in ["m.n", "m.b"] {
            let others = Fields::of(&Names::default(), name);
            assert!(columnar.choose(&others).is_err(), "{name} has no texts");
        }
    }
}
