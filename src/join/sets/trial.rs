//! Trials: single steps of a join, which [`calibrate`](crate::inspect::calibrate()) times.

use super::blocks::{Section, Split, Table};
use super::groups::Scratch;
use super::partition::{BITS_MAX, Partition};
use super::sink::{Run, Sink, Space};
use super::{cost, groups};
use crate::bits::{Digits, Segment};
use crate::error::Result;
use crate::join::JoinOptions;

/// Distance of the trials.
const DISTANCE: u32 = 3;

/// The buffers of one thread, and a table that owns pairs.
pub(crate) struct Trial {
    scratch: Scratch<u64, 1>,
    tables: Vec<Table<u64>>,
}

impl Trial {
    pub(crate) fn new() -> Self {
        let block = |at: u32| Segment { start: 16 * at, len: 16 };
        let section = Section { blocks: (0..4).map(block).collect(), leading: 1 };
        let split = Split { sections: vec![section], lead_max: 16 };
        let tables = split.passes(4).into_iter().flat_map(|pass| pass.tables).take(1).collect();
        Self { scratch: Scratch::new(), tables }
    }

    /// Moves members into buckets; `to` is as long.
    pub(crate) fn scatter(members: &[u64], to: &mut [u64]) -> usize {
        Partition::new(members, &Digits::of_span(20, BITS_MAX), to);
        members.len()
    }

    /// Groups a bucket by its first `bits` bits and compares each group; returns the near pairs.
    pub(crate) fn compare(&mut self, bucket: &[u64], bits: u32) -> Result<u64> {
        let run = Run::new::<1>(JoinOptions::new(DISTANCE), 0, &(), &|_| Ok(()));
        let space = Space::ROOT.below(&self.tables);
        let mut sink = Sink::new(&run, &space);
        let (bucket, grouped) = self.scratch.gather([std::iter::once(bucket)]);
        let large = groups::compare(bucket, &Digits::of_span(0, bits), grouped, &mut sink);
        debug_assert!(large.is_empty(), "a group is too large to be compared");
        Ok(sink.finish()?.pairs)
    }

    /// Returns the pairs that a comparison of evenly distributed members meets.
    pub(crate) fn met(members: usize, bits: u32) -> f64 {
        cost::pairs([members]) as f64 / f64::from(bits).exp2()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_do_the_work_that_they_count() {
        let mut trial = Trial::new();
        let near: Vec<u64> = (0..1024).collect();
        assert_eq!(trial.compare(&near, 6).unwrap(), 1024 * (10 + 45 + 120) / 2);
        let mut random = fastrand::Rng::with_seed(3);
        let apart: Vec<u64> = (0..4096).map(|_| random.u64(..)).collect();
        assert_eq!(trial.compare(&apart, 6).unwrap(), 0);
        assert!((Trial::met(4096, 6) - 131_040.0).abs() < 1e-6);
        let mut to = vec![0; apart.len()];
        assert_eq!(Trial::scatter(&apart, &mut to), 4096);
        to.sort_unstable();
        let mut sorted = apart;
        sorted.sort_unstable();
        assert_eq!(to, sorted);
    }
}
