//! Searching: reads prefix ranges of the tables, or one whole table, and returns near fingerprints.
//!
//! Candidates are compared in the table's bit order, because a permutation keeps the Hamming
//! distance; only matches are permuted back. All members of a run are compared, even those outside
//! the range: any match among them is correct, and checking the bounds would cost more.

use super::heavy::Skewed;
use super::query::TableExplanation;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::kernel;
use crate::plan::{Table, expected_candidates};
use crate::store::keys::{self, Kind, TableKey};
use crate::store::{Cursor, View, counting_reads, run};

/// A stored fingerprint with its distance from the query.
pub(crate) type Found<F> = (u32, F);

/// What was found for one of several queries, with the query's number.
pub(crate) type OfQuery<F> = (u32, Found<F>);

/// One search in one snapshot.
pub(crate) struct Search<'a, F> {
    pub(crate) view: &'a mut View,
    pub(crate) tables: &'a [Table],
    pub(crate) query: F,
    pub(crate) distance: u32,
    /// Records skewed prefixes.
    pub(crate) skewed: &'a Skewed,
    /// Number of fingerprints in the snapshot, roughly.
    pub(crate) entries: u64,
    /// Whether to count blocks read from files.
    pub(crate) count_blocks: bool,
}

impl<F: Fingerprint> Search<'_, F> {
    /// Probes prefixes of a table, given as differences from the query's prefix.
    pub(crate) fn probe(
        &mut self,
        table: usize,
        masks: impl IntoIterator<Item = u128>,
        members: &mut Vec<F>,
        found: &mut Vec<Found<F>>,
    ) -> Result<TableExplanation> {
        let plan = self.tables.get(table).ok_or_else(no_table)?;
        let bits = plan.prefix_bits();
        let prefix = F::high_mask(bits);
        let (skewed, expected) = (self.skewed, expected_candidates(bits, self.entries));
        self.read(table, members, found, |probe, cursor| {
            for mask in masks {
                let low = (probe.query & prefix) ^ flip::<F>(mask, bits);
                let before = probe.counts.candidates;
                probe.range(cursor, low, low | !prefix)?;
                let met = probe.counts.candidates - before;
                skewed.learn(table, (low >> (F::BITS - bits)).widen(), met, expected);
            }
            Ok(())
        })
    }

    /// Compares the query with the entries of the first table from `low` to `high`.
    pub(crate) fn scan(
        &mut self,
        low: F,
        high: F,
        found: &mut Vec<Found<F>>,
    ) -> Result<TableExplanation> {
        self.read(0, &mut Vec::new(), found, |probe, cursor| probe.range(cursor, low, high))
    }

    /// Reads a table. Results are permuted back and may contain duplicates.
    fn read(
        &mut self,
        table: usize,
        members: &mut Vec<F>,
        found: &mut Vec<Found<F>>,
        body: impl FnOnce(&mut Probe<'_, F>, &mut Cursor<'_>) -> Result<()>,
    ) -> Result<TableExplanation> {
        let permutation = self.tables.get(table).ok_or_else(no_table)?.permutation();
        let mut counts = TableExplanation::default();
        let before = found.len();
        let mut probe = Probe {
            table,
            query: permutation.apply(self.query),
            distance: self.distance,
            members,
            found,
            counts: &mut counts,
        };
        let read = || self.view.table(table, |cursor| body(&mut probe, cursor));
        if self.count_blocks {
            let (done, blocks) = counting_reads(read);
            done?;
            counts.blocks = blocks;
        } else {
            read()?;
        }
        for (_, fingerprint) in found.iter_mut().skip(before) {
            *fingerprint = permutation.invert(*fingerprint);
        }
        Ok(counts)
    }
}

fn no_table() -> Error {
    Error::corrupt("meta", "plan lacks a table")
}

/// Removes duplicates: several tables, or a run and memory, may report one fingerprint.
pub(in crate::index) fn distinct<F: Fingerprint>(mut found: Vec<Found<F>>) -> Vec<Found<F>> {
    found.sort_unstable();
    found.dedup();
    found
}

/// The state of reading one table for one query.
struct Probe<'a, F> {
    table: usize,
    query: F,
    distance: u32,
    members: &'a mut Vec<F>,
    found: &'a mut Vec<Found<F>>,
    counts: &'a mut TableExplanation,
}

impl<F: Fingerprint> Probe<'_, F> {
    /// Compares with every run that has members from `low` to `high`, both included.
    ///
    /// The bounds are explicit because prefixes are not whole bytes, and no key follows the highest
    /// range.
    fn range(&mut self, cursor: &mut Cursor<'_>, low: F, high: F) -> Result<()> {
        self.counts.ranges += 1;
        cursor.seek(TableKey::new(Kind::Run, low).as_ref());
        while let Some((key, value)) = cursor.entry()? {
            let Some(last) = keys::permuted::<F>(key, Kind::Run, self.table)? else { break };
            run::decode_down_to(low, last, value, self.table, self.members)?;
            self.counts.runs += 1;
            self.compare();
            if last >= high {
                break;
            }
            cursor.next();
        }
        Ok(())
    }

    #[expect(clippy::indexing_slicing, reason = "the kernel returns the index of a member")]
    fn compare(&mut self) {
        self.counts.candidates += self.members.len() as u64;
        let (members, found, counts) = (&*self.members, &mut *self.found, &mut *self.counts);
        kernel::within(members, self.query, self.distance, &mut |index, distance| {
            counts.matches += 1;
            found.push((distance, members[index]));
        });
    }
}

/// Moves a mask of prefix bits to the most significant bits of the width.
pub(super) fn flip<F: Fingerprint>(mask: u128, prefix_bits: u32) -> F {
    match F::BITS - prefix_bits {
        shift if shift >= F::BITS => F::ZERO,
        shift => F::truncate(mask) << shift,
    }
}

/// Returns true if a run of a table has a permuted fingerprint.
pub(in crate::index) fn is_in_run<F: Fingerprint>(
    view: &mut View,
    table: usize,
    permuted: F,
) -> Result<bool> {
    view.table(table, |cursor| {
        cursor.seek(TableKey::new(Kind::Run, permuted).as_ref());
        let Some((key, value)) = cursor.entry()? else { return Ok(false) };
        let Some(last) = keys::permuted::<F>(key, Kind::Run, table)? else { return Ok(false) };
        let mut members = Vec::new();
        run::decode(last, value, table, &mut members)?;
        Ok(members.contains(&permuted))
    })
}
