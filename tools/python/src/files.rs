//! Files: the verb `dedup` of the command line runs within this process.

use std::ffi::OsString;

use pyo3::prelude::*;

use crate::interrupt::interruptible;

/// Runs `hamdex dedup` with these arguments; returns what report.json holds.
#[pyfunction]
pub(crate) fn dedup_file(py: Python<'_>, arguments: Vec<OsString>) -> PyResult<String> {
    let report = interruptible(py, |watch| Ok(hamdex_cli::embed::dedup(arguments, watch.flag())?))?;
    Ok(report)
}
