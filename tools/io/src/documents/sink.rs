//! Sinks: what takes the rows of a reading, one after another.

use hamdex::dedup::Stamp;
use hamdex::verify::EvidencePreparer;

use super::evidence::Proofs;
use super::reject::{Place, Reason};
use crate::face::failure::Result;

/// A good row.
#[derive(Debug)]
pub struct Document<'a, F> {
    pub key: &'a [u8],
    pub fingerprint: F,
    /// Features of the text; `None` for a row that brought its fingerprint.
    pub features: Option<usize>,
    /// Characters of the text.
    pub length: u64,
    pub stamp: Stamp,
    pub proofs: Proofs,
    /// Stands for the value that the row must not share.
    pub unique: Option<u128>,
    /// Source of the row, by a field.
    pub source: Option<Box<str>>,
    /// File of the row, and the spot there.
    pub place: Place<'a>,
    /// Ordinal of the row over all inputs.
    pub origin: u64,
}

/// A row that cannot be used.
#[derive(Debug)]
pub struct Bad<'a> {
    pub reason: &'a Reason,
    pub place: Place<'a>,
    pub origin: u64,
}

/// A good row with nothing to compare.
#[derive(Debug)]
pub struct Blank {
    pub reason: &'static str,
    pub length: u64,
    pub stamp: Stamp,
    pub unique: Option<u128>,
    pub source: Option<Box<str>>,
    pub origin: u64,
}

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
