//! Order: ranks become positions, those first that are rather to be kept.

use rayon::prelude::*;

/// Positions by falling rank, of equals the first; without those for which `out` holds.
///
/// `None` stands for all positions as they are.
pub(super) fn best_first<R: Ord + Sync>(
    ranks: &[R],
    out: Option<&(dyn Fn(u32) -> bool + Sync)>,
) -> Option<Vec<u32>> {
    // Ranks without a size are equal.
    if size_of::<R>() == 0 && out.is_none() {
        return None;
    }
    let positions = (0..).zip(ranks).map(|(position, _)| position);
    let mut order: Vec<u32> = match out {
        None => positions.collect(),
        Some(out) => positions.filter(|&position| !out(position)).collect(),
    };
    if size_of::<R>() > 0 {
        let rank = |&at: &u32| ranks.get(at as usize);
        order.par_sort_by(|a, b| rank(b).cmp(&rank(a)));
    }
    Some(order)
}

#[cfg(test)]
mod tests {
    use super::*;

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
