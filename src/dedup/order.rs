//! Sorts positions by rank and leaves out the excluded ones.
#![expect(
    clippy::indexing_slicing,
    reason = "there is a rank for each position, and a word as soon as one is added"
)]

use rayon::prelude::*;

/// Returns the positions by falling rank, ties by position, without those that `out` excludes.
///
/// `None` means all positions in their own order.
pub(super) fn best_first<R: Ord + Sync>(
    ranks: &[R],
    out: Option<&(dyn Fn(u32) -> bool + Sync)>,
) -> Option<Vec<u32>> {
    // Ranks without a size are all equal.
    if size_of::<R>() == 0 && out.is_none() {
        return None;
    }
    let positions = (0..).zip(ranks).map(|(position, _)| position);
    let mut order: Vec<u32> = match out {
        None => positions.collect(),
        Some(out) => positions.filter(|&position| !out(position)).collect(),
    };
    if size_of::<R>() > 0 {
        let rank = |&at: &u32| &ranks[at as usize];
        order.par_sort_by(|a, b| rank(b).cmp(rank(a)));
    }
    Some(order)
}

/// Excluded positions: a bitmap up to the largest one.
#[derive(Debug, Clone, Default)]
pub(super) struct Excluded {
    words: Vec<u64>,
    count: usize,
}

impl Excluded {
    /// Adds a position; adding it again changes nothing.
    pub(super) fn add(&mut self, position: u32) {
        let (at, bit) = place(position);
        if self.words.len() <= at {
            self.words.resize(at + 1, 0);
        }
        let word = &mut self.words[at];
        self.count += usize::from(*word & bit == 0);
        *word |= bit;
    }

    /// Returns true if a position was added.
    pub(super) fn holds(&self, position: u32) -> bool {
        let (at, bit) = place(position);
        self.words.get(at).is_some_and(|word| word & bit != 0)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }
}

/// Returns the index of a position's word, and its bit.
fn place(position: u32) -> (usize, u64) {
    ((position / u64::BITS) as usize, 1 << (position % u64::BITS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_held_once() {
        let mut excluded = Excluded::default();
        assert!(excluded.is_empty() && !excluded.holds(0));
        for position in [63, 64, 3, 64] {
            excluded.add(position);
        }
        assert_eq!(excluded.len(), 3);
        let held: Vec<u32> = (0..200).filter(|&position| excluded.holds(position)).collect();
        assert_eq!(held, [3, 63, 64]);
        assert!(!excluded.holds(u32::MAX));
    }

    #[test]
    fn the_highest_rank_comes_first_and_of_equals_the_first() {
        assert_eq!(best_first(&[(); 3], None), None);
        assert_eq!(best_first(&[5, 7, 9, 9, 7, 100], None).unwrap(), [5, 2, 3, 1, 4, 0]);
    }

    #[test]
    fn what_is_out_has_no_place() {
        let odd = |position: u32| !position.is_multiple_of(2);
        assert_eq!(best_first(&[(); 5], Some(&odd)).unwrap(), [0, 2, 4]);
        assert_eq!(best_first(&[1, 9, 3, 9, 2], Some(&odd)).unwrap(), [2, 4, 0]);
    }
}
