//! Sink: near members of a permuted table become batches of pairs for the caller.
//!
//! A pair passes only from the table that its own first equal blocks lead, at every level of
//! splitting, so that no pair comes twice although none is remembered.

use super::Pair;
use super::blocks::Table;
use super::options::{JoinOptions, JoinReport};
use super::permutation::Permutation;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::progress::{self, Progress};

/// So many pairs are handed over at once.
const BATCH: usize = 4096;
/// Members of a part at least, so that a small bound of memory does not mean endless parts.
const CAPACITY_MIN: usize = 256 << 10;

/// What stays the same through a whole join.
pub(super) struct Run<'a, F> {
    pub(super) distance: u32,
    /// Whether pairs come from two sets, so that their order means something.
    pub(super) across: bool,
    /// Members that a part may have which is read from a source.
    pub(super) capacity: usize,
    pub(super) progress: &'a dyn Progress,
    pub(super) visit: &'a (dyn Fn(&[Pair<F>]) -> Result<()> + Sync),
}

impl<'a, F: Fingerprint> Run<'a, F> {
    /// Prepares the join of `S` sets, while the caller holds so many members in memory.
    pub(super) fn new<const S: usize>(
        options: JoinOptions,
        held: usize,
        progress: &'a dyn Progress,
        visit: &'a (dyn Fn(&[Pair<F>]) -> Result<()> + Sync),
    ) -> Self {
        let JoinOptions { distance, memory } = options;
        // A part is held twice: as it is read and as it is partitioned.
        let capacity = (memory / F::BYTES).saturating_sub(held) / 2;
        let capacity = capacity.max(CAPACITY_MIN);
        Self { distance, across: S == 2, capacity, progress, visit }
    }

    /// Begins with so many members; false if there is nothing to do.
    pub(super) fn begin(&self, members: usize) -> Result<bool> {
        if self.distance > F::BITS {
            let distance = self.distance;
            return Err(Error::InvalidDistance { distance, bits: F::BITS, max: F::BITS });
        }
        progress::check(self.progress)?;
        self.progress.begin("join", Some(members as u64));
        let worth_it = self.across || self.distance > 0;
        if !worth_it {
            self.progress.advance(members as u64);
        }
        Ok(worth_it)
    }
}

/// The bit positions in which a set stands, as the tables above it left them.
pub(super) struct Space<'a, F> {
    /// The blocks that led the tables down to here; a pair has to agree on all of them.
    equal: F,
    /// The blocks passed over before the last of those; a pair has to differ in each.
    passed: Vec<F>,
    /// The way back to the space one level up; none where positions are the caller's own.
    up: Option<(Permutation<F>, &'a Space<'a, F>)>,
}

impl<F: Fingerprint> Space<'_, F> {
    /// The caller's own positions.
    pub(super) const ROOT: Self = Self { equal: F::ZERO, passed: Vec::new(), up: None };

    /// Returns the space of a table below this one.
    pub(super) fn below<'b>(&'b self, table: &Table<F>) -> Space<'b, F> {
        let permutation = &table.permutation;
        let passed = self.passed.iter().chain(&table.passed);
        Space {
            equal: permutation.apply(self.equal | table.blocks),
            passed: passed.map(|&block| permutation.apply(block)).collect(),
            up: Some((permutation.inverse(), self)),
        }
    }

    /// Tells whether this is the one space that the pair passes from.
    #[inline]
    fn owns(&self, differing: F) -> bool {
        differing & self.equal == F::ZERO
            && self.passed.iter().all(|&block| differing & block != F::ZERO)
    }

    fn back_to_root(&self, fingerprint: F) -> F {
        let mut space = self;
        let mut fingerprint = fingerprint;
        while let Some((back, above)) = &space.up {
            fingerprint = back.apply(fingerprint);
            space = above;
        }
        fingerprint
    }
}

/// Collects the pairs of one task and hands them over in batches.
pub(super) struct Sink<'a, F> {
    run: &'a Run<'a, F>,
    space: &'a Space<'a, F>,
    batch: Vec<Pair<F>>,
    report: JoinReport,
    failed: Option<Error>,
}

impl<'a, F: Fingerprint> Sink<'a, F> {
    pub(super) fn new(run: &'a Run<'a, F>, space: &'a Space<'a, F>) -> Self {
        Self { run, space, batch: Vec::new(), report: JoinReport::default(), failed: None }
    }

    pub(super) fn distance(&self) -> u32 {
        self.run.distance
    }

    /// Tells that the caller has refused a batch; nothing more is taken.
    pub(super) fn stopped(&self) -> bool {
        self.failed.is_some()
    }

    /// Counts so many comparisons.
    #[inline]
    pub(super) fn count(&mut self, comparisons: u64) {
        self.report.comparisons += comparisons;
    }

    /// Takes two near members, unless the pair passes from another table.
    #[inline]
    pub(super) fn offer(&mut self, a: F, b: F, distance: u32) {
        if self.space.owns(a ^ b) {
            self.push(a, b, distance);
        }
    }

    fn push(&mut self, a: F, b: F, distance: u32) {
        let (a, b) = (self.space.back_to_root(a), self.space.back_to_root(b));
        let (a, b) = if self.run.across { (a, b) } else { (a.min(b), a.max(b)) };
        self.batch.push(Pair { a, b, distance });
        if self.batch.len() >= BATCH {
            self.hand_over();
        }
    }

    /// Hands over what is left and returns what there was.
    pub(super) fn finish(mut self) -> Result<JoinReport> {
        self.hand_over();
        self.failed.map_or(Ok(self.report), Err)
    }

    fn hand_over(&mut self) {
        if self.failed.is_none() && !self.batch.is_empty() {
            match (self.run.visit)(&self.batch) {
                Ok(()) => self.report.pairs += self.batch.len() as u64,
                Err(error) => self.failed = Some(error),
            }
        }
        self.batch.clear();
    }
}
