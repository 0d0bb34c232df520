//! Attached indexes: a host's documents and their entries, in one database and one batch.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use hamdex::interop::rocksdb::{ColumnFamilyDescriptor, Options, WriteBatch, WriteOptions};
use hamdex::interop::{Attached, HostDb, Staged};
use hamdex::plan::Plan;
use hamdex::{Durability, Error, Fingerprint, IndexOptions, Query, Result};

use crate::support::{
    Model, Rng, assert_holds, copy_directory, files, keyed, mixed, options, pairs_of, scan,
};

/// The host's family.
const PAGES: &str = "pages";

/// Opens a host's database with its family and those of some indexes.
fn host(path: &Path, families: Vec<ColumnFamilyDescriptor>) -> Arc<HostDb> {
    let mut settings = Options::default();
    settings.create_if_missing(true);
    settings.create_missing_column_families(true);
    let own = ["default", PAGES].map(|name| ColumnFamilyDescriptor::new(name, Options::default()));
    let all = own.into_iter().chain(families);
    Arc::new(HostDb::open_cf_descriptors(&settings, path, all).unwrap())
}

/// Opens a host's database with one index, creating it if it is missing.
fn attached<F: Fingerprint>(
    path: &Path,
    settings: &IndexOptions,
) -> Result<(Arc<HostDb>, Attached<F>)> {
    let db = host(path, Attached::<F>::families("near", settings)?);
    let near = Attached::open_or_create(Arc::clone(&db), "near", settings)?;
    Ok((db, near))
}

fn page(db: &HostDb, key: &[u8]) -> Option<Vec<u8>> {
    db.get_cf(db.cf_handle(PAGES).unwrap(), key).unwrap()
}

fn put_page(db: &HostDb, batch: &mut WriteBatch, key: &[u8]) {
    batch.put_cf(db.cf_handle(PAGES).unwrap(), key, key);
}

/// Commits documents, and a page for each.
fn store<F: Fingerprint, K: AsRef<[u8]>>(
    db: &HostDb,
    near: &Attached<F>,
    documents: &[(K, F)],
) -> Result<()> {
    let (mut staged, mut batch) = (Staged::new(), WriteBatch::default());
    for document in documents {
        staged.insert_document(document);
        put_page(db, &mut batch, document.0.as_ref());
    }
    near.commit(&staged, batch, Durability::Buffered).map(drop)
}

fn equals_the_scan<F: Fingerprint>(count: usize, plan: &str) -> Result<()> {
    let rng = &mut Rng::new(count as u64 + 1);
    let mut prints: Vec<F> = mixed(rng, count);
    prints.truncate(count);
    let documents = keyed(rng, &prints);
    let directory = tempfile::tempdir().unwrap();
    let (db, near) = attached::<F>(directory.path(), &options::<F>(plan))?;
    let half = documents.len() / 2;
    for (at, some) in documents.chunks(37).enumerate() {
        store(&db, &near, some)?;
        if at * 37 <= half && half < at * 37 + 37 {
            near.index().merge(&())?;
        }
    }
    let model: Model<F> = documents.into_iter().collect();
    let context = format!("{count} of {} bits, plan {plan}", F::BITS);
    assert_holds(near.index(), &model, &context);
    let mut queries = vec![F::ZERO, F::ONES, rng.fingerprint()];
    for _ in 0..4.min(prints.len()) {
        let (stored, flips) = (*rng.pick(&prints), rng.up_to(F::MAX_DISTANCE));
        queries.extend([stored, rng.flipped(stored, flips)]);
    }
    for distance in 0..=F::MAX_DISTANCE.min(16) {
        let asked: Vec<_> = queries.iter().map(|q| Query::new(*q).distance(distance)).collect();
        let together = near.index().search_batch(&asked)?;
        for ((query, asked), answer) in queries.iter().zip(asked).zip(together) {
            let wanted = scan(&model, *query, distance);
            assert!(near.index().search(asked)? == wanted, "k = {distance}, {context}");
            assert!(answer == wanted, "in a batch, k = {distance}, {context}");
        }
    }
    Ok(())
}

#[test]
fn searches_of_an_attached_index_equal_the_linear_scan() -> Result<()> {
    for count in [0, 1, 2, 400] {
        equals_the_scan::<u64>(count, "4")?;
    }
    equals_the_scan::<u64>(300, "10")?;
    equals_the_scan::<u32>(300, "4")?;
    equals_the_scan::<u128>(300, "4x1")
}

