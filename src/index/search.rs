//! Searching: prefix ranges of the tables, or all of one table, become fingerprints in reach.
//!
//! Candidates are compared in the table's own order of bits, because a permutation keeps the
//! Hamming distance; only those within it are permuted back. Every member of a run that a range
//! touches is compared, those outside the range too, which finds nothing wrong and needs no
//! second look at the bounds.

use super::query::TableExplanation;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::kernel;
use crate::plan::{Schedule, Table, probe_masks};
use crate::store::keys::{self, Kind, TableKey};
use crate::store::{Cursor, View, run};

/// A stored fingerprint with its distance from the query.
pub(crate) type Found<F> = (u32, F);

/// One search in one snapshot.
pub(crate) struct Search<'a, F> {
    pub(crate) view: &'a mut View,
    pub(crate) tables: &'a [Table],
    pub(crate) query: F,
    pub(crate) distance: u32,
    /// False when every entry of the snapshot is known to be in a run.
    pub(crate) singles: bool,
}

impl<F: Fingerprint> Search<'_, F> {
    /// Probes the tables as scheduled; the result rises by distance and repeats nothing.
    pub(crate) fn by_tables(
        &mut self,
        schedule: &Schedule,
        work: &mut Vec<TableExplanation>,
    ) -> Result<Vec<Found<F>>> {
        work.reserve(self.tables.len());
        let mut found = Vec::new();
        let mut members = Vec::with_capacity(2 * run::RUN_MEMBERS);
        for (number, (table, radius)) in self.tables.iter().zip(schedule.radii()).enumerate() {
            let mut counts = TableExplanation {
                table: number,
                prefix_bits: table.prefix_bits(),
                radius: *radius,
                ..TableExplanation::default()
            };
            if let Some(radius) = *radius {
                let mut probe = Probe {
                    table: number,
                    query: table.permutation().apply(self.query),
                    distance: self.distance,
                    members: &mut members,
                    found: &mut found,
                    counts: &mut counts,
                };
                let before = probe.found.len();
                self.view.table(number, |cursor| {
                    probe.prefix(cursor, table.prefix_bits(), radius, self.singles)
                })?;
                for (_, fingerprint) in found.iter_mut().skip(before) {
                    *fingerprint = table.permutation().invert(*fingerprint);
                }
            }
            work.push(counts);
        }
        Ok(distinct(found))
    }

    /// Compares the query with every entry of the first table.
    pub(crate) fn by_scan(&mut self, work: &mut Vec<TableExplanation>) -> Result<Vec<Found<F>>> {
        let table = self.tables.first().ok_or_else(|| Error::corrupt("meta", "plan is empty"))?;
        let mut found = Vec::new();
        let mut members = Vec::new();
        let mut counts = TableExplanation::default();
        let mut probe = Probe {
            table: 0,
            query: table.permutation().apply(self.query),
            distance: self.distance,
            members: &mut members,
            found: &mut found,
            counts: &mut counts,
        };
        self.view.table(0, |cursor| probe.range(cursor, F::ZERO, F::ONES, self.singles))?;
        for (_, fingerprint) in &mut found {
            *fingerprint = table.permutation().invert(*fingerprint);
        }
        work.push(counts);
        Ok(distinct(found))
    }
}

/// Drops what several tables, or a run and a single, reported.
fn distinct<F: Fingerprint>(mut found: Vec<Found<F>>) -> Vec<Found<F>> {
    found.sort_unstable();
    found.dedup();
    found
}

/// The reading of one table for one query.
struct Probe<'a, F> {
    table: usize,
    query: F,
    distance: u32,
    members: &'a mut Vec<F>,
    found: &'a mut Vec<Found<F>>,
    counts: &'a mut TableExplanation,
}

impl<F: Fingerprint> Probe<'_, F> {
    /// Reads the ranges whose prefix differs from the query's in at most `radius` bits.
    fn prefix(
        &mut self,
        cursor: &mut Cursor<'_>,
        bits: u32,
        radius: u32,
        singles: bool,
    ) -> Result<()> {
        let prefix = F::high_mask(bits);
        let low = self.query & prefix;
        for mask in probe_masks(bits, radius) {
            let low = low ^ flip::<F>(mask, bits);
            self.range(cursor, low, low | !prefix, singles)?;
        }
        Ok(())
    }

    /// Compares with every entry from `low` to `high`, both included.
    ///
    /// The bounds are explicit because prefixes are not whole bytes and the highest range has
    /// nothing above it.
    fn range(&mut self, cursor: &mut Cursor<'_>, low: F, high: F, singles: bool) -> Result<()> {
        self.counts.ranges += 1;
        self.runs(cursor, low, high)?;
        if singles { self.singles(cursor, low, high) } else { Ok(()) }
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

    fn singles(&mut self, cursor: &mut Cursor<'_>, low: F, high: F) -> Result<()> {
        self.members.clear();
        cursor.seek(TableKey::new(Kind::Single, low).as_ref());
        while let Some((key, _)) = cursor.entry()? {
            match keys::permuted::<F>(key, Kind::Single, self.table)? {
                Some(single) if single <= high => self.members.push(single),
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

    fn compare(&mut self) {
        self.counts.candidates += self.members.len() as u64;
        let (members, found, counts) = (&*self.members, &mut *self.found, &mut *self.counts);
        kernel::within(members, self.query, self.distance, &mut |index, distance| {
            if let Some(member) = members.get(index) {
                counts.matches += 1;
                found.push((distance, *member));
            }
        });
    }
}

/// Moves a mask over a prefix, least significant bit last, to the top of the width.
fn flip<F: Fingerprint>(mask: u128, prefix_bits: u32) -> F {
    match F::BITS - prefix_bits {
        shift if shift >= F::BITS => F::ZERO,
        shift => F::truncate(mask) << shift,
    }
}

/// Decodes the run that holds a permuted fingerprint, or would hold it; `None` behind the last.
///
/// Members come last one first; the last one, the run's key, is returned.
pub(crate) fn run_at<F: Fingerprint>(
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

/// Tells whether a table holds a permuted fingerprint, in a run or as a single.
pub(crate) fn holds<F: Fingerprint>(view: &mut View, table: usize, permuted: F) -> Result<bool> {
    let mut members = Vec::new();
    let mut found = Vec::new();
    let mut counts = TableExplanation::default();
    let mut probe = Probe {
        table,
        query: permuted,
        distance: 0,
        members: &mut members,
        found: &mut found,
        counts: &mut counts,
    };
    view.table(table, |cursor| probe.range(cursor, permuted, permuted, true))?;
    Ok(!found.is_empty())
}
