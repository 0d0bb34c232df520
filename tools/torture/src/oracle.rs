//! The oracle: a sorted map and a linear scan.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fastrand::Rng;
use hamdex::any::AnyReader;
use hamdex::{Match, Query, SearchPath};

use crate::report::{Finding, Verdict};
use crate::setup::{Handle, Setup};

/// The expected documents of an index.
pub(crate) type Model = BTreeMap<Vec<u8>, u128>;

/// Maximum time to wait until the files of an index no longer change.
const REST: Duration = Duration::from_secs(20);

/// Distances of searches.
const DISTANCES: [u32; 4] = [0, 3, 6, 12];

/// The largest distance that tables are asked for. A plan made for less needs millions of ranges
/// beyond it, and `Auto` scans.
const TABLES_MOST: u32 = 6;

/// Compares the query with every document.
pub(crate) fn scan(model: &Model, query: u128, distance: u32) -> Vec<Match<u128>> {
    let mut matches: Vec<_> = model
        .iter()
        .map(|(key, &fingerprint)| Match {
            key: key.clone(),
            fingerprint,
            distance: (fingerprint ^ query).count_ones(),
            similarity: None,
        })
        .filter(|found| found.distance <= distance)
        .collect();
    matches.sort_by(|a, b| (a.distance, &a.key).cmp(&(b.distance, &b.key)));
    matches
}

/// Reads all documents of an index.
pub(crate) fn documents(index: &Handle) -> hamdex::Result<Model> {
    index.reader()?.documents()?.collect()
}

/// Fails unless two sets of documents are equal; distinguishes missing and wrong documents.
pub(crate) fn compare(found: &Model, expected: &Model) -> Verdict {
    let gone = expected.iter().filter(|(key, _)| !found.contains_key(*key)).count();
    if gone > 0 {
        return Err(Finding::lost(format!("{gone} of {} documents are gone", expected.len())));
    }
    if found != expected {
        let foreign = found.iter().filter(|(key, f)| expected.get(*key) != Some(f)).count();
        return Err(Finding::wrong(format!("{foreign} documents are not what was written")));
    }
    Ok(())
}

/// Draws queries: stored fingerprints with flipped bits, and the borders of ranges.
pub(crate) fn queries(setup: Setup, rng: &mut Rng, model: &Model, count: usize) -> Vec<u128> {
    let stored: Vec<u128> = model.values().copied().collect();
    let mut queries = vec![0, setup.narrow(!0), setup.narrow(!0 ^ 1 << 20)];
    while queries.len() < count + 3 {
        let any = setup.narrow(rng.u128(..));
        let mut query = rng.choice(&stored).copied().unwrap_or(any);
        for _ in 0..rng.u32(0..5) {
            query ^= 1 << rng.u32(0..setup.bits);
        }
        queries.push(query);
    }
    queries
}

/// Fails unless searches by every path equal the linear scan.
pub(crate) fn search(index: &Handle, model: &Model, rng: &mut Rng, count: usize) -> Verdict {
    searches(index.setup, &index.reader()?, model, rng, count)
}

fn searches(
    setup: Setup,
    reader: &AnyReader,
    model: &Model,
    rng: &mut Rng,
    count: usize,
) -> Verdict {
    for query in queries(setup, rng, model, count) {
        let distance = setup.at_most(*rng.choice(&DISTANCES).unwrap_or(&3));
        let expected = scan(model, query, distance);
        for way in [SearchPath::Auto, SearchPath::Tables, SearchPath::Scan] {
            if way == SearchPath::Tables && distance > TABLES_MOST {
                continue;
            }
            let found = reader.search(Query::new(query).distance(distance).path(way))?;
            if found != expected {
                return Err(Finding::wrong(format!(
                    "search for {query:016x} at {distance} by {way:?}: {} matches, {} by the scan",
                    found.len(),
                    expected.len()
                )));
            }
        }
    }
    Ok(())
}

/// Fails unless an index passes all checks and holds exactly these documents.
pub(crate) fn verify(index: &Handle, model: &Model, rng: &mut Rng) -> Verdict {
    verify_repaired(index, model, rng, 0)
}

/// Does what [`verify`] does, but some documents may lack their features.
pub(crate) fn verify_repaired(
    index: &Handle,
    model: &Model,
    rng: &mut Rng,
    mut without_features: u64,
) -> Verdict {
    let reader = index.reader()?;
    compare(&reader.documents()?.collect::<hamdex::Result<_>>()?, model)?;
    if reader.len() != model.len() as u64 {
        let text = format!("{} documents are counted, {} are stored", reader.len(), model.len());
        return Err(Finding::wrong(text));
    }
    for (key, fingerprint) in model.iter().skip(rng.usize(0..7)).step_by(7) {
        let found = reader.features(key)?;
        if found != index.setup.features_of(*fingerprint) {
            if found.is_none() && without_features > 0 {
                without_features -= 1;
                continue;
            }
            let text = format!("{} has other features", key.escape_ascii());
            return Err(Finding::wrong(text));
        }
    }
    let report = index.check_deep()?;
    if report.problem_count > 0 {
        return Err(Finding::wrong(format!("check: {}", report.problems.join("; "))));
    }
    searches(index.setup, &reader, model, rng, 6)
}

/// Copies a directory in a consistent state.
///
/// RocksDB deletes files in the background; if files changed during the copy, it is repeated.
pub(crate) fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    let deadline = Instant::now() + REST;
    loop {
        let before = sizes(from);
        let copied = copy_once(from, to);
        let same = before.as_ref().ok().zip(sizes(from).ok()).is_some_and(|(a, b)| *a == b);
        match copied {
            Ok(()) if same => return Ok(()),
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => std::fs::remove_dir_all(to)?,
        }
        if Instant::now() > deadline {
            return Err(std::io::Error::other("the index never comes to rest"));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Returns the names and lengths of all files.
fn sizes(directory: &Path) -> std::io::Result<BTreeMap<PathBuf, u64>> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            files.extend(sizes(&entry.path())?);
        } else {
            files.insert(entry.path(), entry.metadata()?.len());
        }
    }
    Ok(files)
}

fn copy_once(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_once(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
