//! Accounts: what a search of resident tables reads, counted without searching.

use super::ResidentTables;
use super::pairs::BlockPairs;
use crate::fingerprint::Fingerprint;

/// Nanoseconds that a search takes whatever it reads.
const SEARCH: f64 = 200.0;

/// What one search is expected to do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Account {
    /// Expected time in nanoseconds.
    pub(crate) nanos: f64,
    /// Whether every member is compared, in order.
    pub(crate) scan: bool,
    pub(crate) tables: Vec<TableAccount>,
}

/// What one table has to do for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TableAccount {
    pub(crate) bucket_bits: u32,
    /// `None` where the table is not probed.
    pub(crate) radius: Option<u32>,
    pub(crate) buckets: u64,
    pub(crate) members: u64,
}

impl<F: Fingerprint> ResidentTables<F> {
    /// Counts what [`ResidentTables::search`] reads; the distance is within the width.
    pub(crate) fn account(&self, query: F, distance: u32) -> Account {
        if let Some(pairs) = self.pairs_for(distance) {
            return self.account_of_pairs(pairs, query);
        }
        let radii = if self.skewed {
            self.radii_for(query, distance)
        } else {
            self.known_radii(distance).cloned()
        };
        let tables = self.tables.iter().enumerate().map(|(number, table)| {
            let bits = table.cut().bucket_bits();
            let radius = match &radii {
                Some(radii) => radii.of_tables.get(number).copied().flatten(),
                None => (number == 0).then_some(bits),
            };
            let (columns, aim) = (table.columns(), table.parts(query));
            let masks = radius.map_or(&[][..], |radius| self.masks.within(radius.min(distance)));
            let members: usize =
                masks.iter().map(|mask| columns.range(aim.bucket ^ mask).len()).sum();
            TableAccount {
                bucket_bits: bits,
                radius,
                buckets: masks.len() as u64,
                members: members as u64,
            }
        });
        let nanos = radii.as_ref().map_or_else(|| self.scan_nanos(), |radii| radii.nanos);
        Account { nanos: SEARCH + nanos, scan: radii.is_none(), tables: tables.collect() }
    }

    fn account_of_pairs(&self, pairs: &BlockPairs<F>, query: F) -> Account {
        let tables = pairs.tables.iter().map(|table| {
            let bucket = table.parts(query).bucket;
            TableAccount {
                bucket_bits: table.cut().bucket_bits(),
                radius: Some(0),
                buckets: 1,
                members: table.columns().range(bucket).len() as u64,
            }
        });
        let tables: Vec<TableAccount> = tables.collect();
        let members: u64 = tables.iter().map(|table| table.members).sum();
        // The place of a bucket comes from memory, as its members do.
        let nanos = SEARCH
            + tables.len() as f64 * 2.0 * self.costs.bucket_ns
            + members as f64 * self.costs.member_ns;
        Account { nanos, scan: false, tables }
    }
}
