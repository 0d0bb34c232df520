//! Hosts: the program around a run shows its progress and remarks, and can stop it.

use std::fmt::Debug;
use std::io::{self, Write};
use std::sync::Arc;

use hamdex::{Error, Progress};

use super::failure::Result;

/// Receives what a run reports besides its results.
pub trait Host: Progress + Debug + Send + Sync {
    /// Returns another handle on the same host.
    fn share(&self) -> Arc<dyn Host>;

    /// Shows a remark for people.
    fn say(&self, _line: &str) {}

    /// Reports a warning.
    fn warn(&self, _line: &str) {}

    /// Begins a phase that is measured in bytes of input and also counts rows.
    fn begin_reading(&self, _name: &str, _total: Option<u64>) {}

    /// Sets the bytes that were read so far, and adds rows.
    fn reach(&self, _bytes: u64, _rows: u64) {}

    /// Ends a phase: results follow.
    fn end_phase(&self) {}

    /// Writes results to standard output, which is a terminal.
    ///
    /// # Errors
    ///
    /// Returns an error if standard output cannot be written to.
    fn print(&self, bytes: &[u8]) -> io::Result<()> {
        let mut stdout = io::stdout();
        stdout.write_all(bytes)?;
        stdout.flush()
    }

    /// Fails once the work should stop.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Cancelled`] if the host asks to stop.
    fn check(&self) -> Result<()> {
        if self.cancelled() { Err(Error::Cancelled.into()) } else { Ok(()) }
    }
}

/// Shows nothing and never stops the work.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {}

impl Host for Silent {
    fn share(&self) -> Arc<dyn Host> {
        Arc::new(Self)
    }
}
