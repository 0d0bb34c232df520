//! `stats`: an index becomes its counts, sizes and settings.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use hamdex::inspect::{Header, Sizes, Stats};
use hamdex_io::host::Host;
use serde::Serialize;

use crate::draw::bars::Pen;
use crate::draw::table::Table;
use crate::failure::Result;
use crate::output::Output;
use crate::session::Session;
use crate::size;
use crate::stored;
use crate::verb::doctor::warn_of_seal;

/// Show counts, sizes and settings of an index
///
/// Histograms below the tables show how even the bits are, how many documents share a fingerprint,
/// how many fingerprints share a prefix, and how long the keys are.
#[derive(Debug, Args)]
#[command(after_long_help = "Example:\n  hamdex index stats pages.idx")]
pub(crate) struct StatsArgs {
    /// Directory of the index
    index: PathBuf,
}

#[derive(Serialize)]
struct Account<'a> {
    documents: u64,
    fingerprints: u64,
    format: u32,
    bits: u32,
    distance: u32,
    plan: &'a str,
    pipeline: &'a str,
    singles: u64,
    runs: u64,
    bytes: u64,
    bytes_docs: u64,
    keeps_features: bool,
    with_features: u64,
    bytes_features: u64,
    bytes_postings: u64,
    bytes_tables: u64,
    tables: Vec<TableRow>,
    /// Bytes of the pipeline's own tables, by name.
    resources: BTreeMap<&'static str, u64>,
}

#[derive(Serialize)]
struct TableRow {
    prefix_bits: u32,
    singles: u64,
    runs: u64,
    bytes: u64,
}

impl StatsArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<()> {
        let header = stored::require(&self.index, None)?;
        warn_of_seal(&self.index, session);
        let stats = stored::read_only(&self.index)?.stats(&session.console)?;
        session.console.end_phase();
        let mut output = Output::stdout(&session.console);
        if session.json {
            output.json(&account(&header, &stats))?;
        } else {
            let (list, tables) = (list(&header, &stats), tables(&stats));
            output.with(|out| {
                list.write(out)?;
                writeln!(out)?;
                tables.write(out)?;
                histograms(out, &stats)
            })?;
        }
        output.finish()
    }
}

fn total(stats: &Stats) -> u64 {
    stats.bytes_docs + stats.bytes_postings + stats.bytes_tables
}

fn list(header: &Header, stats: &Stats) -> Table {
    let per = |bytes: u64, count: u64| {
        let each = bytes as f64 / (count.max(1)) as f64;
        format!("{} ({each:.1} each)", size::bytes(bytes as f64))
    };
    let pipeline =
        if header.pipeline.is_empty() { "none: fingerprints only" } else { &header.pipeline };
    let mut list = Table::list();
    list.pair("documents", size::thousands(stats.documents))
        .pair("distinct fingerprints", size::thousands(stats.fingerprints))
        .pair("bits", header.bits)
        .pair("distance", header.distance)
        .pair("plan", &header.plan)
        .pair("pipeline", pipeline)
        .pair("format", header.format)
        .pair("bytes", size::bytes(total(stats) as f64))
        .pair("  documents", per(stats.bytes_docs, stats.documents))
        .pair("  postings", per(stats.bytes_postings, stats.documents))
        .pair("  tables", per(stats.bytes_tables, stats.fingerprints))
        .pair("features kept", features(header, stats));
    for (name, bytes) in &stats.resources {
        list.pair(&format!("  {name}"), size::bytes(*bytes as f64));
    }
    list
}

fn features(header: &Header, stats: &Stats) -> String {
    if !header.keeps_features {
        return "none".to_owned();
    }
    let each = stats.bytes_features as f64 / stats.with_features.max(1) as f64;
    match stats.documents - stats.with_features.min(stats.documents) {
        0 => format!("{each:.1} bytes a document"),
        bare => {
            format!("{each:.1} bytes a document, {} documents have none", size::thousands(bare))
        }
    }
}

