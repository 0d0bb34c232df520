//! `plan`: a number of documents becomes a table of what every plan would cost.

mod drawn;

use std::path::Path;
use std::time::Duration;

use clap::Args;
use hamdex::plan::{self, PlanReport};
use serde::Serialize;

use crate::costs;
use crate::failure::Result;
use crate::options::{DISTANCE, DistanceArg, TmpArg, WidthArg};
use crate::output::Output;
use crate::plot::PlotFile;
use crate::session::Session;
use crate::size::{self, Count};
use crate::table::Table;
use crate::width;

/// Show what every table plan costs for a number of documents
#[derive(Debug, Args)]
#[command(
    after_long_help = "Example:\n  hamdex plan --count 17179869184 -k 3\n  hamdex plan --count 100000000 -k 8 --plot plans.svg"
)]
pub(crate) struct PlanArgs {
    /// Number of distinct fingerprints to plan for, such as 1000000, 1e6 or 1M
    #[arg(long, value_name = "N", required_unless_present = "calibrate")]
    count: Option<Count>,
    /// Measure the prices of searching on this machine, and keep them for later calls
    ///
    /// Takes some seconds, 300 MB of memory and 100 MB of temporary space (--tmp).
    #[arg(long)]
    calibrate: bool,
    /// Draw time against space of every plan, as .svg, .png or .html
    #[arg(long, value_name = "FILE", requires = "count")]
    plot: Option<PlotFile>,
    #[command(flatten)]
    tmp: TmpArg,
    #[command(flatten)]
    distance: DistanceArg,
    #[command(flatten)]
    width: WidthArg,
}

#[derive(Serialize)]
struct Row<'a> {
    plan: &'a str,
    blocks: &'a str,
    tables: u64,
    prefix_min: u32,
    prefix_max: u32,
    candidates_per_probe: Figure,
    probes: u64,
    candidates: Figure,
    seconds: f64,
    bytes_per_fingerprint: Figure,
    bytes: Figure,
}

/// A figure that is written without a fraction when it has none.
#[derive(Serialize)]
#[serde(untagged)]
enum Figure {
    Whole(u64),
    Part(f64),
}

impl From<f64> for Figure {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // whole and below 2^53
    fn from(value: f64) -> Self {
        let whole = (0.0..9e15).contains(&value) && (value - value.round()).abs() < 1e-9;
        if whole { Self::Whole(value.round() as u64) } else { Self::Part(value) }
    }
}

impl PlanArgs {
    pub(crate) fn run(&self, session: &Session) -> Result<()> {
        let plot = self.plot.as_ref().map(|plot| plot.open(session.overwrite)).transpose()?;
        if self.calibrate {
            let tmp = self.tmp.directory().map_or_else(std::env::temp_dir, Path::to_path_buf);
            let costs = hamdex::calibrate(tmp, &session.console)?;
            let kept = costs::keep(&costs)?;
            session.console.say(&format!("measured {costs}, kept in {}", kept.display()));
        }
        let Some(Count(count)) = self.count else { return Ok(()) };
        let costs = costs::kept()?;
        let bits = self.width.bits.unwrap_or(width::DEFAULT);
        let distance = self.distance.distance.unwrap_or(DISTANCE);
        // The survey is silent about distances that no plan can answer.
        let reports = plan::survey(bits, distance, count, &costs);
        if reports.is_empty() {
            let max = bits / 4;
            return Err(hamdex::Error::InvalidDistance { distance, bits, max }.into());
        }
        if let Some(plot) = plot {
            let (title, about) = drawn::words(bits, distance, count);
            plot.write(&title, &about, &[drawn::chart(&title, &reports)], 1)?;
        }
        if session.json {
            let mut output = Output::stdout(&session.console);
            reports.iter().try_for_each(|report| output.json(&row(report)))?;
            return output.finish();
        }
        let mut table = Table::with_heading(&[
            "plan",
            "tables",
            "prefix bits",
            "candidates/probe",
            "probes",
            "candidates",
            "time",
            "bytes",
            "blocks",
        ])
        .words_last();
        for report in &reports {
            let prefix = match (report.prefix_min, report.prefix_max) {
                (min, max) if min == max => min.to_string(),
                (min, max) => format!("{min}..{max}"),
            };
            table.row([
                report.name.clone(),
                report.tables.to_string(),
                prefix,
                size::estimate(report.candidates_per_probe),
                size::thousands(report.probes),
                size::estimate(report.candidates),
                size::seconds(Duration::try_from_secs_f64(report.seconds).unwrap_or(Duration::MAX)),
                size::bytes(report.bytes),
                report.blocks.clone(),
            ]);
        }
        let mut output = Output::stdout(&session.console);
        output.with(|out| table.write(out))?;
        output.finish()
    }
}

fn row(report: &PlanReport) -> Row<'_> {
    Row {
        plan: &report.name,
        blocks: &report.blocks,
        tables: report.tables,
        prefix_min: report.prefix_min,
        prefix_max: report.prefix_max,
        candidates_per_probe: report.candidates_per_probe.into(),
        probes: report.probes,
        candidates: report.candidates.into(),
        seconds: report.seconds,
        bytes_per_fingerprint: report.bytes_per_fingerprint.into(),
        bytes: report.bytes.into(),
    }
}
