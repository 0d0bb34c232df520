//! Secondaries: read-only handles that follow the writes of another handle.

use std::path::Path;

use hamdex::build::{BuildOptions, Builder};
use hamdex::{Durability, Error, Index, IndexOptions, Query, Result, SearchPath, Secondary};

use crate::support::{Model, Rng, assert_holds, options, scan};

fn small() -> IndexOptions {
    IndexOptions::new().memory(16 << 20)
}

fn insert(index: &Index<u64>, model: &mut Model<u64>, number: u64, count: u64) -> Result<()> {
    let mut rng = Rng::new(number);
    let documents: Vec<_> = (0..count)
        .map(|at| (format!("{number:04}-{at:05}").into_bytes(), rng.number() & !0xff0))
        .collect();
    index.insert_batch(&documents, Durability::Buffered)?;
    model.extend(documents);
    Ok(())
}

fn assert_follows(secondary: &Secondary<u64>, model: &Model<u64>, context: &str) -> Result<()> {
    secondary.catch_up()?;
    let index = secondary.index();
    assert_holds(&index, model, context);
    for query in model.values().step_by(61).map(|fingerprint| fingerprint ^ 0x30) {
        for way in [SearchPath::Tables, SearchPath::Scan] {
            let found = secondary.search(Query::new(query).distance(5).path(way))?;
            assert_eq!(found, scan(model, query, 5), "{context}");
        }
    }
    Ok(())
}

#[test]
fn a_secondary_follows_every_kind_of_write() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let index = Index::<u64>::create(path, &options::<u64>("4"))?;
    let secondary = Secondary::<u64>::open_with(path, &small())?;
    let mut model = Model::new();
    assert_follows(&secondary, &model, "empty")?;
    assert!(!secondary.catch_up()?, "nothing was written");
    for round in 0..4 {
        insert(&index, &mut model, round * 10, 400)?;
        assert!(secondary.catch_up()?, "something was written");
        assert_follows(&secondary, &model, "inserted")?;
        index.merge(&())?;
        assert_follows(&secondary, &model, "folded")?;
        insert(&index, &mut model, round * 10 + 1, 100)?;
        index.flush()?;
        insert(&index, &mut model, round * 10 + 2, 10)?;
        assert_follows(&secondary, &model, "flushed")?;
        let gone: Vec<_> = model.keys().skip(3).step_by(5).cloned().collect();
        index.remove_batch(&gone, Durability::Synced)?;
        model.retain(|key, _| !gone.contains(key));
        assert_follows(&secondary, &model, "removed")?;
        index.compact()?;
        assert_follows(&secondary, &model, "compacted")?;
    }
    Ok(())
}

#[test]
fn a_held_state_stays_while_the_secondary_advances() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let index = Index::<u64>::create(path, &options::<u64>("4"))?;
    let mut model = Model::new();
    insert(&index, &mut model, 1, 300)?;
    index.flush()?;
    let secondary = Secondary::<u64>::open_with(path, &small())?;
    let mut held = Vec::new();
    for number in 2..7 {
        held.push((secondary.index(), secondary.reader()?, model.clone()));
        let gone: Vec<_> = model.keys().step_by(3).cloned().collect();
        index.remove_batch(&gone, Durability::Buffered)?;
        model.retain(|key, _| !gone.contains(key));
        insert(&index, &mut model, number, 200)?;
        index.merge(&())?;
        index.compact()?;
        assert_follows(&secondary, &model, "advanced")?;
        for (at, (index, reader, old)) in held.iter().enumerate() {
            assert_holds(index, old, &format!("held since {at}"));
            assert_eq!(reader.len(), old.len() as u64);
            let documents = reader.documents()?.collect::<Result<Model<u64>>>()?;
            assert!(documents == *old, "the reader held since {at}");
        }
    }
    Ok(())
}

fn build(path: &Path, documents: &[(Vec<u8>, u64)]) -> Result<Builder<u64>> {
    let small = BuildOptions::new().memory(16 << 20);
    let mut builder = Builder::<u64>::create(path, &IndexOptions::new(), &small)?;
    for (origin, (key, fingerprint)) in (0..).zip(documents) {
        builder.push(key, *fingerprint, origin)?;
    }
    Ok(builder)
}

#[test]
fn a_secondary_switches_to_the_result_of_a_bulk_build() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let mut model = Model::new();
    let index = Index::<u64>::create(path, &options::<u64>("4"))?;
    insert(&index, &mut model, 1, 300)?;
    let secondary = Secondary::<u64>::open_with(path, &small())?;
    assert_follows(&secondary, &model, "before")?;
    drop(index);
    for round in 0..3_u64 {
        let mut rng = Rng::new(round);
        let documents: Vec<_> = (0..2000_u64)
            .map(|at| (format!("built-{round}-{at:05}").into_bytes(), rng.number()))
            .collect();
        let builder = build(path, &documents)?;
        assert_follows(&secondary, &model, "while it is built")?;
        let late = Secondary::<u64>::open_with(path, &small())?;
        assert_holds(&late.index(), &model, "opened while it is built");
        builder.finish(&(), &mut |_, _| ())?;
        model.extend(documents);
        assert_follows(&secondary, &model, "built")?;
        assert_follows(&late, &model, "built, for the later one")?;
        let index = Index::<u64>::open(path)?;
        insert(&index, &mut model, 10 + round, 50)?;
        assert_follows(&secondary, &model, "inserted afterwards")?;
    }
    drop(build(path, &[(b"left".to_vec(), 1)])?);
    assert_follows(&secondary, &model, "left unfinished")?;
    Builder::<u64>::abandon(path)?;
    assert_follows(&secondary, &model, "abandoned")
}

#[test]
fn a_secondary_follows_a_writer_that_was_opened_again() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    drop(Index::<u64>::create(path, &options::<u64>("4"))?);
    let scratch = tempfile::tempdir().unwrap();
    let secondary = Secondary::<u64>::open_with(path, &small().scratch(scratch.path()))?;
    assert!(scratch.path().read_dir().unwrap().count() > 0, "its log is in the scratch directory");
    let mut model = Model::new();
    for number in 0..6 {
        let index = Index::<u64>::open_with(path, &small())?;
        assert_follows(&secondary, &model, "opened again")?;
        insert(&index, &mut model, number, 150)?;
        assert_follows(&secondary, &model, "written")?;
        drop(index);
        assert_follows(&secondary, &model, "closed")?;
    }
    drop(secondary);
    assert_eq!(scratch.path().read_dir().unwrap().count(), 0, "files are left");
    Ok(())
}

#[test]
fn a_secondary_cannot_write_and_needs_an_index() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let error = Secondary::<u64>::open(path).unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
    drop(Index::<u64>::create(path, &options::<u64>("4"))?);
    let error = Secondary::<u32>::open(path).unwrap_err();
    assert!(matches!(error, Error::WidthMismatch { stored: 64, wanted: 32 }), "{error}");
    let secondary = Secondary::<u64>::open(path)?;
    let index = secondary.index();
    assert!(matches!(index.insert(b"a", 1).unwrap_err(), Error::ReadOnly { .. }));
    assert!(matches!(index.merge(&()).unwrap_err(), Error::ReadOnly { .. }));
    assert!(matches!(index.flush().unwrap_err(), Error::ReadOnly { .. }));
    Index::<u64>::open(path)?.insert(b"a", 1)?;
    assert_eq!(secondary.get(b"a")?, None);
    secondary.catch_up()?;
    assert_eq!(secondary.get(b"a")?, Some(1));
    Ok(())
}