fn tables(stats: &Stats) -> Table {
    let mut tables =
        Table::with_heading(&["table", "prefix bits", "delta entries", "runs", "bytes"]);
    for (number, table) in stats.tables.iter().enumerate() {
        tables.row([
            number.to_string(),
            table.prefix_bits.to_string(),
            size::thousands(table.delta_entries),
            size::thousands(table.runs),
            size::bytes(table.bytes as f64),
        ]);
    }
    tables
}

/// Draws what the fingerprints are like; nothing of an empty index.
fn histograms(out: &mut dyn Write, stats: &Stats) -> io::Result<()> {
    let pen = Pen::stdout();
    let all = stats.fingerprints.max(1) as f64;
    let shares: Vec<f64> = stats.ones.iter().map(|&ones| ones as f64 / all).collect();
    let bits = shares.iter().enumerate();
    let lowest = bits.clone().min_by(|a, b| a.1.total_cmp(b.1));
    let highest = bits.max_by(|a, b| a.1.total_cmp(b.1));
    if let (Some((low, least)), Some((high, most)), 1..) = (lowest, highest, stats.fingerprints) {
        let title = format!(
            "bit balance: ones in {:.1} % (bit {low}) to {:.1} % (bit {high}) of the fingerprints",
            100.0 * least,
            100.0 * most
        );
        pen.columns(out, &title, &shares)?;
    }
    pen.histogram(out, "documents of a fingerprint", &rows(&stats.copies))?;
    // The shortest prefixes have the most fingerprints, and decide what a search costs.
    if let Some(table) = stats.tables.iter().min_by_key(|table| table.prefix_bits) {
        let bits = table.prefix_bits;
        let even = stats.fingerprints as f64 / 2_f64.powf(f64::from(bits));
        let title = format!(
            "fingerprints of a prefix of {bits} bits: at most {}, {} if all were even",
            size::thousands(table.prefixes.largest()),
            size::estimate(even)
        );
        pen.histogram(out, &title, &rows(&table.prefixes))?;
    }
    let each = stats.keys.total() as f64 / stats.documents.max(1) as f64;
    pen.histogram(out, &format!("bytes of a key: {each:.1} each"), &rows(&stats.keys))
}

/// Returns a row for each doubling, from the first to the last that is not empty.
fn rows(sizes: &Sizes) -> Vec<(String, u64)> {
    let counts = sizes.counts();
    let first = counts.iter().position(|&count| count > 0).unwrap_or(0);
    let last = counts.iter().rposition(|&count| count > 0).map_or(0, |last| last + 1);
    let row = |(place, &count): (usize, &u64)| {
        let low = 1_u64 << place;
        let name = match 2 * low - 1 {
            high if high == low => low.to_string(),
            high => format!("{} to {}", size::thousands(low), size::thousands(high)),
        };
        (name, count)
    };
    counts.iter().enumerate().take(last).skip(first).map(row).collect()
}

fn account<'a>(header: &'a Header, stats: &Stats) -> Account<'a> {
    let row = |table: &hamdex::inspect::TableStats| TableRow {
        prefix_bits: table.prefix_bits,
        singles: table.delta_entries,
        runs: table.runs,
        bytes: table.bytes,
    };
    Account {
        documents: stats.documents,
        fingerprints: stats.fingerprints,
        format: header.format,
        bits: header.bits,
        distance: header.distance,
        plan: &header.plan,
        pipeline: &header.pipeline,
        singles: stats.delta_entries,
        runs: stats.runs,
        bytes: total(stats),
        bytes_docs: stats.bytes_docs,
        keeps_features: header.keeps_features,
        with_features: stats.with_features,
        bytes_features: stats.bytes_features,
        bytes_postings: stats.bytes_postings,
        bytes_tables: stats.bytes_tables,
        tables: stats.tables.iter().map(row).collect(),
        resources: stats.resources.iter().copied().collect(),
    }
}
