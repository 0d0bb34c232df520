//! A plain loop over all fingerprints, without code of the library: the reference for answers.

use super::harness::Engine;
use super::{Job, Outcome};

pub(super) const NAME: &str = "plain loop";

pub(super) struct Scan(Vec<u64>);

impl Engine for Scan {
    type Answer = Vec<u64>;

    fn build(_: &Job, fingerprints: &[u64]) -> Outcome<Self> {
        Ok(Self(fingerprints.to_vec()))
    }

    fn answers(&self, _: u32) -> bool {
        true
    }

    fn search(&self, query: u64, distance: u32) -> Outcome<Vec<u64>> {
        let near = |f: &&u64| (*f ^ query).count_ones() <= distance;
        Ok(self.0.iter().filter(near).copied().collect())
    }

    fn found(&self, answer: &Vec<u64>, _: &[u64]) -> Vec<u64> {
        answer.clone()
    }

    fn note(&self) -> String {
        "Rust without SIMD, the judge of all answers".into()
    }
}
