//! Damage: changes one file of an index; every call must report an error or the right answer.
//!
//! A child does the work, so that aborts and hangs are detected; after one, the parent continues
//! with the next run.

use std::fs;
use std::path::{Path, PathBuf};

use fastrand::Rng;
use hamdex::any::AnyIndex;
use hamdex::build::{BuildOptions, repair_any};
use hamdex::inspect::Header;
use hamdex::{Durability, Error, Fault, Query, SearchPath, each_width};

use super::damage_backup;
use crate::bases::{BASES, Base};
use crate::child::{End, Running, send};
use crate::oracle::{self, Model};
use crate::report::{self, Account, Finding, Limit, Verdict};
use crate::setup::Setup;

/// Number of runs of one child.
const RUNS: u64 = 40;

/// Memory of a child in KiB: a length that damage has made large must not be allocated.
const MEMORY: u64 = 1 << 20;

/// The task of a child.
#[derive(Debug, clap::Args)]
pub(crate) struct Task {
    #[arg(long)]
    seed: u64,
    #[arg(long)]
    from: u64,
    #[arg(long)]
    to: u64,
}

/// The outcome of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// Opening failed.
    Refused,
    /// Opening succeeded, and reading the damaged part failed.
    Noticed,
    /// Every answer was right, and `check --deep` found the damage.
    Checked,
    /// The backup was not restored.
    NotRestored,
    /// The damage affected no stored data.
    Harmless,
}

impl Outcome {
    const ALL: [(Self, &str); 5] = [
        (Self::Refused, "refused at opening"),
        (Self::Noticed, "refused at reading"),
        (Self::Checked, "right, and found by check --deep"),
        (Self::NotRestored, "refused at restoring"),
        (Self::Harmless, "right, nothing stored was hit"),
    ];

    fn words(self) -> &'static str {
        Self::ALL.iter().find(|(outcome, _)| *outcome == self).map_or("", |(_, words)| words)
    }
}

/// Damages copies one after the other and reports each outcome, in a child.
pub(crate) fn child(directory: &Path, task: &Task) -> Verdict {
    let bases = BASES.map(|base| (base, base.setup(task.seed), base.model(task.seed)));
    for run in task.from..task.to {
        let rng = &mut Rng::with_seed(task.seed.wrapping_mul(1_000_003).wrapping_add(run));
        let place = directory.join(format!("damaged-{}", task.from));
        let copy = place.join("index");
        if rng.u32(0..6) == 0 {
            let what = damage_backup::damage(directory, &place.join("backups"), rng)?;
            send(&format!("run {run} backup: {what}"));
            let [.., (_, setup, model)] = &bases;
            send_outcome(backed_up(*setup, &place, &copy, model, rng));
            fs::remove_dir_all(&place)?;
            continue;
        }
        let [first, ..] = &bases;
        let (base, setup, model) = rng.choice(&bases).unwrap_or(first);
        let (base, setup) = (*base, *setup);
        oracle::copy(&directory.join(base.name()), &copy)?;
        let what = damage(directory, &copy, base, rng)?;
        send(&format!("run {run} {base:?}: {what}"));
        send_outcome(judge(setup, &copy, &place, model, rng));
        fs::remove_dir_all(&place)?;
    }
    Ok(())
}

/// Sends the outcome to the parent.
fn send_outcome(verdict: Verdict<Outcome>) {
    match verdict {
        Ok(outcome) => send(&format!("outcome {}", outcome.words())),
        Err(Finding { fault, text, .. }) => {
            let word = if fault == report::Fault::Lost { "lost" } else { "wrong" };
            send(&format!("{word} {}", text.replace('\n', " ")));
        }
    }
}

fn backed_up(
    setup: Setup,
    place: &Path,
    target: &Path,
    model: &Model,
    rng: &mut Rng,
) -> Verdict<Outcome> {
    let refused = damage_backup::judge(setup, &place.join("backups"), target, model, rng)?;
    Ok(if refused { Outcome::NotRestored } else { Outcome::Harmless })
}

