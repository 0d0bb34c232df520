//! The account of each scenario: its limit, tries, outcomes and findings.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A kind of finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Acknowledged data is missing.
    Lost,
    /// A wrong answer, a panic, an abort, a hang, or an error of the wrong kind.
    Wrong,
}

/// A finding, with everything needed to reproduce it.
#[derive(Debug, Clone)]
pub(crate) struct Finding {
    pub(crate) fault: Fault,
    pub(crate) text: String,
    /// Who has to act on the error of the library that this finding is about, if it is about one.
    pub(crate) cause: Option<hamdex::Fault>,
}

impl Finding {
    pub(crate) fn lost(text: impl Into<String>) -> Self {
        Self { fault: Fault::Lost, text: text.into(), cause: None }
    }

    pub(crate) fn wrong(text: impl Into<String>) -> Self {
        Self { fault: Fault::Wrong, text: text.into(), cause: None }
    }

    /// Adds the context of the finding.
    pub(crate) fn within(mut self, context: &str) -> Self {
        self.text = format!("{context}: {}", self.text);
        self
    }
}

/// An unexpected error is a finding.
impl From<hamdex::Error> for Finding {
    fn from(error: hamdex::Error) -> Self {
        let text = format!("unexpected error: {error}");
        Self { cause: Some(error.fault()), ..Self::wrong(text) }
    }
}

impl From<std::io::Error> for Finding {
    fn from(error: std::io::Error) -> Self {
        Self::wrong(format!("the torture itself failed: {error}"))
    }
}

/// The result of a check.
pub(crate) type Verdict<T = ()> = Result<T, Finding>;

/// The account of one scenario.
#[derive(Debug)]
pub(crate) struct Account {
    name: &'static str,
    tried: u64,
    outcomes: BTreeMap<&'static str, u64>,
    notes: Vec<String>,
    findings: Vec<Finding>,
    begun: Instant,
    spent: Duration,
}

impl Account {
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            name,
            tried: 0,
            outcomes: BTreeMap::new(),
            notes: Vec::new(),
            findings: Vec::new(),
            begun: Instant::now(),
            spent: Duration::ZERO,
        }
    }

    /// Counts a try.
    pub(crate) fn tried(&mut self) {
        self.tried += 1;
    }

    pub(crate) fn tries(&self) -> u64 {
        self.tried
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Counts the outcome of a try.
    pub(crate) fn count(&mut self, outcome: &'static str) {
        self.add(outcome, 1);
    }

    pub(crate) fn add(&mut self, outcome: &'static str, count: u64) {
        *self.outcomes.entry(outcome).or_default() += count;
    }

    /// Adds figures that are reported and not judged.
    pub(crate) fn note(&mut self, figures: String) {
        self.notes.push(figures);
    }

    /// Adds a finding and prints it immediately.
    pub(crate) fn find(&mut self, finding: Finding) {
        eprintln!("{} {:?}: {}", self.name, finding.fault, finding.text);
        self.findings.push(finding);
    }

    /// Adds the finding of a verdict; returns true if there is none.
    pub(crate) fn judge(&mut self, verdict: Verdict) -> bool {
        match verdict {
            Ok(()) => true,
            Err(finding) => {
                self.find(finding);
                false
            }
        }
    }

    /// Stops the clock.
    pub(crate) fn end(&mut self) {
        self.spent = self.begun.elapsed();
    }

    fn faults(&self, fault: Fault) -> usize {
        self.findings.iter().filter(|finding| finding.fault == fault).count()
    }
}

/// Prints the head of the table of accounts.
pub(crate) fn print_head() {
    println!("| scenario | tried | result | lost | wrong | time |");
    println!("|---|---|---|---|---|---|");
}

/// Prints an account as a row of the table; returns true if there are no findings.
pub(crate) fn print(account: &Account) -> bool {
    let outcomes = account.outcomes.iter().map(|(name, count)| format!("{count} {name}"));
    let outcomes: Vec<_> = outcomes.chain(account.notes.iter().cloned()).collect();
    println!(
        "| {} | {} | {} | {} | {} | {} s |",
        account.name,
        account.tried,
        outcomes.join(", "),
        account.faults(Fault::Lost),
        account.faults(Fault::Wrong),
        account.spent.as_secs()
    );
    account.findings.is_empty()
}

/// The limit of a scenario.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Limit {
    /// Number of tries.
    Tries(u64),
    /// Time, with at least one try.
    Time(Duration),
}

impl Limit {
    pub(crate) fn goes_on(self, account: &Account) -> bool {
        match self {
            Self::Tries(tries) => account.tries() < tries,
            Self::Time(time) => account.tries() == 0 || account.elapsed() < time,
        }
    }
}

/// The limits of all scenarios.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    pub(crate) kills: Limit,
    /// Kills of deduplications with a state.
    pub(crate) shards: Limit,
    pub(crate) rollbacks: Limit,
    /// Images of a disk after a loss of power.
    pub(crate) images: Limit,
    /// Calls of the system that fail.
    pub(crate) faults: Limit,
    pub(crate) disks: Limit,
    pub(crate) damages: Limit,
    pub(crate) concurrency: Duration,
    /// Time of the soak's load, and its number of documents.
    pub(crate) soak: (Duration, u64),
    /// Documents in each hostile crowd.
    pub(crate) crowd: u64,
    /// Bytes between two cuts of a log.
    pub(crate) stride: usize,
}

impl Effort {
    /// Returns the effort of every test run: about a minute.
    pub(crate) fn short() -> Self {
        Self {
            kills: Limit::Tries(50),
            shards: Limit::Tries(20),
            rollbacks: Limit::Tries(40),
            images: Limit::Tries(40),
            faults: Limit::Tries(40),
            disks: Limit::Tries(6),
            damages: Limit::Tries(200),
            concurrency: Duration::from_secs(6),
            soak: (Duration::from_secs(20), 100_000),
            crowd: 60_000,
            stride: 97,
        }
    }

    /// Returns the effort of a release: 1,000 kills, every offset of a log, 10,000 damages.
    pub(crate) fn long() -> Self {
        Self {
            kills: Limit::Tries(1000),
            shards: Limit::Tries(200),
            rollbacks: Limit::Tries(1000),
            images: Limit::Tries(3000),
            faults: Limit::Tries(u64::MAX),
            disks: Limit::Tries(100),
            damages: Limit::Tries(10_000),
            concurrency: Duration::from_mins(3),
            soak: (Duration::from_mins(30), 10_000_000),
            crowd: 10_000_000,
            stride: 1,
        }
    }

    /// Returns the effort for a given time, divided by the needs of the scenarios.
    pub(crate) fn minutes(minutes: f64) -> Self {
        let share = |part: f64| Duration::from_secs_f64(minutes.max(0.01) * 60.0 * part);
        Self {
            kills: Limit::Time(share(0.3)),
            shards: Limit::Time(share(0.05)),
            rollbacks: Limit::Time(share(0.1)),
            images: Limit::Time(share(0.05)),
            faults: Limit::Time(share(0.1)),
            disks: Limit::Time(share(0.05)),
            damages: Limit::Time(share(0.2)),
            concurrency: share(0.1),
            soak: (share(0.05), 100_000),
            crowd: 500_000,
            stride: 1,
        }
    }
}
