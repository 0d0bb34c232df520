//! Exit statuses: the cause of a failure becomes the number that the parent process sees.
//!
//! [`Status::ALL`] is the one list of them: the help prints it.

use std::fmt::Write;

/// How the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Done = 0,
    Failed = 1,
    Usage = 2,
    Data = 3,
    Damage = 4,
    Locked = 5,
    Environment = 6,
    Interrupted = 130,
    Terminated = 143,
}

impl Status {
    /// Every status, with its meaning.
    const ALL: [(Self, &'static str); 9] = [
        (Self::Done, "done"),
        (Self::Failed, "general failure; or 'index check' or 'doctor' found a problem"),
        (Self::Usage, "wrong call: no such option or value, or a result that exists"),
        (Self::Data, "data: bad rows, no usable row, an input that cannot be read"),
        (Self::Damage, "the index or the backup is damaged"),
        (Self::Locked, "another process has the index open for writing"),
        (Self::Environment, "missing file, permissions, full disk, other I/O errors"),
        (Self::Interrupted, "stopped by SIGINT (Ctrl-C)"),
        (Self::Terminated, "stopped by SIGTERM"),
    ];

    /// Returns the number that the process ends with.
    pub(crate) fn number(self) -> u8 {
        self as u8
    }

    /// Returns the list of all statuses as the help shows it.
    pub(crate) fn help() -> String {
        Self::ALL.iter().fold("Exit status:".to_owned(), |mut text, (status, meaning)| {
            let _ = write!(text, "\n  {:>3}  {meaning}", status.number());
            text
        })
    }
}
