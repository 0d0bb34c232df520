//! Repacking: packs what was inserted, and frees the space of packed documents that were removed.
//!
//! What packs take in and lose is decided by one snapshot, which is read without the writer lock.
//! Under the lock, a step reads nothing and rewrites a few packs in one batch. Later writes override
//! them, whether or not these still hold the document.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{PoisonError, TryLockError};
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::fail_point::fail_point;
use crate::fingerprint::Fingerprint;
use crate::index::Shared;
use crate::index::committer::Named;
use crate::store::{Batch, Family, Obsolete, Repacking};
use crate::sync::MutexGuard;

/// Postings come first: one that is packed must belong to a packed document.
const FAMILIES: [Family; 2] = [Family::Postings, Family::Docs];

/// A repacking in steps.
///
/// Packs the documents that were inserted before it began, and the postings of those that an earlier
/// one packed.
pub(in crate::index) struct Packing {
    began: Instant,
    stages: VecDeque<Stage>,
    /// Entries that packs cannot hold, of the documents in the end.
    unpacked: u64,
    /// Whether any step has changed anything.
    has_moved: bool,
}

impl fmt::Debug for Packing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packing").field("began", &self.began).finish_non_exhaustive()
    }
}

/// The repacking at work. Whoever holds this is the only one that changes packs.
///
/// Another repacking replaces it: its snapshot is no longer needed, and would keep what is removed.
pub(in crate::index) type Repacks<'a> = MutexGuard<'a, Option<Packing>>;

/// What a step of a repacking did.
pub(in crate::index) enum Packed {
    Some,
    All {
        took: Duration,
        /// Documents that are left beside the packs, because these cannot hold them.
        unpacked: u64,
    },
}

/// What is left to do, in this order. In an index without packs, nothing.
enum Stage {
    /// Take what the overlay says into packs.
    Pack(Repacking),
    /// Write the packs to files. A repair without the list of files reads no packs from logs.
    Flush,
    /// Delete what the overlay then says needlessly.
    Clear(Obsolete),
}

impl<F: Fingerprint> Shared<F> {
    /// Packs whatever can be packed.
    pub(in crate::index) fn repack(&self) -> Result<()> {
        let mut repacks = self.repacking.lock().unwrap_or_else(PoisonError::into_inner);
        // The second one packs the postings of the documents that the first one packed.
        for _ in 0..2 {
            self.begin_packing(&mut repacks)?;
            while self.pack_step(&mut repacks, &mut || ())?.is_some() {}
        }
        Ok(())
    }

    /// Does `body` unless another thread changes packs.
    pub(in crate::index) fn unless_repacked<R>(
        &self,
        body: impl FnOnce(&mut Repacks<'_>) -> Result<R>,
    ) -> Result<Option<R>> {
        match self.repacking.try_lock() {
            Ok(mut repacks) => body(&mut repacks).map(Some),
            Err(TryLockError::Poisoned(poisoned)) => body(&mut poisoned.into_inner()).map(Some),
            Err(TryLockError::WouldBlock) => Ok(None),
        }
    }

    /// Begins a repacking in place of the one at work.
    pub(in crate::index) fn begin_packing(&self, repacks: &mut Repacks<'_>) -> Result<()> {
        **repacks = None;
        // Entries of a batch in flight are counted, and no snapshot has them yet.
        let turn = self.committer.turn_alone();
        let snapshot = self.store.snapshot();
        drop(turn);
        let mut stages = VecDeque::new();
        for family in FAMILIES {
            stages.extend(snapshot.repacking(family)?.map(Stage::Pack));
        }
        if !stages.is_empty() {
            stages.push_back(Stage::Flush);
            stages.extend(FAMILIES.map(|family| Stage::Clear(Obsolete::of(family))));
        }
        **repacks = Some(Packing { began: Instant::now(), stages, unpacked: 0, has_moved: false });
        Ok(())
    }

    /// Runs a step of the repacking at work; `None` if there is none.
    ///
    /// One that fails is given up. `between` is called after the step was read and before it is
    /// committed.
    pub(in crate::index) fn pack_step(
        &self,
        repacks: &mut Repacks<'_>,
        between: &mut dyn FnMut(),
    ) -> Result<Option<Packed>> {
        let Some(mut packing) = repacks.take() else { return Ok(None) };
        let Packing { began, stages, unpacked, has_moved } = &mut packing;
        let Some(stage) = stages.front_mut() else {
            // One that found nothing would find nothing again: RocksDB counts replaced entries twice.
            let unpacked = if *has_moved { *unpacked } else { self.store.entries_over_packs()? };
            return Ok(Some(Packed::All { took: began.elapsed(), unpacked }));
        };
        let is_done = match stage {
            Stage::Pack(packs) => match packs.next()? {
                None => {
                    *unpacked = packs.unpacked();
                    true
                }
                Some(portion) if portion.is_empty() => false,
                Some(mut portion) => {
                    let named = self.committer.named();
                    portion.read(&self.store)?;
                    between();
                    self.committer.begin_repacked(portion.changed());
                    let moved =
                        self.move_entries(named, |batch, is_named| portion.stage(batch, is_named));
                    self.committer.end_repacked();
                    moved?;
                    *has_moved = true;
                    false
                }
            },
            Stage::Flush => {
                self.store.flush()?;
                fail_point!("repack.flushed");
                // The snapshot of readers keeps what has left the packs.
                self.committer.withdraw_runs();
                true
            }
            Stage::Clear(obsolete) => {
                let named = self.committer.named();
                match obsolete.next(&self.store)? {
                    None => true,
                    Some(entries) if entries.is_empty() => false,
                    Some(entries) => {
                        between();
                        self.move_entries(named, |batch, is_named| entries.stage(batch, is_named))?;
                        *has_moved = true;
                        false
                    }
                }
            }
        };
        if is_done {
            stages.pop_front();
        }
        **repacks = Some(packing);
        Ok(Some(Packed::Some))
    }

    /// Commits a batch that is staged while nothing is in flight.
    ///
    /// `stage` gets a test for documents that batches have named since it read them.
    fn move_entries(
        &self,
        mut named: Named<'_, F>,
        stage: impl FnOnce(&mut Batch<'_>, &dyn Fn(&[u8]) -> bool) -> Result<()>,
    ) -> Result<()> {
        // Most of them are read before the turn, which then reads the latest.
        named.update();
        let turn = self.committer.turn_alone();
        named.update();
        let mut batch = self.store.batch()?;
        stage(&mut batch, &|key| named.holds(key))?;
        turn.move_entries(batch)
    }
}

#[cfg(test)]
mod tests;
