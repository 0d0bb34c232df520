//! Owners: which of several tables a pair belongs to, so that none is remembered.

use crate::fingerprint::Fingerprint;

/// Limits of the number of differing bits within a mask.
#[derive(Debug, Clone)]
pub(crate) struct Bound<F> {
    mask: F,
    least: u32,
    most: u32,
}

impl<F: Fingerprint> Bound<F> {
    /// At most that many bits of the mask differ.
    pub(crate) fn at_most(mask: F, most: u32) -> Self {
        Self { mask, least: 0, most }
    }

    /// At least that many bits of the mask differ.
    pub(crate) fn at_least(mask: F, least: u32) -> Self {
        Self { mask, least, most: u32::MAX }
    }

    #[inline]
    fn holds(&self, differing: F) -> bool {
        (self.least..=self.most).contains(&(differing & self.mask).distance(F::ZERO))
    }
}

/// The pairs that belong to one of several tables, by the bits in which they differ.
///
/// Every bound holds for a pair of this table; those of other tables exclude it.
#[derive(Debug, Clone)]
pub(crate) struct Owner<F>(Vec<Bound<F>>);

impl<F: Fingerprint> Owner<F> {
    pub(crate) fn new(bounds: Vec<Bound<F>>) -> Self {
        Self(bounds)
    }

    /// Returns true if a pair that differs in these bits belongs to the table.
    #[inline]
    pub(crate) fn owns(&self, differing: F) -> bool {
        self.0.iter().all(|bound| bound.holds(differing))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_belongs_to_the_first_table_whose_lead_is_equal() {
        let leads = [0xff00_u32, 0x0ff0, 0x00ff];
        let owner = |at: usize| {
            let earlier = leads[..at].iter().map(|&lead| Bound::at_least(lead, 1));
            Owner::new(earlier.chain([Bound::at_most(leads[at], 0)]).collect())
        };
        let owners = [0, 1, 2].map(owner);
        for differing in 0..=0xffff_u32 {
            let first = leads.iter().position(|lead| differing & lead == 0);
            let owns = |owner: &Owner<u32>| owner.owns(differing);
            let found: Vec<usize> = (0..3).filter(|&at| owns(&owners[at])).collect();
            assert_eq!(found, first.into_iter().collect::<Vec<_>>(), "{differing:#x}");
        }
    }
}
