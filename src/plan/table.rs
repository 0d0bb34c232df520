//! Tables: a permutation and the number of leading bits that a probe fixes.
//!
//! The lead of a table is the set of source bits that its permutation moves into the prefix.

use super::permutation::Permutation;
use crate::bits::low_ones;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;

/// One permuted table: sorted by its permutation, probed by its prefix.
///
/// ```
/// use hamdex::plan::Plan;
///
/// let plan = Plan::named("4", 64)?;
/// let table = &plan.tables()[1];
/// assert_eq!((table.prefix_bits(), table.lead()), (16, 0x0000_ffff_0000_0000));
/// assert_eq!(table.permutation().bits(), 64);
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Table {
    permutation: Permutation,
    prefix_bits: u32,
    lead: u128,
}

impl Table {
    /// Creates a table from a permutation and its prefix length.
    ///
    /// ```
    /// use hamdex::plan::{Permutation, Table};
    ///
    /// let table = Table::new(Permutation::identity(64)?, 16)?;
    /// assert_eq!(table.lead(), 0xffff << 48);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::InvalidPlan`] unless `prefix_bits` is from 1 to the permutation's width.
    pub fn new(permutation: Permutation, prefix_bits: u32) -> Result<Self> {
        let bits = permutation.bits();
        if prefix_bits == 0 || prefix_bits > bits {
            return Err(Error::InvalidPlan {
                plan: format!("table with a prefix of {prefix_bits} bits"),
                bits,
                reason: format!("a prefix has 1 to {bits} bits"),
            });
        }
        let lead = {
            let prefix = low_ones(prefix_bits) << (bits - prefix_bits);
            match bits {
                32 => permutation.invert(<u32 as Fingerprint>::truncate(prefix)).widen(),
                64 => permutation.invert(<u64 as Fingerprint>::truncate(prefix)).widen(),
                _ => permutation.invert(prefix),
            }
        };
        Ok(Self { permutation, prefix_bits, lead })
    }

    /// Returns the permutation of the table's keys.
    pub fn permutation(&self) -> &Permutation {
        &self.permutation
    }

    /// Returns the number of leading bits that a probe fixes.
    pub fn prefix_bits(&self) -> u32 {
        self.prefix_bits
    }

    /// Returns the source bits of the prefix as a mask over fingerprints.
    ///
    /// Position `i`, counted from the most significant bit, is bit `width - 1 - i` of the mask. `a`
    /// and `b` share the prefix of this table if and only if `(a ^ b) & F::truncate(lead)` is zero.
    pub fn lead(&self) -> u128 {
        self.lead
    }

    /// Returns the prefix of a fingerprint in this table, in the low bits.
    pub(crate) fn prefix_of<F: Fingerprint>(&self, fingerprint: F) -> u128 {
        (self.permutation.apply(fingerprint) >> (F::BITS - self.prefix_bits)).widen()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Segment;

    #[test]
    fn lead_names_the_source_bits_of_the_prefix() {
        let halves = vec![Segment { start: 48, len: 16 }, Segment { start: 0, len: 48 }];
        let permutation = Permutation::new(64, halves).unwrap();
        assert_eq!(Table::new(permutation.clone(), 16).unwrap().lead(), 0xffff);
        assert_eq!(Table::new(permutation, 17).unwrap().lead(), (1 << 63) | 0xffff);
        let whole = Table::new(Permutation::identity(128).unwrap(), 128).unwrap();
        assert_eq!(whole.lead(), u128::MAX);
    }

    #[test]
    fn prefixes_outside_the_width_are_refused() {
        for prefix_bits in [0, 65, 128] {
            let built = Table::new(Permutation::identity(64).unwrap(), prefix_bits);
            assert!(matches!(built, Err(Error::InvalidPlan { bits: 64, .. })), "{prefix_bits}");
        }
    }
}
