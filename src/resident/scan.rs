//! Scanning resident tables: every member is compared, but for buckets that are too far.

use super::ResidentTables;
use super::chain::Route;
use super::flat::{self, Flat};
use super::search::{Hit, MAX_TABLES, Probe, Sweep, Underway};
use super::table::Columns;
use crate::fingerprint::Fingerprint;
use crate::kernel::{self, LaneWork, Lanes};

/// Queries that pass over a bucket while the first-level cache holds it.
const TOGETHER: usize = 8;

impl<F: Fingerprint> ResidentTables<F> {
    /// Compares queries with all members of the first table.
    pub(super) fn scan_for(&self, queries: &[F], distance: u32, hit: &mut dyn FnMut(Hit<F>)) {
        let table = self.first();
        if let Some(own) = &self.own_blocks {
            for (part, queries) in queries.chunks(flat::TOGETHER).enumerate() {
                let before = part * flat::TOGETHER;
                let hit = &mut |found: Hit<F>| hit(Hit { query: before + found.query, ..found });
                let own = own.as_slice();
                kernel::dispatch_lanes(Flat { table, own, distance, queries, hit });
            }
            return;
        }
        let route = Route::of_scan(table.cut().columns(), distance);
        for (part, some) in queries.chunks(TOGETHER).enumerate() {
            kernel::dispatch_lanes(Scan {
                distance,
                sweep: Sweep {
                    tables: std::slice::from_ref(table),
                    routes: &[&route],
                    masks: &self.masks,
                    cells: &self.cells,
                    queries: some,
                    hit: &mut |found: Hit<F>| {
                        hit(Hit { query: part * TOGETHER + found.query, ..found });
                    },
                },
            });
        }
    }
}

struct Scan<'a, F> {
    distance: u32,
    sweep: Sweep<'a, F>,
}

#[allow(clippy::inline_always)]
impl<F: Fingerprint> LaneWork for Scan<'_, F> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Self { distance, mut sweep } = self;
        let (table, chain) = (&sweep.tables[0], &sweep.routes[0].chains[0]);
        let mut columns = [Columns::EMPTY; MAX_TABLES];
        columns.fill(table.columns());
        let aims: Vec<_> = sweep.queries.iter().map(|query| table.cut().parts(*query)).collect();
        let mut underway = Underway::new();
        for bucket in (0..=u32::MAX).take(table.cut().buckets()) {
            let range = columns[0].range(bucket);
            for (query, &aim) in aims.iter().enumerate() {
                let flips = (aim.bucket ^ bucket).count_ones();
                if flips <= distance {
                    let range = range.clone();
                    let probe = Probe { range, chain, aim, query, table: 0, bucket, flips };
                    sweep.compare(lanes, &columns, &probe, &mut underway);
                }
            }
        }
        sweep.drain(lanes, &columns, underway);
    }
}
