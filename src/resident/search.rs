//! Searching resident tables: many buckets on their way from memory at once.
//!
//! Reading one bucket costs a cache miss of some 100 ns, most of it waiting. So buckets are asked
//! for a few probes before they are compared, across tables and across the queries of a batch.

use std::ops::Range;

use super::cut::Parts;
use super::radii::Masks;
use super::table::{Columns, Table};
use crate::fingerprint::Fingerprint;
use crate::kernel::{LANES, LaneWork, Lanes};

/// The most tables of a set: those of all pairs of five blocks.
pub(super) const MAX_TABLES: usize = 10;

/// Probes between asking for a bucket and comparing it.
const AHEAD: usize = 8;

/// From this distance on heads rule out so few members that tails are asked for as well.
const DEEP: u32 = 9;

/// A member within reach, as a query of a batch found it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hit<F> {
    /// Position of the query in its batch.
    pub(crate) query: usize,
    pub(crate) fingerprint: F,
    pub(crate) distance: u32,
}

/// The search of many queries at one distance with the same radii.
pub(super) struct Sweep<'a, F, H> {
    pub(super) tables: &'a [Table],
    /// The bits of a fingerprint that name its bucket in every table.
    pub(super) leads: &'a [F],
    /// The radius of every table.
    pub(super) radii: &'a [Option<u32>],
    pub(super) masks: &'a Masks,
    pub(super) queries: &'a [F],
    pub(super) distance: u32,
    pub(super) hit: H,
}

/// A bucket that was asked for.
#[derive(Debug, Clone, Default)]
pub(super) struct Probe {
    pub(super) range: Range<usize>,
    pub(super) aim: Parts,
    pub(super) query: usize,
    pub(super) table: usize,
    pub(super) bucket: u32,
    pub(super) flips: u32,
}

/// Members whose heads are near, in one block of a table.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Close {
    at: usize,
    near: u32,
    aim: Parts,
    query: usize,
    table: usize,
    bucket: u32,
    flips: u32,
}

/// Items that wait for memory; the oldest leaves when another comes.
pub(super) struct Waiting<T> {
    items: [T; AHEAD],
    next: usize,
}

#[allow(clippy::inline_always)]
impl<T: Default> Waiting<T> {
    pub(super) fn new() -> Self {
        Self { items: std::array::from_fn(|_| T::default()), next: 0 }
    }

    /// Returns an item of rest after all that came have left.
    #[inline(always)]
    fn swap(&mut self, item: T) -> T {
        let place = self.items.get_mut(self.next % AHEAD);
        self.next += 1;
        place.map_or_else(T::default, |place| std::mem::replace(place, item))
    }
}

#[allow(clippy::inline_always)]
impl<F: Fingerprint, H: FnMut(Hit<F>)> LaneWork for Sweep<'_, F, H> {
    #[inline(always)]
    fn run<L: Lanes>(mut self, lanes: L) {
        let mut columns = [Columns::EMPTY; MAX_TABLES];
        for (columns, table) in columns.iter_mut().zip(self.tables) {
            *columns = table.columns();
        }
        let mut probes = Waiting::<Probe>::new();
        let mut closes = Waiting::<Close>::new();
        let deep = self.distance >= DEEP;
        for (query, &fingerprint) in self.queries.iter().enumerate() {
            let tables = self.tables.iter().zip(&columns).zip(self.radii).enumerate();
            for (table, ((parts, columns_of), radius)) in tables {
                let Some(radius) = *radius else { continue };
                let aim = parts.parts(fingerprint);
                for &mask in self.masks.within(radius.min(self.distance)) {
                    let bucket = aim.bucket ^ mask;
                    let range = columns_of.range(bucket);
                    columns_of.prefetch(&range, deep);
                    let flips = mask.count_ones();
                    let probe = probes.swap(Probe { range, aim, query, table, bucket, flips });
                    self.compare(lanes, &columns, &probe, &mut closes);
                }
            }
        }
        for _ in 0..AHEAD {
            let probe = probes.swap(Probe::default());
            self.compare(lanes, &columns, &probe, &mut closes);
        }
        self.drain(lanes, &columns, closes);
    }
}

#[allow(clippy::inline_always)]
impl<F: Fingerprint, H: FnMut(Hit<F>)> Sweep<'_, F, H> {
    /// Compares the heads of a bucket; what is near waits for its tails.
    #[inline(always)]
    pub(super) fn compare<L: Lanes>(
        &mut self,
        lanes: L,
        columns: &[Columns<'_>; MAX_TABLES],
        probe: &Probe,
        closes: &mut Waiting<Close>,
    ) {
        let Some(columns_of) = columns.get(probe.table) else { return };
        let &Probe { ref range, aim, query, table, bucket, flips } = probe;
        let threshold = self.distance - flips;
        for at in range.clone().step_by(LANES) {
            let Some(heads) = columns_of.heads(at) else { break };
            let valid = u32::MAX >> LANES.saturating_sub(range.end - at);
            let mut close = Close { at, near: valid, aim, query, table, bucket, flips };
            if self.distance < DEEP {
                close.near &= lanes.near(heads, aim.head, threshold);
                if close.near == 0 {
                    continue;
                }
                columns_of.prefetch_tails(&(at..at + LANES));
                close = closes.swap(close);
            }
            self.look_closer(lanes, columns, &close);
        }
    }

    /// Looks at all that still waits for its tails.
    #[inline(always)]
    pub(super) fn drain<L: Lanes>(
        &mut self,
        lanes: L,
        columns: &[Columns<'_>; MAX_TABLES],
        mut closes: Waiting<Close>,
    ) {
        for _ in 0..AHEAD {
            let close = closes.swap(Close::default());
            self.look_closer(lanes, columns, &close);
        }
    }

    /// Reports members whose tails are near too, unless an earlier table has reported them.
    #[inline(always)]
    fn look_closer<L: Lanes>(
        &mut self,
        lanes: L,
        columns: &[Columns<'_>; MAX_TABLES],
        close: &Close,
    ) {
        let Some(columns) = columns.get(close.table).filter(|_| close.near != 0) else { return };
        let Some(heads) = columns.heads(close.at) else { return };
        let threshold = self.distance - close.flips;
        let mut sums = lanes.sums(heads, close.aim.head);
        let mut near = close.near & lanes.within(sums, threshold);
        for (column, &tail) in close.aim.tails.iter().take(columns.cut().tails()).enumerate() {
            let Some(tails) = columns.tails(column, close.at) else { return };
            sums = lanes.add(sums, tails, tail);
            near &= lanes.within(sums, threshold);
            if near == 0 {
                return;
            }
        }
        let distances = lanes.distances(sums);
        while near != 0 {
            let lane = near.trailing_zeros() as usize;
            near &= near - 1;
            let distance = close.flips + distances.get(lane).copied().map_or(0, u32::from);
            self.report(columns, close, lane, distance);
        }
    }

    #[inline(never)]
    fn report(&mut self, columns: &Columns<'_>, close: &Close, lane: usize, distance: u32) {
        let Some(table) = self.tables.get(close.table) else { return };
        let parts = columns.member(close.bucket, close.at + lane);
        let fingerprint: F = table.join(&parts);
        let Some(&query) = self.queries.get(close.query) else { return };
        let differing = fingerprint ^ query;
        let mut earlier = self.leads.iter().zip(self.radii).take(close.table);
        let known = earlier.any(|(&lead, radius)| {
            radius.is_some_and(|radius| (differing & lead).distance(F::ZERO) <= radius)
        });
        if !known {
            (self.hit)(Hit { query: close.query, fingerprint, distance });
        }
    }
}
