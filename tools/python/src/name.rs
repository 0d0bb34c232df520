//! Names: convert ids of Python into stored keys and back, like the command line.

use hamdex_io::key::{self, Name};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyString};

use crate::failure::{Failure, Result};

/// Returns the key of a string, an integer, or bytes, which are used unchanged.
pub(crate) fn of_object(object: &Bound<'_, PyAny>) -> Result<Vec<u8>> {
    let invalid = |reason: hamdex_io::Reason| Failure::usage(reason.to_string());
    if let Ok(text) = object.cast::<PyString>() {
        return key::of_text(text.to_str()?).map_err(invalid);
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(bytes.as_bytes().to_vec());
    }
    if object.is_instance_of::<PyInt>() {
        let number: i128 = object.extract()?;
        return key::of_json(&number.to_string()).map(Option::unwrap_or_default).map_err(invalid);
    }
    let kind = object.get_type().name()?;
    Err(Failure::usage(format!("a key is a str, an int or bytes, not {kind}")))
}

/// Returns the id of a key: a number, a string, or else the bytes.
pub(crate) fn to_object<'py>(py: Python<'py>, key: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    Ok(match Name::of(key) {
        Name::Number(number) => number.into_pyobject(py)?.into_any(),
        Name::Text(text) => PyString::new(py, text).into_any(),
        Name::Bytes(bytes) => PyBytes::new(py, bytes).into_any(),
    })
}

/// Returns the id of a key as text.
pub(crate) fn to_text(key: &[u8]) -> String {
    match Name::of(key) {
        Name::Text(text) => text.to_owned(),
        name @ (Name::Number(_) | Name::Bytes(_)) => name.to_string(),
    }
}
