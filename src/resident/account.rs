//! Accounts: what a search of resident tables would read, computed without searching.

use super::ResidentTables;
use crate::fingerprint::Fingerprint;

/// Fixed cost of a search, in nanoseconds.
const SEARCH: f64 = 200.0;

/// The expected work of one search.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Account {
    /// Expected time, in nanoseconds.
    pub(crate) nanos: f64,
    /// Whether every member is compared, in storage order.
    pub(crate) scan: bool,
    pub(crate) tables: Vec<TableAccount>,
}

/// The expected work of one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TableAccount {
    pub(crate) bucket_bits: u32,
    /// `None` if the table is not probed.
    pub(crate) radius: Option<u32>,
    pub(crate) buckets: u64,
    pub(crate) members: u64,
}

impl<F: Fingerprint> ResidentTables<F> {
    /// Counts what [`ResidentTables::search`] would read; the distance must be within the width.
    pub(crate) fn account(&self, query: F, distance: u32) -> Account {
        let known = self.routing.known(distance);
        let (route, nanos) = self.routing.priced(&self.tables, query, known);
        let tables = self.tables.iter().enumerate().map(|(number, table)| {
            let bits = table.cut().bucket_bits();
            let (radius, chain) = match route {
                Some(route) => (route.radii.of(number), Some(&route.chains[number])),
                None => ((number == 0).then_some(bits), None),
            };
            let (columns, target) = (table.columns(), table.cut().parts(query));
            let masks = radius.map_or(&[][..], |radius| self.masks.within(radius.min(distance)));
            let members = masks.iter().flat_map(|mask| {
                let cells = chain.map_or(u32::MAX, |chain| chain.first(mask.count_ones()));
                columns.ranges(target.bucket ^ mask, &target, self.cells.within(cells))
            });
            let members: usize = members.map(|range| range.len()).sum();
            TableAccount {
                bucket_bits: bits,
                radius,
                buckets: masks.len() as u64,
                members: members as u64,
            }
        });
        Account { nanos: SEARCH + nanos, scan: route.is_none(), tables: tables.collect() }
    }
}
