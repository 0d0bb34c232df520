//! Hostile documents: crafted into one place; memory must stay bounded and answers exact.
//!
//! Anyone who knows the pipeline can craft such documents. Each crowd is built and searched by a
//! separate child, so that its memory can be measured. Times are reported beside the predicted time
//! of a scan, and not judged.

use std::collections::BinaryHeap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use fastrand::Rng;
use hamdex::build::{BuildOptions, Builder};
use hamdex::{Index, IndexOptions, Query, SearchPath};

use crate::child::{End, Running, send};
use crate::report::{Account, Finding, Verdict};

/// Memory budget of the index and of the build, in bytes.
const BUDGET: usize = 64 << 20;

/// Memory that a child may use above the budgets in MiB, for any number of documents.
const ABOVE: u64 = 192;

/// Maximum number of matches of a search.
const WANTED: usize = 50;

/// Number of searches in a crowd.
const SEARCHES: usize = 24;

/// The task of a child.
#[derive(Debug, clap::Args)]
pub(crate) struct Task {
    #[arg(long)]
    seed: u64,
    #[arg(long)]
    documents: u64,
    #[arg(long, value_enum)]
    crowd: Crowd,
}

/// The place of an attacker's documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Crowd {
    /// Under one prefix of the first table.
    Prefix,
    /// Under one prefix of each of three tables.
    Corner,
    /// Within three bits of one fingerprint.
    Ball,
    /// With one fingerprint.
    Group,
}

impl Crowd {
    const ALL: [(Self, &str); 4] = [
        (Self::Prefix, "prefix"),
        (Self::Corner, "corner"),
        (Self::Ball, "ball"),
        (Self::Group, "group"),
    ];

    /// Returns the fingerprint of a document by its number.
    fn fingerprint(self, centre: u64, number: u64) -> u64 {
        let any = mixed(centre ^ number);
        match self {
            Self::Prefix => centre & !(u64::MAX >> 16) | any >> 16,
            Self::Corner => centre & !0x00ff_ffff | any & 0x00ff_ffff,
            Self::Ball => centre ^ 1 << (any & 63) ^ 1 << (any >> 6 & 63) ^ 1 << (any >> 12 & 63),
            Self::Group => centre,
        }
    }
}

/// Spreads numbers over all bits (the finaliser of `SplitMix64`).
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Runs the scenario, with a child for every crowd.
pub(crate) fn run(directory: &Path, seed: u64, documents: u64) -> Account {
    let mut account = Account::new("hostile");
    for (_, name) in Crowd::ALL {
        account.tried();
        let verdict = run_child(&mut account, directory, seed, documents, name);
        account.judge(verdict.map_err(|finding| finding.within(name)));
    }
    account.end();
    account
}

fn run_child(
    account: &mut Account,
    directory: &Path,
    seed: u64,
    documents: u64,
    name: &'static str,
) -> Verdict {
    let place = directory.join(format!("hostile-{name}"));
    fs::create_dir_all(&place)?;
    let (seed, documents) = (seed.to_string(), documents.to_string());
    let arguments = ["--seed", &seed, "--documents", &documents, "--crowd", name];
    let mut child = Running::start("hostile", &place, &arguments.map(str::to_owned))?;
    while let Some(line) = child.line()? {
        match line.split_once(' ') {
            Some(("figures", figures)) => {
                eprintln!("hostile {name}: {figures}");
                account.note(format!("{name}: {figures}"));
            }
            Some(("wrong", text)) => return Err(Finding::wrong(text)),
            _ => {}
        }
    }
    if child.end()? != End::Done {
        return Err(Finding::wrong("the process was killed, probably for want of memory"));
    }
    fs::remove_dir_all(&place)?;
    Ok(())
}

/// Builds a crowd and searches it, in a child.
pub(crate) fn child(directory: &Path, task: &Task) {
    if let Err(finding) = search(directory, task) {
        send(&format!("wrong {}", finding.text.replace('\n', " ")));
    }
}

fn search(directory: &Path, task: &Task) -> Verdict {
    let path = directory.join("index");
    let centre = mixed(task.seed);
    let begun = Instant::now();
    let options = IndexOptions::new().memory(BUDGET);
    let mut builder = Builder::<u64>::create(&path, &options, &BuildOptions::new().memory(BUDGET))?;
    for number in 0..task.documents {
        let fingerprint = task.crowd.fingerprint(centre, number);
        builder.push(&number.to_be_bytes(), fingerprint, number)?;
        if number % 1_000_000 == 0 {
            send("pushing");
        }
    }
    builder.finish(&(), &mut |_, _| ())?;
    let built = begun.elapsed();
    send("built");
    let index = Index::<u64>::open_with(&path, &IndexOptions::new().memory(BUDGET))?;
    let rng = &mut Rng::with_seed(task.seed);
    let (mut times, mut scan) = (Vec::with_capacity(SEARCHES), Duration::ZERO);
    for (at, distance) in (0..SEARCHES).zip([0, 3, 6].into_iter().cycle()) {
        let query = task.crowd.fingerprint(centre, rng.u64(0..task.documents));
        let query = if at % 2 == 0 { query } else { query ^ 1 << rng.u32(0..64) };
        let asked = Query::new(query).distance(distance).limit(WANTED).path(SearchPath::Auto);
        let explained = index.explain(asked)?;
        times.push(explained.actual);
        scan = scan.max(explained.predicted_scan);
        let found: Vec<_> = explained.matches.into_iter().map(|m| (m.distance, m.key)).collect();
        if found != nearest(task, centre, query, distance) {
            return Err(Finding::wrong(format!("a search of {query:016x} at {distance}")));
        }
        send("searched");
    }
    let peak = peak_mib()?;
    let ms = |time: Option<Duration>| time.unwrap_or_default().as_secs_f64() * 1e3;
    // The first search at each distance reads cold files and learns where the crowd is.
    let (first, later) = times.split_at(times.len().min(3));
    send(&format!(
        "figures {} documents built in {:.1} s, {peak} MiB at most, slowest of the first {} \
         searches {:.1} ms, of the later ones {:.1} ms, a scan by the cost model {:.1} ms",
        task.documents,
        built.as_secs_f64(),
        first.len(),
        ms(first.iter().copied().max()),
        ms(later.iter().copied().max()),
        ms(Some(scan)),
    ));
    let allowed = (BUDGET as u64 >> 20) * 2 + ABOVE;
    if peak > allowed {
        return Err(Finding::wrong(format!("took {peak} MiB, {allowed} are allowed")));
    }
    Ok(())
}

/// Returns the first matches by a linear scan, nearest first.
fn nearest(task: &Task, centre: u64, query: u64, distance: u32) -> Vec<(u32, Vec<u8>)> {
    let mut best = BinaryHeap::with_capacity(WANTED + 1);
    for number in 0..task.documents {
        let apart = (task.crowd.fingerprint(centre, number) ^ query).count_ones();
        if apart > distance || best.len() == WANTED && best.peek() < Some(&(apart, number)) {
            continue;
        }
        best.push((apart, number));
        if best.len() > WANTED {
            best.pop();
        }
    }
    best.into_sorted_vec()
        .into_iter()
        .map(|(apart, number)| (apart, number.to_be_bytes().to_vec()))
        .collect()
}

/// Returns the peak memory of this process in MiB.
fn peak_mib() -> Verdict<u64> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    // If the system does not report it, memory is not judged.
    let Some(kib) = line.and_then(|line| line.split_whitespace().next()) else { return Ok(0) };
    kib.parse::<u64>().map(|kib| kib >> 10).map_err(|e| Finding::wrong(e.to_string()))
}
