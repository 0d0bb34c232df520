//! Probing: runs one query against the store, on one thread or, if it is expensive, on all.

mod waits;

use std::sync::Arc;
use std::time::Instant;

use rayon::ThreadPool;
use rayon::prelude::*;

use super::deltas::Deltas;
use super::query::{Query, SearchPath, TableExplanation, Work};
use super::reader::{Reader, nanos};
use super::search::{Found, OfQuery, Search, distinct};
use super::sorted_sweep::compare_by_tables;
use crate::error::{Error, Result};
use crate::exclusion;
use crate::fingerprint::Fingerprint;
use crate::kernel;
use crate::plan::{Plan, Schedule, probe_masks};
use crate::store::{View, run};

pub(in crate::index) use self::waits::Waits;

/// Searches expected to take less, in nanoseconds, stay on one thread.
const LARGE: f64 = 200_000.0;
/// Ranges with fewer bytes are in a few blocks of a file, which are read one by one as fast.
const FEW_BYTES: usize = 16 << 10;
/// Maximum bytes that are read at once; more would save nothing.
const AT_ONCE_MAX: usize = 256 << 10;
/// Ranges that one thread reads in sequence.
const TOGETHER: usize = 32;
/// Parts of a scan per thread. Each part begins with a seek.
const PARTS: usize = 4;

/// What a search of the store looks for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<F> {
    pub(super) query: F,
    pub(super) distance: u32,
}

/// Returns how many threads to use for a search that takes `nanos` on one thread.
pub(super) fn threads(nanos: f64) -> f64 {
    if exclusion::alone() || nanos < LARGE { 1.0 } else { rayon::current_num_threads() as f64 }
}

/// Returns how many bytes of a file a range of each table takes, 0 if few.
pub(super) fn range_bytes<F: Fingerprint>(
    plan: &Plan,
    documents: u64,
) -> impl Iterator<Item = usize> {
    let tables = plan.tables().iter();
    tables.map(move |table| bytes_of_range(F::BITS, table.prefix_bits(), documents))
}

/// Returns how many bytes of a file a range takes if fingerprints are even, 0 if few.
fn bytes_of_range(bits: u32, prefix_bits: u32, documents: u64) -> usize {
    // Members take the bits in which neighbours differ, and some more.
    let bits = bits + 6 - documents.max(1).ilog2().min(bits);
    let members = documents.checked_shr(prefix_bits).unwrap_or(0);
    let bytes = members.saturating_mul(bits.into()) / 8;
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX).min(AT_ONCE_MAX);
    if bytes < FEW_BYTES { 0 } else { bytes }
}

impl<F: Fingerprint> Reader<F> {
    /// Finds fingerprints, some of which may have no document in this snapshot.
    pub(super) fn find(
        &self,
        view: &mut View,
        query: &Query<F>,
        distance: u32,
        work: &mut Work,
    ) -> Result<Vec<Found<F>>> {
        if self.is_empty() {
            return Ok(Vec::new());
        }
        let fingerprint = query.fingerprint;
        let in_memory = matches!(query.path, SearchPath::Auto | SearchPath::Resident);
        if let Some(resident) = self.resident().filter(|_| in_memory) {
            return resident.find_one(fingerprint, distance);
        }
        let mut found = Vec::new();
        if !self.unmerged()?.find(fingerprint, distance, &mut found)? {
            self.by_delta_entries(fingerprint, distance, &mut found)?;
        }
        let asked = Asked { query: fingerprint, distance };
        let choice = self.choose(query, distance)?;
        let stored = match choice.path {
            SearchPath::Resident => return Err(not_resident()),
            SearchPath::Scan => self.by_scan(view, asked, work)?,
            SearchPath::Auto | SearchPath::Tables => {
                self.by_tables(view, asked, &choice.schedule, work)?
            }
        };
        if found.is_empty() {
            return Ok(stored);
        }
        found.extend(stored);
        Ok(distinct(found))
    }

