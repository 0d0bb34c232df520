use std::collections::BTreeMap;
use std::path::Path;

use super::*;
use crate::error::{Error, Fault, Result};
use crate::fingerprint::Fingerprint;
use crate::plan::Plan;
use crate::{Index, IndexOptions};

fn layout(bits: u32) -> Layout {
    Layout::new(Plan::named("4", bits).unwrap(), 3, "").unwrap()
}

/// Returns documents; every third one has the fingerprint of the one before it.
fn documents<F: Fingerprint>(count: u64) -> BTreeMap<Vec<u8>, F> {
    let word = |at: u64| u128::from(at.wrapping_mul(0x9e37_79b9_7f4a_7c15)) * 0x1_0000_0001;
    let print = |at: u64| F::truncate(word(if at % 3 == 2 { at - 1 } else { at }));
    (0..count).map(|at| (format!("doc{at:07}").into_bytes(), print(at))).collect()
}

/// Sorts the rows of all documents, writes them with `parts` writers and returns their files.
fn write<F: Fingerprint>(
    directory: &Path,
    layout: &Layout,
    documents: &BTreeMap<Vec<u8>, F>,
    parts: usize,
) -> Result<Vec<Shard>> {
    let mut rows = Vec::new();
    for (key, &fingerprint) in documents {
        layout.rows(key, fingerprint, |family, key, fingerprint| {
            rows.push((family, key.to_vec(), fingerprint));
        })?;
    }
    rows.sort();
    let mut shards = Vec::new();
    let mut begin = 0;
    for part in 1..=parts {
        let mut end = rows.len() * part / parts;
        // Equal rows are in one range, as in a distributed sort.
        while end < rows.len() && end > 0 && rows[end].1 == rows[end - 1].1 {
            end += 1;
        }
        let mut writer = ShardWriter::<F>::new(directory, &format!("part-{part}"), layout)?;
        for (family, key, fingerprint) in &rows[begin..end] {
            writer.push(*family, key, *fingerprint)?;
        }
        shards.extend(writer.finish()?);
        begin = end;
    }
    Ok(shards)
}

fn makes_a_sound_index<F: Fingerprint>(count: u64, parts: usize) {
    let (directory, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let layout = layout(F::BITS);
    let documents = documents::<F>(count);
    let shards = write(directory.path(), &layout, &documents, parts).unwrap();
    let manifest = Manifest::new(&layout, shards).unwrap();
    manifest.write(directory.path()).unwrap();
    let path = target.path().join("index");
    let report = ingest::<F>(directory.path(), &path, &()).unwrap();
    assert_eq!(report.documents, count);
    assert_eq!(manifest_bits(directory.path()).unwrap(), F::BITS);

    let index = Index::<F>::open(&path).unwrap();
    assert_eq!(index.len().unwrap(), count);
    let checked = index.check(&()).unwrap();
    assert!(checked.problems.is_empty(), "{:?}", checked.problems);
    let other = tempfile::tempdir().unwrap();
    let inserted = Index::<F>::create(other.path(), &IndexOptions::new()).unwrap();
    for (key, &fingerprint) in &documents {
        inserted.insert(key, fingerprint).unwrap();
    }
    for &fingerprint in documents.values().step_by(97) {
        let near = fingerprint ^ F::truncate(0b101);
        assert_eq!(index.search(near).unwrap(), inserted.search(near).unwrap());
    }
    // The index can be used like any other.
    index.insert(b"one more", F::ONES).unwrap();
    assert_eq!(index.search(F::ONES).unwrap()[0].key, b"one more");
    // The shards stay and can be ingested again.
    let again = target.path().join("again");
    assert_eq!(ingest::<F>(directory.path(), &again, &()).unwrap(), report);
}

#[test]
fn shards_of_any_number_of_writers_make_an_ordinary_index() {
    for parts in [1, 3, 8] {
        makes_a_sound_index::<u64>(5000, parts);
    }
    makes_a_sound_index::<u32>(1000, 3);
    makes_a_sound_index::<u128>(1000, 3);
    makes_a_sound_index::<u64>(0, 2);
    makes_a_sound_index::<u64>(1, 2);
}

#[test]
fn rows_out_of_order_and_repeated_documents_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let layout = layout(64);
    let mut number = 0;
    let mut refused = |rows: &[(u32, &str)]| {
        number += 1;
        let stem = format!("part-{number}");
        let mut writer = ShardWriter::<u64>::new(directory.path(), &stem, &layout).unwrap();
        let pushed = rows.iter().map(|(family, key)| writer.push(*family, key.as_bytes(), Some(7)));
        match pushed.collect::<Result<Vec<()>>>() {
            Err(Error::InvalidOption { reason, .. }) => reason,
            other => panic!("{rows:?}: {other:?}"),
        }
    };
    assert!(refused(&[(0, "b"), (0, "a")]).contains("out of order"));
    assert!(refused(&[(0, "a"), (0, "a")]).contains("document a comes twice"));
    assert!(refused(&[(1, "12345678a"), (0, "a")]).contains("pushed after a later one"));
    assert!(refused(&[(2, "123")]).contains("not a fingerprint"));
    assert!(refused(&[(6, "12345678")]).contains("there are 6 families"));
    let narrow = ShardWriter::<u32>::new(directory.path(), "part", &layout);
    assert!(matches!(narrow, Err(Error::WidthMismatch { stored: 64, wanted: 32 })));
}

