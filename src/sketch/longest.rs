//! Longest sentences: a hash of the few sentences that a copy of a page usually keeps.
//!
//! For exact matches only: signatures are equal if the longest sentences are, else unrelated. A
//! Chinese search engine is said to remove copies of pages in this way.

use super::signature::Signature;
use crate::fingerprint::Fingerprint;
use crate::sketch::feature_hash;

/// A hash of the features with the highest weights: the longest sentences.
///
/// Of sentences of equal length, the one with the higher hash is first. A repeated sentence counts
/// once.
///
/// ```
/// use hamdex::sketch::{Longest, Signature};
///
/// let sign = |sentences: &[(u64, i64)]| {
///     let mut longest = Longest::new(2);
///     sentences.iter().for_each(|&(hash, length)| longest.add(hash, length));
///     longest.signature()
/// };
/// assert_eq!(sign(&[(1, 50), (2, 40), (3, 9)]), sign(&[(4, 8), (2, 40), (1, 50)]));
/// assert_ne!(sign(&[(1, 50), (2, 40)]), sign(&[(1, 50), (3, 40)]));
/// ```
#[derive(Debug, Clone)]
pub struct Longest<F> {
    limit: usize,
    /// Weight and hash, the largest first.
    kept: Vec<(i64, F)>,
}

impl<F: Fingerprint> Longest<F> {
    /// Creates a signature without features that keeps up to `sentences`.
    pub fn new(sentences: usize) -> Self {
        Self { limit: sentences, kept: Vec::new() }
    }
}

impl<F: Fingerprint> Signature<F> for Longest<F> {
    fn add(&mut self, feature: F, weight: i64) {
        let sentence = (weight, feature);
        if weight <= 0 || self.kept.contains(&sentence) {
            return;
        }
        let at = self.kept.partition_point(|kept| *kept > sentence);
        if at < self.limit {
            self.kept.insert(at, sentence);
            self.kept.truncate(self.limit);
        }
    }

    fn signature(&mut self) -> Option<F> {
        if self.kept.is_empty() {
            return None;
        }
        let bytes: Vec<u8> =
            self.kept.iter().flat_map(|(_, hash)| hash.to_bytes().as_ref().to_vec()).collect();
        Some(feature_hash(&bytes, 0))
    }

    fn clear(&mut self) {
        self.kept.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_longest_count_in_any_order() {
        let sign = |sentences: &[(u64, i64)]| {
            let mut longest = Longest::new(3);
            for &(hash, length) in sentences {
                longest.add(hash, length);
            }
            longest.signature()
        };
        let all = sign(&[(1, 9), (2, 8), (3, 7), (4, 6)]);
        assert_eq!(sign(&[(3, 7), (5, 1), (1, 9), (2, 8), (1, 9)]), all);
        assert_ne!(sign(&[(1, 9), (2, 8), (4, 7)]), all);
        assert_eq!(sign(&[(1, 0)]), None);
        assert_eq!(sign(&[]), None);
        assert!(sign(&[(1, 9)]).is_some(), "fewer sentences than the limit");
    }
}
