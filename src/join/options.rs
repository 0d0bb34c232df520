//! What a join is asked for, and what it did for it.

use std::ops::{Add, AddAssign};

/// How far apart pairs may be and how much memory a join may take.
///
/// A bare distance becomes options without a bound of memory.
///
/// ```
/// use hamdex::join::{self, JoinOptions};
///
/// let options = JoinOptions::new(3).memory(1 << 30);
/// let report = join::self_join(&[0_u64, 1, 2], options, &(), &|_| Ok(()))?;
/// assert_eq!(report.pairs, 3);
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JoinOptions {
    pub(super) distance: u32,
    pub(super) memory: usize,
}

impl JoinOptions {
    /// Asks for pairs that differ in up to `distance` bits, with all memory it takes.
    pub fn new(distance: u32) -> Self {
        Self { distance, memory: usize::MAX }
    }

    /// Bounds what the join takes besides the fingerprints it is given, in bytes.
    ///
    /// A join that does not fit goes by parts of each table and reads its input once for every
    /// part. The distinct fingerprints and some megabytes a thread are taken in any case.
    #[must_use]
    pub fn memory(self, bytes: usize) -> Self {
        Self { memory: bytes, ..self }
    }
}

impl From<u32> for JoinOptions {
    fn from(distance: u32) -> Self {
        Self::new(distance)
    }
}

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
