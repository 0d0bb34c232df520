//! Texts: sets the texts of some rows, which may be within structs and lists, to those of JSON rows.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, LargeStringArray, StructArray, make_array};
use arrow_cast::cast;
use arrow_schema::{ArrowError, Fields};
use arrow_select::zip::zip;
use serde_json::Value;

use super::schema;
use crate::formats::values::PART_TEXT;

/// Sets the texts of a field, named as [`Fields`](crate::Fields) do; a row without JSON stays.
pub(super) fn set(
    fields: &Fields,
    columns: &mut [ArrayRef],
    name: &str,
    rows: &[Option<&Value>],
) -> Result<(), ArrowError> {
    let whole = (name, None);
    let path = name.split_once('.').map(|(first, rest)| (first, Some(rest)));
    for (first, rest) in std::iter::once(whole).chain(path) {
        let at = fields.iter().position(|field| field.name() == first);
        if let Some(column) = at.and_then(|at| columns.get_mut(at)) {
            let values: Vec<_> =
                rows.iter().map(|row| row.and_then(|row| row.get(first))).collect();
            *column = with(column, rest, &values)?;
            break;
        }
    }
    Ok(())
}

/// Returns a column with the texts of some values.
fn with(
    column: &ArrayRef,
    rest: Option<&str>,
    values: &[Option<&Value>],
) -> Result<ArrayRef, ArrowError> {
    if let Some((inner, lists)) = lists(column) {
        let mut of_inner = vec![None; inner.len()];
        for (list, value) in lists.into_iter().zip(values) {
            let elements = value.and_then(Value::as_array).into_iter().flatten();
            let places = of_inner.get_mut(list).into_iter().flatten();
            places.zip(elements).for_each(|(place, element)| *place = Some(element));
        }
        let of_part = || schema::is_part(inner.data_type()).then_some(PART_TEXT);
        let inner = with(&inner, rest.or_else(of_part), &of_inner)?.to_data();
        let list = column.to_data().into_builder().child_data(vec![inner]).build()?;
        return Ok(make_array(list));
    }
    match (column.as_struct_opt(), rest) {
        (Some(structs), Some(name)) => {
            let (fields, mut inner, nulls) = structs.clone().into_parts();
            set(&fields, &mut inner, name, values)?;
            Ok(Arc::new(StructArray::try_new(fields, inner, nulls)?))
        }
        (None, None) => {
            let texts = || values.iter().map(|value| value.and_then(Value::as_str));
            let mask: BooleanArray = texts().map(|text| Some(text.is_some())).collect();
            let texts = cast(&texts().collect::<LargeStringArray>(), column.data_type())?;
            zip(&mask, &texts, column)
        }
        (Some(_), None) | (None, Some(_)) => Ok(Arc::clone(column)),
    }
}

/// Returns the elements of all lists of a column, and where those of each list are.
fn lists(column: &ArrayRef) -> Option<(ArrayRef, Vec<Range<usize>>)> {
    fn ends<T: TryInto<usize> + Copy>(offsets: &[T]) -> Vec<Range<usize>> {
        let offsets = offsets.iter().map(|&offset| place(offset));
        let from = offsets.clone();
        from.zip(offsets.skip(1)).map(|(from, to)| from..to).collect()
    }
    fn views<T: TryInto<usize> + Copy>(offsets: &[T], sizes: &[T]) -> Vec<Range<usize>> {
        let view = |(&from, &size): (&T, &T)| place(from)..place(from) + place(size);
        offsets.iter().zip(sizes).map(view).collect()
    }
    fn place<T: TryInto<usize>>(offset: T) -> usize {
        offset.try_into().unwrap_or_else(|_| unreachable!("offsets of arrays are places in memory"))
    }
    if let Some(lists) = column.as_list_opt::<i32>() {
        return Some((Arc::clone(lists.values()), ends(lists.value_offsets())));
    }
    if let Some(lists) = column.as_list_opt::<i64>() {
        return Some((Arc::clone(lists.values()), ends(lists.value_offsets())));
    }
    if let Some(lists) = column.as_list_view_opt::<i32>() {
        return Some((Arc::clone(lists.values()), views(lists.offsets(), lists.sizes())));
    }
    if let Some(lists) = column.as_list_view_opt::<i64>() {
        return Some((Arc::clone(lists.values()), views(lists.offsets(), lists.sizes())));
    }
    let lists = column.as_fixed_size_list_opt()?;
    let size = place(lists.value_length());
    let begins = (0..lists.len()).map(|list| place(lists.value_offset_at(list)));
    Some((Arc::clone(lists.values()), begins.map(|begin| begin..begin + size).collect()))
}

