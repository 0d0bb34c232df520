//! Repacking: frees the space of packed documents that were removed or replaced.
//!
//! What leaves the packs is decided by one snapshot, which is read without the writer lock. Under the
//! lock, a step rewrites a few packs in one batch. Later writes conflict with none of them: what they
//! write overrides the packs, whether or not these still hold the document.

use std::sync::PoisonError;

use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::index::Shared;
use crate::store::Family;
use crate::sync::MutexGuard;

impl<F: Fingerprint> Shared<F> {
    /// Takes out of packs what later writes override.
    ///
    /// The caller flushes the store before [`Shared::drop_removals`].
    pub(in crate::index) fn repack(&self) -> Result<()> {
        self.repack_around(&mut || ())
    }

    /// Calls `between` after a step was read and before it is committed.
    fn repack_around(&self, between: &mut dyn FnMut()) -> Result<()> {
        let _alone = self.repacks();
        let reader = self.committer.read()?;
        // Of postings first: one that is packed must belong to a packed document.
        for family in [Family::Postings, Family::Docs] {
            let Some(mut packs) = reader.snapshot().repacking(family)? else { continue };
            while let Some(portion) = packs.next()? {
                between();
                let turn = self.committer.turn_alone();
                let mut batch = self.store.batch()?;
                portion.stage(&mut batch, family)?;
                turn.move_entries(batch)?;
            }
        }
        drop(reader);
        // Its snapshot would keep what has left the packs.
        self.committer.withdraw_runs();
        Ok(())
    }

    /// Deletes the removals beneath which nothing is packed any longer.
    pub(in crate::index) fn drop_removals(&self) -> Result<()> {
        let _alone = self.repacks();
        for family in [Family::Postings, Family::Docs] {
            self.store.obsolete_removals(family, |removals| {
                let turn = self.committer.turn_alone();
                let mut batch = self.store.batch()?;
                removals.stage(&mut batch)?;
                turn.move_entries(batch)
            })?;
        }
        Ok(())
    }

    /// Waits until no other call rewrites packs: each reads what it rewrites without the writer lock.
    fn repacks(&self) -> MutexGuard<'_, ()> {
        self.repacking.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use crate::build::{BuildOptions, Builder};
    use crate::store::counting_deleted;
    use crate::{Durability, Index, IndexOptions, Query};

    fn build(path: &Path, documents: impl Iterator<Item = (u64, u64)>) -> Index<u64> {
        let options = BuildOptions::new().memory(16 << 20);
        let mut builder = Builder::<u64>::create(path, &IndexOptions::new(), &options).unwrap();
        for (key, fingerprint) in documents {
            builder.push(&key.to_be_bytes(), fingerprint, key).unwrap();
        }
        builder.finish(&(), &mut |_, _| ()).unwrap();
        open(path)
    }

    fn remove(index: &Index<u64>, keys: impl Iterator<Item = u64>) -> u64 {
        let keys: Vec<_> = keys.map(u64::to_be_bytes).collect();
        index.remove_batch(&keys, Durability::Buffered).unwrap()
    }

    fn documents(index: &Index<u64>) -> BTreeMap<u64, u64> {
        let mut all = BTreeMap::new();
        for document in index.reader().unwrap().documents().unwrap() {
            let document = document.unwrap();
            all.insert(u64::from_be_bytes(document.0[..].try_into().unwrap()), document.1);
        }
        all
    }

    fn open(path: &Path) -> Index<u64> {
        Index::open_with(path, &IndexOptions::new().memory(16 << 20)).unwrap()
    }

