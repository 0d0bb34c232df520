//! Searching resident tables: overlaps the cache misses of many buckets.
//!
//! Reading a bucket costs a cache miss of about 100 ns. So buckets are prefetched a few probes
//! before they are compared, across tables and across the queries of a batch.

use std::ops::Range;

use super::chain::{Chain, Route};
use super::cut::Parts;
use super::radii::Masks;
use super::table::{Columns, Table};
use crate::fingerprint::Fingerprint;
use crate::kernel::{LANES, LaneWork, Lanes};

/// Maximum number of tables: one per block at 128 bits.
pub(super) const MAX_TABLES: usize = 8;

/// Number of probes between prefetching a bucket and comparing it.
const AHEAD: usize = 8;

/// A near member and the query of a batch that found it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hit<F> {
    /// Index of the query in its batch.
    pub(crate) query: usize,
    pub(crate) fingerprint: F,
    pub(crate) distance: u32,
}

/// The search of many queries at one distance.
pub(super) struct Sweep<'a, F> {
    pub(super) tables: &'a [Table],
    /// One route per query, or one for all.
    pub(super) routes: &'a [&'a Route],
    /// Flips of the bits of a bucket, and of a cell.
    pub(super) masks: &'a Masks,
    pub(super) cells: &'a Masks,
    pub(super) queries: &'a [F],
    /// A dynamic call, since hits are rare.
    pub(super) hit: &'a mut dyn FnMut(Hit<F>),
}

/// A prefetched bucket, or a cell of one.
#[derive(Debug, Clone, Default)]
pub(super) struct Probe<'a> {
    pub(super) range: Range<usize>,
    pub(super) chain: &'a Chain,
    pub(super) target: Parts,
    pub(super) query: usize,
    pub(super) table: usize,
    pub(super) bucket: u32,
    pub(super) flips: u32,
}

/// A group of 32 members, some of which passed the first columns.
#[derive(Debug, Clone, Default)]
struct Close<'a> {
    at: usize,
    near: u32,
    chain: &'a Chain,
    target: Parts,
    query: usize,
    table: usize,
    bucket: u32,
    flips: u32,
}

/// Prefetched probes and members that are not compared yet.
pub(super) struct Pending<'a> {
    probes: Queue<Probe<'a>>,
    closes: Queue<Close<'a>>,
}

impl Pending<'_> {
    pub(super) fn new() -> Self {
        Self { probes: Queue::new(), closes: Queue::new() }
    }
}

/// A fixed-length queue of prefetched items.
struct Queue<T> {
    items: [T; AHEAD],
    next: usize,
}

#[allow(clippy::inline_always)]
impl<T: Default> Queue<T> {
    fn new() -> Self {
        Self { items: std::array::from_fn(|_| T::default()), next: 0 }
    }

    /// Adds an item and returns the oldest one, or an empty item while the queue fills.
    #[inline(always)]
    fn swap(&mut self, item: T) -> T {
        let place = self.next % AHEAD;
        self.next += 1;
        std::mem::replace(&mut self.items[place], item)
    }

    /// Returns the numbers of the remaining items, the oldest first.
    #[inline(always)]
    fn left(&self) -> Range<usize> {
        self.next.saturating_sub(AHEAD)..self.next
    }

    /// Removes the item with a number.
    #[inline(always)]
    fn take(&mut self, number: usize) -> T {
        std::mem::take(&mut self.items[number % AHEAD])
    }
}

#[allow(clippy::inline_always)]
impl<F: Fingerprint> LaneWork for Sweep<'_, F> {
    #[inline(always)]
    fn run<L: Lanes>(mut self, lanes: L) {
        let mut columns = [Columns::EMPTY; MAX_TABLES];
        for (columns, table) in columns.iter_mut().zip(self.tables) {
            *columns = table.columns();
        }
        let mut pending = Pending::new();
        self.prefetch_cells(&columns, 0);
        for query in 0..self.queries.len() {
            self.prefetch_cells(&columns, query + 1);
            for table in 0..self.tables.len() {
                self.probe_table(lanes, &columns, &mut pending, query, table);
            }
        }
        self.drain(lanes, &columns, pending);
    }
}

