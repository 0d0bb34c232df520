//! The report: tries, outcomes and findings of each scenario.

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
}

impl Finding {
    pub(crate) fn lost(text: impl Into<String>) -> Self {
        Self { fault: Fault::Lost, text: text.into() }
    }

    pub(crate) fn wrong(text: impl Into<String>) -> Self {
        Self { fault: Fault::Wrong, text: text.into() }
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
        Self::wrong(format!("unexpected error: {error}"))
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
