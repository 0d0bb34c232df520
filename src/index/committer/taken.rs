//! What a pass takes in: delta entries in one buffer, ordered by one table after the other.

use crate::fingerprint::Fingerprint;
use crate::index::read::deltas::{Deltas, reorder};
use crate::plan::{Permutation, Table};
use crate::store::keys::Delta;

/// The delta entries of a pass.
#[derive(Debug)]
pub(super) struct Taken<F> {
    /// Ascending as the present table orders them.
    entries: Vec<(F, Delta)>,
    /// How the present table orders them. `None` before the first one.
    order: Option<Permutation>,
    /// Added ones that are stored alone, ascending, in no table's order.
    again: Vec<F>,
    /// Numbers of the delta runs, which hold the other added ones.
    runs: Vec<u64>,
    /// Whether any entry is stored alone.
    some_alone: bool,
}

impl<F: Fingerprint> Taken<F> {
    pub(super) fn new(deltas: Deltas<F>) -> Self {
        let (mut entries, again, runs) = deltas.into_parts();
        entries.shrink_to_fit();
        let removes = entries.iter().any(|(_, delta)| *delta == Delta::Removed);
        let some_alone = removes || !again.is_empty();
        Self { entries, order: None, again, runs, some_alone }
    }

    /// Returns the entries, ascending as the present table orders them.
    pub(super) fn entries(&self) -> &[(F, Delta)] {
        &self.entries
    }

    /// Returns the numbers of the delta runs.
    pub(super) fn runs(&self) -> &[u64] {
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

    /// Drops the entries of delta runs.
    pub(super) fn keep_alone(&mut self) {
        let mut entries = std::mem::take(&mut self.entries);
        entries.retain(|(entry, delta)| self.is_alone(self.fingerprint(*entry), *delta));
        self.entries = entries;
    }

    /// Returns which of the fingerprints have an entry that is stored alone.
    pub(super) fn alone_among(&self, mut fingerprints: Vec<F>) -> Vec<F> {
        if !self.some_alone {
            return Vec::new();
        }
        let permute = |fingerprint: F| match &self.order {
            Some(order) => order.apply(fingerprint),
            None => fingerprint,
        };
        fingerprints.sort_unstable_by_key(|fingerprint| permute(*fingerprint));
        let mut ahead = &*self.entries;
        fingerprints.retain(|fingerprint| {
            let wanted = permute(*fingerprint);
            ahead = ahead.get(below(ahead, wanted)..).unwrap_or_default();
            let first = ahead.first().filter(|(entry, _)| *entry == wanted);
            first.is_some_and(|(_, delta)| self.is_alone(*fingerprint, *delta))
        });
        fingerprints
    }

    /// Undoes the order of the present table.
    pub(super) fn fingerprint(&self, entry: F) -> F {
        self.order.as_ref().map_or(entry, |order| order.invert(entry))
    }

    fn is_alone(&self, fingerprint: F, delta: Delta) -> bool {
        delta == Delta::Removed || self.again.binary_search(&fingerprint).is_ok()
    }
}

/// Returns how many of the ascending entries are below another one, in time for what it skips.
fn below<F: Fingerprint>(entries: &[(F, Delta)], wanted: F) -> usize {
    let mut until = 1;
    while entries.get(until - 1).is_some_and(|(entry, _)| *entry < wanted) {
        until *= 2;
    }
    let within = entries.get(until / 2..until.min(entries.len())).unwrap_or_default();
    until / 2 + within.partition_point(|(entry, _)| *entry < wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{Durability, Index, IndexOptions};

    /// Returns an index with 40 merged documents, 60 added since, 10 removed and 4 of those back.
    fn index(path: &std::path::Path) -> Index<u64> {
        let index = Index::create(path, &IndexOptions::new()).unwrap();
        let insert = |keys: std::ops::Range<u64>| {
            let documents = keys.map(|key| (key.to_be_bytes(), fingerprint(key)));
            index.insert_batch(&documents.collect::<Vec<_>>(), Durability::Buffered).unwrap();
        };
        insert(0..40);
        index.merge(&()).unwrap();
        insert(40..100);
        let gone: Vec<_> = (30..40_u64).map(u64::to_be_bytes).collect();
        index.remove_batch(&gone, Durability::Buffered).unwrap();
        insert(36..40);
        index
    }

    fn fingerprint(key: u64) -> u64 {
        key.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    #[test]
    fn a_pass_has_the_entries_in_the_order_of_each_table_and_at_last_those_stored_alone() {
        let directory = tempfile::tempdir().unwrap();
        let index = index(directory.path());
        let (reader, tables) = (index.reader().unwrap(), index.plan().tables());
        let deltas = || Deltas::<u64>::of(reader.snapshot(), tables).unwrap();
        let mut taken = Taken::new(deltas());
        assert_eq!(taken.runs().len(), 1);
        let everything: Vec<u64> = (0..120).map(fingerprint).collect();
        let alone = |taken: &Taken<u64>| {
            let mut found = taken.alone_among(everything.clone());
            found.sort_unstable_by_key(|found| everything.iter().position(|one| one == found));
            found
        };
        let wanted: Vec<u64> = (30..40).map(fingerprint).collect();
        for table in tables {
            taken.turn_to(table);
            assert_eq!(taken.entries(), deltas().permuted(table.permutation()));
            assert_eq!(taken.entries().len(), 70);
            assert_eq!(alone(&taken), wanted);
        }
        taken.keep_alone();
        taken.turn_to(&tables[0]);
        assert_eq!(alone(&taken), wanted);
        let mut left: Vec<_> = taken
            .entries()
            .iter()
            .map(|(entry, delta)| (taken.fingerprint(*entry), *delta == Delta::Added))
            .collect();
        left.sort_unstable_by_key(|(left, _)| everything.iter().position(|one| one == left));
        let expected = (30..40).map(|key| (fingerprint(key), key >= 36));
        assert_eq!(left, expected.collect::<Vec<_>>());
    }

    #[test]
    fn a_pass_that_only_adds_remembers_nothing_of_what_writers_change() {
        let directory = tempfile::tempdir().unwrap();
        let index = Index::<u64>::create(directory.path(), &IndexOptions::new()).unwrap();
        index.insert(b"a", 1).unwrap();
        index.insert(b"b", 2).unwrap();
        let (reader, tables) = (index.reader().unwrap(), index.plan().tables());
        let mut taken = Taken::new(Deltas::<u64>::of(reader.snapshot(), tables).unwrap());
        taken.turn_to(&tables[0]);
        assert_eq!(taken.entries().len(), 2);
        assert_eq!(taken.alone_among(vec![1, 2, 3]), [0; 0]);
    }

    #[test]
    fn as_many_entries_are_below_another_as_a_count_finds() {
        for count in 0..70_u64 {
            let entries: Vec<_> = (0..count).map(|at| (2 * at, Delta::Added)).collect();
            for wanted in 0..2 * count + 2 {
                let counted = entries.iter().filter(|(entry, _)| *entry < wanted).count();
                assert_eq!(below(&entries, wanted), counted, "{wanted} of {count}");
            }
        }
    }
}
