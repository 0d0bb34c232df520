//! Resident tables: searches a set of fingerprints in memory.
//!
//! There is one table per block of 16 bits. A table stores its members by bucket, the value of the
//! block, and does not store those bits again. The same tables answer every distance: the cheapest
//! complete radii are computed per distance, and per query if buckets are skewed.
#![doc = include_str!("RESIDENT.md")]
#![expect(
    clippy::indexing_slicing,
    reason = "indices are computed in this module; a wrong one must panic, not lose matches"
)]

mod account;
mod array;
mod chain;
mod cut;
mod flat;
mod group;
mod guard;
mod radii;
mod routing;
mod saved;
mod scan;
mod search;
mod shells;
mod table;
#[cfg(test)]
mod tests;

use std::marker::PhantomData;
use std::path::PathBuf;

use rayon::prelude::*;
use rdst::RadixSort;

pub(crate) use self::account::{Account, TableAccount};
use self::chain::Route;
use self::cut::Cut;
use self::group::QueryGroup;
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

/// Bits of a block: 65,536 buckets per table, whose directory fits the second-level cache.
const BLOCK_BITS: u32 = 16;

/// Average members per bucket in sets that are small enough for smaller directories.
const BUCKET_MEMBERS_LOG2: u32 = 3;

/// Minimum number of tables; a single one would only use one block of a fingerprint.
const FEWEST_TABLES: u32 = 2;

/// Average bucket size from which buckets are sorted into cells, and the size of a cell.
const CELLS_MIN_LOG2: u32 = 9;
const CELL_MEMBERS_LOG2: u32 = 4;

/// Maximum number of queries that one thread answers together.
const BATCH: usize = 1024;

/// A stored fingerprint within the distance of a query.
///
/// Returned by [`ResidentTables::search`].
///
/// ```
/// use hamdex::resident::{NearFingerprint, ResidentTables};
///
/// let tables = ResidentTables::build(&[0b0111_u64])?;
/// assert_eq!(tables.search(0b0101, 3)?, [NearFingerprint { distance: 1, fingerprint: 0b0111 }]);
/// # Ok::<(), hamdex::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NearFingerprint<F> {
    /// The number of bits that differ from the query.
    pub distance: u32,
    /// The fingerprint.
    pub fingerprint: F,
}

/// Permutation tables of distinct fingerprints, held in memory.
///
/// Immutable and searchable from any number of threads. At 64 bits, four tables take 6 bytes per
/// fingerprint and table. Their directories take one megabyte, two if fingerprints are skewed, and
/// up to one byte per fingerprint and table from 32 million fingerprints on. Below 2 million, there
/// are 2 more bytes per fingerprint.
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
/// assert!(!tables.is_empty());
/// # Ok::<(), hamdex::Error>(())
/// ```
pub struct ResidentTables<F> {
    tables: Vec<Table>,
    /// The block of the first table for each member, if its buckets are small.
    own_blocks: Option<Pages<u16>>,
    /// Flips of the bits of a bucket, and of a cell.
    masks: Masks,
    cells: Masks,
    len: usize,
    routing: Routing,
    /// The file that the tables are mapped from, if any.
    file: Option<PathBuf>,
    width: PhantomData<F>,
}

impl<F> std::fmt::Debug for ResidentTables<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResidentTables")
            .field("len", &self.len)
            .field("tables", &self.tables.len())
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

impl<F: Fingerprint> ResidentTables<F> {
    /// Builds tables of a set of fingerprints, without repeated ones.
    ///
    /// # Errors
    ///
    /// Returns [`Error::InvalidOption`] if there are 2^32 or more distinct fingerprints.
    pub fn build(fingerprints: &[F]) -> Result<Self> {
        let mut members = fingerprints.to_vec();
        members.radix_sort_unstable();
        members.dedup();
        Self::of_distinct(&members, Self::MOST_TABLES, Costs::default())
    }

    /// Builds the fastest tables that fit a memory budget in bytes.
    ///
    /// Returns `None` if none fit. A smaller budget means fewer tables than [`build`](Self::build),
    /// down to two.
    ///
    /// # Errors
    ///
    /// Returns [`Error::InvalidOption`] if there are 2^32 or more distinct fingerprints.
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

    /// [`ResidentTables::build_within`] for distinct fingerprints.
    pub(crate) fn of_distinct_within(
        members: &[F],
        budget: usize,
        costs: Costs,
    ) -> Result<Option<Self>> {
        let tables = Self::tables_within(members.len(), budget);
        tables.map(|tables| Self::of_distinct(members, tables, costs)).transpose()
    }

    /// Returns how many tables of `len` fingerprints fit into `budget` bytes, `None` if too few.
    fn tables_within(len: usize, budget: usize) -> Option<u32> {
        let mut sizes = (FEWEST_TABLES..=Self::MOST_TABLES).rev();
        sizes.find(|&tables| Self::fits(len, tables, budget))
    }