#[test]
fn staged_changes_equal_the_same_changes_one_by_one() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let settings = options::<u64>("4");
    let (mut db, mut near) = attached::<u64>(directory.path(), &settings)?;
    let rng = &mut Rng::new(77);
    let centres: Vec<u64> = (0..6).map(|_| rng.fingerprint()).collect();
    let keys: Vec<Vec<u8>> = (0..30).map(|key| format!("{key:02}").into_bytes()).collect();
    let mut model = Model::new();
    for round in 0..150 {
        let context = format!("round {round}");
        let before: BTreeSet<Vec<u8>> = model.keys().cloned().collect();
        let mut staged = Staged::new();
        let mut refused = Vec::new();
        for _ in 0..rng.below(7) {
            let key = rng.pick(&keys);
            let (centre, flips) = (*rng.pick(&centres), rng.up_to(4));
            let fingerprint = rng.flipped(centre, flips);
            match rng.below(4) {
                0 => {
                    staged.remove(key);
                    model.remove(key);
                }
                1 | 2 => {
                    let distance = rng.up_to(6);
                    staged.insert_if_new(key, fingerprint, distance);
                    let mut found = scan(&model, fingerprint, distance);
                    found.retain(|near| near.key != *key);
                    match found.into_iter().next() {
                        Some(near) => refused.push((key.clone(), near)),
                        None => {
                            model.insert(key.clone(), fingerprint);
                        }
                    }
                }
                _ => {
                    staged.insert(key, fingerprint);
                    model.insert(key.clone(), fingerprint);
                }
            }
        }
        let report = near.commit(&staged, WriteBatch::default(), Durability::Buffered)?;
        let reported: Vec<_> = report.refused.into_iter().map(|r| (r.key, r.near)).collect();
        assert_eq!(reported, refused, "{context}");
        let after: BTreeSet<Vec<u8>> = model.keys().cloned().collect();
        assert_eq!(report.inserted, after.difference(&before).count() as u64, "{context}");
        assert_eq!(report.removed, before.difference(&after).count() as u64, "{context}");
        match rng.below(12) {
            0 => {
                near.index().merge(&())?;
            }
            1 => near.index().flush()?,
            2 => {
                drop((near, db));
                (db, near) = attached::<u64>(directory.path(), &settings)?;
            }
            _ => (),
        }
        assert_holds(near.index(), &model, &context);
        let (centre, distance) = (*rng.pick(&centres), rng.up_to(16));
        let found = near.index().search(Query::new(centre).distance(distance))?;
        assert_eq!(found, scan(&model, centre, distance), "{context}");
    }
    Ok(())
}

#[test]
fn a_page_and_its_entries_become_visible_together() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let (db, near) = attached::<u64>(directory.path(), &options::<u64>("4"))?;
    let before = near.freeze()?;
    let (mut staged, mut batch) = (Staged::new(), WriteBatch::default());
    staged.insert(b"a", 1);
    put_page(&db, &mut batch, b"a");
    near.commit_with(&staged, batch, |ready| {
        assert_eq!((ready.report.inserted, ready.report.refused.len()), (1, 0));
        assert!(near.index().search(1)?.is_empty() && page(&db, b"a").is_none());
        db.write_opt(ready.batch, &WriteOptions::default()).unwrap();
        assert_eq!(near.index().search(1)?.len(), 1, "visible together with the page");
        Ok::<(), Error>(())
    })?;
    let after = near.freeze()?;
    let pages = db.cf_handle(PAGES).unwrap();
    assert!(before.reader().search(1)?.is_empty());
    assert_eq!(before.snapshot().get_cf(pages, b"a").unwrap(), None);
    assert_eq!(after.reader().search(1)?.len(), 1);
    assert_eq!(after.snapshot().get_cf(pages, b"a").unwrap().as_deref(), Some(&b"a"[..]));
    // Pages that the host writes without the index are in the next snapshot, too.
    db.put_cf(pages, b"b", b"").unwrap();
    assert!(near.freeze()?.snapshot().get_cf(pages, b"b").unwrap().is_some());
    Ok(())
}