    /// Compares a query with all delta entries, which memory could not hold.
    fn by_delta_entries(&self, query: F, distance: u32, found: &mut Vec<Found<F>>) -> Result<()> {
        Deltas::each_piece(self.snapshot(), self.plan().tables(), |piece| {
            kernel::within(piece, query, distance, &mut |at, apart| {
                found.extend(piece.get(at).map(|near| (apart, *near)));
            });
            Ok(())
        })
    }

    /// Finds the unmerged fingerprints near each query, each with the query's number.
    pub(super) fn unmerged_near(&self, queries: &[F], distance: u32) -> Result<Vec<OfQuery<F>>> {
        if let Some(found) = self.unmerged()?.find_batch(queries, distance)? {
            return Ok(found);
        }
        let mut found = Vec::new();
        Deltas::each_piece(self.snapshot(), self.plan().tables(), |piece| {
            let asked = (0..).zip(queries.iter().copied());
            let hit = &mut |query, apart, near| found.push((query, (apart, near)));
            compare_by_tables(piece, asked, distance, self.costs(), hit)
        })?;
        Ok(found)
    }

    /// Chooses the path of a search.
    pub(super) fn choose(&self, query: &Query<F>, distance: u32) -> Result<Choice> {
        let schedule = self.core().schedule_for(query.fingerprint, distance, self.len());
        let shared = |nanos| nanos / threads(nanos);
        let tables_nanos = shared(schedule.nanos());
        let scan_nanos = shared(self.core().costs.scan_nanos(self.len()));
        let path = match query.path {
            SearchPath::Auto if self.resident().is_some() => SearchPath::Resident,
            SearchPath::Auto if scan_nanos < tables_nanos => SearchPath::Scan,
            SearchPath::Auto => SearchPath::Tables,
            SearchPath::Resident if self.resident().is_none() => return Err(not_resident()),
            SearchPath::Resident | SearchPath::Tables | SearchPath::Scan => query.path,
        };
        Ok(Choice { path, schedule, tables_nanos, scan_nanos })
    }

    /// Probes the tables as scheduled. The result is sorted by distance, without duplicates.
    pub(super) fn by_tables(
        &self,
        view: &mut View,
        asked: Asked<F>,
        schedule: &Schedule,
        work: &mut Work,
    ) -> Result<Vec<Found<F>>> {
        debug_assert_eq!(self.plan().tables().len(), schedule.radii().len(), "a radius a table");
        let counting = work.count_blocks;
        let tables = self.plan().tables().iter().zip(schedule.radii()).enumerate();
        let masks = |prefix_bits, radius: Option<u32>| {
            radius.map(|radius| probe_masks(prefix_bits, radius)).into_iter().flatten()
        };
        let of_plan = tables.clone().map(|(table, (plan, radius))| TableExplanation {
            table,
            prefix_bits: plan.prefix_bits(),
            radius: *radius,
            ..TableExplanation::default()
        });
        work.tables.extend(of_plan);
        let mut found = Vec::new();
        let (waits, costs) = (&self.core().waits, self.costs());
        let comparing = |candidates: u64| nanos(candidates as f64 * costs.candidate_ns);
        let alone = threads(schedule.nanos()) <= 1.0;
        let waiting = self.waiting(schedule.probes());
        if alone && waiting.is_none() {
            let mut search = self.search_in(view, asked, counting);
            let mut members = Vec::with_capacity(2 * run::RUN_MEMBERS);
            let (start, mut candidates) = (Instant::now(), 0);
            for (table, (plan, radius)) in tables.filter(|(_, (_, radius))| radius.is_some()) {
                let masks = masks(plan.prefix_bits(), *radius);
                let counts = search.probe(table, masks, &mut members, &mut found)?;
                candidates += counts.candidates;
                count(work, table, &counts);
            }
            waits.learn(schedule.probes(), start.elapsed(), comparing(candidates));
            return Ok(distinct(found));
        }
        let together = waiting.map_or(TOGETHER, |_| waits::together(schedule.probes()));
        let mut parts: Vec<(usize, Vec<u128>)> = Vec::new();
        for (table, (plan, radius)) in tables {
            let all: Vec<u128> = masks(plan.prefix_bits(), *radius).collect();
            parts.extend(all.chunks(together).map(|part| (table, part.to_vec())));
        }
        let read = || {
            let parts = parts.into_par_iter().with_max_len(1).map(|(table, masks)| {
                self.with_view(|view| {
                    #[cfg(test)]
                    self.core().within_search.call();
                    let (start, ranges) = (Instant::now(), masks.len() as u64);
                    let mut found = Vec::new();
                    let mut search = self.search_in(view, asked, counting);
                    let counts = search.probe(table, masks, &mut Vec::new(), &mut found)?;
                    waits.learn(ranges, start.elapsed(), comparing(counts.candidates));
                    Ok((table, counts, found))
                })
            });
            parts.collect::<Result<Vec<_>>>()
        };
        let parts = match waiting {
            Some(pool) => pool.install(read),
            None => read(),
        };
        for (table, counts, part) in parts? {
            count(work, table, &counts);
            found.extend(part);
        }
        Ok(distinct(found))
    }