    /// Returns true if `len` fingerprints fit into `tables` tables within `budget` bytes.
    fn fits(len: usize, tables: u32, budget: usize) -> bool {
        Self::bytes_of(len as u64, tables) <= budget as u64
    }

    /// Returns true if `len` fingerprints fit into the minimum of tables within `budget` bytes.
    pub(crate) fn could_fit(len: usize, budget: usize) -> bool {
        Self::fits(len, FEWEST_TABLES, budget)
    }

    /// The maximum number of tables: one per block.
    pub(crate) const MOST_TABLES: u32 = F::BITS / BLOCK_BITS;

    /// Builds `tables` tables of distinct fingerprints.
    pub(crate) fn of_distinct(members: &[F], tables: u32, costs: Costs) -> Result<Self> {
        Self::of_distinct_with(members, tables, directory_bits(members.len()), costs)
    }

    /// [`ResidentTables::of_distinct`] with given directory bits.
    fn of_distinct_with(
        members: &[F],
        tables: u32,
        (bucket_bits, cell_bits): (u32, u32),
        costs: Costs,
    ) -> Result<Self> {
        require_countable(members.len())?;
        debug_assert!(tables > 0, "at least one table is needed");
        let blocks = 0..tables.min(Self::MOST_TABLES);
        let build = |block| Table::build(Cut::new::<F>(block, bucket_bits), cell_bits, members);
        let tables: Vec<Table> = if exclusion::alone() {
            blocks.map(build).collect()
        } else {
            blocks.into_par_iter().map(build).collect()
        };
        Ok(Self::of_tables(tables, members.len(), (bucket_bits, cell_bits), costs))
    }

    /// Adds to tables what is not stored with them.
    fn of_tables(tables: Vec<Table>, len: usize, directory: (u32, u32), costs: Costs) -> Self {
        Self {
            routing: Routing::new::<F>(&tables, len, directory, costs),
            own_blocks: is_flat(len, directory).then(|| tables[0].own_blocks()),
            tables,
            masks: Masks::new(directory.0),
            cells: Masks::new(directory.1),
            len,
            file: None,
            width: PhantomData,
        }
    }

    /// Returns the expected time of one search among `len` fingerprints, in nanoseconds.
    pub(crate) fn expected_nanos(len: usize, distance: u32, costs: &Costs) -> f64 {
        let directory = directory_bits(len);
        let scan = routing::scan_nanos(len, directory, costs);
        routing::usual_radii(len, Self::MOST_TABLES as usize, distance, directory, costs)
            .map_or(scan, |(_, nanos)| nanos.min(scan))
    }

    /// Returns the maximum size of `len` distinct fingerprints in `tables` tables, in bytes.
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

    /// Returns true if there are no fingerprints.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the memory size of the tables, in bytes.
    pub fn bytes(&self) -> usize {
        let own = self.own_blocks.as_ref().map_or(0, Pages::bytes);
        self.tables.iter().map(Table::bytes).sum::<usize>() + self.routing.bytes() + own
    }

    /// Returns every fingerprint within the distance, nearest first, then ascending.
    ///
    /// # Errors
    ///
    /// Returns [`Error::InvalidDistance`] if the distance exceeds the width.
    pub fn search(&self, query: F, distance: u32) -> Result<Vec<NearFingerprint<F>>> {
        let mut found = Vec::new();
        self.search_into(query, distance, &mut found)?;
        Ok(found)
    }

