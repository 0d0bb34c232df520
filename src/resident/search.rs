//! Searching resident tables: many buckets on their way from memory at once.
//!
//! Reading one bucket costs a cache miss of some 100 ns, most of it waiting. So buckets are asked
//! for a few probes before they are compared, across tables and across the queries of a batch.

use std::ops::Range;

use super::chain::{Chain, Route};
use super::cut::Parts;
use super::radii::Masks;
use super::table::{Columns, Table};
use crate::fingerprint::Fingerprint;
use crate::kernel::{LANES, LaneWork, Lanes};

/// The most tables of a set: one for each block of 128 bits.
pub(super) const MAX_TABLES: usize = 8;

/// Probes between asking for a bucket and comparing it.
const AHEAD: usize = 8;

/// A member within reach, as a query of a batch found it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hit<F> {
    /// Position of the query in its batch.
    pub(crate) query: usize,
    pub(crate) fingerprint: F,
    pub(crate) distance: u32,
}

/// The search of many queries at one distance.
pub(super) struct Sweep<'a, F> {
    pub(super) tables: &'a [Table],
    /// One for each query, or one for all.
    pub(super) routes: &'a [&'a Route],
    /// Flips of a bucket's bits, and of a cell's.
    pub(super) masks: &'a Masks,
    pub(super) cells: &'a Masks,
    pub(super) queries: &'a [F],
    /// Called so seldom that it need not be known when the search is compiled.
    pub(super) hit: &'a mut dyn FnMut(Hit<F>),
}

/// A bucket, or a cell of one, that was asked for.
#[derive(Debug, Clone, Default)]
pub(super) struct Probe<'a> {
    pub(super) range: Range<usize>,
    pub(super) chain: &'a Chain,
    pub(super) aim: Parts,
    pub(super) query: usize,
    pub(super) table: usize,
    pub(super) bucket: u32,
    pub(super) flips: u32,
}

/// Members that the first columns have not ruled out, 32 of them at a place.
#[derive(Debug, Clone, Default)]
struct Close<'a> {
    at: usize,
    near: u32,
    chain: &'a Chain,
    aim: Parts,
    query: usize,
    table: usize,
    bucket: u32,
    flips: u32,
}

/// What is on its way from memory.
pub(super) struct Underway<'a> {
    probes: Waiting<Probe<'a>>,
    closes: Waiting<Close<'a>>,
}

impl Underway<'_> {
    pub(super) fn new() -> Self {
        Self { probes: Waiting::new(), closes: Waiting::new() }
    }
}

/// Items that wait for memory; the oldest leaves when another comes.
struct Waiting<T> {
    items: [T; AHEAD],
    next: usize,
}

#[allow(clippy::inline_always)]
impl<T: Default> Waiting<T> {
    fn new() -> Self {
        Self { items: std::array::from_fn(|_| T::default()), next: 0 }
    }

    /// Takes in an item and returns the oldest, or an empty one before any has waited long enough.
    #[inline(always)]
    fn swap(&mut self, item: T) -> T {
        let place = self.next % AHEAD;
        self.next += 1;
        std::mem::replace(&mut self.items[place], item)
    }

    /// Returns the numbers of the items that still wait, the oldest first.
    #[inline(always)]
    fn left(&self) -> Range<usize> {
        self.next.saturating_sub(AHEAD)..self.next
    }

    /// Takes out the item of a number.
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
        let mut underway = Underway::new();
        self.prefetch_cells(&columns, 0);
        for query in 0..self.queries.len() {
            self.prefetch_cells(&columns, query + 1);
            for table in 0..self.tables.len() {
                self.probe_table(lanes, &columns, &mut underway, query, table);
            }
        }
        self.drain(lanes, &columns, underway);
    }
}

