//! First table: the distinct fingerprints of an index, as a join reads them many times.
//!
//! Postings hold the same fingerprints and the keys, in twice the bytes, which are decoded one by
//! one.

use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::index::{Parts, Reader};
use crate::join::sets::{CHUNK, Source};
use crate::progress::Progress;

/// The first table of a snapshot.
pub(super) struct FirstTable<'a, F> {
    reader: &'a Reader<F>,
    progress: &'a dyn Progress,
}

impl<'a, F: Fingerprint> FirstTable<'a, F> {
    pub(super) fn new(reader: &'a Reader<F>, progress: &'a dyn Progress) -> Self {
        Self { reader, progress }
    }
}

impl<F: Fingerprint> Source<F> for FirstTable<'_, F> {
    fn len(&self) -> usize {
        usize::try_from(self.reader.len()).unwrap_or(usize::MAX)
    }

    fn scan(&self, visit: &(dyn Fn(&[F]) -> Result<()> + Sync)) -> Result<()> {
        let parts = Parts::of_first(self.reader, self.progress);
        let permutation = parts.table().permutation();
        parts.each(CHUNK, |(): &mut (), members| {
            permutation.invert_all(members);
            visit(members)
        })?;
        Ok(())
    }
}
