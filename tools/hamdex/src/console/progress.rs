//! Progress: counts of a phase become a bar on a terminal, or a line every few seconds.

use std::time::{Duration, Instant};

use unicode_width::UnicodeWidthStr;

use crate::size;

/// Time before the first plain line of a phase.
const FIRST: Duration = Duration::from_secs(3);
/// The longest time between two plain lines.
const LONGEST: Duration = Duration::from_mins(1);
/// Time before which a rate and the time left are meaningless.
const KNOWN: Duration = Duration::from_secs(1);

/// Columns of the phase's name and of the bar.
const NAME: usize = 14;
const BAR: usize = 28;
/// Shorter bars are not drawn.
const BAR_MIN: usize = 8;

/// The current phase; without a name there is none.
#[derive(Debug, Clone)]
pub(crate) struct Phase {
    name: String,
    total: Option<u64>,
    in_bytes: bool,
    since: Instant,
    /// When the next plain line is due, and how long it takes until the one after.
    due: Duration,
    pause: Duration,
}

impl Phase {
    pub(crate) fn idle() -> Self {
        Self::new("", None, false)
    }

    pub(crate) fn new(name: &str, total: Option<u64>, in_bytes: bool) -> Self {
        let total = total.filter(|&total| total > 0);
        let since = Instant::now();
        Self { name: name.to_owned(), total, in_bytes, since, due: FIRST, pause: FIRST }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.name.is_empty()
    }

    /// Returns a line if one is due; each waits twice as long as the one before.
    pub(crate) fn due_line(&mut self, done: u64, rows: u64) -> Option<String> {
        self.due_line_at(self.since.elapsed(), done, rows)
    }

    fn due_line_at(&mut self, elapsed: Duration, done: u64, rows: u64) -> Option<String> {
        if elapsed < self.due {
            return None;
        }
        self.pause = (self.pause * 2).min(LONGEST);
        self.due = elapsed + self.pause;
        Some(self.line(elapsed, done, rows))
    }

    /// Returns a line such as `reading: 45 %, 120,000 rows, 40,000 rows/s, 0:04 left`.
    fn line(&self, elapsed: Duration, done: u64, rows: u64) -> String {
        let (count, unit) = if self.in_bytes { (rows, "rows") } else { (done, self.unit()) };
        let share = self.total.map_or_else(String::new, |total| {
            format!("{:.0} %, ", 100.0 * done.min(total) as f64 / total as f64)
        });
        let rate = size::thousands(rate(count, elapsed));
        let left = self.left(elapsed, done).map_or_else(String::new, |left| format!(", {left}"));
        let count = size::thousands(count);
        format!("{}: {share}{count} {unit}, {rate} {unit}/s{left}", self.name)
    }

    /// Returns the line for a terminal of that many columns, which it never fills.
    pub(crate) fn bar(&self, done: u64, rows: u64, columns: usize) -> String {
        self.bar_at(self.since.elapsed(), done, rows, columns)
    }

    fn bar_at(&self, elapsed: Duration, done: u64, rows: u64, columns: usize) -> String {
        let amount = |count: u64| {
            if self.in_bytes { size::bytes(count as f64) } else { size::thousands(count) }
        };
        let amounts = match self.total {
            Some(total) => format!("{}/{}", amount(done), amount(total)),
            None => amount(done),
        };
        let mut words = Vec::new();
        if self.in_bytes {
            // The bytes of a pipe are not counted.
            words.extend((self.total.is_some() || done > 0).then_some(amounts));
            words.push(format!("{} rows", size::thousands(rows)));
        } else {
            words.push(format!("{amounts} {}", self.unit()));
        }
        if elapsed >= KNOWN && done > 0 {
            words.push(format!("{}/s", amount(rate(done, elapsed))));
        }
        match self.total {
            Some(_) => words.extend(self.left(elapsed, done)),
            None => words.push(size::clock(elapsed)),
        }
        let words = words.join("  ");
        let mut line = format!("{:NAME$} ", self.name);
        let room = columns.saturating_sub(line.width() + words.width() + "[]  ".len());
        if let Some(total) = self.total
            && room >= BAR_MIN
        {
            line.push_str(&drawn(done as f64 / total as f64, room.min(BAR)));
        }
        line.push_str(&words);
        while line.width() >= columns.max(1) {
            line.pop();
        }
        line
    }

