//! Flat scans: compare 32 members at a time across bucket borders.
//!
//! A bucket with few members would leave most lanes unused. So sets of up to two million members
//! store the block of the first table as one more column.

use super::BLOCK_BITS;
use super::cut::MAX_COLUMNS;
use super::search::Hit;
use super::table::{Columns, Table};
use crate::fingerprint::Fingerprint;
use crate::kernel::{LANES, LaneWork, Lanes};

/// Number of queries that are compared with a block while it is cached.
pub(super) const QUERIES: usize = 64;

/// Members of a block. Four of its columns fill half of a first-level cache, and the query's
/// columns stay in registers.
const BLOCK: usize = 64 * LANES;

/// Up to this distance two blocks nearly always reject all of 32 random members.
const EARLY_EXIT_MAX: u32 = 8;

/// The comparison of some queries with all members of a table.
pub(super) struct Flat<'a, F> {
    pub(super) table: &'a Table,
    /// The table's block of each member, with padding of one lane group.
    pub(super) own: &'a [u16],
    pub(super) distance: u32,
    pub(super) queries: &'a [F],
    pub(super) hit: &'a mut dyn FnMut(Hit<F>),
}

/// The query that members are compared with: its block of the table, and the other blocks.
#[derive(Debug, Clone, Copy)]
struct Target {
    query: usize,
    own: u16,
    others: [u16; MAX_COLUMNS],
}

/// Members of one block, column by column.
struct Block<'a> {
    /// Index of the first member.
    start: usize,
    own: &'a [[u16; LANES]],
    others: [&'a [[u16; LANES]]; MAX_COLUMNS],
}

#[allow(clippy::inline_always)]
impl<F: Fingerprint> LaneWork for Flat<'_, F> {
    #[inline(always)]
    fn run<L: Lanes>(mut self, lanes: L) {
        let (columns, cut) = (self.table.columns(), self.table.cut());
        let targets = self.queries.iter().enumerate().map(|(query, &fingerprint)| {
            let parts = cut.parts(fingerprint);
            Target { query, own: cut.own_of(&parts), others: parts.columns }
        });
        let targets: Vec<Target> = targets.collect();
        let members = self.own.len() - LANES;
        for start in (0..members).step_by(BLOCK) {
            let count = (members - start).min(BLOCK).div_ceil(LANES);
            let block = Block {
                start,
                own: &self.own[start..].as_chunks().0[..count],
                others: std::array::from_fn(|column| columns.chunks(column, start, count)),
            };
            for &target in &targets {
                self.compare(lanes, &columns, target, &block);
            }
        }
    }
}

impl<F: Fingerprint> Flat<'_, F> {
    /// Number of other columns; a constant of the width, so that the compiler can unroll.
    const OTHERS: usize = (F::BITS / BLOCK_BITS - 1) as usize;

    /// Compares a query with the members of a block and reports hits.
    #[allow(clippy::inline_always)]
    #[inline(always)]
    fn compare<L: Lanes>(
        &mut self,
        lanes: L,
        columns: &Columns<'_>,
        target: Target,
        block: &Block<'_>,
    ) {
        let early = self.distance <= EARLY_EXIT_MAX;
        let [next, others @ ..] = block.others;
        let [of_next, of_others @ ..] = target.others;
        for (at, (own, next)) in block.own.iter().zip(next).enumerate() {
            let mut sums = lanes.add(lanes.sums(own, target.own), next, of_next);
            if early && lanes.within(sums, self.distance) == 0 {
                continue;
            }
            for (column, of) in others.iter().zip(&of_others).take(Self::OTHERS - 1) {
                sums = lanes.add(sums, &column[at], *of);
            }
            let near = lanes.within(sums, self.distance);
            if near != 0 {
                let at = block.start + at * LANES;
                self.report(columns, at, target.query, near);
            }
        }
    }

    #[inline(never)]
    fn report(&mut self, columns: &Columns<'_>, at: usize, query: usize, mut near: u32) {
        let (target, cut) = (self.queries[query], columns.cut());
        let members = self.own.len() - LANES;
        near &= u32::MAX >> LANES.saturating_sub(members - at);
        while near != 0 {
            let lane = near.trailing_zeros() as usize;
            near &= near - 1;
            let bucket = cut.bucket(self.own[at + lane]);
            let fingerprint: F = cut.join(&columns.member(bucket, at + lane));
            let distance = fingerprint.distance(target);
            (self.hit)(Hit { query, fingerprint, distance });
        }
    }
}
