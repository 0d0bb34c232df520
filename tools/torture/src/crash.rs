//! Crash: a child is killed at random and at named moments; what is left has to be exact.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use fastrand::Rng;
use hamdex::Error;
use hamdex::build::Builder;
use hamdex::inspect::Header;

use crate::child::{End, Running, tell};
use crate::copies;
use crate::effort::Limit;
use crate::operation::{CYCLE, Operation, Size, open, open_or_create, operation, resume};
use crate::oracle::{Model, compare, documents, verify};
use crate::points::{self, POINTS, Point};
use crate::report::{Account, Finding, Verdict};

/// Rounds that one index lives through.
const ROUNDS: u64 = 12;

/// What a child does until it is killed.
#[derive(Debug, clap::Args)]
pub(crate) struct Task {
    #[arg(long)]
    seed: u64,
    /// Number of the first operation
    #[arg(long)]
    from: u64,
    /// Operations before the child ends by itself
    #[arg(long)]
    count: u64,
    /// Moment at which to stop and wait for the end
    #[arg(long)]
    point: Option<String>,
    /// How often the moment is passed before
    #[arg(long, default_value_t = 1)]
    nth: u32,
    #[arg(long)]
    large: bool,
    /// Abandons an unfinished build
    #[arg(long)]
    abandon: bool,
}

/// The child: works until it is killed, and tells what it begins and what is acknowledged.
pub(crate) fn child(directory: &Path, task: &Task) -> hamdex::Result<()> {
    points::end_at(task.point.as_deref(), task.nth);
    let size = if task.large { Size::Large } else { Size::Small };
    let mut from = task.from;
    if task.abandon {
        tell("abandoning");
        Builder::<u64>::abandon(directory)?;
        tell("abandoned");
    }
    let mut index = match open_or_create(directory) {
        Err(Error::BuildUnfinished { .. }) => {
            tell(&format!("begin {from}"));
            let Operation::Build(documents) = operation(task.seed, from, size) else {
                return Err(Error::NothingToResume { path: directory.to_owned() });
            };
            resume(directory, &documents)?;
            tell(&format!("done {from}"));
            from += 1;
            open(directory)?
        }
        opened => opened?,
    };
    tell("ready");
    for number in from..from + task.count {
        tell(&format!("begin {number}"));
        index = operation(task.seed, number, size).run(index, directory)?;
        tell(&format!("done {number}"));
    }
    Ok(())
}

/// An index that is killed again and again, and what it has to hold.
struct Victim {
    path: PathBuf,
    seed: u64,
    size: Size,
    model: Model,
    /// What the last backup that was told of holds.
    backed_up: Option<Model>,
    /// Number of the first operation that was not acknowledged.
    next: u64,
    exists: bool,
}

impl Victim {
    fn new(path: PathBuf, seed: u64, size: Size) -> Self {
        Self { path, seed, size, model: Model::new(), backed_up: None, next: 0, exists: false }
    }

    fn remove(&self) {
        copies::remove(&self.path);
    }

    fn operation(&self, number: u64) -> Operation {
        operation(self.seed, number, self.size)
    }

    /// Lets a child work and kills it; true when the kill hit what it was meant for.
    fn kill(&mut self, rng: &mut Rng, point: Option<(&str, u32)>, abandon: bool) -> Verdict<bool> {
        let mut arguments = vec![
            format!("--seed={}", self.seed),
            format!("--from={}", self.next),
            format!("--count={}", CYCLE + 4),
        ];
        if let Some((name, nth)) = point {
            arguments.extend([format!("--point={name}"), format!("--nth={nth}")]);
        }
        for (given, name) in [(self.size == Size::Large, "--large"), (abandon, "--abandon")] {
            arguments.extend(given.then(|| name.to_owned()));
        }
        let mut lines = if point.is_none() { rng.u32(0..40) } else { u32::MAX };
        let mut running = Running::start("crash", &self.path, &arguments)?;
        let first = self.next;
        let mut killed = false;
        while let Some(line) = running.line()? {
            self.note(&line, first)?;
            if killed {
                continue;
            }
            let hit = line.starts_with("at ");
            if lines == 0 {
                thread::sleep(Duration::from_micros(rng.u64(0..6000)));
            }
            if hit || lines == 0 {
                running.kill()?;
                killed = true;
            }
            lines = lines.saturating_sub(1);
        }
        let end = running.end()?;
        Ok(end == End::Killed)
    }

    /// Takes in what the child told.
    fn note(&mut self, line: &str, first: u64) -> Verdict {
        if line == "ready" {
            self.exists = true;
        }
        if let Some(number) = line.strip_prefix("done ") {
            if number.parse() != Ok(self.next) {
                return Err(Finding::wrong(format!("{line} told, from {first} on {}", self.next)));
            }
            let operation = self.operation(self.next);
            operation.apply(&mut self.model);
            if matches!(operation, Operation::BackUp(_) | Operation::Return(_)) {
                self.backed_up = Some(self.model.clone());
            }
            self.next += 1;
            self.exists = true;
        }
        Ok(())
    }

