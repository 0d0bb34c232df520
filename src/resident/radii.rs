//! Radii: how many bits of each bucket are flipped, so that nothing is missed at least cost.
//!
//! Buckets of different tables are disjoint bits. A match that no table finds differs in more
//! than `r` bits of every bucket probed with radius `r`, so nothing within `k` is missed if the
//! sum of all `r + 1` is above `k` (the general pigeonhole; Qin et al., *GPH*, ICDE 2018).

use crate::plan::probe_masks;

/// All flips of a bucket's bits: fewer flips first, equal ones rising.
#[derive(Debug)]
pub(super) struct Masks {
    masks: Vec<u32>,
    /// How many masks have so many flips at most.
    within: Vec<usize>,
}

impl Masks {
    pub(super) fn new(bucket_bits: u32) -> Self {
        let masks: Vec<u32> = probe_masks(bucket_bits, bucket_bits)
            .filter_map(|mask| u32::try_from(mask).ok())
            .collect();
        let within = |radius| masks.partition_point(|mask| mask.count_ones() <= radius);
        let within = (0..=bucket_bits).map(within).collect();
        Self { masks, within }
    }

    /// Returns the masks of at most so many flips.
    pub(super) fn within(&self, radius: u32) -> &[u32] {
        let count = self.within.get(radius as usize).copied().unwrap_or(self.masks.len());
        self.masks.get(..count).unwrap_or(&self.masks)
    }

    /// Returns the masks of exactly so many flips.
    pub(super) fn shell(&self, flips: u32) -> &[u32] {
        let first = flips.checked_sub(1).map_or(0, |inner| self.within(inner).len());
        self.within(flips).get(first..).unwrap_or(&[])
    }
}

/// The radius of every table, `None` where it is not probed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Radii {
    pub(super) of_tables: Vec<Option<u32>>,
    /// Expected time of a search in nanoseconds.
    pub(super) nanos: f64,
}

/// Returns the cheapest radii that miss nothing within the distance, `None` if there are none.
///
/// `shell(table, flips)` is the time to probe all buckets of a table that differ in exactly so
/// many bits; it is asked for rising flips, up to `bucket_bits`.
pub(super) fn cheapest(
    tables: usize,
    bucket_bits: u32,
    distance: u32,
    mut shell: impl FnMut(usize, u32) -> f64,
) -> Option<Radii> {
    let wanted = distance as usize + 1;
    // The least time for needs (radius plus one) that add up to a number, and the last need.
    let mut least = vec![f64::INFINITY; wanted + 1];
    if let Some(none) = least.first_mut() {
        *none = 0.0;
    }
    let mut choices: Vec<Vec<u32>> = Vec::with_capacity(tables);
    for table in 0..tables {
        let most = (bucket_bits + 1).min(distance + 1);
        let mut next = least.clone();
        let mut choice = vec![0; wanted + 1];
        let mut time = 0.0;
        for need in 1..=most {
            time += shell(table, need - 1);
            // No way through this table can be cheaper than what is known to be enough.
            if next.last().is_some_and(|&enough| time >= enough) {
                break;
            }
            for (before, &known) in least.iter().enumerate() {
                let sum = before + need as usize;
                if let (Some(best), Some(chosen)) = (next.get_mut(sum), choice.get_mut(sum))
                    && known + time < *best
                {
                    *best = known + time;
                    *chosen = need;
                }
            }
        }
        least = next;
        choices.push(choice);
    }
    let nanos = least.last().copied().filter(|nanos| nanos.is_finite())?;
    let mut of_tables = vec![None; tables];
    let mut sum = wanted;
    for (radius, choice) in of_tables.iter_mut().zip(&choices).rev() {
        let need = choice.get(sum).copied().unwrap_or(0);
        *radius = need.checked_sub(1);
        sum -= need as usize;
    }
    Some(Radii { of_tables, nanos })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::defeat;

    #[test]
    fn masks_come_once_and_fewest_flips_first() {
        let masks = Masks::new(5);
        assert_eq!(masks.within(9).len(), 32);
        assert_eq!(masks.within(1), [0, 1, 2, 4, 8, 16]);
        assert_eq!(masks.shell(0), [0]);
        assert_eq!(masks.shell(2).len(), 10);
        assert!(masks.shell(2).iter().all(|mask| mask.count_ones() == 2));
        assert!(masks.shell(6).is_empty());
        assert_eq!(Masks::new(0).within(0), [0]);
    }

    #[test]
    fn radii_are_proved_complete_at_every_distance() {
        for (tables, bits) in [(1, 4), (2, 16), (4, 16), (8, 16), (4, 5), (3, 21)] {
            let leads: Vec<u128> =
                (0..tables).map(|table| ((1 << bits) - 1) << (table * bits)).collect();
            for distance in 0..=20 {
                // Tables of unequal cost, so that radii differ.
                let shell = |table: usize, flips| f64::from(flips + 1).powi(2) * (table + 1) as f64;
                let Some(radii) = cheapest(leads.len(), bits, distance, shell) else {
                    let most = u32::try_from(leads.len()).unwrap() * (bits + 1);
                    assert!(most < distance + 1, "{tables} x {bits} can answer {distance}");
                    continue;
                };
                let probed = leads.iter().zip(&radii.of_tables);
                let probed: Vec<(u128, u32)> =
                    probed.filter_map(|(&lead, radius)| Some((lead, (*radius)?))).collect();
                assert_eq!(defeat(&probed, 128, distance), Some(distance + 1), "{radii:?}");
            }
        }
    }

    #[test]
    fn a_costly_table_is_left_out() {
        let shell =
            |table, flips: u32| if table == 0 { 1e6 } else { 10_f64.powi(flips.cast_signed()) };
        let radii = cheapest(4, 16, 3, shell).unwrap();
        assert_eq!(radii.of_tables, [None, Some(1), Some(0), Some(0)]);
        assert!((radii.nanos - 13.0).abs() < 1e-9);
    }
}
