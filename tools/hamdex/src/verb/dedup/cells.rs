//! Cells: rows of CSV, which were read as lines of JSON, become records again.

use std::collections::HashMap;

use crate::failure::{Failure, Result};
use crate::output::Output;

/// A file of records being written.
#[derive(Debug)]
pub(super) struct Cells {
    writer: csv::Writer<Output>,
    header: Vec<String>,
    path: String,
}

impl Cells {
    /// Begins with the header; inputs without a row have none.
    pub(super) fn new(output: Output, delimiter: u8, header: Vec<String>) -> Result<Self> {
        let path = output.name().to_owned();
        let writer = csv::WriterBuilder::new().delimiter(delimiter).from_writer(output);
        let mut cells = Self { writer, header: Vec::new(), path };
        if !header.is_empty() {
            cells.record(header.iter().map(String::as_str))?;
        }
        Ok(Self { header, ..cells })
    }

    /// Takes a row; a cell that the line leaves out is empty.
    pub(super) fn line(&mut self, line: &[u8]) -> Result<()> {
        let row: HashMap<String, String> =
            serde_json::from_slice(line).map_err(|e| Failure::io(&self.path, e.into()))?;
        let header = std::mem::take(&mut self.header);
        let cell = |column: &String| row.get(column).map_or("", String::as_str);
        let written = self.record(header.iter().map(cell));
        self.header = header;
        written
    }

    fn record<'a>(&mut self, cells: impl Iterator<Item = &'a str>) -> Result<()> {
        self.writer.write_record(cells).map_err(|e| Failure::of_write(&self.path, e.into()))
    }

    /// Returns the file, complete but without its name yet.
    pub(super) fn finish(self) -> Result<Output> {
        let Self { writer, path, .. } = self;
        writer.into_inner().map_err(|e| Failure::of_write(&path, e.into_error()))
    }
}
