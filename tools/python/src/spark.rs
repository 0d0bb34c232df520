//! Spark: processes the Arrow batches of the tasks of `hamdex.spark`.
//!
//! Spark has no unsigned integers. Fingerprints of 32 and 64 bits are its `long` with the same
//! bits, those of 128 bits are 16 bytes, the most significant first.

mod columns;
mod matching;
mod shards;

use std::sync::{Mutex, PoisonError};

use arrow_array::Int32Array;
use hamdex::Fingerprint;
use hamdex::spread::{Groups, Keys, Wanted};
use pyo3::prelude::*;

use self::columns::{Column, fingerprints};
use self::matching::{Matching, Spreading};
use crate::failure::{Failure, Result};
use crate::fingerprints::for_width;
use crate::interrupt::{detached, interruptible};
use crate::table::Table;

/// Adds the classes and functions that the tasks use.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<SpreadKeys>()?;
    module.add_class::<SpreadGroups>()?;
    module.add_class::<shards::ShardLayout>()?;
    module.add_class::<shards::Shards>()?;
    module.add_function(wrap_pyfunction!(distances, module)?)
}

/// The keys that near fingerprints share in a shuffle.
#[pyclass(frozen, module = "hamdex", name = "_Keys")]
struct SpreadKeys {
    inner: Box<dyn Spreading>,
}

#[pymethods]
impl SpreadKeys {
    #[new]
    fn new(bits: u32, distance: u32, count: u64) -> PyResult<Self> {
        let make = || -> Result<Box<dyn Spreading>> {
            for_width!(bits, F => Ok(Box::new(Keys::<F>::new(distance, count)?)))
        };
        Ok(Self { inner: make()? })
    }

    /// Returns the number of keys of a fingerprint at the first level.
    #[getter]
    fn tables(&self) -> usize {
        self.inner.tables()
    }

    /// Returns the number of levels, the first one included.
    #[getter]
    fn levels(&self) -> usize {
        self.inner.levels()
    }

    /// Returns a row for each first key of each fingerprint: key, fingerprint and, if the table has
    /// it, second.
    fn first(&self, py: Python<'_>, table: &Bound<'_, Table>) -> PyResult<Table> {
        let table = table.get();
        Ok(detached(py, || self.inner.first(table))?)
    }

    /// Returns the rows of the keys one level below those of the table.
    fn below(&self, py: Python<'_>, table: &Bound<'_, Table>) -> PyResult<Table> {
        let table = table.get();
        Ok(detached(py, || self.inner.below(table))?)
    }

    /// Starts to compare groups of rows that are sorted by key.
    fn groups(&self, wanted: &str, limit: usize) -> PyResult<SpreadGroups> {
        let wanted = match wanted {
            "links" => Wanted::Links,
            "pairs" => Wanted::Pairs,
            "across" => Wanted::Across,
            _ => return Err(Failure::usage(format!("unknown kind of groups: \"{wanted}\"")).into()),
        };
        Ok(SpreadGroups { inner: Mutex::new(Some(self.inner.groups(wanted, limit))) })
    }
}

/// Groups that are being compared.
#[pyclass(frozen, module = "hamdex", name = "_Groups")]
struct SpreadGroups {
    inner: Mutex<Option<Box<dyn Matching>>>,
}

#[pymethods]
impl SpreadGroups {
    /// Adds rows; returns the results of the groups that they complete.
    fn push(&self, py: Python<'_>, table: &Bound<'_, Table>) -> PyResult<Table> {
        let table = table.get();
        Ok(interruptible(py, |_| {
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            inner.as_mut().ok_or_else(finished)?.push(table)
        })?)
    }

    /// Returns the results of the last group, and the counts of all groups.
    fn finish(&self, py: Python<'_>) -> PyResult<Table> {
        Ok(interruptible(py, |_| {
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            inner.take().ok_or_else(finished)?.finish()
        })?)
    }
}

fn finished() -> Failure {
    Failure::usage("finish was called before")
}

impl<F: Fingerprint + Column> Spreading for Keys<F> {
    fn tables(&self) -> usize {
        self.tables()
    }

    fn levels(&self) -> usize {
        self.levels()
    }

    fn first(&self, table: &Table) -> Result<Table> {
        matching::expand(table, |_, fingerprint: F| Keys::first(self, fingerprint))
    }

    fn below(&self, table: &Table) -> Result<Table> {
        matching::expand(table, |key, fingerprint: F| Keys::below(self, key, fingerprint))
    }

    fn groups(&self, wanted: Wanted, limit: usize) -> Box<dyn Matching> {
        Box::new(matching::Stream::new(Groups::new(self.clone(), wanted, limit)))
    }
}

/// Returns the distances between two columns of fingerprints, row by row.
#[pyfunction]
#[pyo3(name = "_distances")]
fn distances(
    py: Python<'_>,
    table: &Bound<'_, Table>,
    a: &str,
    b: &str,
    bits: u32,
) -> PyResult<Table> {
    let table = table.get();
    let distances = detached(py, || {
        for_width!(bits, F => {
            let (a, b) = (fingerprints::<F>(table, a)?, fingerprints::<F>(table, b)?);
            let distance = |(a, b): (&F, &F)| i32::try_from(a.distance(*b)).unwrap_or(i32::MAX);
            let distances: Int32Array =
                a.iter().zip(&b).map(|pair| Some(distance(pair))).collect();
            Table::of(vec![("distance", std::sync::Arc::new(distances))])
        })
    });
    Ok(distances?)
}
