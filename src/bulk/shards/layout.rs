//! Layout: the settings of an index of shards, and the rows of a document.

use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::index::{IndexOptions, new_header};
use crate::plan::Plan;
use crate::store::codec::HeaderRecord;
use crate::store::{Family, keys};

/// Number of families before the tables.
const FIRST_TABLE: u32 = 2;

/// Plan, distance and pipeline of an index that is written as shards.
///
/// ```
/// use hamdex::plan::Plan;
/// use hamdex::build::shards::Layout;
///
/// let layout = Layout::new(Plan::named("10", 64)?, 3, "")?;
/// assert_eq!(layout.families(), 12);
/// assert_eq!(layout.plan().tables().len(), 10);
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Layout {
    pub(super) plan: Plan,
    pub(super) distance: u32,
    pub(super) pipeline: String,
}

impl Layout {
    /// Creates a layout from a plan, its distance and the pipeline's descriptor.
    ///
    /// With an empty descriptor the fingerprints are computed elsewhere.
    ///
    /// # Errors
    ///
    /// Those of [`Index::create`](crate::Index::create). Returns an error if the descriptor names
    /// tables of the caller, because shards do not contain them.
    pub fn new(plan: Plan, distance: u32, pipeline: &str) -> Result<Self> {
        let layout = Self { plan, distance, pipeline: pipeline.to_owned() };
        crate::for_width!(layout.plan.bits(), F => layout.header::<F>())?;
        Ok(layout)
    }

    /// Returns the header of the index.
    pub(super) fn header<F: Fingerprint>(&self) -> Result<HeaderRecord> {
        let options = IndexOptions::new().plan(self.plan.clone()).distance(self.distance);
        let (header, _) = new_header::<F>(&options.pipeline(self.pipeline.clone()))?;
        Ok(header)
    }

    /// Returns the plan of the permutation tables.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the number of families: documents, postings and the tables.
    pub fn families(&self) -> u32 {
        FIRST_TABLE + u32::try_from(self.plan.tables().len()).expect("a plan has few tables")
    }

    /// Calls `visit` with family and key of every row of a document.
    ///
    /// Sort the rows by family, then by the bytes of the key. The row of family 0 also needs the
    /// fingerprint. The [module](crate::build::shards) has an example.
    ///
    /// # Errors
    ///
    /// Returns [`Error::InvalidKey`], or [`Error::WidthMismatch`] if the width differs from the
    /// plan's.
    pub fn rows<F: Fingerprint>(
        &self,
        key: &[u8],
        fingerprint: F,
        mut visit: impl FnMut(u32, &[u8], Option<F>),
    ) -> Result<()> {
        self.require_width::<F>()?;
        keys::check_document(key)?;
        visit(0, key, Some(fingerprint));
        visit(1, &keys::posting(fingerprint, key), None);
        for (family, table) in (FIRST_TABLE..).zip(self.plan.tables()) {
            visit(family, table.permutation().apply(fingerprint).to_bytes().as_ref(), None);
        }
        Ok(())
    }

    pub(super) fn require_width<F: Fingerprint>(&self) -> Result<()> {
        let (stored, wanted) = (self.plan.bits(), F::BITS);
        if stored == wanted { Ok(()) } else { Err(Error::WidthMismatch { stored, wanted }) }
    }

    /// Returns the family with a number.
    pub(super) fn family(&self, number: u32) -> Result<Family> {
        match number {
            0 => Ok(Family::Docs),
            1 => Ok(Family::Postings),
            _ if number < self.families() => Ok(Family::Table((number - FIRST_TABLE) as usize)),
            _ => Err(Error::InvalidOption {
                name: "family",
                reason: format!("{number} is out of range: there are {} families", self.families()),
            }),
        }
    }
}