#[test]
fn a_list_of_unrelated_files_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let layout = layout(64);
    let shards = write(directory.path(), &layout, &documents::<u64>(300), 4).unwrap();
    let refused = |change: &dyn Fn(&mut Vec<Shard>)| {
        let mut changed = shards.clone();
        change(&mut changed);
        match Manifest::new(&layout, changed) {
            Err(Error::InvalidOption { name: "shards", reason }) => reason,
            other => panic!("{other:?}"),
        }
    };
    assert!(refused(&|shards| shards.retain(|shard| shard.family != 0)).contains("postings"));
    assert!(refused(&|shards| drop(shards.pop())).contains("fingerprints"));
    assert!(refused(&|shards| shards.push(shards[0].clone())).contains("overlap"));
    assert!(refused(&|shards| shards[0].file = "../part".to_owned()).contains("not a file name"));
    assert!(refused(&|shards| shards[0].last = Vec::new()).contains("invalid range"));
}

#[test]
fn damaged_shards_and_manifests_are_found_before_an_index_is_made() {
    let (directory, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = target.path().join("index");
    let layout = layout(64);
    let shards = write(directory.path(), &layout, &documents::<u64>(300), 2).unwrap();
    let victim = directory.path().join(&shards[1].file);
    let ingested = || ingest::<u64>(directory.path(), &path, &());
    assert!(matches!(ingested(), Err(Error::Io { .. })), "there is no manifest yet");
    Manifest::new(&layout, shards).unwrap().write(directory.path()).unwrap();

    let sound = std::fs::read(&victim).unwrap();
    for (at, reason) in [(Some(sound.len() / 2), "checksum"), (None, "bytes")] {
        let mut bytes = sound.clone();
        match at {
            Some(at) => bytes[at] ^= 1,
            None => bytes.truncate(sound.len() - 1),
        }
        std::fs::write(&victim, bytes).unwrap();
        let error = ingested().unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
        assert_eq!(error.fault(), Fault::Damage);
        assert!(!path.exists());
    }
    std::fs::write(&victim, &sound).unwrap();

    let manifest = directory.path().join("manifest");
    let sealed = std::fs::read(&manifest).unwrap();
    for at in [0, sealed.len() / 3, sealed.len() - 1] {
        let mut bytes = sealed.clone();
        bytes[at] ^= 0x40;
        std::fs::write(&manifest, bytes).unwrap();
        assert_eq!(ingested().unwrap_err().fault(), Fault::Damage, "byte {at}");
    }
    std::fs::write(&manifest, &sealed).unwrap();
    assert!(matches!(
        ingest::<u32>(directory.path(), &path, &()),
        Err(Error::WidthMismatch { stored: 64, wanted: 32 })
    ));
    ingested().unwrap();
    assert!(matches!(ingested(), Err(Error::AlreadyExists { .. })));
}

#[test]
fn only_an_empty_index_of_the_same_settings_takes_shards() {
    let (directory, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let layout = layout(64);
    let shards = write(directory.path(), &layout, &documents::<u64>(30), 1).unwrap();
    Manifest::new(&layout, shards).unwrap().write(directory.path()).unwrap();
    let path = target.path().join("index");
    drop(Index::<u64>::create(&path, &IndexOptions::new().distance(2)).unwrap());
    let refused = ingest::<u64>(directory.path(), &path, &());
    assert!(matches!(refused, Err(Error::HeaderMismatch { what: "distance", .. })), "{refused:?}");
    let path = target.path().join("other");
    drop(Index::<u64>::create(&path, &IndexOptions::new()).unwrap());
    assert_eq!(ingest::<u64>(directory.path(), &path, &()).unwrap().documents, 30);
}

#[test]
fn a_distance_beyond_the_width_is_refused_at_once() {
    let plan = Plan::named("4", 64).unwrap();
    let refused = Layout::new(plan, 17, "");
    assert!(matches!(refused, Err(Error::InvalidDistance { distance: 17, .. })));
}
