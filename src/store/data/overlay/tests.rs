use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::bulk::{BuildOptions, Builder};
use crate::index::{Durability, Index, IndexOptions, Query};
use crate::store::bytes::codec::Document;
use crate::store::bytes::pack::PACK_MEMBERS;
use crate::store::{Cursor, Snapshot, keys};

type Model = BTreeMap<Vec<u8>, u64>;
type Entry = (Vec<u8>, Vec<u8>);

fn build(path: &Path, documents: &Model) {
    let mut builder =
        Builder::<u64>::create(path, &IndexOptions::new(), &BuildOptions::new()).unwrap();
    for (origin, (key, fingerprint)) in (0..).zip(documents) {
        builder.push(key, *fingerprint, origin).unwrap();
    }
    builder.finish(&(), &mut |_, _| ()).unwrap();
}

/// Returns what `docs` and `postings` of an index without packs would hold.
fn expected(model: &Model) -> [BTreeMap<Vec<u8>, Vec<u8>>; 2] {
    let record = |(key, fingerprint): (&Vec<u8>, &u64)| {
        let document = Document { fingerprint: *fingerprint, features: None };
        (key.clone(), codec::encode(key, &document))
    };
    let posting = |(key, f): (&Vec<u8>, &u64)| (keys::posting(*f, key), Vec::new());
    [model.iter().map(record).collect(), model.iter().map(posting).collect()]
}

fn drain(cursor: &mut Cursor<'_>, most: usize) -> Vec<Entry> {
    let mut found = Vec::new();
    while found.len() < most
        && let Some((key, value)) = cursor.entry().unwrap()
    {
        found.push((key.to_vec(), value.to_vec()));
        cursor.next();
    }
    found
}

/// Visits entries until `most` are found; the cursor stays at the next one.
fn visit(cursor: &mut Cursor<'_>, most: usize) -> Vec<Entry> {
    let mut found = Vec::new();
    let entries = cursor.each(|key, value| {
        let more = found.len() < most;
        if more {
            found.push((key.to_vec(), value.to_vec()));
        }
        Ok(more)
    });
    entries.unwrap();
    found
}

fn compare(snapshot: &Arc<Snapshot>, model: &Model, rng: &mut fastrand::Rng) {
    let families = [Family::Docs, Family::Postings];
    for (family, expected) in families.into_iter().zip(expected(model)) {
        let all: Vec<Entry> = expected.clone().into_iter().collect();
        assert_eq!(drain(&mut snapshot.sweep(family).unwrap(), usize::MAX), all, "{family}");
        assert_eq!(visit(&mut snapshot.sweep(family).unwrap(), usize::MAX), all, "{family}");
        let mut cursor = snapshot.probe(family, 0).unwrap();
        for _ in 0..40 {
            let mut from = match all.get(rng.usize(..=all.len())) {
                Some((key, _)) => key.clone(),
                None => vec![rng.u8(..); rng.usize(..12)],
            };
            match rng.u8(..4) {
                0 => from.push(0),
                1 => drop(from.pop()),
                2 => from.iter_mut().last().into_iter().for_each(|byte| *byte ^= 1),
                _ => {}
            }
            // A probe of postings is bound to find those whose first four bytes are equal.
            let bound = if family == Family::Postings { 4 } else { 0 };
            let prefix = from.get(..bound).unwrap_or_default();
            cursor.seek(&from);
            let after = expected.range(from.clone()..).take(5);
            let after = after.filter(|(key, _)| key.starts_with(prefix));
            let after: Vec<Entry> = after.map(|(k, v)| (k.clone(), v.clone())).collect();
            let visited = rng.usize(..=5);
            let mut found = [visit(&mut cursor, visited), drain(&mut cursor, 5 - visited)].concat();
            found.retain(|(key, _)| key.starts_with(prefix));
            assert_eq!(found, after, "{family} from {from:?}");
            let found = snapshot.get(family, &from).unwrap();
            assert_eq!(found.as_ref(), expected.get(&from), "{family} at {from:?}");
        }
    }
}

/// Draws a key of eight bytes in half of all cases, else a longer or shorter one.
fn key(rng: &mut fastrand::Rng) -> Vec<u8> {
    let mut key = (rng.u64(..700) * 3).to_be_bytes().to_vec();
    match rng.u8(..6) {
        0 => key.truncate(7),
        1 => key.push(rng.u8(..2)),
        2 => key.insert(0, 0),
        _ => {}
    }
    key
}

#[test]
fn random_writes_over_packs_read_as_a_sorted_map() {
    let mut rng = fastrand::Rng::with_seed(11);
    let directory = tempfile::tempdir().unwrap();
    let mut model = Model::new();
    for _ in 0..2 {
        let mut pushed = Model::new();
        for _ in 0..600 {
            pushed.insert(key(&mut rng), rng.u64(..40));
        }
        build(directory.path(), &pushed);
        model.append(&mut pushed);
        let index = Index::<u64>::open(directory.path()).unwrap();
        assert_eq!(index.header().format, 8);
        for _ in 0..8 {
            let before = (index.reader().unwrap(), model.clone());
            compare(before.0.snapshot(), &model, &mut rng);
            for _ in 0..40 {
                let key = key(&mut rng);
                if rng.bool() {
                    let fingerprint = rng.u64(..40);
                    let document = (&key[..], fingerprint);
                    index.insert_batch(&[document], Durability::Buffered).unwrap();
                    model.insert(key, fingerprint);
                } else {
                    let removed = index.remove_batch(&[&key], Durability::Buffered).unwrap();
                    assert_eq!(removed == 1, model.remove(&key).is_some(), "{key:?}");
                }
            }
            if rng.u8(..3) == 0 {
                index.compact().unwrap();
            }
            compare(before.0.snapshot(), &before.1, &mut rng);
        }
        compare(index.reader().unwrap().snapshot(), &model, &mut rng);
        assert_eq!(index.check_deep(&()).unwrap().problems, [""; 0]);
        assert_eq!(index.len().unwrap(), model.len() as u64);
    }
}

