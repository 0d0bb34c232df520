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

/// Merges delta entries, ascending, with the runs of a table until enough members are rewritten.
pub(super) fn merge<F: Fingerprint>(
    snapshot: &Snapshot,
    table: usize,
    deltas: &[(F, Delta)],
) -> Result<Merged<F>> {
    let mut runs = Runs { cursor: snapshot.pass(Family::Table(table))?, table, last: None };
    let mut merged = Merged { deleted: Vec::new(), runs: Vec::new(), deltas: 0 };
    let (mut written, mut members) = (0, Vec::new());
    while written < STEP_MEMBERS
        && let Some(ahead) = deltas.get(merged.deltas..)
        && let Some((first, _)) = ahead.first()
    {
        members.clear();
        let last = runs.read(*first, &mut members)?;
        let of_run = last.map_or(ahead.len(), |last| ahead.partition_point(|(at, _)| *at <= last));
        let of_run = ahead.get(..of_run.min(STEP_MEMBERS)).unwrap_or_default();
        merged.deltas += of_run.len();
        written += of_run.len();
        let before = members.len();
        members.retain(|member| found(of_run, *member) != Some(Delta::Removed));
        let kept = members.len();
        let added = of_run.iter().filter(|(_, delta)| *delta == Delta::Added);
        members.extend(added.map(|(entry, _)| *entry));
        members.sort_unstable();
        members.dedup();
        if kept == before && members.len() == kept {
            continue;
        }
        written += members.len();
        merged.deleted.extend(last.filter(|last| members.last() != Some(last)));
        merged.runs.extend(encoded(&members));
    }
    Ok(merged)
}

fn found<F: Fingerprint>(deltas: &[(F, Delta)], member: F) -> Option<Delta> {
    let at = deltas.binary_search_by_key(&member, |(entry, _)| *entry).ok()?;
    deltas.get(at).map(|(_, delta)| *delta)
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
