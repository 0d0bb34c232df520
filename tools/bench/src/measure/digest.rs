//! Digest of answers: equal for equal sets of pairs in any order.

use crate::row::Check;

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A sum over pairs, to compare engines that answer in different orders.
#[derive(Default)]
pub(crate) struct Digest {
    sum: u64,
    pub(crate) pairs: u64,
}

impl Digest {
    /// Adds the answer to a query; repeated fingerprints count once.
    pub(crate) fn answer(&mut self, number: usize, mut found: Vec<u64>) {
        found.sort_unstable();
        found.dedup();
        let salt = (number as u64 + 1).wrapping_mul(GOLDEN);
        for fingerprint in found {
            self.add(mix(fingerprint.wrapping_add(salt)));
        }
    }

    /// Adds a pair of different fingerprints.
    pub(crate) fn pair(&mut self, a: u64, b: u64) {
        self.add(mix(mix(a.min(b)).wrapping_add(a.max(b))));
    }

    pub(crate) fn check(&self, queries: u64) -> Check {
        Check { queries, matches: self.pairs, digest: format!("{:016x}", self.sum) }
    }

    fn add(&mut self, hash: u64) {
        self.sum = self.sum.wrapping_add(hash);
        self.pairs += 1;
    }
}

/// The finaliser of `SplitMix64`.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Returns the checks after 10, 100, ... answers and after all of them.
pub(crate) fn checks(answers: impl Iterator<Item = Vec<u64>>) -> Vec<Check> {
    let mut digest = Digest::default();
    let mut checks = Vec::new();
    let mut next = 10;
    let mut last = 0;
    for (number, found) in answers.enumerate() {
        digest.answer(number, found);
        last = number as u64 + 1;
        if last == next {
            checks.push(digest.check(last));
            next *= 10;
        }
    }
    if checks.last().is_none_or(|check: &Check| check.queries != last) {
        checks.push(digest.check(last));
    }
    checks
}

#[cfg(test)]
mod tests {
    use super::checks;

    fn of(answers: &[&[u64]]) -> Vec<(u64, u64, String)> {
        let checks = checks(answers.iter().map(|found| found.to_vec()));
        checks.into_iter().map(|check| (check.queries, check.matches, check.digest)).collect()
    }

    #[test]
    fn order_and_repetition_within_an_answer_are_ignored() {
        assert_eq!(of(&[&[1, 2], &[3]]), of(&[&[2, 1, 1], &[3]]));
    }

    #[test]
    fn equal_answers_to_different_queries_differ() {
        assert_ne!(of(&[&[1], &[]]), of(&[&[], &[1]]));
        assert_ne!(of(&[&[1], &[2]]), of(&[&[2], &[1]]));
    }

    #[test]
    fn checks_are_made_at_powers_of_ten_and_at_the_end() {
        let answers = vec![[7].as_slice(); 120];
        let sizes: Vec<u64> = of(&answers).into_iter().map(|(queries, ..)| queries).collect();
        assert_eq!(sizes, [10, 100, 120]);
    }
}
