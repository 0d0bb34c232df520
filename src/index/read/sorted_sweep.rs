//! Sorted sweep: reads the ranges of many queries in the order of each table's keys.
//!
//! Queries with the same prefix share one pass over its range, and adjacent ranges share runs. So a
//! batch that is dense in the table costs no more than one pass over it.
#![expect(
    clippy::indexing_slicing,
    reason = "queries are numbered here; one that slips must panic, not lose matches"
)]

use rayon::prelude::*;

use super::batch::assign;
use super::reader::Reader;
use super::search::{Found, OfQuery, flip};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::index::core::Core;
use crate::kernel;
use crate::plan::{Costs, Schedule, Table, probe_masks};
use crate::resident::ResidentTables;
use crate::store::keys::{self, Kind, TableKey};
use crate::store::{Cursor, Family, run};

/// Ranges sorted together.
const RANGES: u64 = 1 << 22;
/// Ranges that one thread reads in sequence.
const TOGETHER: usize = 1 << 12;
/// Comparisons above which tables over the members of a prefix are cheaper.
pub(in crate::index) const QUADRATIC: usize = 1 << 28;
/// Members of one prefix that a thread holds at a time, plus at most one run.
const PIECE: usize = if cfg!(any(test, feature = "model")) { 64 } else { 1 << 18 };

/// Returns the expected time of a sweep on one thread, in nanoseconds.
pub(super) fn nanos(core: &Core, schedule: &Schedule, entries: u64, queries: usize) -> f64 {
    let costs = &core.costs;
    let run = f64::from(costs.run_entries);
    let runs = entries as f64 / run;
    let ranges = schedule.probes() as f64 * queries as f64;
    let used = schedule.radii().iter().flatten().count() as f64;
    let candidates = schedule.candidates() * queries as f64;
    // Every range decodes its first and last run; dense ranges share them.
    let apart = ranges + candidates / run;
    let decoded = apart.min(runs * used);
    let seeks = decoded * (1.0 - decoded / (apart + runs * used));
    ranges * costs.range_ns
        + seeks * costs.seek_ns
        + decoded * run * costs.candidate_ns
        + candidates * costs.member_ns
}

/// Finds the fingerprints near each query, each list sorted like search results.
pub(super) fn find<F: Fingerprint>(
    reader: &Reader<F>,
    schedule: &Schedule,
    queries: &[F],
    distance: u32,
) -> Result<Vec<Vec<Found<F>>>> {
    let fewest = usize::try_from(RANGES / schedule.probes().max(1)).unwrap_or(usize::MAX);
    debug_assert_eq!(reader.plan().tables().len(), schedule.radii().len(), "a radius a table");
    let mut found = Vec::with_capacity(queries.len());
    for queries in queries.chunks(fewest.max(1)) {
        let mut hits = Vec::new();
        let tables = reader.plan().tables().iter().zip(schedule.radii()).enumerate();
        for (number, (table, radius)) in tables {
            let Some(radius) = *radius else { continue };
            hits.extend(of_table(reader, (number, table, radius), queries, distance)?);
        }
        hits.extend(reader.unmerged_near(queries, distance)?);
        found.extend(assign(hits, queries.len()));
    }
    Ok(found)
}

/// A target: the low end of a range to read, and the number of the query.
pub(crate) type Target<F> = (F, u32);

/// Returns the queries as a table has them, and the ranges to read, sorted.
pub(crate) fn targets<F: Fingerprint>(
    table: &Table,
    radius: u32,
    queries: &[F],
) -> (Vec<F>, Vec<Target<F>>) {
    let bits = table.prefix_bits();
    let prefix = F::high_mask(bits);
    let permuted: Vec<F> = queries.iter().map(|&q| table.permutation().apply(q)).collect();
    let masks: Vec<F> = probe_masks(bits, radius).map(|mask| flip(mask, bits)).collect();
    let mut targets: Vec<Target<F>> = Vec::with_capacity(permuted.len() * masks.len());
    for (at, &query) in (0..).zip(&permuted) {
        targets.extend(masks.iter().map(|&mask| ((query & prefix) ^ mask, at)));
    }
    targets.par_sort_unstable();
    (permuted, targets)
}

fn of_table<F: Fingerprint>(
    reader: &Reader<F>,
    (number, table, radius): (usize, &Table, u32),
    queries: &[F],
    distance: u32,
) -> Result<Vec<OfQuery<F>>> {
    let prefix = F::high_mask(table.prefix_bits());
    let (permuted, targets) = targets(table, radius, queries);
    let dense = targets.len() as u64 > reader.len() / run::RUN_MEMBERS as u64;
    let parts = targets.par_chunks(TOGETHER).map(|targets| {
        let cursor = reader.snapshot().probe(Family::Table(number), 0)?;
        let (members, last) = (Vec::new(), None);
        let runs = Runs { cursor, table: number, dense, members, last };
        let mut sweep = Sweep { runs, piece: Vec::new() };
        let mut hits = Vec::new();
        for alike in targets.chunk_by(|a, b| a.0 == b.0) {
            let (low, _) = alike[0];
            let mut hit = |at, distance, member| {
                hits.push((at, (distance, table.permutation().invert(member))));
            };
            sweep.read(low, low | !prefix, &mut |piece| {
                let asked = alike.iter().map(|&(_, at)| (at, permuted[at as usize]));
                if alike.len() * piece.len() > QUADRATIC {
                    let costs = reader.core().costs;
                    return compare_by_tables(piece, asked, distance, costs, &mut hit);
                }
                for (at, query) in asked {
                    kernel::within(piece, query, distance, &mut |member, distance| {
                        hit(at, distance, piece[member]);
                    });
                }
                Ok(())
            })?;
        }
        Ok(hits)
    });
    let parts: Vec<Vec<_>> = parts.collect::<Result<_>>()?;
    Ok(parts.concat())
}

