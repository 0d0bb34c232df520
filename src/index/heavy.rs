//! Heavy prefixes: what searches have learnt of prefixes that far too many fingerprints share.
//!
//! Schedules take fingerprints to be spread evenly. A prefix met with many times its share is
//! remembered, and later queries near it are scheduled around it. A count that is out of date
//! costs time and loses nothing.
#![expect(clippy::indexing_slicing, reason = "there is a list for each table of the plan")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

/// Members from which on a prefix is heavy, however many are expected.
const MEMBERS: u64 = 4096;
/// How many times more than expected are heavy.
const TIMES: f64 = 16.0;
/// The most prefixes of a table that are remembered.
const KEPT: usize = 4096;

/// Heavy prefixes of every table.
#[derive(Debug)]
pub(crate) struct Heavy {
    tables: Vec<RwLock<Vec<Prefix>>>,
    /// Whether anything may be known: most indexes never meet a heavy prefix.
    any: AtomicBool,
}

#[derive(Debug, Clone, Copy)]
struct Prefix {
    /// Low-aligned.
    bits: u128,
    members: u64,
}

impl Heavy {
    pub(crate) fn new(tables: usize) -> Self {
        let tables = (0..tables).map(|_| RwLock::default()).collect();
        Self { tables, any: AtomicBool::new(false) }
    }

    /// Remembers how many members a prefix has, if they are far more than expected.
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

    /// Tells whether no heavy prefix was met, without a look at the tables.
    pub(super) fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Relaxed)
    }

    /// Forgets what was learnt.
    pub(super) fn forget(&self) {
        for known in &self.tables {
            known.write().unwrap_or_else(PoisonError::into_inner).clear();
        }
        self.any.store(false, Ordering::Relaxed);
    }

    /// Returns how many members of heavy prefixes lie within each number of flips of a prefix.
    ///
    /// The last number is that of all flips; `None` where no heavy prefix is known.
    pub(super) fn near(&self, table: usize, bits: u128, most: u32) -> Option<Vec<u64>> {
        let known = self.tables[table].read().unwrap_or_else(PoisonError::into_inner);
        if known.is_empty() {
            return None;
        }
        let mut within = vec![0_u64; most as usize + 1];
        for prefix in known.iter() {
            // Those farther away matter to no search.
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
        let heavy = Heavy::new(2);
        heavy.learn(0, 0b1010, MEMBERS - 1, 1.0);
        heavy.learn(0, 0b1011, 100_000, 50_000.0);
        assert_eq!(heavy.near(0, 0, 4), None);
        assert!(heavy.is_empty());
        heavy.learn(0, 0b1010, 50_000, 10.0);
        assert!(!heavy.is_empty());
        heavy.learn(0, 0b0010, 6_000, 10.0);
        heavy.learn(0, 0b1010, 70_000, 10.0);
        assert_eq!(heavy.near(0, 0b1010, 3).unwrap(), [70_000, 76_000, 76_000, 76_000]);
        assert_eq!(heavy.near(0, 0b0101, 3).unwrap(), [0, 0, 0, 6_000]);
        assert_eq!(heavy.near(1, 0b1010, 3), None);
        heavy.forget();
        assert_eq!(heavy.near(0, 0b1010, 3), None);
        assert!(heavy.is_empty());
    }

    #[test]
    fn no_more_than_a_few_thousand_are_kept() {
        let heavy = Heavy::new(1);
        for bits in 0..2 * KEPT as u128 {
            heavy.learn(0, bits, 10_000, 1.0);
        }
        assert_eq!(heavy.near(0, 0, 32).unwrap().last(), Some(&(KEPT as u64 * 10_000)));
    }
}
