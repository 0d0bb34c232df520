//! The recursion of Manku et al.: the fewest tables for a number of fingerprints.

use super::MAX_TABLES;
use super::layout::Level;
use crate::bits::binomial;

/// Returns the fewest tables whose probes return fewer than `2^tau` candidates.
///
/// This is X(f, k, d) of Manku et al., section 3.1.2: 1 if `d < tau`, otherwise the minimum
/// over r > k of C(r, k) · X(f·k/r, k, d − (r−k)·f/r), where `f` is the width in bits, `k` the
/// distance and `d` the binary logarithm of the number of fingerprints. Distance 0 is treated
/// as 1. Returns `None` if more than [`MAX_TABLES`] tables are needed.
///
/// ```
/// use hamdex::plan::table_count;
///
/// // Eight billion fingerprints, distance 3, with about 1,000 candidates, 100 and 10.
/// assert_eq!(table_count(64, 3, 34.0, 10.0), Some(10));
/// assert_eq!(table_count(64, 3, 34.0, 6.7), Some(16));
/// assert_eq!(table_count(64, 3, 34.0, 3.4), Some(20));
/// ```
pub fn table_count(bits: u32, distance: u32, d: f64, tau: f64) -> Option<u64> {
    levels(bits, distance, d, tau)
        .map(|levels| levels.iter().map(|level| level.choices()).product())
}

/// Returns the levels behind [`table_count`]; empty if `d < tau`.
pub(super) fn levels(bits: u32, distance: u32, d: f64, tau: f64) -> Option<Vec<Level>> {
    let k = distance.max(1);
    best(f64::from(bits), k, d, tau, MAX_TABLES as u64).map(|(_, levels)| levels)
}

/// Returns the fewest tables, at most `limit`, and their levels.
fn best(f: f64, k: u32, d: f64, tau: f64, limit: u64) -> Option<(u64, Vec<Level>)> {
    if d < tau {
        return Some((1, Vec::new()));
    }
    let mut found: Option<(u64, Vec<Level>)> = None;
    for r in k + 1.. {
        let choices = binomial(r, k);
        // A block has at least one bit, and the number of choices grows with r.
        let limit = found.as_ref().map_or(limit, |(count, _)| count - 1);
        if choices > limit || f64::from(r) > f {
            break;
        }
        let block = f / f64::from(r);
        let (lead, rest) = (f64::from(r - k) * block, f64::from(k) * block);
        if let Some((deeper, mut levels)) = best(rest, k, d - lead, tau, limit / choices) {
            levels.insert(0, Level { blocks: r, lead: r - k });
            found = Some((choices * deeper, levels));
        }
    }
    found
}
