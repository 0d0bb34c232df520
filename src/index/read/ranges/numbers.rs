//! Numbers of steps: whether a range is the same in two snapshots.
//!
//! Steps that change what the store holds are numbered as they end. A slot, one for each table and the
//! first bits of a prefix, has the number of the last step that changed a range in it, and a number
//! above all others from before that step can be committed until it has ended. A snapshot has the
//! number of the last step that had ended before it was taken. So a range is the same in two snapshots
//! if its slot's number is above neither of theirs.
#![expect(clippy::indexing_slicing, reason = "there are slots for each table and each prefix")]

use std::sync::PoisonError;
use std::sync::atomic::AtomicU32;

use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};

/// Leading bits of a prefix that select its slot.
pub(super) const SLOT_BITS: u32 = 12;

/// The number of a slot that a step is changing.
const CHANGING: u64 = u64::MAX;

/// Ranges to be read after a step before one is kept. In tests few, so that steps change what is kept.
pub(super) const STEADY: u32 = if cfg!(any(test, feature = "model")) { 1 } else { 1 << 14 };

/// The steps that change some tables, one of them at a time.
#[derive(Debug)]
pub(super) struct Numbers {
    tables: Vec<Slots>,
    /// Number of the last step that has ended.
    ended: AtomicU64,
    /// Slots of steps that have not ended, each with its table.
    changing: Mutex<Vec<(usize, usize)>>,
    /// How many ranges were read and not kept since the last step, up to [`STEADY`].
    since: AtomicU32,
}

/// The slots of a table.
#[derive(Debug)]
struct Slots {
    prefix_bits: u32,
    numbers: Box<[AtomicU64]>,
}

impl Slots {
    fn new(prefix_bits: u32) -> Self {
        let slots = 1 << prefix_bits.min(SLOT_BITS);
        Self { prefix_bits, numbers: (0..slots).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Returns the slot of a prefix.
    fn of_prefix(&self, prefix: u128) -> usize {
        let slot = prefix >> self.prefix_bits.saturating_sub(SLOT_BITS);
        usize::try_from(slot).expect("a slot has at most twelve bits")
    }
}

impl Numbers {
    /// Takes the length of each table's prefixes, in bits.
    pub(super) fn new(prefix_bits: impl Iterator<Item = u32>) -> Self {
        Self {
            tables: prefix_bits.map(Slots::new).collect(),
            ended: AtomicU64::new(0),
            changing: Mutex::default(),
            since: AtomicU32::new(STEADY),
        }
    }

    /// Returns the length of a table's prefixes, in bits.
    pub(super) fn prefix_bits(&self, table: usize) -> u32 {
        self.tables[table].prefix_bits
    }

    /// Returns the number of a snapshot that is taken after the call.
    pub(super) fn number(&self) -> u64 {
        self.ended.load(Ordering::Acquire)
    }

    /// Returns the number of the last step that may have changed a range.
    pub(super) fn changed(&self, table: usize, prefix: u128) -> u64 {
        let slots = &self.tables[table];
        slots.numbers[slots.of_prefix(prefix)].load(Ordering::Acquire)
    }

    /// Says that a step will change ranges of a table, from a prefix to another one each.
    ///
    /// Call before its batch can be committed, and then [`Numbers::end`].
    pub(super) fn begin(&self, table: usize, ranges: impl Iterator<Item = (u128, u128)>) {
        self.since.store(0, Ordering::Relaxed);
        let slots = &self.tables[table];
        let mut changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut before = None;
        for (low, high) in ranges {
            for slot in slots.of_prefix(low)..=slots.of_prefix(high) {
                if before.replace(slot) != Some(slot) {
                    slots.numbers[slot].store(CHANGING, Ordering::Release);
                    changing.push((table, slot));
                }
            }
        }
    }

    /// Says that the batches of all steps are committed, or that they never will be.
    pub(super) fn end(&self) {
        let mut changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        if changing.is_empty() {
            return;
        }
        let number = self.ended.fetch_add(1, Ordering::AcqRel) + 1;
        for (table, slot) in changing.drain(..) {
            self.tables[table].numbers[slot].store(number, Ordering::Release);
        }
    }

    /// Counts a range that was read and not kept. Returns true if no step has ended just now.
    pub(super) fn are_steady(&self) -> bool {
        let steady = self.since.load(Ordering::Relaxed) >= STEADY;
        if !steady {
            self.since.fetch_add(1, Ordering::Relaxed);
        }
        steady
    }
}
