//! Diameter: the largest distance between two members of a cluster.

use crate::fingerprint::Fingerprint;

/// Maximum number of distinct fingerprints for which all pairs are compared.
const COMPARED: usize = 2000;

/// The largest Hamming distance between two members of a cluster.
///
/// ```
/// use hamdex::join::{self, Diameter};
///
/// let Diameter { bits, exact, .. } = join::diameter(&[0b00_u64, 0b11]);
/// assert_eq!((bits, exact), (2, true));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Diameter {
    /// The diameter in bits, or a lower bound of at least half of it if `exact` is false.
    pub bits: u32,
    /// False for more than 2,000 distinct fingerprints.
    pub exact: bool,
}

/// Returns the diameter of a set of fingerprints; 0 if all are equal.
///
/// Compares all pairs of up to 2,000 distinct fingerprints. For more it measures from the first to
/// the farthest member, and from there to the farthest again. That is a lower bound of at least
/// half the diameter, in linear time.
///
/// ```
/// use hamdex::join;
///
/// let diameter = join::diameter(&[0b0001_u64, 0b0011, 0b1111, 0b0011]);
/// assert_eq!((diameter.bits, diameter.exact), (3, true));
/// ```
pub fn diameter<F: Fingerprint>(fps: &[F]) -> Diameter {
    let mut distinct = fps.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    if distinct.len() <= COMPARED {
        let farthest = distinct.iter().zip(1..).map(|(&fp, later)| {
            distinct[later..].iter().map(|&other| fp.distance(other)).max().unwrap_or(0)
        });
        return Diameter { bits: farthest.max().unwrap_or(0), exact: true };
    }
    let farthest = |from: F| distinct.iter().map(|&fp| (from.distance(fp), fp)).max();
    let first = distinct.first().and_then(|&fp| farthest(fp));
    let second = first.and_then(|(_, end)| farthest(end));
    let bits = first.max(second).map_or(0, |(bits, _)| bits);
    Diameter { bits, exact: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_definition(fps: &[u64]) -> u32 {
        fps.iter().flat_map(|a| fps.iter().map(|b| a.distance(*b))).max().unwrap_or(0)
    }

    #[test]
    fn few_fingerprints_have_an_exact_diameter() {
        let mut rng = fastrand::Rng::with_seed(1);
        for count in [0, 1, 2, 3, 50, 400] {
            let fps: Vec<u64> = (0..count).map(|_| rng.u64(..) & rng.u64(..)).collect();
            assert_eq!(diameter(&fps), Diameter { bits: by_definition(&fps), exact: true });
        }
        assert_eq!(diameter(&vec![7_u64; 100_000]), Diameter { bits: 0, exact: true });
    }

    #[test]
    fn many_fingerprints_have_a_lower_bound() {
        let mut rng = fastrand::Rng::with_seed(2);
        let fps: Vec<u64> = (0..3000).map(|_| rng.u64(..) & rng.u64(..) & rng.u64(..)).collect();
        let found = diameter(&fps);
        let expected = by_definition(&fps);
        assert!(!found.exact);
        assert!(found.bits <= expected && 2 * found.bits >= expected);
    }
}
