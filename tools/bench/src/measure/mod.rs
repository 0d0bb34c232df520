//! Measurement of one engine in a separate process: builds, searches and prints figures.
//!
//! One process for each engine and size gives clean memory figures and allows to stop a slow one.

mod digest;
mod disk;
mod harness;
mod insert;
mod join;
#[cfg(feature = "peers")]
mod peers;
mod prediction;
mod resident;
pub(crate) mod yardstick;

use std::error::Error;
use std::path::PathBuf;

use crate::row::Row;
use resident::{Resident, Scan, Tables};

pub(crate) type Outcome<T> = Result<T, Box<dyn Error>>;

/// The measurement of one engine; the command `report` starts these processes.
#[derive(clap::Args, Debug)]
pub(crate) struct Job {
    /// Name of the engine
    #[arg(long)]
    pub(crate) engine: String,
    /// Raw little-endian fingerprints
    #[arg(long)]
    pub(crate) data: PathBuf,
    /// Number of fingerprints to use
    #[arg(long)]
    pub(crate) count: usize,
    /// Directory of near-K.u64 and random.u64
    #[arg(long)]
    pub(crate) queries: PathBuf,
    /// Directory for the index on disk, which later engines reuse
    #[arg(long)]
    pub(crate) dir: PathBuf,
    /// Distances to search at
    #[arg(long, value_delimiter = ',')]
    pub(crate) distances: Vec<u32>,
    /// Repetitions of every figure
    #[arg(long)]
    pub(crate) repetitions: usize,
    /// Maximum time of a repetition, in seconds
    #[arg(long)]
    pub(crate) budget: f64,
}

impl Job {
    pub(crate) fn row(&self, work: &str) -> Row {
        Row::new(&self.engine, work, self.count as u64)
    }

    pub(crate) fn fingerprints(&self) -> Outcome<Vec<u64>> {
        Ok(crate::data::read_some(&self.data, self.count)?)
    }
}

/// Engines of this binary, in the order in which they run.
pub(crate) const OURS: [&str; 9] = [
    Tables::NAME,
    disk::NAME,
    Resident::NAME,
    prediction::NAME,
    Scan::NAME,
    join::NAME,
    insert::NAME,
    harness::PLAIN_LOOP,
    yardstick::NAME,
];

pub(crate) fn run(job: &Job) -> Outcome<()> {
    match job.engine.as_str() {
        Tables::NAME => harness::run::<Tables>(job),
        Resident::NAME => harness::run::<Resident>(job),
        Scan::NAME => harness::run::<Scan>(job),
        disk::NAME => harness::run::<disk::Disk>(job),
        harness::PLAIN_LOOP => harness::run::<harness::PlainLoop>(job),
        prediction::NAME => prediction::run(job),
        join::NAME => join::run(job),
        insert::NAME => insert::run(job),
        yardstick::NAME => {
            yardstick::run(job);
            Ok(())
        }
        #[cfg(feature = "peers")]
        name => peers::run(name, job),
        #[cfg(not(feature = "peers"))]
        name => Err(format!("no engine {name:?}: built without the feature `peers`").into()),
    }
}

/// Sends a row to the process that started this one.
pub(crate) fn print(row: &Row) {
    println!("{}", row.to_json());
}
