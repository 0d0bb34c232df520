//! Delta entries: what was added to the set of fingerprints, or removed from it, since a merge.
//!
//! They are stored once, in delta runs of the first table, and apply to every table. Of those with the
//! same fingerprint, the last one decides. In an index of formats 1 to 6 some are stored alone, which
//! override delta runs: in formats 1 and 2 in each table, and an interrupted merge may have left some
//! in later tables only. All of them are read, and nothing else has to know.

use std::collections::HashSet;

use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::plan::{Permutation, Table};
use crate::store::delta_run::{self, Name};
use crate::store::keys::{self, Delta, Kind};
use crate::store::{Cursor, Family, Snapshot};

/// Fingerprints that are read at a time if memory cannot hold them all.
const PIECE: usize = if cfg!(any(test, feature = "model")) { 1 << 10 } else { 1 << 20 };

/// Bytes that are read ahead of a block that is not in memory.
const AT_ONCE: usize = 256 << 10;

/// Delta entries in memory, one for a fingerprint, in no table's bit order.
#[derive(Debug)]
pub(crate) struct Deltas<F> {
    entries: Vec<(F, Delta)>,
    /// The delta runs, ascending by number.
    runs: Vec<Name>,
}

/// A delta entry while others with the same fingerprint may follow.
type Named<F> = (F, Place);

/// Where a delta entry was read, and what it says: a higher one decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place(u32);

impl Place {
    /// Behind all delta runs.
    const ALONE: usize = (u32::MAX >> 1) as usize;

    fn new(run: usize, delta: Delta) -> Self {
        let run = u32::try_from(run.min(Self::ALONE)).expect("it fits");
        Self(run << 1 | u32::from(delta == Delta::Added))
    }

    fn delta(self) -> Delta {
        if self.0 & 1 == 1 { Delta::Added } else { Delta::Removed }
    }
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

    /// Reads the first delta entries, up to a number. Returns whether these are all.
    ///
    /// None of those that are left comes before one that was read. So the set of a table stays the
    /// same if a merge takes in and deletes only these.
    pub(crate) fn some(snapshot: &Snapshot, tables: &[Table], most: usize) -> Result<(Self, bool)> {
        let (mut named, mut runs) = (Vec::new(), Vec::new());
        let complete = each_run(snapshot, tables, |name, members| {
            let fits = named.len() + members.len() <= most;
            if fits {
                let place = Place::new(runs.len(), name.delta);
                runs.push(name);
                named.extend(members.iter().map(|member| (*member, place)));
            }
            Ok(fits)
        })?;
        let complete = complete && push_alone(snapshot, tables, most, &mut named)?;
        named.sort_unstable();
        named.dedup_by(|later, kept| {
            let is_same = later.0 == kept.0;
            if is_same {
                kept.1 = later.1;
            }
            is_same
        });
        // As large as before, so they take the same memory.
        let entries = named.into_iter().map(|(entry, place)| (entry, place.delta())).collect();
        Ok((Self { entries, runs }, complete))
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the entries, and the delta runs they are of.
    pub(crate) fn into_parts(self) -> (Vec<(F, Delta)>, Vec<Name>) {
        (self.entries, self.runs)
    }

    #[cfg(test)]
    pub(crate) fn runs(&self) -> &[Name] {
        &self.runs
    }

    /// Returns the fingerprints that were added.
    pub(crate) fn added(&self) -> impl Iterator<Item = F> {
        let added = self.entries.iter().filter(|(_, delta)| *delta == Delta::Added);
        added.map(|(fingerprint, _)| *fingerprint)
    }

    /// Returns whether any fingerprint was removed.
    pub(crate) fn removes(&self) -> bool {
        self.entries.iter().any(|(_, delta)| *delta == Delta::Removed)
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
        each_run(snapshot, tables, |name, members| {
            if name.delta == Delta::Added {
                piece.extend_from_slice(members);
            }
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
    named: &mut Vec<Named<F>>,
) -> Result<bool> {
    let before = named.len();
    for (number, table) in tables.iter().enumerate().take(stored_in(snapshot)) {
        // Later tables repeat what earlier ones have.
        let known: HashSet<F> = match number {
            0 => HashSet::new(),
            _ => named.iter().skip(before).map(|(fingerprint, _)| *fingerprint).collect(),
        };
        let mut cursor = first(snapshot, number, Kind::Delta)?;
        while let Some((permuted, delta)) = next(&mut cursor, number)? {
            let fingerprint = table.permutation().invert(permuted);
            if known.contains(&fingerprint) {
                continue;
            }
            if named.len() >= most {
                return Ok(false);
            }
            named.push((fingerprint, Place::new(Place::ALONE, delta)));
        }
    }
    Ok(true)
}

/// Passes every delta run and its members to `visit`, in order, until it returns false.
///
/// Returns whether it never did.
fn each_run<F: Fingerprint>(
    snapshot: &Snapshot,
    tables: &[Table],
    mut visit: impl FnMut(Name, &[F]) -> Result<bool>,
) -> Result<bool> {
    let Some(table) = tables.first() else { return Ok(true) };
    let (mut cursor, mut members) = (first(snapshot, 0, Kind::DeltaRun)?, Vec::new());
    while let Some((key, value)) = cursor.entry()?
        && let Some(name) = Name::of(key)?
    {
        delta_run::decode(value, &mut members)?;
        table.permutation().invert_all(&mut members);
        if !visit(name, &members)? {
            return Ok(false);
        }
        cursor.next();
    }
    Ok(true)
}

/// Returns how many tables may have delta entries that are stored alone.
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
