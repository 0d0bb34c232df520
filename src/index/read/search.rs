//! Searching: reads prefix ranges of the tables, or one whole table, and returns near fingerprints.
//!
//! Candidates are compared in the table's bit order, because a permutation keeps the Hamming
//! distance; only matches are permuted back. All members of a run are compared, even those outside
//! the range: any match among them is correct, and checking the bounds would cost more.

use super::heavy::Skewed;
use super::query::TableExplanation;
use super::ranges::{self, OfRuns};
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
    /// Those of the view's runs that are in memory. `None` reads the store.
    pub(super) ranges: Option<OfRuns<'a, F>>,
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
        let ranges = self.ranges;
        self.read(table, found, |view, probe| {
            let mut range = Vec::new();
            for mask in masks {
                let low = (probe.query & prefix) ^ flip::<F>(mask, bits);
                let of_range = (low >> (F::BITS - bits)).widen();
                let before = probe.counts.candidates;
                let kept = ranges.and_then(|ranges| ranges.get(table, of_range));
                if let Some(kept) = kept {
                    probe.counts.ranges += 1;
                    probe.compare(&kept);
                } else {
                    range.clear();
                    range.reserve(2 * run::RUN_MEMBERS);
                    let to = ranges.is_some().then_some(&mut range);
                    let high = low | !prefix;
                    view.table(table, |cursor| probe.range(cursor, low, high, members, to))?;
                    if let Some(ranges) = ranges {
                        ranges.keep(table, of_range, &range);
                    }
                }
                let met = probe.counts.candidates - before;
                skewed.learn(table, of_range, met, expected);
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
        self.read(0, found, |view, probe| {
            view.table(0, |cursor| probe.range(cursor, low, high, &mut Vec::new(), None))
        })
    }

    /// Reads a table. Results are permuted back and may contain duplicates.
    fn read(
        &mut self,
        table: usize,
        found: &mut Vec<Found<F>>,
        body: impl FnOnce(&mut View, &mut Probe<'_, F>) -> Result<()>,
    ) -> Result<TableExplanation> {
        let permutation = self.tables.get(table).ok_or_else(no_table)?.permutation();
        let mut counts = TableExplanation::default();
        let before = found.len();
        let query = permutation.apply(self.query);
        let mut probe = Probe { table, query, distance: self.distance, found, counts: &mut counts };
        let read = || body(self.view, &mut probe);
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
    found: &'a mut Vec<Found<F>>,
    counts: &'a mut TableExplanation,
}

impl<F: Fingerprint> Probe<'_, F> {
    /// Compares with every run that has members from `low` to `high`, both included.
    ///
    /// Also appends the members between them to `kept`, unordered, until there are too many to keep. The
    /// bounds are explicit because prefixes are not whole bytes, and no key follows the highest range.
    fn range(
        &mut self,
        cursor: &mut Cursor<'_>,
        low: F,
        high: F,
        members: &mut Vec<F>,
        mut kept: Option<&mut Vec<F>>,
    ) -> Result<()> {
        self.counts.ranges += 1;
        cursor.seek(TableKey::new(Kind::Run, low).as_ref());
        while let Some((key, value)) = cursor.entry()? {
            let Some(last) = keys::permuted::<F>(key, Kind::Run, self.table)? else { break };
            run::decode_down_to(low, last, value, self.table, members)?;
            self.counts.runs += 1;
            self.compare(members);
            if let Some(kept) = kept.as_mut().filter(|kept| kept.len() <= ranges::MOST_MEMBERS) {
                kept.extend_from_slice(within(members, low, high));
            }
            if last >= high {
                break;
            }
            cursor.next();
        }
        Ok(())
    }

    #[expect(clippy::indexing_slicing, reason = "the kernel returns the index of a member")]
    fn compare(&mut self, members: &[F]) {
        self.counts.candidates += members.len() as u64;
        let (found, counts) = (&mut *self.found, &mut *self.counts);
        kernel::within(members, self.query, self.distance, &mut |index, distance| {
            counts.matches += 1;
            found.push((distance, members[index]));
        });
    }
}

/// Returns those of descending members that are from `low` to `high`.
fn within<F: Fingerprint>(members: &[F], low: F, high: F) -> &[F] {
    let (_, members) = members.split_at(members.partition_point(|member| *member > high));
    let (members, _) = members.split_at(members.partition_point(|member| *member >= low));
    members
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
