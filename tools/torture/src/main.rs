//! Torture tests: kills, power losses, full disks, damage and concurrency, compared with an oracle.
//!
//! `tools/torture/run --short` takes about a minute and is part of `tools/test`; a release must
//! pass `--long`; `--minutes N` runs for a given time. Every run prints its seed. The same seed
//! repeats the data, operations and damage, but not the exact moments of kills. The table at the
//! end has the tries and outcomes, the number of lost acknowledged data, and the number of wrong
//! answers. The status is 1 unless both numbers are 0.
//!
//! | scenario | test |
//! |---|---|
//! | crash | kills a process at random and named moments of every operation with several steps |
//! | shards | kills a deduplication with a state; it must end as one run over all shards |
//! | lost power | cuts the log at every offset, and rolls unsynced data back |
//! | disk images | rebuilds disks from a record of writes and syncs, torn and in any order |
//! | faults | makes one call of the system fail, each in turn; interrupts and shortens calls |
//! | full disk | calls fail on a full disk or at a step, and succeed once there is space |
//! | damage | changes bytes; cuts, exchanges and removes files |
//! | concurrency | readers, writers, offers, merges and removals at the same time |
//! | soak | a long mixed load; samples memory, files, disk and latencies |
//! | hostile | builds, searches and extends documents crafted into one prefix, corner, ball or group |
//!
//! The oracle is a sorted map of the acknowledged documents and a linear scan over it.

mod bases;
mod child;
mod copies;
mod operation;
mod oracle;
mod points;
mod report;
mod scenario;
mod setup;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};

use crate::report::Effort;
use crate::scenario::{concurrency, crash, damage, disk, faults, hostile, power, shards, soak};

// Its `malloc` is that of the whole program.
#[cfg(all(feature = "jemalloc", target_os = "linux", target_env = "gnu"))]
use tikv_jemallocator as _;

/// Kills, cuts, fills and damages indexes, and compares them with an oracle
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    child: Option<Child>,
    #[command(flatten)]
    args: Args,
}

#[derive(Debug, Subcommand)]
enum Child {
    /// Runs a task for a parent process
    #[command(hide = true, subcommand)]
    Child(Task),
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Writes until it is killed
    Crash(Place<crash::Task>),
    /// Deduplicates shards until it is killed
    Shards(Place<shards::Task>),
    /// Makes calls, one of which fails
    Faults(Place<faults::Task>),
    /// Damages copies and reads them
    Damage(Place<damage::Task>),
    /// Builds and searches hostile documents
    Hostile(Place<hostile::Task>),
}

#[derive(Debug, clap::Args)]
struct Place<T: clap::Args> {
    #[arg(long)]
    directory: PathBuf,
    #[command(flatten)]
    task: T,
}

#[derive(Debug, clap::Args)]
struct Args {
    /// Runs the full tests, as before a release
    #[arg(long, conflicts_with_all = ["short", "minutes"])]
    long: bool,
    /// Runs for about a minute, as in tools/test; the default
    #[arg(long, conflicts_with = "minutes")]
    short: bool,
    /// Runs for about N minutes
    #[arg(long, value_name = "N")]
    minutes: Option<f64>,
    /// Seed of data, operations and damage
    #[arg(long)]
    seed: Option<u64>,
    /// Runs only these scenarios
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Scenario>,
    /// Number of documents of the soak
    #[arg(long, value_name = "N")]
    documents: Option<u64>,
    /// Directory for the samples and plots of the soak
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Working directory; default: the system's temporary directory
    #[arg(long)]
    dir: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Scenario {
    Crash,
    Shards,
    Power,
    Images,
    Faults,
    Disk,
    Damage,
    Concurrency,
    Soak,
    Hostile,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.child {
        Some(Child::Child(task)) => work(task),
        None => torture(&cli.args),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("hamdex-torture: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the task of a child.
fn work(task: Task) -> Result<bool, String> {
    match task {
        Task::Crash(Place { directory, task }) => {
            crash::child(&directory, &task).map_err(|error| error.to_string())?;
        }
        Task::Shards(Place { directory, task }) => {
            shards::child(&directory, &task).map_err(|error| error.to_string())?;
        }
        Task::Faults(Place { directory, task }) => {
            faults::child(&directory, &task);
        }
        Task::Damage(Place { directory, task }) => {
            damage::child(&directory, &task).map_err(|finding| finding.text)?;
        }
        Task::Hostile(Place { directory, task }) => {
            hostile::child(&directory, &task);
        }
    }
    Ok(true)
}

/// Runs the scenarios and prints their table; returns true if there are no findings.
fn torture(args: &Args) -> Result<bool, String> {
    let effort = match args.minutes {
        Some(minutes) => Effort::minutes(minutes),
        None if args.long => Effort::long(),
        None => Effort::short(),
    };
    let alone = args.only == [Scenario::Soak];
    let soak = soak::Settings {
        documents: args.documents.unwrap_or(effort.soak.1).max(1000),
        time: match args.minutes {
            Some(minutes) if alone => Duration::from_secs_f64(minutes * 60.0),
            _ => effort.soak.0,
        },
        report: args.report.clone(),
    };
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..1_000_000));
    eprintln!("seed {seed}{}", if points::ENABLED { "" } else { ", built without fail points" });
    let mut builder = tempfile::Builder::new();
    let builder = builder.prefix("hamdex-torture-");
    let directory = match &args.dir {
        Some(dir) => builder.tempdir_in(dir),
        None => builder.tempdir(),
    };
    let mut directory = directory.map_err(|error| error.to_string())?;
    report::print_head();
    let mut sound = true;
    for scenario in Scenario::value_variants() {
        if !args.only.is_empty() && !args.only.contains(scenario) {
            continue;
        }
        let path = directory.path();
        let account = match scenario {
            Scenario::Crash => crash::run(path, seed, effort.kills),
            Scenario::Shards => shards::run(path, seed, effort.shards),
            Scenario::Power => power::run(path, seed, effort.rollbacks, effort.stride),
            Scenario::Images => power::run_images(path, seed, effort.images),
            Scenario::Faults => faults::run(path, seed, effort.faults),
            Scenario::Disk => disk::run(path, seed, effort.disks),
            Scenario::Damage => damage::run(path, seed, effort.damages),
            Scenario::Concurrency => concurrency::run(path, seed, effort.concurrency),
            Scenario::Soak => soak::run(path, seed, &soak),
            Scenario::Hostile => hostile::run(path, seed, effort.crowd),
        };
        sound &= report::print(&account);
    }
    if !sound {
        directory.disable_cleanup(true);
        eprintln!("seed {seed}; the indexes are kept in {}", directory.path().display());
    }
    Ok(sound)
}
