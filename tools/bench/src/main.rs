//! Benchmarks of hamdex at full size, for the figures of FIGURES.md.
//!
//! Each run generates its data from a fixed seed and prints one Markdown row per figure. No figure
//! makes a run fail. The subcommand `report` also measures peers, and writes tables and plots.

mod billion;
mod build;
mod data;
mod evenness;
mod insert;
mod join;
mod measure;
mod report;
mod row;
mod search;
mod shape;
mod skew;
mod suite;
mod text;
mod texts;

use std::path::PathBuf;

use clap::Parser;

use evenness::Evenness;
use shape::Shape;

/// Measures builds, searches, inserts and joins.
#[derive(Parser, Debug)]
#[command(args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    args: Args,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    /// Measures hamdex and its peers on the same data and writes a report with plots
    Report(suite::ReportArgs),
    /// Prints texts from one template as JSON Lines
    Texts(texts::Texts),
    /// Rewrites the tables of FIGURES.md from reports
    Tables(suite::readme::TablesArgs),
    /// Measures one large index: build, searches, a batch, the join, a check
    Billion(billion::Billion),
    /// Measures one engine for a report
    #[command(hide = true)]
    Measure(measure::Job),
}

/// Options of the measurements that print a table.
#[derive(clap::Args, Debug)]
struct Args {
    /// What to measure
    #[arg(value_enum, default_value_t = Work::All)]
    work: Work,
    /// Fingerprints in the built index: 80 % random, 20 % copies with 0 to 3 flips
    #[arg(long, default_value_t = 10_000_000)]
    count: u64,
    /// Fingerprints in the self-join
    #[arg(long, default_value_t = 1_000_000)]
    join_count: u64,
    /// Documents inserted through the write-ahead log
    #[arg(long, default_value_t = 500_000)]
    insert_count: u64,
    /// Memory budget in MiB
    #[arg(long, default_value_t = 512)]
    memory: usize,
    /// Plan of the index
    #[arg(long, default_value = "4")]
    plan: String,
    /// Directory for indexes and data; default: the system's temporary directory
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Directory that keeps the built index for later runs, which then only search it
    #[arg(long)]
    keep: Option<PathBuf>,
    /// Texts to fingerprint: JSON Lines with a field "text", optionally "lang", plain or .gz
    #[arg(long, required_if_eq("work", "text"))]
    corpus: Vec<PathBuf>,
    /// Also measures Python packages on some of the texts
    #[arg(long)]
    python: bool,
    /// Measures only the presets on texts
    #[arg(long)]
    presets: bool,
    /// Seed of all data
    #[arg(long, default_value_t = 7)]
    seed: u64,
    #[command(flatten)]
    source: Source,
}

/// The source of fingerprints.
#[derive(clap::Args, Clone, Debug, Default)]
struct Source {
    /// Distribution of the fingerprints
    #[arg(long, value_enum, default_value_t)]
    shape: Shape,
    /// Fingerprints of a corpus: .jsonl of `hamdex fingerprint`, or raw little-endian u64
    #[arg(long, conflicts_with = "shape")]
    fingerprints: Option<PathBuf>,
}

impl Source {
    /// Generates or reads `count` fingerprints; a file may have fewer.
    fn take(&self, seed: u64, count: u64) -> measure::Outcome<Vec<u64>> {
        match &self.fingerprints {
            Some(file) => data::read_corpus(file, count),
            None => Ok(shape::mixed(self.shape, seed, count)),
        }
    }
}

/// One measurement.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// All measurements
    All,
    /// Bulk build: rates, sizes, memory; then searches in the built index
    Build,
    /// Inserts in batches of 1,000, without and with fsync
    Insert,
    /// Self-join in memory and of an index, and joins of two sets
    Join,
    /// Skew of the fingerprints, compared with random ones
    Shape,
    /// Short posts: plain bucketing compared with splitting, even and skewed
    Skew,
    /// Fingerprinting of texts, one thread
    Text,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Cli { command, args } = Cli::parse();
    match &command {
        Some(Command::Report(args)) => return suite::run(args),
        Some(Command::Texts(args)) => return texts::run(args),
        Some(Command::Tables(args)) => return suite::readme::run(args),
        Some(Command::Billion(args)) => return billion::run(args),
        Some(Command::Measure(job)) => return measure::run(job),
        None => {}
    }
    let mut builder = tempfile::Builder::new();
    let builder = builder.prefix("hamdex-bench-");
    let dir = match &args.dir {
        Some(dir) => builder.tempdir_in(dir)?,
        None => builder.tempdir()?,
    };
    report::head(&format!("{args:?}"));
    if matches!(args.work, Work::All | Work::Build) {
        let dir = args.keep.as_deref().unwrap_or(dir.path());
        std::fs::create_dir_all(dir)?;
        if !dir.join("index").exists() {
            build::run(dir, &args)?;
        }
        search::run(dir, &args)?;
    }
    if matches!(args.work, Work::All | Work::Insert) {
        insert::run(dir.path(), &args)?;
    }
    if matches!(args.work, Work::All | Work::Join) {
        join::run(dir.path(), &args)?;
    }
    if matches!(args.work, Work::All | Work::Shape) {
        for shape in [Shape::Random, Shape::Text, Shape::Balanced] {
            let made = shape::mixed(shape, args.seed, args.join_count);
            Evenness::of(&made).print(&format!("{shape:?}"));
        }
        if let Some(file) = &args.source.fingerprints {
            Evenness::of(&data::read_corpus(file, u64::MAX)?).print("corpus");
        }
    }
    if matches!(args.work, Work::All | Work::Skew) {
        skew::run(&args)?;
    }
    for corpus in &args.corpus {
        text::run(corpus, &args)?;
    }
    Ok(())
}
