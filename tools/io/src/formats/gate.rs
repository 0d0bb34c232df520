//! Gate: what reading threads share, the bytes in flight and the numbers of lines.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::flow::Unit;

/// Bytes in flight of all units behind the front, chunks and results.
const AHEAD: usize = 64 << 20;

/// Bounds the bytes in flight.
#[derive(Debug)]
pub(crate) struct Gate {
    state: Mutex<State>,
    moved: Condvar,
    /// Bytes in flight of the unit that is handed on.
    front: usize,
}

#[derive(Debug, Default)]
struct State {
    /// The next unit to read.
    next: usize,
    /// The unit that is handed on, and the origin of the first row of its source.
    front: usize,
    base: u64,
    /// Bytes in flight by unit, and of all units behind the front.
    used: HashMap<usize, usize>,
    ahead: usize,
    /// Ordinals of the first lines of ranges, and the lines of those counted, by unit.
    firsts: HashMap<usize, u64>,
    counts: HashMap<usize, u64>,
    closed: bool,
}

impl State {
    /// Notes the first ordinal of a range, and of those after it as far as they are counted.
    fn note(&mut self, mut unit: usize, mut first: u64) {
        self.firsts.insert(unit, first);
        while let Some(lines) = self.counts.remove(&unit) {
            (unit, first) = (unit + 1, first + lines);
            self.firsts.insert(unit, first);
        }
    }
}

impl Gate {
    pub(crate) fn new(front: usize) -> Self {
        Self { state: Mutex::default(), moved: Condvar::new(), front }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the next unit to read, with its position; `None` once it is not wanted.
    pub(crate) fn next<'u>(&self, units: &'u [Unit]) -> Option<(usize, &'u Unit)> {
        let mut state = self.lock();
        let next = state.next;
        state.next += 1;
        units.get(next).filter(|_| !state.closed).map(|unit| (next, unit))
    }

    /// Waits until there is room for a chunk, and returns the origin of the source's first row if
    /// it is known; fails once no result is wanted.
    pub(crate) fn admit(&self, unit: usize, bytes: usize) -> Result<Option<u64>, ()> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return Err(());
            }
            let front = unit == state.front;
            let used = if front { state.used.get(&unit).copied() } else { Some(state.ahead) };
            let used = used.unwrap_or(0);
            let limit = if front { self.front } else { AHEAD };
            if used + bytes <= limit || (front && used == 0) {
                *state.used.entry(unit).or_default() += bytes;
                if !front {
                    state.ahead += bytes;
                }
                return Ok(front.then_some(state.base));
            }
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Notes the ordinal of the first line of a range.
    pub(crate) fn begin_at(&self, unit: usize, first: u64) {
        self.lock().note(unit, first);
        self.moved.notify_all();
    }

    /// Notes how many lines begin in a range that another one of its source follows.
    pub(crate) fn counted(&self, unit: usize, lines: u64) {
        let mut state = self.lock();
        state.counts.insert(unit, lines);
        if let Some(first) = state.firsts.get(&unit).copied() {
            state.note(unit, first);
        }
        drop(state);
        self.moved.notify_all();
    }

    /// Returns the ordinal of the first line of a range if it is known.
    pub(crate) fn first_of(&self, unit: usize) -> Option<u64> {
        self.lock().firsts.get(&unit).copied()
    }

    /// Waits for the ordinal of the first line of a range; fails once no result is wanted.
    pub(crate) fn wait_for_first(&self, unit: usize) -> Result<u64, ()> {
        let mut state = self.lock();
        loop {
            match state.firsts.get(&unit) {
                Some(&first) => return Ok(first),
                None if state.closed => return Err(()),
                None => state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// Changes the bytes of something in flight.
    pub(crate) fn resize(&self, unit: usize, from: usize, to: usize) {
        let mut state = self.lock();
        let used = state.used.entry(unit).or_default();
        *used = (*used + to).saturating_sub(from);
        if unit != state.front {
            state.ahead = (state.ahead + to).saturating_sub(from);
        }
        drop(state);
        self.moved.notify_all();
    }

    /// Makes the next unit the one that is handed on; `base` is the origin of its source.
    pub(crate) fn pass(&self, base: u64) {
        let mut state = self.lock();
        let done = state.front;
        state.used.remove(&done);
        state.firsts.remove(&done);
        state.front += 1;
        state.base = base;
        let front = state.front;
        state.ahead -= state.used.get(&front).copied().unwrap_or(0).min(state.ahead);
        drop(state);
        self.moved.notify_all();
    }

    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.moved.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn only_the_source_in_front_may_exceed_its_bytes() {
        let gate = Arc::new(Gate::new(100));
        assert_eq!(gate.admit(0, 1000), Ok(Some(0)));
        assert_eq!(gate.admit(1, AHEAD), Ok(None));
        let waiting = std::thread::spawn({
            let gate = Arc::clone(&gate);
            move || gate.admit(1, 1)
        });
        gate.resize(0, 1000, 0);
        assert!(!waiting.is_finished());
        // The bytes of the next source count as those of the front from now on.
        gate.pass(7);
        gate.resize(1, AHEAD, 0);
        assert_eq!(waiting.join().unwrap(), Ok(Some(7)));
        gate.close();
        assert_eq!(gate.admit(1, 1), Err(()));
    }

    #[test]
    fn a_range_knows_its_first_line_once_all_before_it_are_counted() {
        let gate = Gate::new(100);
        gate.begin_at(4, 0);
        gate.counted(6, 30);
        gate.counted(5, 20);
        assert_eq!([5, 6, 7].map(|unit| gate.first_of(unit)), [None; 3]);
        gate.counted(4, 10);
        assert_eq!([4, 5, 6, 7].map(|unit| gate.first_of(unit)), [0, 10, 30, 60].map(Some));
        gate.close();
        assert_eq!([gate.wait_for_first(7), gate.wait_for_first(8)], [Ok(60), Err(())]);
    }
}
