//! Faults: calls of the system fail, one in each run, or are interrupted and shortened at random.
//!
//! The shim in a child counts the calls of each kind below the index's directory: opening,
//! creating, reading, writing, truncating, syncing files and directories, renaming, linking,
//! removing. First nothing fails, then each call in turn. The error must be the environment's.
//! After it the same call succeeds, at the latest when the index was opened again. Interrupted and
//! shortened reads and writes must not be noticed at all.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use fastrand::Rng;
use hamdex::Fault;

use super::disk::Patient;
use crate::child::{Running, send};
use crate::copies;
use crate::operation::{CYCLE, Size, operation};
use crate::oracle::{Model, copy, search, verify};
use crate::report::{self, Account, Finding, Limit, Verdict};
use crate::setup::Setup;

/// Kinds of calls, and the error of each: EIO, EMFILE or ENOSPC.
const KINDS: [(&str, i32); 13] = [
    ("open", 24),
    ("create", 28),
    ("read", 5),
    ("write", 5),
    ("writemanifest", 5),
    ("truncate", 5),
    ("sync", 5),
    ("syncmanifest", 5),
    ("syncdir", 5),
    ("rename", 5),
    ("mkdir", 28),
    ("link", 5),
    ("unlink", 5),
];

/// Calls of one kind that fail in one call of the library; more are sampled.
const SITES: usize = 60;

/// Failing calls for each call of the library in a short run.
const RUNS: u64 = 15;

/// Calls of the library in one run. The later ones meet what the fault has left behind.
const CALLS: u64 = 2;

/// The task of a child.
#[derive(Debug, clap::Args)]
pub(crate) struct Task {
    #[arg(long)]
    seed: u64,
    /// Number of the first call
    #[arg(long)]
    from: u64,
    /// Number of calls
    #[arg(long, default_value_t = CALLS)]
    count: u64,
}

/// Makes some calls, the first of which may fail, in a child.
pub(crate) fn child(directory: &Path, task: &Task) {
    let outcome = calls(directory, task);
    if let Err(finding) = outcome {
        let word = if finding.fault == report::Fault::Lost { "lost" } else { "wrong" };
        send(&format!("{word} {}", finding.text.replace('\n', " ")));
    }
}

fn calls(directory: &Path, task: &Task) -> Verdict {
    let rng = &mut Rng::with_seed(task.seed + task.from);
    let setup = Setup::drawn(task.seed).own();
    let (path, seed) = (directory.to_owned(), task.seed);
    let model = model(setup, seed, task.from);
    let mut patient = Patient { path, setup, seed, next: task.from, model };
    while patient.next < task.from + task.count {
        let next = patient.next;
        if let Err(finding) = attempt(&mut patient, rng) {
            if finding.cause != Some(Fault::Environment) {
                return Err(finding);
            }
            send("failed");
            // The fault is over, so nothing may fail any more.
            patient.recover(rng)?;
        }
        if patient.next == next {
            return Err(Finding::wrong("a call succeeded and failed"));
        }
        send(&format!("done {}", patient.next - 1));
    }
    Ok(())
}

/// Opens the index, searches, and makes the next call.
fn attempt(patient: &mut Patient, rng: &mut Rng) -> Verdict {
    let index = match patient.setup.open(&patient.path) {
        Ok(index) => index,
        Err(error) => {
            patient.expected(&error)?;
            return Err(failed());
        }
    };
    if let Err(finding) = search(&index, &patient.model, rng, 2) {
        if finding.cause != Some(Fault::Environment) {
            return Err(finding);
        }
        send("failed");
        search(&index, &patient.model, rng, 2)?;
    }
    if patient.call(index)? { Err(failed()) } else { Ok(()) }
}

/// A call failed for a reason that was found to be the environment's.
fn failed() -> Finding {
    Finding { cause: Some(Fault::Environment), ..Finding::wrong("failed") }
}

/// Returns the documents before a call.
fn model(setup: Setup, seed: u64, next: u64) -> Model {
    let mut model = Model::new();
    for number in 0..next {
        operation(setup, seed, number, Size::Small).apply(&mut model);
    }
    model
}

/// An index at one call of the sequence, of which every run has a copy.
struct Site {
    base: PathBuf,
    path: PathBuf,
    setup: Setup,
    seed: u64,
    from: u64,
}

