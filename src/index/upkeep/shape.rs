//! Shape: statistics of stored fingerprints, collected in one pass.
#![expect(
    clippy::indexing_slicing,
    reason = "there is a count for each doubling, and for each bit"
)]

/// A histogram of sizes, with one bin per power of two.
///
/// ```
/// use hamdex::inspect::Sizes;
///
/// let sizes: Sizes = [1, 2, 3, 3, 9].into_iter().collect();
/// assert_eq!(sizes.counts()[..4], [1, 3, 0, 1]);
/// assert_eq!((sizes.largest(), sizes.total()), (9, 18));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sizes {
    counts: [u64; 32],
    largest: u64,
    total: u64,
}

impl Sizes {
    /// Returns the number of sizes in each bin.
    ///
    /// The bins hold sizes 1, 2 to 3, 4 to 7 and so on. The last bin also holds all larger sizes.
    /// Size 0 counts as 1.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Returns the largest size, or 0 if nothing was counted.
    pub fn largest(&self) -> u64 {
        self.largest
    }

    /// Returns the sum of all sizes.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Adds the sizes of another part.
    pub(super) fn merge(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
        self.largest = self.largest.max(other.largest);
        self.total += other.total;
    }

    /// Adds a size.
    pub(super) fn add(&mut self, size: u64) {
        let place = (size.max(1).ilog2() as usize).min(self.counts.len() - 1);
        self.counts[place] += 1;
        self.largest = self.largest.max(size);
        self.total += size;
    }
}

impl FromIterator<u64> for Sizes {
    fn from_iter<I: IntoIterator<Item = u64>>(sizes: I) -> Self {
        let mut counted = Self::default();
        sizes.into_iter().for_each(|size| counted.add(size));
        counted
    }
}

/// Counts the lengths of groups of equal neighbours in a sorted stream.
#[derive(Debug)]
pub(super) struct Alike<T> {
    last: Option<T>,
    size: u64,
    sizes: Sizes,
}

impl<T> Default for Alike<T> {
    fn default() -> Self {
        Self { last: None, size: 0, sizes: Sizes::default() }
    }
}

impl<T: PartialEq> Alike<T> {
    /// Adds the next value of the stream.
    pub(super) fn push(&mut self, value: T) {
        if self.last.as_ref() != Some(&value) {
            self.close();
            self.last = Some(value);
        }
        self.size += 1;
    }

    /// Returns the sizes of all groups.
    pub(super) fn finish(mut self) -> Sizes {
        self.close();
        self.sizes
    }

    fn close(&mut self) {
        if self.size > 0 {
            self.sizes.add(self.size);
        }
        self.size = 0;
    }
}

/// Counts the one bits at every position, the most significant first.
///
/// Counts how often each byte has each value, since eight bits are counted by one addition.
#[derive(Debug, Default)]
pub(super) struct Ones(Vec<[u64; 256]>);

impl Ones {
    /// Adds a fingerprint as big-endian bytes.
    pub(super) fn add(&mut self, fingerprint: &[u8]) {
        if self.0.is_empty() {
            self.0.resize(fingerprint.len(), [0; 256]);
        }
        for (counts, &byte) in self.0.iter_mut().zip(fingerprint) {
            counts[usize::from(byte)] += 1;
        }
    }

    /// Adds the counts of another part.
    pub(super) fn merge(&mut self, other: Self) {
        if self.0.is_empty() {
            self.0 = other.0;
            return;
        }
        for (counts, more) in self.0.as_flattened_mut().iter_mut().zip(other.0.as_flattened()) {
            *counts += more;
        }
    }

    /// Returns the counts of all bits of a fingerprint.
    pub(super) fn finish(mut self, bits: u32) -> Vec<u64> {
        self.0.resize(bits as usize / 8, [0; 256]);
        let ones = |counts: &[u64; 256], bit: u32| {
            let set = (0..=u8::MAX).zip(counts).filter(|(byte, _)| byte << bit & 0x80 != 0);
            set.map(|(_, count)| count).sum()
        };
        self.0.iter().flat_map(|counts| (0..8).map(move |bit| ones(counts, bit))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_that_are_alike_are_one_group() {
        let mut alike = Alike::default();
        for value in [7, 7, 7, 9, 12, 12] {
            alike.push(value);
        }
        let sizes = alike.finish();
        assert_eq!((sizes.counts()[..3].to_vec(), sizes.total()), (vec![1, 2, 0], 6));
        assert_eq!(Alike::<u8>::default().finish(), Sizes::default());
    }

    #[test]
    fn ones_are_counted_from_the_most_significant_bit() {
        let mut ones = Ones::default();
        for print in [1_u32 << 31, 1, (1 << 31) | 1, 0x00c0_0000] {
            ones.add(&print.to_be_bytes());
        }
        let mut more = Ones::default();
        more.add(&1_u32.to_be_bytes());
        ones.merge(more);
        let ones = ones.finish(32);
        assert_eq!((ones[0], ones[8], ones[9], ones[31]), (2, 1, 1, 3));
        assert_eq!((ones.len(), ones.iter().sum::<u64>()), (32, 7));
    }

    #[test]
    fn sizes_beyond_the_last_place_belong_to_it() {
        let sizes: Sizes = [u64::MAX >> 8, 0].into_iter().collect();
        assert_eq!((sizes.counts()[31], sizes.counts()[0]), (1, 1));
    }
}
