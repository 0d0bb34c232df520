//! Evenness: measures the skew of a set of fingerprints.

use crate::report;

/// Bits of the prefix of a resident table.
const BLOCK_BITS: u32 = 16;
const BLOCKS: usize = 4;

/// Measures of the skew of fingerprints.
#[derive(Debug)]
pub(crate) struct Evenness {
    /// Number of bits that are set in less than 40 % or more than 60 % of the fingerprints.
    pub(crate) uneven_bits: usize,
    /// The sum of the collision entropies of all bits.
    pub(crate) entropy: f64,
    /// For each block, the mean size of a member's bucket, as a multiple of the even size.
    pub(crate) candidates: [f64; BLOCKS],
    /// For each block, the size of the largest bucket, as a multiple of the even size.
    pub(crate) largest: [f64; BLOCKS],
}

impl Evenness {
    pub(crate) fn of(fingerprints: &[u64]) -> Self {
        let mut members = fingerprints.to_vec();
        members.sort_unstable();
        members.dedup();
        let count = members.len().max(1) as f64;
        let shares: Vec<f64> = (0..u64::BITS)
            .map(|bit| {
                members.iter().filter(|member| **member >> bit & 1 == 1).count() as f64 / count
            })
            .collect();
        let even = count / f64::from(1 << BLOCK_BITS);
        let buckets = |block: usize| {
            let mut buckets = vec![0_u32; 1 << BLOCK_BITS];
            for member in &members {
                let bucket = usize::try_from(member >> (48 - 16 * block) & 0xffff).unwrap_or(0);
                if let Some(size) = buckets.get_mut(bucket) {
                    *size += 1;
                }
            }
            buckets
        };
        let blocks: [Vec<u32>; BLOCKS] = std::array::from_fn(buckets);
        let met = |sizes: &Vec<u32>| {
            sizes.iter().map(|size| f64::from(*size).powi(2)).sum::<f64>() / count / even
        };
        let largest = |sizes: &Vec<u32>| f64::from(sizes.iter().copied().max().unwrap_or(0)) / even;
        Self {
            uneven_bits: shares.iter().filter(|share| !(0.4..=0.6).contains(*share)).count(),
            entropy: shares.iter().map(|p| -(p * p + (1.0 - p) * (1.0 - p)).log2()).sum(),
            candidates: blocks.each_ref().map(met),
            largest: blocks.each_ref().map(largest),
        }
    }

    /// Prints the measures as rows of a table.
    pub(crate) fn print(&self, name: &str) {
        let all = |times: &[f64]| {
            times.iter().map(|times| format!("{times:.1}")).collect::<Vec<_>>().join(", ")
        };
        report::row(&format!("{name}: bits beyond 60/40"), &self.uneven_bits.to_string());
        report::row(&format!("{name}: collision entropy, bits"), &format!("{:.1}", self.entropy));
        let figure = format!("{name}: candidates of a block, times even");
        report::row(&figure, &all(&self.candidates));
        report::row(&format!("{name}: largest bucket, times even"), &all(&self.largest));
    }
}
