//! Shards: kills deduplications with a state, and compares the result with one run over everything.
//!
//! The oracle is one run of `Dedup` without a state over the documents of all shards.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use fastrand::Rng;
use hamdex::dedup::{Decided, Decision, Dedup, DedupOptions, Known, NewShard, State};
use hamdex::join::Linkage;
use hamdex::{Error, IndexOptions};

use crate::child::{End, Running, send};
use crate::copies;
use crate::points::{self, POINTS};
use crate::report::{Account, Finding, Limit, Verdict};

/// Number of shards of one state.
const SHARDS: u64 = 5;

/// Maximum number of documents of a shard; large ones are added to the index in several steps.
const DOCUMENTS: usize = 20_000;

/// The task of a child until it is killed.
#[derive(Debug, clap::Args)]
pub(crate) struct Task {
    #[arg(long)]
    seed: u64,
    /// Moment at which to stop and wait for the kill
    #[arg(long)]
    point: Option<String>,
    /// Stops when the moment is reached for the nth time
    #[arg(long, default_value_t = 1)]
    nth: u32,
}

fn settings() -> DedupOptions {
    DedupOptions::new(3).linkage(Linkage::Representative)
}

/// Returns the fingerprints of a shard; some are near others in this or earlier shards.
fn documents(seed: u64, shard: u64) -> Vec<u64> {
    let mut rng = Rng::with_seed(seed.wrapping_mul(31).wrapping_add(shard));
    let count = if rng.u32(0..4) == 0 { DOCUMENTS } else { rng.usize(0..300) };
    let near = |rng: &mut Rng| {
        let centre = rng.u64(0..2000).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (0..rng.u32(0..5)).fold(centre, |near, _| near ^ 1 << rng.u32(0..64))
    };
    (0..count).map(|_| if rng.bool() { near(&mut rng) } else { rng.u64(..) }).collect()
}

fn input(shard: u64) -> String {
    format!("shard {shard}")
}

fn dedup(fingerprints: &[u64]) -> hamdex::Result<Dedup<u64>> {
    let mut dedup = Dedup::new(&settings())?;
    for &fingerprint in fingerprints {
        dedup.push(fingerprint, &[], ())?;
    }
    Ok(dedup)
}

/// Formats the results of a shard.
fn lines_of(fingerprints: impl Iterator<Item = u64>) -> String {
    fingerprints.map(|fingerprint| format!("{fingerprint:016x}\n")).collect::<Vec<_>>().concat()
}

fn kept(decision: &Decision<'_>) -> bool {
    matches!(decision, Decision::Kept { .. })
}

/// Runs the remaining shards and reports each one, in a child.
pub(crate) fn child(directory: &Path, task: &Task) -> hamdex::Result<()> {
    points::end_at(task.point.as_deref(), task.nth);
    let path = directory.join("state");
    let mut state = match State::<u64>::open(&path, &IndexOptions::new(), &()) {
        Err(Error::NotFound { .. }) => State::create(&path, &IndexOptions::new(), &settings())?,
        opened => opened?,
    };
    let out = directory.join("out");
    for shard in 0..SHARDS {
        let input = input(shard);
        if state.shard(&input).is_some() {
            continue;
        }
        let fingerprints = documents(task.seed, shard);
        let Decided { decisions, trail, .. } = state.decide(dedup(&fingerprints)?, &())?;
        let stage = state.stage(&out)?;
        let lines =
            fingerprints.iter().zip(decisions.iter()).filter(|(_, decision)| kept(decision));
        let lines = lines_of(lines.map(|(&fingerprint, _)| fingerprint));
        let kept = stage.join("kept");
        let written = fs::create_dir_all(&stage).and_then(|()| fs::write(&kept, lines));
        written.map_err(|source| Error::Io { path: kept, source })?;
        let show = |at: u32| Ok(Known { label: format!("{at}"), place: format!("{input}:{at}") });
        let results = out.join(shard.to_string());
        let new = NewShard { input: &input, content: "", results: Some((&stage, &results)) };
        state.commit(&new, (&decisions, &trail), &show, &())?;
        send(&format!("done {shard}"));
    }
    Ok(())
}

/// One state whose processes are killed repeatedly until all shards are done.
struct Life {
    path: PathBuf,
    seed: u64,
    /// Shards that were reported as done.
    done: BTreeSet<u64>,
}

