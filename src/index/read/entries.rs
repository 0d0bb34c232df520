//! Table entries: merges the runs and delta entries of a table into one ascending stream.

use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::store::keys::{self, Delta, Kind, TableKey};
use crate::store::{Cursor, Family, Snapshot, run};

/// An iterator over the distinct permuted fingerprints of a table, ascending.
pub(crate) struct Entries<'a, F> {
    table: usize,
    runs: Cursor<'a>,
    deltas: std::slice::Iter<'a, (F, Delta)>,
    /// Remaining members of the current run, last one first.
    members: Vec<F>,
    delta: Option<(F, Delta)>,
    last_run: Option<F>,
    /// The last entry to return.
    end: F,
    counts: EntryCounts,
}

/// Number of runs and delta entries read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct EntryCounts {
    pub(crate) runs: u64,
    pub(crate) delta_entries: u64,
}

impl<'a, F: Fingerprint> Entries<'a, F> {
    /// Iterates over a table, given all delta entries in its order.
    pub(crate) fn new(
        snapshot: &'a Snapshot,
        table: usize,
        deltas: &'a [(F, Delta)],
    ) -> Result<Self> {
        Self::part(snapshot, table, deltas, 0, 0)
    }

    /// Iterates over one of `2^bits` equal parts of a table, selected by its leading bits.
    ///
    /// `deltas` are all delta entries in the order of the table.
    pub(crate) fn part(
        snapshot: &'a Snapshot,
        table: usize,
        deltas: &'a [(F, Delta)],
        part: u32,
        bits: u32,
    ) -> Result<Self> {
        let (first, end) = bounds(part, bits);
        let before = deltas.partition_point(|(entry, _)| *entry < first);
        let deltas = deltas.get(before..).unwrap_or_default();
        let within = deltas.partition_point(|(entry, _)| *entry <= end);
        let deltas = deltas.get(..within).unwrap_or_default().iter();
        let mut runs = snapshot.sweep(Family::Table(table))?;
        runs.seek(TableKey::new(Kind::Run, first).as_ref());
        let mut entries = Self {
            table,
            runs,
            deltas,
            members: Vec::new(),
            delta: None,
            last_run: None,
            end,
            counts: EntryCounts::default(),
        };
        entries.advance_delta();
        entries.read_run()?;
        // The first run may begin before the part.
        let within = entries.members.partition_point(|&member| member >= first);
        entries.members.truncate(within);
        Ok(entries)
    }

    /// Returns the counts of what was read so far; a run is of the part that has its last member.
    pub(crate) fn counts(&self) -> EntryCounts {
        self.counts
    }

    /// Returns the next distinct entry.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Corrupt`] for runs that do not decode, overlap or are not ascending.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<F>> {
        Ok(self.following()?.filter(|&entry| entry <= self.end))
    }

    /// Appends the next distinct entries to `to`, until it has `count` or none is left.
    pub(crate) fn take(&mut self, to: &mut Vec<F>, count: usize) -> Result<()> {
        while to.len() < count {
            // Without a delta entry among them, members of a run are taken together.
            let room = count - to.len();
            let last = self.members.len().saturating_sub(room);
            match (self.members.first(), &self.delta) {
                (Some(&highest), delta)
                    if highest <= self.end && delta.is_none_or(|(entry, _)| entry > highest) =>
                {
                    to.extend(self.members.drain(last..).rev());
                }
                _ => match self.next()? {
                    Some(entry) => to.push(entry),
                    None => break,
                },
            }
        }
        Ok(())
    }

    fn following(&mut self) -> Result<Option<F>> {
        loop {
            if self.members.is_empty() {
                self.read_run()?;
            }
            let member = self.members.last().copied();
            let Some((entry, delta)) =
                self.delta.filter(|(entry, _)| member.is_none_or(|m| *entry <= m))
            else {
                self.members.pop();
                return Ok(member);
            };
            if member == Some(entry) {
                self.members.pop();
            }
            self.advance_delta();
            if delta == Delta::Added {
                return Ok(Some(entry));
            }
        }
    }

    fn read_run(&mut self) -> Result<()> {
        let Some((key, value)) = self.runs.entry()? else { return Ok(()) };
        let Some(last) = keys::permuted::<F>(key, Kind::Run, self.table)? else { return Ok(()) };
        run::decode(last, value, self.table, &mut self.members)?;
        if self.members.last().copied() <= self.last_run && self.last_run.is_some() {
            return Err(Error::corrupt(
                Family::Table(self.table).to_string(),
                format!("run ending in {} overlaps the run before it", last.hex()),
            ));
        }
        self.last_run = Some(last);
        self.counts.runs += u64::from(last <= self.end);
        self.runs.next();
        Ok(())
    }

    fn advance_delta(&mut self) {
        self.delta = self.deltas.next().copied();
        self.counts.delta_entries += u64::from(self.delta.is_some());
    }
}

