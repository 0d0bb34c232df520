//! Flat scans: members of small buckets are compared 32 at a time, wherever their buckets end.
//!
//! A bucket of a few members leaves most lanes idle. So the first table's bits that name the
//! bucket are held as one more column, for sets of up to two million.

use super::search::Hit;
use super::table::Table;
use crate::fingerprint::Fingerprint;
use crate::kernel::{LANES, LaneWork, Lanes};

/// Queries that pass over some members while these are in registers and the first-level cache.
pub(super) const TOGETHER: usize = 64;

/// The comparison of some queries with all members of a table.
pub(super) struct Flat<'a, F, H> {
    pub(super) table: &'a Table,
    /// The leading bits of each member, and as many more as are compared at once.
    pub(super) leads: &'a [u16],
    pub(super) distance: u32,
    pub(super) queries: &'a [F],
    pub(super) hit: H,
}

#[allow(clippy::inline_always)]
impl<F: Fingerprint, H: FnMut(Hit<F>)> LaneWork for Flat<'_, F, H> {
    #[inline(always)]
    fn run<L: Lanes>(mut self, lanes: L) {
        let (columns, cut) = (self.table.columns(), self.table.cut());
        let aims = self.queries.iter().map(|query| cut.parts(*query));
        let aims: Vec<_> = aims.map(|aim| (cut.lead(aim.bucket), aim.columns)).collect();
        let members = self.leads.len().saturating_sub(LANES);
        for at in (0..members).step_by(LANES) {
            let leads = self.leads.get(at..).and_then(<[u16]>::first_chunk);
            let (Some(leads), Some(first)) = (leads, columns.column(0, at)) else { break };
            let valid = u32::MAX >> LANES.saturating_sub(members - at);
            for (query, (lead, [next, others @ ..])) in aims.iter().enumerate() {
                let mut sums = lanes.add(lanes.sums(leads, *lead), first, *next);
                // Half of the bits rule out nearly everything at all but large distances.
                if lanes.within(sums, self.distance) == 0 {
                    continue;
                }
                for (column, &aim) in (1..cut.columns()).zip(others) {
                    let Some(column) = columns.column(column, at) else { break };
                    sums = lanes.add(sums, column, aim);
                }
                let near = lanes.within(sums, self.distance) & valid;
                if near != 0 {
                    self.report(at, query, near, &lanes.distances(sums));
                }
            }
        }
    }
}

impl<F: Fingerprint, H: FnMut(Hit<F>)> Flat<'_, F, H> {
    #[inline(never)]
    fn report(&mut self, at: usize, query: usize, mut near: u32, distances: &[u16; LANES]) {
        let (columns, cut) = (self.table.columns(), self.table.cut());
        while near != 0 {
            let lane = near.trailing_zeros() as usize;
            near &= near - 1;
            let lead = self.leads.get(at + lane).copied().unwrap_or_default();
            let fingerprint = cut.join(&columns.member(cut.bucket(lead), at + lane));
            let distance = distances.get(lane).copied().map_or(0, u32::from);
            (self.hit)(Hit { query, fingerprint, distance });
        }
    }
}
