//! Schema: what the columns of a file are, and those within them.

use arrow_schema::{DataType, Fields};

use crate::formats::values::PART_TEXT;

/// Finds a column by its name, or by a path into columns of structures.
pub(super) fn find<'s>(columns: &'s Fields, name: &str) -> Option<&'s DataType> {
    if let Some((_, field)) = columns.find(name) {
        return Some(field.data_type());
    }
    let (first, rest) = name.split_once('.')?;
    let DataType::Struct(inner) = columns.find(first)?.1.data_type() else { return None };
    find(inner, rest)
}

/// Returns the type of a text, which may be within lists, and whether it is a column by itself.
pub(super) fn find_text<'s>(columns: &'s Fields, name: &str) -> Option<(&'s DataType, bool)> {
    if let Some((_, field)) = columns.find(name) {
        return Some((field.data_type(), true));
    }
    let (first, rest) = name.split_once('.')?;
    let inner = columns_of(columns.find(first)?.1.data_type())?;
    find_text(inner, rest).map(|(kind, _)| (kind, false))
}

/// Returns the columns of a struct, or of the structs in a list.
fn columns_of(kind: &DataType) -> Option<&Fields> {
    match (kind, item(kind)) {
        (DataType::Struct(inner), _) => Some(inner),
        (_, Some(item)) => columns_of(item),
        _ => None,
    }
}

/// Returns the type of the elements of a list.
fn item(kind: &DataType) -> Option<&DataType> {
    if let DataType::List(item)
    | DataType::LargeList(item)
    | DataType::FixedSizeList(item, _)
    | DataType::ListView(item)
    | DataType::LargeListView(item) = kind
    {
        return Some(item.data_type());
    }
    None
}

/// Returns whether a path from a column leads through lists to texts.
pub(super) fn is_list_of_texts(kind: &DataType, path: &[String]) -> bool {
    match (item(kind), path.split_first()) {
        (Some(_), None) => is_text(kind),
        (Some(_), Some(_)) => {
            let texts = columns_of(kind).and_then(|inner| find_text(inner, &path.join(".")));
            texts.is_some_and(|(kind, _)| is_text(kind))
        }
        (None, Some((name, rest))) => {
            let inner = columns_of(kind).and_then(|inner| inner.find(name));
            inner.is_some_and(|(_, field)| is_list_of_texts(field.data_type(), rest))
        }
        (None, None) => false,
    }
}

/// Collects the columns, and those within them in place of the ones that hold others.
pub(super) fn collect(columns: &Fields, way: &str, paths: &mut Vec<String>) {
    for column in columns {
        let path =
            if way.is_empty() { column.name().clone() } else { format!("{way}.{}", column.name()) };
        match columns_of(column.data_type()) {
            Some(inner) => collect(inner, &path, paths),
            None => paths.push(path),
        }
    }
}

/// Returns whether values are texts, or lists of them or of parts of messages.
pub(super) fn is_text(kind: &DataType) -> bool {
    if let DataType::Dictionary(_, values) = kind {
        return is_text(values);
    }
    let is_element = |item: &DataType| is_text(item) || is_part(item);
    kind.is_string() || kind.is_null() || item(kind).is_some_and(is_element)
}

/// Returns whether values have a text, as parts of messages have that are no picture or the like.
pub(super) fn is_part(kind: &DataType) -> bool {
    let DataType::Struct(inner) = kind else { return false };
    inner.find(PART_TEXT).is_some_and(|(_, field)| field.data_type().is_string())
}

fn is_string(kind: &DataType) -> bool {
    if let DataType::Dictionary(_, values) = kind {
        return is_string(values);
    }
    kind.is_string() || kind.is_null() || is_bytes(kind)
}

pub(super) fn is_bytes(kind: &DataType) -> bool {
    matches!(kind, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
}

pub(super) fn is_fingerprint(kind: &DataType) -> bool {
    is_string(kind) || matches!(kind, DataType::Int64 | DataType::UInt64 | DataType::UInt32)
}
