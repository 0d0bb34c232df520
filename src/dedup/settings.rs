//! Settings: which pairs are near-duplicates, what a group holds, and how a state stores both.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use bincode::{Decode, Encode};

use super::unit::Unit;
use crate::advice::Resolved;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::join::Outlines;
use crate::plan::Costs;
use crate::store::{SETTINGS as FILE, codec, write_whole};
use crate::verify::{EvidenceFile, Linkage, Verification};

/// Key that the checksum of that file covers.
const KEY: &[u8] = b"dedup settings";
/// Name of the file in errors.
const FAMILY: &str = "dedup state";

/// Documents that may have a unit before it is boilerplate, by default.
const DOCUMENTS: u32 = 10;

/// Bytes of memory for the units of documents, by default.
const MEMORY: usize = 512 << 20;

/// Settings of a deduplication: distance, verification and linkage.
///
/// ```
/// use hamdex::verify::Verification;
/// use hamdex::dedup::DedupOptions;
/// use hamdex::join::Linkage;
///
/// let settings = DedupOptions::new(12).verify(Verification::Edit(0.88)).tmp("/var/tmp");
/// assert_eq!(settings.linking(), Linkage::Representative);
/// assert_eq!(settings.linkage(Linkage::Chain).linking(), Linkage::Chain);
/// assert_eq!(DedupOptions::new(3).linking(), Linkage::Chain);
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[must_use]
pub struct DedupOptions {
    /// Largest distance of near-duplicates in bits: 0 to a quarter of the width.
    pub distance: u32,
    /// Check that a pair within the distance must pass.
    pub verification: Verification,
    /// Which documents a group holds; `None` chooses by the verification.
    pub linkage: Option<Linkage>,
    /// Directory for temporary files; `None` is the system's.
    pub tmp: Option<PathBuf>,
    /// Most bytes of memory; what exceeds them is in temporary files.
    pub memory: usize,
    /// Costs by which joins choose their tables; the decisions are the same with any.
    pub costs: Costs,
}

/// Part of the memory that evidence may take.
const EVIDENCE_PART: usize = 3;

/// Most blocks that documents are grouped in, since the time grows with their square.
const BLOCKS: u32 = 64;

/// Near documents of one whose checks take as long as reading its outline.
///
/// A check that an outline saves reads two records, 0.36 us, for two documents; an outline takes
/// 1 us (`--unit line`, and the 20 million rows of FIGURES).
const PAYING: u64 = 6;

/// Documents of the sample that shows how many are near.
const SAMPLE: u32 = 2048;

/// Fewest documents of a block.
const BLOCK: u32 = 64;

impl DedupOptions {
    /// Creates settings with a distance and without a verification.
    pub fn new(distance: u32) -> Self {
        Self {
            distance,
            verification: Verification::None,
            linkage: None,
            tmp: None,
            memory: usize::MAX,
            costs: Costs::default(),
        }
    }

