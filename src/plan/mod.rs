//! Plans: the permuted tables of an index, and how they are probed for a distance.
//!
//! Blocks of bits become tables, and tables are probed. Every schedule of a [`Plan`] has been
//! proved to find every match, at every distance.
#![doc = include_str!("PROOFS.md")]
#![expect(
    clippy::indexing_slicing,
    reason = "tables and needs are numbered here; a wrong index must panic, not lose matches"
)]

mod cost;
mod cover;
mod layout;
mod parse;
mod permutation;
mod probe;
mod recursion;
mod schedule;
mod survey;
mod table;

use crate::error::{Error, Result};
use cover::Cover;
use layout::Level;

pub use crate::bits::Segment;
pub use cost::Costs;
pub use cover::defeat;
pub use permutation::Permutation;
pub use probe::{ProbeMasks, probe_masks};
pub use recursion::table_count;
pub use schedule::Schedule;
pub use survey::{PlanReport, survey};
pub use table::Table;

pub(crate) use cost::{SEEK_ENTRIES, expected_candidates};

/// The maximum number of tables of a plan.
///
/// Each document is written once per table; no design in the literature has nearly as many.
pub const MAX_TABLES: usize = 128;

/// The permuted tables of an index, generated and proved complete.
///
/// The bits are cut into blocks, and each choice of leading blocks becomes a table (Manku, Jain and
/// Das Sarma, *Detecting near-duplicates for web crawling*, WWW 2007, section 3). Two fingerprints
/// within `blocks - lead` bits agree on the lead of some table. Larger distances use the same
/// tables and also probe flipped prefixes (Norouzi, Punjani and Fleet, *Fast search in Hamming
/// space with multi-index hashing*, CVPR 2012); see [`Plan::schedule`].
///
/// A plan prints as the text that [`Plan::parse`] accepts.
///
/// ```
/// use hamdex::plan::Plan;
///
/// let plan = Plan::uniform(64, 5, 2)?;
/// assert_eq!(plan.tables().len(), 10);
/// assert_eq!(plan.complete_to(), 3);
/// assert_eq!(plan.to_string(), "10");
/// assert_eq!((plan.bits(), plan.radius()), (64, 0));
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Plan {
    bits: u32,
    levels: Vec<Level>,
    radius: Option<u32>,
    tables: Vec<Table>,
    cover: Cover,
    complete_to: u32,
}

