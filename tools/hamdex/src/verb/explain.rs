//! `explain`: runs one search and reports its path and counts.

use std::path::PathBuf;

use clap::Args;
use hamdex::inspect::Explanation;
use hamdex::{Fingerprint, Query, SearchPath, for_width};
use serde::Serialize;

use super::query::{from_hex, sketch};
use crate::draw::table::Table;
use crate::failure::Result;
use crate::input::Wanted;
use crate::key::Name;
use crate::options::resources::SeedArg;
use crate::options::{DistanceArg, MemoryArg, WidthArg};
use crate::output::Output;
use crate::session::Session;
use crate::size;
use crate::stored;

/// Show what a query does: path, ranges, candidates, matches, time
#[derive(Debug, Args)]
#[command(
    after_long_help = "Example:\n  hamdex index explain pages.idx --fingerprint 8f3a5c0012d4e6b7 -k 8"
)]
pub(crate) struct ExplainArgs {
    /// Directory of the index
    index: PathBuf,
    /// Fingerprint to search for: hexadecimal, with or without 0x
    #[arg(long, value_name = "HEX", required_unless_present = "text", conflicts_with = "text")]
    fingerprint: Option<String>,
    /// Text to search for
    #[arg(long, value_name = "STR")]
    text: Option<String>,
    /// Path of the search: the cheaper one, through the tables, by comparing with everything, or in
    /// memory, after reading the index into it
    #[arg(long, value_name = "auto|tables|scan|resident", value_parser = path, default_value = "auto")]
    path: SearchPath,
    #[command(flatten)]
    memory: MemoryArg,
    #[command(flatten)]
    distance: DistanceArg,
    #[command(flatten)]
    width: WidthArg,
    #[command(flatten)]
    seed: SeedArg,
}

fn path(text: &str) -> Result<SearchPath, String> {
    match text {
        "auto" => Ok(SearchPath::Auto),
        "tables" => Ok(SearchPath::Tables),
        "scan" => Ok(SearchPath::Scan),
        "resident" => Ok(SearchPath::Resident),
        _ => Err("expected auto, tables, scan or resident".to_owned()),
    }
}

fn name(path: SearchPath) -> &'static str {
    match path {
        SearchPath::Auto => "auto",
        SearchPath::Tables => "tables",
        SearchPath::Scan => "scan",
        SearchPath::Resident => "resident",
        _ => "other",
    }
}

#[derive(Serialize)]
struct Account<'a> {
    plan: &'a str,
    path: &'static str,
    distance: u32,
    entries: u64,
    candidates: u64,
    blocks: u64,
    matches: Vec<Found<'a>>,
    seconds: f64,
    predicted_seconds: f64,
    predicted_scan_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    predicted_resident_seconds: Option<f64>,
    tables: Vec<TableRow>,
}

#[derive(Serialize)]
struct Found<'a> {
    id: Name<'a>,
    fingerprint: String,
    distance: u32,
}

#[derive(Serialize)]
struct TableRow {
    table: usize,
    prefix_bits: u32,
    radius: Option<u32>,
    ranges: u64,
    runs: u64,
    candidates: u64,
    matches: u64,
    blocks: u64,
}

impl ExplainArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<()> {
        let header = stored::require(&self.index, self.width.bits)?;
        for_width!(header.bits, F => {
            let fingerprint = match (&self.fingerprint, &self.text) {
                (None, Some(text)) => {
                    let text = (text.as_str(), Wanted::NOTHING);
                    sketch::<F>(&header, &self.index, &self.seed, text)?.0
                }
                (hex, _) => from_hex(hex.as_deref().unwrap_or_default())?,
            };
            let query = Query::new(fingerprint)
                .distance(self.distance.distance.unwrap_or(header.distance))
                .path(self.path);
            let index = stored::read_only_of::<F>(&self.index)?;
            if self.path == SearchPath::Resident {
                stored::load(&index, &self.index, &self.memory)?;
            }
            show(session, &index.explain(query)?)
        })
    }
}

fn show<F: Fingerprint>(session: &Session, explanation: &Explanation<F>) -> Result<()> {
    let mut output = Output::stdout(&session.console);
    if session.json {
        output.json(&account(explanation))?;
        return output.finish();
    }
    let mut list = Table::list();
    list.pair("plan", &explanation.plan)
        .pair("path", name(explanation.path))
        .pair("distance", explanation.distance)
        .pair("documents", size::thousands(explanation.entries))
        .pair("candidates", size::thousands(explanation.candidates))
        .pair("blocks read", size::thousands(explanation.blocks))
        .pair("matches", size::thousands(explanation.matches.len() as u64))
        .pair("time", size::seconds(explanation.actual))
        .pair("predicted, tables", size::seconds(explanation.predicted))
        .pair("predicted, scan", size::seconds(explanation.predicted_scan));
    if let Some(time) = explanation.predicted_resident {
        list.pair("predicted, resident", size::seconds(time));
    }
    let mut tables = Table::with_heading(&[
        "table",
        "prefix bits",
        "flips",
        "ranges",
        "runs",
        "candidates",
        "matches",
        "blocks read",
    ]);
    for table in &explanation.tables {
        tables.row([
            table.table.to_string(),
            table.prefix_bits.to_string(),
            table.radius.map_or_else(|| "not used".to_owned(), |radius| radius.to_string()),
            size::thousands(table.ranges),
            size::thousands(table.runs),
            size::thousands(table.candidates),
            size::thousands(table.matches),
            size::thousands(table.blocks),
        ]);
    }
    output.with(|out| {
        list.write(out)?;
        if !explanation.tables.is_empty() {
            writeln!(out)?;
            tables.write(out)?;
        }
        if !explanation.matches.is_empty() {
            writeln!(out)?;
            let mut matches = Table::with_heading(&["id", "fingerprint", "distance"]);
            for found in &explanation.matches {
                matches.row([
                    Name::of(&found.key).to_string(),
                    found.fingerprint.hex().to_string(),
                    found.distance.to_string(),
                ]);
            }
            matches.write(out)?;
        }
        Ok(())
    })?;
    output.finish()
}

fn account<F: Fingerprint>(explanation: &Explanation<F>) -> Account<'_> {
    let found = |found| {
        let hamdex::Match { key, fingerprint, distance, .. }: &hamdex::Match<F> = found;
        Found { id: Name::of(key), fingerprint: fingerprint.hex().to_string(), distance: *distance }
    };
    Account {
        plan: &explanation.plan,
        path: name(explanation.path),
        distance: explanation.distance,
        entries: explanation.entries,
        candidates: explanation.candidates,
        blocks: explanation.blocks,
        matches: explanation.matches.iter().map(found).collect(),
        seconds: explanation.actual.as_secs_f64(),
        predicted_seconds: explanation.predicted.as_secs_f64(),
        predicted_scan_seconds: explanation.predicted_scan.as_secs_f64(),
        predicted_resident_seconds: explanation.predicted_resident.map(|time| time.as_secs_f64()),
        tables: explanation
            .tables
            .iter()
            .map(|table| TableRow {
                table: table.table,
                prefix_bits: table.prefix_bits,
                radius: table.radius,
                ranges: table.ranges,
                runs: table.runs,
                candidates: table.candidates,
                matches: table.matches,
                blocks: table.blocks,
            })
            .collect(),
    }
}
