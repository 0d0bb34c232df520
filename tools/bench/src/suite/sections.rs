//! The sections of the report, in order.

use std::error::Error;

use super::document::{Plot, Section, Table, size};
use super::plot::{self, Shown};
use super::{Report, contender, ratio, tables};

/// Plots over the number of fingerprints, all at the main distance.
const OVER_SIZE: [Shown; 7] = [
    shown("latency-median", "One query, k = 3: median", "µs", "search", "median_us", false),
    shown("latency-p99", "One query, k = 3: 99th percentile", "µs", "search", "p99_us", false),
    shown("latency-p999", "One query, k = 3: 99.9th percentile", "µs", "search", "p999_us", false),
    shown("throughput", "Batch, k = 3, one thread", "queries/s", "batch", "per_second", false),
    shown("build", "Build", "s", "build", "seconds", false),
    shown("memory", "Memory after the build", "bytes/fingerprint", "build", "memory_bytes", true),
    shown("join", "Self-join, k = 3", "s", "join", "seconds", false),
];

/// The plot over distances, one for each size.
const OVER_DISTANCE: Shown =
    shown("distances", "One query near a stored one: median", "µs", "search", "median_us", false);

const fn shown(
    name: &'static str,
    title: &'static str,
    unit: &'static str,
    work: &'static str,
    figure: &'static str,
    each: bool,
) -> Shown {
    Shown { name, title, unit, work, figure, each }
}

pub(super) fn all(report: &Report) -> Result<Vec<Section>, Box<dyn Error>> {
    let rows = &report.rows;
    let mut sections = vec![run(report), agreement(report)];
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    for &n in report.sizes.iter().rev() {
        sections.push(Section::new(
            format!("{} fingerprints, k = 3", size(n)),
            &["Medians of the repetitions. `near`: queries that differ from stored fingerprints \
               in 0 to k bits. Times of single queries and queries/s are for one thread; builds \
               use as many cores as each engine does. Memory is the growth of the resident size \
               of the process, after the first build and after all searches."],
            tables::overview(rows, n, threads),
        ));
    }
    let mut growth = Section::new(
        "Growth with the number of fingerprints",
        &["Bars span all repetitions."],
        Table::default(),
    );
    for shown in OVER_SIZE {
        growth.plots.extend(plot::over_size(rows, shown)?);
    }
    sections.push(growth);
    for &n in report.sizes.iter().rev() {
        let mut section = Section::new(
            format!("Distances at {} fingerprints", size(n)),
            &[],
            tables::distances(rows, n),
        );
        let plot = plot::over_distance(rows, n, OVER_DISTANCE)?;
        let named = |plot: Plot| Plot { name: format!("{}-{n}", plot.name), ..plot };
        section.plots.extend(plot.map(named));
        sections.push(section);
    }
    for &n in report.sizes.iter().rev() {
        sections.push(Section::new(
            format!("Ratios at {} fingerprints", size(n)),
            &["Above 1 ours is ahead; ▼ marks rows in which it is behind. The span compares the \
               best repetition of one with the worst of the other. Indexes on disk are compared \
               with peers that keep everything in memory and store nothing."],
            ratio::table(rows, n),
        ));
    }
    sections.push(Section::new("Self-join", &[], tables::joins(rows)));
    sections.push(Section::new("Inserts", &[], tables::inserts(rows)));
    sections.push(Section::new(
        "Predictions",
        &["Times predicted by the cost model, calibrated on this machine, and median times of \
           random queries; ▼ marks predictions that are off by more than a factor of two."],
        tables::predictions(rows),
    ));
    sections.push(Section::new(
        "Texts against fingerprints",
        &["The reason for fingerprints: a million edit distances against a million Hamming \
           distances, on one thread."],
        tables::yardstick(rows),
    ));
    sections.push(Section::new(
        "Not measured",
        &["Peers are skipped if a build or join is expected to take more seconds than the option \
           `patience` allows, a minute by default, or most of the free memory."],
        tables::absent(rows, &contender::LEFT_OUT),
    ));
    sections.retain(|section| !section.table.rows.is_empty() || !section.plots.is_empty());
    Ok(sections)
}

fn run(report: &Report) -> Section {
    let mut table = Table::new(&["this run", ""]);
    for (name, value) in &report.machine {
        table.rows.push(vec![(*name).into(), value.clone().into()]);
    }
    Section::new(
        "Run",
        &["Every engine ran in a separate process, one after the other, on the same 64-bit \
           fingerprints: 80 % random, 20 % copies of earlier ones with 0 to 3 bits flipped. \
           report.json has all figures with each repetition."],
        table,
    )
}

fn agreement(report: &Report) -> Section {
    Section::new(
        "Agreement",
        &["Number and digest of all pairs of query and fingerprint found, compared with those of \
           hamdex on the queries that both answered. Recall is the lowest of all comparisons."],
        tables::agreement(&report.verdicts),
    )
}
