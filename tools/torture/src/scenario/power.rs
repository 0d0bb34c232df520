//! Lost power: unsynced data is cut off; synced calls must survive, and the rest is a prefix.
//!
//! The first part cuts one log at every offset. The second part runs all operations. After each, it
//! truncates every log to a random offset after its last sync, and replaces the seal by any of its
//! versions. `disk images` records every write and sync of a process, and opens what a disk may
//! hold at any moment of it ([`images`](super::images)); in a quarter of them one sync was a lie.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use fastrand::Rng;
use hamdex::any::AnyBuilder;
use hamdex::{Durability, Error, Fault};

use super::images::{Disk, Recording};
use crate::child::Running;
use crate::copies;
use crate::operation::{CYCLE, Operation, Size, fingerprint, operation};
use crate::oracle::{Model, compare, copy, documents, verify};
use crate::report::{Account, Finding, Limit, Verdict};
use crate::setup::{Handle, Setup};

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
    setup: Setup,
    name: PathBuf,
    log: Vec<u8>,
    /// After each call: the log's length, the documents, the seal.
    calls: Vec<(usize, Model, Vec<u8>)>,
}

/// Writes calls into one log, every second one synced.
fn write(directory: &Path, setup: Setup, rng: &mut Rng, calls: u64, size: u64) -> Verdict<Written> {
    let path = directory.join(format!("written-{calls}"));
    let index = setup.create(&path)?;
    // Reopening flushes the log of the creation, so that every cut can be opened.
    drop(index);
    let index = setup.open(&path)?;
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
            index.remove(&gone, durability)?;
            model.retain(|key, _| !gone.contains(key));
        } else {
            let batch: Vec<_> = (0..size)
                .map(|at| {
                    (format!("{:03}-{at:04}", call % 6).into_bytes(), fingerprint(setup, rng))
                })
                .collect();
            index.insert(&batch, durability)?;
            model.extend(batch);
        }
        name = note(&model, &mut written)?;
    }
    let stopped = directory.join(format!("stopped-{calls}"));
    copy(&path, &stopped)?;
    let log = fs::read(stopped.join(&name))?;
    Ok(Written { path: stopped, setup, name, log, calls: written })
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
        let index = self.setup.open(&copied)?;
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
    setup: Setup,
    seed: u64,
    next: u64,
    /// The documents after the last synced call and after each later one.
    states: Vec<Model>,
    /// The synced length of each log.
    synced: BTreeMap<PathBuf, u64>,
    seals: Vec<Vec<u8>>,
}

impl Rollback {
    fn begin(path: PathBuf, seed: u64) -> Verdict<(Self, Handle)> {
        let setup = Setup::drawn(seed).own();
        let index = setup.create(&path)?;
        let synced = logs(&path)?;
        let seals = vec![fs::read(path.join(SEAL))?];
        let states = vec![Model::new()];
        Ok((Self { path, setup, seed, next: 0, states, synced, seals }, index))
    }

    /// Makes the next call.
    fn step(&mut self, index: Handle) -> Verdict<Handle> {
        let call = operation(self.setup, self.seed, self.next, Size::Small);
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
        let index = self.setup.open(&copied)?;
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

/// Images of one recording.
const IMAGES: u64 = 30;

/// What a child has reported when the power was lost.
struct Reported {
    /// The index was created.
    ready: bool,
    /// The documents after each call, from none to those of the call in flight.
    states: Vec<Model>,
    /// The position of the last state that a synced call made durable.
    synced: usize,
    in_flight: Option<Operation>,
    /// Number and documents of the last acknowledged backup.
    backed_up: Option<(u32, Model)>,
}

impl Reported {
    fn of(setup: Setup, seed: u64, lines: &[String]) -> Self {
        let ready = lines.iter().any(|line| line == "ready");
        let (mut states, mut synced, mut backed_up) = (vec![Model::new()], 0, None);
        let (mut in_flight, mut backups) = (None, 0);
        for line in lines {
            if let Some(number) = line.strip_prefix("begin ") {
                let call = operation(setup, seed, number.parse().unwrap_or(0), Size::Small);
                let mut state = states.last().cloned().unwrap_or_default();
                call.apply(&mut state);
                states.push(state);
                in_flight = Some(call);
            } else if line.starts_with("done ")
                && let Some(call) = in_flight.take()
            {
                if call.is_synced() {
                    synced = states.len() - 1;
                }
                if matches!(call, Operation::BackUp(_) | Operation::Return(_)) {
                    backups += 1;
                    backed_up = states.last().map(|state| (backups, state.clone()));
                }
            }
        }
        Self { ready, states, synced, in_flight, backed_up }
    }
}

/// Opens an image; it must hold what was synced, and of later calls the first ones.
fn judge(setup: Setup, reported: &Reported, path: &Path, rng: &mut Rng) -> Verdict<&'static str> {
    let index = match setup.open(path) {
        Err(Error::NotFound { .. }) if !reported.ready => return Ok("before the creation"),
        Err(Error::BuildUnfinished { .. })
            if matches!(reported.in_flight, Some(Operation::Build(_))) =>
        {
            AnyBuilder::abandon(path)?;
            setup.open(path)?
        }
        Err(Error::RestoreUnfinished { .. })
            if matches!(reported.in_flight, Some(Operation::Return(_))) =>
        {
            copies::restore(path)?;
            setup.open(path)?
        }
        opened => opened?,
    };
    let found = documents(&index)?;
    let states = reported.states.get(reported.synced..).unwrap_or_default();
    let Some(at) = states.iter().rposition(|state| *state == found) else {
        if let Some(oldest) = states.first() {
            compare(&found, oldest)?;
        }
        return Err(Finding::wrong("the documents match no state"));
    };
    verify(&index, &found, rng)?;
    drop(index);
    if let Some((id, held)) = reported.backed_up.as_ref().filter(|_| rng.bool()) {
        copies::held(setup, path, *id, held, rng)?;
    }
    Ok(if at + 1 == states.len() { "with every call" } else { "without unsynced ones" })
}

/// Opens an image of a disk that lied once: damage is reported, or the last calls are missing.
fn judge_lie(
    setup: Setup,
    reported: &Reported,
    path: &Path,
    rng: &mut Rng,
) -> Verdict<&'static str> {
    const FOUND: &str = "lies reported as damage";
    const LOST: &str = "lies that cost the last calls";
    let index = match setup.open(path) {
        Err(Error::NotFound { .. } | Error::RestoreUnfinished { .. }) => return Ok(LOST),
        Err(Error::BuildUnfinished { .. }) => {
            match AnyBuilder::abandon(path) {
                Err(error) if error.fault() == Fault::Damage => return Ok(FOUND),
                abandoned => abandoned?,
            };
            setup.open(path)
        }
        opened => opened,
    };
    let index = match index {
        Err(error) if error.fault() == Fault::Damage => return Ok(FOUND),
        opened => opened?,
    };
    let sound = index.check_deep()?.problem_count == 0;
    let found = match documents(&index) {
        Err(error) if error.fault() == Fault::Damage && !sound => return Ok(FOUND),
        found => found?,
    };
    if !sound {
        return Ok(FOUND);
    }
    let Some(at) = reported.states.iter().rposition(|state| *state == found) else {
        return Err(Finding::wrong("the documents match no state, and check --deep finds nothing"));
    };
    verify(&index, &found, rng)?;
    Ok(if at < reported.synced { LOST } else { "lies without effect" })
}