    /// Uses the distance and verification that were chosen from texts.
    ///
    /// ```
    /// use hamdex::advice::{self, Overrides};
    /// use hamdex::dedup::DedupOptions;
    ///
    /// let texts = ["severe flooding closes the main road", "a book about the deep sea"];
    /// let resolved = advice::resolve(&texts, &Overrides::new())?;
    /// assert_eq!(DedupOptions::of(&resolved).distance, resolved.distance);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn of(resolved: &Resolved) -> Self {
        Self::new(resolved.distance).verify(resolved.verification)
    }

    /// Sets the check of pairs within the distance. Default = none.
    pub fn verify(mut self, verification: Verification) -> Self {
        self.verification = verification;
        self
    }

    /// Sets which documents a group holds. Default = those that pass with the kept one.
    ///
    /// Without a verification the default is [`Linkage::Chain`].
    pub fn linkage(mut self, linkage: Linkage) -> Self {
        self.linkage = Some(linkage);
        self
    }

    /// Sets the directory for temporary files. Default = the system's.
    pub fn tmp(mut self, directory: impl Into<PathBuf>) -> Self {
        self.tmp = Some(directory.into());
        self
    }

    /// Limits the memory of a deduplication, in bytes. Default = unlimited.
    ///
    /// What does not fit is in temporary files, and documents are grouped in blocks. The decisions
    /// are the same. Some bytes per document always stay in memory: the fingerprint, 8 for labels
    /// and clusters, the rank, 17 per duplicate, and what a 64th of the documents takes while it
    /// is grouped. `README.md` of the command line has figures.
    ///
    /// ```
    /// use hamdex::dedup::DedupOptions;
    ///
    /// assert_eq!(DedupOptions::new(3).memory(512 << 20).memory, 512 << 20);
    /// ```
    pub fn memory(mut self, bytes: usize) -> Self {
        self.memory = bytes;
        self
    }

    /// Sets the costs by which joins choose their tables. Default = those of a typical server.
    ///
    /// [`calibrate`](crate::inspect::calibrate()) measures them. The decisions are the same.
    ///
    /// ```
    /// use hamdex::dedup::DedupOptions;
    /// use hamdex::plan::Costs;
    ///
    /// assert_eq!(DedupOptions::new(3).costs(Costs::default()), DedupOptions::new(3));
    /// ```
    pub fn costs(mut self, costs: Costs) -> Self {
        self.costs = costs;
        self
    }

    /// Returns the memory for evidence.
    pub(super) fn evidence_memory(&self) -> usize {
        if self.memory == usize::MAX { self.memory } else { self.memory / EVIDENCE_PART }
    }

    /// Returns how many documents are grouped together, and the evidence if outlines of it pay.
    ///
    /// Each block reads the outlines of all representatives before it. They pay if the texts are
    /// short and many documents are near each other.
    pub(super) fn block<'e, F: Fingerprint>(
        &self,
        documents: u32,
        evidence: Option<&'e EvidenceFile>,
        fingerprint: impl Fn(u32) -> F,
    ) -> (u32, Option<&'e EvidenceFile>) {
        let outlined = self.block_of::<F>(documents, Outlines::BYTES);
        let enough = u64::from(documents.div_ceil(outlined.max(1))) * PAYING;
        let paying = evidence.filter(|evidence| {
            evidence.is_of_short_texts()
                && near_documents(documents, self.distance, fingerprint) > enough
        });
        (if paying.is_some() { outlined } else { self.block_of::<F>(documents, 0) }, paying)
    }

    /// Returns how many documents are grouped together; of each, `more` bytes are in memory.
    fn block_of<F: Fingerprint>(&self, documents: u32, more: usize) -> u32 {
        if self.memory == usize::MAX {
            return documents;
        }
        let held = (documents as usize).saturating_mul(F::BYTES + 4);
        let left = self.memory.saturating_sub(self.evidence_memory()).saturating_sub(held);
        let block = left / (200 + 12 * F::BYTES + more);
        let block = u32::try_from(block).unwrap_or(u32::MAX);
        block.max(documents.div_ceil(BLOCKS)).max(BLOCK)
    }

    /// Returns which documents a group holds, with the default filled in.
    pub fn linking(&self) -> Linkage {
        let unverified = self.verification == Verification::None;
        self.linkage.unwrap_or(if unverified { Linkage::Chain } else { Linkage::Representative })
    }

    /// Returns an error unless both settings give the same decisions.
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

    /// Stores the settings and the token of a state in its directory, atomically.
    pub(super) fn write(&self, directory: &Path, token: &str) -> Result<()> {
        let stored = Stored {
            token: token.to_owned(),
            distance: self.distance,
            verification: self.verification.to_string(),
            chain: self.linking() == Linkage::Chain,
        };
        let part = directory.join(format!("{FILE}.part"));
        write_whole(&part, &directory.join(FILE), &codec::encode(KEY, &stored))
    }

    /// Reads the settings and the token of a state; `None` if there is no state.
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
            .map_err(|_| Error::corrupt(FAMILY, format!("unknown verification {verification}")))?;
        let linkage = if chain { Linkage::Chain } else { Linkage::Representative };
        Ok(Some((Self::new(distance).verify(verification).linkage(linkage), token)))
    }
}

/// What boilerplate is.
///
/// ```
/// use hamdex::dedup::{BoilerplateOptions, DedupOptions, Unit};
///
/// let options = BoilerplateOptions::new(Unit::Line, DedupOptions::new(12));
/// assert_eq!((options.documents, options.memory), (10, 512 << 20));
/// let options = options.documents(3).memory(64 << 20);
/// assert_eq!((options.documents, options.memory), (3, 64 << 20));
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[must_use]
pub struct BoilerplateOptions {
    /// The parts of a document that are counted.
    pub unit: Unit,
    /// Documents that may have a unit before it is boilerplate. Default = 10.
    pub documents: u32,
    /// When two units are near-duplicates of each other.
    ///
    /// Groups have representatives. The third number of
    /// [`Verification::EditByLength`](crate::verify::Verification::EditByLength) is ignored.
    pub near: DedupOptions,
    /// Bytes of memory; what exceeds them is in temporary files. Default = 512 MiB.
    pub memory: usize,
}

impl BoilerplateOptions {
    /// Requests units of this kind.
    pub fn new(unit: Unit, near: DedupOptions) -> Self {
        Self { unit, documents: DOCUMENTS, near, memory: MEMORY }
    }

    /// Sets the number of documents that may have a unit. Default = 10.
    pub fn documents(mut self, documents: u32) -> Self {
        self.documents = documents;
        self
    }

    /// Sets the bytes of memory. Default = 512 MiB.
    pub fn memory(mut self, bytes: usize) -> Self {
        self.memory = bytes;
        self
    }

    pub(super) fn settings(&self) -> DedupOptions {
        let mut verification = self.near.verification;
        if let Verification::EditByLength { boilerplate, .. } = &mut verification {
            *boilerplate = None;
        }
        self.near.clone().verify(verification).linkage(Linkage::Representative)
    }
}

/// Estimates how many documents are near one, from pairs of a sample.
fn near_documents<F: Fingerprint>(
    documents: u32,
    distance: u32,
    fingerprint: impl Fn(u32) -> F,
) -> u64 {
    let step = documents.div_ceil(SAMPLE).max(1);
    let sample: Vec<F> = (0..documents).step_by(step as usize).map(fingerprint).collect();
    let near = |(at, &a): (usize, &F)| {
        let later = sample.iter().skip(at + 1);
        later.filter(|b| a.distance(**b) <= distance).count() as u64
    };
    let pairs: u64 = sample.iter().enumerate().map(near).sum();
    2 * pairs * u64::from(step) / (sample.len() as u64).max(1)
}

/// Settings as a state stores them.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
struct Stored {
    /// Distinguishes the staged results of this state from those of others.
    token: String,
    distance: u32,
    verification: String,
    /// Whether the linkage is [`Linkage::Chain`].
    chain: bool,
}
