//! Nearness: a distance and the check behind it say which documents count as near-duplicates.

use super::Verification;

/// Which documents a cluster may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Linkage {
    /// Everything that chains of near pairs connect.
    #[default]
    Chain,
    /// What is within the distance of the cluster's first document and passes the check with it.
    Representative,
}

/// When two documents count as near-duplicates of each other.
///
/// A bare distance is a nearness without a check.
///
/// ```
/// use hamdex::verify::{Nearness, Verification};
///
/// let nearness = Nearness::new(12).verify(Verification::Jaccard(0.8));
/// assert_eq!(Nearness::from(3), Nearness::new(3));
/// assert_eq!(nearness.distance, 12);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[must_use]
pub struct Nearness {
    /// How many bits the fingerprints may differ: 0 to a quarter of the width.
    pub distance: u32,
    /// The check that a pair within the distance has to pass.
    pub verification: Verification,
    /// Which documents a cluster may hold; pairs and searches take no notice.
    pub linkage: Linkage,
    /// Bytes that a join of a whole index may take; searches take no notice.
    pub memory: usize,
}

impl Nearness {
    /// Asks for a distance alone.
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

    /// Sets which documents a cluster may hold. Default = what chains connect.
    ///
    /// Clusters of an index without a check are always what chains connect.
    pub fn linkage(mut self, linkage: Linkage) -> Self {
        self.linkage = linkage;
        self
    }

    /// Bounds the memory of a join of a whole index, in bytes. Default = what it takes.
    ///
    /// Pairs of an index that does not fit are joined part by part. Clusters hold the distinct
    /// fingerprints in any case, and read keys from the store if they do not fit beside them.
    pub fn memory(mut self, bytes: usize) -> Self {
        self.memory = bytes;
        self
    }
}

impl From<u32> for Nearness {
    fn from(distance: u32) -> Self {
        Self::new(distance)
    }
}
