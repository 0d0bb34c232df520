//! Indexes that an earlier version stored: they open and answer, or are refused by name.
//!
//! The archives in `tests/fixtures/format-1`, `-2`, `-3` and `-5` are never rewritten. A version that changes the format
//! adds a folder of archives, and either reads the old ones or refuses them with
//! [`Error::FormatVersion`]. `cargo nextest run --run-ignored only years` writes the missing
//! archives of the present format.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use hamdex::build::{BuildOptions, Builder};
use hamdex::inspect::Header;
use hamdex::plan::Plan;
use hamdex::verify::FeatureSet;
use hamdex::verify::Verification;
use hamdex::{Durability, Error, Index, IndexOptions, NewDocument, Pipeline, Query, Result};

use crate::architecture::root;
use crate::pipelines::own_tables;
use crate::support::{Model, Rng, assert_holds, scan};

const POSTS: [(&[u8], &str); 6] = [
    (b"saucer", "美国51区雇员称内部有9架飞碟,曾看见灰色外星人"),
    (b"saucer again", "美国51区雇员称:内部有9架飞碟,曾看见灰色的外星人!"),
    (b"call", "你妈妈喊你回家吃饭哦,回家罗回家罗"),
    (b"rain", "it will rain tomorrow in the hills behind the town"),
    (b"rain again", "it will rain tomorrow, in the hills behind the town!"),
    (b"paper", "海量指纹的去重算法和快速查找办法"),
];

/// Unicode version of the compiler that wrote the fixture; another one may refuse the text.
const CASE_THEN: (u8, u8, u8) = (17, 0, 0);

/// Returns the archive of an index. Packs raise the number of its format by one.
fn stored(format: u32, name: &str) -> PathBuf {
    root().join(format!("tests/fixtures/format-{format}")).join(name).with_extension("tar")
}

fn tar(action: &str, archive: &Path, directory: &Path, what: &str) {
    let mut command = Command::new("tar");
    command.arg(action).arg(archive).arg("-C").arg(directory).arg(what);
    assert!(command.status().unwrap().success(), "{command:?}");
}

/// Unpacks a stored index; returns its directory and its path.
fn unpacked(format: u32, name: &str) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    tar("-xf", &stored(format, name), directory.path(), name);
    let index = directory.path().join(name);
    (directory, index)
}

fn pipeline() -> Result<Pipeline> {
    Pipeline::new(&own_tables(POSTS.map(|(_, text)| text))?)
}

/// Fingerprints around five centres, some of them equal; two thirds are built, the others inserted.
fn numbers() -> Model<u128> {
    let mut rng = Rng::new(128);
    let centres: Vec<u128> = (0..5).map(|_| rng.fingerprint()).chain([0, u128::MAX]).collect();
    (0..300_u32)
        .map(|number| {
            let (centre, flips) = (*rng.pick(&centres), rng.up_to(6));
            (number.to_be_bytes().to_vec(), rng.flipped(centre, flips))
        })
        .collect()
}

/// The documents that were not removed: nine of ten.
fn numbers_left() -> Model<u128> {
    numbers().into_iter().filter(|(key, _)| key[3] % 10 != 0).collect()
}

#[test]
fn an_index_of_fingerprints_of_an_earlier_format_is_searched_checked_and_written() -> Result<()> {
    for format in [1, 3, 5] {
        fingerprints_of(format)?;
    }
    Ok(())
}

