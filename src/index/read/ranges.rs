//! Ranges in memory: what searches have read of tables and packs, until a merge changes it.
//!
//! A seek takes some microseconds even if all blocks are in memory, and the members of a range take less
//! than a block. So a search keeps each range that it reads, and the next one that needs it needs no
//! cursor. What ranges take, the cache of blocks gives up. Once their memory is full, a range takes the
//! place of another one only if it is read twice within a while, because keeping a range costs a third of
//! reading it. While a merge is at work nothing is kept: it would soon change, and the blocks that would
//! have to go are read by writers too.
//!
//! Only merges change which fingerprints the runs hold, and only repackings which postings the packs
//! hold. So [numbers] of their steps show whether a range is still what it was.

mod numbers;
mod packs;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32};

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use self::numbers::{Numbers, SLOT_BITS};
pub(in crate::index) use self::packs::OfPacks;
use self::packs::Posting;
use crate::fingerprint::Fingerprint;
use crate::plan::Table;
use crate::store::{BlockCache, Family};
use crate::sync::atomic::{AtomicUsize, Ordering};

/// Most members of a range that is kept. Reading more takes much longer than finding them.
pub(super) const MOST_MEMBERS: usize = 4096;

/// Entries of a pass that change a quarter of all slots or more. What is kept would soon be of no use,
/// and take memory until then.
const MANY: usize = 1 << (SLOT_BITS - 2);

/// Bytes that a range takes beside its members: its place, and what holds it.
const BESIDE: usize = 128;

/// Share of the memory of the cache of blocks, as one in this many.
const SHARE: usize = 2;

/// Bytes of a range that is not large.
const USUAL: usize = 1 << 10;

/// Bytes of new ranges after which the cache of blocks gives up what they take.
const SETTLED: usize = 1 << 20;

/// Share of their memory that ranges may leave unused when it is full, as one in this many: each part
/// of it fills by itself.
const UNEVEN: u64 = 128;

/// Ranges of all tables, and of the packs of postings.
#[derive(Debug)]
pub(in crate::index) struct Ranges<F> {
    kept: Cache<Place, Kept<F>, Weight>,
    blocks: Option<BlockCache>,
    /// Bytes that were kept since the cache of blocks gave up what they take.
    unsettled: AtomicUsize,
    is_full: AtomicBool,
    /// Marks of places that were read and not kept, each where its hash says.
    seen: Box<[AtomicU32]>,
    /// Steps of merges, which change the runs of tables.
    runs: Numbers,
    /// Steps of repackings, which change the packs of postings.
    packs: Numbers,
}

/// The numbers of a snapshot that is taken after they are read.
#[derive(Debug, Clone, Copy)]
pub(in crate::index) struct Moment {
    pub(super) runs: u64,
    pub(super) packs: u64,
}

/// A prefix of a table, or of the fingerprints of packed postings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Place {
    family: Family,
    prefix: u64,
}

/// The members of a range in snapshots with a number.
#[derive(Debug, Clone)]
struct Kept<F> {
    number: u64,
    members: Members<F>,
}

#[derive(Debug, Clone)]
enum Members<F> {
    OfTable(Arc<[F]>),
    OfPacks(Arc<[Posting<F>]>),
    /// More postings than are kept.
    Many,
}

