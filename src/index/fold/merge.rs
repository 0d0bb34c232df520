//! Merging: some runs of a table and their delta entries become new runs.

use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::index::committer::Merged;
use crate::store::keys::{self, Delta, Kind, TableKey};
use crate::store::run::{self, RUN_MEMBERS};
use crate::store::{Cursor, Family, Snapshot};

/// Members that one step rewrites, roughly.
///
/// This takes about 45 KB in the log, which a concurrent write may wait for.
const STEP_MEMBERS: usize = 1 << 14;

/// Length above which a rewritten run is cut, in members.
const LONGEST_RUN: usize = RUN_MEMBERS + RUN_MEMBERS / 2;

/// Merges the next delta entries of a table with their runs, and returns the last one.
///
/// Returns `None` at the end of the table.
pub(super) fn merge<F: Fingerprint>(
    snapshot: &Snapshot,
    table: usize,
    behind: Option<F>,
) -> Result<(Vec<Merged<F>>, Option<F>)> {
    let mut deltas = Deltas::new(snapshot, table, behind)?;
    let mut runs = Runs { cursor: snapshot.pass(Family::Table(table))?, table, last: None };
    let mut merged = Vec::new();
    let (mut written, mut behind) = (0, behind);
    while written < STEP_MEMBERS {
        let Some((first, _)) = deltas.next else { return Ok((merged, None)) };
        let mut members = Vec::new();
        let last = runs.read(first, &mut members)?;
        let (mut added, mut removed) = (Vec::new(), Vec::new());
        while added.len() + removed.len() < STEP_MEMBERS
            && let Some((entry, delta)) = deltas.next
            && last.is_none_or(|last| entry <= last)
        {
            match delta {
                Delta::Added => added.push(entry),
                Delta::Removed => removed.push(entry),
            }
            behind = Some(entry);
            deltas.advance()?;
        }
        written += added.len() + removed.len();
        let before = members.len();
        members.retain(|member| removed.binary_search(member).is_err());
        let kept = members.len();
        members.extend_from_slice(&added);
        members.sort_unstable();
        members.dedup();
        let changes = kept < before || kept < members.len();
        let runs = if changes { encoded(&members) } else { Vec::new() };
        written += if changes { members.len() } else { 0 };
        let deleted = last.filter(|last| changes && members.last() != Some(last));
        merged.push(Merged { added, removed, deleted, runs });
    }
    Ok((merged, behind))
}

/// The delta entries of a table in ascending order.
struct Deltas<'a, F> {
    cursor: Cursor<'a>,
    table: usize,
    next: Option<(F, Delta)>,
}

impl<'a, F: Fingerprint> Deltas<'a, F> {
    fn new(snapshot: &'a Snapshot, table: usize, behind: Option<F>) -> Result<Self> {
        let mut cursor = snapshot.pass(Family::Table(table))?;
        match behind {
            Some(last) => cursor.seek(TableKey::new(Kind::Delta, last).as_ref()),
            None => cursor.seek(&[Kind::Delta as u8]),
        }
        let mut deltas = Self { cursor, table, next: None };
        deltas.read()?;
        if deltas.next.is_some_and(|(entry, _)| Some(entry) == behind) {
            deltas.advance()?;
        }
        Ok(deltas)
    }

    fn advance(&mut self) -> Result<()> {
        self.cursor.next();
        self.read()
    }

    fn read(&mut self) -> Result<()> {
        self.next = match self.cursor.entry()? {
            Some((key, value)) => keys::delta(key, value, self.table)?,
            None => None,
        };
        Ok(())
    }
}

/// The runs of a table, read in ascending order.
struct Runs<'a, F> {
    cursor: Cursor<'a>,
    table: usize,
    /// Key of the run under the cursor.
    last: Option<F>,
}

impl<F: Fingerprint> Runs<'_, F> {
    /// Decodes the first run that ends at or behind a fingerprint, and returns its key.
    ///
    /// Returns `None` behind the last run. Fingerprints must not descend.
    fn read(&mut self, first: F, members: &mut Vec<F>) -> Result<Option<F>> {
        // A pass rewrites most runs, and a step to the next one costs less than a seek.
        if self.last.is_some_and(|last| last < first) {
            self.cursor.next();
            self.read_key()?;
        }
        if self.last.is_none_or(|last| last < first) {
            self.cursor.seek(TableKey::new(Kind::Run, first).as_ref());
            self.read_key()?;
        }
        if let Some(last) = self.last
            && let Some((_, value)) = self.cursor.entry()?
        {
            run::decode(last, value, self.table, members)?;
        }
        Ok(self.last)
    }

    fn read_key(&mut self) -> Result<()> {
        self.last = match self.cursor.entry()? {
            Some((key, _)) => keys::permuted(key, Kind::Run, self.table)?,
            None => None,
        };
        Ok(())
    }
}

/// Cuts ascending members into runs of even length. Returns last member and value of each.
fn encoded<F: Fingerprint>(members: &[F]) -> Vec<(F, Vec<u8>)> {
    let runs = if members.len() <= LONGEST_RUN { 1 } else { members.len().div_ceil(RUN_MEMBERS) };
    let cut = members.chunks(members.len().div_ceil(runs).max(1));
    cut.filter_map(|run| {
        let mut value = Vec::new();
        run::encode(run, &mut value);
        run.last().map(|last| (*last, value))
    })
    .collect()
}