impl Life {
    /// Runs a child, and kills it if a moment is given; returns true if it was killed.
    fn run(&mut self, kill: Option<(Option<(&str, u32)>, Duration)>) -> Verdict<bool> {
        let mut arguments = vec![format!("--seed={}", self.seed)];
        if let Some((Some((name, nth)), _)) = kill {
            arguments.extend([format!("--point={name}"), format!("--nth={nth}")]);
        }
        let mut running = Running::start("shards", &self.path, &arguments)?;
        if let Some((None, wait)) = kill {
            thread::sleep(wait);
            running.kill()?;
        }
        while let Some(line) = running.line()? {
            if line.starts_with("at ") {
                running.kill()?;
            }
            if let Some(shard) = line.strip_prefix("done ").and_then(|shard| shard.parse().ok()) {
                self.done.insert(shard);
            }
        }
        Ok(running.end()? == End::Killed)
    }

    /// Checks that the results of all shards reported as done exist.
    fn look(&self) -> Verdict {
        let out = self.path.join("out");
        for shard in &self.done {
            if !out.join(shard.to_string()).join("kept").is_file() {
                return Err(Finding::lost(format!("the results of shard {shard} are gone")));
            }
        }
        Ok(())
    }

    /// Compares the final results and the state with one run over everything.
    fn judge(&self) -> Verdict {
        let shards: Vec<Vec<u64>> = (0..SHARDS).map(|shard| documents(self.seed, shard)).collect();
        let all = shards.concat();
        let decisions = dedup(&all)?.finish(&())?;
        let mut decided = all.iter().zip(decisions.iter());
        let mut expected = Vec::new();
        for (shard, documents) in shards.iter().enumerate() {
            let of_shard = decided.by_ref().take(documents.len());
            let of_shard: Vec<u64> =
                of_shard.filter(|(_, decision)| kept(decision)).map(|(&f, _)| f).collect();
            let lines = lines_of(of_shard.iter().copied());
            let path = self.path.join("out").join(shard.to_string()).join("kept");
            if fs::read_to_string(&path)? != lines {
                return Err(Finding::wrong(format!("other rows of shard {shard} were kept")));
            }
            expected.extend(of_shard);
        }
        let left = fs::read_dir(self.path.join("out"))?.count() as u64;
        if left != SHARDS {
            return Err(Finding::wrong(format!("{left} results of {SHARDS} shards")));
        }
        let state = State::<u64>::open(&self.path.join("state"), &IndexOptions::new(), &())?;
        let stored = state.index().documents()?.map(|document| Ok(document?.1));
        let stored: Vec<u64> = stored.collect::<hamdex::Result<_>>()?;
        if stored != expected {
            return Err(Finding::wrong("the state holds other documents than were kept"));
        }
        let report = state.index().check(&())?;
        if !report.problems.is_empty() {
            return Err(Finding::wrong(format!("the index: {:?}", report.problems)));
        }
        Ok(())
    }

    fn live(&mut self, rng: &mut Rng, named: &[&str], account: &mut Account) -> Verdict {
        // Time of a run without kills, in microseconds.
        let longest = 60_000;
        for kill in 0..rng.u32(1..5) {
            let point = (kill == 0).then(|| rng.choice(named)).flatten();
            let point = point.map(|&name| (name, rng.u32(1..5)));
            let wait = Duration::from_micros(rng.u64(0..longest));
            let hit = self.run(Some((point, wait)))?;
            if hit {
                account.tried();
            }
            account.count(match (hit, point) {
                (true, Some(_)) => "killed at a named moment",
                (true, None) => "killed at a random one",
                (false, _) => "ended before the kill",
            });
            self.look()?;
        }
        self.run(None)?;
        self.judge()
    }
}

/// Kills children until the limit.
pub(crate) fn run(directory: &Path, seed: u64, limit: Limit) -> Account {
    let mut account = Account::new("shards");
    let rng = &mut Rng::with_seed(seed);
    let named = POINTS.iter().filter(|point| points::ENABLED && point.shards);
    let mut named = named.map(|point| point.name).cycle();
    let mut lives = 0;
    while limit.goes_on(&account) {
        lives += 1;
        let path = directory.join(format!("shards-{lives}"));
        let mut life = Life { path: path.clone(), seed: seed + lives, done: BTreeSet::new() };
        let point = named.next();
        let outcome = fs::create_dir_all(&path)
            .map_err(Finding::from)
            .and_then(|()| life.live(rng, point.as_slice(), &mut account));
        let context = format!("shards, seed {seed}, life {lives}, at {point:?}");
        if account.judge(outcome.map_err(|found| found.within(&context))) {
            copies::remove(&path);
        }
    }
    account.end();
    account
}
