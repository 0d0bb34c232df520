//! All pairs: compares every member with every other if no split is cheaper.
//!
//! Works in tiles, so that one tile stays in the first-level cache while many rows are compared
//! with it.

use std::ops::Range;

use rayon::prelude::*;

use super::sink::{Run, Sink, Space};
use super::sweep::share;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::join::JoinReport;
use crate::kernel::{self, Work};
use crate::progress;

/// Size of a tile: half of a typical first-level cache.
const TILE_BYTES: usize = 16 << 10;
/// Rows of a task; each is compared with all others, or with all later rows of the same set.
const ROWS: usize = 256;

/// Finds all pairs within a set, or between two sets, by comparing everything.
pub(super) fn pairs<F: Fingerprint, const S: usize>(
    run: &Run<'_, F>,
    space: &Space<'_, F>,
    sets: [&[F]; S],
    units: u64,
) -> Result<JoinReport> {
    let (rows, others, across) = match sets.as_slice() {
        [one] => (*one, *one, false),
        [a, b] => (*a, *b, true),
        _ => unreachable!("a join is of one set or two"),
    };
    let len = others.len() as u64;
    // A row counts itself too, so that no row of a set has zero work.
    let work_before = |row: usize| {
        let row = row as u64;
        if across { row } else { row * len - (row * row.saturating_sub(1)) / 2 }
    };
    if rows.is_empty() {
        run.progress.advance(units);
    }
    (0..rows.len().div_ceil(ROWS))
        .into_par_iter()
        .map(|task| {
            progress::check(run.progress)?;
            let range = task * ROWS..((task + 1) * ROWS).min(rows.len());
            let part = work_before(range.start)..work_before(range.end);
            let mut sink = Sink::new(run, space);
            kernel::dispatch(Task { rows, range, others, across, sink: &mut sink });
            let found = sink.finish()?;
            run.progress.advance(share(units, part, work_before(rows.len())));
            Ok(found)
        })
        .try_reduce(JoinReport::default, |a, b| Ok(a + b))
}

/// Compares some rows with all others, or all later ones, tile by tile.
struct Task<'a, 'b, F> {
    rows: &'a [F],
    range: Range<usize>,
    others: &'a [F],
    across: bool,
    sink: &'a mut Sink<'b, F>,
}

impl<F: Fingerprint> Work for Task<'_, '_, F> {
    type Output = ();

    #[allow(clippy::inline_always)]
    #[inline(always)]
    fn run(self) {
        let distance = self.sink.distance();
        let tile = TILE_BYTES / F::BYTES;
        let first = if self.across { 0 } else { self.range.start };
        for tile_start in (first..self.others.len()).step_by(tile) {
            let tile_end = (tile_start + tile).min(self.others.len());
            for row in self.range.clone() {
                let start = if self.across { tile_start } else { tile_start.max(row + 1) };
                if start >= tile_end {
                    // Later rows start even later.
                    break;
                }
                let (member, others) = (self.rows[row], &self.others[start..tile_end]);
                let sink = &mut *self.sink;
                sink.count(others.len() as u64);
                kernel::within_inlined(others, member, distance, &mut |at, distance| {
                    sink.offer(member, others[at], distance);
                });
            }
            if self.sink.stopped() {
                break;
            }
        }
    }
}