#[test]
fn a_batch_that_is_not_written_leaves_nothing() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let (db, near) = attached::<u64>(directory.path(), &options::<u64>("4"))?;
    store(&db, &near, &[(b"kept", 0xff_u64)])?;
    let (mut staged, mut batch) = (Staged::new(), WriteBatch::default());
    staged.insert(b"new", 0xf0);
    staged.insert(b"kept", 0x0f);
    put_page(&db, &mut batch, b"new");
    let given_up = near.commit_with(&staged, batch, |ready| {
        assert_eq!((ready.report.inserted, ready.report.replaced), (1, 1));
        Err::<(), _>(Error::Cancelled)
    });
    assert!(matches!(given_up, Err(Error::Cancelled)));
    drop(staged);
    let mut refused = Staged::new();
    refused.insert(b"good", 1);
    refused.insert(b"", 1);
    let error = near.commit(&refused, WriteBatch::default(), Durability::Buffered).unwrap_err();
    assert!(matches!(error, Error::InvalidKey { len: 0, .. }), "{error}");
    let kept: Model<u64> = [(b"kept".to_vec(), 0xff)].into();
    assert_holds(near.index(), &kept, "after two batches that were not written");
    assert_eq!(page(&db, b"new"), None);
    // The dropped batches block no later write.
    store(&db, &near, &[(b"kept", 0xfe_u64)])?;
    drop((near, db));
    let (db, near) = attached::<u64>(directory.path(), &options::<u64>("4"))?;
    assert_holds(near.index(), &[(b"kept".to_vec(), 0xfe)].into(), "opened again");
    assert_eq!(page(&db, b"new"), None);
    Ok(())
}

#[test]
fn a_cut_log_loses_pages_and_their_entries_together() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let (place, settings) = (directory.path().join("host"), options::<u64>("4"));
    let (db, near) = attached::<u64>(&place, &settings)?;
    // Some documents existed before, and are replaced and removed.
    store(&db, &near, &[("0", 0_u64), ("1", 1), ("2", 2)])?;
    near.index().merge(&())?;
    near.index().flush()?;
    let mut states = vec![pages_and_documents(&db, &near)?];
    for round in 0..6_u64 {
        let (key, old) = (format!("{}", round % 4), format!("{}", (round + 2) % 4));
        let (mut staged, mut batch) = (Staged::new(), WriteBatch::default());
        staged.insert(key.as_bytes(), round * 0x0101_0101);
        staged.remove(old.as_bytes());
        put_page(&db, &mut batch, key.as_bytes());
        batch.delete_cf(db.cf_handle(PAGES).unwrap(), &old);
        near.commit(&staged, batch, Durability::Synced)?;
        states.push(pages_and_documents(&db, &near)?);
    }
    let copy = directory.path().join("copy");
    copy_directory(&place, &copy).unwrap();
    drop((near, db));
    let logs = files(&copy, |name| name.strip_suffix(".log").is_some());
    let log = logs.last().expect("the host has a log");
    let length = std::fs::metadata(log).unwrap().len();
    let mut found = BTreeSet::new();
    for cut in (0..=length).step_by(usize::try_from(length / 60).unwrap().max(1)) {
        let tried = directory.path().join(format!("cut at {cut}"));
        copy_directory(&copy, &tried).unwrap();
        let log = std::fs::File::options().write(true).open(tried.join(log.file_name().unwrap()));
        log.unwrap().set_len(cut).unwrap();
        let (db, near) = attached::<u64>(&tried, &settings)?;
        let state = pages_and_documents(&db, &near)?;
        let at = states.iter().position(|known| *known == state);
        found.insert(at.unwrap_or_else(|| panic!("cut at {cut} of {length}: {state:?}")));
        let report = near.index().check(&())?;
        assert_eq!(report.problems, Vec::<String>::new(), "cut at {cut} of {length}");
        drop((near, db));
        std::fs::remove_dir_all(tried).unwrap();
    }
    assert!(found.len() > 3, "the cuts led only to the states {found:?}");
    Ok(())
}

/// Returns the documents, after checking that the pages have the same keys.
fn pages_and_documents(db: &HostDb, near: &Attached<u64>) -> Result<Model<u64>> {
    let documents: Model<u64> = near.index().documents()?.collect::<Result<_>>()?;
    for key in ["0", "1", "2", "3"] {
        let (page, document) = (page(db, key.as_bytes()), documents.get(key.as_bytes()));
        assert_eq!(page.is_some(), document.is_some(), "one of page and document {key}");
    }
    Ok(documents)
}

