//! Resident tables: a set of fingerprints in memory, searched at the speed of memory.
//!
//! One table for each block of 16 bits; a table keeps its members by bucket, the block's value,
//! and leaves out of them what the bucket says already. Every distance is answered by the same
//! tables: the cheapest radii that miss nothing are worked out for the distance, and for the query
//! where buckets are of very unequal size.
#![doc = include_str!("RESIDENT.md")]
#![expect(
    clippy::indexing_slicing,
    reason = "places and counts are made here; one that slips must panic, not lose matches"
)]

mod account;
mod chain;
mod cut;
mod flat;
mod radii;
mod routing;
mod scan;
mod search;
mod shells;
mod table;
#[cfg(test)]
mod tests;

use std::marker::PhantomData;

use rayon::prelude::*;
use rdst::RadixSort;

pub(crate) use self::account::{Account, TableAccount};
use self::chain::Route;
use self::cut::Cut;
use self::radii::Masks;
use self::routing::Routing;
pub(crate) use self::search::Hit;
use self::search::Sweep;
use self::shells::Shells;
use self::table::Table;
use crate::error::{Error, Result};
use crate::exclusion;
use crate::fingerprint::Fingerprint;
use crate::kernel::{self, LANES};
use crate::pages::Pages;
use crate::plan::Costs;

/// The bits of a block: 65,536 buckets a table, whose directory a second-level cache holds.
const BLOCK_BITS: u32 = 16;

/// Members that a bucket has on average, where there are few enough for smaller directories.
const BUCKET_MEMBERS_LOG2: u32 = 3;

/// With one table, a fingerprint's own block would be all that finds it.
const FEWEST_TABLES: u32 = 2;

/// Members of a bucket on average from which on it is sorted into cells, and those of a cell.
const CROWDED_LOG2: u32 = 9;
const CELL_MEMBERS_LOG2: u32 = 4;

/// The most queries of a batch that one thread answers together.
const BATCH: usize = 1024;

/// A stored fingerprint within the distance of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Near<F> {
    /// How many bits it differs from the query.
    pub distance: u32,
    /// The fingerprint.
    pub fingerprint: F,
}

/// Permutation tables of distinct fingerprints, held in memory.
///
/// Made once and never changed; any number of threads may search. Takes 6 bytes a fingerprint
/// and table at 64 bits, with four tables, and a megabyte for their directories, two where
/// fingerprints crowd, or up to a byte a fingerprint and table from 32 million on; below 2
/// million, 2 bytes a fingerprint more.
///
/// Sources: Manku, Jain and Das Sarma, *Detecting near-duplicates for web crawling*, WWW 2007
/// (tables); Norouzi, Punjani and Fleet, *Fast search in Hamming space with multi-index hashing*,
/// CVPR 2012 (flipped prefixes); Qin et al., *GPH*, ICDE 2018 (radii by cost); Qin and
/// Xiao, *Pigeonring*, VLDB 2018 (candidates dropped early).
///
/// ```
/// use hamdex::resident::ResidentTables;
///
/// let tables = ResidentTables::build(&[0b0000_u64, 0b0111, 0xffff])?;
/// let near = tables.search(0b0001, 2)?;
/// assert_eq!((near[0].fingerprint, near[0].distance), (0b0000, 1));
/// assert_eq!((near[1].fingerprint, near[1].distance), (0b0111, 2));
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug)]
pub struct ResidentTables<F> {
    tables: Vec<Table>,
    /// The own block of each member of the first table, where its buckets are small.
    own_blocks: Option<Pages<u16>>,
    /// Flips of a bucket's bits, and of a cell's.
    masks: Masks,
    cells: Masks,
    len: usize,
    routing: Routing,
    width: PhantomData<F>,
}

