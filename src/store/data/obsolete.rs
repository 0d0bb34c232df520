//! Obsolete entries: what the overlay says although the packs beneath say the same.
//!
//! [Repacking](super::repack) takes the overlay into the packs. Once these are in files, such entries
//! are deleted: removals beneath which nothing is packed, and what is packed just as it is stored.

use super::cursor;
use super::overlay::REMOVED;
use super::walk::Walk;
use crate::error::Result;
use crate::store::{Batch, Family, Store};

/// Entries that one batch deletes, so that a writer waits about two milliseconds for it.
const ENTRIES: usize = 2048;
/// Entries that one step reads at most.
const READ: usize = 1 << 13;

/// A walk over the overlay. Nothing else may change packs until it ends.
pub(crate) struct Obsolete {
    family: Family,
    walk: Walk,
    /// The first pack at or after the key at which the walk continues, if there is any.
    ///
    /// A seek to the key would step over all packs between them that were deleted.
    pack: Option<Vec<u8>>,
}

/// Some obsolete entries, which one batch can delete.
pub(crate) struct ObsoleteEntries {
    family: Family,
    /// Each with the key of its document.
    keys: Vec<(Vec<u8>, u64)>,
}

impl Obsolete {
    pub(crate) fn of(family: Family) -> Self {
        Self { family, walk: Walk::over(family), pack: Some(Vec::new()) }
    }

    /// Returns the next entries, or `None` after the last ones.
    pub(crate) fn next(&mut self, store: &Store) -> Result<Option<ObsoleteEntries>> {
        let Some(packs) = store.packs(self.family)? else { return Ok(None) };
        let mut base = packs.base(cursor::passing());
        let mut keys = Vec::new();
        if let Some(pack) = &self.pack {
            base.seek(pack);
        }
        let is_some = self.walk.step(store, cursor::passing(), READ, |key, value| {
            // Packs say nothing of others.
            let Some(member) = packs.layout().member(key) else { return Ok(true) };
            let packed = base.get_ahead(key)?;
            let is_obsolete = match &packed {
                None => value == REMOVED,
                Some(packed) => packed == value,
            };
            if is_obsolete {
                keys.push((key.to_vec(), member.key));
            }
            Ok(keys.len() < ENTRIES)
        })?;
        self.pack = base.pack().map(<[u8]>::to_vec);
        Ok(is_some.then_some(ObsoleteEntries { family: self.family, keys }))
    }
}

impl ObsoleteEntries {
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Deletes the entries. The caller holds the writer lock, and nothing is in flight.
    ///
    /// `is_named` must be true for each document that a batch has named since they were read.
    pub(crate) fn stage(
        &self,
        batch: &mut Batch<'_>,
        is_named: impl Fn(&[u8]) -> bool,
    ) -> Result<()> {
        let handle = batch.store.handle(self.family)?;
        for (key, document) in &self.keys {
            if !is_named(&document.to_be_bytes()) {
                batch.writes.delete_cf(handle, key);
            }
        }
        Ok(())
    }
}
