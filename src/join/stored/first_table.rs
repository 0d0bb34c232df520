//! First table: the distinct fingerprints of an index, as a join reads them many times.
//!
//! Postings hold the same fingerprints and the keys, in twice the bytes, which are decoded one by
//! one.

use rayon::prelude::*;

use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::index::{Entries, Reader};
use crate::join::sets::{CHUNK, Source};
use crate::progress::{self, Progress};

/// Smaller indexes are read with one cursor.
const PARTS_MIN: u64 = 1 << 16;
/// Leading bits that divide a larger table into parts.
const PART_BITS: u32 = 6;

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
        let table = self.reader.plan().tables().first().expect("a plan has a table");
        let permutation = table.permutation();
        let bits = if self.reader.len() < PARTS_MIN { 0 } else { PART_BITS };
        let parts = (0..1_u32 << bits).into_par_iter().with_max_len(1);
        parts.try_for_each(|part| {
            let mut entries = Entries::<F>::part(self.reader.snapshot(), part, bits)?;
            let mut chunk = Vec::with_capacity(CHUNK);
            loop {
                progress::check(self.progress)?;
                chunk.clear();
                entries.take(&mut chunk, CHUNK)?;
                if chunk.is_empty() {
                    return Ok(());
                }
                if !permutation.is_identity() {
                    for member in &mut chunk {
                        *member = permutation.invert(*member);
                    }
                }
                visit(&chunk)?;
            }
        })
    }
}
