//! Settings: when two documents are near-duplicates, how far a group may reach, and what a state
//! stores of that.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use bincode::{Decode, Encode};

use crate::advice::Settled;
use crate::error::{Error, Result};
use crate::store::{codec, rename_durably};
use crate::verify::{Linkage, Verification};

/// The file of a state that holds its settings.
const FILE: &str = "settings";
/// Covered by the checksum of that file.
const KEY: &[u8] = b"dedup settings";
/// Names the file in errors.
const FAMILY: &str = "dedup state";

/// What a deduplication goes by.
///
/// ```
/// use hamdex::verify::Verification;
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

    /// Fails unless two settings decide alike.
    pub(super) fn require_alike(&self, wanted: &Self) -> Result<()> {
        let linkage = |settings: &Self| match settings.linking() {
            Linkage::Chain => "chains".to_owned(),
            Linkage::Representative => "representatives".to_owned(),
        };
        for (what, stored, wanted) in [
            ("distance", self.distance.to_string(), wanted.distance.to_string()),
            ("verification", self.verification.to_string(), wanted.verification.to_string()),
            ("linkage", linkage(self), linkage(wanted)),
        ] {
            if stored != wanted {
                return Err(Error::HeaderMismatch { what, stored, wanted });
            }
        }
        Ok(())
    }

    /// Stores the settings of a state in its directory, with its token, whole or not at all.
    pub(super) fn write(&self, directory: &Path, token: &str) -> Result<()> {
        let stored = Stored {
            token: token.to_owned(),
            distance: self.distance,
            verification: self.verification.to_string(),
            chain: self.linking() == Linkage::Chain,
        };
        let part = directory.join(format!("{FILE}.part"));
        let written = fs::write(&part, codec::encode(KEY, &stored));
        let synced = written.and_then(|()| fs::File::open(&part)?.sync_all());
        synced.map_err(|e| Error::io(&part, e))?;
        rename_durably(&part, &directory.join(FILE))
    }

    /// Reads the settings of a state and its token; `None` where there is no state.
    pub(super) fn read(directory: &Path) -> Result<Option<(Self, String)>> {
        let file = directory.join(FILE);
        let bytes = match fs::read(&file) {
            Ok(bytes) => bytes,
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(Error::io(&file, error)),
        };
        let Stored { token, distance, verification, chain } = codec::decode(FAMILY, KEY, &bytes)?;
        let verification = verification
            .parse()
            .map_err(|_| Error::corrupt(FAMILY, format!("no verification is {verification}")))?;
        let linkage = if chain { Linkage::Chain } else { Linkage::Representative };
        Ok(Some((Self::new(distance).verify(verification).linkage(linkage), token)))
    }
}

/// Settings as a state stores them.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
struct Stored {
    /// Tells the staged results of this state from those of others.
    token: String,
    distance: u32,
    verification: String,
    /// Whether groups hold what chains connect.
    chain: bool,
}