fn files(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

/// Changes one file that is not empty; returns a description.
fn damage(directory: &Path, index: &Path, base: Base, rng: &mut Rng) -> Verdict<String> {
    let mut all = files(index)?;
    all.retain(|file| fs::metadata(file).is_ok_and(|found| found.len() > 0));
    let Some(file) = rng.choice(&all).cloned() else {
        return Err(Finding::wrong("the base has no files"));
    };
    let name = file.file_name().unwrap_or_default().display().to_string();
    let mut bytes = fs::read(&file)?;
    let at = rng.usize(0..bytes.len());
    let what = match rng.u32(0..10) {
        0 => {
            fs::remove_file(&file)?;
            return Ok(format!("{name} is missing"));
        }
        1 => cut(&name, &mut bytes, at),
        2 => {
            let end = bytes.len().min(at + 512);
            if let Some(part) = bytes.get_mut(at..end) {
                part.fill(0);
            }
            format!("{name} is zero from {at} to {end}")
        }
        3 => {
            let other = *rng.choice(&BASES).unwrap_or(&base);
            let mut others = files(&directory.join(other.name()))?;
            others.extend(all);
            others.retain(|o| *o != file && o.extension() == file.extension());
            others.retain(|o| fs::read(o).is_ok_and(|other| other != bytes));
            let Some(other) = rng.choice(&others) else {
                fs::write(&file, b"")?;
                return Ok(format!("{name} is empty"));
            };
            bytes = fs::read(other)?;
            format!("{name} is {}", other.display())
        }
        4 if is_log(&name) => {
            let at = *rng.choice(&heads(&bytes)).unwrap_or(&0) + rng.usize(0..7);
            change(&name, &mut bytes, at, rng)
        }
        _ => change(&name, &mut bytes, at, rng),
    };
    fs::write(&file, bytes)?;
    Ok(what)
}

/// Returns true if a file consists of log records.
fn is_log(name: &str) -> bool {
    name.starts_with("MANIFEST") || Path::new(name).extension().is_some_and(|e| e == "log")
}

/// Returns the offsets of the records in a log: seven bytes of checksum, length and type.
fn heads(bytes: &[u8]) -> Vec<usize> {
    const BLOCK: usize = 32 << 10;
    let mut heads = Vec::new();
    let mut at = 0;
    while let Some(&[_, _, _, _, low, high, _]) = bytes.get(at..at + 7) {
        heads.push(at);
        at += 7 + usize::from(low) + 256 * usize::from(high);
        if BLOCK - at % BLOCK < 7 {
            at = at.next_multiple_of(BLOCK);
        }
    }
    heads
}

/// Truncates the bytes of a file; returns a description.
pub(crate) fn cut(name: &str, bytes: &mut Vec<u8>, at: usize) -> String {
    bytes.truncate(at);
    format!("{name} is cut to {at}")
}

/// Changes one byte of a file; returns a description.
pub(crate) fn change(name: &str, bytes: &mut [u8], at: usize, rng: &mut Rng) -> String {
    let change = rng.u8(1..);
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= change;
    }
    format!("{name} differs by {change:#04x} at {at} of {}", bytes.len())
}

/// Opens and reads in every way; every result must be an error or right.
fn judge(
    setup: Setup,
    path: &Path,
    place: &Path,
    model: &Model,
    rng: &mut Rng,
) -> Verdict<Outcome> {
    let read_only = rng.bool();
    let repairs = rng.u32(0..4) == 0;
    if repairs {
        check_repair(setup, path, &place.join("repaired"), model, rng)?;
    }
    if let Err(error) = Header::read(path) {
        typed(&error, true)?;
    }
    let options = setup.opening().read_only(read_only);
    let index = match AnyIndex::open_with(path, &options) {
        Ok(index) => index,
        Err(error) => {
            typed(&error, true)?;
            return Ok(Outcome::Refused);
        }
    };
    let failed = read(setup, &index, model, rng)?;
    let report = index
        .check_deep(&())
        .map_err(|error| Finding::wrong(format!("check --deep failed: {error}")))?;
    if let Some(error) = failed {
        if report.problem_count == 0 {
            return Err(Finding::wrong(format!("check --deep did not find: {error}")));
        }
        return Ok(Outcome::Noticed);
    }
    if report.problem_count > 0 {
        return Ok(Outcome::Checked);
    }
    if !read_only {
        write(setup, index, path, model, rng)?;
    }
    Ok(Outcome::Harmless)
}

/// Fails if damage is reported as the caller's fault, except for an unrecognisable index.
fn typed(error: &Error, opening: bool) -> Verdict {
    let no_index = opening && matches!(error, Error::NotFound { .. });
    if error.fault() == Fault::Caller && !no_index {
        return Err(Finding::wrong(format!("damage is reported as the caller's fault: {error}")));
    }
    Ok(())
}

/// Reads everything; returns the last error.
fn read(setup: Setup, index: &AnyIndex, model: &Model, rng: &mut Rng) -> Verdict<Option<Error>> {
    let mut failed = None;
    let mut fail = |error: Error| {
        typed(&error, false)?;
        failed = Some(error);
        Ok::<(), Finding>(())
    };
    for query in oracle::queries(setup, rng, model, 12) {
        for way in [SearchPath::Tables, SearchPath::Scan] {
            match index.search(Query::new(query).distance(4).path(way)) {
                Ok(found) if found == oracle::scan(model, query, 4) => (),
                Ok(found) => {
                    let text = format!("{query:016x} by {way:?} finds {}", found.len());
                    return Err(Finding::wrong(text));
                }
                Err(error) => fail(error)?,
            }
        }
    }
    for (key, fingerprint) in model.iter().skip(rng.usize(0..7)).step_by(7) {
        match index.get(key) {
            Ok(Some(found)) if found == *fingerprint => (),
            Ok(None) => return Err(Finding::lost(format!("{} is gone", key.escape_ascii()))),
            Ok(found) => return Err(Finding::wrong(format!("a document has {found:?}"))),
            Err(error) => fail(error)?,
        }
    }
    match index.reader().and_then(|reader| reader.documents()?.collect()) {
        Ok(found) => oracle::compare(&found, model)?,
        Err(error) => fail(error)?,
    }
    match index.len() {
        Ok(len) if len == model.len() as u64 => (),
        Ok(len) => return Err(Finding::wrong(format!("{len} documents are counted"))),
        Err(error) => fail(error)?,
    }
    if let Err(error) = each_width!(AnyIndex, index, index => index.clusters(3, &()).map(drop)) {
        fail(error)?;
    }
    Ok(failed)
}

