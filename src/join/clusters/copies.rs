//! Copies: the positions of equal fingerprints, which joins do not report.

use rayon::slice::ParallelSliceMut;

use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;

/// The positions of each distinct fingerprint.
///
/// Joins report distinct fingerprints; use this to find the documents of each.
///
/// ```
/// use hamdex::join::Copies;
///
/// let copies = Copies::new(&[7_u64, 3, 7])?;
/// assert_eq!(copies.of(7), [0, 2]);
/// assert_eq!(copies.groups().count(), 2);
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug)]
pub struct Copies<F> {
    /// Distinct fingerprints, ascending, each with the end of its positions.
    distinct: Vec<(F, u32)>,
    positions: Vec<u32>,
}

impl<F: Fingerprint> Copies<F> {
    /// Sorts the positions by fingerprint.
    ///
    /// Uses up to 20 bytes per fingerprint, 36 at 128 bits.
    ///
    /// # Errors
    ///
    /// Returns [`Error::InvalidOption`] if there are more than `u32::MAX` fingerprints.
    pub fn new(fingerprints: &[F]) -> Result<Self> {
        let count = u32::try_from(fingerprints.len()).map_err(|_| Error::InvalidOption {
            name: "inputs",
            reason: format!("{} documents are too many for one join", fingerprints.len()),
        })?;
        let mut sorted: Vec<(F, u32)> = fingerprints.iter().copied().zip(0..count).collect();
        sorted.par_sort_unstable();
        let mut distinct: Vec<(F, u32)> = Vec::new();
        let mut positions = Vec::with_capacity(sorted.len());
        for ((fingerprint, position), end) in sorted.into_iter().zip(1..) {
            positions.push(position);
            match distinct.last_mut() {
                Some((last, last_end)) if *last == fingerprint => *last_end = end,
                _ => distinct.push((fingerprint, end)),
            }
        }
        Ok(Self { distinct, positions })
    }

    /// Returns the positions of a fingerprint, ascending; empty if it does not occur.
    pub fn of(&self, fingerprint: F) -> &[u32] {
        match self.distinct.binary_search_by_key(&fingerprint, |&(other, _)| other) {
            Ok(at) => self.group(at),
            Err(_) => &[],
        }
    }

    /// Returns the positions of each fingerprint, by ascending fingerprint.
    pub fn groups(&self) -> impl Iterator<Item = &[u32]> {
        (0..self.distinct.len()).map(|at| self.group(at))
    }

    fn group(&self, at: usize) -> &[u32] {
        let end = |at: usize| self.distinct[at].1 as usize;
        let start = at.checked_sub(1).map_or(0, end);
        &self.positions[start..end(at)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_found_by_fingerprint() {
        let copies = Copies::new(&[7_u64, 3, 7, 9, 7]).unwrap();
        assert_eq!(copies.of(7), [0, 2, 4]);
        assert_eq!(copies.of(3), [1]);
        assert_eq!(copies.of(8), [0_u32; 0]);
        assert_eq!(copies.groups().map(<[u32]>::len).collect::<Vec<_>>(), [1, 3, 1]);
        assert_eq!(Copies::<u32>::new(&[]).unwrap().groups().count(), 0);
    }
}
