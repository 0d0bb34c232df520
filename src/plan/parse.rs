//! The text form of plans: parsing and printing.
//!
//! They are inverse: `parse(plan.to_string())` returns an equal plan.

use std::fmt::{self, Display};

use super::Plan;
use super::layout::Level;
use crate::error::{Error, Result};

/// The designs of Manku et al. by their number of tables.
const NAMED: [(&str, &[(u32, u32)]); 4] =
    [("4", &[(4, 1)]), ("10", &[(5, 2)]), ("16", &[(4, 1), (4, 1)]), ("20", &[(6, 3)])];

/// Returns the levels of a named plan.
pub(super) fn named(name: &str) -> Option<&'static [(u32, u32)]> {
    NAMED.iter().find(|(known, _)| *known == name).map(|(_, levels)| *levels)
}

/// Returns the canonical text of levels and radius.
pub(super) fn describe(levels: &[Level], radius: Option<u32>) -> String {
    let pairs = levels.iter().map(|level| (level.blocks, level.lead));
    let name = NAMED.iter().find(|(_, known)| pairs.clone().eq(known.iter().copied()));
    if let (Some((name, _)), None) = (name, radius) {
        return (*name).to_owned();
    }
    let written: Vec<String> = pairs.map(|(blocks, lead)| format!("{blocks}x{lead}")).collect();
    written.join("/") + &radius.map_or_else(String::new, |radius| format!("r{radius}"))
}

impl Plan {
    /// Parses a plan and checks that it can be searched at the distance.
    ///
    /// | text | plan |
    /// |---|---|
    /// | `4`, `10`, `16`, `20` | [`Plan::named`] |
    /// | `6x2` | 6 blocks of which 2 lead |
    /// | `4x1/4x1` | the bits after the first lead are cut again |
    /// | `4x1r2` | every table is probed with up to 2 flips |
    /// | `auto` | [`Plan::auto`]; needs `count`, the number of fingerprints |
    ///
    /// ```
    /// use hamdex::plan::Plan;
    /// use hamdex::Error;
    ///
    /// let plan = Plan::parse("4x1r1", 64, 7, None)?;
    /// assert_eq!(Plan::parse(&plan.to_string(), 64, 7, None)?, plan);
    /// assert!(matches!(Plan::parse("4x1r1", 64, 8, None), Err(Error::IncompletePlan { .. })));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::InvalidPlan`] if the text is not a plan or the plan cannot be built, and
    /// the errors of [`Plan::require`].
    pub fn parse(text: &str, bits: u32, distance: u32, count: Option<u64>) -> Result<Self> {
        let refuse = |reason: &str| Error::InvalidPlan {
            plan: text.to_owned(),
            bits,
            reason: reason.to_owned(),
        };
        let plan = if text == "auto" {
            let count = count.ok_or_else(|| refuse("auto needs the number of fingerprints"))?;
            Self::auto(bits, distance, count)?
        } else if let Some(levels) = named(text) {
            Self::nested(bits, levels)?
        } else {
            let (levels, radius) = written(text).ok_or_else(|| {
                refuse(
                    "expected auto, 4, 10, 16, 20 or <blocks>x<lead>[/<blocks>x<lead>][r<radius>]",
                )
            })?;
            Self::build(bits, levels, radius)?
        };
        plan.require(distance)?;
        Ok(plan)
    }
}

fn written(text: &str) -> Option<(Vec<Level>, Option<u32>)> {
    let (levels, radius) = match text.split_once('r') {
        Some((levels, radius)) => (levels, Some(number(radius)?)),
        None => (text, None),
    };
    let level = |text: &str| {
        let (blocks, lead) = text.split_once('x')?;
        Some(Level { blocks: number(blocks)?, lead: number(lead)? })
    };
    Some((levels.split('/').map(level).collect::<Option<_>>()?, radius))
}

/// Parses plain digits; `u32::from_str` would also accept a sign.
fn number(text: &str) -> Option<u32> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?
}

impl Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&describe(&self.levels, self.radius))
    }
}
