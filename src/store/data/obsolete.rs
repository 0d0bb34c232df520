//! Obsolete entries: what the overlay says although the packs beneath say the same.
//!
//! [Repacking](super::repack) takes the overlay into the packs. Once these are in files, such entries
//! are deleted: removals beneath which nothing is packed, and what is packed just as it is stored.

use super::cursor;
use super::overlay::REMOVED;
use crate::error::Result;
use crate::store::{Batch, Family, Store, engine_error};

/// Entries that one batch deletes, so that a writer waits about two milliseconds for it.
const ENTRIES: usize = 2048;
/// Entries that one step reads at most.
const READ: usize = 1 << 13;

/// A walk over the overlay. Nothing else may change packs until it ends.
pub(crate) struct Obsolete {
    family: Family,
    /// The key at which it continues, until its end.
    from: Option<Vec<u8>>,
    /// The first pack at or after that key, if there is any.
    ///
    /// A seek to the key would step over all packs between them that were deleted.
    pack: Option<Vec<u8>>,
}

/// Some obsolete entries, which one batch can delete.
pub(crate) struct ObsoleteEntries {
    family: Family,
    /// Ascending.
    keys: Vec<Vec<u8>>,
    values: Vec<Vec<u8>>,
}

impl Obsolete {
    pub(crate) fn of(family: Family) -> Self {
        Self { family, from: Some(Vec::new()), pack: Some(Vec::new()) }
    }

    /// Returns the next entries, or `None` after the last ones.
    pub(crate) fn next(&mut self, store: &Store) -> Result<Option<ObsoleteEntries>> {
        let Some(packs) = store.packs(self.family)? else { return Ok(None) };
        let Some(from) = self.from.take() else { return Ok(None) };
        let handle = store.handle(self.family)?;
        let mut overlay = store.db.raw_iterator_cf_opt(handle, cursor::passing());
        let mut base = packs.base(cursor::passing());
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        overlay.seek(&from);
        if let Some(pack) = &self.pack {
            base.seek(pack);
        }
        let mut read = 0;
        while let Some((key, value)) = overlay.item() {
            if read == READ || keys.len() == ENTRIES {
                self.from = Some(key.to_vec());
                break;
            }
            read += 1;
            let packed = base.get_ahead(key)?;
            let is_obsolete = match &packed {
                None => value == REMOVED,
                Some(packed) => packed == value,
            };
            if is_obsolete {
                keys.push(key.to_vec());
                values.push(value.to_vec());
            }
            overlay.next();
        }
        overlay.status().map_err(|e| engine_error(&self.family.to_string(), e))?;
        self.pack = base.pack().map(<[u8]>::to_vec);
        Ok(Some(ObsoleteEntries { family: self.family, keys, values }))
    }
}

impl ObsoleteEntries {
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Deletes the entries that still say the same. The caller holds the writer lock.
    pub(crate) fn stage(&self, batch: &mut Batch<'_>) -> Result<()> {
        let store = batch.store;
        let handle = store.handle(self.family)?;
        store.stored_values(self.family, &self.keys, |at, found| {
            if let (Some(key), Some(value)) = (self.keys.get(at), self.values.get(at))
                && found.is_some_and(|found| found == value)
            {
                batch.writes.delete_cf(handle, key);
            }
        })
    }
}
