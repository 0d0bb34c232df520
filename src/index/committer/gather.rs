//! Gathering: an index of an earlier format gets its delta entries into delta runs.

use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::index::read::deltas;
use crate::plan::Table;
use crate::store::delta_run::{MOST_MEMBERS, Name};
use crate::store::keys::{Delta, Kind};
use crate::store::{Batch, Family, Store};

/// Entries that one batch adds to the first table.
const ADDED_TOGETHER: usize = if cfg!(any(test, feature = "model")) { 7 } else { 1 << 14 };

/// Gathers the delta entries of all tables in delta runs, and states the present format.
///
/// Those of later tables are added to the first one, which changes no set of an old index. One batch
/// then states the format and stores all of them as delta runs, which takes as much memory. So an
/// interruption leaves an index of one format or the other.
pub(in crate::index) fn gather<F: Fingerprint>(store: &mut Store, tables: &[Table]) -> Result<()> {
    let Some((first, later)) = tables.split_first() else { return Ok(()) };
    let stored = store.tables_with_deltas();
    for (number, table) in (1..stored).zip(later) {
        // One cursor serves all batches: it reads the state at its opening.
        let mut cursor = store.sweep(Family::Table(number))?;
        cursor.seek(&[Kind::Delta as u8]);
        loop {
            let (mut batch, mut added) = (store.batch()?, 0);
            while added < ADDED_TOGETHER
                && let Some((permuted, delta)) = deltas::next::<F>(&mut cursor, number)?
            {
                let fingerprint = table.permutation().invert(permuted);
                batch.put_delta(0, first.permutation().apply(fingerprint), delta)?;
                added += 1;
            }
            if added == 0 {
                break;
            }
            batch.commit()?;
        }
    }
    store.raise_format(stage_runs::<F>)
}

/// Stages delta runs that say what the first table's entries say that are stored alone.
///
/// These override the delta runs before them, and so do new ones.
fn stage_runs<F: Fingerprint>(store: &Store, batch: &mut Batch<'_>) -> Result<()> {
    let mut number = store.next_delta_run()?;
    let mut stage = |delta, members: &mut Vec<F>| {
        let staged = batch.put_delta_run(Name { number, delta }, members);
        number += 1;
        members.clear();
        staged
    };
    let (mut added, mut removed) = (Vec::new(), Vec::new());
    let mut cursor = store.sweep(Family::Table(0))?;
    cursor.seek(&[Kind::Delta as u8]);
    while let Some((permuted, delta)) = deltas::next::<F>(&mut cursor, 0)? {
        let members = match delta {
            Delta::Added => &mut added,
            Delta::Removed => &mut removed,
        };
        members.push(permuted);
        if members.len() == MOST_MEMBERS {
            stage(delta, members)?;
        }
    }
    for (delta, members) in [(Delta::Added, &mut added), (Delta::Removed, &mut removed)] {
        if !members.is_empty() {
            stage(delta, members)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::index::read::deltas::Deltas;
    use crate::index::{Header, Index, IndexOptions};
    use crate::store::codec::HeaderRecord;
    use crate::{Query, SearchPath};

    fn judge(index: &Index<u64>, model: &BTreeMap<u64, u64>, context: &str) {
        for path in [SearchPath::Tables, SearchPath::Scan] {
            for at in 0..120_u64 {
                let query = Query::new(at << 50).distance(0).path(path);
                let found = index.search(query).unwrap();
                let found: Vec<_> = found.iter().map(|found| found.key.clone()).collect();
                let wanted = model.iter().filter(|(_, fingerprint)| **fingerprint == at << 50);
                let wanted: Vec<_> = wanted.map(|(key, _)| key.to_be_bytes().to_vec()).collect();
                assert_eq!(found, wanted, "{at}, {context}");
            }
        }
        assert_eq!(index.stats(&()).unwrap().fingerprints, model.len() as u64, "{context}");
        let report = index.check(&()).unwrap();
        assert_eq!(report.problem_count, 0, "{context}: {:?}", report.problems);
    }

    /// Gives every table the delta entries that it has in format 1, after a merge of `merged` tables.
    fn scatter(index: &Index<u64>, merged: usize) {
        let shared = &*index.shared;
        let tables = shared.core.plan.tables();
        let snapshot = shared.store.snapshot();
        let deltas = Deltas::<u64>::of(&snapshot, tables).unwrap();
        for _ in 0..merged {
            shared.merge_step().unwrap();
        }
        let mut batch = shared.store.batch().unwrap();
        for name in deltas.runs() {
            batch.delete_delta_run(*name).unwrap();
        }
        for (number, table) in tables.iter().enumerate() {
            for (entry, delta) in deltas.permuted(table.permutation()) {
                if number < merged {
                    batch.delete_entry(number, Kind::Delta, entry).unwrap();
                } else {
                    batch.put_delta(number, entry, delta).unwrap();
                }
            }
        }
        batch.put_header(&HeaderRecord { format: 1, ..shared.store.header().clone() });
        batch.commit().unwrap();
    }

    #[test]
    fn delta_entries_of_every_table_are_read_and_gathered_after_any_part_of_a_merge() {
        for merged in 0..5 {
            let directory = tempfile::tempdir().unwrap();
            let index = Index::<u64>::create(directory.path(), &IndexOptions::new()).unwrap();
            let mut model = BTreeMap::new();
            for at in 0..60_u64 {
                index.insert(&at.to_be_bytes(), at << 50).unwrap();
                model.insert(at, at << 50);
            }
            index.merge(&()).unwrap();
            for at in 40..100_u64 {
                if at < 60 {
                    index.remove(&at.to_be_bytes()).unwrap();
                    model.remove(&at);
                } else {
                    index.insert(&at.to_be_bytes(), at << 50).unwrap();
                    model.insert(at, at << 50);
                }
            }
            scatter(&index, merged);
            drop(index);
            assert_eq!(Header::read(directory.path()).unwrap().format, 1);
            let context = format!("{merged} tables merged");
            let reading = Index::<u64>::open_read_only(directory.path()).unwrap();
            judge(&reading, &model, &context);
            let snapshot = reading.shared.store.snapshot();
            let tables = reading.shared.core.plan.tables();
            let count = if merged < 4 { 60 } else { 0 };
            for most in [0, 1, 59, 60, 61] {
                let (some, complete) = Deltas::<u64>::some(&snapshot, tables, most).unwrap();
                assert_eq!((some.len(), complete), (count.min(most), count <= most), "{context}");
            }
            let index = Index::<u64>::open(directory.path()).unwrap();
            judge(&index, &model, &context);
            assert_eq!(Header::read(directory.path()).unwrap().format, 7);
            for table in 0..4 {
                let mut cursor = index.shared.store.sweep(Family::Table(table)).unwrap();
                cursor.seek(&[Kind::Delta as u8]);
                assert_eq!(deltas::next::<u64>(&mut cursor, table).unwrap(), None, "table {table}");
            }
            // What one handle has gathered another one changes.
            index.remove(&70_u64.to_be_bytes()).unwrap();
            index.insert(&41_u64.to_be_bytes(), 41 << 50).unwrap();
            model.remove(&70);
            model.insert(41, 41 << 50);
            judge(&index, &model, "changed");
            index.merge(&()).unwrap();
            judge(&index, &model, "merged");
            assert_eq!(index.stats(&()).unwrap().delta_entries, 0);
        }
    }
}
