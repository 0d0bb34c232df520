//! Duplicate rules: the distance and the verification that make two documents near-duplicates.

use super::Verification;

/// Which documents of a chain a cluster holds.
///
/// ```
/// use hamdex::verify::DuplicateRule;
/// use hamdex::join::Linkage;
///
/// assert_eq!(DuplicateRule::new(3).linkage, Linkage::Chain);
/// let rule = DuplicateRule::new(3).linkage(Linkage::Representative);
/// assert_eq!(rule.linkage, Linkage::Representative);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Linkage {
    /// All documents that chains of near pairs connect.
    #[default]
    Chain,
    /// Documents within the distance of the cluster's first document that pass the check with it.
    Representative,
}

/// When two documents are near-duplicates of each other.
///
/// A distance converts to a rule without a check.
///
/// ```
/// use hamdex::verify::{Linkage, DuplicateRule, Verification};
///
/// let rule = DuplicateRule::new(12).verify(Verification::Jaccard(0.8)).memory(1 << 30);
/// assert_eq!(DuplicateRule::from(3), DuplicateRule::new(3));
/// assert_eq!((rule.distance, rule.memory), (12, 1 << 30));
/// assert_eq!(rule.linkage(Linkage::Representative).linkage, Linkage::Representative);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
#[must_use]
pub struct DuplicateRule {
    /// Largest distance of near-duplicates in bits: 0 to a quarter of the width.
    pub distance: u32,
    /// The check that a pair within the distance must pass.
    pub verification: Verification,
    /// Which documents a cluster holds; pairs and searches ignore it.
    pub linkage: Linkage,
    /// Most bytes of memory for a join of a whole index; searches ignore it.
    pub memory: usize,
}

impl DuplicateRule {
    /// Creates a rule with a distance and without a check.
    pub fn new(distance: u32) -> Self {
        Self {
            distance,
            verification: Verification::None,
            linkage: Linkage::Chain,
            memory: usize::MAX,
        }
    }

    /// Sets the check of pairs within the distance. Default = none.
    pub fn verify(mut self, verification: Verification) -> Self {
        self.verification = verification;
        self
    }

    /// Sets which documents a cluster holds. Default = all that chains connect.
    ///
    /// Clusters of an index without a check always use [`Linkage::Chain`].
    pub fn linkage(mut self, linkage: Linkage) -> Self {
        self.linkage = linkage;
        self
    }

    /// Limits the memory of a join of a whole index, in bytes. Default = unlimited.
    ///
    /// Pairs of an index that does not fit are joined in parts. Clusters always hold the distinct
    /// fingerprints in memory, and read keys from the store if these do not fit as well.
    pub fn memory(mut self, bytes: usize) -> Self {
        self.memory = bytes;
        self
    }
}

impl From<u32> for DuplicateRule {
    fn from(distance: u32) -> Self {
        Self::new(distance)
    }
}
