//! Merging: some runs of a table and their delta entries become new runs.

use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::index::committer::Merged;
use crate::store::keys::{self, Delta, Kind, TableKey};
use crate::store::run::{self, RUN_MEMBERS};
use crate::store::{Cursor, Family, Snapshot};

/// Members that one step rewrites, roughly.
///
/// This takes about 180 KB in the log, which a concurrent write may wait for. Each step waits for its
/// turn, and whoever is woken takes a processor from another thread: smaller steps slow searches.
const STEP_MEMBERS: usize = 1 << 16;

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
    let (mut written, mut before, mut members) = (0, Vec::new(), Vec::new());
    while written < STEP_MEMBERS
        && let Some(ahead) = deltas.get(merged.deltas..)
        && let Some((first, _)) = ahead.first()
    {
        before.clear();
        let last = runs.read(*first, &mut before)?;
        // A run has few of the entries, and a search through all of them misses the caches.
        let of_run = ahead.iter().take(STEP_MEMBERS);
        let of_run = of_run.take_while(|(at, _)| last.is_none_or(|last| *at <= last)).count();
        merged.deltas += of_run;
        written += of_run;
        let changes = ahead.get(..of_run).unwrap_or_default();
        if !apply(&before, changes, &mut members) {
            continue;
        }
        written += members.len();
        merged.deleted.extend(last.filter(|last| members.last() != Some(last)));
        merged.runs.extend(encoded(&members));
    }
    Ok(merged)
}

/// Applies ascending delta entries to descending members of a run, which become ascending.
///
/// Returns false if that changes nothing.
fn apply<F: Fingerprint>(before: &[F], deltas: &[(F, Delta)], members: &mut Vec<F>) -> bool {
    members.clear();
    members.reserve(before.len() + deltas.len());
    let (mut rest, mut changed) = (before, false);
    for (entry, delta) in deltas {
        while let Some((member, fewer)) = rest.split_last()
            && member < entry
        {
            members.push(*member);
            rest = fewer;
        }
        let was = rest.last() == Some(entry);
        rest = rest.get(..rest.len() - usize::from(was)).expect("it has that member");
        let is = *delta == Delta::Added;
        if is {
            members.push(*entry);
        }
        changed |= was != is;
    }
    members.extend(rest.iter().rev());
    changed
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn delta_entries_applied_to_a_run_leave_what_they_leave_in_a_set() {
        let mut rng = fastrand::Rng::with_seed(11);
        for _ in 0..2000 {
            let run: BTreeSet<u32> = (0..rng.u32(0..8)).map(|_| rng.u32(0..12)).collect();
            let named: BTreeSet<u32> = (0..rng.u32(0..8)).map(|_| rng.u32(0..12)).collect();
            let delta = |_: &u32| if rng.bool() { Delta::Added } else { Delta::Removed };
            let deltas: Vec<(u32, Delta)> =
                named.iter().copied().zip(named.iter().map(delta)).collect();
            let mut wanted = run.clone();
            for (entry, delta) in &deltas {
                match delta {
                    Delta::Added => wanted.insert(*entry),
                    Delta::Removed => wanted.remove(entry),
                };
            }
            let before: Vec<u32> = run.iter().rev().copied().collect();
            let mut members = vec![7];
            let changed = apply(&before, &deltas, &mut members);
            assert!(members.iter().eq(&wanted), "{run:?}, {deltas:?}");
            assert_eq!(changed, run != wanted, "{run:?}, {deltas:?}");
        }
    }
}
