//! Reading beside a writer: an opening counts only when no file was switched meanwhile.
//!
//! A writer that flushes or recovers first names its files in the MANIFEST and then deletes the
//! log that held the same records. A reader that falls between would miss them; it shows in the
//! MANIFEST's name or length.

use std::path::Path;
use std::time::Duration;

use crate::error::{Error, Result};

/// Times that an opening is tried while a writer keeps switching files.
const ATTEMPTS: u32 = 200;

/// Pause between two tries.
const PAUSE: Duration = Duration::from_millis(10);

/// Repeats `open` until the files were the same before and after it.
///
/// # Errors
///
/// What `open` fails with among settled files; [`Error::Store`] when they never settle.
pub(super) fn when_settled<T>(path: &Path, open: impl Fn() -> Result<T>) -> Result<T> {
    when_settled_at(path, open).map(|(opened, _)| opened)
}

/// As [`when_settled`], and tells which files these were.
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

/// Name and length of the MANIFEST that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp(String, u64);

impl Stamp {
    /// Looks at the files; `None` where one is missing.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let current = std::fs::read_to_string(path.join("CURRENT")).ok()?;
        let length = std::fs::metadata(path.join(current.trim_end())).ok()?.len();
        Some(Self(current, length))
    }
}
