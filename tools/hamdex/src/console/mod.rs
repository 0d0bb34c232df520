//! The console: progress of long work, warnings and remarks, on standard error.
//!
//! Work only adds to counters; one ticking thread draws, so that no hot loop waits for a terminal.

mod progress;

use std::cell::Cell;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use console::Term;
use hamdex::Progress;
use hamdex_io::host::{Host, Silent};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use self::progress::Phase;
use crate::failure::Failure;
use crate::signal::{Signal, Stored};
pub(crate) use crate::visible::visible;

/// Intervals at which a bar moves, and at which plain lines are checked.
const FRAME: Duration = Duration::from_millis(100);
const LINE: Duration = Duration::from_secs(1);

/// Columns of a terminal that does not tell its width.
const USUAL: usize = 80;

/// A handle on standard error, shared by all threads of a run.
#[derive(Debug, Clone)]
pub(crate) struct Console {
    /// `None` shows neither progress nor remarks.
    shared: Option<Arc<Shared>>,
    /// The host, if this run is part of another program; `None` obeys signals.
    host: Option<Arc<Caller>>,
    stored: Arc<Mutex<Stored>>,
}

/// The program around this one.
#[derive(Debug)]
struct Caller {
    /// Whether it asks to stop.
    cancelled: Arc<AtomicBool>,
    warnings: Mutex<Vec<String>>,
}

thread_local! {
    /// The host of the run that this thread began, for warnings of code without a console.
    static HOST: Cell<Weak<Caller>> = const { Cell::new(Weak::new()) };
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

impl Console {
    pub(crate) fn new(quiet: bool) -> Self {
        if quiet {
            return Self { shared: None, host: None, stored: Arc::default() };
        }
        let terminal = io::stderr().is_terminal();
        let shared = Arc::new(Shared {
            bar: terminal.then(bar),
            done: AtomicU64::new(0),
            rows: AtomicU64::new(0),
            phase: Mutex::new(Phase::idle()),
            stopped: Mutex::new(false),
            stop: Condvar::new(),
        });
        let ticking = Arc::clone(&shared);
        // Without the thread only the progress is missing; the work continues.
        let _ =
            std::thread::Builder::new().name("progress".to_owned()).spawn(move || ticking.tick());
        Self { shared: Some(shared), host: None, stored: Arc::default() }
    }

    /// Shows nothing, keeps warnings for the host, and stops the work once the flag is true.
    pub(crate) fn embedded(cancelled: Arc<AtomicBool>) -> Self {
        let host = Arc::new(Caller { cancelled, warnings: Mutex::default() });
        HOST.set(Arc::downgrade(&host));
        Self { host: Some(host), ..Self::new(true) }
    }

    /// Returns the warnings so far of a run that is part of another program.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.host.as_ref().map_or_else(Vec::new, |host| lock(&host.warnings).clone())
    }

    /// Counts documents that are stored durably, for the message of an interrupt.
    pub(crate) fn stored(&self, count: u64, done: &'static str) {
        let mut stored = lock(&self.stored);
        *stored = Stored { count: stored.count + count, done };
    }

    /// Returns the failure of work that a signal stopped.
    pub(crate) fn interrupted(&self, signal: Signal) -> Failure {
        let (status, stored) = (signal.status(), lock(&self.stored).to_string());
        Failure::Interrupted { signal: signal.name(), status, stored }
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

impl Host for Console {
    fn share(&self) -> Arc<dyn Host> {
        Arc::new(self.clone())
    }

    /// Writes a line for people, above the bar if there is one.
    fn say(&self, line: &str) {
        if self.shared.is_some() {
            self.aside(|| complain(line));
        }
    }

    /// Writes a warning, with `--quiet` too; a host gets it by [`Console::warnings`].
    fn warn(&self, line: &str) {
        match &self.host {
            Some(host) => lock(&host.warnings).push(line.to_owned()),
            None => self.aside(|| complain(&format!("warning: {line}"))),
        }
    }

    /// Begins a phase that is measured in bytes of input and also counts rows.
    fn begin_reading(&self, name: &str, total: Option<u64>) {
        if let Some(shared) = &self.shared {
            shared.begin(name, total, true);
        }
    }

    /// Sets the bytes that were read so far, and adds rows.
    fn reach(&self, bytes: u64, rows: u64) {
        if let Some(shared) = &self.shared {
            shared.done.store(bytes, Relaxed);
            shared.rows.fetch_add(rows, Relaxed);
        }
    }

    /// Removes the bar: results follow.
    fn end_phase(&self) {
        if let Some(shared) = &self.shared {
            *lock(&shared.phase) = Phase::idle();
            if let Some(bar) = &shared.bar {
                bar.finish_and_clear();
                // The next phase begins with an empty line, not with this one's last.
                bar.set_message("");
            }
        }
    }

    fn print(&self, bytes: &[u8]) -> io::Result<()> {
        self.aside(|| Silent.print(bytes))
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
        match &self.host {
            Some(host) => host.cancelled.load(Relaxed),
            None => Signal::stops(),
        }
    }
}

/// Returns a bar whose line is made here; it fills at most one line of the terminal.
fn bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
    let style = ProgressStyle::with_template("{wide_msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    // Only now: every other call draws.
    bar.finish_and_clear();
    bar.set_draw_target(ProgressDrawTarget::stderr());
    bar
}

impl Shared {
    fn begin(&self, name: &str, total: Option<u64>, in_bytes: bool) {
        let mut phase = lock(&self.phase);
        self.done.store(0, Relaxed);
        self.rows.store(0, Relaxed);
        *phase = Phase::new(name, total, in_bytes);
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
        let mut phase = lock(&self.phase);
        if phase.is_idle() {
            return;
        }
        let (done, rows) = (self.done.load(Relaxed), self.rows.load(Relaxed));
        if let Some(bar) = &self.bar {
            let columns =
                Term::stderr().size_checked().map_or(USUAL, |(_, columns)| columns.into());
            if bar.is_finished() {
                bar.reset();
            }
            bar.set_message(phase.bar(done, rows, columns));
        } else if let Some(line) = phase.due_line(done, rows) {
            complain(&line);
        }
    }
}

/// Colours of what is good, of warnings and of errors.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default().bold();
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();

/// Writes a warning for code that has no console, or hands it to the host of this thread.
pub(crate) fn warn(line: &str) {
    let host = HOST.take();
    match host.upgrade() {
        Some(host) => lock(&host.warnings).push(line.to_owned()),
        None => complain(&format!("warning: {line}")),
    }
    HOST.set(host);
}

/// Writes one line to standard error; a closed one does not stop the work.
///
/// The first word is coloured if standard error shows colours and `NO_COLOR`, `CLICOLOR` and
/// `CLICOLOR_FORCE` allow it. Characters that would control a terminal are escaped: see
/// [`visible`].
pub(crate) fn complain(line: &str) {
    let mut out = anstream::stderr();
    let line = visible(line);
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
    fn a_quiet_console_takes_every_call() {
        let console = Console::new(true);
        Progress::begin(&console, "x", Some(1));
        Progress::advance(&console, 1);
        console.say("never seen");
        console.close();
    }

    #[test]
    fn a_host_gets_the_warnings() {
        let console = Console::embedded(Arc::default());
        console.clone().warn("few texts");
        console.say("a remark");
        warn("a loose secret");
        assert_eq!(console.warnings(), ["few texts", "a loose secret"]);
    }
}