    /// Opens what is left; it must be what was acknowledged, perhaps with the call in flight.
    fn look(&mut self, rng: &mut Rng) -> Verdict<&'static str> {
        let mut left = "between calls";
        if matches!(self.operation(self.next), Operation::Return(_))
            && matches!(open(&self.path), Err(Error::RestoreUnfinished { .. }))
        {
            copies::restore(&self.path).map_err(|error| {
                Finding::lost(format!("a restoring cut short cannot be begun again: {error}"))
            })?;
            left = "in a restoring";
        }
        match Header::read(&self.path) {
            Err(Error::NotFound { .. }) if !self.exists => (),
            header => drop(header?),
        }
        let index = match open(&self.path) {
            Err(Error::NotFound { .. }) if !self.exists => return Ok("before creation"),
            Err(Error::BuildUnfinished { .. }) => {
                let in_flight = self.operation(self.next);
                if !matches!(in_flight, Operation::Build(_)) {
                    return Err(Finding::wrong(format!("a build is unfinished in {in_flight:?}")));
                }
                return Ok("in a build");
            }
            opened => opened?,
        };
        self.exists = true;
        let stored = documents(&index)?;
        if stored != self.model {
            let mut with_next = self.model.clone();
            self.operation(self.next).apply(&mut with_next);
            if stored == with_next {
                self.model = with_next;
                self.next += 1;
            } else {
                compare(&stored, &self.model)?;
            }
        }
        verify(&index, &self.model, rng)?;
        drop(index);
        if copies::look(&self.path, self.backed_up.as_ref(), &self.model, rng)? {
            // It may be one that no call told of; from now on it is known.
            self.backed_up.get_or_insert_with(|| self.model.clone());
        }
        Ok(left)
    }

    /// One round: kill, look, and perhaps give up an unfinished build.
    fn round(&mut self, rng: &mut Rng, point: Option<Point>, account: &mut Account) -> Verdict {
        if let Some(first) = point.and_then(|point| point.after) {
            self.kill(rng, Some((first, 1)), false)?;
        }
        let abandons = point.is_some_and(|point| point.abandons);
        let nth = if rng.u32(0..4) == 0 { rng.u32(2..5) } else { 1 };
        let nth = point.map(|point| (point.name, nth));
        let hit = self.kill(rng, nth, abandons)?;
        if hit {
            account.tried();
        }
        account.count(match (hit, point) {
            (true, Some(_)) => "killed at a named moment",
            (true, None) => "killed at a random one",
            (false, _) => "ended before the kill",
        });
        let mut left = self.look(rng)?;
        if left == "in a build" && rng.bool() {
            Builder::<u64>::abandon(&self.path)?;
            left = self.look(rng)?;
            account.count("builds abandoned");
        }
        if left == "in a build" {
            account.count("builds to resume");
        }
        if left == "in a restoring" {
            account.count("restored again");
        }
        Ok(())
    }
}

/// Kills children until the limit.
pub(crate) fn run(directory: &Path, seed: u64, limit: Limit) -> Account {
    let mut account = Account::new("crash");
    let rng = &mut Rng::with_seed(seed);
    let mut named = POINTS.iter().copied().filter(|point| !point.shards).cycle();
    let (mut rounds, mut lives) = (0, 0);
    let mut victim: Option<Victim> = None;
    while limit.goes_on(&account) {
        let point = if points::ENABLED && rounds % 2 == 0 { named.next() } else { None };
        let special = point.filter(|point| point.creates || point.spills || point.after.is_some());
        let mut one = match victim.take() {
            Some(old) if special.is_none() && old.next < ROUNDS * CYCLE => old,
            old => {
                lives += 1;
                let path = directory.join(format!("crash-{lives}"));
                match special {
                    // The ordinary one waits meanwhile.
                    Some(_) => victim = old,
                    None => old.iter().for_each(Victim::remove),
                }
                let spills = special.is_some_and(|point| point.spills);
                Victim::new(path, seed + lives, if spills { Size::Large } else { Size::Small })
            }
        };
        rounds += 1;
        let context = format!(
            "crash, seed {seed}, round {rounds}, index {lives}, operation {}, at {:?}",
            one.next,
            point.map(|point| point.name)
        );
        let outcome = one.round(rng, point, &mut account).map_err(|found| found.within(&context));
        // An index at fault stays for a look; the next round begins a new one.
        let sound = account.judge(outcome);
        if sound && special.is_none() {
            victim = Some(one);
        } else if sound {
            one.remove();
        }
    }
    account.end();
    account
}
