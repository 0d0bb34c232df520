//! What a pass takes in: delta entries in one buffer, ordered by one table after the other.

use crate::fingerprint::Fingerprint;
use crate::index::read::deltas::{Deltas, reorder};
use crate::plan::{Permutation, Table};
use crate::store::delta_run::Name;
use crate::store::keys::Delta;

/// The delta entries of a pass.
#[derive(Debug)]
pub(super) struct Taken<F> {
    /// Ascending as the present table orders them.
    entries: Vec<(F, Delta)>,
    /// How the present table orders them. `None` before the first one.
    order: Option<Permutation>,
    /// The delta runs they are of, ascending by number.
    runs: Vec<Name>,
}

impl<F: Fingerprint> Taken<F> {
    pub(super) fn new(deltas: Deltas<F>) -> Self {
        let (mut entries, runs) = deltas.into_parts();
        entries.shrink_to_fit();
        Self { entries, order: None, runs }
    }

    /// Returns the entries, ascending as the present table orders them.
    pub(super) fn entries(&self) -> &[(F, Delta)] {
        &self.entries
    }

    /// Returns the delta runs.
    pub(super) fn runs(&self) -> &[Name] {
        &self.runs
    }

    /// Orders the entries as a table does.
    pub(super) fn turn_to(&mut self, table: &Table) {
        let (before, next) = (self.order.take(), table.permutation());
        reorder(&mut self.entries, |entry| {
            next.apply(before.as_ref().map_or(entry, |order| order.invert(entry)))
        });
        self.order = Some(next.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{Durability, Index, IndexOptions};

    fn fingerprint(key: u64) -> u64 {
        key.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    #[test]
    fn a_pass_has_what_decides_of_each_fingerprint_in_the_order_of_each_table() {
        let directory = tempfile::tempdir().unwrap();
        let index = Index::create(directory.path(), &IndexOptions::new()).unwrap();
        let insert = |keys: std::ops::Range<u64>| {
            let documents = keys.map(|key| (key.to_be_bytes(), fingerprint(key)));
            index.insert_batch(&documents.collect::<Vec<_>>(), Durability::Buffered).unwrap();
        };
        let remove = |keys: std::ops::Range<u64>| {
            let gone: Vec<_> = keys.map(u64::to_be_bytes).collect();
            index.remove_batch(&gone, Durability::Buffered).unwrap();
        };
        insert(0..40);
        index.merge(&()).unwrap();
        insert(40..100);
        remove(30..50);
        insert(36..44);
        remove(43..44);
        let (reader, tables) = (index.reader().unwrap(), index.plan().tables());
        let mut taken = Taken::new(Deltas::<u64>::of(reader.snapshot(), tables).unwrap());
        assert_eq!(taken.runs().iter().map(|name| name.number).collect::<Vec<_>>(), [1, 2, 3, 4]);
        for table in tables {
            taken.turn_to(table);
            let permuted = |key| table.permutation().apply(fingerprint(key));
            let delta = |key| match key {
                30..36 | 43..50 => Delta::Removed,
                _ => Delta::Added,
            };
            let mut wanted: Vec<_> = (30..100).map(|key| (permuted(key), delta(key))).collect();
            wanted.sort_unstable_by_key(|(entry, _)| *entry);
            assert_eq!(taken.entries(), wanted);
        }
    }
}