impl<F> Kept<F> {
    /// Returns the memory that it takes, with an eighth for sizes of allocations, in bytes.
    fn bytes(&self) -> usize {
        let members = match &self.members {
            Members::OfTable(members) => size_of_val(&**members),
            Members::OfPacks(members) => size_of_val(&**members),
            Members::Many => 0,
        };
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

impl<F: Fingerprint> Ranges<F> {
    /// Without a cache of blocks to share its memory with, nothing is kept.
    ///
    /// `documents` are those of the index, roughly.
    pub(in crate::index) fn new(
        tables: &[Table],
        blocks: Option<BlockCache>,
        documents: u64,
    ) -> Self {
        let memory = blocks.as_ref().map_or(0, BlockCache::bytes) / SHARE;
        if let Some(blocks) = &blocks {
            // The ranges of the handle before may have taken some.
            blocks.leave(0);
        }
        let least = tables.first().map_or(1, Table::prefix_bits);
        let of_packs = packs::prefix_bits::<F>(least, documents);
        Self {
            kept: Cache::with_weighter(memory / USUAL, memory as u64, Weight),
            blocks,
            unsettled: AtomicUsize::new(0),
            is_full: AtomicBool::new(false),
            seen: (0..(memory / USUAL).next_power_of_two()).map(|_| AtomicU32::new(0)).collect(),
            runs: Numbers::new(tables.iter().map(Table::prefix_bits)),
            packs: Numbers::new([of_packs].into_iter()),
        }
    }

    /// Returns the numbers of a snapshot that is taken after the call.
    pub(in crate::index) fn moment(&self) -> Moment {
        Moment { runs: self.runs.number(), packs: self.packs.number() }
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
        self.settle();
    }

    /// Says that a step will change these entries, ascending, in the runs of a table.
    ///
    /// One step runs at a time. Call before its batch can be committed, and then
    /// [`Ranges::end_change`].
    pub(in crate::index) fn begin_change(&self, table: usize, entries: impl Iterator<Item = F>) {
        let shift = F::BITS - self.runs.prefix_bits(table);
        let prefixes = entries.map(|entry| (entry >> shift).widen());
        self.runs.begin(table, prefixes.map(|prefix| (prefix, prefix)));
    }

    /// Says that the batches of all steps are committed, or that they never will be.
    pub(in crate::index) fn end_change(&self) {
        self.runs.end();
    }

    /// Returns the ranges of runs with a number.
    pub(super) fn of_runs(&self, number: u64) -> OfRuns<'_, F> {
        OfRuns { ranges: self, number }
    }

    /// Returns the memory that they take, in bytes.
    pub(in crate::index) fn bytes(&self) -> u64 {
        self.kept.weight()
    }

    /// Returns whether a range that is read is worth keeping.
    ///
    /// `steady` is false while steps change what it is of, or have just done so.
    fn admits(&self, place: &Place, steady: bool) -> bool {
        if !steady || self.blocks.is_none() {
            return false;
        }
        // One that a step has changed takes its own place.
        !self.is_full.load(Ordering::Relaxed)
            || self.kept.contains_key(place)
            || self.was_seen(place)
    }

    /// Marks a place. Returns whether it was the last one marked where its hash says.
    fn was_seen(&self, place: &Place) -> bool {
        let family = match place.family {
            Family::Table(table) => table as u64 + 1,
            Family::Meta
            | Family::Docs
            | Family::Postings
            | Family::DocPacks
            | Family::PostingPacks => 0,
        };
        let number = place.prefix << 8 ^ family;
        let [a, b, c, d, mark @ ..] = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        let (at, mark) = (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes(mark));
        let at = at as usize & (self.seen.len() - 1);
        self.seen.get(at).is_some_and(|last| last.swap(mark, Ordering::Relaxed) == mark)
    }

    fn keep(&self, place: Place, kept: Kept<F>) {
        let bytes = kept.bytes();
        self.kept.insert(place, kept);
        if self.unsettled.fetch_add(bytes, Ordering::Relaxed) + bytes >= SETTLED {
            self.settle();
        }
    }

    /// Makes the cache of blocks give up what ranges take.
    fn settle(&self) {
        self.unsettled.store(0, Ordering::Relaxed);
        let (bytes, most) = (self.bytes(), self.kept.capacity());
        self.is_full.store(bytes >= most - most / UNEVEN, Ordering::Relaxed);
        if let Some(blocks) = &self.blocks {
            blocks.leave(usize::try_from(bytes).unwrap_or(usize::MAX));
        }
    }
}

/// The ranges of runs with a number.
#[derive(Clone, Copy)]
pub(super) struct OfRuns<'a, F> {
    ranges: &'a Ranges<F>,
    number: u64,
}

impl<F: Fingerprint> OfRuns<'_, F> {
    /// Returns the members of a range, unordered, if they are kept.
    pub(super) fn get(self, table: usize, prefix: u128) -> Option<Arc<[F]>> {
        let Self { ranges, number } = self;
        let kept = ranges.kept.get(&place(table, prefix)?)?;
        let same = ranges.runs.changed(table, prefix) <= number.min(kept.number);
        match kept.members {
            Members::OfTable(members) if same => Some(members),
            Members::OfTable(_) | Members::OfPacks(_) | Members::Many => None,
        }
    }

    /// Keeps the members of a range, which were read from these runs.
    pub(super) fn keep(self, table: usize, prefix: u128, members: &[F]) {
        let Self { ranges, number } = self;
        let Some(place) = place(table, prefix) else { return };
        if members.len() > MOST_MEMBERS
            || ranges.runs.changed(table, prefix) > number
            || !ranges.admits(&place, ranges.runs.are_steady())
        {
            return;
        }
        ranges.keep(place, Kept { number, members: Members::OfTable(members.into()) });
    }
}

/// Returns `None` for a prefix that is too long to be kept.
fn place(table: usize, prefix: u128) -> Option<Place> {
    Some(Place { family: Family::Table(table), prefix: u64::try_from(prefix).ok()? })
}
