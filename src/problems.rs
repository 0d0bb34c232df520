//! Problem lists: the first problems are kept as messages, the others are only counted.

use crate::error::{Error, Fault, Result};

/// Maximum number of messages in a list.
const MAX_MESSAGES: usize = 1000;

/// Counts a problem and keeps its message while there are fewer than [`MAX_MESSAGES`].
pub(crate) fn tell(problem: String, messages: &mut Vec<String>, count: &mut u64) {
    *count += 1;
    if messages.len() < MAX_MESSAGES {
        messages.push(problem);
    }
}

/// Records damage as a problem; returns any other error to the caller.
pub(crate) fn note(error: Error, messages: &mut Vec<String>, count: &mut u64) -> Result<()> {
    if error.fault() != Fault::Damage {
        return Err(error);
    }
    tell(error.to_string(), messages, count);
    Ok(())
}
