//! Scans of resident tables: compare every member, except for buckets that are too far.

use super::ResidentTables;
use super::chain::Route;
use super::flat::{self, Flat};
use super::search::{Hit, MAX_TABLES, Pending, Probe, Sweep};
use super::table::Columns;
use crate::fingerprint::Fingerprint;
use crate::kernel::{self, LaneWork, Lanes};

/// Number of queries that are compared with a bucket while it is cached.
const QUERIES: usize = 8;

impl<F: Fingerprint> ResidentTables<F> {
    /// Compares queries with all members of the first table.
    pub(super) fn scan_for(&self, queries: &[F], distance: u32, hit: &mut dyn FnMut(Hit<F>)) {
        let table = self.first();
        if let Some(own) = &self.own_blocks {
            for (part, queries) in queries.chunks(flat::QUERIES).enumerate() {
                let before = part * flat::QUERIES;
                let hit = &mut |found: Hit<F>| hit(Hit { query: before + found.query, ..found });
                let own = own.as_slice();
                kernel::dispatch_lanes(Flat { table, own, distance, queries, hit });
            }
            return;
        }
        let route = Route::of_scan(table.cut().columns(), distance);
        for (part, some) in queries.chunks(QUERIES).enumerate() {
            kernel::dispatch_lanes(Scan {
                distance,
                sweep: Sweep {
                    tables: std::slice::from_ref(table),
                    routes: &[&route],
                    masks: &self.masks,
                    cells: &self.cells,
                    queries: some,
                    hit: &mut |found: Hit<F>| {
                        hit(Hit { query: part * QUERIES + found.query, ..found });
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
        let targets: Vec<_> = sweep.queries.iter().map(|query| table.cut().parts(*query)).collect();
        let mut pending = Pending::new();
        for bucket in (0..=u32::MAX).take(table.cut().buckets()) {
            let range = columns[0].range(bucket);
            for (query, &target) in targets.iter().enumerate() {
                let flips = (target.bucket ^ bucket).count_ones();
                if flips <= distance {
                    let range = range.clone();
                    let probe = Probe { range, chain, target, query, table: 0, bucket, flips };
                    sweep.compare(lanes, &columns, &probe, &mut pending);
                }
            }
        }
        sweep.drain(lanes, &columns, pending);
    }
}
