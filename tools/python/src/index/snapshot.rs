//! Snapshots: one state of an index, which can be searched while others write.

use hamdex::any::AnyReader;
use hamdex::verify::Verification;
use hamdex_io::host::Host;
use pyo3::prelude::*;
use rayon::prelude::*;

use super::open::Texts;
use super::values::{Maker, SearchOptions, Value, key_of, key_to_object};
use crate::failure::Result;
use crate::interrupt::{Watch, detached, interruptible};

/// Number of queries that are answered together.
const BATCH: usize = 4096;

/// A document that a search found.
#[pyclass(frozen, module = "hamdex")]
#[derive(Debug)]
pub(crate) struct Match {
    #[pyo3(get)]
    key: Py<PyAny>,
    #[pyo3(get)]
    fingerprint: u128,
    #[pyo3(get)]
    distance: u32,
    #[pyo3(get)]
    similarity: Option<f64>,
}

#[pymethods]
impl Match {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let key = self.key.bind(py).repr()?;
        let similarity =
            self.similarity.map_or(String::new(), |value| format!(", similarity={value:.4}"));
        Ok(format!("Match(key={key}, distance={}{similarity})", self.distance))
    }
}

/// A match before its conversion to Python.
#[derive(Debug)]
pub(super) struct Found {
    key: Vec<u8>,
    fingerprint: u128,
    distance: u32,
    similarity: Option<f64>,
}

impl Found {
    pub(super) fn of(found: hamdex::Match<u128>) -> Self {
        let hamdex::Match { key, fingerprint, distance, similarity } = found;
        Self { key, fingerprint, distance, similarity }
    }

    pub(super) fn to_match(&self, py: Python<'_>) -> PyResult<Match> {
        let Self { fingerprint, distance, similarity, .. } = *self;
        let key = key_to_object(py, &self.key)?.unbind();
        Ok(Match { key, fingerprint, distance, similarity })
    }
}

pub(super) fn to_matches(py: Python<'_>, found: &[Found]) -> PyResult<Vec<Match>> {
    found.iter().map(|found| found.to_match(py)).collect()
}

/// One state of an index, which later writes do not change.
#[pyclass(frozen, module = "hamdex")]
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(super) state: AnyReader,
    pub(super) texts: Texts,
    /// The default verification of searches.
    pub(super) default_check: Verification,
}

impl Snapshot {
    fn options(
        &self,
        distance: Option<u32>,
        limit: Option<usize>,
        verify: Option<&str>,
    ) -> Result<SearchOptions> {
        SearchOptions::new(
            distance,
            limit,
            verify,
            (self.state.header().keeps_features, self.default_check),
        )
    }

    /// Answers queries, batch by batch.
    fn answers(
        &self,
        values: &[Value],
        options: SearchOptions,
        watch: Option<&Watch>,
    ) -> Result<Vec<Vec<Found>>> {
        let maker = Maker { texts: &self.texts, header: self.state.header() };
        let mut answers = Vec::with_capacity(values.len());
        for batch in values.chunks(BATCH) {
            if let Some(watch) = watch {
                watch.check()?;
            }
            let found = self.state.search_batch(maker.queries(batch, options)?)?;
            answers.par_extend(
                found
                    .into_par_iter()
                    .map(|found| found.into_iter().map(Found::of).collect::<Vec<_>>()),
            );
        }
        Ok(answers)
    }
}

#[pymethods]
impl Snapshot {
    /// Returns the documents near a text or a fingerprint, nearest first.
    #[pyo3(signature = (value, *, distance = None, limit = None, verify = None))]
    pub(super) fn search(
        &self,
        py: Python<'_>,
        value: &Bound<'_, PyAny>,
        distance: Option<u32>,
        limit: Option<usize>,
        verify: Option<&str>,
    ) -> PyResult<Vec<Match>> {
        let options = self.options(distance, limit, verify)?;
        let value = [Value::of(value)?];
        let found = detached(py, || self.answers(&value, options, None))?;
        to_matches(py, found.first().map_or(&[][..], Vec::as_slice))
    }

    /// Answers many queries together, on all threads.
    #[pyo3(signature = (values, *, distance = None, limit = None, verify = None))]
    pub(super) fn search_batch(
        &self,
        py: Python<'_>,
        values: &Bound<'_, PyAny>,
        distance: Option<u32>,
        limit: Option<usize>,
        verify: Option<&str>,
    ) -> PyResult<Vec<Vec<Match>>> {
        let options = self.options(distance, limit, verify)?;
        let values = Value::many(values)?;
        let found = interruptible(py, |watch| self.answers(&values, options, Some(watch)))?;
        found.iter().map(|found| to_matches(py, found)).collect()
    }

    /// Returns the fingerprint of a document; `None` if it is not stored.
    pub(super) fn get(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Option<u128>> {
        let key = key_of(key)?;
        Ok(detached(py, || Ok(self.state.get(&key)?))?)
    }

    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.get(py, key)?.is_some())
    }

    fn __len__(&self) -> PyResult<usize> {
        Ok(usize::try_from(self.state.len())?)
    }

    fn __repr__(&self) -> String {
        format!("hamdex.Snapshot({} documents)", self.state.len())
    }
}