    /// Searches into a list, which is cleared first.
    ///
    /// Reusing a list avoids an allocation per search.
    ///
    /// ```
    /// use hamdex::resident::ResidentTables;
    ///
    /// let tables = ResidentTables::build(&[0b0000_u64, 0b0111])?;
    /// let mut found = Vec::new();
    /// for query in [0b0001, 0b0111] {
    ///     tables.search_into(query, 1, &mut found)?;
    ///     assert_eq!(found.len(), 1);
    /// }
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`ResidentTables::search`].
    pub fn search_into(
        &self,
        query: F,
        distance: u32,
        found: &mut Vec<NearFingerprint<F>>,
    ) -> Result<()> {
        found.clear();
        self.sweep(&[query], distance, |hit| {
            found.push(NearFingerprint { distance: hit.distance, fingerprint: hit.fingerprint });
        })?;
        if found.len() > 1 {
            found.sort_unstable();
        }
        Ok(())
    }

    /// Searches for many queries in parallel; answers are in query order.
    ///
    /// ```
    /// use hamdex::resident::ResidentTables;
    ///
    /// let tables = ResidentTables::build(&[0b0000_u64, 0b0111])?;
    /// let answers = tables.search_batch(&[0b0001, 0xff00], 1)?;
    /// assert_eq!((answers[0].len(), answers[1].len()), (1, 0));
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`ResidentTables::search`].
    pub fn search_batch(
        &self,
        queries: &[F],
        distance: u32,
    ) -> Result<Vec<Vec<NearFingerprint<F>>>> {
        if exclusion::alone() {
            return queries.iter().map(|&query| self.search(query, distance)).collect();
        }
        let mut answers = vec![Vec::new(); queries.len()];
        // Few queries are divided into small parts, so that every thread gets some.
        let part = (queries.len() / (4 * rayon::current_num_threads())).clamp(8, BATCH);
        let parts = queries.par_chunks(part).zip(answers.par_chunks_mut(part));
        parts.try_for_each(|(queries, answers)| {
            self.sweep(queries, distance, |hit| {
                let near = NearFingerprint { distance: hit.distance, fingerprint: hit.fingerprint };
                answers[hit.query].push(near);
            })?;
            for answer in answers.iter_mut().filter(|answer| answer.len() > 1) {
                answer.sort_unstable();
            }
            Ok(())
        })?;
        Ok(answers)
    }

    /// Compares a query with every fingerprint; same result as [`ResidentTables::search`].
    ///
    /// ```
    /// use hamdex::resident::ResidentTables;
    ///
    /// let tables = ResidentTables::build(&[0b0000_u64, 0b0111])?;
    /// assert_eq!(tables.scan(0b0001, 2)?, tables.search(0b0001, 2)?);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the errors of [`ResidentTables::search`].
    pub fn scan(&self, query: F, distance: u32) -> Result<Vec<NearFingerprint<F>>> {
        check(distance, F::BITS)?;
        let mut found = Vec::new();
        self.scan_for(&[query], distance, &mut |hit| {
            found.push(NearFingerprint { distance: hit.distance, fingerprint: hit.fingerprint });
        });
        self.require_intact()?;
        found.sort_unstable();
        Ok(found)
    }

    /// Returns the first table, which every set has.
    fn first(&self) -> &Table {
        &self.tables[0]
    }

    /// Returns all fingerprints, in no particular order.
    pub(crate) fn members(&self) -> Vec<F> {
        self.first().members()
    }

    /// Answers queries on this thread in the cheapest way; hits are in no particular order.
    pub(crate) fn sweep(
        &self,
        queries: &[F],
        distance: u32,
        mut hit: impl FnMut(Hit<F>),
    ) -> Result<()> {
        check(distance, F::BITS)?;
        let known = self.routing.known(distance);
        if !self.routing.is_skewed() {
            self.search_route(known.route(), queries, distance, &mut hit);
            return self.require_intact();
        }
        if let &[query] = queries {
            let route = self.routing.of(&self.tables, query, known);
            self.search_route(route, queries, distance, &mut hit);
            return self.require_intact();
        }
        // Queries with different routes are still searched together; the others scan.
        let (mut routed, mut scanned) = (QueryGroup::default(), QueryGroup::default());
        for (place, &query) in queries.iter().enumerate() {
            match self.routing.of(&self.tables, query, known) {
                Some(route) => routed.push(place, query, Some(route)),
                None => scanned.push(place, query, None),
            }
        }
        self.search_routes(&routed.routes, &routed.queries, &mut |found| {
            hit(routed.in_place(found));
        });
        if !scanned.queries.is_empty() {
            let mut hit = |found| hit(scanned.in_place(found));
            self.scan_for(&scanned.queries, distance, &mut hit);
        }
        self.require_intact()
    }

    /// Answers queries by one route, or by a scan if there is none.
    fn search_route(
        &self,
        route: Option<&Route>,
        queries: &[F],
        distance: u32,
        hit: &mut dyn FnMut(Hit<F>),
    ) {
        match route {
            None => self.scan_for(queries, distance, hit),
            Some(route) => self.search_routes(&[route], queries, hit),
        }
    }

    /// Answers queries by one route each, or one route for all.
    fn search_routes(&self, routes: &[&Route], queries: &[F], hit: &mut dyn FnMut(Hit<F>)) {
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

/// Returns true if scans ignore bucket borders, because buckets hold fewer members than lanes.
fn is_flat(len: usize, (bucket_bits, cell_bits): (u32, u32)) -> bool {
    cell_bits == 0 && len < LANES << bucket_bits
}

/// Returns the number of bits that select a bucket, and of those that select a cell in it.
fn directory_bits(len: usize) -> (u32, u32) {
    let log2 = len.checked_ilog2().unwrap_or(0);
    let bucket_bits = log2.saturating_sub(BUCKET_MEMBERS_LOG2).clamp(1, BLOCK_BITS);
    let members = log2.saturating_sub(bucket_bits);
    let large = members >= CELLS_MIN_LOG2;
    (bucket_bits, if large { members - CELL_MEMBERS_LOG2 } else { 0 })
}

/// Fails unless members have numbers of 32 bits.
fn require_countable(len: usize) -> Result<()> {
    if u32::try_from(len).is_err() {
        let reason = format!("{len} fingerprints exceed 4,294,967,295");
        return Err(Error::InvalidOption { name: "resident tables", reason });
    }
    Ok(())
}

fn check(distance: u32, bits: u32) -> Result<()> {
    if distance > bits {
        return Err(Error::InvalidDistance { distance, bits, max: bits });
    }
    Ok(())
}
