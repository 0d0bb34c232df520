//! Ratios of a peer's figure to ours, with the spread of the repetitions.

use super::contender;
use super::document::{Cell, Mark, Table, or_dash, plain};
use crate::row::Row;

/// The peer's figure divided by ours, or inverted if more is better.
///
/// Above 1, ours is better.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ratio {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

/// The compared figures: work, name, unit, and whether more is better.
const FIGURES: [(&str, &str, &str, bool); 8] = [
    ("search", "median_us", "µs, median", false),
    ("search", "p99_us", "µs, p99", false),
    ("search", "p999_us", "µs, p99.9", false),
    ("search", "per_second", "queries/s, one by one", true),
    ("batch", "per_second", "queries/s, batch", true),
    ("build", "seconds", "s, build", false),
    ("build", "memory_bytes", "bytes, memory", false),
    ("join", "seconds", "s, self-join", false),
];

pub(crate) fn ratio(peer: &Row, ours: &Row, figure: &str, more: bool) -> Option<Ratio> {
    let (peer, ours) = (peer.spread(figure)?, ours.spread(figure)?);
    let [[p, p_least, p_most], [o, o_least, o_most]] =
        if more { [ours, peer] } else { [peer, ours] };
    // There is no ratio to a figure that was too small to measure.
    let by = |a: f64, b: f64| Some(a / b).filter(|_| b > 0.0);
    Some(Ratio { median: by(p, o)?, least: by(p_least, o_most)?, most: by(p_most, o_least)? })
}

/// Returns the figures of every peer at `n`, compared with each of our engines.
pub(crate) fn table(rows: &[Row], n: u64) -> Table {
    let mut table = Table::new(&[
        "peer",
        "work",
        "k",
        "figure",
        "peer's",
        "beside",
        "ours",
        "ratio",
        "smallest to largest",
    ]);
    let is_ours = |row: &Row| contender::all().any(|c| c.ours && c.name == row.engine);
    for peer in rows.iter().filter(|row| row.n == n && !is_ours(row)) {
        for ours in rows.iter().filter(|ours| is_ours(ours) && comparable(peer, ours)) {
            for (_, figure, unit, more) in FIGURES.iter().filter(|f| f.0 == peer.work) {
                // At other distances than the main one, only the median is shown.
                if peer.work == "search" && peer.k != Some(3) && *figure != "median_us" {
                    continue;
                }
                let Some(ratio) = ratio(peer, ours, figure, *more) else { continue };
                let behind = ratio.median < 1.0;
                let text = format!("{}{}", plain(ratio.median), if behind { " ▼" } else { "" });
                let mark = if behind { Mark::Behind } else { Mark::Plain };
                table.rows.push(vec![
                    peer.engine.clone().into(),
                    work(peer).into(),
                    peer.k.map_or(String::new(), |k| k.to_string()).into(),
                    (*unit).into(),
                    or_dash(peer.median(figure)).into(),
                    ours.engine.clone().into(),
                    or_dash(ours.median(figure)).into(),
                    Cell { text, mark },
                    format!("{} to {}", plain(ratio.least), plain(ratio.most)).into(),
                ]);
            }
        }
    }
    table
}

/// Returns true for the same work at the same size and on the same number of threads.
///
/// Builds and joins are compared on any number of threads.
fn comparable(peer: &Row, ours: &Row) -> bool {
    let same = (peer.n, peer.k, &peer.kind, &peer.work) == (ours.n, ours.k, &ours.kind, &ours.work);
    let whole = matches!(peer.work.as_str(), "build" | "join");
    // A scan is compared only with another scan.
    if ours.engine.contains("scan") && !(peer.engine.contains("Flat") && peer.work == "search") {
        return false;
    }
    same && (whole || peer.threads == ours.threads) && !ours.engine.starts_with("plain")
}

fn work(row: &Row) -> String {
    match (row.work.as_str(), row.threads) {
        ("batch", 1) => "batch, 1 thread".into(),
        ("batch", threads) => format!("batch, {threads} threads"),
        ("search", _) => format!("queries {}", row.kind),
        (work, _) => work.to_owned(),
    }
}
