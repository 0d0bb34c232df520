//! What stands for columnar files in a build without them: it says so, by name.

use std::fs::File;
use std::path::Path;

use crate::console::Console;
use crate::failure::{Failure, Result};
use crate::input::fields::Fields;
use crate::input::open::{Meter, Reader};
use crate::output::Output;

const REASON: &str = "this hamdex was built without Parquet and Arrow; build it with the feature \
    \"parquet\", which is the default, or convert the file to JSON Lines";

/// A columnar file, of which there is none.
#[derive(Debug)]
pub(crate) enum Columnar {}

impl Columnar {
    pub(in crate::input) fn parquet(path: &Path) -> Result<Self> {
        Err(Failure::file(path, REASON))
    }

    pub(in crate::input) fn arrow(path: &Path) -> Result<Self> {
        Err(Failure::file(path, REASON))
    }

    pub(in crate::input) fn choose(&mut self, _: &Fields) -> Result<()> {
        match *self {}
    }

    pub(in crate::input) fn rows(&self) -> Option<u64> {
        match *self {}
    }

    pub(in crate::input) fn names(&self) -> Vec<String> {
        match *self {}
    }

    pub(in crate::input) fn has(&self, _: &str) -> bool {
        match *self {}
    }

    pub(in crate::input) fn lines(&self, _: bool, _: &Meter) -> Result<Reader> {
        match *self {}
    }

    pub(in crate::input) fn sample(&self, _: usize) -> Result<Reader> {
        match *self {}
    }
}

pub(crate) fn require() -> Result<()> {
    Err(Failure::Usage(format!("--format parquet: {REASON}")))
}

pub(crate) fn agree(_: &[&Columnar]) -> bool {
    false
}

pub(crate) fn filter(_: &[&Columnar], _: u64, _: &[u64], _: Output, _: &Console) -> Result<Output> {
    Err(Failure::Usage(REASON.into()))
}

pub(crate) fn from_lines(_: File, _: Output, _: &Console) -> Result<Output> {
    Err(Failure::Usage(REASON.into()))
}
