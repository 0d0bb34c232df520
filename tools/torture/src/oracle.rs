//! The oracle: a sorted map and a linear scan, which are always right.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fastrand::Rng;
use hamdex::plan::Plan;
use hamdex::{Index, IndexOptions, Match, Query, SearchPath};

use crate::report::{Finding, Verdict};

/// The documents that an index has to hold.
pub(crate) type Model = BTreeMap<Vec<u8>, u64>;

/// How long an index may take to come to rest.
const REST: Duration = Duration::from_secs(20);

/// Distances that searches are tried at.
const DISTANCES: [u32; 4] = [0, 3, 6, 12];

/// Compares the query with every document.
pub(crate) fn scan(model: &Model, query: u64, distance: u32) -> Vec<Match<u64>> {
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
pub(crate) fn documents(index: &Index<u64>) -> hamdex::Result<Model> {
    index.documents()?.collect()
}

/// Fails unless two sets of documents are equal; tells what is missing from what is too much.
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

/// Draws queries: stored fingerprints, some with flipped bits, and the borders of all ranges.
pub(crate) fn queries(rng: &mut Rng, model: &Model, count: usize) -> Vec<u64> {
    let stored: Vec<u64> = model.values().copied().collect();
    let mut queries = vec![0, !0, !0 ^ 1 << 40];
    while queries.len() < count + 3 {
        let mut query = rng.choice(&stored).copied().unwrap_or_else(|| rng.u64(..));
        for _ in 0..rng.u32(0..5) {
            query ^= 1 << rng.u32(0..64);
        }
        queries.push(query);
    }
    queries
}

/// Fails unless every search by every way equals the linear scan.
pub(crate) fn search(index: &Index<u64>, model: &Model, rng: &mut Rng, count: usize) -> Verdict {
    let reader = index.reader()?;
    for query in queries(rng, model, count) {
        let distance = *rng.choice(&DISTANCES).unwrap_or(&3);
        let expected = scan(model, query, distance);
        for way in [SearchPath::Tables, SearchPath::Scan] {
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

/// Fails unless an index is sound throughout and holds exactly these documents.
pub(crate) fn verify(index: &Index<u64>, model: &Model, rng: &mut Rng) -> Verdict {
    compare(&documents(index)?, model)?;
    if index.len()? != model.len() as u64 {
        let text = format!("{} documents are counted, {} are stored", index.len()?, model.len());
        return Err(Finding::wrong(text));
    }
    let report = index.check_deep(&())?;
    if report.problem_count > 0 {
        return Err(Finding::wrong(format!("check: {}", report.problems.join("; "))));
    }
    search(index, model, rng, 6)
}

/// Fails unless every table and posting of an index fits its documents.
pub(crate) fn sound(index: &Index<u64>) -> Verdict {
    let report = index.check(&())?;
    if report.problem_count > 0 {
        return Err(Finding::wrong(format!("check: {}", report.problems.join("; "))));
    }
    Ok(())
}

/// Options of an index that takes little memory.
pub(crate) fn small() -> IndexOptions {
    let plan = Plan::named("4", 64).expect("there is a plan of four tables");
    IndexOptions::new().plan(plan).memory(16 << 20)
}

/// Copies a directory as it is at one moment.
///
/// The engine of an open index clears away files behind the calls; a copy that it changed is
/// made again.
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

/// Names and lengths of all files.
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
