//! Sink: converts near members of a permuted table into batches of pairs for the caller.
//!
//! A pair is emitted only from the table that its first equal blocks lead, at every level of
//! splitting. So each pair is returned once although no pair is remembered.

use super::Pair;
use super::blocks::Table;
use super::options::{JoinOptions, JoinReport};
use super::permutation::Permutation;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::progress::{self, Progress};

/// Pairs per batch.
const BATCH: usize = 4096;
/// Minimum members of a part, so that a small memory limit does not cause endless parts.
const CAPACITY_MIN: usize = 256 << 10;

/// The constant parameters of a join.
pub(super) struct Run<'a, F> {
    pub(super) distance: u32,
    /// Whether pairs are between two sets, so that their order matters.
    pub(super) across: bool,
    /// Maximum members of a part that is read from a source.
    pub(super) capacity: usize,
    pub(super) progress: &'a dyn Progress,
    pub(super) visit: &'a (dyn Fn(&[Pair<F>]) -> Result<()> + Sync),
}

impl<'a, F: Fingerprint> Run<'a, F> {
    /// Prepares a join of `S` sets while the caller holds `held` members in memory.
    pub(super) fn new<const S: usize>(
        options: JoinOptions,
        held: usize,
        progress: &'a dyn Progress,
        visit: &'a (dyn Fn(&[Pair<F>]) -> Result<()> + Sync),
    ) -> Self {
        let JoinOptions { distance, memory } = options;
        // A part is in memory twice: as read, and as partitioned.
        let capacity = (memory / F::BYTES).saturating_sub(held) / 2;
        let capacity = capacity.max(CAPACITY_MIN);
        Self { distance, across: S == 2, capacity, progress, visit }
    }

    /// Starts the progress of a join; returns false if there is nothing to do.
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

/// The permutation of a set's bits, composed of the tables above it.
pub(super) struct Space<'a, F> {
    /// The leading blocks of all tables above; a pair must agree on all of them.
    equal: F,
    /// The blocks skipped before the last leading block; a pair must differ in each.
    skipped: Vec<F>,
    /// The permutation back to the space one level up; `None` at the caller's bit order.
    up: Option<(Permutation<F>, &'a Space<'a, F>)>,
}

impl<F: Fingerprint> Space<'_, F> {
    /// The caller's bit order.
    pub(super) const ROOT: Self = Self { equal: F::ZERO, skipped: Vec::new(), up: None };

    /// Returns the space of a table below this one.
    pub(super) fn below<'b>(&'b self, table: &Table<F>) -> Space<'b, F> {
        let permutation = &table.permutation;
        let skipped = self.skipped.iter().chain(&table.skipped);
        Space {
            equal: permutation.apply(self.equal | table.blocks),
            skipped: skipped.map(|&block| permutation.apply(block)).collect(),
            up: Some((permutation.inverse(), self)),
        }
    }

    /// Returns true if the pair is emitted from this space.
    #[inline]
    fn owns(&self, differing: F) -> bool {
        differing & self.equal == F::ZERO
            && self.skipped.iter().all(|&block| differing & block != F::ZERO)
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

/// Collects the pairs of one task and passes them to the visitor in batches.
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

    /// Returns true if the visitor returned an error; later pairs are dropped.
    pub(super) fn stopped(&self) -> bool {
        self.failed.is_some()
    }

    /// Adds `comparisons` to the report.
    #[inline]
    pub(super) fn count(&mut self, comparisons: u64) {
        self.report.comparisons += comparisons;
    }

    /// Adds two near members, unless the pair is emitted from another table.
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
            self.flush();
        }
    }

    /// Passes the last batch to the visitor and returns the report.
    pub(super) fn finish(mut self) -> Result<JoinReport> {
        self.flush();
        self.failed.map_or(Ok(self.report), Err)
    }

    fn flush(&mut self) {
        if self.failed.is_none() && !self.batch.is_empty() {
            match (self.run.visit)(&self.batch) {
                Ok(()) => self.report.pairs += self.batch.len() as u64,
                Err(error) => self.failed = Some(error),
            }
        }
        self.batch.clear();
    }
}
