//! Crash: kills a child at random and named moments, and checks the index it leaves.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use fastrand::Rng;
use hamdex::Error;
use hamdex::any::AnyBuilder;
use hamdex::inspect::Header;

use crate::child::{End, Running, send};
use crate::copies;
use crate::operation::{CYCLE, Operation, Size, operation, resume};
use crate::oracle::{Model, compare, documents, verify};
use crate::points::{self, POINTS, Point};
use crate::report::{Account, Finding, Limit, Verdict};
use crate::setup::Setup;

/// Number of rounds for one index.
const ROUNDS: u64 = 4;

/// Beginnings of the moments that an index in a host's database reaches.
const OF_GUESTS: [&str; 5] = ["insert.", "replace.", "write.", "fold.", "compact."];

/// The task of a child until it is killed.
#[derive(Debug, clap::Args)]
pub(crate) struct Task {
    #[arg(long)]
    seed: u64,
    /// Number of the first operation
    #[arg(long)]
    from: u64,
    /// Number of operations after which the child exits
    #[arg(long)]
    count: u64,
    /// Moment at which to stop and wait for the kill
    #[arg(long)]
    point: Option<String>,
    /// Stops when the moment is reached for the nth time
    #[arg(long, default_value_t = 1)]
    nth: u32,
    #[arg(long)]
    large: bool,
    /// Abandons an unfinished build
    #[arg(long)]
    abandon: bool,
    /// Stores the index in a directory and not in a host's database
    #[arg(long)]
    own: bool,
}

/// Works until it is killed, and reports begun and acknowledged operations, in a child.
pub(crate) fn child(directory: &Path, task: &Task) -> hamdex::Result<()> {
    points::end_at(task.point.as_deref(), task.nth);
    let size = if task.large { Size::Large } else { Size::Small };
    let setup = Setup::drawn(task.seed);
    let setup = if task.own { setup.own() } else { setup };
    let mut from = task.from;
    if task.abandon {
        send("abandoning");
        AnyBuilder::abandon(directory)?;
        send("abandoned");
    }
    let mut index = match setup.open_or_create(directory) {
        Err(Error::BuildUnfinished { .. }) => {
            send(&format!("begin {from}"));
            let Operation::Build(documents) = operation(setup, task.seed, from, size) else {
                return Err(Error::NothingToResume { path: directory.to_owned() });
            };
            resume(setup, directory, &documents)?;
            send(&format!("done {from}"));
            from += 1;
            setup.open(directory)?
        }
        opened => opened?,
    };
    send("ready");
    for number in from..from + task.count {
        send(&format!("begin {number}"));
        index = operation(setup, task.seed, number, size).run(index, directory)?;
        send(&format!("done {number}"));
    }
    Ok(())
}

/// An index whose processes are killed repeatedly, and its expected documents.
struct Victim {
    path: PathBuf,
    seed: u64,
    setup: Setup,
    size: Size,
    model: Model,
    /// The documents of the last acknowledged backup.
    backed_up: Option<Model>,
    /// Number of the first operation that was not acknowledged.
    next: u64,
    exists: bool,
}

impl Victim {
    fn new(path: PathBuf, seed: u64, setup: Setup, size: Size) -> Self {
        let model = Model::new();
        Self { path, seed, setup, size, model, backed_up: None, next: 0, exists: false }
    }

    fn remove(&self) {
        copies::remove(&self.path);
    }

    fn operation(&self, number: u64) -> Operation {
        operation(self.setup, self.seed, number, self.size)
    }

    /// Runs a child and kills it; returns true if it was killed before its exit.
    fn kill(&mut self, rng: &mut Rng, point: Option<(&str, u32)>, abandon: bool) -> Verdict<bool> {
        let mut arguments = vec![
            format!("--seed={}", self.seed),
            format!("--from={}", self.next),
            format!("--count={}", CYCLE + 4),
        ];
        if let Some((name, nth)) = point {
            arguments.extend([format!("--point={name}"), format!("--nth={nth}")]);
        }
        for (given, name) in [
            (self.size == Size::Large, "--large"),
            (abandon, "--abandon"),
            (!self.setup.attached, "--own"),
        ] {
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

    /// Processes a line of the child.
    fn note(&mut self, line: &str, first: u64) -> Verdict {
        if line == "ready" {
            self.exists = true;
        }
        if let Some(number) = line.strip_prefix("done ") {
            if number.parse() != Ok(self.next) {
                let text = format!("{line} reported, started at {first}, expected {}", self.next);
                return Err(Finding::wrong(text));
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

    /// Opens the index; it must hold all acknowledged calls, and may hold the call in flight.
    fn look(&mut self, rng: &mut Rng) -> Verdict<&'static str> {
        let mut left = "between calls";
        if matches!(self.operation(self.next), Operation::Return(_))
            && matches!(self.setup.open(&self.path), Err(Error::RestoreUnfinished { .. }))
        {
            copies::restore(&self.path).map_err(|error| {
                Finding::lost(format!("an interrupted restore cannot be repeated: {error}"))
            })?;
            left = "in a restoring";
        }
        match Header::read(&self.path) {
            _ if self.setup.attached => (),
            Err(Error::NotFound { .. }) if !self.exists => (),
            header => drop(header?),
        }
        let index = match self.setup.open(&self.path) {
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
        if copies::look(self.setup, &self.path, self.backed_up.as_ref(), &self.model, rng)? {
            // The backup may be of an unacknowledged call; from now on it must survive.
            self.backed_up.get_or_insert_with(|| self.model.clone());
        }
        Ok(left)
    }

    /// Runs one round: kill, check, and possibly abandon an unfinished build.
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
            AnyBuilder::abandon(&self.path)?;
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
                    // The ordinary index is kept for later rounds.
                    Some(_) => victim = old,
                    None => old.iter().for_each(Victim::remove),
                }
                let spills = special.is_some_and(|point| point.spills);
                let size = if spills { Size::Large } else { Size::Small };
                let setup = Setup::drawn(seed + lives);
                let setup = if special.is_some() { setup.own() } else { setup };
                Victim::new(path, seed + lives, setup, size)
            }
        };
        let reached = |point: &Point| OF_GUESTS.iter().any(|start| point.name.starts_with(start));
        let point = point.filter(|point| !one.setup.attached || reached(point));
        rounds += 1;
        let context = format!(
            "crash, seed {seed}, round {rounds}, index {lives} ({}), operation {}, at {:?}",
            one.setup,
            one.next,
            point.map(|point| point.name)
        );
        let outcome = one.round(rng, point, &mut account).map_err(|found| found.within(&context));
        // An index with a finding is kept for inspection; the next round starts a new one.
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