    /// Compares the query with every member of a run of the first table.
    pub(super) fn by_scan(
        &self,
        view: &mut View,
        asked: Asked<F>,
        work: &mut Work,
    ) -> Result<Vec<Found<F>>> {
        let counting = work.count_blocks;
        work.tables.push(TableExplanation::default());
        let mut found = Vec::new();
        if threads(self.core().costs.scan_nanos(self.len())) <= 1.0 {
            let mut search = self.search_in(view, asked, counting);
            let counts = search.scan(F::ZERO, F::ONES, &mut found)?;
            count(work, 0, &counts);
            return Ok(distinct(found));
        }
        let bits = (PARTS * rayon::current_num_threads()).next_power_of_two().ilog2();
        let mask = F::high_mask(bits);
        let parts = (0..1_u128 << bits).into_par_iter().map(|part| {
            let low = F::truncate(part) << (F::BITS - bits);
            self.with_view(|view| {
                let mut found = Vec::new();
                let mut search = self.search_in(view, asked, counting);
                let counts = search.scan(low, low | !mask, &mut found)?;
                Ok((counts, found))
            })
        });
        for (counts, part) in parts.collect::<Result<Vec<_>>>()? {
            count(work, 0, &counts);
            found.extend(part);
        }
        Ok(distinct(found))
    }

    /// Returns the threads that read this many ranges or postings together, if these wait for files.
    fn waiting(&self, reads: u64) -> Option<&ThreadPool> {
        if reads < 2 || exclusion::alone() {
            return None;
        }
        self.core().waits.pool()
    }

    /// Reads the blocks of postings that are needed next, if they have to be waited for.
    ///
    /// A failure shows when the postings themselves are read.
    pub(super) fn read_ahead(&self, found: &[Found<F>]) {
        let Some(waiting) = self.waiting(found.len() as u64) else { return };
        let seek = |fingerprint: &F| {
            #[cfg(test)]
            self.core().within_search.call();
            let _ = self.with_view(|view| {
                view.postings().with(|cursor| {
                    cursor.seek(fingerprint.to_bytes().as_ref());
                    Ok(())
                })
            });
        };
        let each =
            || found.par_iter().with_max_len(1).for_each(|(_, fingerprint)| seek(fingerprint));
        waiting.install(each);
    }

    fn search_in<'a>(
        &'a self,
        view: &'a mut View,
        asked: Asked<F>,
        counting: bool,
    ) -> Search<'a, F> {
        Search {
            view,
            tables: self.plan().tables(),
            query: asked.query,
            distance: asked.distance,
            skewed: &self.core().skewed,
            ranges: (!counting).then(|| self.ranges()),
            entries: self.len(),
            count_blocks: counting,
        }
    }
}

/// The path of a search and the expected costs of tables and scan.
pub(super) struct Choice {
    pub(super) path: SearchPath,
    pub(super) schedule: Arc<Schedule>,
    pub(super) tables_nanos: f64,
    pub(super) scan_nanos: f64,
}

fn not_resident() -> Error {
    Error::InvalidOption {
        name: "path",
        reason: "resident, but the fingerprints are not in memory; load them, or allow \
                 them more memory"
            .to_owned(),
    }
}

