//! Hostile documents: crafted into one place; memory must stay bounded and answers exact.
//!
//! Anyone who knows the pipeline can craft such documents. One child builds each crowd, another one
//! searches it and inserts more, so that the memory of each can be measured. Times are reported
//! beside the predicted time of a scan, and not judged. Spread documents, which nobody crafted, are
//! built and searched like the crowds.

use std::collections::BinaryHeap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use fastrand::Rng;
use hamdex::build::{BuildOptions, Builder};
use hamdex::{Durability, Index, IndexOptions, Match, Query, SearchPath};

use crate::child::{End, Running, send};
use crate::report::{Account, Finding, Verdict};

/// Memory budget of the index, and of the build, in bytes.
const BUDGET: usize = 64 << 20;

/// Memory that a child may use above the budget in MiB, of which its program takes a quarter.
///
/// `IndexOptions::memory` states it.
const ABOVE: u64 = 160;

/// Maximum number of matches of a search.
const WANTED: usize = 50;

/// Number of searches in a crowd, one by one, and then as one batch.
const SEARCHES: usize = 24;

/// One in this many documents is inserted after the build.
const LATER: u64 = 50;

/// Documents of one insert.
const TOGETHER: usize = 1000;

/// The task of a child.
#[derive(Debug, clap::Args)]
pub(crate) struct Task {
    #[arg(long)]
    seed: u64,
    #[arg(long)]
    documents: u64,
    #[arg(long, value_enum)]
    crowd: Crowd,
    #[arg(long, value_enum)]
    part: Part,
}

/// What a child does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    Build,
    Use,
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
    /// Anywhere.
    Spread,
}

impl Crowd {
    const ALL: [(Self, &str); 5] = [
        (Self::Prefix, "prefix"),
        (Self::Corner, "corner"),
        (Self::Ball, "ball"),
        (Self::Group, "group"),
        (Self::Spread, "spread"),
    ];

