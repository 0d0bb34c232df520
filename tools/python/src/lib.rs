//! The engine of the Python package: Arrow in, library calls without the GIL, Arrow out.
//!
//! The public functions are in `hamdex/`, written in Python; they call this module with checked
//! arguments. All decisions are made by the library.

mod dedup;
mod evaluate;
mod failure;
mod fields;
mod fingerprints;
mod index;
mod interrupt;
mod pipeline;
mod resolve;
mod rows;
mod spark;
mod table;
mod tables;

use std::ffi::OsString;

use hamdex::dedup::Sources;
use pyo3::prelude::*;

use crate::interrupt::{detached, interruptible};

#[pymodule]
fn _hamdex(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<table::Table>()?;
    module.add_class::<pipeline::Pipeline>()?;
    module.add_class::<index::Index>()?;
    module.add_class::<index::Snapshot>()?;
    module.add_class::<index::Match>()?;
    spark::add(module)?;
    module.add_function(wrap_pyfunction!(fingerprints::fingerprint, module)?)?;
    module.add_function(wrap_pyfunction!(dedup::dedup, module)?)?;
    module.add_function(wrap_pyfunction!(dedup::sources::source_values, module)?)?;
    module.add_function(wrap_pyfunction!(dedup::sources::source_order, module)?)?;
    module.add("_OTHER_SOURCES", (Sources::OTHERS, Sources::MOST))?;
    module.add_function(wrap_pyfunction!(fields::columns_of, module)?)?;
    module.add_function(wrap_pyfunction!(fields::id_field, module)?)?;
    module.add_function(wrap_pyfunction!(fields::text_field, module)?)?;
    module.add_function(wrap_pyfunction!(dedup_file, module)?)?;
    module.add_function(wrap_pyfunction!(dedup_page, module)?)?;
    module.add_function(wrap_pyfunction!(command, module)?)?;
    module.add_function(wrap_pyfunction!(evaluate::evaluate, module)?)?;
    module.add_function(wrap_pyfunction!(fields::stamps, module)?)?;
    Ok(())
}

/// Runs `hamdex dedup` with these arguments; returns the contents of report.json, and warnings.
#[pyfunction]
fn dedup_file(py: Python<'_>, arguments: Vec<OsString>) -> PyResult<(String, Vec<String>)> {
    let done = interruptible(py, |watch| Ok(hamdex_cli::embed::dedup(arguments, watch.flag())?))?;
    Ok((done.report, done.warnings))
}

/// Runs the command line with these arguments, the program name first; returns its exit status.
#[pyfunction]
#[pyo3(name = "_command")]
fn command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| hamdex_cli::run(arguments))
}

/// Writes the HTML report of a deduplication from a summary in JSON.
#[pyfunction]
#[pyo3(name = "_dedup_page")]
fn dedup_page(py: Python<'_>, summary: &str, file: &str) -> PyResult<()> {
    Ok(detached(py, || Ok(hamdex_cli::embed::page(summary, file)?))?)
}
