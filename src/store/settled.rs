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
    for _ in 0..ATTEMPTS {
        let before = stamp(path);
        let opened = open();
        if stamp(path) == before {
            return opened;
        }
        std::thread::sleep(PAUSE);
    }
    Err(Error::Store { message: "the index changed at every attempt to open it".to_owned() })
}

/// Name and length of the MANIFEST that counts; `None` where a file is missing.
fn stamp(path: &Path) -> Option<(String, u64)> {
    let current = std::fs::read_to_string(path.join("CURRENT")).ok()?;
    let length = std::fs::metadata(path.join(current.trim_end())).ok()?.len();
    Some((current, length))
}
