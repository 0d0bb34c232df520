//! Named documents: which keys batches have named since some moment.
//!
//! A step that changes where documents are stored reads them before it takes the writer lock. Under
//! the lock it leaves out those that batches have named meanwhile.

use std::collections::HashSet;

use super::flights::hash;
use super::journal::Place;

/// Hashes of the keys that batches have named since this was made.
pub(in crate::index) struct Named<'a, F> {
    place: Place<'a, F>,
    keys: HashSet<u64>,
}

impl<'a, F> Named<'a, F> {
    /// Begins at a place in the journal. What is read of the store later has every batch before it.
    pub(super) fn since(place: Place<'a, F>) -> Self {
        Self { place, keys: HashSet::new() }
    }

    /// Adds the keys of all batches that were announced since the last call.
    ///
    /// Under the writer lock the keys are then complete.
    pub(in crate::index) fn update(&mut self) {
        for entry in self.place.move_on() {
            self.keys.extend(entry.keys.iter());
        }
    }

    /// Returns whether a batch named the key, or another key with the same hash.
    pub(in crate::index) fn holds(&self, key: &[u8]) -> bool {
        self.keys.contains(&hash(key))
    }
}
