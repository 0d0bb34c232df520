//! Names: convert ids into stored keys and back, like the command line.
//!
//! The key of a string is its UTF-8, and that of an integer from 0 to 2^61 - 1 is 8 big-endian
//! bytes. Other numbers are stored as decimal text.

use std::fmt::Write;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyString};

use crate::failure::{Failure, Result};

/// Longest key in bytes, as the library documents it.
const MAX_KEY: usize = 1024;

/// Smaller bytes are control characters; numbers begin with them, and texts never do.
const FIRST_TEXT_BYTE: u8 = 0x20;

fn is_number(number: u64) -> bool {
    let [first, ..] = number.to_be_bytes();
    first < FIRST_TEXT_BYTE
}

/// Returns the key of a text id, or why it is invalid.
pub(crate) fn of_text(text: &str) -> Result<Vec<u8>, String> {
    if text.is_empty() {
        Err("id is empty".to_owned())
    } else if text.starts_with(char::is_control) {
        Err("id begins with a control character".to_owned())
    } else if text.len() > MAX_KEY {
        Err(format!("id has {} bytes, allowed are 1 to {MAX_KEY}", text.len()))
    } else {
        Ok(text.as_bytes().to_vec())
    }
}

/// Returns the key of an integer.
pub(crate) fn of_number(number: i128) -> Vec<u8> {
    match u64::try_from(number) {
        Ok(number) if is_number(number) => number.to_be_bytes().to_vec(),
        _ => number.to_string().into_bytes(),
    }
}

/// Returns the key of a string, an integer, or bytes, which are used unchanged.
pub(crate) fn of_object(object: &Bound<'_, PyAny>) -> Result<Vec<u8>> {
    if let Ok(text) = object.cast::<PyString>() {
        return of_text(text.to_str()?).map_err(Failure::Usage);
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(bytes.as_bytes().to_vec());
    }
    if object.is_instance_of::<PyInt>() {
        return Ok(of_number(object.extract()?));
    }
    let kind = object.get_type().name()?;
    Err(Failure::usage(format!("a key is a str, an int or bytes, not {kind}")))
}

/// Returns the id of a key: a number, a string, or else the bytes.
pub(crate) fn to_object<'py>(py: Python<'py>, key: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    if let Ok(number) = key.try_into().map(u64::from_be_bytes)
        && is_number(number)
    {
        return Ok(number.into_pyobject(py)?.into_any());
    }
    Ok(match std::str::from_utf8(key) {
        Ok(text) if !text.starts_with(char::is_control) => PyString::new(py, text).into_any(),
        _ => PyBytes::new(py, key).into_any(),
    })
}

/// Returns the id of a key as readable text.
pub(crate) fn to_text(key: &[u8]) -> String {
    if let Ok(number) = key.try_into().map(u64::from_be_bytes)
        && is_number(number)
    {
        return number.to_string();
    }
    match std::str::from_utf8(key) {
        Ok(text) if !text.starts_with(char::is_control) => text.to_owned(),
        _ => key.iter().fold("0x".to_owned(), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        }),
    }
}