    /// Copies the table files that the other directory lacks.
    ///
    /// The index must be closed: RocksDB replaces files in the background.
    fn copy_tables(from: &Path, to: &Path) {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let name = entry.unwrap().file_name();
            let is_table = Path::new(&name).extension().is_some_and(|extension| extension == "sst");
            if is_table && !to.join(&name).exists() {
                std::fs::copy(from.join(&name), to.join(&name)).unwrap();
            }
        }
    }

    fn assert_sound(index: &Index<u64>) {
        let report = index.check_deep(&()).unwrap();
        assert_eq!(report.problems, [""; 0]);
    }

    #[test]
    fn a_compaction_frees_the_space_of_packed_documents_that_were_removed() {
        let directory = tempfile::tempdir().unwrap();
        let fingerprint = |key: u64| key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let index = build(directory.path(), (0..60_000).map(|key| (key, fingerprint(key))));
        let full = index.compact().unwrap();
        assert_eq!(full.bytes_before, full.bytes_after);
        assert_eq!(remove(&index, (0..60_000).filter(|key: &u64| !key.is_multiple_of(3))), 40_000);
        let third = index.compact().unwrap();
        assert!(third.bytes_after * 5 < full.bytes_after * 2, "{full:?} {third:?}");
        let stats = index.stats(&()).unwrap();
        assert_eq!((stats.documents, stats.fingerprints), (20_000, 20_000));
        assert!(stats.bytes_docs + stats.bytes_postings < 20_000 * 24, "{stats:?}");
        assert_sound(&index);
        drop(index);
        let index = Index::<u64>::open(directory.path()).unwrap();
        assert_eq!(
            documents(&index),
            (0..60_000).step_by(3).map(|k| (k, fingerprint(k))).collect()
        );
        assert_eq!(remove(&index, 0..60_000), 20_000);
        let empty = index.compact().unwrap();
        assert!(empty.bytes_after * 50 < full.bytes_after, "{full:?} {empty:?}");
        assert_eq!(index.len().unwrap(), 0);
        assert_sound(&index);
    }

    #[test]
    fn removals_are_dropped_without_a_walk_over_all_deleted_packs_for_each() {
        for gone in [0..58_000, 2000..60_000] {
            let directory = tempfile::tempdir().unwrap();
            let index = build(directory.path(), (0..60_000).map(|key| (key, key << 20)));
            assert_eq!(remove(&index, gone.clone()), 58_000);
            index.shared.repack().unwrap();
            index.shared.store.flush().unwrap();
            let (dropped, deleted) = counting_deleted(|| index.shared.drop_removals());
            dropped.unwrap();
            // Some 450 packs of documents, and as many of postings.
            assert!((400..4000).contains(&deleted), "{gone:?}: {deleted}");
            assert_eq!(documents(&index).len(), 2000);
            assert_sound(&index);
        }
    }

    #[test]
    fn what_is_written_while_packs_are_rewritten_is_neither_lost_nor_back() {
        let mut rng = fastrand::Rng::with_seed(17);
        for round in 0..6 {
            let directory = tempfile::tempdir().unwrap();
            // Few fingerprints, so that a document often returns under its old one.
            let mut model: BTreeMap<u64, u64> =
                (0..9000).map(|key| (key, rng.u64(..1 << (3 * round)) << 13)).collect();
            let index = build(directory.path(), model.clone().into_iter());
            let old = model.clone();
            let mut write = |model: &mut BTreeMap<u64, u64>, count: usize| {
                for _ in 0..count {
                    let key = rng.u64(..9000);
                    match rng.u8(..4) {
                        0 | 1 => {
                            let removed = remove(&index, std::iter::once(key));
                            assert_eq!(removed == 1, model.remove(&key).is_some());
                        }
                        again => {
                            let other = rng.u64(..1 << 20);
                            let fingerprint = if again == 2 { old[&key] } else { other };
                            let document = [(key.to_be_bytes(), fingerprint)];
                            index.insert_batch(&document, Durability::Buffered).unwrap();
                            model.insert(key, fingerprint);
                        }
                    }
                }
            };
            for _ in 0..3 {
                write(&mut model, 1500);
                let (reader, before) = (index.reader().unwrap(), model.clone());
                index.shared.repack_around(&mut || write(&mut model, 60)).unwrap();
                assert_eq!(documents(&index), model, "round {round}");
                index.shared.store.flush().unwrap();
                index.shared.drop_removals().unwrap();
                assert_eq!(documents(&index), model, "round {round}");
                assert_eq!(reader.len(), before.len() as u64);
                let (key, fingerprint) = before.iter().next().unwrap();
                let found = reader.search(Query::new(*fingerprint).distance(0)).unwrap();
                assert!(found.iter().any(|found| found.key == key.to_be_bytes()));
                assert_sound(&index);
            }
            index.compact().unwrap();
            assert_sound(&index);
            assert_eq!(remove(&index, 0..9000), model.len() as u64);
            assert_eq!(documents(&index), BTreeMap::new());
            assert_sound(&index);
        }
    }

    #[test]
    fn packs_that_were_rewritten_are_repaired_from_files_alone() {
        for state in 0..6 {
            let directory = tempfile::tempdir().unwrap();
            let (path, target) =
                (directory.path().join("index"), directory.path().join("repaired"));
            drop(build(&path, (0..20_000).map(|key| (key, key << 20))));
            let built = directory.path().join("files of the build");
            copy_tables(&path, &built);
            let index = open(&path);
            // Whole packs, most of some, and none of others.
            let gone =
                |key: u64| key < 300 || (5000..9000).contains(&key) && !key.is_multiple_of(5);
            remove(&index, (0..20_000).filter(|key| gone(*key)));
            if state > 0 {
                index.shared.repack().unwrap();
            }
            if state > 1 {
                index.shared.store.flush().unwrap();
                index.shared.drop_removals().unwrap();
            }
            drop(index);
            let kept = directory.path().join("files before the compaction");
            copy_tables(&path, &kept);
            if state > 2 {
                open(&path).compact().unwrap();
            }
            std::fs::remove_file(path.join("CURRENT")).unwrap();
            // Files that the compaction replaced are deleted one by one: those of the removals may
            // already be gone.
            match state {
                4 => copy_tables(&kept, &path),
                5 => copy_tables(&built, &path),
                _ => {}
            }
            let build = BuildOptions::new().memory(16 << 20);
            crate::build::repair::<u64>(&path, &target, &build, &()).unwrap();
            let repaired = Index::<u64>::open(&target).unwrap();
            let mut found = documents(&repaired);
            // Without removals, packs of the build cannot tell that all their documents are gone.
            assert_eq!(found.contains_key(&0), state == 5);
            found.retain(|key, _| state < 5 || *key >= 300);
            let expected = (0..20_000).filter(|key| !gone(*key)).map(|key| (key, key << 20));
            assert!(found == expected.collect(), "state {state}");
            assert_sound(&repaired);
        }
    }
}
