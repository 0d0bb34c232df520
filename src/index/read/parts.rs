//! Parts: reads a table of an index on all threads, part by part.

use rayon::prelude::*;

use super::entries::{Entries, EntryCounts};
use super::reader::Reader;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::plan::Table;
use crate::progress::{self, Progress};
use crate::store::keys::Delta;

/// Smaller indexes are read in one part.
const DIVIDED_FROM: u64 = if cfg!(any(test, feature = "model")) { 1 << 10 } else { 1 << 16 };
/// Leading bits that divide a larger index into parts.
const BITS: u32 = 6;

/// A table of an index, whose entries are read part by part.
pub(crate) struct Parts<'a, F> {
    reader: &'a Reader<F>,
    number: usize,
    /// All delta entries in the table's order.
    deltas: &'a [(F, Delta)],
    bits: u32,
    progress: &'a dyn Progress,
}

impl<'a, F: Fingerprint> Parts<'a, F> {
    /// Reads a table, given all delta entries in its order.
    pub(crate) fn new(
        reader: &'a Reader<F>,
        number: usize,
        deltas: &'a [(F, Delta)],
        progress: &'a dyn Progress,
    ) -> Self {
        let mut parts = Self { reader, number, deltas, bits: bits(reader), progress };
        // Entries of one prefix are in one part.
        parts.bits = parts.bits.min(parts.table().prefix_bits());
        parts
    }

    /// Divides a small index too, for a visitor that takes longer than reading.
    pub(super) fn divided(mut self) -> Self {
        self.bits = BITS;
        self
    }

    /// Returns the table that is read.
    pub(crate) fn table(&self) -> &'a Table {
        self.reader.plan().tables().get(self.number).expect("the plan has the table")
    }

    /// Passes all distinct entries to `visit`, up to `chunk` at a time.
    ///
    /// Entries of a part are ascending and permuted, and `visit` may change them. It gets the state
    /// of the part, which is returned with the counts of what was read, in the order of the parts.
    ///
    /// # Errors
    ///
    /// Those of the store, of damage, of `visit`, and [`Cancelled`](crate::Error::Cancelled).
    pub(crate) fn each<S: Default + Send>(
        &self,
        chunk: usize,
        visit: impl Fn(&mut S, &mut [F]) -> Result<()> + Sync,
    ) -> Result<Vec<(S, EntryCounts)>> {
        let parts = (0..1_u32 << self.bits).into_par_iter().with_max_len(1).map(|part| {
            let snapshot = self.reader.snapshot();
            let mut entries = Entries::part(snapshot, self.number, self.deltas, part, self.bits)?;
            let (mut state, mut taken) = (S::default(), Vec::with_capacity(chunk));
            loop {
                progress::check(self.progress)?;
                taken.clear();
                entries.take(&mut taken, chunk)?;
                if taken.is_empty() {
                    return Ok((state, entries.counts()));
                }
                visit(&mut state, &mut taken)?;
            }
        });
        parts.collect()
    }
}

/// Returns how many leading bits divide an index into parts.
pub(in crate::index) fn bits<F: Fingerprint>(reader: &Reader<F>) -> u32 {
    if reader.len() < DIVIDED_FROM { 0 } else { BITS }
}
