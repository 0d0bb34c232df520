//! Radii: how many bits of each bucket are flipped, by the [rule of all tables](crate::bits).

use super::search::MAX_TABLES;
use crate::bits;
use crate::plan::probe_masks;

/// All flips of the bits of a bucket: fewest flips first, then ascending.
#[derive(Debug)]
pub(super) struct Masks {
    masks: Vec<u32>,
    /// The number of masks with at most each number of flips.
    within: Vec<usize>,
}

impl Masks {
    pub(super) fn new(bucket_bits: u32) -> Self {
        let masks: Vec<u32> = probe_masks(bucket_bits, bucket_bits)
            .map(|mask| u32::try_from(mask).expect("a bucket has at most 32 bits"))
            .collect();
        let within = |radius| masks.partition_point(|mask| mask.count_ones() <= radius);
        let within = (0..=bucket_bits).map(within).collect();
        Self { masks, within }
    }

    /// Returns the masks of at most `radius` flips.
    pub(super) fn within(&self, radius: u32) -> &[u32] {
        // A radius above the bits of a bucket includes all masks.
        let count = self.within.get(radius as usize).copied().unwrap_or(self.masks.len());
        &self.masks[..count]
    }
}

/// The radius of every table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Radii {
    /// The radius plus one, 0 if a table is not probed.
    needs: [u8; MAX_TABLES],
}

impl Radii {
    /// Returns the radius of a table, `None` if it is not probed.
    #[allow(clippy::inline_always)]
    #[inline(always)]
    pub(super) fn of(self, table: usize) -> Option<u32> {
        self.need(table).checked_sub(1)
    }

    /// Returns the radius plus one, 0 if the table is not probed.
    #[allow(clippy::inline_always)]
    #[inline(always)]
    pub(super) fn need(self, table: usize) -> u32 {
        u32::from(self.needs[table])
    }

    /// Returns a number that is unique to these radii.
    pub(super) fn number(self) -> u64 {
        self.needs.iter().fold(0, |number, &need| number << 8 | u64::from(need))
    }

    #[cfg(test)]
    pub(super) fn new(radii: &[Option<u32>]) -> Self {
        let mut needs = [0; MAX_TABLES];
        for (need, radius) in needs.iter_mut().zip(radii) {
            *need = radius.map_or(0, |radius| u8::try_from(radius + 1).unwrap());
        }
        Self { needs }
    }
}

/// Returns the cheapest complete radii for a distance, and their expected time.
///
/// `shell(table, flips)` returns the time to probe all buckets of a table at exactly `flips` flips.
/// It is called with ascending flips, up to `bucket_bits`; a shell counts as never cheaper than the
/// one within it. Returns `None` if no radii are complete.
#[allow(clippy::inline_always)]
#[inline(always)]
pub(super) fn cheapest(
    tables: usize,
    bucket_bits: u32,
    distance: u32,
    mut shell: impl FnMut(usize, u32) -> f64,
) -> Option<(Radii, f64)> {
    let price = |table, flips, last: f64| {
        if flips <= bucket_bits { shell(table, flips).max(last) } else { f64::INFINITY }
    };
    let (needs, nanos) = bits::cheapest(tables, distance + 1, price)?;
    Some((Radii { needs }, nanos))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::defeat;

    #[test]
    fn masks_are_distinct_and_fewest_flips_first() {
        let masks = Masks::new(5);
        assert_eq!(masks.within(9).len(), 32);
        assert_eq!(masks.within(1), [0, 1, 2, 4, 8, 16]);
        assert_eq!(masks.within(0), [0]);
        assert_eq!(masks.within(2).len(), 16);
        assert!(masks.within(9).is_sorted_by_key(|mask| mask.count_ones()));
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
                let Some((radii, _)) = cheapest(leads.len(), bits, distance, shell) else {
                    let most = u32::try_from(leads.len()).unwrap() * (bits + 1);
                    assert!(most < distance + 1, "{tables} x {bits} can answer {distance}");
                    continue;
                };
                let probed = leads.iter().enumerate();
                let probed: Vec<(u128, u32)> =
                    probed.filter_map(|(table, &lead)| Some((lead, radii.of(table)?))).collect();
                assert_eq!(defeat(&probed, 128, distance), Some(distance + 1), "{radii:?}");
            }
        }
    }

    #[test]
    fn no_other_radii_are_cheaper() {
        fn least(shells: &[Vec<f64>], needed: u32) -> f64 {
            let Some((table, others)) = shells.split_first() else {
                return if needed == 0 { 0.0 } else { f64::INFINITY };
            };
            let within = |need: u32| table.iter().take(need as usize).sum::<f64>();
            let most = needed.min(u32::try_from(table.len()).unwrap());
            let ways = (0..=most).map(|need| within(need) + least(others, needed - need));
            ways.fold(f64::INFINITY, f64::min)
        }
        let mut random = fastrand::Rng::with_seed(9);
        for distance in 0..12 {
            let shells: Vec<Vec<f64>> = (0..4)
                .map(|_| {
                    let growth = 1.0 + random.f64();
                    let inner = random.f64();
                    (0..=5).map(|flips| inner * growth.powi(flips)).collect()
                })
                .collect();
            let (_, nanos) = cheapest(4, 5, distance, |table, flips| shells[table][flips as usize])
                .expect("24 needs are enough");
            let least = least(&shells, distance + 1);
            assert!((nanos - least).abs() < 1e-9 * least, "seed 9, {distance}: {nanos} {least}");
        }
    }

    #[test]
    fn an_expensive_table_is_not_probed() {
        let shell =
            |table, flips: u32| if table == 0 { 1e6 } else { 10_f64.powi(flips.cast_signed()) };
        let (radii, nanos) = cheapest(4, 16, 3, shell).unwrap();
        assert_eq!(radii, Radii::new(&[None, Some(1), Some(0), Some(0)]));
        assert!((nanos - 13.0).abs() < 1e-9);
    }
}
