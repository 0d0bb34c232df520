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
use crate::store::{Family, Snapshot};

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
        let (mut all, mut complete) = (Vec::new(), true);
        for (number, table) in tables.iter().enumerate().take(stored_in(snapshot)) {
            // Later tables repeat what earlier ones have.
            let known: HashSet<F> = match number {
                0 => HashSet::new(),
                _ => all.iter().map(|(fingerprint, _)| *fingerprint).collect(),
            };
            each(snapshot, number, |permuted: F, delta| {
                let fingerprint = table.permutation().invert(permuted);
                if known.contains(&fingerprint) {
                    return true;
                }
                complete = all.len() < most;
                if complete {
                    all.push((fingerprint, delta));
                }
                complete
            })?;
            if !complete {
                break;
            }
        }
        Ok((Self(all), complete))
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
            let mut failed = None;
            each(snapshot, number, |permuted: F, delta| {
                if delta == Delta::Added {
                    piece.push(table.permutation().invert(permuted));
                }
                if piece.len() == PIECE {
                    failed = visit(&mut piece).err();
                    piece.clear();
                }
                failed.is_none()
            })?;
            if let Some(error) = failed {
                return Err(error);
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

/// Calls `visit` with every delta entry that is stored in a table, ascending, until it returns false.
fn each<F: Fingerprint>(
    snapshot: &Snapshot,
    table: usize,
    mut visit: impl FnMut(F, Delta) -> bool,
) -> Result<()> {
    let mut cursor = snapshot.probe(Family::Table(table), AT_ONCE)?;
    cursor.seek(&[Kind::Delta as u8]);
    while let Some((key, value)) = cursor.entry()? {
        match keys::delta(key, value, table)? {
            Some((permuted, delta)) if visit(permuted, delta) => cursor.next(),
            _ => break,
        }
    }
    Ok(())
}