/// Adds the counts of a part of the work to its table.
fn count(work: &mut Work, table: usize, done: &TableExplanation) {
    if let Some(sum) = work.tables.iter_mut().find(|sum| sum.table == table) {
        sum.add(done);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Condvar, Mutex};
    use std::time::Duration;

    use super::*;
    use crate::index::{Index, IndexOptions};

    /// Makes the next searches believe that ranges wait for files.
    fn slow_down(index: &Index<u64>) {
        for _ in 0..32 {
            index.reader().unwrap().core().waits.learn(1, Duration::MAX, Duration::ZERO);
        }
    }

    #[test]
    fn while_files_are_waited_for_all_tables_and_then_all_postings_are_read_together() {
        let directory = tempfile::tempdir().unwrap();
        let index = Index::<u64>::create(directory.path(), &IndexOptions::new()).unwrap();
        for bit in 0..8_u8 {
            index.insert(&[bit], 1 << bit).unwrap();
        }
        slow_down(&index);
        let arrived = Arc::new((Mutex::new(Vec::new()), Condvar::new()));
        let all = Arc::clone(&arrived);
        let reader = index.reader().unwrap();
        // Nobody leaves before all of them have come: the four tables, later the eight postings.
        let hook = Box::new(move || {
            let (names, changed) = &*arrived;
            let mut names = names.lock().unwrap();
            names.push(std::thread::current().name().map(str::to_owned));
            let expected = if names.len() <= 4 { 4 } else { 12 };
            changed.notify_all();
            let few = |names: &mut Vec<_>| names.len() < expected;
            let (names, late) =
                changed.wait_timeout_while(names, Duration::from_secs(20), few).unwrap();
            assert!(!late.timed_out(), "one after the other: {names:?}");
        });
        reader.core().within_search.0.set(hook).ok().unwrap();
        let query = Query::new(0).path(SearchPath::Tables);
        assert_eq!(reader.search(query).unwrap().len(), 8);
        let names = all.0.lock().unwrap();
        let of_pool = |name: &Option<String>| name.as_ref().unwrap().starts_with("hamdex-read-");
        assert!(names.len() == 12 && names.iter().all(of_pool), "{names:?}");
    }

    #[test]
    fn searches_that_wait_for_files_find_what_a_scan_finds() {
        let mut rng = fastrand::Rng::with_seed(71);
        for count in [0, 1, 5000] {
            let directory = tempfile::tempdir().unwrap();
            let options = IndexOptions::new().plan(Plan::named("10", 64).unwrap());
            let index = Index::<u64>::create(directory.path(), &options).unwrap();
            let stored: Vec<u64> = (0..count).map(|_| rng.u64(..)).collect();
            for (key, fingerprint) in stored.iter().enumerate() {
                index.insert(&key.to_be_bytes(), *fingerprint).unwrap();
            }
            index.merge(&()).unwrap();
            for distance in [0, 3, 7] {
                for query in stored.iter().take(20).map(|f| f ^ 0x8100).chain([rng.u64(..)]) {
                    let reader = index.reader().unwrap();
                    let scanned = reader.near_by(query, distance, SearchPath::Scan).unwrap();
                    slow_down(&index);
                    let found = reader.near_by(query, distance, SearchPath::Tables).unwrap();
                    assert_eq!(found, scanned, "{count} {distance} {query:016x}");
                }
            }
        }
    }

    #[test]
    fn only_long_ranges_are_read_at_once() {
        let four =
            [0, 1, 10_000_000, 100_000_000].map(|documents| bytes_of_range(64, 16, documents));
        assert_eq!(four, [0; 4]);
        // A stored range of a billion takes 75,000 bytes.
        assert_eq!(bytes_of_range(64, 16, 1_000_000_000), 78_197);
        assert_eq!(bytes_of_range(64, 1, u64::MAX), 256 << 10);
        assert_eq!(bytes_of_range(32, 4, 100_000), 17_187);
        assert_eq!(bytes_of_range(32, 0, 1), 0);
    }
}
