//! Scanning resident tables: every member is compared, but for buckets that are too far.

use super::ResidentTables;
use super::search::{Close, Hit, MAX_TABLES, Probe, Sweep, Waiting};
use super::table::Columns;
use crate::fingerprint::Fingerprint;
use crate::kernel::{self, LaneWork, Lanes};

/// Queries that pass over a bucket while the first-level cache holds it.
const TOGETHER: usize = 8;

impl<F: Fingerprint> ResidentTables<F> {
    /// Compares queries with all members of the first table.
    pub(super) fn scan_for(&self, queries: &[F], distance: u32, mut hit: impl FnMut(Hit<F>)) {
        for (part, some) in queries.chunks(TOGETHER).enumerate() {
            kernel::dispatch_lanes(Scan(Sweep {
                tables: self.tables.get(..1).unwrap_or(&[]),
                leads: &self.leads,
                radii: &[None],
                masks: &self.masks,
                queries: some,
                distance,
                hit: |found: Hit<F>| hit(Hit { query: part * TOGETHER + found.query, ..found }),
            }));
        }
    }
}

struct Scan<'a, F, H>(Sweep<'a, F, H>);

#[allow(clippy::inline_always)]
impl<F: Fingerprint, H: FnMut(Hit<F>)> LaneWork for Scan<'_, F, H> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Self(mut sweep) = self;
        let Some(table) = sweep.tables.first() else { return };
        let mut columns = [Columns::EMPTY; MAX_TABLES];
        columns.fill(table.columns());
        let aims: Vec<_> = sweep.queries.iter().map(|query| table.parts(*query)).collect();
        let mut closes = Waiting::<Close>::new();
        for bucket in 0..table.cut().buckets() {
            let Ok(bucket) = u32::try_from(bucket) else { break };
            let Some(range) = columns.first().map(|columns| columns.range(bucket)) else { break };
            for (query, &aim) in aims.iter().enumerate() {
                let flips = (aim.bucket ^ bucket).count_ones();
                if flips <= sweep.distance {
                    let range = range.clone();
                    let probe = Probe { range, aim, query, table: 0, bucket, flips };
                    sweep.compare(lanes, &columns, &probe, &mut closes);
                }
            }
        }
        sweep.drain(lanes, &columns, closes);
    }
}
