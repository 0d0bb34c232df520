//! Files: runs the command line within this process.

use std::ffi::OsString;

use pyo3::prelude::*;

use crate::interrupt::{detached, interruptible};

/// Runs `hamdex dedup` with these arguments; returns the contents of report.json, and warnings.
#[pyfunction]
pub(crate) fn dedup_file(
    py: Python<'_>,
    arguments: Vec<OsString>,
) -> PyResult<(String, Vec<String>)> {
    let done = interruptible(py, |watch| Ok(hamdex_cli::embed::dedup(arguments, watch.flag())?))?;
    Ok((done.report, done.warnings))
}

/// Runs the command line with these arguments, the program name first; returns its exit status.
#[pyfunction]
#[pyo3(name = "_command")]
pub(crate) fn command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| hamdex_cli::run(arguments))
}

/// Writes the HTML report of a deduplication from a summary in JSON.
#[pyfunction]
#[pyo3(name = "_dedup_page")]
pub(crate) fn dedup_page(py: Python<'_>, summary: &str, file: &str) -> PyResult<()> {
    Ok(detached(py, || Ok(hamdex_cli::embed::page(summary, file)?))?)
}