/// Writes to an index without visible damage, and verifies it.
fn write(setup: Setup, index: AnyIndex, path: &Path, model: &Model, rng: &mut Rng) -> Verdict {
    let mut model = model.clone();
    let documents: Vec<_> = (0..20_u8).map(|at| (vec![at], setup.narrow(rng.u128(..)))).collect();
    index.insert_batch(&setup.with_features(&documents), Durability::Synced)?;
    model.extend(documents);
    let gone: Vec<_> = model.keys().step_by(9).cloned().collect();
    index.remove_batch(&gone, Durability::Synced)?;
    model.retain(|key, _| !gone.contains(key));
    index.merge(&())?;
    drop(index);
    oracle::verify(&setup.open(path)?, &model, rng)
}

/// Repairs into a new directory; the result must be sound, with documents of the original only.
fn check_repair(setup: Setup, path: &Path, target: &Path, model: &Model, rng: &mut Rng) -> Verdict {
    let build = BuildOptions::new().memory(16 << 20);
    let report = match repair_any(path, target, &build, &()) {
        Ok(report) => report,
        Err(error) => return typed(&error, true),
    };
    let index = setup.open(target)?;
    let documents = oracle::documents(&index)?;
    if let Some((key, _)) = documents.iter().find(|(key, f)| model.get(*key) != Some(f)) {
        return Err(Finding::wrong(format!("repair invented {}", key.escape_ascii())));
    }
    if documents.len() as u64 != report.documents {
        let text = format!("repair reported {report:?}, but stored {}", documents.len());
        return Err(Finding::wrong(text));
    }
    let verified = oracle::verify_repaired(&index, &documents, rng, report.from_postings);
    verified.map_err(|found| found.within("repaired"))
}

/// Damages copies until the limit.
pub(crate) fn run(directory: &Path, seed: u64, limit: Limit) -> Account {
    let mut account = Account::new("damage");
    for base in BASES {
        if !account.judge(base.make(directory, seed).map_err(|f| f.within(&base.name()))) {
            return account;
        }
    }
    let made = damage_backup::make(directory, Base::Built.setup(seed), &Base::Built.name());
    if !account.judge(made.map_err(|found| found.within("backups"))) {
        return account;
    }
    let mut next = 0;
    while limit.goes_on(&account) {
        let to = match limit {
            Limit::Tries(tries) => tries.min(next + RUNS),
            Limit::Time(_) => next + RUNS,
        };
        next = match some(directory, seed, next..to, &mut account) {
            Ok(()) => to,
            Err(finding) => {
                account.find(finding.within(&format!("damage, seed {seed}")));
                if account.tries() == next {
                    // A child that fails before its first run would fail again.
                    break;
                }
                account.tries()
            }
        };
    }
    account.end();
    account
}

/// Runs a child for some runs and records its outcomes.
fn some(directory: &Path, seed: u64, runs: std::ops::Range<u64>, account: &mut Account) -> Verdict {
    let arguments =
        [format!("--seed={seed}"), format!("--from={}", runs.start), format!("--to={}", runs.end)];
    let mut running = Running::start_within(MEMORY, "damage", directory, &arguments)?;
    let mut current = String::new();
    while let Some(line) = running.line().map_err(|found| found.within(&current))? {
        if let Some(run) = line.strip_prefix("run ") {
            run.clone_into(&mut current);
            account.tried();
        } else if let Some(text) = line.strip_prefix("lost ") {
            account.find(Finding::lost(format!("damage, seed {seed}, run {current}: {text}")));
        } else if let Some(text) = line.strip_prefix("wrong ") {
            account.find(Finding::wrong(format!("damage, seed {seed}, run {current}: {text}")));
        } else if let Some(words) = line.strip_prefix("outcome ") {
            let outcome = Outcome::ALL.iter().find(|(_, known)| *known == words);
            account.count(outcome.map_or("of no known kind", |(_, known)| known));
        }
    }
    match running.end().map_err(|found| found.within(&current))? {
        End::Done => Ok(()),
        End::Killed => Err(Finding::wrong(format!("{current}: killed"))),
    }
}