fn fingerprints_of(format: u32) -> Result<()> {
    let (_directory, path) = unpacked(format, "raw-128");
    let header = Header::read(&path)?;
    assert_eq!((header.format, header.bits, header.distance), (format, 128, 6));
    assert_eq!((header.plan.as_str(), header.pipeline.as_str()), ("4", ""));
    let mut model = numbers_left();
    let reading = Index::<u128>::open_read_only(&path)?;
    assert_holds(&reading, &model, "read only");
    let entries = reading.stats(&())?.delta_entries;
    assert!(entries > 0, "it has delta entries");
    let index = Index::<u128>::open(&path)?;
    assert_eq!((index.header().format, index.stats(&())?.delta_entries), (7, entries));
    assert_holds(&index, &model, "as it was stored");
    for query in model.values().step_by(7) {
        for distance in [0, 6, 20] {
            let found = index.search(Query::new(*query).distance(distance))?;
            assert_eq!(found, scan(&model, *query, distance));
        }
    }
    assert_eq!(index.check_deep(&())?.problem_count, 0);
    index.insert(b"now", 77)?;
    assert!(index.remove(&[0, 0, 0, 1])?);
    model.insert(b"now".to_vec(), 77);
    model.remove(&[0, 0, 0, 1][..]);
    index.merge(&())?;
    drop(index);
    let index = Index::<u128>::open(&path)?;
    assert_holds(&index, &model, "written by this version");
    assert_eq!(index.check(&())?.problem_count, 0);
    Ok(())
}

/// Row numbers with few distinct fingerprints, as a build packs them.
fn packed_rows() -> Vec<(Vec<u8>, u64)> {
    let mut rng = Rng::new(64);
    let centres: Vec<u64> = (0..5).map(|_| rng.fingerprint()).chain([0, u64::MAX]).collect();
    let mut fingerprint = || {
        let (centre, flips) = (*rng.pick(&centres), rng.up_to(4));
        rng.flipped(centre, flips)
    };
    (0..400_u64).map(|row| (row.to_be_bytes().to_vec(), fingerprint())).collect()
}

/// The rows that remain: one in seven was removed, and the last hundred were inserted.
fn rows_left() -> Model<u64> {
    packed_rows().into_iter().filter(|(key, _)| key[7] % 7 != 0).collect()
}

#[test]
fn an_index_of_row_numbers_of_an_earlier_format_is_searched_checked_and_written() -> Result<()> {
    for (folder, format) in [(2, 2), (3, 4), (5, 6)] {
        rows_of(folder, format)?;
    }
    Ok(())
}

fn rows_of(folder: u32, format: u32) -> Result<()> {
    let (_directory, path) = unpacked(folder, "rows-64");
    let header = Header::read(&path)?;
    assert_eq!((header.format, header.bits, header.distance), (format, 64, 3));
    let mut model = rows_left();
    assert_holds(&Index::<u64>::open_read_only(&path)?, &model, "read only");
    let index = Index::<u64>::open(&path)?;
    assert_eq!(index.header().format, 8);
    for query in model.values().step_by(7) {
        for distance in [0, 3, 8] {
            let found = index.search(Query::new(*query).distance(distance))?;
            assert_eq!(found, scan(&model, *query, distance));
        }
    }
    assert_eq!(index.check_deep(&())?.problem_count, 0);
    let row = 9_u64.to_be_bytes();
    assert!(index.remove(&row)?);
    index.insert(&[0; 8], 77)?;
    model.remove(&row[..]);
    model.insert(vec![0; 8], 77);
    drop(index);
    let index = Index::<u64>::open(&path)?;
    assert_holds(&index, &model, "written by this version");
    Ok(())
}