#[test]
fn a_cursor_passes_a_damaged_pack_and_names_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let members = PACK_MEMBERS as u64;
    let model: Model = (0..3 * members).map(|row| (row.to_be_bytes().to_vec(), row)).collect();
    build(directory.path(), &model);
    let index = Index::<u64>::open(directory.path()).unwrap();
    let reader = index.reader().unwrap();
    let store = reader.snapshot().store();
    let end = (2 * members - 1).to_be_bytes();
    let packs = store.handle(Family::DocPacks).unwrap();
    store.db.put_cf(packs, end, b"\x02not a pack").unwrap();
    // A later state of the index has the damage.
    index.insert(b"other", 7).unwrap();
    index.remove(b"other").unwrap();
    let mut cursor = store.sweep(Family::Docs).unwrap();
    assert_eq!(drain(&mut cursor, PACK_MEMBERS).len(), PACK_MEMBERS);
    assert!(matches!(cursor.entry(), Err(Error::Corrupt { .. })));
    assert_eq!(cursor.damaged_up_to(), Some(&end[..]));
    cursor.next();
    let rest = drain(&mut cursor, usize::MAX);
    assert_eq!(rest.first().map(|(key, _)| &key[..]), Some(&(2 * members).to_be_bytes()[..]));
    assert_eq!((rest.len(), cursor.damaged_up_to()), (PACK_MEMBERS, None));
    assert!(index.get(&7_u64.to_be_bytes()).is_ok());
    assert!(matches!(index.get(&end), Err(Error::Corrupt { .. })));
    assert!(matches!(index.remove(&end), Err(Error::Corrupt { .. })));
    let report = index.check(&()).unwrap();
    assert!(report.problems.iter().any(|problem| problem.contains("doc packs: pack up to")));
}

#[test]
fn damage_beside_a_fingerprint_does_not_hide_its_documents() {
    let directory = tempfile::tempdir().unwrap();
    let members = PACK_MEMBERS as u64;
    let model: Model = (0..3 * members).map(|row| (row.to_be_bytes().to_vec(), row)).collect();
    build(directory.path(), &model);
    let index = Index::<u64>::open(directory.path()).unwrap();
    let store = Arc::clone(index.reader().unwrap().snapshot().store());
    let end = 2 * members - 1;
    let packs = store.handle(Family::PostingPacks).unwrap();
    store.db.put_cf(packs, keys::posting(end, &end.to_be_bytes()), b"\x02not a pack").unwrap();
    // A later state of the index has the damage.
    index.insert(b"other", u64::MAX).unwrap();
    let search = |fingerprint| index.search(Query::new(fingerprint).distance(0));
    for _ in 0..2 {
        for row in [0, members - 2, 2 * members, 3 * members - 1] {
            assert_eq!(search(row).unwrap()[0].key, row.to_be_bytes());
        }
        assert!(matches!(search(end), Err(Error::Corrupt { .. })));
    }
}

#[test]
fn packs_that_overlap_and_unknown_values_are_damage() {
    let directory = tempfile::tempdir().unwrap();
    let model: Model = (0..4_u64).map(|row| (row.to_be_bytes().to_vec(), 7)).collect();
    build(directory.path(), &model);
    let index = Index::<u64>::open(directory.path()).unwrap();
    let store = Arc::clone(index.reader().unwrap().snapshot().store());
    let layout = Layout::of(Family::DocPacks, 64);
    let members = [2, 9].map(|key| Member { fingerprint: 7, key });
    let mut value = Vec::new();
    let key = layout.encode(&members, &mut value).unwrap();
    store.db.put_cf(store.handle(Family::DocPacks).unwrap(), key, &value).unwrap();
    let mut cursor = store.sweep(Family::Docs).unwrap();
    assert_eq!(drain(&mut cursor, 4).len(), 4);
    let error = cursor.entry().unwrap_err().to_string();
    assert!(error.contains("overlaps another"), "{error}");
    let posting = keys::posting(7_u64, &1_u64.to_be_bytes());
    store.db.put_cf(store.handle(Family::Postings).unwrap(), &posting, [1]).unwrap();
    let mut cursor = store.sweep(Family::Postings).unwrap();
    assert_eq!(drain(&mut cursor, 1).len(), 1);
    assert!(matches!(cursor.entry(), Err(Error::Corrupt { .. })));
    assert_eq!(cursor.damaged_up_to(), Some(&posting[..]));
    cursor.next();
    assert_eq!(drain(&mut cursor, usize::MAX).len(), 2);
}
