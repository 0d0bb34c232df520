//! Routing: chooses the buckets that a query reads, per distance or per query.

use std::sync::OnceLock;

use rayon::prelude::*;

use super::chain::Route;
use super::radii::{self, Masks, Radii};
use super::search::MAX_TABLES;
use super::shells::Shells;
use super::table::Table;
use super::{BLOCK_BITS, is_flat};
use crate::bits::binomial;
use crate::exclusion;
use crate::fingerprint::Fingerprint;
use crate::plan::Costs;

/// Maximum number of stored routes; further queries use the usual route, which is also complete.
const ROUTES: usize = 1024;
/// Number of slots that are searched for a route.
const SLOTS: usize = 8;

/// What determines the routes of a set.
#[derive(Debug)]
pub(super) struct Routing {
    costs: Costs,
    len: usize,
    tables: usize,
    blocks: usize,
    columns: usize,
    /// Number of bits that select a bucket, and of those that select a cell in it.
    directory: (u32, u32),
    /// Shells of every table if buckets are skewed, else empty.
    shells: Vec<Shells>,
    /// Cached values of each distance.
    known: Vec<OnceLock<Known>>,
    /// Cached routes of queries, hashed by distance and radii; never removed.
    routes: Vec<OnceLock<Route>>,
}

/// Cached values of one distance.
#[derive(Debug)]
pub(super) struct Known {
    distance: u32,
    /// The route for buckets of average size, `None` if a scan is cheaper, and its expected time.
    usual: Option<Route>,
    nanos: f64,
    /// The time to find all buckets at a number of flips, and to compare one member there.
    prices: [(f64, f64); BLOCK_BITS as usize + 1],
}

impl Known {
    pub(super) fn route(&self) -> Option<&Route> {
        self.usual.as_ref()
    }
}

impl Routing {
    pub(super) fn new<F: Fingerprint>(
        tables: &[Table],
        len: usize,
        directory: (u32, u32),
        costs: Costs,
    ) -> Self {
        let skewed = tables.iter().any(|table| is_skewed(table, len));
        let shells = match skewed {
            true if exclusion::alone() => tables.iter().map(Shells::of).collect(),
            true => tables.par_iter().map(Shells::of).collect(),
            false => Vec::new(),
        };
        let kept = if skewed { ROUTES } else { 0 };
        Self {
            costs,
            len,
            tables: tables.len(),
            blocks: (F::BITS / BLOCK_BITS) as usize,
            columns: tables[0].cut().columns(),
            directory,
            shells,
            known: (0..=F::BITS).map(|_| OnceLock::new()).collect(),
            routes: (0..kept).map(|_| OnceLock::new()).collect(),
        }
    }

    /// Returns true if buckets are so skewed that each query has its own route.
    pub(super) fn is_skewed(&self) -> bool {
        !self.shells.is_empty()
    }

    pub(super) fn bytes(&self) -> usize {
        self.shells.iter().map(Shells::bytes).sum()
    }

    /// Returns the cached values of a distance, which must be within the width.
    pub(super) fn known(&self, distance: u32) -> &Known {
        self.known[distance as usize].get_or_init(|| self.compute(distance))
    }

    fn compute(&self, distance: u32) -> Known {
        let usual = usual_radii(self.len, self.tables, distance, self.directory, &self.costs);
        let route = usual.map(|(radii, _)| self.new_route(radii, distance));
        let (bucket_bits, cell_bits) = self.directory;
        let cells = Masks::new(cell_bits);
        let all = 1_usize << cell_bits;
        let price = |flips: u32| {
            let near = route.as_ref().map_or(u32::MAX, |route| route.chains[0].first(flips));
            let read = cells.within(near).len();
            let whole = Table::reads_whole(read, all);
            let ranges = if whole { 1.0 } else { read as f64 };
            let share = if whole { 1.0 } else { ranges / all as f64 };
            let buckets = binomial(bucket_bits, flips) as f64 * ranges;
            (buckets * self.costs.bucket_ns, share * self.costs.member_ns)
        };
        let mut prices = [(0.0, 0.0); BLOCK_BITS as usize + 1];
        (0..).zip(&mut prices).for_each(|(flips, place)| *place = price(flips));
        let scan = self.scan_nanos();
        let nanos = usual.map_or(scan, |(_, nanos)| nanos.min(scan));
        Known { distance, usual: route.filter(|_| nanos < scan), nanos, prices }
    }

