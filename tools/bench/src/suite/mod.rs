//! The report: runs hamdex and its peers on the same data, and compares their answers.

mod agree;
mod contender;
mod document;
mod machine;
mod plot;
mod process;
mod ratio;
pub(crate) mod readme;
mod render;
mod sections;
mod tables;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::measure::yardstick;
use crate::row::Row;
use crate::{Source, data, shape};
use agree::Verdict;
use process::Ground;

/// The driver of the Python peers, which is written beside the data.
const DRIVER: &str = include_str!("../../../peers/search_peers.py");

/// Packages whose versions are reported.
const PACKAGES: [&str; 3] = ["faiss-cpu", "simhash", "numpy"];

/// Number of single queries at every distance.
const QUERIES: usize = 10_000;

/// Options of a report.
#[derive(clap::Args, Debug)]
pub(crate) struct ReportArgs {
    /// Directory of report.json, report.md, report.html and the plots
    #[arg(long, default_value = "bench-report")]
    out: PathBuf,
    /// Largest number of fingerprints; measures all powers of ten from 10,000 to it
    #[arg(long, default_value_t = 10_000_000)]
    largest: u64,
    /// Numbers of fingerprints, ascending, instead of the powers of ten
    #[arg(long, value_delimiter = ',', conflicts_with = "largest")]
    sizes: Vec<u64>,
    /// Runs for a few seconds: up to 100,000 fingerprints and short repetitions
    #[arg(long)]
    quick: bool,
    /// Repetitions of every figure
    #[arg(long, default_value_t = 5)]
    repetitions: usize,
    /// Maximum time of a repetition, in seconds
    #[arg(long, default_value_t = 0.5)]
    budget: f64,
    /// Maximum expected time of a peer's build or join, in seconds; killed after twice the time
    #[arg(long, default_value_t = 60)]
    patience: u32,
    /// Distances of searches
    #[arg(long, value_delimiter = ',', default_value = "1,2,3,4,5,6,7,8,9,10,11,12,16")]
    distances: Vec<u32>,
    /// Queries of a batch
    #[arg(long, default_value_t = 1_000_000)]
    batch: usize,
    /// Runs only contenders whose name contains one of these
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Python interpreter with faiss-cpu, numpy and simhash
    #[arg(long)]
    python: Option<PathBuf>,
    /// Directory for data and indexes; default: the system's temporary directory
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Seed of all data
    #[arg(long, default_value_t = 7)]
    seed: u64,
    #[command(flatten)]
    source: Source,
}

impl ReportArgs {
    /// Returns the sizes passed, or the powers of ten from 10,000 and the largest size.
    fn sizes(&self) -> Vec<u64> {
        if !self.sizes.is_empty() {
            return self.sizes.clone();
        }
        let largest = if self.quick { self.largest.min(100_000) } else { self.largest };
        let mut sizes: Vec<u64> =
            (4..10).map(|power| 10_u64.pow(power)).filter(|n| *n < largest).collect();
        sizes.push(largest);
        sizes
    }

    fn budget(&self) -> f64 {
        if self.quick { self.budget.min(0.05) } else { self.budget }
    }

    fn repetitions(&self) -> usize {
        if self.quick { self.repetitions.clamp(1, 3) } else { self.repetitions.max(1) }
    }

    /// Returns the command that repeats this run, without paths.
    fn command(&self) -> String {
        let options = [
            ("largest", self.largest.to_string()),
            ("repetitions", self.repetitions.to_string()),
            ("budget", self.budget.to_string()),
            ("patience", self.patience.to_string()),
            ("batch", self.batch.to_string()),
            ("distances", self.distances.iter().map(u32::to_string).collect::<Vec<_>>().join(",")),
            ("seed", self.seed.to_string()),
            ("shape", format!("{:?}", self.source.shape).to_lowercase()),
            ("only", self.only.join(",")),
            ("sizes", self.sizes.iter().map(u64::to_string).collect::<Vec<_>>().join(",")),
        ];
        let given = options.iter().filter(|(_, value)| !value.is_empty());
        let options: Vec<_> = given.map(|(name, value)| format!(" --{name} {value}")).collect();
        let quick = if self.quick { " --quick" } else { "" };
        format!("tools/bench/report.sh{quick}{}", options.concat())
    }

    fn patience(&self) -> u32 {
        if self.quick { self.patience.min(5) } else { self.patience }
    }

    fn takes(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|part| name.contains(part))
    }
}

