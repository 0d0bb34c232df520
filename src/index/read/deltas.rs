//! Delta entries: what was added to the set of fingerprints, or removed from it, since a merge.
//!
//! They are stored once, in the first table, and apply to every table: alone, or, if a batch added
//! them, together in delta runs. What is stored alone is later than every delta run with the same
//! fingerprint. In an index of format 1 or 2 each table has its own, and an interrupted merge may
//! have left some in later tables only. All of them are read, and nothing else has to know.

use std::collections::HashSet;

use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::plan::{Permutation, Table};
use crate::store::keys::{self, Delta, Kind};
use crate::store::{Cursor, Family, Snapshot, delta_run};

/// Fingerprints that are read at a time if memory cannot hold them all.
const PIECE: usize = if cfg!(test) { 1 << 10 } else { 1 << 20 };

/// Bytes that are read ahead of a block that is not in memory.
const AT_ONCE: usize = 256 << 10;

/// Delta entries in memory, one for a fingerprint, in no table's bit order.
#[derive(Debug)]
pub(crate) struct Deltas<F> {
    /// Those of delta runs, then those that are stored alone.
    entries: Vec<(F, Delta)>,
    /// How many of them are of delta runs.
    of_runs: usize,
    /// Numbers of the delta runs.
    runs: Vec<u64>,
}

impl<F: Fingerprint> Deltas<F> {
    /// Reads all delta entries of a snapshot.
    pub(crate) fn of(snapshot: &Snapshot, tables: &[Table]) -> Result<Self> {
        Self::some(snapshot, tables, usize::MAX).map(|(deltas, _)| deltas)
    }

    /// Reads all delta entries of a snapshot, as the first table orders them.
    pub(crate) fn of_first(snapshot: &Snapshot, tables: &[Table]) -> Result<Vec<(F, Delta)>> {
        let Some(first) = tables.first() else { return Ok(Vec::new()) };
        let mut entries = Self::of(snapshot, tables)?.entries;
        reorder(&mut entries, |fingerprint| first.permutation().apply(fingerprint));
        Ok(entries)
    }

