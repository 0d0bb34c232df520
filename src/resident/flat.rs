//! Flat scans: members of small buckets are compared 32 at a time, wherever their buckets end.
//!
//! A bucket of a few members leaves most lanes idle. So the first table's own block is held as one
//! more column, for sets of up to two million.

use super::BLOCK_BITS;
use super::cut::MAX_COLUMNS;
use super::search::Hit;
use super::table::{Columns, Table};
use crate::fingerprint::Fingerprint;
use crate::kernel::{LANES, LaneWork, Lanes};

/// Queries that pass over the members of a block.
pub(super) const TOGETHER: usize = 64;

/// Members that a query passes over at once: four columns of them fill half a first-level cache,
/// and what stands for the query stays in registers all the while.
const BLOCK: usize = 64 * LANES;

/// Up to this distance two blocks rule out all of 32 random members nearly always.
const RULED_OUT_BY_TWO: u32 = 8;

/// The comparison of some queries with all members of a table.
pub(super) struct Flat<'a, F> {
    pub(super) table: &'a Table,
    /// The own block of each member, and as many more as are compared at once.
    pub(super) own: &'a [u16],
    pub(super) distance: u32,
    pub(super) queries: &'a [F],
    pub(super) hit: &'a mut dyn FnMut(Hit<F>),
}

/// What the members are compared with: a query's own block, and the others.
#[derive(Debug, Clone, Copy)]
struct Aim {
    query: usize,
    own: u16,
    others: [u16; MAX_COLUMNS],
}

/// Members of one block, column by column.
struct Block<'a> {
    /// Where it begins.
    start: usize,
    own: &'a [[u16; LANES]],
    others: [&'a [[u16; LANES]]; MAX_COLUMNS],
}

#[allow(clippy::inline_always)]
impl<F: Fingerprint> LaneWork for Flat<'_, F> {
    #[inline(always)]
    fn run<L: Lanes>(mut self, lanes: L) {
        let (columns, cut) = (self.table.columns(), self.table.cut());
        let aims = self.queries.iter().enumerate().map(|(query, &fingerprint)| {
            let parts = cut.parts(fingerprint);
            Aim { query, own: cut.own_of(&parts), others: parts.columns }
        });
        let aims: Vec<Aim> = aims.collect();
        let members = self.own.len() - LANES;
        for start in (0..members).step_by(BLOCK) {
            let count = (members - start).min(BLOCK).div_ceil(LANES);
            let block = Block {
                start,
                own: &self.own[start..].as_chunks().0[..count],
                others: std::array::from_fn(|column| columns.chunks(column, start, count)),
            };
            for &aim in &aims {
                self.compare(lanes, &columns, aim, &block);
            }
        }
    }
}

impl<F: Fingerprint> Flat<'_, F> {
    /// Counted by the width, so that the compiler knows how many columns there are.
    const OTHERS: usize = (F::BITS / BLOCK_BITS - 1) as usize;

    /// Compares a query with the members of a block, and reports those that are near.
    #[allow(clippy::inline_always)]
    #[inline(always)]
    fn compare<L: Lanes>(&mut self, lanes: L, columns: &Columns<'_>, aim: Aim, block: &Block<'_>) {
        let early = self.distance <= RULED_OUT_BY_TWO;
        let [next, others @ ..] = block.others;
        let [of_next, of_others @ ..] = aim.others;
        for (at, (own, next)) in block.own.iter().zip(next).enumerate() {
            let mut sums = lanes.add(lanes.sums(own, aim.own), next, of_next);
            if early && lanes.within(sums, self.distance) == 0 {
                continue;
            }
            for (column, of) in others.iter().zip(&of_others).take(Self::OTHERS - 1) {
                sums = lanes.add(sums, &column[at], *of);
            }
            let near = lanes.within(sums, self.distance);
            if near != 0 {
                let at = block.start + at * LANES;
                self.report(columns, at, aim.query, near);
            }
        }
    }

    #[inline(never)]
    fn report(&mut self, columns: &Columns<'_>, at: usize, query: usize, mut near: u32) {
        let (aim, cut) = (self.queries[query], columns.cut());
        let members = self.own.len() - LANES;
        near &= u32::MAX >> LANES.saturating_sub(members - at);
        while near != 0 {
            let lane = near.trailing_zeros() as usize;
            near &= near - 1;
            let bucket = cut.bucket(self.own[at + lane]);
            let fingerprint: F = cut.join(&columns.member(bucket, at + lane));
            let distance = fingerprint.distance(aim);
            (self.hit)(Hit { query, fingerprint, distance });
        }
    }
}
