//! The file with all fingerprints of an index, which its handles map instead of loading them.

use std::sync::PoisonError;

use super::{Index, Resident, members};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::index::Reader;
use crate::resident::ResidentTables;

impl<F: Fingerprint> Index<F> {
    /// Saves all fingerprints to a file, which other handles map instead of loading them.
    ///
    /// [`IndexOptions::resident`](crate::IndexOptions::resident) and
    /// [`load_resident`](Self::load_resident) then take milliseconds, and all processes share one
    /// copy in memory. The file `hamdex.resident` in the index's directory replaces an earlier one
    /// and belongs to the state that it was made of. After any write, also after a
    /// [`merge`](Self::merge), it is of no use until it is saved again: loading then reads the
    /// store as before. Backups do not include it.
    ///
    /// The budget limits the tables in bytes, as for loading. Returns the size of the file, or
    /// `None` if they do not fit; then no file is written. Takes as long as loading, and 14 bytes
    /// of memory per fingerprint at 64 bits. Writers and searches continue; another call waits.
    ///
    /// ```
    /// use hamdex::{Index, IndexOptions};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("pages");
    /// let index = Index::<u64>::create(&path, &IndexOptions::new())?;
    /// index.insert(b"page", 0xff)?;
    /// assert!(index.save_resident(1 << 30)?.is_some());
    ///
    /// let options = IndexOptions::new().read_only(true).resident(1 << 30);
    /// let reader = Index::<u64>::open_with(&path, &options)?;
    /// assert!(reader.memory_usage()?.resident_shared > 0);
    /// assert_eq!(reader.search(0xfe)?.len(), 1);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`ReadOnly`](crate::Error::ReadOnly) for a handle that does not write, errors of
    /// reading or writing, and [`InvalidOption`](crate::Error::InvalidOption) for 2^32 or more fingerprints.
    pub fn save_resident(&self, budget: usize) -> Result<Option<u64>> {
        let store = &self.shared.store;
        store.require_writable()?;
        let path = store.resident_file();
        let _saving = self.shared.saving.lock().unwrap_or_else(PoisonError::into_inner);
        let reader = self.reader()?;
        let snapshot = reader.snapshot();
        let Some(members) = members::<F>(snapshot, reader.plan(), budget)? else {
            return Ok(None);
        };
        ResidentTables::save_distinct(&members, budget, &path, snapshot.moment()?)
    }

    /// Maps the saved fingerprints if they are of the reader's state and fit the budget.
    ///
    /// # Errors
    ///
    /// Returns an error if the file is damaged or cannot be read.
    pub(super) fn saved_resident(
        &self,
        reader: &Reader<F>,
        budget: usize,
    ) -> Result<Option<Resident<F>>> {
        let saved = self.saved(reader)?.filter(|tables| tables.bytes() <= budget);
        Ok(saved.map(|tables| Resident::of(tables, budget, self.shared.core.costs)))
    }

    /// Compares the saved fingerprints with their checksums, if they are of the present state.
    ///
    /// Nobody uses a file of an earlier state.
    pub(in crate::index) fn check_saved_resident(&self) -> Result<()> {
        self.saved(&self.reader()?)?.map_or(Ok(()), |saved| saved.verify())
    }

    fn saved(&self, reader: &Reader<F>) -> Result<Option<ResidentTables<F>>> {
        let moment = || reader.snapshot().moment();
        let path = self.shared.store.resident_file();
        ResidentTables::open_of(&path, moment, self.shared.core.costs)
    }
}
