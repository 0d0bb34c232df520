//! Columns: read arrays of several layouts as texts and ids by row, without copying.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, Int64Array, LargeStringArray, StringArray, StringViewArray, UInt64Array,
};
use arrow_cast::cast;
use arrow_schema::DataType;

use crate::failure::{Failure, Result};
use crate::name;

/// A batch of a text column.
#[derive(Debug)]
pub(crate) enum Texts<'a> {
    Utf8(&'a StringArray),
    Large(&'a LargeStringArray),
    View(&'a StringViewArray),
    /// Distinct texts, and the index of one of them for each row.
    Dictionary(&'a dyn Array, Vec<usize>, Box<Texts<'a>>),
    /// A column with the null type.
    Nothing,
}

impl<'a> Texts<'a> {
    /// Reads a batch of a column; `column` names it in errors.
    #[allow(clippy::wildcard_enum_match_arm)] // Arrow has dozens of types
    pub(crate) fn of(array: &'a dyn Array, column: &str) -> Result<Self> {
        Ok(match array.data_type() {
            DataType::Utf8 => Self::Utf8(array.as_string()),
            DataType::LargeUtf8 => Self::Large(array.as_string()),
            DataType::Utf8View => Self::View(array.as_string_view()),
            DataType::Null => Self::Nothing,
            DataType::Dictionary(_, _) => {
                let dictionary = array.as_any_dictionary();
                let values = Self::of(dictionary.values().as_ref(), column)?;
                // An empty dictionary has no values that its nulls could point to.
                let empty = dictionary.values().is_empty();
                let keys = if empty { Vec::new() } else { dictionary.normalized_keys() };
                Self::Dictionary(array, keys, Box::new(values))
            }
            other => {
                return Err(Failure::usage(format!(
                    "column \"{column}\" is of type {other}; supported are string, large_string, \
                     string_view and dictionaries of them"
                )));
            }
        })
    }

    /// Returns the text of a row; `None` for a null.
    pub(crate) fn get(&self, row: usize) -> Option<&'a str> {
        match self {
            Self::Utf8(array) => array.is_valid(row).then(|| array.value(row)),
            Self::Large(array) => array.is_valid(row).then(|| array.value(row)),
            Self::View(array) => array.is_valid(row).then(|| array.value(row)),
            Self::Dictionary(array, keys, values) => {
                let key = keys.get(row).filter(|_| array.is_valid(row))?;
                values.get(*key)
            }
            Self::Nothing => None,
        }
    }
}

/// A batch of an id column.
#[derive(Debug)]
pub(crate) enum Ids<'a> {
    Texts(Texts<'a>),
    Signed(Int64Array),
    Unsigned(UInt64Array),
}

impl<'a> Ids<'a> {
    /// Reads a batch of a column; `column` names it in errors.
    #[allow(clippy::wildcard_enum_match_arm)] // Arrow has dozens of types
    pub(crate) fn of(array: &'a ArrayRef, column: &str) -> Result<Self> {
        Ok(match array.data_type() {
            DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => {
                Self::Signed(cast(array, &DataType::Int64)?.as_primitive::<Int64Type>().clone())
            }
            DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => {
                Self::Unsigned(cast(array, &DataType::UInt64)?.as_primitive::<UInt64Type>().clone())
            }
            _ => Self::Texts(Texts::of(array.as_ref(), column).map_err(|_| {
                Failure::usage(format!(
                    "column \"{column}\" is of type {}; supported ids are strings and integers",
                    array.data_type()
                ))
            })?),
        })
    }

    /// Returns the key that an index would store for a row; `None` for a null.
    ///
    /// # Errors
    ///
    /// Returns why the id is invalid.
    pub(crate) fn key(&self, row: usize) -> Result<Option<Vec<u8>>, String> {
        match self {
            Self::Texts(texts) => texts.get(row).map(name::of_text).transpose(),
            Self::Signed(ids) => {
                Ok(ids.is_valid(row).then(|| name::of_number(i128::from(ids.value(row)))))
            }
            Self::Unsigned(ids) => {
                Ok(ids.is_valid(row).then(|| name::of_number(i128::from(ids.value(row)))))
            }
        }
    }
}
