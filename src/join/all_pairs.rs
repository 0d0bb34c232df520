//! All pairs: a set that no split makes cheaper is compared member by member.
//!
//! Tiles keep one part of the set in the first-level cache while many members pass over it.

use std::ops::Range;

use rayon::prelude::*;

use super::report::JoinReport;
use super::sink::{Run, Sink, Space};
use super::sweep::share;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::kernel::{self, Work};
use crate::progress;

/// Members of a tile: half of a usual first-level cache.
const TILE_BYTES: usize = 16 << 10;
/// Members that one task compares with all later ones.
const ROWS: usize = 256;

/// Finds all pairs of a set by comparing them all.
pub(super) fn pairs<F: Fingerprint>(
    run: &Run<'_, F>,
    space: &Space<'_, F>,
    members: &[F],
    units: u64,
) -> Result<JoinReport> {
    let len = members.len() as u64;
    // Each row is compared with those after it; counting itself too, no row is without work.
    let work_before =
        |row: usize| row as u64 * len - (row as u64 * (row as u64).saturating_sub(1)) / 2;
    (0..members.len().div_ceil(ROWS))
        .into_par_iter()
        .map(|task| {
            progress::check(run.progress)?;
            let rows = task * ROWS..((task + 1) * ROWS).min(members.len());
            let part = work_before(rows.start)..work_before(rows.end);
            let mut sink = Sink::new(run, space);
            kernel::dispatch(Task { members, rows, sink: &mut sink });
            let found = sink.finish()?;
            run.progress.advance(share(units, part, work_before(members.len())));
            Ok(found)
        })
        .try_reduce(JoinReport::default, |a, b| Ok(a + b))
}

/// Compares some members with all later ones, tile by tile.
struct Task<'a, 'b, F> {
    members: &'a [F],
    rows: Range<usize>,
    sink: &'a mut Sink<'b, F>,
}

impl<F: Fingerprint> Work for Task<'_, '_, F> {
    type Output = ();

    #[allow(clippy::inline_always)]
    #[inline(always)]
    fn run(self) {
        let distance = self.sink.distance();
        let tile = TILE_BYTES / F::BYTES;
        for tile_start in (self.rows.start..self.members.len()).step_by(tile) {
            let tile_end = (tile_start + tile).min(self.members.len());
            for row in self.rows.clone() {
                let later = self.members.get(tile_start.max(row + 1)..tile_end);
                let (Some(&member), Some(later)) = (self.members.get(row), later) else { break };
                let sink = &mut *self.sink;
                sink.count(later.len() as u64);
                kernel::within_inlined(later, member, distance, &mut |at, distance| {
                    if let Some(&other) = later.get(at) {
                        sink.offer(member, other, distance);
                    }
                });
            }
            if self.sink.stopped() {
                break;
            }
        }
    }
}
