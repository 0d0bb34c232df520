//! Flights: concurrent batches of new documents on their way to the log.
//!
//! A batch that only adds documents under keys that are not in flight changes nothing that another
//! such batch reads. So the writer lock covers only its staging, and the store groups concurrent
//! commits. All other batches wait until nothing is in flight: those that replace, remove or merge,
//! and those whose documents are near one in flight.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError};

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
    /// Hashes of the keys in flight. A hash collision only costs a wait.
    keys: HashSet<u64>,
    /// Which lanes are in use.
    lanes: [bool; LANES],
}

/// A batch in flight. Dropping it marks it as finished.
#[derive(Debug)]
pub(super) struct Flight<'a> {
    flights: &'a Flights,
    keys: Arc<[u64]>,
    lane: usize,
}

impl Flights {
    /// Waits until nothing is in flight.
    ///
    /// The caller holds the writer lock, so no batch begins meanwhile.
    pub(super) fn wait_for_all(&self) {
        let mut open = self.open();
        while open.lanes.contains(&true) {
            open = self.landed.wait(open).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until none of the keys is in flight. The caller holds the writer lock.
    pub(super) fn wait_for(&self, keys: &[u64]) {
        let mut open = self.open();
        while keys.iter().any(|key| open.keys.contains(key)) {
            open = self.landed.wait(open).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Starts a flight as soon as a lane is free. The caller holds the writer lock.
    pub(super) fn take_off(&self, keys: Arc<[u64]>) -> Flight<'_> {
        let mut open = self.open();
        loop {
            if let Some(lane) = open.lanes.iter().position(|taken| !taken) {
                if let Some(taken) = open.lanes.get_mut(lane) {
                    *taken = true;
                }
                open.keys.extend(keys.iter());
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
    /// Returns the lane whose count only this batch may change.
    pub(super) fn lane(&self) -> usize {
        self.lane
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        let mut open = self.flights.open();
        for key in &*self.keys {
            open.keys.remove(key);
        }
        if let Some(taken) = open.lanes.get_mut(self.lane) {
            *taken = false;
        }
        drop(open);
        self.flights.landed.notify_all();
    }
}

/// Returns the hash that identifies a key in flight.
pub(in crate::index) fn hash(key: &[u8]) -> u64 {
    xxh3_64(key)
}