/// Returns the first and the last entry of a part, which the leading bits select.
pub(in crate::index) fn bounds<F: Fingerprint>(part: u32, bits: u32) -> (F, F) {
    if bits == 0 {
        return (F::ZERO, F::ONES);
    }
    let first = F::truncate(u128::from(part)) << (F::BITS - bits);
    (first, first | !F::high_mask(bits))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::index::read::deltas::Deltas;
    use crate::index::{Index, IndexOptions};

    /// Random fingerprints in runs, some of them removed, others added among them.
    fn mixed(count: u64) -> (tempfile::TempDir, Index<u64>, BTreeSet<u64>) {
        let directory = tempfile::tempdir().unwrap();
        let index = Index::create(directory.path(), &IndexOptions::new()).unwrap();
        let mut rng = fastrand::Rng::with_seed(5);
        let mut of: Vec<u64> = (0..count).map(|_| rng.u64(..)).collect();
        let put = |key: usize, fingerprint| {
            index.insert(&key.to_be_bytes(), fingerprint).unwrap();
        };
        of.iter().enumerate().for_each(|(key, &fingerprint)| put(key, fingerprint));
        index.merge(&()).unwrap();
        // A third of the range has no delta entry.
        for (key, fingerprint) in of.iter_mut().enumerate().filter(|(_, f)| **f >> 62 != 2) {
            match key % 50 {
                0 => {
                    *fingerprint = rng.u64(..) >> 1;
                    put(key, *fingerprint);
                }
                1 => {
                    index.remove(&key.to_be_bytes()).unwrap();
                    *fingerprint = 0;
                }
                _ => {}
            }
        }
        (directory, index, of.into_iter().filter(|&fingerprint| fingerprint != 0).collect())
    }

    #[test]
    fn entries_taken_together_are_those_taken_one_by_one() {
        for count in [0, 1, 3000] {
            let (_directory, index, set) = mixed(count);
            let reader = index.reader().unwrap();
            let snapshot = reader.snapshot();
            let deltas = Deltas::of_first(snapshot, index.plan().tables()).unwrap();
            let of_part =
                |part, bits| Entries::<u64>::part(snapshot, 0, &deltas, part, bits).unwrap();
            for (bits, at_once) in [(0, 1), (0, 5000), (1, 7), (3, 100), (6, 128), (6, 1000)] {
                let mut found = Vec::new();
                for part in 0..1 << bits {
                    let mut entries = of_part(part, bits);
                    let (before, mut chunk) = (found.len(), Vec::new());
                    loop {
                        entries.take(&mut chunk, at_once).unwrap();
                        if chunk.is_empty() {
                            break;
                        }
                        found.append(&mut chunk);
                    }
                    let in_part = |f: &u64| bits == 0 || f >> (64 - bits) == u64::from(part);
                    assert!(found[before..].iter().all(in_part), "part {part} of {bits} bits");
                    let mut one_by_one = of_part(part, bits);
                    for &entry in &found[before..] {
                        assert_eq!(one_by_one.next().unwrap(), Some(entry));
                    }
                    assert_eq!(one_by_one.next().unwrap(), None);
                }
                assert!(found.iter().eq(&set), "{count} documents, {bits} bits, {at_once}");
            }
        }
    }
}