#[cfg(test)]
mod tests {
    use arrow_json::ReaderBuilder;
    use arrow_json::writer::LineDelimitedWriter;
    use arrow_schema::{DataType, Field, Schema};

    use super::*;

    #[test]
    fn texts_of_parts_of_messages_are_set() {
        let member = |name| Field::new(name, DataType::Utf8, true);
        let part = DataType::Struct(vec![member("type"), member("text")].into());
        let list = DataType::List(Arc::new(Field::new("item", part, true)));
        let message = DataType::Struct(vec![Field::new("c", list, true)].into());
        let list = DataType::List(Arc::new(Field::new("item", message, true)));
        let schema = Arc::new(Schema::new(vec![Field::new("m", list, true)]));
        let json = r#"{"m":[{"c":[{"type":"t","text":"a"},{"type":"i"}]},{"c":[{"text":"b"}]}]}"#;
        let mut reader = ReaderBuilder::new(Arc::clone(&schema)).build(json.as_bytes()).unwrap();
        let batch = reader.next().unwrap().unwrap();
        let edit: Value = serde_json::from_str(&json.replace("\"b\"", "\"B\"")).unwrap();
        let mut columns = batch.columns().to_vec();
        set(schema.fields(), &mut columns, "m.c", &[Some(&edit)]).unwrap();
        let edited = arrow_array::RecordBatch::try_new(schema, columns).unwrap();
        let mut written = LineDelimitedWriter::new(Vec::new());
        written.write(&edited).unwrap();
        written.finish().unwrap();
        let written = String::from_utf8(written.into_inner()).unwrap();
        assert_eq!(written.trim_end(), json.replace("\"b\"", "\"B\""));
    }

    #[test]
    fn texts_in_lists_of_every_kind_are_set_and_nothing_else() {
        let members =
            vec![Field::new("n", DataType::Int64, true), Field::new("c", DataType::Utf8View, true)];
        let item = Arc::new(Field::new("item", DataType::Struct(members.into()), true));
        let kinds = [
            DataType::List(Arc::clone(&item)),
            DataType::LargeList(Arc::clone(&item)),
            DataType::ListView(Arc::clone(&item)),
            DataType::LargeListView(Arc::clone(&item)),
            DataType::FixedSizeList(item, 2),
        ];
        let first = "{\"m\":[{\"n\":0,\"c\":\"x\"},{\"n\":0,\"c\":\"y\"}]}\n";
        let rows = "{\"m\":[{\"n\":1,\"c\":\"a\"},{\"n\":2,\"c\":\"b\"}]}\n\
                    {\"m\":[{\"n\":3,\"c\":\"c\"},{\"n\":4}]}\n\
                    {}\n\
                    {\"m\":[{\"n\":5,\"c\":\"e\"},{\"n\":6,\"c\":\"f\"}]}\n";
        let edits = [
            None,
            Some(serde_json::json!({"m":[{"n":9,"c":"C"},{"n":9}]})),
            Some(serde_json::json!({"m":null})),
            Some(serde_json::json!({"m":[{"c":"e"},{"c":"F"}]})),
        ];
        let edits: Vec<Option<&Value>> = edits.iter().map(Option::as_ref).collect();
        for kind in kinds {
            let schema = Arc::new(Schema::new(vec![Field::new("m", kind.clone(), true)]));
            let json = format!("{first}{rows}");
            let mut reader =
                ReaderBuilder::new(Arc::clone(&schema)).build(json.as_bytes()).unwrap();
            // Behind another row, so that places do not begin at 0.
            let batch = reader.next().unwrap().unwrap().slice(1, 4);
            for (name, wanted) in [
                ("m.c", rows.replace("\"c\":\"c\"", "\"c\":\"C\"").replace("\"f\"", "\"F\"")),
                ("m.x", rows.to_owned()),
                ("m", rows.to_owned()),
            ] {
                let mut columns = batch.columns().to_vec();
                set(schema.fields(), &mut columns, name, &edits).unwrap();
                let edited =
                    arrow_array::RecordBatch::try_new(Arc::clone(&schema), columns).unwrap();
                let mut written = LineDelimitedWriter::new(Vec::new());
                written.write(&edited).unwrap();
                written.finish().unwrap();
                let written = String::from_utf8(written.into_inner()).unwrap();
                assert_eq!(written, wanted, "{name} of {kind}");
            }
        }
    }
}
