//! Batches: many queries are answered together, in the cheapest way.
//!
//! Memory answers if it holds the index. Otherwise the store's tables are swept in the order of the
//! queries' prefixes. If there are many queries or the distance is large, tables are built over the
//! queries instead, and one scan looks up every stored fingerprint in them.
//!
//! Source: Manku, Jain and Das Sarma, *Detecting near-duplicates for web crawling*, WWW 2007,
//! section 4, whose batches build tables over the queries and scan the stored fingerprints.
#![expect(
    clippy::indexing_slicing,
    reason = "queries are numbered here; one that slips must panic, not lose matches"
)]

use rayon::prelude::*;

use super::query::{Match, Query, SearchPath, Work, check_distance};
use super::reader::Reader;
use super::search::{Found, OfQuery};
use super::{query_tables, sorted_sweep};
use crate::error::Result;
use crate::exclusion;
use crate::fingerprint::Fingerprint;
use crate::index::Index;
use crate::resident::NearFingerprint;

/// Queries that one thread answers together.
const TOGETHER: usize = 256;
/// Batches with fewer queries are answered one by one.
const FEW: usize = 64;

impl<F: Fingerprint> Reader<F> {
    /// Answers many queries in parallel, in the order given.
    ///
    /// Queries of the same distance are answered together: thousands of queries cost far less than
    /// separate searches. Uses all threads of rayon's current pool.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
    /// use hamdex::Query;
    ///
    /// index.insert(b"page", 0xff)?;
    /// let queries = [Query::new(0xfe), Query::new(0xff00).distance(1)];
    /// let answers = index.reader()?.search_batch(&queries)?;
    /// assert_eq!((answers[0].len(), answers[1].len()), (1, 0));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Reader::search`]. The first error stops the batch.
    pub fn search_batch(&self, queries: &[Query<F>]) -> Result<Vec<Vec<Match<F>>>> {
        if exclusion::alone() {
            return queries.iter().map(|query| self.search(query.clone())).collect();
        }
        let mut kinds = Vec::with_capacity(queries.len());
        for (at, query) in queries.iter().enumerate() {
            let distance = query.effective_distance(self.header().distance)?;
            kinds.push(((distance, query.path), query.fingerprint, at));
        }
        // Documents are stored by fingerprint, so neighbours are read from one block.
        kinds.par_sort_unstable_by_key(|&((distance, path), fingerprint, _)| {
            (distance, path as u8, fingerprint)
        });
        let mut answers = vec![Vec::new(); queries.len()];
        for alike in kinds.chunk_by(|a, b| a.0 == b.0) {
            let ((distance, path), ..) = alike[0];
            let asked: Vec<&Query<F>> = alike.iter().map(|&(.., at)| &queries[at]).collect();
            let fingerprints: Vec<F> = asked.iter().map(|query| query.fingerprint).collect();
            let found = self.find_all(&fingerprints, distance, path)?;
            debug_assert_eq!(found.len(), asked.len(), "an answer for each query");
            let parts = asked.par_chunks(TOGETHER).zip(found.par_chunks(TOGETHER));
            let expanded = parts.map(|(queries, found)| {
                self.with_view(|view| {
                    let each = queries.iter().zip(found);
                    let packs = Some(self.packs());
                    each.map(|(query, found)| self.expand(view, found, query, packs)).collect()
                })
            });
            let expanded: Vec<Vec<Vec<Match<F>>>> = expanded.collect::<Result<_>>()?;
            for (matches, &(.., at)) in expanded.into_iter().flatten().zip(alike) {
                answers[at] = matches;
            }
        }
        Ok(answers)
    }