impl<F: Fingerprint> ResidentTables<F> {
    /// Holds a set of fingerprints; repeated ones count once.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] for 2^32 distinct fingerprints and more.
    pub fn build(fingerprints: &[F]) -> Result<Self> {
        let mut members = fingerprints.to_vec();
        members.radix_sort_unstable();
        members.dedup();
        Self::of_distinct(&members, Self::MOST_TABLES, Costs::default())
    }

    /// Holds a set of fingerprints in the tables that are fastest within a budget in bytes.
    ///
    /// `None` if nothing fits. Less memory means fewer tables than those of
    /// [`ResidentTables::build`], down to two.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] for 2^32 distinct fingerprints and more.
    ///
    /// ```
    /// use hamdex::resident::ResidentTables;
    ///
    /// let set: Vec<u64> = (0..1000).collect();
    /// let tables = ResidentTables::build_within(&set, 1 << 20)?.expect("a megabyte is enough");
    /// assert!(tables.bytes() < 1 << 20);
    /// assert!(ResidentTables::build_within(&set, 100)?.is_none());
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn build_within(fingerprints: &[F], budget: usize) -> Result<Option<Self>> {
        let mut members = fingerprints.to_vec();
        members.radix_sort_unstable();
        members.dedup();
        Self::of_distinct_within(&members, budget, Costs::default())
    }

    /// [`ResidentTables::build_within`] for what is distinct already.
    pub(crate) fn of_distinct_within(
        members: &[F],
        budget: usize,
        costs: Costs,
    ) -> Result<Option<Self>> {
        let len = members.len();
        let mut sizes = (FEWEST_TABLES..=Self::MOST_TABLES).rev();
        let Some(tables) = sizes.find(|&tables| Self::fits(len, tables, budget)) else {
            return Ok(None);
        };
        Self::of_distinct(members, tables, costs).map(Some)
    }

    /// Tells whether so many fingerprints fit into so many tables.
    fn fits(len: usize, tables: u32, budget: usize) -> bool {
        Self::bytes_of(len as u64, tables) <= budget as u64
    }

    /// Tells whether the fewest tables of so many fingerprints fit.
    pub(crate) fn could_fit(len: usize, budget: usize) -> bool {
        Self::fits(len, FEWEST_TABLES, budget)
    }

    /// One table for each block.
    pub(crate) const MOST_TABLES: u32 = F::BITS / BLOCK_BITS;

    /// Holds distinct fingerprints in so many tables.
    pub(crate) fn of_distinct(members: &[F], tables: u32, costs: Costs) -> Result<Self> {
        Self::of_distinct_with(members, tables, directory_bits(members.len()), costs)
    }

    /// [`ResidentTables::of_distinct`] with directories of so many bits.
    fn of_distinct_with(
        members: &[F],
        tables: u32,
        (bucket_bits, cell_bits): (u32, u32),
        costs: Costs,
    ) -> Result<Self> {
        if u32::try_from(members.len()).is_err() {
            let reason = format!("{} fingerprints, at most 4,294,967,295", members.len());
            return Err(Error::InvalidOption { name: "resident tables", reason });
        }
        debug_assert!(tables > 0, "a set without tables finds nothing");
        let blocks = 0..tables.min(Self::MOST_TABLES);
        let build = |block| Table::build(Cut::new::<F>(block, bucket_bits), cell_bits, members);
        let tables: Vec<Table> = if exclusion::alone() {
            blocks.map(build).collect()
        } else {
            blocks.into_par_iter().map(build).collect()
        };
        let routing = Routing::new::<F>(&tables, members.len(), (bucket_bits, cell_bits), costs);
        let flat = is_flat(members.len(), (bucket_bits, cell_bits)).then_some(&tables[0]);
        Ok(Self {
            own_blocks: flat.map(Table::own_blocks),
            tables,
            masks: Masks::new(bucket_bits),
            cells: Masks::new(cell_bits),
            len: members.len(),
            routing,
            width: PhantomData,
        })
    }

