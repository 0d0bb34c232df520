//! Units: documents of one fingerprint and one digest, which are copies to every check.
#![expect(clippy::indexing_slicing, reason = "numbers of units are positions in its lists")]

use std::ops::Range;

use rayon::prelude::*;

use crate::fingerprint::Fingerprint;

/// Documents grouped into units of one fingerprint and one digest.
pub(super) struct Units<F> {
    /// Distinct fingerprints, ascending.
    pub(super) distinct: Vec<F>,
    /// First unit of each distinct fingerprint, and the end of the last.
    starts: Vec<u32>,
    /// The smallest position of each unit.
    pub(super) firsts: Vec<u32>,
    /// The unit of each position.
    pub(super) of: Vec<u32>,
}

impl<F: Fingerprint> Units<F> {
    pub(super) fn new(fps: &[F], digests: &[u64]) -> Self {
        let count = u32::try_from(fps.len()).expect("blocks have 32-bit places");
        let mut sorted: Vec<(F, u64, u32)> =
            fps.iter().zip(digests).zip(0..count).map(|((&f, &d), at)| (f, d, at)).collect();
        sorted.par_sort_unstable();
        let mut units = Self {
            distinct: Vec::new(),
            starts: Vec::new(),
            firsts: Vec::new(),
            of: vec![0; fps.len()],
        };
        for unit in sorted.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let (fingerprint, _, first) = unit[0];
            let number = units.count();
            if units.distinct.last() != Some(&fingerprint) {
                units.distinct.push(fingerprint);
                units.starts.push(number);
            }
            units.firsts.push(first);
            for &(_, _, position) in unit {
                units.of[position as usize] = number;
            }
        }
        units.starts.push(units.count());
        units
    }

    /// Returns the number of units, which is at most the number of positions.
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.firsts.len()).expect("each unit has a distinct position")
    }

    /// Returns the units of a distinct fingerprint.
    pub(super) fn at(&self, distinct: u32) -> Range<u32> {
        let at = distinct as usize;
        self.starts[at]..self.starts[at + 1]
    }

    /// Returns the positions of two units, the smaller one first.
    pub(super) fn positions(&self, a: u32, b: u32) -> (u32, u32) {
        let first = |unit: u32| self.firsts[unit as usize];
        (first(a).min(first(b)), first(a).max(first(b)))
    }
}