#[test]
fn an_index_of_texts_of_format_1_is_searched_by_text_or_refused_by_name() -> Result<()> {
    let (_directory, path) = unpacked(1, "text-64");
    let index = Index::<u64>::open(&path)?;
    assert_eq!(index.check_deep(&())?.problem_count, 0);
    assert_eq!(index.len()?, POSTS.len() as u64);
    assert!(index.header().keeps_features);
    let saucer = index.get(b"saucer")?.unwrap();
    let features = index.features(b"saucer")?.unwrap();
    let query = Query::new(saucer).verify(Verification::Jaccard(0.5), features);
    let near: Vec<_> = index.search(query)?.into_iter().map(|found| found.key).collect();
    assert_eq!(near, [&b"saucer"[..], b"saucer again"]);
    let stored = match index.pipeline() {
        Ok(stored) => stored.expect("made with a pipeline"),
        Err(Error::HeaderMismatch { what: "pipeline", .. })
            if char::UNICODE_VERSION != CASE_THEN =>
        {
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    for (key, text) in POSTS {
        let sketch = stored.fingerprint::<u64>(text).unwrap();
        assert_eq!(index.get(key)?, Some(sketch.fingerprint), "{text}");
        let features = FeatureSet::of_text(&stored, text).encode();
        assert_eq!(index.features(key)?, Some(features), "{text}");
    }
    Ok(())
}

#[test]
#[ignore = "writes the fixture where it is missing; see the module"]
fn years_are_prepared_for() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    if !stored(7, "raw-128").exists() {
        let raw = directory.path().join("raw-128");
        let options = IndexOptions::new().plan(Plan::named("4", 128)?).distance(6).memory(16 << 20);
        let numbers: Vec<_> = numbers().into_iter().collect();
        let (bulk, rest) = numbers.split_at(200);
        let mut builder = Builder::<u128>::create(&raw, &options, &BuildOptions::new())?;
        for ((key, fingerprint), origin) in bulk.iter().zip(0..) {
            builder.push(key, *fingerprint, origin)?;
        }
        builder.finish(&(), &mut |_, _| ())?;
        let index = Index::<u128>::open(&raw)?;
        index.insert_batch(rest, Durability::Synced)?;
        let gone: Vec<_> =
            numbers.iter().map(|(key, _)| key).filter(|key| key[3] % 10 == 0).collect();
        index.remove_batch(&gone, Durability::Synced)?;
    }
    if !stored(7, "rows-64").exists() {
        let rows = directory.path().join("rows-64");
        let options = IndexOptions::new().memory(16 << 20);
        let (bulk, rest) = (packed_rows(), packed_rows().split_off(300));
        let mut builder = Builder::<u64>::create(&rows, &options, &BuildOptions::new())?;
        for ((key, fingerprint), origin) in bulk.iter().take(300).zip(0..) {
            builder.push(key, *fingerprint, origin)?;
        }
        builder.finish(&(), &mut |_, _| ())?;
        let index = Index::<u64>::open(&rows)?;
        index.insert_batch(&rest, Durability::Synced)?;
        let gone: Vec<_> = bulk.iter().map(|(key, _)| key).filter(|key| key[7] % 7 == 0).collect();
        index.remove_batch(&gone, Durability::Synced)?;
    }
    if !stored(7, "text-64").exists() {
        let text = directory.path().join("text-64");
        let pipeline = pipeline()?;
        let options =
            IndexOptions::new().text(&pipeline).keep_features(true).distance(12).memory(16 << 20);
        let index = Index::<u64>::create(&text, &options)?;
        for (key, post) in POSTS {
            let features = FeatureSet::of_text(&pipeline, post).encode();
            let fingerprint = pipeline.fingerprint::<u64>(post).unwrap().fingerprint;
            let document = NewDocument::new(key, fingerprint).features(&features);
            index.insert_batch(&[document], Durability::Synced)?;
        }
        index.flush()?;
    }
    for name in ["raw-128", "rows-64", "text-64"] {
        let folder = directory.path().join(name);
        if !folder.exists() {
            continue;
        }
        let names = |start: &str| {
            let entries = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
            let of =
                |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(start);
            let mut found: Vec<PathBuf> = entries.filter(of).collect();
            found.sort();
            found
        };
        // RocksDB's text logs, and the options of earlier openings.
        let mut needless = names("OPTIONS-");
        needless.pop();
        needless.extend(names("LOG"));
        for path in needless {
            fs::remove_file(path).unwrap();
        }
        fs::create_dir_all(stored(7, name).parent().unwrap()).unwrap();
        tar("-cf", &stored(7, name), directory.path(), name);
    }
    Ok(())
}