#[test]
fn two_indexes_of_one_database_change_with_one_batch() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let (titles, texts) = (options::<u32>("4"), options::<u64>("10"));
    let mut families = Attached::<u32>::families("titles", &titles)?;
    families.extend(Attached::<u64>::families("texts", &texts)?);
    let db = host(directory.path(), families);
    let titles = Attached::<u32>::create(Arc::clone(&db), "titles", &titles)?;
    let texts = Attached::<u64>::create(Arc::clone(&db), "texts", &texts)?;
    let (mut title, mut text) = (Staged::new(), Staged::new());
    title.insert(b"page", 7);
    text.insert(b"page", 8);
    let both = |write: bool| {
        titles.commit_with(&title, WriteBatch::default(), |ready| {
            texts.commit_with(&text, ready.batch, |ready| {
                if write {
                    db.write_opt(ready.batch, &WriteOptions::default()).unwrap();
                }
                Ok::<(), Error>(())
            })
        })
    };
    both(false)?;
    assert!(titles.index().is_empty()? && texts.index().is_empty()?);
    both(true)?;
    assert_holds(titles.index(), &[(b"page".to_vec(), 7)].into(), "titles");
    assert_holds(texts.index(), &[(b"page".to_vec(), 8)].into(), "texts");
    // A write to one of them does not change the other.
    titles.index().remove(b"page")?;
    assert_eq!((titles.index().len()?, texts.index().len()?), (0, 1));
    Ok(())
}

#[test]
fn two_threads_store_no_near_duplicates() -> Result<()> {
    const DISTANCE: u32 = 3;
    let directory = tempfile::tempdir().unwrap();
    let (db, near) = attached::<u64>(directory.path(), &options::<u64>("4"))?;
    let rng = &mut Rng::new(5);
    let centres: Vec<u64> = (0..80).map(|_| rng.fingerprint()).collect();
    let stored: Vec<Vec<u8>> = thread::scope(|scope| {
        let offer = |thread: u64| {
            let (db, near, centres) = (&db, &near, &centres);
            move || {
                let rng = &mut Rng::new(thread);
                let mut stored = Vec::new();
                for (at, centre) in centres.iter().enumerate() {
                    let flips = rng.up_to(1);
                    let fingerprint = rng.flipped(*centre, flips);
                    let key = format!("{thread}-{at}").into_bytes();
                    let mut staged = Staged::new();
                    staged.insert_if_new(&key, fingerprint, DISTANCE);
                    let new = near.commit_with(&staged, WriteBatch::default(), |mut ready| {
                        let new = ready.report.refused.is_empty();
                        if new {
                            put_page(db, &mut ready.batch, &key);
                        }
                        db.write_opt(ready.batch, &WriteOptions::default()).unwrap();
                        Ok::<bool, Error>(new)
                    });
                    if new.unwrap() {
                        stored.push(key);
                    }
                }
                stored
            }
        };
        let threads = [1, 2].map(|thread| scope.spawn(offer(thread)));
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(stored.len(), centres.len(), "one page of each pair");
    assert_eq!(pairs_of(near.index(), DISTANCE)?, []);
    assert!(stored.iter().all(|key| page(&db, key).is_some()));
    assert!(near.index().check(&())?.problems.is_empty());
    Ok(())
}

#[test]
fn threads_that_add_other_documents_are_all_counted() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let (db, near) = attached::<u64>(directory.path(), &options::<u64>("4"))?;
    thread::scope(|scope| {
        for thread in 0..6_u64 {
            let (db, near) = (&db, &near);
            scope.spawn(move || {
                for at in 0..100 {
                    let key = (thread << 32 | at).to_be_bytes();
                    store(db, near, &[(key, at)]).unwrap();
                }
            });
        }
    });
    let report = near.index().check(&())?;
    assert_eq!((report.documents, report.fingerprints), (600, 100));
    assert_eq!(report.problems, Vec::<String>::new());
    Ok(())
}

fn error_of<T>(result: Result<T>) -> String {
    result.err().expect("it is refused").to_string()
}

#[test]
fn an_index_of_other_settings_is_refused_by_both_sides() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let settings = options::<u64>("4").distance(5).pipeline("words/1");
    let (db, near) = attached::<u64>(directory.path(), &settings)?;
    assert!(matches!(Attached::<u64>::open(Arc::clone(&db), "near"), Err(Error::Locked { .. })));
    drop(near);
    let with = |settings: &IndexOptions| {
        error_of(Attached::<u64>::open_or_create(Arc::clone(&db), "near", settings))
    };
    let made = "index was created with";
    assert_eq!(
        with(&settings.clone().distance(4)),
        format!("{made} distance \"5\", but \"4\" was requested")
    );
    let other = settings.clone().plan(Plan::named("10", 64)?);
    assert_eq!(with(&other), format!("{made} plan \"4\", but \"10\" was requested"));
    let other = settings.clone().pipeline("words/2");
    assert_eq!(with(&other), format!("{made} pipeline \"words/1\", but \"words/2\" was requested"));
    let width = Attached::<u32>::open(Arc::clone(&db), "near").unwrap_err();
    assert!(matches!(width, Error::WidthMismatch { stored: 64, wanted: 32 }), "{width}");
    let expected = IndexOptions::new().distance(6);
    let error = Attached::<u64>::open_with(Arc::clone(&db), "near", &expected).unwrap_err();
    assert!(matches!(error, Error::HeaderMismatch { what: "distance", .. }), "{error}");
    let error = Attached::<u64>::create(Arc::clone(&db), "near", &settings).unwrap_err();
    assert!(matches!(error, Error::AlreadyExists { .. }), "{error}");
    let near = Attached::<u64>::open(db, "near")?;
    assert_eq!((near.index().distance(), &*near.index().header().pipeline), (5, "words/1"));
    Ok(())
}