    /// Returns the cheapest route of a query, `None` if a scan is cheaper.
    pub(super) fn of<'a, F: Fingerprint>(
        &'a self,
        tables: &[Table],
        query: F,
        known: &'a Known,
    ) -> Option<&'a Route> {
        self.priced(tables, query, known).0
    }

    /// [`Routing::of`] and its expected time, in nanoseconds.
    #[inline]
    pub(super) fn priced<'a, F: Fingerprint>(
        &'a self,
        tables: &[Table],
        query: F,
        known: &'a Known,
    ) -> (Option<&'a Route>, f64) {
        if !self.is_skewed() {
            return (known.route(), known.nanos);
        }
        let mut classes = [0; MAX_TABLES];
        for ((classes, shells), table) in classes.iter_mut().zip(&self.shells).zip(tables) {
            *classes = shells.classes(table.cut().parts(query).bucket);
        }
        let shell = |table: usize, flips: u32| {
            let (find, compare) = known.prices[flips as usize];
            find + self.shells[table].members(classes[table], flips) * compare
        };
        let scan = self.scan_nanos();
        match radii::cheapest(self.tables, self.directory.0, known.distance, shell) {
            Some((radii, nanos)) if nanos < scan => (self.route(radii, known), nanos),
            _ => (None, scan),
        }
    }

    /// Returns the route of some radii, which is created on first use.
    fn route<'a>(&'a self, radii: Radii, known: &'a Known) -> Option<&'a Route> {
        let key = radii.number().wrapping_add(u64::from(known.distance) << 57);
        // Multiplying by the golden ratio spreads similar numbers (Knuth, volume 3, 6.4).
        let first = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
        let places = (first..first + SLOTS).map(|place| place % ROUTES);
        let mut routes = places
            .map(|place| self.routes[place].get_or_init(|| self.new_route(radii, known.distance)));
        routes
            .find(|route| route.radii == radii && route.distance == known.distance)
            .or(known.route())
    }

    fn new_route(&self, radii: Radii, distance: u32) -> Route {
        Route::new(radii, self.blocks, self.columns, distance)
    }

    fn scan_nanos(&self) -> f64 {
        scan_nanos(self.len, self.directory, &self.costs)
    }
}

/// Returns the expected time of a scan, by buckets or flat.
pub(super) fn scan_nanos(len: usize, directory: (u32, u32), costs: &Costs) -> f64 {
    let members = len as f64 * costs.resident_scan_ns;
    if is_flat(len, directory) {
        return members;
    }
    members.max(f64::from(directory.0).exp2() * costs.bucket_ns)
}

/// Returns the cheapest radii for buckets of average size, and their time.
pub(super) fn usual_radii(
    len: usize,
    tables: usize,
    distance: u32,
    (bucket_bits, cell_bits): (u32, u32),
    costs: &Costs,
) -> Option<(Radii, f64)> {
    let members = len as f64 / f64::from(bucket_bits).exp2();
    let bucket = if cell_bits > 0 && (distance as usize) < tables {
        // No bucket is flipped, so the next block must be within one bit.
        let cells = f64::from(1 + cell_bits);
        let members = members * cells / f64::from(cell_bits).exp2();
        cells * costs.bucket_ns + members * costs.member_ns
    } else {
        costs.bucket_ns + members * costs.member_ns
    };
    let shell = |_, flips| binomial(bucket_bits, flips) as f64 * bucket;
    radii::cheapest(tables, bucket_bits, distance, shell)
}

/// Returns true if members are skewed: they meet far more than an average bucket.
///
/// A few larger buckets do not count. Planning every query separately would cost more than they do,
/// and queries with different routes share no bucket.
fn is_skewed(table: &Table, members: usize) -> bool {
    let (mut largest, mut met) = (0, 0_u128);
    for size in table.bucket_sizes() {
        largest = largest.max(size);
        met += u128::from(size) * u128::from(size);
    }
    let even = members as u64 >> table.cut().bucket_bits();
    largest > 128 * even + 256 || met > members as u128 * u128::from(2 * even + 16)
}
