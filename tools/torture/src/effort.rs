//! Effort: the limits of all scenarios.

use std::time::Duration;

use crate::report::Account;

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
            rollbacks: Limit::Time(share(0.15)),
            disks: Limit::Time(share(0.1)),
            damages: Limit::Time(share(0.25)),
            concurrency: share(0.1),
            soak: (share(0.05), 100_000),
            crowd: 500_000,
            stride: 1,
        }
    }
}