    /// Returns the time left, once there is enough work done to estimate it.
    fn left(&self, elapsed: Duration, done: u64) -> Option<String> {
        let total = self.total.filter(|_| done > 0 && elapsed >= KNOWN)?;
        let left = elapsed.as_secs_f64() * total.saturating_sub(done) as f64 / done as f64;
        Some(format!("{} left", size::clock(Duration::from_secs_f64(left.min(1e9)))))
    }

    /// Returns the unit that the phase counts.
    fn unit(&self) -> &'static str {
        match self.name.as_str() {
            "join" | "searching" => "fingerprints",
            "measuring" => "pairs",
            "grouping" | "collecting groups" => "groups",
            "counting" | "checking" | "merging" => "entries",
            "reading files" => "bytes",
            "moving files" => "files",
            "trying" => "settings",
            "calibrating" => "steps",
            name if name.starts_with("writing table") => "fingerprints",
            name if ["reading ", "writing ", "sorting ", "pairing ", "exporting"]
                .iter()
                .any(|verb| name.starts_with(verb)) =>
            {
                "documents"
            }
            _ => "items",
        }
    }
}

/// Units a second.
fn rate(count: u64, elapsed: Duration) -> u64 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates
    let rate = (count as f64 / elapsed.as_secs_f64().max(1e-3)) as u64;
    rate
}

/// Returns a bar such as `[====>     ] `.
fn drawn(share: f64, width: usize) -> String {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates
    let full = ((share * width as f64) as usize).min(width);
    let head = if full < width { ">" } else { "" };
    format!("[{:width$}] ", "=".repeat(full) + head)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(name: &str, total: u64, in_bytes: bool) -> Phase {
        Phase::new(name, Some(total), in_bytes)
    }

    const TEN: Duration = Duration::from_secs(10);

    #[test]
    fn lines_name_share_unit_rate_and_time_left() {
        let reading = phase("reading", 400, true);
        assert_eq!(
            reading.line(TEN, 100, 5000),
            "reading: 25 %, 5,000 rows, 500 rows/s, 0:30 left"
        );
        let join = phase("join", 300, false);
        assert_eq!(join.line(TEN, 6, 0), "join: 2 %, 6 fingerprints, 0 fingerprints/s, 8:10 left");
        assert_eq!(join.line(TEN, 0, 0), "join: 0 %, 0 fingerprints, 0 fingerprints/s");
        let unknown = Phase::new("sorting documents", None, false);
        assert!(unknown.line(TEN, 50, 0).starts_with("sorting documents: 50 documents, 5 "));
    }

    #[test]
    fn lines_come_less_and_less_often_but_every_minute() {
        let mut phase = phase("join", 300, false);
        let at = (0..300).map(Duration::from_secs);
        let at: Vec<_> = at.filter(|&at| phase.due_line_at(at, 1, 0).is_some()).collect();
        assert_eq!(at, [3, 9, 21, 45, 93, 153, 213, 273].map(Duration::from_secs));
    }

    #[test]
    fn bars_fit_into_every_terminal() {
        for (name, done, in_bytes) in [
            ("join", 1_234_567_890, false),
            ("pairing equal fingerprints", 249_894, false),
            ("reading", 123_456_789_012, true),
            ("\u{8bfb}\u{53d6}\u{8bfb}\u{53d6}", 7, false),
        ] {
            let phase = phase(name, 2_000_000_000_000, in_bytes);
            for columns in [1, 10, 40, 60, 80, 200] {
                let line = phase.bar_at(TEN, done, 6_021_754, columns);
                assert!(line.width() < columns.max(2), "{columns}: {line}");
            }
        }
    }

    #[test]
    fn bars_tell_nothing_that_is_not_known() {
        let fresh = phase("join", 249_894, false);
        let line = fresh.bar_at(Duration::from_millis(100), 0, 0, 100);
        assert!(line.contains(" 0/249,894 fingerprints") && !line.contains("left"), "{line}");
        let line = fresh.bar_at(TEN, 0, 0, 100);
        assert!(!line.contains("left") && !line.contains("/s"), "{line}");
        let line = fresh.bar_at(TEN, 60_217, 0, 100);
        assert!(line.ends_with(" 6,021/s  0:31 left"), "{line}");
        let empty = phase("join", 0, false).bar_at(TEN, 0, 0, 100);
        assert!(!empty.contains("0/0") && !empty.contains('['), "{empty}");
    }
}
