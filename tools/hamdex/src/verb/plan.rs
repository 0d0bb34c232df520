//! `plan`: a number of documents becomes a table of what every plan would cost.

use std::path::Path;
use std::time::Duration;

use clap::Args;
use hamdex::plan::{self, PlanReport};
use hamdex_io::host::Host;
use serde::Serialize;

use crate::costs;
use crate::draw::chart::{self, Axis, Chart, Kind, Mark, Point, Series};
use crate::draw::plot::PlotFile;
use crate::draw::table::Table;
use crate::failure::Result;
use crate::options::{DistanceArg, TmpArg, WidthArg};
use crate::output::Output;
use crate::session::Session;
use crate::settings;
use crate::size::{self, Count};

/// Show what every table plan costs for a number of documents
#[derive(Debug, Args)]
#[command(
    after_long_help = "Example:\n  hamdex plan --count 17179869184 -k 3\n  hamdex plan --count 100000000 -k 8 --plot plans.svg"
)]
pub(crate) struct PlanArgs {
    /// Number of distinct fingerprints to plan for, such as 1000000, 1e6 or 1M
    #[arg(long, value_name = "N", required_unless_present = "calibrate")]
    count: Option<Count>,
    /// Measure the cost of searches on this machine, and keep it for later calls
    ///
    /// Takes a few seconds, 300 MB of memory and 100 MB of temporary space (--tmp).
    #[arg(long)]
    calibrate: bool,
    /// Plot time and space of every plan, as .svg, .png or .html
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
            let costs = hamdex::inspect::calibrate(tmp, &session.console)?;
            let kept = costs::keep(&costs)?;
            session.console.say(&format!("measured {costs}; saved to {}", kept.display()));
        }
        let Some(Count(count)) = self.count else { return Ok(()) };
        let costs = costs::kept()?;
        let bits = self.width.bits.unwrap_or(settings::WIDTH);
        let distance = self.distance.distance.unwrap_or(settings::DISTANCE);
        // The survey is silent about distances that no plan can answer.
        let reports = plan::survey(bits, distance, count, &costs);
        if reports.is_empty() {
            let max = bits / 4;
            return Err(hamdex::Error::InvalidDistance { distance, bits, max }.into());
        }
        if let Some(plot) = plot {
            let (title, about) = words(bits, distance, count);
            plot.write(&title, &about, &[chart(&title, &reports)], 1)?;
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

/// Width and height of the plot.
const SIZE: (u32, u32) = (1100, 720);

/// Returns the title of the plot and its explanation.
fn words(bits: u32, distance: u32, count: u64) -> (String, String) {
    let count = size::thousands(count);
    let title = format!("Plans for {count} fingerprints of {bits} bits, distance {distance}");
    let about =
        "Expected time of a search and bytes of all tables; lower is faster, left is smaller. No \
            other plan is better than a plan of the front in both."
            .to_owned();
    (title, about)
}

/// Draws time against space.
fn chart(title: &str, reports: &[PlanReport]) -> Chart {
    let (front, others) = front(reports);
    let point = |plan: &&PlanReport| Point::named(plan.bytes, plan.seconds, plan.name.clone());
    let series = |name: &str, mark, style, plans: &[&PlanReport]| Series {
        name: name.to_owned(),
        mark,
        style,
        points: plans.iter().map(point).collect(),
    };
    // A step at each plan: there is no plan between two of them.
    let steps = front.windows(2).filter_map(|pair| {
        let [before, after] = pair else { return None };
        Some(Point::at(after.bytes, before.seconds))
    });
    let mut edge = series("", Mark::Edge, 0, &front);
    edge.points.extend(steps);
    edge.points.sort_by(|a, b| a.x.total_cmp(&b.x).then(b.y.total_cmp(&a.y)));
    Chart {
        title: title.to_owned(),
        size: SIZE,
        x: Axis::new("space of all tables", Kind::Logarithmic, chart::bytes),
        y: Axis::new("expected time of a search", Kind::Logarithmic, chart::seconds),
        series: vec![
            edge,
            series("front", Mark::Dots, 0, &front),
            series("worse in time and space", Mark::Dots, 1, &others),
        ],
        level: None,
        named: true,
    }
}

/// Parts the plans that no other beats in both, the smallest first, from the others.
fn front(reports: &[PlanReport]) -> (Vec<&PlanReport>, Vec<&PlanReport>) {
    let mut plans: Vec<&PlanReport> = reports.iter().collect();
    plans.sort_by(|a, b| a.bytes.total_cmp(&b.bytes).then(a.seconds.total_cmp(&b.seconds)));
    let mut fastest = f64::INFINITY;
    plans.into_iter().partition(|plan| {
        let leads = plan.seconds < fastest;
        fastest = fastest.min(plan.seconds);
        leads
    })
}

#[cfg(test)]
mod tests {
    use hamdex::plan::{Costs, survey};

    use super::*;

    #[test]
    fn the_front_is_what_no_plan_beats_in_both() {
        let reports = survey(64, 3, 1 << 30, &Costs::default());
        let (front, others) = front(&reports);
        assert_eq!(front.len() + others.len(), reports.len());
        assert!(front.len() > 2 && !others.is_empty(), "{} and {}", front.len(), others.len());
        let beats = |a: &PlanReport, b: &PlanReport| {
            a.bytes <= b.bytes
                && a.seconds <= b.seconds
                && (a.bytes < b.bytes || a.seconds < b.seconds)
        };
        assert!(!front.iter().any(|plan| reports.iter().any(|other| beats(other, plan))));
        let twin = |a: &PlanReport, b: &PlanReport| {
            a.bytes.total_cmp(&b.bytes).is_eq() && a.seconds.total_cmp(&b.seconds).is_eq()
        };
        let behind = |plan: &PlanReport| {
            reports.iter().any(|other| beats(other, plan)) || front.iter().any(|f| twin(f, plan))
        };
        assert!(others.iter().all(|plan| behind(plan)));
    }

    #[test]
    fn every_plan_is_a_point_with_its_name() {
        let reports = survey(64, 8, 10_000_000, &Costs::default());
        let (_, rows) = chart("", &reports).table();
        assert_eq!(rows.len(), reports.len());
        assert!(reports.iter().all(|plan| rows.iter().any(|row| row[0] == plan.name)));
    }
}
