//! What a join did: how many pairs there were and how much was compared for them.

use std::ops::{Add, AddAssign};

/// What a join found and what it took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JoinReport {
    /// Pairs that were given to the visitor.
    pub pairs: u64,
    /// Pairs of fingerprints that were compared, some of them in several tables.
    pub comparisons: u64,
}

impl Add for JoinReport {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { pairs: self.pairs + other.pairs, comparisons: self.comparisons + other.comparisons }
    }
}

impl AddAssign for JoinReport {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}
