//! The journal: records what recent batches changed, while watchers exist.
//!
//! A search whose result must hold under the writer lock need not run under it. It reads a snapshot
//! before, and under the lock only looks at later entries of the journal. Without watchers the
//! journal holds only batches in flight.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, PoisonError};

use crate::sync::{Mutex, MutexGuard};

/// What a batch changes.
#[derive(Debug)]
pub(super) struct Entry<F> {
    pub(super) fingerprints: Arc<Vec<F>>,
    /// Hashes of the keys that it names, also of documents that it leaves as they are.
    pub(super) keys: Arc<[u64]>,
}

impl<F> Clone for Entry<F> {
    fn clone(&self) -> Self {
        Self { fingerprints: Arc::clone(&self.fingerprints), keys: Arc::clone(&self.keys) }
    }
}

/// The recent changes of an index.
#[derive(Debug)]
pub(super) struct Journal<F> {
    state: Mutex<State<F>>,
}

#[derive(Debug)]
struct State<F> {
    /// Number of the next entry.
    next: u64,
    /// The latest entries, numbered up to `next`.
    entries: VecDeque<Entry<F>>,
    /// Numbers of the batches in flight.
    flying: BTreeSet<u64>,
    /// Number of watchers by the first entry that they watch.
    watched: BTreeMap<u64, usize>,
}

impl<F> Default for Journal<F> {
    fn default() -> Self {
        let (entries, flying, watched) = Default::default();
        Self { state: Mutex::new(State { next: 0, entries, flying, watched }) }
    }
}

impl<F> State<F> {
    /// Returns the end of the entries that every later snapshot contains.
    fn landed(&self) -> u64 {
        self.flying.first().copied().unwrap_or(self.next)
    }

    fn forget(&mut self) {
        let needed = self.watched.keys().next().map_or(self.landed(), |&at| at.min(self.landed()));
        let kept = usize::try_from(self.next - needed).unwrap_or(usize::MAX);
        let obsolete = self.entries.len().saturating_sub(kept);
        self.entries.drain(..obsolete);
    }
}

/// A batch in the journal and in flight. Dropping it marks it as finished.
#[derive(Debug)]
pub(super) struct Noted<'a, F> {
    journal: &'a Journal<F>,
    number: u64,
}

impl<F> Drop for Noted<'_, F> {
    fn drop(&mut self) {
        let mut state = self.journal.state();
        state.flying.remove(&self.number);
        state.forget();
    }
}

/// A place in the journal. Later entries are kept until it is dropped.
#[derive(Debug)]
pub(super) struct Place<'a, F> {
    journal: &'a Journal<F>,
    at: u64,
}

impl<F> Journal<F> {
    /// Records what a batch will change, before it commits.
    pub(super) fn note(&self, changed: Entry<F>) -> Noted<'_, F> {
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        state.entries.push_back(changed);
        state.flying.insert(number);
        Noted { journal: self, number }
    }

    /// Returns the place after which later snapshots may miss entries.
    pub(super) fn place(&self) -> Place<'_, F> {
        let mut state = self.state();
        let at = state.landed();
        *state.watched.entry(at).or_default() += 1;
        Place { journal: self, at }
    }

    fn state(&self) -> MutexGuard<'_, State<F>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F> Place<'_, F> {
    /// Moves to the end and returns the entries in between.
    pub(super) fn move_on(&mut self) -> Vec<Entry<F>> {
        let mut state = self.journal.state();
        let behind = usize::try_from(state.next - self.at).unwrap_or(usize::MAX);
        let first = state.entries.len().saturating_sub(behind);
        let since = state.entries.range(first..).cloned().collect();
        let next = state.next;
        *state.watched.entry(next).or_default() += 1;
        leave(&mut state, self.at);
        self.at = next;
        since
    }
}

impl<F> Drop for Place<'_, F> {
    fn drop(&mut self) {
        leave(&mut self.journal.state(), self.at);
    }
}

fn leave<F>(state: &mut State<F>, at: u64) {
    if let Some(watchers) = state.watched.get_mut(&at) {
        *watchers -= 1;
        if *watchers == 0 {
            state.watched.remove(&at);
        }
    }
    state.forget();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(journal: &Journal<u64>) -> Vec<u64> {
        let entries = &journal.state().entries;
        entries.iter().flat_map(|entry| entry.fingerprints.iter().copied()).collect()
    }

    fn moved(place: &mut Place<'_, u64>) -> Vec<u64> {
        place.move_on().iter().flat_map(|entry| entry.fingerprints.iter().copied()).collect()
    }

    fn note(journal: &Journal<u64>, fingerprint: u64) -> Noted<'_, u64> {
        let (fingerprints, keys) = (Arc::new(vec![fingerprint]), Arc::default());
        journal.note(Entry { fingerprints, keys })
    }

    #[test]
    fn entries_stay_until_they_have_landed_and_nobody_watches() {
        let journal = Journal::default();
        drop(note(&journal, 1));
        assert_eq!(kept(&journal), []);
        let slow = note(&journal, 2);
        drop(note(&journal, 3));
        let mut place = journal.place();
        drop(note(&journal, 4));
        assert_eq!(moved(&mut place), [2, 3, 4], "a snapshot may miss batches in flight");
        assert_eq!(moved(&mut place), []);
        assert_eq!(kept(&journal), [2, 3, 4]);
        drop(slow);
        assert_eq!(kept(&journal), []);
        let later = note(&journal, 5);
        let mut second = journal.place();
        assert_eq!((moved(&mut place), moved(&mut second)), (vec![5], vec![5]));
        drop(later);
        drop(note(&journal, 6));
        drop(second);
        assert_eq!(kept(&journal), [6]);
        assert_eq!(moved(&mut place), [6]);
        drop(place);
        assert_eq!(kept(&journal), []);
        assert!(journal.state().watched.is_empty());
    }
}