    /// Reads delta entries up to a number. Returns whether these are all.
    ///
    /// Entries that are stored alone override delta runs, so they come last: the set of a table
    /// stays the same if a merge takes in and deletes only what was read.
    pub(crate) fn some(snapshot: &Snapshot, tables: &[Table], most: usize) -> Result<(Self, bool)> {
        let (mut entries, mut runs) = (Vec::new(), Vec::new());
        let complete = each_run(snapshot, tables, |number, members| {
            let fits = entries.len() + members.len() <= most;
            if fits {
                runs.push(number);
                entries.extend(members.iter().map(|member| (*member, Delta::Added)));
            }
            Ok(fits)
        })?;
        // Batches may have added the same fingerprint.
        entries.sort_unstable_by_key(|(fingerprint, _)| *fingerprint);
        entries.dedup_by_key(|(fingerprint, _)| *fingerprint);
        let mut of_runs = entries.len();
        let complete = complete && push_alone(snapshot, tables, most, &mut entries)?;
        let alone = entries.iter().skip(of_runs).map(|(fingerprint, _)| *fingerprint);
        let mut alone: Vec<F> = alone.collect();
        if !alone.is_empty() {
            alone.sort_unstable();
            let (mut at, before) = (0, of_runs);
            entries.retain(|(fingerprint, _)| {
                let overridden = at < before && alone.binary_search(fingerprint).is_ok();
                of_runs -= usize::from(overridden);
                at += 1;
                !overridden
            });
        }
        Ok((Self { entries, of_runs, runs }, complete))
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the entries, those of them that are stored alone and added, ascending, and the
    /// numbers of the delta runs.
    pub(crate) fn into_parts(self) -> (Vec<(F, Delta)>, Vec<F>, Vec<u64>) {
        let Self { entries, of_runs, runs } = self;
        let alone = entries.iter().skip(of_runs);
        let added = alone.filter(|(_, delta)| *delta == Delta::Added);
        let mut again: Vec<F> = added.map(|(fingerprint, _)| *fingerprint).collect();
        again.sort_unstable();
        (entries, again, runs)
    }

    #[cfg(test)]
    pub(crate) fn runs(&self) -> &[u64] {
        &self.runs
    }

    /// Returns the fingerprints that were added.
    pub(crate) fn added(&self) -> impl Iterator<Item = F> {
        self.with(Delta::Added)
    }

    /// Returns the fingerprints that were removed.
    pub(crate) fn removed(&self) -> impl Iterator<Item = F> {
        self.with(Delta::Removed)
    }

    fn with(&self, wanted: Delta) -> impl Iterator<Item = F> {
        let entries = self.entries.iter().filter(move |(_, delta)| *delta == wanted);
        entries.map(|(fingerprint, _)| *fingerprint)
    }

    /// Reads the fingerprints that were added piece by piece, so that memory is bounded.
    ///
    /// Some may have been removed again.
    pub(super) fn each_piece(
        snapshot: &Snapshot,
        tables: &[Table],
        mut visit: impl FnMut(&mut Vec<F>) -> Result<()>,
    ) -> Result<()> {
        let mut hand_on = |piece: &mut Vec<F>, least| {
            if piece.len() >= least {
                visit(piece)?;
                piece.clear();
            }
            Ok(())
        };
        let mut piece = Vec::new();
        each_run(snapshot, tables, |_, members| {
            piece.extend_from_slice(members);
            hand_on(&mut piece, PIECE).map(|()| true)
        })?;
        for (number, table) in tables.iter().enumerate().take(stored_in(snapshot)) {
            let mut cursor = first(snapshot, number, Kind::Delta)?;
            while let Some((permuted, delta)) = next(&mut cursor, number)? {
                if delta == Delta::Added {
                    piece.push(table.permutation().invert(permuted));
                    hand_on(&mut piece, PIECE)?;
                }
            }
        }
        hand_on(&mut piece, 1)
    }

    /// Returns the entries as a table orders them.
    pub(crate) fn permuted(&self, permutation: &Permutation) -> Vec<(F, Delta)> {
        let mut permuted = self.entries.clone();
        reorder(&mut permuted, |fingerprint| permutation.apply(fingerprint));
        permuted
    }
}

/// Maps every entry by `to`, and sorts them.
pub(in crate::index) fn reorder<F: Fingerprint>(entries: &mut [(F, Delta)], to: impl Fn(F) -> F) {
    for (entry, _) in &mut *entries {
        *entry = to(*entry);
    }
    entries.sort_unstable_by_key(|(entry, _)| *entry);
}

/// Appends delta entries that are stored alone, up to a number in all. Returns whether these are all.
fn push_alone<F: Fingerprint>(
    snapshot: &Snapshot,
    tables: &[Table],
    most: usize,
    entries: &mut Vec<(F, Delta)>,
) -> Result<bool> {
    let before = entries.len();
    for (number, table) in tables.iter().enumerate().take(stored_in(snapshot)) {
        // Later tables repeat what earlier ones have.
        let known: HashSet<F> = match number {
            0 => HashSet::new(),
            _ => entries.iter().skip(before).map(|(fingerprint, _)| *fingerprint).collect(),
        };
        let mut cursor = first(snapshot, number, Kind::Delta)?;
        while let Some((permuted, delta)) = next(&mut cursor, number)? {
            let fingerprint = table.permutation().invert(permuted);
            if known.contains(&fingerprint) {
                continue;
            }
            if entries.len() >= most {
                return Ok(false);
            }
            entries.push((fingerprint, delta));
        }
    }
    Ok(true)
}

/// Passes number and members of every delta run to `visit`, until it returns false.
///
/// Returns whether it never did.
fn each_run<F: Fingerprint>(
    snapshot: &Snapshot,
    tables: &[Table],
    mut visit: impl FnMut(u64, &[F]) -> Result<bool>,
) -> Result<bool> {
    let Some(table) = tables.first() else { return Ok(true) };
    let (mut cursor, mut members) = (first(snapshot, 0, Kind::DeltaRun)?, Vec::new());
    while let Some((key, value)) = cursor.entry()?
        && let Some(number) = delta_run::number(key)?
    {
        delta_run::decode(value, &mut members)?;
        table.permutation().invert_all(&mut members);
        if !visit(number, &members)? {
            return Ok(false);
        }
        cursor.next();
    }
    Ok(true)
}

/// Returns how many tables may have delta entries.
fn stored_in(snapshot: &Snapshot) -> usize {
    snapshot.store().tables_with_deltas()
}

/// Opens a cursor at the first entry of a kind that is stored in a table.
fn first(snapshot: &Snapshot, table: usize, kind: Kind) -> Result<Cursor<'_>> {
    let mut cursor = snapshot.probe(Family::Table(table), AT_ONCE)?;
    cursor.seek(&[kind as u8]);
    Ok(cursor)
}

/// Returns the delta entry that is stored alone under a cursor and moves on.
///
/// Returns `None` behind the last one.
#[inline]
pub(in crate::index) fn next<F: Fingerprint>(
    cursor: &mut Cursor<'_>,
    table: usize,
) -> Result<Option<(F, Delta)>> {
    let Some((key, value)) = cursor.entry()? else { return Ok(None) };
    let entry = keys::delta(key, value, table)?;
    if entry.is_some() {
        cursor.next();
    }
    Ok(entry)
}
