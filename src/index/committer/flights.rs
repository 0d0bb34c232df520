//! Flights: batches of new documents on their way to the log, side by side.
//!
//! A batch that only adds documents under keys that nobody else is adding changes nothing that
//! another such batch reads. So the writer lock covers its staging alone, and the store gathers
//! what is committed at the same time into one group. Everything else, whether it replaces,
//! removes or folds, or has near what a batch in flight brings, waits until nothing is in flight.

use std::collections::HashSet;
use std::sync::PoisonError;

use xxhash_rust::xxh3::xxh3_64;

use crate::store::LANES;
use crate::sync::{Condvar, Mutex, MutexGuard};

/// The batches in flight of one index.
#[derive(Debug, Default)]
pub(super) struct Flights {
    open: Mutex<Open>,
    landed: Condvar,
}

#[derive(Debug, Default)]
struct Open {
    /// Hashes of the keys in flight; equal hashes of different keys only cost a wait.
    keys: HashSet<u64>,
    /// Which lanes are taken.
    lanes: [bool; LANES],
}

/// A batch in flight; it lands when dropped.
#[derive(Debug)]
pub(super) struct Flight<'a> {
    flights: &'a Flights,
    keys: Vec<u64>,
    lane: usize,
}

impl Flights {
    /// Waits until nothing is in flight.
    ///
    /// The caller holds the writer lock, so nothing takes off meanwhile.
    pub(super) fn wait_for_all(&self) {
        let mut open = self.open();
        while open.lanes.contains(&true) {
            open = self.landed.wait(open).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until none of the keys is in flight; the caller holds the writer lock.
    pub(super) fn wait_for(&self, keys: &[u64]) {
        let mut open = self.open();
        while keys.iter().any(|key| open.keys.contains(key)) {
            open = self.landed.wait(open).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes off with some keys as soon as a lane is free; the caller holds the writer lock.
    pub(super) fn take_off(&self, keys: Vec<u64>) -> Flight<'_> {
        let mut open = self.open();
        loop {
            if let Some(lane) = open.lanes.iter().position(|taken| !taken) {
                if let Some(taken) = open.lanes.get_mut(lane) {
                    *taken = true;
                }
                open.keys.extend(&keys);
                return Flight { flights: self, keys, lane };
            }
            open = self.landed.wait(open).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Flight<'_> {
    /// Returns the lane whose count this batch alone may change.
    pub(super) fn lane(&self) -> usize {
        self.lane
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        let mut open = self.flights.open();
        for key in &self.keys {
            open.keys.remove(key);
        }
        if let Some(taken) = open.lanes.get_mut(self.lane) {
            *taken = false;
        }
        drop(open);
        self.flights.landed.notify_all();
    }
}

/// Returns what a key is known by in flight.
pub(in crate::index) fn hash(key: &[u8]) -> u64 {
    xxh3_64(key)
}
