//! Delta entries: what was added to the set of fingerprints, or removed from it, since a merge.
//!
//! They are stored once, in the first table, and apply to every table. In an index of format 1 or
//! 2 each table has its own, and an interrupted merge may have left some in later tables only. All
//! of them are read, and nothing else has to know.

use std::collections::HashSet;

use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::plan::{Permutation, Table};
use crate::store::keys::{self, Delta, Kind};
use crate::store::{Cursor, Family, Snapshot};

/// Fingerprints that are read at a time if memory cannot hold them all.
const PIECE: usize = if cfg!(test) { 1 << 10 } else { 1 << 20 };

/// Bytes that are read ahead of a block that is not in memory.
const AT_ONCE: usize = 256 << 10;

/// Delta entries in memory, each with its fingerprint in no table's bit order.
#[derive(Debug)]
pub(crate) struct Deltas<F>(Vec<(F, Delta)>);

impl<F: Fingerprint> Deltas<F> {
    /// Reads all delta entries of a snapshot.
    pub(crate) fn of(snapshot: &Snapshot, tables: &[Table]) -> Result<Self> {
        Self::some(snapshot, tables, usize::MAX).map(|(deltas, _)| deltas)
    }

    /// Reads delta entries up to a number. Returns whether these are all.
    pub(crate) fn some(snapshot: &Snapshot, tables: &[Table], most: usize) -> Result<(Self, bool)> {
        let mut all = Vec::new();
        for (number, table) in tables.iter().enumerate().take(stored_in(snapshot)) {
            // Later tables repeat what earlier ones have.
            let known: HashSet<F> = match number {
                0 => HashSet::new(),
                _ => all.iter().map(|(fingerprint, _)| *fingerprint).collect(),
            };
            let mut cursor = first(snapshot, number)?;
            while let Some((permuted, delta)) = next(&mut cursor, number)? {
                let fingerprint = table.permutation().invert(permuted);
                if known.contains(&fingerprint) {
                    continue;
                }
                if all.len() == most {
                    return Ok((Self(all), false));
                }
                all.push((fingerprint, delta));
            }
        }
        Ok((Self(all), true))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the fingerprints that were added.
    pub(crate) fn added(&self) -> impl Iterator<Item = F> {
        self.0.iter().filter(|(_, delta)| *delta == Delta::Added).map(|(added, _)| *added)
    }

    /// Returns true if any entry removes a fingerprint.
    pub(crate) fn remove(&self) -> bool {
        self.0.iter().any(|(_, delta)| *delta == Delta::Removed)
    }

    /// Reads the fingerprints that were added piece by piece, so that memory is bounded.
    ///
    /// Some may have been removed again.
    pub(super) fn each_piece(
        snapshot: &Snapshot,
        tables: &[Table],
        mut visit: impl FnMut(&mut Vec<F>) -> Result<()>,
    ) -> Result<()> {
        let mut piece = Vec::new();
        for (number, table) in tables.iter().enumerate().take(stored_in(snapshot)) {
            let mut cursor = first(snapshot, number)?;
            while let Some((permuted, delta)) = next(&mut cursor, number)? {
                if delta == Delta::Added {
                    piece.push(table.permutation().invert(permuted));
                }
                if piece.len() == PIECE {
                    visit(&mut piece)?;
                    piece.clear();
                }
            }
        }
        if piece.is_empty() { Ok(()) } else { visit(&mut piece) }
    }

    /// Returns the entries as a table orders them.
    pub(crate) fn permuted(&self, permutation: &Permutation) -> Vec<(F, Delta)> {
        let permuted = self.0.iter().map(|(entry, delta)| (permutation.apply(*entry), *delta));
        let mut permuted: Vec<_> = permuted.collect();
        permuted.sort_unstable_by_key(|(entry, _)| *entry);
        permuted
    }
}

/// Returns how many tables may have delta entries.
fn stored_in(snapshot: &Snapshot) -> usize {
    snapshot.store().tables_with_deltas()
}

/// Opens a cursor at the first delta entry that is stored in a table.
fn first(snapshot: &Snapshot, table: usize) -> Result<Cursor<'_>> {
    let mut cursor = snapshot.probe(Family::Table(table), AT_ONCE)?;
    cursor.seek(&[Kind::Delta as u8]);
    Ok(cursor)
}

/// Returns the delta entry under a cursor and moves on, or `None` behind the last one.
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