    /// Returns the expected time of one search among so many fingerprints, in nanoseconds.
    pub(crate) fn expected_nanos(len: usize, distance: u32, costs: &Costs) -> f64 {
        let directory = directory_bits(len);
        let scan = routing::scan_nanos(len, directory, costs);
        routing::usual_radii(len, Self::MOST_TABLES as usize, distance, directory, costs)
            .map_or(scan, |(_, nanos)| nanos.min(scan))
    }

    /// Returns the most bytes that `len` distinct fingerprints take in `tables` tables.
    pub(crate) fn bytes_of(len: u64, tables: u32) -> u64 {
        let count = usize::try_from(len).unwrap_or(usize::MAX);
        let (bucket_bits, cell_bits) = directory_bits(count);
        let cut = Cut::new::<F>(0, bucket_bits);
        let own = if is_flat(count, (bucket_bits, cell_bits)) { 2 * len } else { 0 };
        let of_table = Table::bytes_of(cut, cell_bits, len) + Shells::bytes_of(cut.buckets());
        u64::from(tables) * of_table + own
    }

    /// Returns the number of distinct fingerprints.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true when there is no fingerprint.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the bytes of memory that the tables take.
    pub fn bytes(&self) -> usize {
        let own = self.own_blocks.as_ref().map_or(0, Pages::bytes);
        self.tables.iter().map(Table::bytes).sum::<usize>() + self.routing.bytes() + own
    }

    /// Finds every fingerprint within the distance, nearest first, equally near ones rising.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidDistance`] above the width.
    pub fn search(&self, query: F, distance: u32) -> Result<Vec<Near<F>>> {
        let mut found = Vec::new();
        self.search_into(query, distance, &mut found)?;
        Ok(found)
    }

    /// [`ResidentTables::search`] into a list that is emptied first.
    ///
    /// # Errors
    ///
    /// As [`ResidentTables::search`].
    pub fn search_into(&self, query: F, distance: u32, found: &mut Vec<Near<F>>) -> Result<()> {
        found.clear();
        self.sweep(&[query], distance, |hit| {
            found.push(Near { distance: hit.distance, fingerprint: hit.fingerprint });
        })?;
        if found.len() > 1 {
            found.sort_unstable();
        }
        Ok(())
    }

    /// Answers many queries in parallel; answers come in the order of the queries.
    ///
    /// # Errors
    ///
    /// As [`ResidentTables::search`].
    pub fn search_batch(&self, queries: &[F], distance: u32) -> Result<Vec<Vec<Near<F>>>> {
        if exclusion::alone() {
            return queries.iter().map(|&query| self.search(query, distance)).collect();
        }
        let mut answers = vec![Vec::new(); queries.len()];
        // Few queries are shared out in small parts, so that every thread has some.
        let part = (queries.len() / (4 * rayon::current_num_threads())).clamp(8, BATCH);
        let parts = queries.par_chunks(part).zip(answers.par_chunks_mut(part));
        parts.try_for_each(|(queries, answers)| {
            self.sweep(queries, distance, |hit| {
                let near = Near { distance: hit.distance, fingerprint: hit.fingerprint };
                answers[hit.query].push(near);
            })?;
            for answer in answers.iter_mut().filter(|answer| answer.len() > 1) {
                answer.sort_unstable();
            }
            Ok(())
        })?;
        Ok(answers)
    }

    /// Compares a query with every fingerprint; the same answer as [`ResidentTables::search`].
    ///
    /// # Errors
    ///
    /// As [`ResidentTables::search`].
    pub fn scan(&self, query: F, distance: u32) -> Result<Vec<Near<F>>> {
        check(distance, F::BITS)?;
        let mut found = Vec::new();
        self.scan_for(&[query], distance, &mut |hit| {
            found.push(Near { distance: hit.distance, fingerprint: hit.fingerprint });
        });
        found.sort_unstable();
        Ok(found)
    }

    /// Returns the first table, which every set has.
    fn first(&self) -> &Table {
        &self.tables[0]
    }

