//! Lanes: 32 members of a sliced table compared at once.
//!
//! The plain version is safe code that every instruction set may compile its own way; others
//! are held against it by tests.

/// Members that are compared at once.
pub(crate) const LANES: usize = 32;

/// Compares columns of 16 bits with those of a query.
///
/// Bit `i` of a returned mask stands for member `i`.
#[allow(clippy::inline_always)]
pub(crate) trait Lanes: Copy {
    /// Whether 32 members are compared in about the time of one or two.
    const WIDE: bool = true;

    /// The distances of all members so far.
    type Sums: Copy;

    /// Returns the distances of a first column.
    fn sums(self, column: &[u16; LANES], aim: u16) -> Self::Sums;

    /// Returns which members are within the threshold in a first column.
    ///
    /// Most blocks end here, so that their distances need not be known.
    #[inline(always)]
    fn first_within(self, column: &[u16; LANES], aim: u16, threshold: u32) -> u32 {
        self.within(self.sums(column, aim), threshold)
    }

    /// Adds the distances of another column.
    fn add(self, sums: Self::Sums, column: &[u16; LANES], aim: u16) -> Self::Sums;

    /// Tells which distances are within the threshold, at most 128.
    fn within(self, sums: Self::Sums, threshold: u32) -> u32;
}

/// What every machine can do, and what its own lanes are tested against.
#[cfg(any(test, not(target_arch = "x86_64")))]
#[derive(Debug, Clone, Copy)]
pub(super) struct Plain;

#[cfg(any(test, not(target_arch = "x86_64")))]
#[allow(clippy::inline_always)]
impl Lanes for Plain {
    type Sums = [u16; LANES];

    #[inline(always)]
    fn sums(self, column: &[u16; LANES], aim: u16) -> Self::Sums {
        column.map(|of| small((of ^ aim).count_ones()))
    }

    #[inline(always)]
    fn add(self, mut sums: Self::Sums, column: &[u16; LANES], aim: u16) -> Self::Sums {
        for (sum, of) in sums.iter_mut().zip(column) {
            *sum += small((of ^ aim).count_ones());
        }
        sums
    }

    #[inline(always)]
    fn within(self, sums: Self::Sums, threshold: u32) -> u32 {
        let threshold = small(threshold);
        // Asked without a branch for all at once, which hardly ever finds one.
        if !sums.iter().fold(false, |any, &sum| any | (sum <= threshold)) {
            return 0;
        }
        (0..).zip(&sums).fold(0, |mask, (at, &sum)| mask | (u32::from(sum <= threshold) << at))
    }
}

/// Distances are at most 128.
#[cfg(any(test, not(target_arch = "x86_64")))]
#[allow(clippy::inline_always, clippy::cast_possible_truncation)]
#[inline(always)]
fn small(distance: u32) -> u16 {
    distance as u16
}