impl Plan {
    /// Creates a plan of one level from every choice of `lead` blocks.
    ///
    /// Block sizes differ by at most one bit, larger blocks first.
    ///
    /// # Errors
    ///
    /// Returns [`Error::InvalidPlan`] if `bits` is not 32, 64 or 128, unless `1 <= lead < blocks <=
    /// bits`, or if there would be more than [`MAX_TABLES`] tables.
    ///
    /// ```
    /// use hamdex::plan::Plan;
    ///
    /// let plan = Plan::uniform(64, 4, 1)?;
    /// assert_eq!((plan.tables().len(), plan.complete_to()), (4, 3));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn uniform(bits: u32, blocks: u32, lead: u32) -> Result<Self> {
        Self::nested(bits, &[(blocks, lead)])
    }

    /// Creates a plan of several levels, each given as (blocks, lead).
    ///
    /// Each level cuts the bits that the level before it left over: `[(4, 1), (4, 1)]` is the
    /// design with 16 tables.
    ///
    /// ```
    /// use hamdex::plan::Plan;
    ///
    /// let plan = Plan::nested(64, &[(4, 1), (4, 1)])?;
    /// assert_eq!(plan.tables().len(), 16);
    /// assert!(plan.tables().iter().all(|table| table.prefix_bits() == 28));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Plan::uniform`]. Also returns [`Error::InvalidPlan`] if `levels` is
    /// empty, if a level has fewer bits left than blocks, or if the proof of completeness exceeds
    /// its limit.
    pub fn nested(bits: u32, levels: &[(u32, u32)]) -> Result<Self> {
        let levels = levels.iter().map(|&(blocks, lead)| Level { blocks, lead }).collect();
        Self::build(bits, levels, None)
    }

    /// Creates the plan with the fewest tables by the recursion of Manku et al.
    ///
    /// `d` is the binary logarithm of the number of fingerprints, and `tau` that of the candidates
    /// that a probe may return; see [`table_count`]. If `d < tau` the recursion needs no table, and
    /// the plan has the minimum of one level: `distance + 1` tables.
    ///
    /// ```
    /// use hamdex::plan::Plan;
    ///
    /// // Eight billion fingerprints, about 1,000 candidates per probe.
    /// let plan = Plan::recursive(64, 3, 34.0, 10.0)?;
    /// assert_eq!(plan.tables().len(), 10);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::InvalidPlan`] if `bits` is not 32, 64 or 128, or if no design with up to
    /// [`MAX_TABLES`] tables stays below `tau`. Returns [`Error::InvalidDistance`] if `distance`
    /// exceeds a quarter of the width.
    pub fn recursive(bits: u32, distance: u32, d: f64, tau: f64) -> Result<Self> {
        let refuse = |reason: &str| Error::InvalidPlan {
            plan: format!("recursive for distance {distance}, 2^{d} entries, 2^{tau} candidates"),
            bits,
            reason: reason.to_owned(),
        };
        check_bits(bits).map_err(refuse)?;
        check_distance(bits, distance)?;
        let levels = recursion::levels(bits, distance, d, tau)
            .ok_or_else(|| refuse("no design with up to 128 tables has so few candidates"))?;
        if levels.is_empty() {
            return Self::uniform(bits, distance.max(1) + 1, 1);
        }
        Self::build(bits, levels, None)
    }

    /// Creates a plan by its number of tables: "4", "10", "16" or "20".
    ///
    /// These are the designs of Manku et al. for distance 3: 1 of 4 blocks leads, 2 of 5 lead, 1 of
    /// 4 leads at each of two levels, and 3 of 6 lead.
    ///
    /// # Errors
    ///
    /// Returns [`Error::InvalidPlan`] if the name is unknown or `bits` is not 32, 64 or 128.
    ///
    /// ```
    /// use hamdex::plan::Plan;
    ///
    /// assert_eq!(Plan::named("10", 64)?, Plan::uniform(64, 5, 2)?);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn named(name: &str, bits: u32) -> Result<Self> {
        let levels = parse::named(name).ok_or_else(|| Error::InvalidPlan {
            plan: name.to_owned(),
            bits,
            reason: "the named plans are 4, 10, 16 and 20".to_owned(),
        })?;
        Self::nested(bits, levels)
    }

    /// Returns the plan with a fixed radius for every table.
    ///
    /// Every probe flips up to `radius` bits. The plan rejects distances above
    /// [`Plan::complete_to`].
    ///
    /// # Errors
    ///
    /// Returns [`Error::InvalidPlan`] if the radius exceeds a quarter of the width, or if the proof
    /// of completeness exceeds its limit.
    ///
    /// ```
    /// use hamdex::plan::Plan;
    ///
    /// let plan = Plan::named("4", 64)?.with_radius(1)?;
    /// assert_eq!((plan.to_string().as_str(), plan.complete_to()), ("4x1r1", 7));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn with_radius(self, radius: u32) -> Result<Self> {
        Self::build(self.bits, self.levels, Some(radius))
    }

    fn build(bits: u32, levels: Vec<Level>, radius: Option<u32>) -> Result<Self> {
        let refuse = |reason: &str| Error::InvalidPlan {
            plan: parse::describe(&levels, radius),
            bits,
            reason: reason.to_owned(),
        };
        check_bits(bits).map_err(refuse)?;
        check_levels(bits, &levels).map_err(refuse)?;
        let max = max_distance(bits);
        if radius.is_some_and(|radius| radius > max) {
            return Err(refuse("the radius exceeds a quarter of the width"));
        }
        let tables = layout::tables(bits, &levels)?;
        let leads: Vec<u128> = tables.iter().map(Table::lead).collect();
        let cover = Cover::new(&leads);
        let needs = vec![radius.unwrap_or(0) + 1; leads.len()];
        let flips = cover
            .smallest(&needs, max)
            .ok_or_else(|| refuse("the proof of its completeness exceeds its limit"))?;
        let complete_to = flips.checked_sub(1).expect("at least one flip defeats a table");
        Ok(Self { bits, levels, radius, tables, cover, complete_to })
    }

    /// Returns the fingerprint width in bits.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Returns the tables, starting with those that the first blocks lead.
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// Returns the fixed radius, or 0 if there is none.
    pub fn radius(&self) -> u32 {
        self.radius.unwrap_or(0)
    }

    /// Returns the largest distance at which the fixed radius misses no match.
    ///
    /// Without a fixed radius, radius 0 is assumed. At most a quarter of the width, the largest
    /// distance that a search accepts.
    ///
    /// ```
    /// use hamdex::plan::Plan;
    ///
    /// assert_eq!(Plan::named("4", 64)?.complete_to(), 3);
    /// assert_eq!(Plan::named("4", 64)?.with_radius(1)?.complete_to(), 7);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn complete_to(&self) -> u32 {
        self.complete_to
    }

    /// Checks that this plan can be searched at a distance.
    ///
    /// A plan without a fixed radius accepts every distance up to a quarter of the width.
    ///
    /// ```
    /// use hamdex::plan::Plan;
    ///
    /// assert!(Plan::uniform(64, 4, 1)?.require(16).is_ok());
    /// assert!(Plan::uniform(64, 4, 1)?.with_radius(1)?.require(8).is_err());
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::InvalidDistance`] if the distance exceeds a quarter of the width, and
    /// [`Error::IncompletePlan`] if the fixed radius would miss matches.
    pub fn require(&self, distance: u32) -> Result<()> {
        check_distance(self.bits, distance)?;
        if self.radius.is_some() && distance > self.complete_to {
            return Err(Error::IncompletePlan {
                plan: self.to_string(),
                complete: self.complete_to,
                wanted: distance,
            });
        }
        Ok(())
    }
}

/// Returns the largest distance that a search accepts at a width.
fn max_distance(bits: u32) -> u32 {
    bits / 4
}

fn check_bits(bits: u32) -> Result<(), &'static str> {
    match bits {
        32 | 64 | 128 => Ok(()),
        _ => Err("fingerprints have 32, 64 or 128 bits"),
    }
}

fn check_distance(bits: u32, distance: u32) -> Result<()> {
    let max = max_distance(bits);
    if distance > max { Err(Error::InvalidDistance { distance, bits, max }) } else { Ok(()) }
}

/// Returns the tables of nested levels, each given as (blocks, lead), without a limit of their
/// number.
///
/// Each level must leave at least as many bits as the next one has blocks. By the pigeonhole of
/// each level the tables are complete for the minimum of `blocks - lead`.
#[cfg(feature = "distributed")]
pub(crate) fn nested_tables(bits: u32, levels: &[(u32, u32)]) -> Result<Vec<Table>> {
    let levels: Vec<Level> = levels.iter().map(|&(blocks, lead)| Level { blocks, lead }).collect();
    layout::tables(bits, &levels)
}

fn check_levels(bits: u32, levels: &[Level]) -> Result<(), &'static str> {
    if levels.is_empty() {
        return Err("a plan has at least one level");
    }
    let (mut rest, mut tables) = (bits, 1_u64);
    for &level in levels {
        if level.lead == 0 || level.lead >= level.blocks {
            return Err("at least one block must lead and at least one must not");
        }
        if level.blocks > rest {
            return Err("there are more blocks than bits");
        }
        tables = tables.saturating_mul(level.choices());
        if tables > MAX_TABLES as u64 {
            return Err("a plan has at most 128 tables");
        }
        // The longest lead leaves the fewest bits to the next level.
        rest -= layout::sizes(rest, level.blocks).take(level.lead as usize).sum::<u32>();
    }
    Ok(())
}

impl std::fmt::Debug for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The text and the width determine all other fields.
        write!(f, "Plan({self} for {} bits)", self.bits)
    }
}

#[cfg(test)]
mod tests;