    /// Searches for many fingerprints in parallel, in the order given.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
    /// index.insert(b"page", 0xff)?;
    /// let near = index.reader()?.near_batch(&[0xfe, 0xff00], 3)?;
    /// assert_eq!((near[0].len(), near[1].len()), (1, 0));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Reader::near`].
    pub fn near_batch(
        &self,
        fingerprints: &[F],
        distance: u32,
    ) -> Result<Vec<Vec<NearFingerprint<F>>>> {
        check_distance::<F>(distance)?;
        if exclusion::alone() {
            return fingerprints.iter().map(|&near| self.near(near, distance)).collect();
        }
        let Some(resident) = self.resident() else {
            let found = self.find_all(fingerprints, distance, SearchPath::Auto)?;
            let stored = found.into_par_iter();
            return stored
                .map(|found| self.with_view(|view| self.only_stored(view, found)))
                .collect();
        };
        if let Some(tables) = resident.clean() {
            return tables.search_batch(fingerprints, distance);
        }
        let stored = fingerprints.par_chunks(TOGETHER).map(|some| {
            self.with_view(|view| {
                let held = resident.find(some, distance)?.into_iter();
                held.map(|held| crate::index::resident::only_stored(view, held))
                    .collect::<Result<Vec<_>>>()
            })
        });
        Ok(stored.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    }

    /// Finds the fingerprints near each query, each list sorted like search results.
    fn find_all(
        &self,
        fingerprints: &[F],
        distance: u32,
        path: SearchPath,
    ) -> Result<Vec<Vec<Found<F>>>> {
        let in_memory = matches!(path, SearchPath::Auto | SearchPath::Resident);
        if let Some(resident) = self.resident().filter(|_| in_memory) {
            let held = fingerprints.par_chunks(TOGETHER).map(|some| {
                #[cfg(test)]
                self.core().within_search.call();
                resident.find(some, distance)
            });
            let held = held.collect::<Result<Vec<_>>>()?;
            return Ok(held.into_iter().flatten().map(|held| held.found).collect());
        }
        if path != SearchPath::Auto || fingerprints.len() < FEW || self.is_empty() {
            let one = |&fingerprint: &F| {
                #[cfg(test)]
                self.core().within_search.call();
                let query = Query::new(fingerprint).path(path);
                self.with_view(|view| self.find(view, &query, distance, &mut Work::default()))
            };
            return fingerprints.par_iter().map(one).collect();
        }
        let core = self.core();
        let schedule = core.schedule(distance, self.len());
        let sweep = sorted_sweep::nanos(core, &schedule, self.len(), fingerprints.len());
        let scan = query_tables::nanos::<F>(&core.costs, distance, self.len(), fingerprints.len());
        if sweep <= scan {
            sorted_sweep::find(self, &schedule, fingerprints, distance)
        } else {
            query_tables::find(self, fingerprints, distance)
        }
    }
}

/// Assigns hits to their queries, sorted and without duplicates.
pub(super) fn assign<F: Fingerprint>(
    mut hits: Vec<OfQuery<F>>,
    queries: usize,
) -> Vec<Vec<Found<F>>> {
    hits.par_sort_unstable();
    hits.dedup();
    let mut found = vec![Vec::new(); queries];
    for of_query in hits.chunk_by(|a, b| a.0 == b.0) {
        found[of_query[0].0 as usize] = of_query.iter().map(|&(_, found)| found).collect();
    }
    found
}

impl<F: Fingerprint> Index<F> {
    /// Answers many queries in parallel, in the order given.
    ///
    /// [`Reader::search_batch`] has an example.
    ///
    /// ```
    /// use hamdex::Query;
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
    ///
    /// index.insert(b"page", 0xff)?;
    /// let answers = index.search_batch(&[Query::new(0xfe), Query::new(0xff00)])?;
    /// assert_eq!((answers[0].len(), answers[1].len()), (1, 0));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Reader::search_batch`].
    pub fn search_batch(&self, queries: &[Query<F>]) -> Result<Vec<Vec<Match<F>>>> {
        self.reader()?.search_batch(queries)
    }

