//! Options and report of a join.

use std::ops::{Add, AddAssign};

use crate::plan::Costs;

/// Distance, memory limit and costs of a join.
///
/// A bare distance converts into options without a memory limit.
///
/// ```
/// use hamdex::join::{self, JoinOptions};
/// use hamdex::plan::Costs;
///
/// let options = JoinOptions::new(3).memory(1 << 30).costs(Costs::default());
/// let report = join::self_join(&[0_u64, 1, 2], options, &(), &|_| Ok(()))?;
/// assert_eq!(report.pairs, 3);
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JoinOptions {
    pub(super) distance: u32,
    pub(super) memory: usize,
    pub(super) costs: Costs,
}

impl JoinOptions {
    /// Returns options for pairs within `distance` bits, without a memory limit.
    pub fn new(distance: u32) -> Self {
        Self { distance, memory: usize::MAX, costs: Costs::default() }
    }

    /// Limits the memory that the join allocates in addition to its input, in bytes.
    ///
    /// A join that does not fit processes each table in parts and reads its input once per part.
    /// The distinct fingerprints and a few megabytes per thread are allocated in any case.
    #[must_use]
    pub fn memory(self, bytes: usize) -> Self {
        Self { memory: bytes, ..self }
    }

    /// Sets the costs by which a join chooses its tables. Default: those of a typical server.
    ///
    /// [`calibrate`](crate::inspect::calibrate()) measures them. Every choice finds the same pairs.
    #[must_use]
    pub fn costs(self, costs: Costs) -> Self {
        Self { costs, ..self }
    }
}

impl From<u32> for JoinOptions {
    fn from(distance: u32) -> Self {
        Self::new(distance)
    }
}

/// Counts of what a join found and compared.
///
/// ```
/// use hamdex::join;
///
/// let report = join::self_join(&[0_u64, 1, 2], 1, &(), &|_| Ok(()))?;
/// assert_eq!((report.pairs, report.comparisons), (2, 3));
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct JoinReport {
    /// Pairs passed to the visitor.
    pub pairs: u64,
    /// Compared pairs of fingerprints, counted once per table.
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
