//! Ranges in memory: what searches have read of the tables, until a merge changes it.
//!
//! A seek in a table takes some microseconds even if all its blocks are in memory, and the members of
//! a range take less than a block. So a search keeps each range that it reads, and the next one that
//! probes the prefix needs no cursor. What ranges take, the cache of blocks gives up. Once their memory
//! is full, a range takes the place of another one only if it is read twice within a while, because
//! keeping a range costs a third of reading it. While a merge is at work nothing is kept: it would soon
//! change, and the blocks that would have to go are read by writers too.
//!
//! Only merges change which fingerprints the runs hold. Steps of merges are numbered as they end. A
//! slot, one for each table and the first bits of a prefix, has the number of the last step that
//! changed a range in it, and a number above all others from before that step can be committed until it
//! has ended. Runs have the number of the last step that had ended before their snapshot was taken. So
//! a range is the same in two snapshots if its slot's number is above neither of theirs.
#![expect(clippy::indexing_slicing, reason = "there are slots for each table and each prefix")]

#[cfg(test)]
mod tests;

use std::sync::atomic::AtomicU32;
use std::sync::{Arc, PoisonError};

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::fingerprint::Fingerprint;
use crate::plan::Table;
use crate::store::BlockCache;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Most members of a range that is kept. Reading more takes much longer than finding them.
pub(super) const MOST_MEMBERS: usize = 4096;

/// Leading bits of a prefix that select its slot.
const SLOT_BITS: u32 = 12;

/// Entries of a pass that change a quarter of all slots or more. What is kept would soon be of no use,
/// and take memory until then.
const MANY: usize = 1 << (SLOT_BITS - 2);

/// The number of a slot that a step is changing.
const CHANGING: u64 = u64::MAX;

/// Bytes that a range takes beside its members: its place, and what holds it.
const BESIDE: usize = 128;

/// Share of the memory of the cache of blocks, as one in this many.
const SHARE: usize = 2;

/// Bytes of a range that is not large.
const USUAL: usize = 1 << 10;

/// Ranges to be read after a step of a merge before one is kept. In tests few, so that steps change what
/// is kept.
const STEADY: u32 = if cfg!(any(test, feature = "model")) { 1 } else { 1 << 14 };

/// Bytes of new ranges after which the cache of blocks gives up what they take.
const SETTLED: usize = 1 << 20;

/// Ranges of all tables.
#[derive(Debug)]
pub(in crate::index) struct Ranges<F> {
    kept: Cache<Place, Kept<F>, Weight>,
    blocks: Option<BlockCache>,
    /// Bytes of all that were kept so far.
    taken: AtomicUsize,
    /// Marks of places that were read and not kept, each where its hash says.
    seen: Box<[AtomicU32]>,
    tables: Vec<Slots>,
    /// How many were read and not kept since the last step, up to [`STEADY`].
    since: AtomicU32,
    /// Number of the last step that has ended.
    ended: AtomicU64,
    /// Slots of steps that have not ended, each with its table.
    changing: Mutex<Vec<(usize, usize)>>,
}

/// A prefix of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Place {
    table: usize,
    prefix: u64,
}

/// The members of a range in runs with a number.
#[derive(Debug, Clone)]
struct Kept<F> {
    number: u64,
    members: Arc<[F]>,
}

impl<F> Kept<F> {
    /// Returns the memory that it takes, with an eighth for sizes of allocations, in bytes.
    fn bytes(&self) -> usize {
        let members = size_of_val(&*self.members);
        members + members / 8 + BESIDE
    }
}

#[derive(Debug, Clone)]
struct Weight;

impl<F> Weighter<Place, Kept<F>> for Weight {
    fn weight(&self, _: &Place, kept: &Kept<F>) -> u64 {
        kept.bytes() as u64
    }
}

/// The slots of a table.
#[derive(Debug)]
struct Slots {
    prefix_bits: u32,
    numbers: Box<[AtomicU64]>,
}

