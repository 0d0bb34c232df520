//! Shells: the number of members in all buckets at a given number of flips from a bucket.
//!
//! Fingerprints of texts are skewed: the buckets of one query hold hundreds of times as many
//! members as those of another. The sums around each bucket are computed once, so that the radii of
//! a query take a few look-ups.

use super::table::Table;
use crate::bits::binomial;
use crate::pages::Pages;

/// Number of counted shells; outer ones are assumed to be as dense as the last.
const COUNTED: u32 = 4;

/// The approximate number of members in the shells around each bucket of a table.
#[derive(Debug)]
pub(super) struct Shells {
    /// The size classes of a bucket's shells, the innermost in the lowest byte.
    classes: Pages<u32>,
    /// The number of buckets in each shell, divided by that of the last counted shell.
    beyond: Vec<f64>,
}

impl Shells {
    pub(super) fn of(table: &Table) -> Self {
        let bucket_bits = table.cut().bucket_bits();
        let mut classes = Pages::<u32>::zeroed(table.cut().buckets());
        let mut within = vec![0_u64; table.cut().buckets()];
        let mut shell: Vec<u64> = table.bucket_sizes().collect();
        for flips in 0..COUNTED {
            for (classes, &members) in classes.as_mut_slice().iter_mut().zip(&shell) {
                *classes |= u32::from(class(members)) << (8 * flips);
            }
            let outer = next_shell(&shell, &within, bucket_bits, flips);
            within = std::mem::replace(&mut shell, outer);
        }
        let last = binomial(bucket_bits, COUNTED - 1).max(1) as f64;
        let beyond = (0..=bucket_bits).map(|flips| binomial(bucket_bits, flips) as f64 / last);
        Self { classes, beyond: beyond.collect() }
    }

    /// Returns the size classes of a bucket's shells, for [`Shells::members`].
    #[allow(clippy::inline_always)]
    #[inline(always)]
    pub(super) fn classes(&self, bucket: u32) -> u32 {
        self.classes.as_slice()[bucket as usize]
    }

    /// Returns the number of members in the buckets at `flips` flips, within an eighth.
    #[allow(clippy::inline_always)]
    #[inline(always)]
    pub(super) fn members(&self, classes: u32, flips: u32) -> f64 {
        if flips < COUNTED {
            return members(classes >> (8 * flips));
        }
        // No bucket is at more flips than a bucket has bits.
        let times = self.beyond.get(flips as usize).copied().unwrap_or(0.0);
        members(classes >> (8 * (COUNTED - 1))) * times
    }

    pub(super) fn bytes(&self) -> usize {
        self.classes.bytes()
    }

    /// Returns the size of the shells of `buckets` buckets, in bytes.
    pub(super) fn bytes_of(buckets: usize) -> u64 {
        size_of::<u32>() as u64 * buckets as u64
    }
}

/// Computes the next outer shell of every bucket.
///
/// The buckets one flip from a shell are those of the next shell, each reached `flips + 1` times,
/// and those of the previous shell, each reached `bits - flips + 1` times.
fn next_shell(shell: &[u64], within: &[u64], bits: u32, flips: u32) -> Vec<u64> {
    let mut around = vec![0; shell.len()];
    for bit in 0..bits {
        let half = 1 << bit;
        for (sums, shells) in around.chunks_mut(2 * half).zip(shell.chunks(2 * half)) {
            let (low, high) = sums.split_at_mut(half);
            let (of_low, of_high) = shells.split_at(half);
            low.iter_mut().zip(of_high).for_each(|(sum, members)| *sum += members);
            high.iter_mut().zip(of_low).for_each(|(sum, members)| *sum += members);
        }
    }
    let sides = u64::from((bits + 1).saturating_sub(flips));
    for (around, within) in around.iter_mut().zip(within) {
        *around = (*around - sides * within) / u64::from(flips + 1);
    }
    around
}

/// Returns the size class of a number of members: its logarithm in eighths of an octave.
#[allow(clippy::cast_possible_truncation)] // at most 31 octaves of eight classes
fn class(members: u64) -> u8 {
    let members = members.saturating_add(1).min(u64::from(u32::MAX));
    let octave = members.ilog2();
    let eighth = (members << 3 >> octave) & 7;
    (octave << 3) as u8 | eighth as u8
}

/// Returns the approximate number of members of a size class, its lowest byte.
#[allow(clippy::inline_always)]
#[inline(always)]
fn members(class: u32) -> f64 {
    let (octave, eighth) = (class >> 3 & 31, class & 7);
    (u64::from(8 + eighth) << octave >> 3) as f64 - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resident::cut::Cut;

    #[test]
    fn shells_equal_the_sums_over_all_buckets() {
        let mut random = fastrand::Rng::with_seed(2);
        for bits in [1, 2, 3, 5, 9] {
            let mut set: Vec<u64> = (0..3000).map(|_| random.u64(..) & random.u64(..)).collect();
            set.sort_unstable();
            set.dedup();
            let table = Table::build(Cut::new::<u64>(1, bits), 0, &set);
            let shells = Shells::of(&table);
            for bucket in 0..1_u32 << bits {
                for flips in 0..COUNTED {
                    let at = |&(other, _): &(u32, u64)| (other ^ bucket).count_ones() == flips;
                    let exact: u64 =
                        (0..).zip(table.bucket_sizes()).filter(at).map(|(_, size)| size).sum();
                    let estimate = shells.members(shells.classes(bucket), flips);
                    let off = (exact as f64 - estimate).abs();
                    assert!(off <= exact as f64 / 8.0, "seed 2, {bits}: {estimate} for {exact}");
                }
            }
        }
    }

    #[test]
    fn outer_shells_are_as_dense_as_the_last_counted_one() {
        let set: Vec<u64> = (0..1 << 12).map(|at| at << 52).collect();
        let shells = Shells::of(&Table::build(Cut::new::<u64>(0, 12), 0, &set));
        let classes = shells.classes(77);
        let (last, next) = (shells.members(classes, 3), shells.members(classes, 4));
        assert!((next / last - 495.0 / 220.0).abs() < 1e-9, "{last} {next}");
        assert!(shells.members(classes, 13) < 1e-9, "there is no such shell");
    }

    #[test]
    fn size_classes_grow_with_the_members() {
        assert_eq!((class(0), members(0)), (0, 0.0));
        let classes: Vec<u8> = [0, 1, 2, 9, 100, 10_000, u64::MAX].map(class).to_vec();
        assert!(classes.is_sorted(), "{classes:?}");
        assert!((members(u32::from(class(10_000))) - 10_000.0).abs() < 1250.0);
    }
}
