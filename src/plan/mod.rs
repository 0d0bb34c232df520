//! Plans: which permuted tables to keep and how to probe them for a distance.
//!
//! Blocks of bits become tables, tables become probes. Whatever the distance, every schedule that
//! a [`Plan`] gives out has been proved to find every match.
#![doc = include_str!("PROOFS.md")]
#![expect(
    clippy::indexing_slicing,
    reason = "tables and needs are numbered here; one that slips must panic, not lose matches"
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

pub use cost::{Census, Costs};
pub use cover::defeat;
pub use permutation::{Permutation, Segment};
pub use probe::{ProbeMasks, probe_masks};
pub use recursion::table_count;
pub use schedule::Schedule;
pub use survey::{PlanReport, survey};
pub use table::Table;

pub(crate) use cost::{SEEK_ENTRIES, expected_candidates};
pub(crate) use layout::binomial;

/// The most tables a plan may have.
///
/// Every document is written once a table; no design in the literature comes near this.
pub const MAX_TABLES: usize = 128;

/// The permuted tables of an index, generated and proved complete.
///
/// The bits are split into blocks, and every choice of leading blocks becomes a table (Manku,
/// Jain and Das Sarma, *Detecting near-duplicates for web crawling*, WWW 2007, section 3). Two
/// fingerprints within `blocks - lead` bits agree on the lead of some table. Larger distances are
/// answered from the same tables by probing with flipped prefixes too (Norouzi, Punjani and
/// Fleet, *Fast search in Hamming space with multi-index hashing*, CVPR 2012); how, tells
/// [`Plan::schedule`].
///
/// A plan prints as the text that [`Plan::parse`] takes back.
///
/// ```
/// use hamdex::plan::Plan;
///
/// let plan = Plan::uniform(64, 5, 2)?;
/// assert_eq!(plan.tables().len(), 10);
/// assert_eq!(plan.complete_to(), 3);
/// assert_eq!(plan.to_string(), "10");
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
    /// Creates a plan of one level: every choice of `lead` among `blocks`.
    ///
    /// Block sizes differ by one bit at most, larger first.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPlan`] if `bits` is not 32, 64 or 128, unless `1 <= lead < blocks <= bits`,
    /// or for more than [`MAX_TABLES`] tables.
    pub fn uniform(bits: u32, blocks: u32, lead: u32) -> Result<Self> {
        Self::nested(bits, &[(blocks, lead)])
    }

    /// Creates a plan of several levels, each given as (blocks, lead).
    ///
    /// Every choice of leading blocks at one level leaves bits over, which the next level splits
    /// again: `[(4, 1), (4, 1)]` is the design with 16 tables.
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
    /// As for [`Plan::uniform`], and if no level is given, a level has fewer bits left than
    /// blocks, or completeness is too intricate to prove.
    pub fn nested(bits: u32, levels: &[(u32, u32)]) -> Result<Self> {
        let levels = levels.iter().map(|&(blocks, lead)| Level { blocks, lead }).collect();
        Self::build(bits, levels, None)
    }

    /// Creates the plan with the fewest tables by the recursion of Manku et al.
    ///
    /// `d` is the binary logarithm of the number of fingerprints; `tau` that of the number of
    /// candidates which a probe may meet. See [`table_count`]. When the recursion needs no
    /// table, because `d < tau`, the plan has the fewest that one level gives: `distance + 1`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPlan`] if `bits` is not 32, 64 or 128, or no design within
    /// [`MAX_TABLES`] tables gets below `tau`; [`Error::InvalidDistance`] if `distance` is above
    /// a quarter of the width.
    pub fn recursive(bits: u32, distance: u32, d: f64, tau: f64) -> Result<Self> {
        let refuse = |reason: &str| Error::InvalidPlan {
            plan: format!("recursive for distance {distance}, 2^{d} entries, 2^{tau} candidates"),
            bits,
            reason: reason.to_owned(),
        };
        check_bits(bits).map_err(refuse)?;
        check_distance(bits, distance)?;
        let levels = recursion::levels(bits, distance, d, tau)
            .ok_or_else(|| refuse("no design within 128 tables has so few candidates"))?;
        if levels.is_empty() {
            return Self::uniform(bits, distance.max(1) + 1, 1);
        }
        Self::build(bits, levels, None)
    }

    /// Creates a plan by its number of tables: "4", "10", "16" or "20".
    ///
    /// They are the designs of Manku et al. for distance 3: 4 blocks of which 1 leads, 5 of
    /// which 2 lead, twice 4 of which 1 leads, and 6 of which 3 lead.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPlan`] for another name or if `bits` is not 32, 64 or 128.
    pub fn named(name: &str, bits: u32) -> Result<Self> {
        let levels = parse::named(name).ok_or_else(|| Error::InvalidPlan {
            plan: name.to_owned(),
            bits,
            reason: "the named plans are 4, 10, 16 and 20".to_owned(),
        })?;
        Self::nested(bits, levels)
    }

    /// Fixes the radius: every table probes its prefix with up to `radius` flips.
    ///
    /// Such a plan is refused for distances beyond [`Plan::complete_to`].
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPlan`] if the radius is above a quarter of the width or completeness is
    /// too intricate to prove.
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
            return Err(refuse("the radius is above a quarter of the width"));
        }
        let tables = layout::tables(bits, &levels)?;
        let leads: Vec<u128> = tables.iter().map(Table::lead).collect();
        let cover = Cover::new(&leads);
        let needs = vec![radius.unwrap_or(0) + 1; leads.len()];
        let flips = cover
            .smallest(&needs, max)
            .ok_or_else(|| refuse("its completeness is too intricate to prove"))?;
        let complete_to = flips.checked_sub(1).expect("no table is defeated without a flip");
        Ok(Self { bits, levels, radius, tables, cover, complete_to })
    }

    /// Returns the fingerprint width in bits.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Returns the tables, those that lead with the first blocks first.
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// Returns the written radius, 0 if none was.
    pub fn radius(&self) -> u32 {
        self.radius.unwrap_or(0)
    }

    /// Returns the largest distance found complete when every table uses the plan's radius.
    ///
    /// At most a quarter of the width, the largest distance that can be searched.
    pub fn complete_to(&self) -> u32 {
        self.complete_to
    }

    /// Checks that this plan may be searched at a distance.
    ///
    /// Plans without a written radius take every distance up to a quarter of the width.
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
    /// [`Error::InvalidDistance`] above a quarter of the width, [`Error::IncompletePlan`] if the
    /// written radius would miss matches.
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

/// Returns the largest distance that can be searched at a width.
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

/// Makes the tables of nested levels, each given as (blocks, lead), however many there are.
///
/// Every level has to leave the next one as many bits as it has blocks. They are complete for the
/// fewest blocks that do not lead, by the pigeonhole of each level.
pub(crate) fn nested_tables(bits: u32, levels: &[(u32, u32)]) -> Result<Vec<Table>> {
    let levels: Vec<Level> = levels.iter().map(|&(blocks, lead)| Level { blocks, lead }).collect();
    layout::tables(bits, &levels)
}

fn check_levels(bits: u32, levels: &[Level]) -> Result<(), &'static str> {
    if levels.is_empty() {
        return Err("a plan has one level at least");
    }
    let (mut rest, mut tables) = (bits, 1_u64);
    for &level in levels {
        if level.lead == 0 || level.lead >= level.blocks {
            return Err("at least one block leads and at least one does not");
        }
        if level.blocks > rest {
            return Err("there are more blocks than bits");
        }
        tables = tables.saturating_mul(level.choices());
        if tables > MAX_TABLES as u64 {
            return Err("a plan has 128 tables at most");
        }
        // The longest lead leaves the fewest bits to the next level.
        rest -= layout::sizes(rest, level.blocks).take(level.lead as usize).sum::<u32>();
    }
    Ok(())
}

impl std::fmt::Debug for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Everything else follows from the text and the width.
        write!(f, "Plan({self} for {} bits)", self.bits)
    }
}

#[cfg(test)]
mod tests;
