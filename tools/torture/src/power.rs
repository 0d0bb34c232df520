//! Lost power: unsynced data is cut off; synced calls must survive, and the rest is a prefix.
//!
//! RocksDB syncs its MANIFEST and its table files before it relies on them, so a power loss affects
//! only the logs and the seal. The first part cuts one log at every offset. The second part runs
//! all operations. After each, it truncates every log to a random offset after its last sync, and
//! replaces the seal by any of its versions.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use fastrand::Rng;
use hamdex::{Durability, Index};

use crate::effort::Limit;
use crate::operation::{CYCLE, Size, fingerprint, open, operation};
use crate::oracle::{Model, compare, copy, documents, small, verify};
use crate::report::{Account, Finding, Verdict};

const SEAL: &str = "hamdex.seal";

/// Bytes that a disk writes atomically.
const PAGE: usize = 4096;

/// Returns the names and lengths of the logs.
fn logs(path: &Path) -> std::io::Result<BTreeMap<PathBuf, u64>> {
    let mut logs = BTreeMap::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let name = PathBuf::from(entry.file_name());
        if name.extension().is_some_and(|extension| extension == "log") {
            // A log that is deleted meanwhile is obsolete.
            match entry.metadata() {
                Ok(metadata) => drop(logs.insert(name, metadata.len())),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(logs)
}

/// A log, written call by call.
struct Written {
    /// The directory as after a power loss.
    path: PathBuf,
    name: PathBuf,
    log: Vec<u8>,
    /// After each call: the log's length, the documents, the seal.
    calls: Vec<(usize, Model, Vec<u8>)>,
}

/// Writes calls into one log, every second one synced.
fn write(directory: &Path, rng: &mut Rng, calls: u64, size: u64) -> Verdict<Written> {
    let path = directory.join(format!("written-{calls}"));
    let index = Index::<u64>::create(&path, &small())?;
    // Reopening flushes the log of the creation, so that every cut can be opened.
    drop(index);
    let index = open(&path)?;
    let mut model = Model::new();
    let mut written = Vec::new();
    let note = |model: &Model, written: &mut Vec<_>| -> Verdict<PathBuf> {
        let logs = logs(&path)?;
        let Some((name, length)) = logs.iter().next_back() else {
            return Err(Finding::wrong("there is no log"));
        };
        let length = usize::try_from(*length).unwrap_or(usize::MAX);
        written.push((length, model.clone(), fs::read(path.join(SEAL))?));
        Ok(name.clone())
    };
    let mut name = note(&model, &mut written)?;
    for call in 0..calls {
        let durability = if call % 2 == 0 { Durability::Synced } else { Durability::Buffered };
        if call % 5 == 4 {
            let gone: Vec<_> = model.keys().step_by(3).cloned().collect();
            index.remove_batch(&gone, durability)?;
            model.retain(|key, _| !gone.contains(key));
        } else {
            let batch: Vec<_> = (0..size)
                .map(|at| (format!("{:03}-{at:04}", call % 6).into_bytes(), fingerprint(rng)))
                .collect();
            index.insert_batch(&batch, durability)?;
            model.extend(batch);
        }
        name = note(&model, &mut written)?;
    }
    let stopped = directory.join(format!("stopped-{calls}"));
    copy(&path, &stopped)?;
    let log = fs::read(stopped.join(&name))?;
    Ok(Written { path: stopped, name, log, calls: written })
}

impl Written {
    /// Opens a copy whose log is cut to `length` and followed by `torn` bytes.
    fn cut(&self, directory: &Path, length: usize, torn: &[u8], rng: &mut Rng) -> Verdict {
        let Some(beginning) = self.log.get(..length) else {
            return Err(Finding::wrong("the cut is behind the end"));
        };
        let copied = directory.join("cut");
        copy(&self.path, &copied)?;
        fs::write(copied.join(&self.name), [beginning, torn].concat())?;
        // A seal is written after the sync that it records, so it cannot be newer than the log.
        let there = self.calls.partition_point(|(end, ..)| *end <= length);
        let Some((_, expected, _)) = there.checked_sub(1).and_then(|at| self.calls.get(at)) else {
            return Err(Finding::wrong("the first call is there before the log begins"));
        };
        let version = rng.usize(0..there);
        if let Some((.., seal)) = self.calls.get(version) {
            fs::write(copied.join(SEAL), seal)?;
        }
        let index = open(&copied)?;
        compare(&documents(&index)?, expected)?;
        if rng.u32(0..8) == 0 {
            verify(&index, expected, rng)?;
        }
        drop(index);
        fs::remove_dir_all(&copied)?;
        Ok(())
    }
}

/// An index that runs all operations and is checked after a simulated power loss at each.
struct Rollback {
    path: PathBuf,
    seed: u64,
    next: u64,
    /// The documents after the last synced call and after each later one.
    states: Vec<Model>,
    /// The synced length of each log.
    synced: BTreeMap<PathBuf, u64>,
    seals: Vec<Vec<u8>>,
}

impl Rollback {
    fn begin(path: PathBuf, seed: u64) -> Verdict<(Self, Index<u64>)> {
        let index = Index::create(&path, &small())?;
        let synced = logs(&path)?;
        let seals = vec![fs::read(path.join(SEAL))?];
        Ok((Self { path, seed, next: 0, states: vec![Model::new()], synced, seals }, index))
    }

    /// Makes the next call.
    fn step(&mut self, index: Index<u64>) -> Verdict<Index<u64>> {
        let call = operation(self.seed, self.next, Size::Small);
        let index = call.run(index, &self.path)?;
        let mut state = self.states.last().cloned().unwrap_or_default();
        call.apply(&mut state);
        if call.is_synced() {
            self.states.clear();
            self.synced = logs(&self.path)?;
        }
        self.states.push(state);
        self.seals.push(fs::read(self.path.join(SEAL))?);
        self.next += 1;
        Ok(index)
    }

    /// Simulates a power loss in a copy.
    fn lose(&self, directory: &Path, rng: &mut Rng) -> Verdict<&'static str> {
        let copied = directory.join("rolled-back");
        copy(&self.path, &copied)?;
        for (name, length) in logs(&copied)? {
            let kept = self.synced.get(&name).copied().unwrap_or(0).min(length);
            let kept = match rng.u32(0..3) {
                0 => kept,
                1 => length,
                _ => rng.u64(kept..=length),
            };
            fs::File::options().write(true).open(copied.join(&name))?.set_len(kept)?;
        }
        if let Some(seal) = rng.choice(&self.seals) {
            fs::write(copied.join(SEAL), seal)?;
        }
        let index = open(&copied)?;
        let found = documents(&index)?;
        let Some(at) = self.states.iter().rposition(|state| *state == found) else {
            if let Some(oldest) = self.states.first() {
                compare(&found, oldest)?;
            }
            return Err(Finding::wrong("the documents match no state"));
        };
        verify(&index, &found, rng)?;
        drop(index);
        fs::remove_dir_all(&copied)?;
        Ok(if at + 1 == self.states.len() { "with every call" } else { "without unsynced ones" })
    }
}

/// Cuts and rolls back until the limit.
///
/// `stride` is the number of bytes between two cuts. `limit` applies to the roll-backs; if it is a
/// time, the cuts take half of it.
pub(crate) fn run(directory: &Path, seed: u64, limit: Limit, stride: usize) -> Account {
    let mut account = Account::new("lost power");
    let cuts = match limit {
        Limit::Tries(_) => Limit::Tries(u64::MAX),
        Limit::Time(time) => Limit::Time(time / 2),
    };
    let rng = &mut Rng::with_seed(seed);
    for (calls, size, step) in [(14, 3, stride), (30, 60, PAGE)] {
        let written = match write(directory, rng, calls, size) {
            Ok(written) => written,
            Err(finding) => {
                account.find(finding.within(&format!("lost power, seed {seed}, writing")));
                continue;
            }
        };
        let mut lengths: Vec<_> = (0..=written.log.len()).step_by(step.max(1)).collect();
        lengths.push(written.log.len());
        // In random order, because the time may not suffice for all.
        rng.shuffle(&mut lengths);
        for length in lengths {
            if !cuts.goes_on(&account) {
                break;
            }
            account.tried();
            // The rest of the last page may hold anything, most likely zeros.
            let rest = (length.next_multiple_of(PAGE)).min(written.log.len()) - length;
            let torn = if rng.u32(0..4) == 0 { vec![0; rest] } else { Vec::new() };
            let context = format!("lost power, seed {seed}, log of {calls} calls cut to {length}");
            let outcome = written.cut(directory, length, &torn, rng);
            if account.judge(outcome.map_err(|found| found.within(&context))) {
                account.count("logs cut");
            }
        }
    }
    let limit = match limit {
        Limit::Tries(tries) => Limit::Tries(account.tries() + tries),
        Limit::Time(_) => limit,
    };
    let mut life = 0;
    while limit.goes_on(&account) {
        life += 1;
        let path = directory.join(format!("power-{life}"));
        let outcome = roll_back(directory, path, seed + life, limit, &mut account, rng);
        let context = format!("lost power, seed {seed}, index {life}");
        account.judge(outcome.map_err(|found| found.within(&context)));
    }
    account.end();
    account
}

/// Runs one index through two cycles of operations.
fn roll_back(
    directory: &Path,
    path: PathBuf,
    seed: u64,
    limit: Limit,
    account: &mut Account,
    rng: &mut Rng,
) -> Verdict {
    let (mut life, mut index) = Rollback::begin(path, seed)?;
    while life.next < 2 * CYCLE && limit.goes_on(account) {
        index = life.step(index)?;
        account.tried();
        let outcome = life
            .lose(directory, rng)
            .map_err(|found| found.within(&format!("after operation {}", life.next - 1)))?;
        account.count(outcome);
    }
    drop(index);
    fs::remove_dir_all(&life.path)?;
    Ok(())
}
