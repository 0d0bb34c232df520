//! Reading beside a writer: an opening is valid only if no file was switched meanwhile.
//!
//! A writer that flushes or recovers first names its new files in the MANIFEST, then deletes the
//! log with the same records. A reader between the two steps would miss these records. The name or
//! length of the MANIFEST reveals it.

use std::path::Path;
use std::time::Duration;

use crate::error::{Error, Result};

/// Number of attempts while a writer keeps switching files.
const ATTEMPTS: u32 = 200;

/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(10);

/// Repeats `open` until the files are the same before and after it.
///
/// # Errors
///
/// Returns the error of `open` if the files did not change during it, and [`Error::Store`] if they
/// changed at every attempt. Gives up after about two seconds.
pub(super) fn when_settled<T>(path: &Path, open: impl Fn() -> Result<T>) -> Result<T> {
    when_settled_at(path, open).map(|(opened, _)| opened)
}

/// Like [`when_settled`], and also returns which files these were.
pub(super) fn when_settled_at<T>(
    path: &Path,
    open: impl Fn() -> Result<T>,
) -> Result<(T, Option<Stamp>)> {
    for _ in 0..ATTEMPTS {
        let before = Stamp::of(path);
        let opened = open();
        if Stamp::of(path) == before {
            return opened.map(|opened| (opened, before));
        }
        std::thread::sleep(PAUSE);
    }
    Err(Error::Store { message: "the index changed at every attempt to open it".to_owned() })
}

/// Name and length of the current MANIFEST.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp(String, u64);

impl Stamp {
    /// Reads name and length. Returns `None` if a file is missing.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let current = std::fs::read_to_string(path.join("CURRENT")).ok()?;
        let length = std::fs::metadata(path.join(current.trim_end())).ok()?.len();
        Some(Self(current, length))
    }
}