/// The results of a report.
pub(crate) struct Report {
    machine: Vec<(&'static str, String)>,
    rows: Vec<Row>,
    verdicts: Vec<Verdict>,
    sizes: Vec<u64>,
}

pub(crate) fn run(args: &ReportArgs) -> Result<(), Box<dyn Error>> {
    let mut builder = tempfile::Builder::new();
    let builder = builder.prefix("hamdex-report-");
    let dir = match &args.dir {
        Some(dir) => builder.tempdir_in(dir)?,
        None => builder.tempdir()?,
    };
    let sizes = args.sizes();
    let ground = ground(args, &sizes, dir.path())?;
    let machine = describe(args);
    let mut report = Report { machine, rows: Vec::new(), verdicts: Vec::new(), sizes: Vec::new() };
    for &n in &sizes {
        measure(args, &ground, n, &mut report.rows)?;
        report.sizes.push(n);
        report.verdicts = agree::verdicts(&report.rows);
        // Written after each size, so that an interrupted run keeps its results.
        write(&report, &args.out)?;
    }
    let wrong: Vec<_> = report.verdicts.iter().filter(|verdict| verdict.is_wrong()).collect();
    for verdict in &wrong {
        eprintln!("answers differ: {verdict:?}");
    }
    eprintln!("wrote {}", args.out.join("report.html").display());
    if wrong.is_empty() { Ok(()) } else { Err("answers differ, see the report".into()) }
}

/// Returns machine, commit and settings in display order.
fn describe(args: &ReportArgs) -> Vec<(&'static str, String)> {
    let mut facts = machine::describe();
    facts.push(("seed", args.seed.to_string()));
    let shape = match &args.source.fingerprints {
        Some(_) => "a corpus".into(),
        None => format!("{:?}", args.source.shape).to_lowercase(),
    };
    facts.push(("shape", shape));
    facts.push(("repetitions", args.repetitions().to_string()));
    facts.push(("command", args.command()));
    for package in PACKAGES {
        let version = args.python.as_deref().and_then(|p| machine::python_version(p, package));
        facts.push((package, version.unwrap_or_else(|| "not installed".into())));
    }
    let peers = if cfg!(feature = "peers") { "built in" } else { "not built in" };
    facts.push(("Rust peers", peers.into()));
    facts
}

/// Writes the data for all contenders.
fn ground(args: &ReportArgs, sizes: &[u64], dir: &Path) -> Result<Ground, Box<dyn Error>> {
    let ground = Ground {
        data: dir.join("fingerprints.u64"),
        queries: dir.to_owned(),
        dir: dir.to_owned(),
        driver: dir.join("search_peers.py"),
        python: args.python.clone(),
        distances: args.distances.iter().map(u32::to_string).collect::<Vec<_>>().join(","),
        repetitions: args.repetitions(),
        budget: args.budget(),
        patience: Duration::from_secs(u64::from(2 * args.patience())),
    };
    fs::write(&ground.driver, DRIVER)?;
    let fingerprints = args.source.take(args.seed, sizes.last().copied().unwrap_or(0))?;
    data::write(&ground.data, &fingerprints)?;
    let strangers = shape::strangers(args.source.shape, args.seed ^ 0xabcd, QUERIES);
    data::write(&dir.join("random.u64"), &strangers)?;
    Ok(ground)
}

/// Runs every contender at one size.
fn measure(
    args: &ReportArgs,
    ground: &Ground,
    n: u64,
    rows: &mut Vec<Row>,
) -> Result<(), Box<dyn Error>> {
    queries(args, ground, n)?;
    for contender in contender::all().filter(|c| args.takes(c.name)) {
        // Its figures do not depend on the size.
        if contender.name == yardstick::NAME && rows.iter().any(|row| row.engine == contender.name)
        {
            continue;
        }
        let reason = if contender.ours {
            None
        } else {
            contender::too_slow(contender.name, n, args.patience().into(), rows)
        };
        let new = match reason {
            Some(reason) => vec![Row::absent(contender.name, n, reason)],
            None => process::run(&contender, n, ground),
        };
        for row in &new {
            eprintln!("{}", row.to_json());
        }
        rows.extend(new);
    }
    Ok(())
}

/// Writes queries near the fingerprints of this size.
fn queries(args: &ReportArgs, ground: &Ground, n: u64) -> Result<(), Box<dyn Error>> {
    let stored = data::read_some(&ground.data, usize::try_from(n)?)?;
    for &distance in &args.distances {
        let count = if distance == 3 { args.batch.max(QUERIES) } else { QUERIES };
        let seed = args.seed ^ n ^ u64::from(distance) << 48;
        let queries = data::near(seed, &stored, distance, count);
        data::write(&ground.queries.join(format!("near-{distance}.u64")), &queries)?;
    }
    Ok(())
}

fn write(report: &Report, out: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(out)?;
    let sections = sections::all(report)?;
    for plot in sections.iter().flat_map(|section| &section.plots) {
        fs::write(out.join(format!("{}.svg", plot.name)), &plot.svg)?;
    }
    let title = "hamdex and its peers";
    fs::write(out.join("report.md"), render::markdown(title, &sections)?)?;
    fs::write(out.join("report.html"), render::html(title, &sections)?)?;
    let facts: serde_json::Map<_, _> =
        report.machine.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    // One row on each line, so that two reports can be compared by lines.
    let lines = |rows: &mut dyn Iterator<Item = Value>| {
        rows.map(|row| format!("  {row}")).collect::<Vec<_>>().join(",\n")
    };
    let data = format!(
        "{{\n\"run\": {:#},\n\"rows\": [\n{}\n],\n\"agreement\": [\n{}\n]\n}}\n",
        Value::Object(facts),
        lines(&mut report.rows.iter().map(Row::to_json)),
        lines(&mut report.verdicts.iter().map(Verdict::to_json)),
    );
    fs::write(out.join("report.json"), data)?;
    Ok(())
}