/// Compares many queries with the members of a skewed prefix, by tables over these members.
pub(super) fn compare_by_tables<F: Fingerprint>(
    bucket: &mut Vec<F>,
    asked: impl Iterator<Item = (u32, F)>,
    distance: u32,
    costs: Costs,
    hit: &mut impl FnMut(u32, u32, F),
) -> Result<()> {
    bucket.sort_unstable();
    bucket.dedup();
    let tables = ResidentTables::of_distinct(bucket, ResidentTables::<F>::MOST_TABLES, costs)?;
    for (at, query) in asked {
        tables.sweep(&[query], distance, |found| hit(at, found.distance, found.fingerprint))?;
    }
    Ok(())
}

/// One thread's pass through a table, in ascending order of prefixes.
struct Sweep<'a, F> {
    runs: Runs<'a, F>,
    /// Members of the current range, unordered.
    piece: Vec<F>,
}

impl<F: Fingerprint> Sweep<'_, F> {
    /// Calls `visit` with the members from `low` to `high`, both included, piece by piece.
    fn read(
        &mut self,
        low: F,
        high: F,
        visit: &mut impl FnMut(&mut Vec<F>) -> Result<()>,
    ) -> Result<()> {
        let Self { runs, piece } = self;
        let mut pass = |piece: &mut Vec<F>, least: usize| {
            if piece.len() >= least {
                visit(piece)?;
                piece.clear();
            }
            Ok(())
        };
        piece.clear();
        runs.read(low, high, |members| {
            piece.extend(members);
            pass(piece, PIECE)
        })?;
        pass(piece, 1)
    }
}

/// A cursor over the runs of a table, with one decoded run.
struct Runs<'a, F> {
    cursor: Cursor<'a>,
    table: usize,
    /// Whether the next range is mostly in the next run, so that a step is cheaper than a seek.
    dense: bool,
    /// Members of the run under the cursor, last one first, down to the current range.
    members: Vec<F>,
    last: Option<F>,
}

impl<F: Fingerprint> Runs<'_, F> {
    /// Calls `visit` with members from `low` to `high`. Both bounds must not decrease between
    /// calls.
    fn read(&mut self, low: F, high: F, mut visit: impl FnMut(&[F]) -> Result<()>) -> Result<()> {
        if self.dense && self.last.is_some_and(|last| last < low) {
            self.cursor.next();
            self.decode(low)?;
        }
        if self.last.is_none_or(|last| last < low) {
            self.cursor.seek(TableKey::new(Kind::Run, low).as_ref());
            self.decode(low)?;
        }
        while let Some(last) = self.last {
            let above = self.members.partition_point(|&member| member > high);
            let end = self.members.partition_point(|&member| member >= low);
            visit(&self.members[above..end])?;
            if last >= high {
                break;
            }
            self.cursor.next();
            self.decode(low)?;
        }
        Ok(())
    }

    /// Decodes the run under the cursor. Sets `last` to `None` after the last run.
    fn decode(&mut self, low: F) -> Result<()> {
        self.last = None;
        if let Some((key, value)) = self.cursor.entry()?
            && let Some(last) = keys::permuted::<F>(key, Kind::Run, self.table)?
        {
            run::decode_down_to(low, last, value, self.table, &mut self.members)?;
            self.last = Some(last);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{Durability, Index, IndexOptions};

    #[test]
    fn a_crowded_prefix_is_read_in_pieces() {
        let directory = tempfile::tempdir().unwrap();
        let index = Index::<u64>::create(directory.path(), &IndexOptions::new()).unwrap();
        let documents: Vec<_> = (0_u64..5000).map(|at| (at.to_be_bytes(), at)).collect();
        index.insert_batch(&documents, Durability::Buffered).unwrap();
        index.merge(&()).unwrap();
        let reader = index.reader().unwrap();
        let cursor = reader.snapshot().probe(Family::Table(0), 0).unwrap();
        let (members, last) = (Vec::new(), None);
        let runs = Runs { cursor, table: 0, dense: false, members, last };
        let mut sweep = Sweep { runs, piece: Vec::new() };
        let mut read = Vec::new();
        sweep
            .read(0, 0xffff, &mut |piece: &mut Vec<u64>| {
                assert!(piece.len() < PIECE + 2 * run::RUN_MEMBERS, "{} at once", piece.len());
                read.append(piece);
                Ok(())
            })
            .unwrap();
        read.sort_unstable();
        let table = &reader.plan().tables()[0];
        let mut wanted: Vec<u64> = (0..5000).map(|at| table.permutation().apply(at)).collect();
        wanted.retain(|&member| member <= 0xffff);
        wanted.sort_unstable();
        assert!(wanted.len() > 1000);
        assert_eq!(read, wanted);
    }
}
