//! Problems: damage is told in words up to a bound, and beyond it only counted.

use crate::error::{Error, Fault, Result};

/// Problems that are told in words.
const TOLD: usize = 1000;

/// Adds a problem to those that are told and to their number.
pub(crate) fn tell(problem: String, told: &mut Vec<String>, count: &mut u64) {
    *count += 1;
    if told.len() < TOLD {
        told.push(problem);
    }
}

/// Tells of damage and lets the failures of the environment and of the caller through.
pub(crate) fn note(error: Error, told: &mut Vec<String>, count: &mut u64) -> Result<()> {
    if error.fault() != Fault::Damage {
        return Err(error);
    }
    tell(error.to_string(), told, count);
    Ok(())
}
