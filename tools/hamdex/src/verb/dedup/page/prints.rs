//! Prints: fingerprints become shares of ones and the prefixes that most of them have.

use hamdex::Fingerprint;
use rayon::prelude::*;

/// Number of prefixes to show, the most skewed ones.
const NAMED: usize = 12;

/// Documents of a prefix if all had as many, at least: with fewer, chance is all there is to see.
const EVEN: usize = 16;

/// Fingerprints that a thread counts together.
const CHUNK: usize = 1 << 16;

/// Statistics of the bits of fingerprints.
#[derive(Debug, Default)]
pub(super) struct Prints {
    pub(super) documents: u64,
    /// Documents with a one, for each bit from the most significant.
    pub(super) ones: Vec<u64>,
    /// Hexadecimal digits of a prefix.
    pub(super) digits: usize,
    pub(super) skewed: Vec<Prefix>,
}

/// Documents whose fingerprints begin alike.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Prefix {
    pub(super) name: String,
    pub(super) documents: u64,
    /// Distinct fingerprints among them.
    pub(super) fingerprints: u64,
}

impl Prints {
    pub(super) fn of<F: Fingerprint>(fingerprints: &[F]) -> Self {
        let even = |digits: &usize| fingerprints.len() >> (4 * digits) >= EVEN;
        let digits = (1..=4).rev().find(even).unwrap_or(1);
        Self {
            documents: fingerprints.len() as u64,
            ones: ones(fingerprints),
            digits,
            skewed: skewed(fingerprints, digits),
        }
    }

    /// Returns the documents of a prefix if all prefixes had the same number.
    pub(super) fn even(&self) -> f64 {
        self.documents as f64 / 16_f64.powf(self.digits as f64)
    }

    /// Returns the share of ones of each bit.
    pub(super) fn shares(&self) -> impl Iterator<Item = f64> {
        let all = self.documents.max(1) as f64;
        self.ones.iter().map(move |&ones| ones as f64 / all)
    }
}

fn ones<F: Fingerprint>(fingerprints: &[F]) -> Vec<u64> {
    let bits = F::BITS as usize;
    let sum = |mut a: Vec<u64>, b: Vec<u64>| {
        a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        a
    };
    let chunk = |chunk: &[F]| {
        let mut ones = vec![0; bits];
        for fingerprint in chunk {
            let mut rest = fingerprint.widen();
            while rest != 0 {
                if let Some(count) = ones.get_mut(bits - 1 - rest.trailing_zeros() as usize) {
                    *count += 1;
                }
                rest &= rest - 1;
            }
        }
        ones
    };
    fingerprints.par_chunks(CHUNK).map(chunk).reduce(|| vec![0; bits], sum)
}

/// Returns the most skewed prefixes, of equals the smallest first.
fn skewed<F: Fingerprint>(fingerprints: &[F], digits: usize) -> Vec<Prefix> {
    let shift = F::BITS as usize - 4 * digits;
    let prefix = |fingerprint: &F| usize::try_from(fingerprint.widen() >> shift).unwrap_or(0);
    let mut counts = vec![0_u64; 1 << (4 * digits)];
    for fingerprint in fingerprints {
        if let Some(count) = counts.get_mut(prefix(fingerprint)) {
            *count += 1;
        }
    }
    let mut order: Vec<(usize, u64)> =
        counts.into_iter().enumerate().filter(|(_, count)| *count > 0).collect();
    order.sort_by_key(|&(prefix, count)| (std::cmp::Reverse(count), prefix));
    order.truncate(NAMED);
    let named = |(value, documents): (usize, u64)| {
        let mut alike: Vec<F> =
            fingerprints.iter().copied().filter(|other| prefix(other) == value).collect();
        alike.sort_unstable();
        alike.dedup();
        Prefix { name: format!("{value:0digits$x}"), documents, fingerprints: alike.len() as u64 }
    };
    order.into_iter().map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ones_are_counted_from_the_most_significant_bit() {
        let prints = Prints::of(&[1_u32 << 31, (1 << 31) | 1, 0, 0]);
        assert_eq!((prints.ones[0], prints.ones[31], prints.ones.len()), (2, 1, 32));
        assert_eq!(prints.shares().next(), Some(0.5));
        assert_eq!(Prints::of::<u64>(&[]).ones, [0; 64]);
    }

    #[test]
    fn the_most_skewed_prefixes_come_first_with_their_distinct_fingerprints() {
        let mut prints = vec![0xab00_0000_0000_0001_u64; 7];
        prints.extend([0xab00_0000_0000_0002, 0x1f00_0000_0000_0000, 0x1f00_0000_0000_0001]);
        prints.extend((0..300).map(|n| n << 56));
        let prints = Prints::of(&prints);
        assert_eq!(prints.digits, 1, "310 documents give 16 prefixes 19 each");
        let seen = |prefix: &Prefix| (prefix.name.clone(), prefix.documents, prefix.fingerprints);
        assert_eq!(seen(&prints.skewed[0]), ("1".to_owned(), 34, 17));
        assert_eq!(prints.skewed.len(), NAMED);
        assert!((prints.even() - 310.0 / 16.0).abs() < 1e-9);
        let two = Prints::of(&vec![0xab00_0000_0000_0001_u64; 4096]);
        assert_eq!(seen(&two.skewed[0]), ("ab".to_owned(), 4096, 1));
    }
}