#[allow(clippy::inline_always)]
impl<'a, F: Fingerprint> Sweep<'a, F> {
    /// Returns the route of a query.
    #[inline(always)]
    fn route(&self, query: usize) -> &'a Route {
        match self.routes {
            &[route] => route,
            routes => routes[query],
        }
    }

    /// Prefetches the directory entries of a query's buckets, if the directory is not cached.
    #[inline(always)]
    fn prefetch_cells(&self, columns: &[Columns<'_>; MAX_TABLES], query: usize) {
        let Some(&query) = self.queries.get(query) else { return };
        for columns in columns.iter().take(self.tables.len()) {
            columns.prefetch_cells(query);
        }
    }

    /// Prefetches all buckets that a query probes in a table.
    #[inline(always)]
    fn probe_table<L: Lanes>(
        &mut self,
        lanes: L,
        columns: &[Columns<'_>; MAX_TABLES],
        pending: &mut Pending<'a>,
        query: usize,
        table: usize,
    ) {
        let (of_table, route) = (&columns[table], self.route(query));
        let Some(radius) = route.radii.of(table) else { return };
        let chain = &route.chains[table];
        let (masks, cells) = (self.masks, self.cells);
        let target = of_table.cut().parts(self.queries[query]);
        for &mask in masks.within(radius) {
            let (bucket, flips) = (target.bucket ^ mask, mask.count_ones());
            let (near_cells, ahead) = (cells.within(chain.first(flips)), chain.ahead(flips));
            for range in of_table.ranges(bucket, &target, near_cells) {
                let probe = Probe { range, chain, target, query, table, bucket, flips };
                self.prefetch_probe(lanes, columns, pending, probe, ahead);
            }
        }
    }

    /// Prefetches members, and compares those that were prefetched some probes ago.
    #[inline(always)]
    fn prefetch_probe<L: Lanes>(
        &mut self,
        lanes: L,
        columns: &[Columns<'_>; MAX_TABLES],
        pending: &mut Pending<'a>,
        probe: Probe<'a>,
        ahead: usize,
    ) {
        columns[probe.table].prefetch(&probe.range, 0..ahead);
        let probe = pending.probes.swap(probe);
        self.compare(lanes, columns, &probe, pending);
    }

    /// Compares the first columns of some members; those that pass wait for the other columns.
    #[inline(always)]
    pub(super) fn compare<L: Lanes>(
        &mut self,
        lanes: L,
        columns: &[Columns<'_>; MAX_TABLES],
        probe: &Probe<'a>,
        pending: &mut Pending<'a>,
    ) {
        let of_table = &columns[probe.table];
        let &Probe { ref range, chain, target, query, table, bucket, flips } = probe;
        let ahead = chain.ahead(flips);
        let all = of_table.cut().columns();
        of_table.require(range, 0..ahead);
        for at in range.clone().step_by(LANES) {
            let valid = u32::MAX >> LANES.saturating_sub(range.end - at);
            let near = near(lanes, of_table, chain, &target, (at, valid, flips), ahead);
            if near == 0 {
                continue;
            }
            let close = Close { at, near, chain, target, query, table, bucket, flips };
            if ahead >= all {
                self.report(of_table, &close, near);
                continue;
            }
            of_table.prefetch(&(at..at + LANES), ahead..all);
            let close = pending.closes.swap(close);
            self.compare_rest(lanes, columns, &close);
        }
    }

    /// Compares all remaining items.
    #[inline(always)]
    pub(super) fn drain<L: Lanes>(
        &mut self,
        lanes: L,
        columns: &[Columns<'_>; MAX_TABLES],
        mut pending: Pending<'a>,
    ) {
        for number in pending.probes.left() {
            let probe = pending.probes.take(number);
            self.compare(lanes, columns, &probe, &mut pending);
        }
        for number in pending.closes.left() {
            let close = pending.closes.take(number);
            self.compare_rest(lanes, columns, &close);
        }
    }

    /// Compares all columns of members that passed the first ones.
    #[inline(always)]
    fn compare_rest<L: Lanes>(
        &mut self,
        lanes: L,
        columns: &[Columns<'_>; MAX_TABLES],
        close: &Close<'a>,
    ) {
        // An empty item from a queue that is still filling.
        if close.near == 0 {
            return;
        }
        let of_table = &columns[close.table];
        let all = of_table.cut().columns();
        of_table.require(&(close.at..close.at + LANES), close.chain.ahead(close.flips)..all);
        let from = (close.at, close.near, close.flips);
        let near = near(lanes, of_table, close.chain, &close.target, from, all);
        if near != 0 {
            self.report(of_table, close, near);
        }
    }

    /// Reports members that no earlier table reports.
    #[inline(never)]
    fn report(&mut self, columns: &Columns<'_>, close: &Close<'a>, mut near: u32) {
        let (query, route) = (self.queries[close.query], self.route(close.query));
        while near != 0 {
            let lane = near.trailing_zeros() as usize;
            near &= near - 1;
            let parts = columns.member(close.bucket, close.at + lane);
            let fingerprint: F = columns.cut().join(&parts);
            let differing = fingerprint ^ query;
            let mut earlier = self.tables.iter().zip(&route.chains).enumerate().take(close.table);
            let finds = |(number, (table, chain)): (usize, (&Table, &Chain))| {
                chain.finds(table.cut(), route.radii.of(number), differing)
            };
            if !earlier.any(finds) {
                let distance = fingerprint.distance(query);
                (self.hit)(Hit { query: close.query, fingerprint, distance });
            }
        }
    }
}

/// Compares the first `count` columns of 32 members and returns the mask of near ones.
///
/// `from` is the index of the members, the mask of valid ones, and the flips of their bucket.
#[allow(clippy::inline_always)]
#[inline(always)]
fn near<L: Lanes>(
    lanes: L,
    columns: &Columns<'_>,
    chain: &Chain,
    target: &Parts,
    from: (usize, u32, u32),
    count: usize,
) -> u32 {
    let (at, mut near, flips) = from;
    let within = chain.within.map(|within| within.saturating_sub(flips));
    let mut steps = target.columns.iter().zip(within).take(count).enumerate();
    let (_, (&of_first, threshold)) = steps.next().expect("at least one column is compared");
    let first = columns.column(0, at);
    near &= lanes.first_within(first, of_first, threshold);
    if near == 0 || count == 1 {
        return near;
    }
    if !L::WIDE && near.is_power_of_two() {
        let lane = near.trailing_zeros() as usize;
        let mut sum = 0;
        for (column, (&target, threshold)) in
            target.columns.iter().zip(within).take(count).enumerate()
        {
            sum += (columns.column(column, at)[lane] ^ target).count_ones();
            if sum > threshold {
                return 0;
            }
        }
        return near;
    }
    let mut sums = lanes.sums(first, of_first);
    for (column, (&target, threshold)) in steps {
        sums = lanes.add(sums, columns.column(column, at), target);
        near &= lanes.within(sums, threshold);
        if near == 0 {
            break;
        }
    }
    near
}