impl Slots {
    fn of(table: &Table) -> Self {
        let prefix_bits = table.prefix_bits();
        let slots = 1 << prefix_bits.min(SLOT_BITS);
        Self { prefix_bits, numbers: (0..slots).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Returns the slot of a prefix.
    fn of_prefix(&self, prefix: u128) -> usize {
        let slot = prefix >> self.prefix_bits.saturating_sub(SLOT_BITS);
        usize::try_from(slot).expect("a slot has at most twelve bits")
    }
}

impl<F: Fingerprint> Ranges<F> {
    /// Without a cache of blocks to share its memory with, nothing is kept.
    pub(in crate::index) fn new(tables: &[Table], blocks: Option<BlockCache>) -> Self {
        let memory = blocks.as_ref().map_or(0, BlockCache::bytes) / SHARE;
        if let Some(blocks) = &blocks {
            // The ranges of the handle before may have taken some.
            blocks.leave(0);
        }
        Self {
            kept: Cache::with_weighter(memory / USUAL, memory as u64, Weight),
            blocks,
            taken: AtomicUsize::new(0),
            seen: (0..(memory / USUAL).next_power_of_two()).map(|_| AtomicU32::new(0)).collect(),
            tables: tables.iter().map(Slots::of).collect(),
            since: AtomicU32::new(STEADY),
            ended: AtomicU64::new(0),
            changing: Mutex::default(),
        }
    }

    /// Returns the number of runs in a snapshot that is taken after the call.
    pub(in crate::index) fn number(&self) -> u64 {
        self.ended.load(Ordering::Acquire)
    }

    /// Says that a pass over all tables begins, with this many entries.
    pub(in crate::index) fn begin_pass(&self, entries: usize) {
        if entries >= MANY {
            self.clear();
        }
    }

    /// Drops all ranges.
    pub(super) fn clear(&self) {
        self.kept.clear();
        self.taken.store(0, Ordering::Relaxed);
        if let Some(blocks) = &self.blocks {
            blocks.leave(0);
        }
    }

    /// Says that a step will change these entries, ascending, in the runs of a table.
    ///
    /// One step runs at a time. Call before its batch can be committed, and then
    /// [`Ranges::end_change`].
    pub(in crate::index) fn begin_change(&self, table: usize, entries: impl Iterator<Item = F>) {
        self.since.store(0, Ordering::Relaxed);
        let slots = &self.tables[table];
        let mut changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut before = None;
        for entry in entries {
            let slot = slots.of_prefix((entry >> (F::BITS - slots.prefix_bits)).widen());
            if before.replace(slot) != Some(slot) {
                slots.numbers[slot].store(CHANGING, Ordering::Release);
                changing.push((table, slot));
            }
        }
    }

    /// Says that the batches of all steps are committed, or that they never will be.
    pub(in crate::index) fn end_change(&self) {
        let mut changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        if changing.is_empty() {
            return;
        }
        let number = self.ended.fetch_add(1, Ordering::AcqRel) + 1;
        for (table, slot) in changing.drain(..) {
            self.tables[table].numbers[slot].store(number, Ordering::Release);
        }
    }

    /// Returns the ranges of runs with a number.
    pub(super) fn of_runs(&self, number: u64) -> OfRuns<'_, F> {
        OfRuns { ranges: self, number }
    }

    /// Returns the memory that they take, in bytes.
    pub(in crate::index) fn bytes(&self) -> u64 {
        self.kept.weight()
    }

    /// Returns the number of the last step that may have changed a range.
    fn changed(&self, table: usize, prefix: u128) -> u64 {
        let slots = &self.tables[table];
        slots.numbers[slots.of_prefix(prefix)].load(Ordering::Acquire)
    }

    /// Returns whether a range that was read is worth keeping.
    fn admits(&self, place: &Place) -> bool {
        if self.since.load(Ordering::Relaxed) < STEADY {
            self.since.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        if self.blocks.is_none() {
            return false;
        }
        let full = self.taken.load(Ordering::Relaxed) as u64 >= self.kept.capacity();
        // One that a merge has changed takes its own place.
        !full || self.kept.contains_key(place) || self.was_seen(place)
    }

    /// Marks a place. Returns whether it was the last one marked where its hash says.
    fn was_seen(&self, place: &Place) -> bool {
        let number = place.prefix << 8 ^ place.table as u64;
        let [a, b, c, d, mark @ ..] = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        let (at, mark) = (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes(mark));
        self.seen[at as usize & (self.seen.len() - 1)].swap(mark, Ordering::Relaxed) == mark
    }

    /// Counts bytes that were kept, and makes the cache of blocks give them up.
    fn take(&self, bytes: usize) {
        let before = self.taken.fetch_add(bytes, Ordering::Relaxed);
        if before / SETTLED != (before + bytes) / SETTLED
            && let Some(blocks) = &self.blocks
        {
            blocks.leave(usize::try_from(self.bytes()).unwrap_or(usize::MAX));
        }
    }
}

/// The ranges of runs with a number.
pub(super) struct OfRuns<'a, F> {
    ranges: &'a Ranges<F>,
    number: u64,
}

impl<F> Clone for OfRuns<'_, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F> Copy for OfRuns<'_, F> {}

impl<F: Fingerprint> OfRuns<'_, F> {
    /// Returns the members of a range, unordered, if they are kept.
    pub(super) fn get(self, table: usize, prefix: u128) -> Option<Arc<[F]>> {
        let kept = self.ranges.kept.get(&place(table, prefix)?)?;
        let same = self.ranges.changed(table, prefix) <= self.number.min(kept.number);
        same.then_some(kept.members)
    }

    /// Keeps the members of a range, which were read from these runs.
    pub(super) fn keep(self, table: usize, prefix: u128, members: &[F]) {
        let Self { ranges, number } = self;
        let Some(place) = place(table, prefix) else { return };
        if members.len() > MOST_MEMBERS
            || ranges.changed(table, prefix) > number
            || !ranges.admits(&place)
        {
            return;
        }
        let kept = Kept { number, members: members.into() };
        let bytes = kept.bytes();
        ranges.kept.insert(place, kept);
        ranges.take(bytes);
    }
}

/// Returns `None` for a prefix that is too long to be kept.
fn place(table: usize, prefix: u128) -> Option<Place> {
    Some(Place { table, prefix: u64::try_from(prefix).ok()? })
}
