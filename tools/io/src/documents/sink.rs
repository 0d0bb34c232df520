//! Sinks: what takes the documents of a reading, one after another.

use hamdex::verify::EvidencePreparer;

use super::read::{Bad, Blank, Document};
use crate::face::failure::Result;

/// Receives documents, in order.
pub trait Sink<F> {
    fn document(&mut self, document: Document<'_, F>) -> Result<()>;

    /// Returns what prepares evidence on the threads that make documents.
    fn preparer(&self) -> Option<EvidencePreparer> {
        None
    }

    /// Takes a row with nothing to compare, if they are kept.
    fn blank(&mut self, _: Blank) -> Result<()> {
        Ok(())
    }

    /// Takes a bad row, before it is counted.
    fn bad(&mut self, _: &Bad<'_>) -> Result<()> {
        Ok(())
    }

    /// Runs when the next document may be slow to arrive.
    fn pause(&mut self) -> Result<()> {
        Ok(())
    }
}

impl<F, T: FnMut(Document<'_, F>) -> Result<()>> Sink<F> for T {
    fn document(&mut self, document: Document<'_, F>) -> Result<()> {
        self(document)
    }
}