    /// Returns the fingerprint of a document by its number.
    fn fingerprint(self, centre: u64, number: u64) -> u64 {
        let any = mixed(centre ^ number);
        match self {
            Self::Prefix => centre & !(u64::MAX >> 16) | any >> 16,
            Self::Corner => centre & !0x00ff_ffff | any & 0x00ff_ffff,
            Self::Ball => centre ^ 1 << (any & 63) ^ 1 << (any >> 6 & 63) ^ 1 << (any >> 12 & 63),
            Self::Group => centre,
            Self::Spread => any,
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
    for part in ["build", "use"] {
        let arguments =
            ["--seed", &seed, "--documents", &documents, "--crowd", name, "--part", part];
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
    }
    fs::remove_dir_all(&place)?;
    Ok(())
}

/// Builds a crowd, or searches it and inserts more, in a child.
pub(crate) fn child(directory: &Path, task: &Task) {
    let path = directory.join("index");
    let done = match task.part {
        Part::Build => build(&path, task),
        Part::Use => search(&path, task),
    };
    if let Err(finding) = done {
        send(&format!("wrong {}", finding.text.replace('\n', " ")));
    }
}

fn build(path: &Path, task: &Task) -> Verdict {
    let centre = mixed(task.seed);
    let begun = Instant::now();
    let options = IndexOptions::new().memory(BUDGET);
    let mut builder = Builder::<u64>::create(path, &options, &BuildOptions::new().memory(BUDGET))?;
    for number in 0..task.documents {
        let fingerprint = task.crowd.fingerprint(centre, number);
        builder.push(&number.to_be_bytes(), fingerprint, number)?;
        if number % 1_000_000 == 0 {
            send("pushing");
        }
    }
    builder.finish(&(), &mut |_, _| send("building"))?;
    let (seconds, peak) = (begun.elapsed().as_secs_f64(), peak_mib()?);
    send(&format!("figures {} documents built in {seconds:.1} s, {peak} MiB", task.documents));
    judge(peak)
}

fn search(path: &Path, task: &Task) -> Verdict {
    let centre = mixed(task.seed);
    let index = Index::<u64>::open_with(path, &IndexOptions::new().memory(BUDGET))?;
    let rng = &mut Rng::with_seed(task.seed);
    let (mut times, mut scan) = (Vec::with_capacity(SEARCHES), Duration::ZERO);
    let mut all = Vec::with_capacity(SEARCHES);
    for (at, distance) in (0..SEARCHES).zip([0, 3, 6].into_iter().cycle()) {
        let query = task.crowd.fingerprint(centre, rng.u64(0..task.documents));
        let query = if at % 2 == 0 { query } else { query ^ 1 << rng.u32(0..64) };
        let explained = index.explain(asked((query, distance)))?;
        times.push(explained.actual);
        scan = scan.max(explained.predicted_scan);
        if found(&explained.matches) != nearest(task, task.documents, (query, distance)) {
            return Err(Finding::wrong(format!("a search of {query:016x} at {distance}")));
        }
        all.push((query, distance));
        send("searched");
    }
    let batch = search_together(&index, task, task.documents, &all)?;
    let searched = peak_mib()?;
    let documents = task.documents + task.documents / LATER;
    insert(&index, task, task.documents..documents)?;
    search_together(&index, task, documents, &all)?;
    let peak = peak_mib()?;
    let ms = |time: Option<Duration>| time.unwrap_or_default().as_secs_f64() * 1e3;
    // The first search at each distance reads cold files and learns where the crowd is.
    let (first, later) = times.split_at(times.len().min(3));
    send(&format!(
        "figures slowest of the first {} searches {:.1} ms, of the later ones {:.1} ms, a scan by \
         the cost model {:.1} ms, all as a batch {:.1} ms, {searched} MiB; with one in {LATER} \
         inserted and merged {peak} MiB",
        first.len(),
        ms(first.iter().copied().max()),
        ms(later.iter().copied().max()),
        ms(Some(scan)),
        ms(Some(batch)),
    ));
    judge(peak)
}

/// Searches for all fingerprints as one batch. Returns its time.
fn search_together(
    index: &Index<u64>,
    task: &Task,
    documents: u64,
    all: &[(u64, u32)],
) -> Verdict<Duration> {
    let queries: Vec<_> = all.iter().copied().map(asked).collect();
    let begun = Instant::now();
    let answers = index.search_batch(&queries)?;
    let took = begun.elapsed();
    let wanted = all.iter().map(|near| nearest(task, documents, *near));
    if answers.iter().map(|matches| found(matches)).ne(wanted) {
        return Err(Finding::wrong(format!("a batch of searches among {documents} documents")));
    }
    Ok(took)
}

/// Inserts more documents of the crowd in batches, and merges them.
fn insert(index: &Index<u64>, task: &Task, later: std::ops::Range<u64>) -> Verdict {
    let centre = mixed(task.seed);
    for first in later.clone().step_by(TOGETHER) {
        let documents: Vec<_> = (first..later.end.min(first + TOGETHER as u64))
            .map(|number| (number.to_be_bytes(), task.crowd.fingerprint(centre, number)))
            .collect();
        index.insert_batch(&documents, Durability::Buffered)?;
        send("inserted");
    }
    while index.merge_step()? {
        send("merged");
    }
    let (stored, wanted) = (index.len()?, later.end);
    if stored != wanted {
        return Err(Finding::lost(format!("{stored} of {wanted} documents are stored")));
    }
    Ok(())
}

fn judge(peak: u64) -> Verdict {
    let allowed = (BUDGET as u64 >> 20) + ABOVE;
    if peak > allowed {
        return Err(Finding::wrong(format!("took {peak} MiB, {allowed} are allowed")));
    }
    Ok(())
}

fn asked((query, distance): (u64, u32)) -> Query<u64> {
    Query::new(query).distance(distance).limit(WANTED).path(SearchPath::Auto)
}

fn found(matches: &[Match<u64>]) -> Vec<(u32, Vec<u8>)> {
    matches.iter().map(|one| (one.distance, one.key.clone())).collect()
}

/// Returns the first matches among the first documents by a linear scan, nearest first.
fn nearest(task: &Task, documents: u64, (query, distance): (u64, u32)) -> Vec<(u32, Vec<u8>)> {
    let centre = mixed(task.seed);
    let mut best = BinaryHeap::with_capacity(WANTED + 1);
    for number in 0..documents {
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
