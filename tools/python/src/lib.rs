//! The engine of the Python package: Arrow in, library calls without the GIL, Arrow out.
//!
//! The public functions are in `hamdex/`, written in Python; they call this module with checked
//! arguments. All decisions are made by the library.

mod dedup;
mod evaluate;
mod failure;
mod fields;
mod files;
mod fingerprints;
mod index;
mod interrupt;
mod name;
mod pipeline;
mod resolve;
mod rows;
mod spark;
mod table;
mod tables;

use hamdex::dedup::Sources;
use pyo3::prelude::*;

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
    module.add_function(wrap_pyfunction!(fields::text_field, module)?)?;
    module.add_function(wrap_pyfunction!(files::dedup_file, module)?)?;
    module.add_function(wrap_pyfunction!(files::dedup_page, module)?)?;
    module.add_function(wrap_pyfunction!(files::command, module)?)?;
    module.add_function(wrap_pyfunction!(evaluate::evaluate, module)?)?;
    module.add_function(wrap_pyfunction!(fields::stamps, module)?)?;
    Ok(())
}