impl Site {
    /// Runs the calls in a child; returns true if one failed.
    fn run(&self, variable: (&str, String), count: u64) -> Verdict<bool> {
        copy_all(&self.base, &self.path)?;
        let variables = [("HAMDEX_IO_BELOW", self.path.display().to_string()), variable];
        let arguments = [
            format!("--seed={}", self.seed),
            format!("--from={}", self.from),
            format!("--count={count}"),
        ];
        let mut running = Running::start_with(&variables, "faults", &self.path, &arguments)?;
        let (mut met, mut next, mut failed, mut found) = (None, self.from, false, None);
        while let Some(line) = running.line()? {
            match line.split_once(' ') {
                Some(("fault", call)) => met = Some(call.to_owned()),
                Some(("done", number)) => next = number.parse().unwrap_or(0) + 1,
                Some(("lost", text)) => found = Some(Finding::lost(text)),
                Some(("wrong", text)) => found = Some(Finding::wrong(text)),
                _ => failed |= line == "failed",
            }
        }
        let within = |finding: Finding| match &met {
            Some(call) => finding.within(&format!("after {call} had failed")),
            None => finding,
        };
        running.end().map_err(within)?;
        if let Some(finding) = found {
            return Err(within(finding));
        }
        if next < self.from + count {
            return Err(within(Finding::wrong(format!("the calls ended at {next}"))));
        }
        let index = self.setup.open(&self.path)?;
        let expected = model(self.setup, self.seed, next);
        verify(&index, &expected, &mut Rng::with_seed(self.seed)).map_err(within)?;
        drop(index);
        copies::remove(&self.path);
        Ok(failed)
    }

    /// Returns the number of calls of each kind; none without the shim.
    fn counts(&self, directory: &Path) -> Verdict<BTreeMap<String, u64>> {
        let file = directory.join("counts");
        self.run(("HAMDEX_IO_COUNT", file.display().to_string()), CALLS)?;
        let text = fs::read_to_string(&file).unwrap_or_default();
        let counts = text.lines().filter_map(|line| line.split_once(' '));
        Ok(counts
            .filter_map(|(kind, count)| Some((kind.to_owned(), count.parse().ok()?)))
            .collect())
    }
}

/// Fails each call in turn, at every call of one cycle, until the limit.
pub(crate) fn run(directory: &Path, seed: u64, limit: Limit) -> Account {
    let mut account = Account::new("faults");
    let rng = &mut Rng::with_seed(seed);
    let verdict = cycle(directory, seed, limit, &mut account, rng);
    account.judge(verdict.map_err(|found| found.within(&format!("faults, seed {seed}"))));
    account.end();
    account
}

fn cycle(
    directory: &Path,
    seed: u64,
    limit: Limit,
    account: &mut Account,
    rng: &mut Rng,
) -> Verdict {
    let mut sites = sites(directory, seed)?;
    for site in &sites {
        if site.from.is_multiple_of(CYCLE / 2) {
            let storm = ("HAMDEX_IO_STORM", rng.u64(..).to_string());
            if site.run(storm, CYCLE / 2)? {
                return Err(Finding::wrong("an interrupted or shortened call was noticed"));
            }
            account.count("processes under interruptions");
        }
    }
    if let Limit::Tries(tries) = limit {
        // Counting the calls of a site costs as much as failing some of them.
        rng.shuffle(&mut sites);
        sites.truncate(usize::try_from(tries / RUNS).unwrap_or(usize::MAX).max(1));
    }
    let mut runs = Vec::new();
    for site in &sites {
        let counts = site.counts(directory)?;
        for (kind, errno) in KINDS {
            let mut numbers: Vec<u64> = (1..=counts.get(kind).copied().unwrap_or(0)).collect();
            rng.shuffle(&mut numbers);
            numbers.truncate(SITES);
            runs.extend(numbers.into_iter().map(|number| (site, kind, number, errno)));
        }
    }
    if runs.is_empty() {
        account.count("calls cannot be made to fail here");
    }
    rng.shuffle(&mut runs);
    for (run, (site, kind, number, errno)) in (0..).zip(runs) {
        if !limit.goes_on(account) {
            break;
        }
        account.tried();
        let outcome = site.run(("HAMDEX_IO_FAIL", format!("{kind}:{number}:{errno}")), CALLS);
        let context = format!(
            "faults, seed {seed} ({}), call {}, {kind} number {number}",
            site.setup, site.from
        );
        match outcome {
            Ok(true) => account.count("reported, and the call then succeeded"),
            Ok(false) => account.count("without effect"),
            Err(found) => {
                copies::set_aside(&site.path, run);
                account.find(found.within(&context));
            }
        }
    }
    Ok(())
}

/// Makes one cycle of calls and keeps a copy of the index before each.
fn sites(directory: &Path, seed: u64) -> Verdict<Vec<Site>> {
    let mut patient = Patient::new(directory.join("sound"), seed)?;
    let mut sites = Vec::new();
    for from in 0..CYCLE {
        let base = directory.join(format!("sound-{from}"));
        copy_all(&patient.path, &base)?;
        let path = directory.join("failing");
        sites.push(Site { base, path, setup: patient.setup, seed, from });
        let index = patient.setup.open(&patient.path)?;
        if patient.call(index)? {
            return Err(Finding::wrong("a call failed although nothing was wrong"));
        }
    }
    Ok(sites)
}

/// Copies an index and its backups.
fn copy_all(from: &Path, to: &Path) -> Verdict {
    for end in ["", ".backups"] {
        let part = |path: &Path| PathBuf::from(format!("{}{end}", path.display()));
        if part(from).exists() {
            copy(&part(from), &part(to))?;
        }
    }
    Ok(())
}
