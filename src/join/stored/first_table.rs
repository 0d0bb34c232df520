//! First table: the distinct fingerprints of an index, as a join reads them many times.
//!
//! Postings hold the same fingerprints and the keys, in twice the bytes, which are decoded one by
//! one.

use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::index::{Deltas, Parts, Reader};
use crate::join::sets::{CHUNK, Source};
use crate::progress::Progress;
use crate::store::keys::Delta;

/// The first table of a snapshot.
pub(super) struct FirstTable<'a, F> {
    reader: &'a Reader<F>,
    /// All delta entries in its order.
    deltas: Vec<(F, Delta)>,
    progress: &'a dyn Progress,
}

impl<'a, F: Fingerprint> FirstTable<'a, F> {
    /// Reads the delta entries, and keeps them for every scan.
    pub(super) fn new(reader: &'a Reader<F>, progress: &'a dyn Progress) -> Result<Self> {
        let deltas = Deltas::of_first(reader.snapshot(), reader.plan().tables())?;
        Ok(Self { reader, deltas, progress })
    }
}

impl<F: Fingerprint> Source<F> for FirstTable<'_, F> {
    fn len(&self) -> usize {
        usize::try_from(self.reader.len()).unwrap_or(usize::MAX)
    }

    fn scan(&self, visit: &(dyn Fn(&[F]) -> Result<()> + Sync)) -> Result<()> {
        let parts = Parts::new(self.reader, 0, &self.deltas, self.progress);
        let permutation = parts.table().permutation();
        parts.each(CHUNK, |(): &mut (), members| {
            permutation.invert_all(members);
            visit(members)
        })?;
        Ok(())
    }
}
