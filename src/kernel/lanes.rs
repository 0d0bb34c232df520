//! Lanes: compares 32 members of a table at once, one column of 16 bits after the other.
//!
//! The plain version is safe code for any instruction set. Tests compare the others with it.

/// Number of members that are compared at once.
pub(crate) const LANES: usize = 32;

/// Compares 16-bit columns of members with a column of a query.
///
/// Bit `i` of a returned mask is member `i`.
#[allow(clippy::inline_always)]
pub(crate) trait Lanes: Copy {
    /// Whether comparing 32 members takes about as long as comparing one or two.
    const WIDE: bool = true;

    /// The distances of all members over the columns so far.
    type Sums: Copy;

    /// Returns the distances in a first column.
    fn sums(self, column: &[u16; LANES], query: u16) -> Self::Sums;

    /// Returns the members that are within the threshold in a first column.
    ///
    /// Most blocks need no further column, so an implementation may avoid computing distances.
    #[inline(always)]
    fn first_within(self, column: &[u16; LANES], query: u16, threshold: u32) -> u32 {
        self.within(self.sums(column, query), threshold)
    }

    /// Returns the sums with the distances in another column added.
    fn add(self, sums: Self::Sums, column: &[u16; LANES], query: u16) -> Self::Sums;

    /// Returns the members whose distance is within the threshold, which is at most 128.
    fn within(self, sums: Self::Sums, threshold: u32) -> u32;
}

/// The portable implementation, and the reference for the tests of the others.
#[cfg(any(test, not(target_arch = "x86_64")))]
#[derive(Debug, Clone, Copy)]
pub(super) struct Plain;

#[cfg(any(test, not(target_arch = "x86_64")))]
#[allow(clippy::inline_always)]
impl Lanes for Plain {
    type Sums = [u16; LANES];

    #[inline(always)]
    fn sums(self, column: &[u16; LANES], query: u16) -> Self::Sums {
        column.map(|of| small((of ^ query).count_ones()))
    }

    #[inline(always)]
    fn add(self, mut sums: Self::Sums, column: &[u16; LANES], query: u16) -> Self::Sums {
        for (sum, of) in sums.iter_mut().zip(column) {
            *sum += small((of ^ query).count_ones());
        }
        sums
    }

    #[inline(always)]
    fn within(self, sums: Self::Sums, threshold: u32) -> u32 {
        let threshold = small(threshold);
        // Branchless test first, since a block rarely has a hit.
        if !sums.iter().fold(false, |any, &sum| any | (sum <= threshold)) {
            return 0;
        }
        (0..).zip(&sums).fold(0, |mask, (at, &sum)| mask | (u32::from(sum <= threshold) << at))
    }
}

/// Narrows a distance, which is at most 128.
#[cfg(any(test, not(target_arch = "x86_64")))]
#[allow(clippy::inline_always, clippy::cast_possible_truncation)]
#[inline(always)]
fn small(distance: u32) -> u16 {
    distance as u16
}
