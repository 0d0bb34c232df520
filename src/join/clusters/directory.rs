//! Directory: maps a fingerprint to its position in a sorted set.
//!
//! The leading bits select a range, and a binary search finds the member there. The search is short
//! unless many members share those bits.

use crate::fingerprint::Fingerprint;

/// Maximum bits of the directory: 64 MiB of starts.
const BITS_MAX: u32 = 24;

/// Index of a sorted set by leading bits.
#[derive(Debug)]
pub(in crate::join) struct Directory<'a, F> {
    sorted: &'a [F],
    /// Start of the members with each value of the leading bits, and the end of the last.
    starts: Vec<u32>,
    bits: u32,
}

impl<'a, F: Fingerprint> Directory<'a, F> {
    /// Builds the directory of a sorted set with at most `u32::MAX` members.
    pub(in crate::join) fn new(sorted: &'a [F]) -> Self {
        // About four members per value.
        let bits = (sorted.len() / 4).checked_ilog2().unwrap_or(0).clamp(1, BITS_MAX);
        let mut starts = vec![0_u32; (1 << bits) + 1];
        for &member in sorted {
            starts[leading(member, bits) + 1] += 1;
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        Self { sorted, starts, bits }
    }

    /// Returns the position of a member; panics for other fingerprints.
    #[inline]
    pub(in crate::join) fn place(&self, member: F) -> u32 {
        self.find(member).expect("a join returns members of the set")
    }

    /// Returns the position of a fingerprint; `None` if it is not a member.
    #[inline]
    fn find(&self, fingerprint: F) -> Option<u32> {
        let bucket = leading(fingerprint, self.bits);
        let (start, end) = (self.starts[bucket], self.starts[bucket + 1]);
        let at = self.sorted[start as usize..end as usize].binary_search(&fingerprint).ok()?;
        Some(start + u32::try_from(at).expect("a set has at most u32::MAX members"))
    }
}

/// Returns the leading bits as a number; 24 bits fit every machine's `usize`.
#[inline]
fn leading<F: Fingerprint>(fingerprint: F, bits: u32) -> usize {
    usize::try_from((fingerprint >> (F::BITS - bits)).widen()).expect("at most 24 bits")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_is_found_at_its_position_and_nothing_else() {
        for len in [0, 1, 2, 100, 5000] {
            for shift in [0, 20, 40] {
                let spread = |at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> shift;
                let mut sorted: Vec<u64> = (0..len).map(|at| spread(at) & !1).collect();
                sorted.sort_unstable();
                sorted.dedup();
                let directory = Directory::new(&sorted);
                for (at, &member) in (0..).zip(&sorted) {
                    assert_eq!(directory.find(member), Some(at), "{len} {shift}");
                    assert_eq!(directory.find(member | 1), None, "{len} {shift}");
                }
                assert_eq!(directory.find(u64::MAX), None);
                assert_eq!(directory.find(1), None);
            }
        }
    }
}
