//! The report: what was tried in a scenario, what came of it, what was lost or wrong.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// What must not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Something that was acknowledged is not there.
    Lost,
    /// An answer that is not right, a panic, an abort, a hang, or an error of the wrong kind.
    Wrong,
}

/// One fault, with everything that is needed to see it again.
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

    /// Says where it was found.
    pub(crate) fn within(mut self, context: &str) -> Self {
        self.text = format!("{context}: {}", self.text);
        self
    }
}

/// An error where none may be.
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

/// The result of looking at something.
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

    /// Counts how a try came out.
    pub(crate) fn count(&mut self, outcome: &'static str) {
        self.add(outcome, 1);
    }

    pub(crate) fn add(&mut self, outcome: &'static str, count: u64) {
        *self.outcomes.entry(outcome).or_default() += count;
    }

    /// Keeps figures that are told and not judged.
    pub(crate) fn note(&mut self, figures: String) {
        self.notes.push(figures);
    }

    /// Keeps a finding and tells it at once.
    pub(crate) fn find(&mut self, finding: Finding) {
        eprintln!("{} {:?}: {}", self.name, finding.fault, finding.text);
        self.findings.push(finding);
    }

    /// Keeps the finding of a verdict, if it is one; true when all was well.
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
    println!("| scenario | tried | what came of it | lost | wrong | time |");
    println!("|---|---|---|---|---|---|");
}

/// Prints an account as a row of the table; true when nothing was lost and nothing wrong.
pub(crate) fn print(account: &Account) -> bool {
    let outcomes = account.outcomes.iter().map(|(name, count)| format!("{count} {name}"));
    let told: Vec<_> = outcomes.chain(account.notes.iter().cloned()).collect();
    println!(
        "| {} | {} | {} | {} | {} | {} s |",
        account.name,
        account.tried,
        told.join(", "),
        account.faults(Fault::Lost),
        account.faults(Fault::Wrong),
        account.spent.as_secs()
    );
    account.findings.is_empty()
}
