//! The console: progress of long work becomes a bar, plain lines or nothing, on standard error.
//!
//! Work only adds to counters; one ticking thread draws, so that no hot loop waits for a terminal.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anstyle::{AnsiColor, Style};
use hamdex::{Error, Progress};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::failure::Result;
use crate::size;

/// How often a bar moves, and how often a plain line is written.
const FRAME: Duration = Duration::from_millis(100);
const LINE: Duration = Duration::from_secs(3);

/// A handle on standard error, shared by all threads of a run.
#[derive(Debug, Clone)]
pub(crate) struct Console {
    /// `None` shows nothing.
    shared: Option<Arc<Shared>>,
    /// Whether a program around this one asks to stop; `None` where there is none.
    cancelled: Option<Arc<AtomicBool>>,
}

#[derive(Debug)]
struct Shared {
    bar: Option<ProgressBar>,
    done: AtomicU64,
    rows: AtomicU64,
    phase: Mutex<Phase>,
    stopped: Mutex<bool>,
    stop: Condvar,
}

/// What is going on at the moment; an empty name is nothing.
#[derive(Debug, Clone)]
struct Phase {
    name: String,
    total: Option<u64>,
    in_bytes: bool,
    since: Instant,
}

impl Console {
    pub(crate) fn new(quiet: bool) -> Self {
        QUIET.store(quiet, Relaxed);
        if quiet {
            return Self { shared: None, cancelled: None };
        }
        let terminal = io::stderr().is_terminal();
        let shared = Arc::new(Shared {
            bar: terminal
                .then(|| ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())),
            done: AtomicU64::new(0),
            rows: AtomicU64::new(0),
            phase: Mutex::new(Phase::idle()),
            stopped: Mutex::new(false),
            stop: Condvar::new(),
        });
        let ticking = Arc::clone(&shared);
        // Without the thread there is no progress to see, which is no reason not to work.
        let _ =
            std::thread::Builder::new().name("progress".to_owned()).spawn(move || ticking.tick());
        Self { shared: Some(shared), cancelled: None }
    }

    /// Shows nothing, and stops the work once the flag is true.
    pub(crate) fn embedded(cancelled: Arc<AtomicBool>) -> Self {
        Self { cancelled: Some(cancelled), ..Self::new(true) }
    }

    /// Fails once the work should stop.
    pub(crate) fn check(&self) -> Result<()> {
        if self.cancelled() { Err(Error::Cancelled.into()) } else { Ok(()) }
    }

    /// Writes a line for people, above the bar if there is one.
    pub(crate) fn say(&self, line: &str) {
        if self.shared.is_some() {
            self.aside(|| complain(line));
        }
    }

    /// Writes a warning, with --quiet too.
    pub(crate) fn warn(&self, line: &str) {
        self.aside(|| complain(&format!("warning: {line}")));
    }

    /// Begins a phase that is measured in bytes of input and counts rows beside.
    pub(crate) fn begin_reading(&self, name: &str, total: Option<u64>) {
        if let Some(shared) = &self.shared {
            shared.begin(name, total, true);
        }
    }

    /// Tells that reading has come to so many bytes, and by so many more rows.
    pub(crate) fn reach(&self, bytes: u64, rows: u64) {
        if let Some(shared) = &self.shared {
            shared.done.store(bytes, Relaxed);
            shared.rows.fetch_add(rows, Relaxed);
        }
    }

    /// Takes the bar away: what follows are results.
    pub(crate) fn end_phase(&self) {
        if let Some(shared) = &self.shared {
            *lock(&shared.phase) = Phase::idle();
            if let Some(bar) = &shared.bar {
                bar.finish_and_clear();
            }
        }
    }

    /// Does something with the terminal while the bar is out of the way.
    pub(crate) fn aside<T>(&self, act: impl FnOnce() -> T) -> T {
        match self.shared.as_ref().and_then(|shared| shared.bar.as_ref()) {
            Some(bar) if !bar.is_finished() => bar.suspend(act),
            _ => act(),
        }
    }

    /// Ends the drawing for good.
    pub(crate) fn close(&self) {
        self.end_phase();
        if let Some(shared) = &self.shared {
            *lock(&shared.stopped) = true;
            shared.stop.notify_all();
        }
    }
}

impl Progress for Console {
    fn begin(&self, phase: &str, total: Option<u64>) {
        if let Some(shared) = &self.shared {
            shared.begin(phase, total, false);
        }
    }

    fn advance(&self, units: u64) {
        if let Some(shared) = &self.shared {
            shared.done.fetch_add(units, Relaxed);
        }
    }

    fn cancelled(&self) -> bool {
        self.cancelled.as_ref().is_some_and(|cancelled| cancelled.load(Relaxed))
    }
}

