//! Skewed prefixes: remembers prefixes that far too many fingerprints share.
//!
//! Schedules assume that fingerprints are spread evenly. A prefix with many times its share is
//! remembered when a search meets it, and later queries near it get a schedule that avoids it. An
//! outdated count costs time, but never a match.
#![expect(clippy::indexing_slicing, reason = "there is a list for each table of the plan")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

/// Least number of members of a skewed prefix.
const MEMBERS: u64 = 4096;
/// Least ratio of actual to expected members of a skewed prefix.
const TIMES: f64 = 16.0;
/// Maximum number of prefixes remembered per table.
const KEPT: usize = 4096;

/// Known skewed prefixes of every table.
#[derive(Debug)]
pub(crate) struct Skewed {
    tables: Vec<RwLock<Vec<Prefix>>>,
    /// Whether any may be known: most indexes never meet a skewed prefix.
    any: AtomicBool,
}

#[derive(Debug, Clone, Copy)]
struct Prefix {
    /// Aligned to the least significant bit.
    bits: u128,
    members: u64,
}

impl Skewed {
    pub(crate) fn new(tables: usize) -> Self {
        let tables = (0..tables).map(|_| RwLock::default()).collect();
        Self { tables, any: AtomicBool::new(false) }
    }

    /// Remembers the size of a prefix if it is far larger than expected.
    pub(super) fn learn(&self, table: usize, bits: u128, members: u64, expected: f64) {
        if members < MEMBERS || (members as f64) < TIMES * expected {
            return;
        }
        let known = &self.tables[table];
        self.any.store(true, Ordering::Relaxed);
        let mut known = known.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(prefix) = known.iter_mut().find(|prefix| prefix.bits == bits) {
            prefix.members = members;
        } else if known.len() < KEPT {
            known.push(Prefix { bits, members });
        }
    }

    /// Returns true if no skewed prefix is known, without locking the tables.
    pub(in crate::index) fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Relaxed)
    }

    /// Forgets all skewed prefixes.
    pub(super) fn forget(&self) {
        for known in &self.tables {
            known.write().unwrap_or_else(PoisonError::into_inner).clear();
        }
        self.any.store(false, Ordering::Relaxed);
    }

    /// Returns the members of skewed prefixes within 0 to `most` flips of a prefix.
    ///
    /// Each number includes the smaller radii. Returns `None` if no skewed prefix is known.
    pub(in crate::index) fn near(&self, table: usize, bits: u128, most: u32) -> Option<Vec<u64>> {
        let known = self.tables[table].read().unwrap_or_else(PoisonError::into_inner);
        if known.is_empty() {
            return None;
        }
        let mut within = vec![0_u64; most as usize + 1];
        for prefix in known.iter() {
            // Prefixes farther away matter to no search.
            if let Some(members) = within.get_mut((prefix.bits ^ bits).count_ones() as usize) {
                *members += prefix.members;
            }
        }
        let mut sum = 0;
        for members in &mut within {
            sum += *members;
            *members = sum;
        }
        Some(within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_prefixes_far_above_their_share_are_remembered() {
        let skewed = Skewed::new(2);
        skewed.learn(0, 0b1010, MEMBERS - 1, 1.0);
        skewed.learn(0, 0b1011, 100_000, 50_000.0);
        assert_eq!(skewed.near(0, 0, 4), None);
        assert!(skewed.is_empty());
        skewed.learn(0, 0b1010, 50_000, 10.0);
        assert!(!skewed.is_empty());
        skewed.learn(0, 0b0010, 6_000, 10.0);
        skewed.learn(0, 0b1010, 70_000, 10.0);
        assert_eq!(skewed.near(0, 0b1010, 3).unwrap(), [70_000, 76_000, 76_000, 76_000]);
        assert_eq!(skewed.near(0, 0b0101, 3).unwrap(), [0, 0, 0, 6_000]);
        assert_eq!(skewed.near(1, 0b1010, 3), None);
        skewed.forget();
        assert_eq!(skewed.near(0, 0b1010, 3), None);
        assert!(skewed.is_empty());
    }

    #[test]
    fn no_more_than_a_few_thousand_are_kept() {
        let skewed = Skewed::new(1);
        for bits in 0..2 * KEPT as u128 {
            skewed.learn(0, bits, 10_000, 1.0);
        }
        assert_eq!(skewed.near(0, 0, 32).unwrap().last(), Some(&(KEPT as u64 * 10_000)));
    }
}
