//! Representatives: the units of a component join the first one that they pass with.
//!
//! The rule is sequential, its checks are not: those of a block of units with the representatives
//! before it run on all threads, and so do those of the rest of the block with each new one.

use rayon::prelude::*;

use super::Verify;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::progress::{self, Progress};

/// Units that are compared at once with the representatives before them.
const BLOCK: usize = 1024;

/// Representatives passed over by distance between two looks at whether to go on.
const PASSED_TOGETHER: usize = 1 << 14;

/// Gives every unit of a component the first near representative that it passes with.
///
/// Units are root, first position and number, by rising position. Returns number and label of
/// each, in no order; they are those of the sequential rule for any number of threads.
pub(super) fn under_representatives<F: Fingerprint>(
    fps: &[F],
    component: &[(u32, u32, u32)],
    distance: u32,
    progress: &dyn Progress,
    verify: &Verify<'_>,
) -> Result<Vec<(u32, u32)>> {
    let fingerprint = |position: u32| fps.get(position as usize).copied().unwrap_or_default();
    let passes = |(kept, ours): (u32, F), position: u32| {
        let apart = ours.distance(fingerprint(position));
        if apart > distance {
            return Ok(false);
        }
        progress::check(progress)?;
        verify(kept, position, apart)
    };
    let mut representatives: Vec<(u32, F)> = Vec::new();
    let mut labels = Vec::with_capacity(component.len());
    for block in component.chunks(BLOCK) {
        progress::check(progress)?;
        let first = |&(_, position, unit): &(u32, u32, u32)| -> Result<_> {
            for some in representatives.chunks(PASSED_TOGETHER) {
                progress::check(progress)?;
                for &representative in some {
                    if passes(representative, position)? {
                        return Ok((unit, position, Some(representative.0)));
                    }
                }
            }
            Ok((unit, position, None))
        };
        let found = block.par_iter().map(first).collect::<Result<Vec<_>>>()?;
        let mut left = Vec::new();
        for (unit, position, label) in found {
            match label {
                Some(label) => labels.push((unit, label)),
                None => left.push((unit, position)),
            }
        }
        // What is left is like none before the block, so its first is a representative.
        while let Some(&(unit, kept)) = left.first() {
            let representative = (kept, fingerprint(kept));
            representatives.push(representative);
            labels.push((unit, kept));
            let rest = left.get(1..).unwrap_or_default().par_iter();
            let asked = rest.map(|&(_, position)| passes(representative, position));
            let passed = asked.collect::<Result<Vec<_>>>()?;
            let after: Vec<(u32, u32)> = left.drain(1..).collect();
            left.clear();
            for ((unit, position), passed) in after.into_iter().zip(passed) {
                if passed {
                    labels.push((unit, kept));
                } else {
                    left.push((unit, position));
                }
            }
        }
    }
    Ok(labels)
}

#[cfg(test)]
mod tests;
