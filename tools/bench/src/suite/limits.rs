//! Growth: whether a peer that ran at one size should be run at the next.

use super::machine;
use crate::row::Row;

/// The part of the free memory that a peer may be expected to fill.
const MOST_MEMORY: f64 = 0.8;

/// Says why a peer is not run at `n`, judged by its rows at smaller sizes.
///
/// `patience` is the seconds that its build or join may be expected to take.
pub(crate) fn reason(peer: &str, n: u64, patience: f64, rows: &[Row]) -> Option<String> {
    let rows: Vec<&Row> = rows.iter().filter(|row| row.engine == peer).collect();
    if let Some(row) = rows.iter().find(|row| row.work == "absent") {
        return Some(row.note.clone());
    }
    let works = rows.iter().filter(|row| row.work == "build" || row.k == Some(3));
    for row in works.filter(|row| row.n < n) {
        let growth = n as f64 / row.n.max(1) as f64;
        let seconds = row.median("seconds").unwrap_or(0.0) * growth;
        // A size that is already past tells less than the last one does.
        if rows.iter().any(|other| other.work == row.work && other.n > row.n) {
            continue;
        }
        if seconds > patience {
            return Some(format!("would take about {seconds:.0} s, by its time at n = {}", row.n));
        }
        let bytes = ["memory_bytes", "peak_bytes"];
        let bytes = bytes.iter().filter_map(|name| row.median(name)).fold(0.0, f64::max) * growth;
        if bytes > machine::available() * MOST_MEMORY {
            return Some(format!("would take about {:.1} GB of memory", bytes / 1e9));
        }
    }
    None
}
