//! Settings: when two documents are near-duplicates, and how far a group may reach.

use std::path::PathBuf;

use crate::advice::Settled;
use crate::verify::{Linkage, Verification};

/// What a deduplication goes by.
///
/// ```
/// use hamdex::Verification;
/// use hamdex::dedup::Settings;
/// use hamdex::join::Linkage;
///
/// let settings = Settings::new(12).verify(Verification::Edit(0.88));
/// assert_eq!(settings.linking(), Linkage::Representative);
/// assert_eq!(Settings::new(3).linking(), Linkage::Chain);
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Settings {
    /// Bits that near-duplicates may differ in: 0 to a quarter of the width.
    pub distance: u32,
    /// Check that a pair within the distance has to pass.
    pub verification: Verification,
    /// Which documents a group may hold; `None` goes by the verification.
    pub linkage: Option<Linkage>,
    /// Where temporary files go; `None` is the system's directory for them.
    pub tmp: Option<PathBuf>,
}

impl Settings {
    /// Asks for a distance alone.
    pub fn new(distance: u32) -> Self {
        Self { distance, verification: Verification::None, linkage: None, tmp: None }
    }

    /// Takes distance and verification as they were settled by the texts.
    pub fn of(settled: &Settled) -> Self {
        Self::new(settled.distance).verify(settled.verification)
    }

    /// Sets the check of pairs within the distance. Default = none.
    pub fn verify(mut self, verification: Verification) -> Self {
        self.verification = verification;
        self
    }

    /// Sets which documents a group may hold. Default = what passes with the kept document.
    ///
    /// Without a verification there is nothing to pass, and the default is what chains connect.
    pub fn linkage(mut self, linkage: Linkage) -> Self {
        self.linkage = Some(linkage);
        self
    }

    /// Sets the directory for temporary files. Default = that of the system.
    pub fn tmp(mut self, directory: impl Into<PathBuf>) -> Self {
        self.tmp = Some(directory.into());
        self
    }

    /// Returns which documents a group holds, the default filled in.
    pub fn linking(&self) -> Linkage {
        let unverified = self.verification == Verification::None;
        self.linkage.unwrap_or(if unverified { Linkage::Chain } else { Linkage::Representative })
    }
}
