//! Signals: Ctrl-C and SIGTERM become a request to stop, and then an exit status.
//!
//! Work that polls the request stops by itself and removes its temporary files as after any other
//! failure. A process that does not poll, because it waits for an input or is in one long step, is
//! stopped here. A second signal stops the process at once.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use crate::console::Console;
use crate::failure::{Failure, Status};
use crate::size;

/// Time within which two signals are one: `timeout` sends its signal twice.
const SAME: Duration = Duration::from_millis(300);
/// Time that work has to notice the signal.
const PATIENCE: Duration = Duration::from_millis(1500);
/// Interval of the checks.
const STEP: Duration = Duration::from_millis(20);

/// The number of the last signal that came; 0 for none.
static CAUGHT: AtomicUsize = AtomicUsize::new(0);
/// Whether the next signal has its default action.
static AGAIN: AtomicBool = AtomicBool::new(false);
/// Whether work has been told to stop.
static NOTICED: AtomicBool = AtomicBool::new(false);
/// Whether a thread has begun to end the process.
static ENDING: AtomicBool = AtomicBool::new(false);

/// A signal that asks the process to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    Interrupt = 2,
    Terminate = 15,
}

impl Signal {
    const ALL: [Self; 2] = [Self::Interrupt, Self::Terminate];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
        }
    }

    pub(crate) fn status(self) -> Status {
        match self {
            Self::Interrupt => Status::Interrupted,
            Self::Terminate => Status::Terminated,
        }
    }

    /// Returns the signal that came, if one did.
    pub(crate) fn caught() -> Option<Self> {
        let number = CAUGHT.load(SeqCst);
        Self::ALL.into_iter().find(|&signal| signal as usize == number)
    }

    /// Returns true if work should stop because a signal came.
    pub(crate) fn stops() -> bool {
        let stops = CAUGHT.load(SeqCst) != 0;
        if stops {
            NOTICED.store(true, SeqCst);
        }
        stops
    }
}

/// Documents stored durably before the interrupt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) count: u64,
    /// What was done to the documents: `inserted`, `removed`.
    pub(crate) done: &'static str,
}

impl fmt::Display for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self { count: 0, .. } => Ok(()),
            Self { count: 1, done } => write!(f, "; 1 document was durably {done}"),
            Self { count, done } => {
                write!(f, "; {} documents were durably {done}", size::thousands(*count))
            }
        }
    }
}

/// Ends the process for the calling thread; any other thread that calls this waits for that.
pub(crate) fn claim_end() {
    if ENDING.swap(true, SeqCst) {
        loop {
            std::thread::park();
        }
    }
}

/// Begins to catch the signals that are not ignored.
///
/// `report` writes why the process ends. Without handlers a signal ends the process by itself, so
/// failing to set them is no reason not to work.
pub(crate) fn watch(console: &Console, report: impl Fn(&Failure) + Send + 'static) {
    use signal_hook::iterator::Signals;
    use signal_hook::{flag, low_level};

    let ignored = ignored();
    let heeded = Signal::ALL.into_iter().filter(|&signal| ignored >> (signal as u32 - 1) & 1 == 0);
    let numbers: Vec<i32> = heeded.map(|signal| signal as i32).collect();
    for signal in Signal::ALL.into_iter().filter(|&signal| numbers.contains(&(signal as i32))) {
        // Actions run in this order: the first signal finds AGAIN unset.
        let _ = flag::register_conditional_default(signal as i32, &AGAIN);
        let _ = flag::register_usize(signal as i32, &CAUGHT, signal as usize);
    }
    let Ok(mut signals) = Signals::new(numbers) else { return };
    let console = console.clone();
    let wait = move || {
        if signals.forever().next().is_none() {
            return;
        }
        std::thread::sleep(SAME);
        AGAIN.store(true, SeqCst);
        let mut waited = SAME;
        while waited < PATIENCE {
            if NOTICED.load(SeqCst) {
                return;
            }
            std::thread::sleep(STEP);
            waited += STEP;
        }
        let Some(signal) = Signal::caught() else { return };
        claim_end();
        console.close();
        crate::temporary::clear();
        report(&console.interrupted(signal));
        // Not the library's exit: destructors of statics may wait for the other threads.
        low_level::exit(signal.status().number().into());
    };
    let _ = std::thread::Builder::new().name("signals".to_owned()).spawn(wait);
}

/// Returns the signals that the parent process ignores, a bit each from signal 1 on.
///
/// A shell without job control starts background jobs this way: Ctrl-C is not meant for them.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_is_named_only_if_there_is_any() {
        assert_eq!(Stored::default().to_string(), "");
        let stored = |count| Stored { count, done: "inserted" }.to_string();
        assert_eq!(stored(1), "; 1 document was durably inserted");
        assert_eq!(stored(79_000), "; 79,000 documents were durably inserted");
    }
}
