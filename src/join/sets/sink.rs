//! Sink: collects near members of a group in batches of pairs for the caller.
//!
//! A pair is emitted only from the table that owns it, at every level of splitting. So each pair is
//! returned once although no pair is remembered.

use super::blocks::Table;
use super::cost;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::join::Pair;
use crate::join::{JoinOptions, JoinReport};
use crate::plan::Costs;
use crate::progress::{self, Progress};

/// Pairs per batch.
const BATCH: usize = 4096;
/// Minimum members of a part, so that a small memory limit does not cause endless parts.
const CAPACITY_MIN: usize = 256 << 10;

/// The constant parameters of a join.
pub(super) struct Run<'a, F> {
    pub(super) distance: u32,
    pub(super) costs: Costs,
    /// Group size below which tables do not pay off, by the costs.
    pub(super) smallest_split: u64,
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
        let JoinOptions { distance, memory, costs } = options;
        // A part is in memory twice: as read, and as partitioned.
        let capacity = (memory / F::BYTES).saturating_sub(held) / 2;
        let capacity = capacity.max(CAPACITY_MIN);
        let smallest_split = cost::smallest_split(&costs);
        Self { distance, costs, smallest_split, across: S == 2, capacity, progress, visit }
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

/// The pairs that belong to some tables, within those of the tables above.
pub(super) struct Space<'a, F> {
    /// One of these tables owns the pair.
    tables: &'a [Table<F>],
    above: Option<&'a Space<'a, F>>,
}

impl<F: Fingerprint> Space<'_, F> {
    /// All pairs.
    pub(super) const ROOT: Self = Self { tables: &[], above: None };

    /// Returns the space of some tables below this one.
    pub(super) fn below<'b>(&'b self, tables: &'b [Table<F>]) -> Space<'b, F> {
        Space { tables, above: Some(self) }
    }

    /// Returns true if the pair is emitted from this space.
    #[inline]
    fn owns(&self, differing: F) -> bool {
        let mut space = self;
        while let Some(above) = space.above {
            if !space.tables.iter().any(|table| table.owner.owns(differing)) {
                return false;
            }
            space = above;
        }
        true
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

    pub(super) fn smallest_split(&self) -> u64 {
        self.run.smallest_split
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
