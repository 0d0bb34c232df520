//! Phases: the times of calls during background merges and outside them.

use std::fmt::{self, Write};
use std::time::Duration;

use hdrhistogram::Histogram;

/// The longest time recorded, one hour in nanoseconds.
const LONGEST: u64 = 3_600_000_000_000;

/// The times of calls of one kind, during merges and outside them.
#[derive(Debug, Clone)]
pub(super) struct ByFold {
    outside: Histogram<u64>,
    within: Histogram<u64>,
}

impl Default for ByFold {
    fn default() -> Self {
        let empty = Histogram::new_with_max(LONGEST, 3).expect("three digits are allowed");
        Self { outside: empty.clone(), within: empty }
    }
}

impl ByFold {
    pub(super) fn add(&mut self, took: Duration, folding: bool) {
        let times = if folding { &mut self.within } else { &mut self.outside };
        times.saturating_record(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    }
}

/// The times of a run without writes, and of one with them, but its beginning: between merges, and
/// during them.
#[derive(Debug)]
pub(super) struct Phases {
    /// Searches without concurrent writes, in the index as it was built and as the writes left it.
    pub(super) quiet: [ByFold; 2],
    pub(super) searches: ByFold,
    pub(super) writes: ByFold,
    pub(super) flushes: ByFold,
    /// Seconds between merges and during them.
    pub(super) seconds: (f64, f64),
}

impl Phases {
    fn rows(&self) -> [(&'static str, &Histogram<u64>, Option<f64>); 8] {
        let (outside, within) = self.seconds;
        let [built, written] = &self.quiet;
        [
            ("searches, nothing beside them", &built.outside, None),
            ("the same after the writes", &written.outside, None),
            ("searches between folds", &self.searches.outside, Some(outside)),
            ("searches within folds", &self.searches.within, Some(within)),
            ("writes between folds", &self.writes.outside, Some(outside)),
            ("writes within folds", &self.writes.within, Some(within)),
            ("flushes between folds", &self.flushes.outside, Some(outside)),
            ("flushes within folds", &self.flushes.within, Some(within)),
        ]
    }

    /// Returns the table as HTML.
    pub(super) fn html(&self) -> String {
        let mut table = "<table><tr><th>calls</th><th>a second</th><th>median</th><th>p99</th>\
                         <th>p99.9</th><th>longest, ms</th></tr>\n"
            .to_owned();
        for (name, times, seconds) in self.rows() {
            let _ = write!(table, "<tr><td>{name}</td><td>");
            if let Some(seconds) = seconds {
                let _ = write!(table, "{:.0}", times.len() as f64 / seconds.max(f64::MIN_POSITIVE));
            }
            for quantile in [0.5, 0.99, 0.999, 1.0] {
                let _ = write!(table, "</td><td>{:.3}", milliseconds(times, quantile));
            }
            table.push_str("</td></tr>\n");
        }
        table.push_str("</table>\n");
        table
    }
}

impl fmt::Display for Phases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (outside, within) = self.seconds;
        writeln!(
            f,
            "folding {within:.0} of {:.0} s; median, p99, p99.9, longest in ms",
            outside + within
        )?;
        for (name, times, seconds) in self.rows() {
            let [median, p99, p999, longest] =
                [0.5, 0.99, 0.999, 1.0].map(|quantile| milliseconds(times, quantile));
            write!(f, "  {name:<30}{median:>9.3}{p99:>9.3}{p999:>9.3}{longest:>9.1}")?;
            if let Some(seconds) = seconds {
                let rate = times.len() as f64 / seconds.max(f64::MIN_POSITIVE);
                write!(f, "{rate:>9.0} a second")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

fn milliseconds(times: &Histogram<u64>, quantile: f64) -> f64 {
    times.value_at_quantile(quantile) as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_within_folds_and_outside_are_separate() {
        let mut times = ByFold::default();
        for n in 1..=1000 {
            times.add(Duration::from_micros(n), false);
        }
        times.add(Duration::from_millis(70), true);
        let microseconds = |times, quantile| format!("{:.0}", milliseconds(times, quantile) * 1e3);
        let outside = [0.5, 0.99, 1.0].map(|quantile| microseconds(&times.outside, quantile));
        assert_eq!(outside, ["500", "990", "1000"]);
        assert_eq!(times.within.len(), 1);
        assert!((milliseconds(&times.within, 1.0) - 70.0).abs() < 0.1);
    }
}
