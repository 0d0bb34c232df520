//! Values: convert texts and fingerprints into documents and queries, and ids into stored keys and
//! back, like the command line.

use hamdex::inspect::Header;
use hamdex::verify::FeatureSet;
use hamdex::verify::Verification;
use hamdex::{AsDocument, NewDocument, Pipeline, Query};
use hamdex_io::key::{self, Name};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBytes, PyInt, PyString};
use rayon::prelude::*;

use super::open::Texts;
use crate::failure::{Failure, Result};

/// A text, or a fingerprint that was computed elsewhere.
#[derive(Debug)]
pub(super) enum Value {
    Text(PyBackedStr),
    Print(u128),
}

impl Value {
    pub(super) fn of(object: &Bound<'_, PyAny>) -> Result<Self> {
        if object.is_instance_of::<PyString>() {
            return Ok(Self::Text(object.extract()?));
        }
        if object.is_instance_of::<PyInt>() {
            let print = object
                .extract()
                .map_err(|_| Failure::usage("a fingerprint is an integer of at most 128 bits"));
            return Ok(Self::Print(print?));
        }
        let kind = object.get_type().name()?;
        Err(Failure::usage(format!("expected a text or a fingerprint as an int, not {kind}")))
    }

    pub(super) fn many(objects: &Bound<'_, PyAny>) -> Result<Vec<Self>> {
        objects.try_iter()?.map(|object| Self::of(&object?)).collect()
    }
}

/// A document to insert.
#[derive(Debug)]
pub(super) struct Document {
    key: Vec<u8>,
    fingerprint: u128,
    features: Option<Vec<u8>>,
}

impl AsDocument<u128> for Document {
    fn as_document(&self) -> NewDocument<'_, u128> {
        let document = NewDocument::new(&self.key, self.fingerprint);
        match &self.features {
            Some(features) => document.features(features),
            None => document,
        }
    }
}

/// Makes fingerprints of values.
#[derive(Debug, Clone, Copy)]
pub(super) struct Maker<'a> {
    pub(super) texts: &'a Texts,
    /// What the index was made with.
    pub(super) header: &'a Header,
}

impl Maker<'_> {
    fn pipeline(&self) -> Result<&Pipeline> {
        self.texts.pipeline()?.ok_or_else(crate::resolve::no_pipeline)
    }

    fn fingerprint(&self, value: &Value) -> Result<u128> {
        let bits = self.header.bits;
        match value {
            Value::Text(text) => {
                let sketch = self.pipeline()?.fingerprint_of_bits(text, bits)?;
                sketch.map(|sketch| sketch.fingerprint).ok_or_else(|| {
                    let start: String = text.chars().take(40).collect();
                    Failure::usage(format!("text without features: {start:?}"))
                })
            }
            Value::Print(wide) if wide.checked_shr(bits).unwrap_or(0) == 0 => Ok(*wide),
            Value::Print(wide) => {
                Err(Failure::usage(format!("{wide:#x} has more than {bits} bits")))
            }
        }
    }

    pub(super) fn documents(&self, keys: Vec<Vec<u8>>, values: &[Value]) -> Result<Vec<Document>> {
        if keys.len() != values.len() {
            let (keys, values) = (keys.len(), values.len());
            return Err(Failure::usage(format!("{keys} keys for {values} values")));
        }
        let make = |(key, value): (Vec<u8>, &Value)| {
            let fingerprint = self.fingerprint(value)?;
            let features = match value {
                Value::Text(text) if self.header.keeps_features => {
                    Some(FeatureSet::of_text(self.pipeline()?, text).encode())
                }
                Value::Text(_) | Value::Print(_) => None,
            };
            Ok(Document { key, fingerprint, features })
        };
        keys.into_par_iter().zip(values).map(make).collect()
    }

    pub(super) fn queries(
        &self,
        values: &[Value],
        options: SearchOptions,
    ) -> Result<Vec<Query<u128>>> {
        let make = |value: &Value| {
            let mut query = Query::new(self.fingerprint(value)?);
            if let Some(distance) = options.distance {
                query = query.distance(distance);
            }
            if let Some(limit) = options.limit {
                query = query.limit(limit);
            }
            Ok(match (options.verify, value) {
                (Verification::None, _) => query,
                (verify, Value::Text(text)) => {
                    query.verify(verify, verify.evidence(self.pipeline()?, text))
                }
                (_, Value::Print(_)) if options.by_default => query,
                (_, Value::Print(_)) => return Err(nothing_to_compare()),
            })
        };
        values.par_iter().map(make).collect()
    }
}

fn nothing_to_compare() -> Failure {
    Failure::usage("a fingerprint has no text; verify needs the text")
}

/// Returns the verification for `insert_if_new`.
///
/// Fingerprints are not verified by default, so a call with both texts and fingerprints has no
/// default.
pub(super) fn check_of(
    verify: Option<&str>,
    default_check: Verification,
    values: &[Value],
    keeps_features: bool,
) -> Result<Verification> {
    let prints = values.iter().filter(|value| matches!(value, Value::Print(_))).count();
    match verify.map(str::parse::<Verification>).transpose()? {
        None if default_check == Verification::None || prints == values.len() => {
            Ok(Verification::None)
        }
        None if prints > 0 => Err(Failure::usage(
            "fingerprints have no text to verify; insert them in a separate call, or pass \
             verify=\"none\"",
        )),
        None => Ok(default_check),
        Some(verify) => {
            crate::resolve::require_stored(verify, keeps_features)?;
            if verify != Verification::None && prints > 0 {
                return Err(nothing_to_compare());
            }
            Ok(verify)
        }
    }
}

/// The options of a search.
#[derive(Debug, Clone, Copy)]
pub(super) struct SearchOptions {
    distance: Option<u32>,
    limit: Option<usize>,
    verify: Verification,
    /// Whether the verification is the default, which skips fingerprints.
    by_default: bool,
}

impl SearchOptions {
    pub(super) fn new(
        distance: Option<u32>,
        limit: Option<usize>,
        verify: Option<&str>,
        (keeps_features, default_check): (bool, Verification),
    ) -> Result<Self> {
        let given = verify.map(str::parse::<Verification>).transpose()?;
        let verify = given.unwrap_or(default_check);
        crate::resolve::require_stored(verify, keeps_features)?;
        Ok(Self { distance, limit, verify, by_default: given.is_none() })
    }
}

/// Returns the key of a string, an integer, or bytes, which are used unchanged.
pub(crate) fn key_of(object: &Bound<'_, PyAny>) -> Result<Vec<u8>> {
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
pub(crate) fn key_to_object<'py>(py: Python<'py>, key: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    Ok(match Name::of(key) {
        Name::Number(number) => number.into_pyobject(py)?.into_any(),
        Name::Text(text) => PyString::new(py, text).into_any(),
        Name::Bytes(bytes) => PyBytes::new(py, bytes).into_any(),
    })
}

/// Returns the id of a key as text.
pub(crate) fn key_to_text(key: &[u8]) -> String {
    match Name::of(key) {
        Name::Text(text) => text.to_owned(),
        name @ (Name::Number(_) | Name::Bytes(_)) => name.to_string(),
    }
}