impl Shared {
    fn begin(&self, name: &str, total: Option<u64>, in_bytes: bool) {
        let phase = Phase { name: name.to_owned(), total, in_bytes, since: Instant::now() };
        self.done.store(0, Relaxed);
        self.rows.store(0, Relaxed);
        if let Some(bar) = &self.bar {
            // The style goes first: each of the other calls draws.
            bar.set_style(phase.style());
            bar.set_prefix(phase.name.clone());
            match total {
                Some(total) => bar.set_length(total),
                None => bar.unset_length(),
            }
            bar.set_message("");
            bar.reset();
        }
        *lock(&self.phase) = phase;
    }

    fn tick(&self) {
        let pause = if self.bar.is_some() { FRAME } else { LINE };
        let mut stopped = lock(&self.stopped);
        loop {
            let waited = self.stop.wait_timeout_while(stopped, pause, |stopped| !*stopped);
            stopped = waited.unwrap_or_else(PoisonError::into_inner).0;
            if *stopped {
                return;
            }
            self.draw();
        }
    }

    fn draw(&self) {
        let phase = lock(&self.phase);
        if phase.name.is_empty() {
            return;
        }
        let (done, rows) = (self.done.load(Relaxed), self.rows.load(Relaxed));
        match &self.bar {
            Some(bar) => {
                bar.set_position(done);
                if phase.in_bytes {
                    bar.set_message(format!("{} rows", size::thousands(rows)));
                }
                bar.tick();
            }
            None if phase.since.elapsed() >= LINE => complain(&phase.line(done, rows)),
            None => {}
        }
    }
}

impl Phase {
    fn idle() -> Self {
        Self { name: String::new(), total: None, in_bytes: false, since: Instant::now() }
    }

    fn style(&self) -> ProgressStyle {
        let template = match (self.total.is_some(), self.in_bytes) {
            (true, true) => {
                "{prefix:14} [{bar:28}] {bytes}/{total_bytes} {msg} {bytes_per_sec} {eta} left"
            }
            (true, false) => "{prefix:14} [{bar:28}] {human_pos}/{human_len} {per_sec} {eta} left",
            (false, true) => "{prefix:14} {spinner} {bytes} {msg} {bytes_per_sec} {elapsed}",
            (false, false) => "{prefix:14} {spinner} {human_pos} {per_sec} {elapsed}",
        };
        let style = ProgressStyle::with_template(template);
        style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ")
    }

    /// A line such as `reading: 45 %, 120,000 rows, 40,000 rows/s, 0:04 left`.
    fn line(&self, done: u64, rows: u64) -> String {
        let elapsed = self.since.elapsed().as_secs_f64().max(1e-3);
        let (count, unit) = if self.in_bytes { (rows, " rows") } else { (done, "") };
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates
        let rate = size::thousands((count as f64 / elapsed) as u64);
        let total = self.total.filter(|&total| total > 0);
        let share = total.map_or_else(String::new, |total| {
            format!("{:.0} %, ", 100.0 * done as f64 / total as f64)
        });
        let left = total.filter(|_| done > 0).map_or_else(String::new, |total| {
            let left = elapsed * total.saturating_sub(done) as f64 / done as f64;
            format!(", {} left", size::clock(Duration::from_secs_f64(left.min(1e9))))
        });
        let count = size::thousands(count);
        format!("{}: {share}{count}{unit}, {rate}{unit}/s{left}", self.name)
    }
}

/// Whether people asked for nothing but fatal errors.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Colours of what is good, of warnings and of errors.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default().bold();
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();

/// Writes a warning where no console is at hand.
pub(crate) fn warn(line: &str) {
    if !QUIET.load(Relaxed) {
        complain(&format!("warning: {line}"));
    }
}

/// Writes a line to standard error; a closed one is no reason to stop.
///
/// Its first word is coloured where standard error shows colours and `NO_COLOR`, `CLICOLOR` and
/// `CLICOLOR_FORCE` allow it.
pub(crate) fn complain(line: &str) {
    let mut out = anstream::stderr();
    let styled = [("warning:", WARNING), ("hamdex:", BAD)];
    let found =
        styled.iter().find_map(|(word, style)| Some((word, style, line.strip_prefix(word)?)));
    let _ = match found {
        Some((word, style, rest)) => writeln!(out, "{style}{word}{style:#}{rest}"),
        None => writeln!(out, "{line}"),
    };
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_tell_share_rate_and_time_left() {
        let since = Instant::now().checked_sub(Duration::from_secs(10)).unwrap();
        let phase = Phase { name: "reading".to_owned(), total: Some(400), in_bytes: true, since };
        assert_eq!(phase.line(100, 5000), "reading: 25 %, 5,000 rows, 499 rows/s, 0:30 left");
        let phase = Phase { name: "matching".to_owned(), total: None, in_bytes: false, since };
        assert!(phase.line(50, 0).starts_with("matching: 50, "));
    }

    #[test]
    fn a_quiet_console_takes_every_call() {
        let console = Console::new(true);
        Progress::begin(&console, "x", Some(1));
        Progress::advance(&console, 1);
        console.say("never seen");
        console.close();
    }
}