#[test]
fn families_that_do_not_fit_the_index_are_refused() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let (four, ten) = (options::<u64>("4"), options::<u64>("10"));
    let mut families = Attached::<u64>::families("near", &four)?;
    families.pop();
    let db = host(directory.path(), families);
    let error = Attached::<u64>::create(Arc::clone(&db), "near", &four).unwrap_err();
    let expected = "the database was opened without the column family hamdex.near.table003";
    assert_eq!(error.to_string(), expected);
    let error = error_of(Attached::<u64>::open(Arc::clone(&db), "other"));
    assert!(error.ends_with("the column family hamdex.other.meta"), "{error}");
    drop(db);
    let db = host(directory.path(), Attached::<u64>::families("near", &ten)?);
    let error = Attached::<u64>::open(Arc::clone(&db), "near").unwrap_err();
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
    let error = Attached::<u64>::create(Arc::clone(&db), "near", &four).unwrap_err();
    let expected = "index was created with number of tables \"4\", but \"10\" was requested";
    assert_eq!(error.to_string(), expected);
    db.put_cf(db.cf_handle("hamdex.near.docs").unwrap(), b"stray", b"").unwrap();
    let error = Attached::<u64>::create(db, "near", &ten).unwrap_err();
    assert!(matches!(error, Error::AlreadyExists { .. }), "{error}");
    for name in ["", "a.b", "a b", "ä", &"n".repeat(65)] {
        let error = Attached::<u64>::families(name, &four).err().expect("no name");
        assert!(matches!(error, Error::InvalidOption { name: "name", .. }), "{error}");
    }
    Ok(())
}

#[test]
fn calls_that_concern_the_whole_database_are_refused() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let (db, near) = attached::<u64>(&directory.path().join("host"), &options::<u64>("4"))?;
    store(&db, &near, &[("a", 1_u64), ("b", 3)])?;
    let copy = directory.path().join("copy");
    let refused = [
        near.index().backup(&copy).err(),
        near.index().checkpoint(&copy).err(),
        near.index().check_deep(&()).err(),
    ];
    for error in refused {
        assert!(matches!(error, Some(Error::Attached { .. })), "{error:?}");
    }
    assert!(!copy.exists());
    // Calls that concern only the index work, also in memory and without the host.
    assert!(near.index().load_resident(1 << 20)?);
    near.index().insert(b"c", 2)?;
    assert_eq!(near.index().merge(&())?.merged, 12);
    near.index().compact()?;
    assert_eq!(near.index().search(1)?.len(), 3);
    store(&db, &near, &[("a", u64::MAX)])?;
    assert_eq!(near.index().search(1)?.len(), 2, "memory follows a replaced document");
    drop(near);
    let read_only = IndexOptions::new().read_only(true);
    let error = Attached::<u64>::open_with(Arc::clone(&db), "near", &read_only).unwrap_err();
    assert!(matches!(error, Error::Attached { .. }), "{error}");
    Ok(())
}
