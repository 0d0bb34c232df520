//! Bulk build: rate of each phase, bytes of each family, peak memory.

use std::error::Error;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use hamdex::build::{BuildOptions, Builder};
use hamdex::plan::Plan;
use hamdex::{Index, IndexOptions, Progress};
use rdst::RadixSort;

use crate::{Args, data, report};

/// Notes when each phase begins.
#[derive(Default)]
struct Phases(Mutex<Vec<(String, Instant)>>);

impl Progress for Phases {
    fn begin(&self, phase: &str, _total: Option<u64>) {
        if let Ok(mut phases) = self.0.lock() {
            phases.push((phase.to_owned(), Instant::now()));
        }
    }
}

pub(crate) fn run(dir: &Path, args: &Args) -> Result<(), Box<dyn Error>> {
    let raw = dir.join("fingerprints.u64");
    // In a process of its own memory would be clean; here the data is made, written and freed
    // first, and its size is told beside the peak.
    data::write(&raw, &args.source.take(args.seed, args.count)?)?;
    let before = report::peak_memory();
    let plan = Plan::parse(&args.plan, 64, 3, Some(args.count))?;
    let options = IndexOptions::new().plan(plan.clone());
    let build = BuildOptions::new().memory(args.memory << 20);
    let phases = Phases::default();
    let start = Instant::now();
    let mut builder = Builder::<u64>::create(dir.join("index"), &options, &build)?;
    for (row, fingerprint) in data::read(&raw)?.enumerate() {
        let row = row as u64;
        builder.push(&row.to_be_bytes(), fingerprint?, row)?;
    }
    let read = start.elapsed();
    let result = builder.finish(&phases, &mut |_, _| ())?;
    let total = start.elapsed();
    let end = Instant::now();
    report::rate("build: everything, documents and postings included", args.count, total);
    report::rate("build: reading", args.count, read);
    let phases = phases.0.into_inner()?;
    let ends = phases.iter().skip(1).map(|(_, begun)| *begun).chain([end]);
    let mut tables = Duration::ZERO;
    for ((phase, begun), ended) in phases.iter().zip(ends) {
        let time = ended - *begun;
        report::rate(&format!("build: {phase}"), args.count, time);
        if phase.starts_with("writing table") {
            tables += time;
        }
    }
    report::rate("build: the tables' part", args.count, tables);
    report::row("documents, distinct", &format!("{}, {}", result.documents, result.fingerprints));
    if let (Some(before), Some(after)) = (before, report::peak_memory()) {
        report::row(
            "peak memory",
            &format!("{:.0} MB (making the data took {:.0} MB)", after / 1e6, before / 1e6),
        );
    }
    let sorting = sorting(&plan, &args.source.take(args.seed, args.count)?);
    report::rate("radix sort of as many fingerprints, once a table", args.count, sorting);
    let ratio = tables.as_secs_f64() / sorting.as_secs_f64();
    report::row("the tables' part beside that sorting", &format!("{ratio:.1} times"));
    let stats = Index::<u64>::open_read_only(dir.join("index"))?.stats(&())?;
    let per = |bytes: u64| bytes as f64 / result.documents.max(1) as f64;
    report::row("bytes per fingerprint: tables", &format!("{:.1}", per(stats.bytes_tables)));
    report::row("bytes per document: docs", &format!("{:.1}", per(stats.bytes_docs)));
    report::row("bytes per document: postings", &format!("{:.1}", per(stats.bytes_postings)));
    Ok(())
}

/// Returns how long all threads take to sort the fingerprints as every table does.
fn sorting(plan: &Plan, fingerprints: &[u64]) -> Duration {
    let mut permuted = vec![0; fingerprints.len()];
    let sort = |table: &hamdex::plan::Table| {
        table.permutation().apply_all(fingerprints, &mut permuted);
        let start = Instant::now();
        permuted.radix_sort_unstable();
        start.elapsed()
    };
    plan.tables().iter().map(sort).sum()
}
