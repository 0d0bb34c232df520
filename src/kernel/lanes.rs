//! Lanes: compares 32 members of a table at once, one column of 16 bits after the other.
//!
//! The plain version is safe code for any instruction set. Tests compare the others with it.

use crate::fingerprint::Fingerprint;

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

    /// Returns true if any word of the block is within the distance of any row.
    #[inline(always)]
    fn any_near(self, rows: [u32; ROWS], block: &[u32; WORDS], distance: u32) -> bool {
        any_near(rows, block, distance)
    }

    /// Returns true if any of the first words is within the distance of one of the three after it.
    #[inline(always)]
    fn any_beside(self, words: &[u32; BESIDE], distance: u32) -> bool {
        any_beside(words, distance)
    }

    /// Returns a mask of the words that are within the distance: 16 bits for each row.
    #[inline(always)]
    fn near(self, rows: [u32; ROWS], block: &[u32; WORDS], distance: u32) -> u64 {
        near(rows, block, distance)
    }
}

/// Number of words that are compared with a block at once.
pub(crate) const ROWS: usize = 4;
/// Number of words in a block.
pub(crate) const WORDS: usize = 16;
/// A block of words, and those that its last one is compared with.
pub(crate) const BESIDE: usize = WORDS + ROWS - 1;

/// [`Lanes::any_near`] for words of any width.
#[allow(clippy::inline_always)]
#[inline(always)]
pub(crate) fn any_near<W: Fingerprint>(
    [a, b, c, d]: [W; ROWS],
    block: &[W; WORDS],
    distance: u32,
) -> bool {
    let near = |differing: W| differing.distance(W::ZERO) <= distance;
    block.iter().fold(false, |any, &other| {
        any | near(other ^ a) | near(other ^ b) | near(other ^ c) | near(other ^ d)
    })
}

/// [`Lanes::any_beside`] for words of any width.
#[allow(clippy::inline_always)]
#[inline(always)]
pub(crate) fn any_beside<W: Fingerprint>(words: &[W; BESIDE], distance: u32) -> bool {
    let near = |(&a, &b): (&W, &W)| a.distance(b) <= distance;
    (1..ROWS).fold(false, |any, step| {
        words.iter().zip(&words[step..WORDS + step]).fold(any, |any, pair| any | near(pair))
    })
}

/// [`Lanes::near`] for words of any width.
#[allow(clippy::inline_always)]
#[inline(always)]
pub(crate) fn near<W: Fingerprint>(rows: [W; ROWS], block: &[W; WORDS], distance: u32) -> u64 {
    let of_row = |row: W| {
        let near = |word: W| u32::from(word.distance(row) <= distance);
        (0..).zip(block).fold(0, |mask, (at, &word)| mask | (near(word) << at))
    };
    rows.iter().rev().fold(0, |mask, &row| mask << WORDS | u64::from(of_row(row)))
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