    /// Searches for many fingerprints in parallel, in the order given.
    ///
    /// [`Reader::near_batch`] has an example.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
    /// index.insert(b"page", 0xff)?;
    /// let near = index.near_batch(&[0xfe, 0xff00], 3)?;
    /// assert_eq!((near[0][0].fingerprint, near[1].len()), (0xff, 0));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Reader::near_batch`].
    pub fn near_batch(
        &self,
        fingerprints: &[F],
        distance: u32,
    ) -> Result<Vec<Vec<NearFingerprint<F>>>> {
        self.reader()?.near_batch(fingerprints, distance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{Durability, IndexOptions};
    use crate::plan::Costs;

    /// Returns an index of runs and delta entries, half of it under one prefix, and its content.
    fn index<F: Fingerprint>(count: u64) -> (tempfile::TempDir, Index<F>, Vec<F>) {
        let mut rng = fastrand::Rng::with_seed(count);
        let mut stored: Vec<F> = (0..count)
            .map(|at| F::truncate(rng.u128(..)) >> if at % 2 == 0 { 12 } else { 0 })
            .collect();
        for at in 0..stored.len() / 3 {
            stored[at] = stored[at + 1] ^ F::truncate(1 << (at % 31));
        }
        let directory = tempfile::tempdir().unwrap();
        let index = Index::create(directory.path(), &IndexOptions::new()).unwrap();
        let (first, second) = stored.split_at(stored.len() / 2);
        for (part, offset) in [(first, 0), (second, 1 << 40)] {
            let keyed = part.iter().zip(offset..);
            let keyed: Vec<_> = keyed.map(|(&f, at): (_, u64)| (at.to_be_bytes(), f)).collect();
            index.insert_batch(&keyed, Durability::Buffered).unwrap();
            if offset == 0 {
                index.merge(&()).unwrap();
            }
        }
        stored.sort_unstable();
        stored.dedup();
        (directory, index, stored)
    }

    fn both_ways_agree<F: Fingerprint>(count: u64) {
        let (_directory, index, stored) = index::<F>(count);
        let reader = index.reader().unwrap();
        let mut rng = fastrand::Rng::with_seed(7);
        let mut queries = vec![F::ZERO, F::ONES, F::ZERO];
        for _ in 0..100 {
            queries.push(F::truncate(rng.u128(..)) >> 12);
            if let Some(near) = rng.choice(&stored) {
                queries.push(*near ^ F::truncate(rng.u128(..) & rng.u128(..) & rng.u128(..)));
            }
        }
        for distance in [0, 1, 3, F::MAX_DISTANCE / 2, F::MAX_DISTANCE] {
            let wanted: Vec<Vec<Found<F>>> = queries
                .iter()
                .map(|query| {
                    let found = stored.iter().map(|&near| (near.distance(*query), near));
                    let mut found: Vec<_> = found.filter(|near| near.0 <= distance).collect();
                    found.sort_unstable();
                    found
                })
                .collect();
            let context = format!("{count} fingerprints of {} bits, k = {distance}", F::BITS);
            let by_scan = query_tables::find(&reader, &queries, distance).unwrap();
            assert!(by_scan == wanted, "tables of the queries, {context}");
            let near = reader.near_batch(&queries, distance).unwrap();
            let near: Vec<Vec<Found<F>>> = near
                .iter()
                .map(|near| near.iter().map(|n| (n.distance, n.fingerprint)).collect())
                .collect();
            assert!(near == wanted, "the cheaper way, {context}");
            let schedule = reader.plan().schedule(distance, reader.len(), &Costs::default());
            if schedule.probes() < 5000 {
                let swept = sorted_sweep::find(&reader, &schedule, &queries, distance).unwrap();
                assert!(swept == wanted, "sorted sweep, {context}");
            }
        }
    }

    #[test]
    fn a_batch_finds_the_same_by_sweep_and_by_tables_of_its_own() {
        for count in [0, 1, 2, 3000] {
            both_ways_agree::<u32>(count);
            both_ways_agree::<u64>(count);
            both_ways_agree::<u128>(count);
        }
    }

    #[test]
    fn queries_of_unlike_distances_keep_their_places() {
        let (_directory, index, stored) = index::<u64>(500);
        let queries: Vec<Query<u64>> = (0..400)
            .map(|at| Query::new(stored[at % 7]).distance([0, 5, 10][at % 3]).limit(3))
            .collect();
        let together = index.search_batch(&queries).unwrap();
        for (query, answer) in queries.iter().zip(&together) {
            assert_eq!(&index.search(query.clone()).unwrap(), answer);
        }
    }

    #[test]
    fn many_queries_of_a_crowded_prefix_are_compared_by_tables() {
        let mut bucket: Vec<u64> = (0..600).map(|at| at * at * 0x9e37).collect();
        let queries = bucket.clone();
        let mut hits = Vec::new();
        let asked = (0..).zip(queries.iter().copied());
        sorted_sweep::compare_by_tables(&mut bucket, asked, 4, Costs::default(), &mut |q, d, f| {
            hits.push((q, (d, f)));
        })
        .unwrap();
        let found = assign(hits, queries.len());
        for (query, found) in queries.iter().zip(found) {
            let mut wanted: Vec<(u32, u64)> =
                queries.iter().map(|near| (near.distance(*query), *near)).collect();
            wanted.retain(|near| near.0 <= 4);
            wanted.sort_unstable();
            wanted.dedup();
            assert_eq!(found, wanted);
        }
    }
}