    /// Returns all fingerprints, in no order.
    pub(crate) fn members(&self) -> Vec<F> {
        self.first().members()
    }

    /// Answers queries of one thread in the cheapest way; hits come in no order.
    pub(crate) fn sweep(
        &self,
        queries: &[F],
        distance: u32,
        mut hit: impl FnMut(Hit<F>),
    ) -> Result<()> {
        check(distance, F::BITS)?;
        let known = self.routing.known(distance);
        if !self.routing.is_skewed() {
            self.by(known.route(), queries, distance, &mut hit);
            return Ok(());
        }
        if let &[query] = queries {
            let route = self.routing.of(&self.tables, query, known);
            self.by(route, queries, distance, &mut hit);
            return Ok(());
        }
        // Queries that go their own ways are still searched together; the others scan.
        let (mut ways, mut others) = (Together::default(), Together::default());
        for (place, &query) in queries.iter().enumerate() {
            match self.routing.of(&self.tables, query, known) {
                Some(route) => ways.push(place, query, Some(route)),
                None => others.push(place, query, None),
            }
        }
        self.follow(&ways.routes, &ways.queries, &mut |found| hit(ways.in_place(found)));
        if !others.queries.is_empty() {
            let mut hit = |found| hit(others.in_place(found));
            self.scan_for(&others.queries, distance, &mut hit);
        }
        Ok(())
    }

    /// Answers queries by one route, or by a scan without one.
    fn by(&self, route: Option<&Route>, queries: &[F], distance: u32, hit: &mut dyn FnMut(Hit<F>)) {
        match route {
            None => self.scan_for(queries, distance, hit),
            Some(route) => self.follow(&[route], queries, hit),
        }
    }

    /// Answers queries by a route each, or one for all.
    fn follow(&self, routes: &[&Route], queries: &[F], hit: &mut dyn FnMut(Hit<F>)) {
        kernel::dispatch_lanes(Sweep {
            tables: &self.tables,
            routes,
            masks: &self.masks,
            cells: &self.cells,
            queries,
            hit,
        });
    }
}

/// Queries of a batch that are answered in the same way.
#[derive(Debug)]
struct Together<'a, F> {
    places: Vec<usize>,
    queries: Vec<F>,
    routes: Vec<&'a Route>,
}

impl<F> Default for Together<'_, F> {
    fn default() -> Self {
        Self { places: Vec::new(), queries: Vec::new(), routes: Vec::new() }
    }
}

impl<'a, F> Together<'a, F> {
    fn push(&mut self, place: usize, query: F, route: Option<&'a Route>) {
        self.places.push(place);
        self.queries.push(query);
        self.routes.extend(route);
    }

    /// Returns a hit with the position of its query in the batch.
    fn in_place(&self, found: Hit<F>) -> Hit<F> {
        Hit { query: self.places[found.query], ..found }
    }
}

/// Tells whether a scan compares members wherever they lie: their buckets are too small to be
/// compared one by one.
fn is_flat(len: usize, (bucket_bits, cell_bits): (u32, u32)) -> bool {
    cell_bits == 0 && len < LANES << bucket_bits
}

/// Returns how many bits name a bucket among so many members, and how many more a cell.
fn directory_bits(len: usize) -> (u32, u32) {
    let log2 = len.checked_ilog2().unwrap_or(0);
    let bucket_bits = log2.saturating_sub(BUCKET_MEMBERS_LOG2).clamp(1, BLOCK_BITS);
    let members = log2.saturating_sub(bucket_bits);
    let crowded = members >= CROWDED_LOG2;
    (bucket_bits, if crowded { members - CELL_MEMBERS_LOG2 } else { 0 })
}

fn check(distance: u32, bits: u32) -> Result<()> {
    if distance > bits {
        return Err(Error::InvalidDistance { distance, bits, max: bits });
    }
    Ok(())
}