/// Records a child that makes two cycles of calls.
fn record(directory: &Path, setup: Setup, seed: u64) -> Verdict<Option<Recording>> {
    let (place, file) = (directory.join("recorded"), directory.join("record"));
    // The names of index and backups are in a directory of the record.
    fs::create_dir(&place)?;
    let path = place.join("index");
    let below = place.display().to_string();
    let variables =
        [("HAMDEX_IO_BELOW", below.clone()), ("HAMDEX_IO_LOG", file.display().to_string())];
    let arguments = [
        format!("--seed={seed}"),
        "--from=0".into(),
        format!("--count={}", 2 * CYCLE),
        "--own".into(),
    ];
    let mut running = Running::start_with(&variables, "crash", &path, &arguments)?;
    while running.line()?.is_some() {}
    running.end()?;
    debug_assert!(!setup.attached, "the child was started with --own");
    let recording = if file.exists() { Some(Recording::read(&file, &below)?) } else { None };
    fs::remove_dir_all(&place)?;
    // Without the shim there is none.
    let _ = fs::remove_file(&file);
    Ok(recording)
}

/// Judges images of a recording.
fn rebuild(
    directory: &Path,
    seed: u64,
    limit: Limit,
    account: &mut Account,
    rng: &mut Rng,
) -> Verdict {
    let setup = Setup::drawn(seed).own();
    let Some(recording) = record(directory, setup, seed)? else {
        account.count("not possible here");
        account.tried();
        return Ok(());
    };
    let syncs = recording.syncs();
    for _ in 0..IMAGES {
        if !limit.goes_on(account) {
            break;
        }
        account.tried();
        let place = directory.join(format!("image-{}", account.tries()));
        let path = place.join("index");
        let at = rng.usize(0..=recording.len());
        let lie = rng.choice(&syncs).copied().filter(|lie| *lie < at && rng.u32(0..4) == 0);
        let disk: Disk = recording.replay(at, lie);
        let reported = Reported::of(setup, seed, &disk.lines);
        let context = format!("event {at} of {}, sync {lie:?} a lie", recording.len());
        fs::create_dir(&place)?;
        disk.write(&place.display().to_string(), rng)?;
        let outcome = match lie {
            None => judge(setup, &reported, &path, rng),
            Some(_) => judge_lie(setup, &reported, &path, rng),
        };
        account.count(outcome.map_err(|found| found.within(&context))?);
        fs::remove_dir_all(&place)?;
    }
    Ok(())
}

/// Rebuilds disks until the limit.
pub(crate) fn run_images(directory: &Path, seed: u64, limit: Limit) -> Account {
    let mut account = Account::new("disk images");
    let rng = &mut Rng::with_seed(seed);
    let mut life = 0;
    while limit.goes_on(&account) {
        life += 1;
        let setup = Setup::drawn(seed + life).own();
        let outcome = rebuild(directory, seed + life, limit, &mut account, rng);
        let context = format!("disk images, seed {seed}, recording {life} ({setup})");
        account.judge(outcome.map_err(|found| found.within(&context)));
    }
    account.end();
    account
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
        let setup = Setup::drawn(seed + calls).own();
        let written = match write(directory, setup, rng, calls, size) {
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
        let setup = Setup::drawn(seed + life).own();
        let context = format!("lost power, seed {seed}, index {life} ({setup})");
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