#[allow(clippy::inline_always)]
impl<'a, F: Fingerprint> Sweep<'a, F> {
    /// Returns the route of a query: its own, or the one of all.
    #[inline(always)]
    fn route(&self, query: usize) -> &'a Route {
        match self.routes {
            &[route] => route,
            routes => routes[query],
        }
    }

    /// Asks for the places of a query's buckets where the directories lie in memory themselves.
    #[inline(always)]
    fn prefetch_cells(&self, columns: &[Columns<'_>; MAX_TABLES], query: usize) {
        let Some(&query) = self.queries.get(query) else { return };
        for columns in columns.iter().take(self.tables.len()) {
            columns.prefetch_cells(query);
        }
    }

    /// Asks for all buckets that a query has in a table.
    #[inline(always)]
    fn probe_table<L: Lanes>(
        &mut self,
        lanes: L,
        columns: &[Columns<'_>; MAX_TABLES],
        underway: &mut Underway<'a>,
        query: usize,
        table: usize,
    ) {
        let (of_table, route) = (&columns[table], self.route(query));
        let Some(radius) = route.radii.of(table) else { return };
        let chain = &route.chains[table];
        let (masks, cells) = (self.masks, self.cells);
        let aim = of_table.cut().parts(self.queries[query]);
        for &mask in masks.within(radius) {
            let (bucket, flips) = (aim.bucket ^ mask, mask.count_ones());
            let (near_cells, ahead) = (cells.within(chain.first(flips)), chain.ahead(flips));
            for range in of_table.ranges(bucket, &aim, near_cells) {
                let probe = Probe { range, chain, aim, query, table, bucket, flips };
                self.ask(lanes, columns, underway, probe, ahead);
            }
        }
    }

    /// Asks for members, and compares those that were asked for some time ago.
    #[inline(always)]
    fn ask<L: Lanes>(
        &mut self,
        lanes: L,
        columns: &[Columns<'_>; MAX_TABLES],
        underway: &mut Underway<'a>,
        probe: Probe<'a>,
        ahead: usize,
    ) {
        columns[probe.table].prefetch(&probe.range, 0..ahead);
        let probe = underway.probes.swap(probe);
        self.compare(lanes, columns, &probe, underway);
    }

    /// Compares the first columns of some members; what is near waits for the others.
    #[inline(always)]
    pub(super) fn compare<L: Lanes>(
        &mut self,
        lanes: L,
        columns: &[Columns<'_>; MAX_TABLES],
        probe: &Probe<'a>,
        underway: &mut Underway<'a>,
    ) {
        let of_table = &columns[probe.table];
        let &Probe { ref range, chain, aim, query, table, bucket, flips } = probe;
        let ahead = chain.ahead(flips);
        let all = of_table.cut().columns();
        for at in range.clone().step_by(LANES) {
            let valid = u32::MAX >> LANES.saturating_sub(range.end - at);
            let near = near(lanes, of_table, chain, &aim, (at, valid, flips), ahead);
            if near == 0 {
                continue;
            }
            let close = Close { at, near, chain, aim, query, table, bucket, flips };
            if ahead >= all {
                self.report(of_table, &close, near);
                continue;
            }
            of_table.prefetch(&(at..at + LANES), ahead..all);
            let close = underway.closes.swap(close);
            self.look_closer(lanes, columns, &close);
        }
    }

    /// Compares all that still waits.
    #[inline(always)]
    pub(super) fn drain<L: Lanes>(
        &mut self,
        lanes: L,
        columns: &[Columns<'_>; MAX_TABLES],
        mut underway: Underway<'a>,
    ) {
        for number in underway.probes.left() {
            let probe = underway.probes.take(number);
            self.compare(lanes, columns, &probe, &mut underway);
        }
        for number in underway.closes.left() {
            let close = underway.closes.take(number);
            self.look_closer(lanes, columns, &close);
        }
    }

    /// Compares all columns of members that the first ones have not ruled out.
    #[inline(always)]
    fn look_closer<L: Lanes>(
        &mut self,
        lanes: L,
        columns: &[Columns<'_>; MAX_TABLES],
        close: &Close<'a>,
    ) {
        // What leaves first stands for no members.
        if close.near == 0 {
            return;
        }
        let of_table = &columns[close.table];
        let all = of_table.cut().columns();
        let from = (close.at, close.near, close.flips);
        let near = near(lanes, of_table, close.chain, &close.aim, from, all);
        if near != 0 {
            self.report(of_table, close, near);
        }
    }

    /// Reports members that an earlier table has not reported.
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

/// Compares the first `count` columns of 32 members and returns which of them are near.
///
/// `from` is the place, the members there that count, and the flips of their bucket.
#[allow(clippy::inline_always)]
#[inline(always)]
fn near<L: Lanes>(
    lanes: L,
    columns: &Columns<'_>,
    chain: &Chain,
    aim: &Parts,
    from: (usize, u32, u32),
    count: usize,
) -> u32 {
    let (at, mut near, flips) = from;
    let within = chain.within.map(|within| within.saturating_sub(flips));
    let mut steps = aim.columns.iter().zip(within).take(count).enumerate();
    let (_, (&of_first, threshold)) = steps.next().expect("one column at least is compared");
    let first = columns.column(0, at);
    near &= lanes.first_within(first, of_first, threshold);
    if near == 0 || count == 1 {
        return near;
    }
    if !L::WIDE && near.is_power_of_two() {
        let lane = near.trailing_zeros() as usize;
        let mut sum = 0;
        for (column, (&aim, threshold)) in aim.columns.iter().zip(within).take(count).enumerate() {
            sum += (columns.column(column, at)[lane] ^ aim).count_ones();
            if sum > threshold {
                return 0;
            }
        }
        return near;
    }
    let mut sums = lanes.sums(first, of_first);
    for (column, (&aim, threshold)) in steps {
        sums = lanes.add(sums, columns.column(column, at), aim);
        near &= lanes.within(sums, threshold);
        if near == 0 {
            break;
        }
    }
    near
}
