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
use crate::store::keys::{self, Delta, Kind, TableKey};
use crate::store::{Cursor, View, counting_reads, run};

/// A stored fingerprint with its distance from the query.
pub(crate) type Found<F> = (u32, F);

/// One search in one snapshot.
pub(crate) struct Search<'a, F> {
    pub(crate) view: &'a mut View,
    pub(crate) tables: &'a [Table],
    pub(crate) query: F,
    pub(crate) distance: u32,
    /// Whether to read delta entries. Without them, only runs are read.
    pub(crate) delta_entries: bool,
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
        self.read(table, members, found, |probe, cursor, delta_entries| {
            for mask in masks {
                let low = (probe.query & prefix) ^ flip::<F>(mask, bits);
                let before = probe.counts.candidates;
                probe.range(cursor, low, low | !prefix, delta_entries)?;
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
        self.read(0, &mut Vec::new(), found, |probe, cursor, delta_entries| {
            probe.range(cursor, low, high, delta_entries)
        })
    }

    /// Reads a table. Results are permuted back and may contain duplicates.
    fn read(
        &mut self,
        table: usize,
        members: &mut Vec<F>,
        found: &mut Vec<Found<F>>,
        body: impl FnOnce(&mut Probe<'_, F>, &mut Cursor<'_>, bool) -> Result<()>,
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
        let read = || self.view.table(table, |cursor| body(&mut probe, cursor, self.delta_entries));
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

/// Removes duplicates: several tables, or a run and a delta entry, may report one fingerprint.
pub(super) fn distinct<F: Fingerprint>(mut found: Vec<Found<F>>) -> Vec<Found<F>> {
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
    /// Compares with every entry from `low` to `high`, both included.
    ///
    /// The bounds are explicit because prefixes are not whole bytes, and no key follows the highest
    /// range.
    fn range(
        &mut self,
        cursor: &mut Cursor<'_>,
        low: F,
        high: F,
        delta_entries: bool,
    ) -> Result<()> {
        self.counts.ranges += 1;
        self.runs(cursor, low, high)?;
        if delta_entries { self.delta_entries(cursor, low, high) } else { Ok(()) }
    }

    fn runs(&mut self, cursor: &mut Cursor<'_>, low: F, high: F) -> Result<()> {
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

    fn delta_entries(&mut self, cursor: &mut Cursor<'_>, low: F, high: F) -> Result<()> {
        self.members.clear();
        cursor.seek(TableKey::new(Kind::Delta, low).as_ref());
        while let Some((key, value)) = cursor.entry()? {
            match keys::delta::<F>(key, value, self.table)? {
                Some((entry, delta)) if entry <= high => {
                    if delta == Delta::Added {
                        self.members.push(entry);
                    }
                }
                _ => break,
            }
            if self.members.len() == run::RUN_MEMBERS {
                self.compare();
                self.members.clear();
            }
            cursor.next();
        }
        self.compare();
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

/// Decodes the run that contains a permuted fingerprint, or would contain it.
///
/// Returns the run's key, its last member, and `members` with the last one first. Returns `None` if
/// the fingerprint is behind the last run.
fn run_at<F: Fingerprint>(
    view: &mut View,
    table: usize,
    permuted: F,
    members: &mut Vec<F>,
) -> Result<Option<F>> {
    view.table(table, |cursor| {
        cursor.seek(TableKey::new(Kind::Run, permuted).as_ref());
        let Some((key, value)) = cursor.entry()? else { return Ok(None) };
        let Some(last) = keys::permuted::<F>(key, Kind::Run, table)? else { return Ok(None) };
        run::decode(last, value, table, members)?;
        Ok(Some(last))
    })
}

/// Returns true if a table has a permuted fingerprint, by its delta entry or else in a run.
pub(crate) fn holds<F: Fingerprint>(view: &mut View, table: usize, permuted: F) -> Result<bool> {
    let key = TableKey::new(Kind::Delta, permuted);
    let delta = view.table(table, |cursor| {
        cursor.seek(key.as_ref());
        match cursor.entry()? {
            Some((found, value)) if found == key.as_ref() => Delta::of(value, table).map(Some),
            _ => Ok(None),
        }
    })?;
    if let Some(delta) = delta {
        return Ok(delta == Delta::Added);
    }
    let mut members = Vec::new();
    run_at(view, table, permuted, &mut members)?;
    Ok(members.contains(&permuted))
}
