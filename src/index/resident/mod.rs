//! Resident search: all fingerprints are in memory, and the store remains authoritative.
//!
//! Memory may hold more than a snapshot, but never less: before a commit, a write marks its
//! fingerprints, added and removed ones, as dirty. Fingerprints that are dirty since loading are
//! looked up in the snapshot. All others are in every snapshot.
#![expect(
    clippy::indexing_slicing,
    reason = "queries are numbered here; one that slips must panic, not lose matches"
)]

mod saved;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::{Index, Reader};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::index::read::deltas::Deltas;
use crate::index::read::entries::Entries;
use crate::index::read::postings::each_document;
use crate::index::read::search::Found;
use crate::kernel;
use crate::plan::{Costs, Plan};
use crate::resident::{Account, NearFingerprint, ResidentTables};
use crate::store::{Snapshot, View};

/// Up to this many dirty fingerprints are compared one by one, without tables.
const RECENT: usize = 1024;

/// Tables are merged when this many have about the same size.
pub(super) const MERGED: usize = 4;

/// One state of the memory, shared by readers and replaced by writes.
#[derive(Debug, Clone)]
pub(super) struct Resident<F> {
    /// All fingerprints at the time of loading.
    base: Arc<ResidentTables<F>>,
    /// Tables of dirty fingerprints, older and larger ones first.
    dirty: Vec<Arc<ResidentTables<F>>>,
    /// Dirty fingerprints without tables, by batch.
    waiting: Vec<Arc<Vec<F>>>,
    /// The latest dirty fingerprints.
    recent: Vec<F>,
    /// Memory budget in bytes.
    budget: usize,
    costs: Costs,
}

/// The answer of the memory to one query.
#[derive(Debug)]
pub(super) struct Held<F> {
    /// Sorted like search results. Dirty ones may not be in the snapshot.
    pub(super) found: Vec<Found<F>>,
    /// The dirty ones among them, ascending.
    pub(super) dirty: Vec<F>,
}

impl<F> Default for Held<F> {
    fn default() -> Self {
        Self { found: Vec::new(), dirty: Vec::new() }
    }
}

impl<F: Fingerprint> Resident<F> {
    /// Reads a snapshot into memory. Returns `None` if it exceeds the budget.
    ///
    /// Uses fewer tables if the budget is small, which costs time but no match.
    pub(super) fn load(
        snapshot: &Snapshot,
        plan: &Plan,
        budget: usize,
        costs: Costs,
    ) -> Result<Option<Self>> {
        let Some(members) = members(snapshot, plan, budget)? else { return Ok(None) };
        let base = ResidentTables::of_distinct_within(&members, budget, costs)?;
        Ok(base.map(|base| Self::of(base, budget, costs)))
    }

    /// Begins with tables that hold everything of a snapshot.
    fn of(base: ResidentTables<F>, budget: usize, costs: Costs) -> Self {
        let (dirty, waiting, recent) = Default::default();
        Self { base: Arc::new(base), dirty, waiting, recent, budget, costs }
    }

    /// Returns the state after a write, or `None` if it exceeds the budget.
    ///
    /// Builds no tables, so a write may call it under its lock.
    pub(super) fn mark_dirty(&self, fingerprints: &Arc<Vec<F>>) -> Option<Self> {
        let mut next = self.clone();
        if fingerprints.len() > RECENT / 4 {
            next.waiting.push(Arc::clone(fingerprints));
        } else {
            next.recent.extend_from_slice(fingerprints);
            if next.recent.len() > RECENT {
                next.waiting.push(Arc::new(std::mem::take(&mut next.recent)));
            }
        }
        (next.bytes() <= next.budget).then_some(next)
    }

    /// Returns true if enough fingerprints are dirty to build tables for them.
    pub(super) fn wants_merging(&self) -> bool {
        self.waiting.iter().map(|some| some.len()).sum::<usize>() > RECENT
    }

    /// Builds tables for the dirty fingerprints that have none, and merges tables of equal size.
    ///
    /// Takes long and uses all threads.
    pub(super) fn merged(&self) -> Result<Vec<Arc<ResidentTables<F>>>> {
        let waiting = self.waiting.iter().flat_map(|some| some.iter().copied());
        layered(self.dirty.clone(), waiting.collect(), usize::MAX, self.costs)
    }

    /// Returns true if only writes, no merge or load, lie between an earlier state and this one.
    pub(super) fn continues(&self, before: &Self) -> bool {
        let tables = |state: &Self| state.dirty.last().map(Arc::as_ptr);
        Arc::ptr_eq(&self.base, &before.base) && tables(self) == tables(before)
    }

    /// Replaces the tables of an earlier state by merged ones. `None` if they exceed the budget.
    pub(super) fn with_merged(
        &self,
        before: &Self,
        dirty: Vec<Arc<ResidentTables<F>>>,
    ) -> Option<Self> {
        let mut next = Self { dirty, ..self.clone() };
        next.waiting.drain(..before.waiting.len());
        (next.bytes() <= next.budget).then_some(next)
    }

    /// Returns the memory in use, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let dirty: usize = self.dirty.iter().map(|tables| tables.bytes()).sum();
        let bare: usize = self.bare().map(<[F]>::len).sum();
        self.base.bytes() + dirty + bare * F::BYTES
    }

    /// Returns how many of these bytes are in a mapped file.
    pub(super) fn shared_bytes(&self) -> usize {
        if self.base.is_mapped() { self.base.bytes() } else { 0 }
    }

    /// Returns the dirty fingerprints without tables.
    fn bare(&self) -> impl Iterator<Item = &[F]> {
        let waiting = self.waiting.iter().map(|some| some.as_slice());
        waiting.chain(std::iter::once(self.recent.as_slice()))
    }

    /// Finds the fingerprints in memory within the distance of each query.
    pub(super) fn find(&self, queries: &[F], distance: u32) -> Result<Vec<Held<F>>> {
        let mut held: Vec<Held<F>> = Vec::new();
        held.resize_with(queries.len(), Held::default);
        let mut any_dirty = false;
        for tables in &self.dirty {
            tables.sweep(queries, distance, |hit| {
                any_dirty = true;
                held[hit.query].found.push((hit.distance, hit.fingerprint));
            })?;
        }
        for (query, held) in queries.iter().zip(&mut held) {
            for some in self.bare() {
                kernel::within(some, *query, distance, &mut |at, apart| {
                    any_dirty = true;
                    held.found.push((apart, some[at]));
                });
            }
        }
        if any_dirty {
            for held in &mut held {
                held.dirty = held.found.iter().map(|(_, fingerprint)| *fingerprint).collect();
                held.dirty.sort_unstable();
            }
        }
        self.base.sweep(queries, distance, |hit| {
            held[hit.query].found.push((hit.distance, hit.fingerprint));
        })?;
        for held in held.iter_mut().filter(|held| held.found.len() > 1) {
            held.found.sort_unstable();
            held.found.dedup();
        }
        Ok(held)
    }

    /// Like [`Resident::find`] for one query, without the list of dirty ones.
    pub(super) fn find_one(&self, query: F, distance: u32) -> Result<Vec<Found<F>>> {
        let held = self.find(std::slice::from_ref(&query), distance)?;
        let held = held.into_iter().next();
        Ok(held.expect("an answer for each query").found)
    }

    /// Returns the tables if nothing is dirty since loading.
    pub(super) fn clean(&self) -> Option<&ResidentTables<F>> {
        let dirty = !self.dirty.is_empty() || self.bare().any(|some| !some.is_empty());
        (!dirty).then_some(&*self.base)
    }

    /// Returns what a search of the loaded fingerprints reads.
    pub(super) fn account(&self, query: F, distance: u32) -> Account {
        self.base.account(query, distance)
    }
}

/// Reads all fingerprints of a snapshot. Returns `None` if tables of them exceed the budget.
fn members<F: Fingerprint>(
    snapshot: &Snapshot,
    plan: &Plan,
    budget: usize,
) -> Result<Option<Vec<F>>> {
    let mut members: Vec<F> = Vec::new();
    let Some(table) = plan.tables().first() else { return Ok(Some(members)) };
    let deltas = Deltas::of_first(snapshot, plan.tables())?;
    let mut entries = Entries::new(snapshot, 0, &deltas)?;
    loop {
        let taken = members.len();
        entries.take(&mut members, taken + (1 << 20))?;
        if members.len() == taken {
            break;
        }
        if !ResidentTables::<F>::could_fit(members.len(), budget) {
            return Ok(None);
        }
    }
    table.permutation().invert_all(&mut members);
    Ok(Some(members))
}

/// Drops fingerprints that have no document in the view.
pub(super) fn only_stored<F: Fingerprint>(
    view: &mut View,
    held: Held<F>,
) -> Result<Vec<NearFingerprint<F>>> {
    let mut near = Vec::with_capacity(held.found.len());
    for (distance, fingerprint) in held.found {
        let mut stored = held.dirty.binary_search(&fingerprint).is_err();
        if !stored {
            each_document(view.postings(), None, fingerprint, |_| {
                stored = true;
                false
            })?;
        }
        if stored {
            near.push(NearFingerprint { distance, fingerprint });
        }
    }
    Ok(near)
}

/// Adds tables for more fingerprints, and merges tables of about equal size up to `largest`.
///
/// Takes long and uses all threads.
pub(super) fn layered<F: Fingerprint>(
    mut layers: Vec<Arc<ResidentTables<F>>>,
    more: Vec<F>,
    largest: usize,
    costs: Costs,
) -> Result<Vec<Arc<ResidentTables<F>>>> {
    let tables = |mut members: Vec<F>| {
        members.sort_unstable();
        members.dedup();
        let most = ResidentTables::<F>::MOST_TABLES;
        ResidentTables::of_distinct(&members, most, costs).map(Arc::new)
    };
    layers.push(tables(more)?);
    while let Some(alike) = alike(&layers) {
        if layers[alike..].iter().map(|tables| tables.len()).sum::<usize>() > largest {
            break;
        }
        let members = layers.drain(alike..).flat_map(|tables| tables.members()).collect();
        layers.push(tables(members)?);
    }
    Ok(layers)
}

/// Returns where the last tables of about equal size begin, if they are numerous enough.
fn alike<F: Fingerprint>(layers: &[Arc<ResidentTables<F>>]) -> Option<usize> {
    let first = layers.len().checked_sub(MERGED)?;
    let last = layers.last()?.len();
    let alike = layers[first].len() < last * MERGED;
    alike.then_some(first)
}

impl<F: Fingerprint> Index<F> {
    /// Loads all fingerprints into memory for searches, within a budget in bytes.
    ///
    /// Takes 24 bytes per distinct 64-bit fingerprint, down to half of that if the budget is small,
    /// and a third more while loading. Reads the first table once and uses all threads of rayon's
    /// current pool, unless [`save_resident`](Self::save_resident) has saved the present state:
    /// then it maps the file. Writers and searches continue; inserts and removals through this
    /// handle show at once.
    ///
    /// Returns whether the fingerprints fit. If they do not, or if later inserts exceed the budget,
    /// searches read the store as before. Another call loads again, which speeds up searches after
    /// many inserts. [`IndexOptions::resident`](crate::IndexOptions::resident) loads when opening.
    ///
    /// ```
    /// use hamdex::{Index, IndexOptions, Query, SearchPath};
    ///
    /// # let directory = tempfile::tempdir().unwrap();
    /// let index = Index::<u64>::create(directory.path(), &IndexOptions::new())?;
    /// index.insert(b"page", 0xff)?;
    /// assert!(index.load_resident(64 << 20)?);
    /// index.insert(b"copy", 0xfe)?;
    /// let near = index.search(Query::new(0xff).path(SearchPath::Resident))?;
    /// assert_eq!(near.len(), 2);
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error on damage, also of the saved file, or a failure of the store, and
    /// [`InvalidOption`](crate::Error::InvalidOption) for 2^32 or more fingerprints.
    pub fn load_resident(&self, budget: usize) -> Result<bool> {
        let core = &self.shared.core;
        let watch = self.shared.committer.watch()?;
        let loaded = match self.saved_resident(&watch.reader, budget)? {
            Some(saved) => Some(saved),
            None => Resident::load(watch.reader.snapshot(), &core.plan, budget, core.costs)?,
        };
        self.shared.committer.install(watch, loaded);
        Ok(self.shared.committer.resident().is_some())
    }

    /// Returns the memory of resident fingerprints in bytes, or `None` if none are loaded.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
    /// assert_eq!(index.resident_bytes(), None);
    /// index.load_resident(64 << 20)?;
    /// assert!(index.resident_bytes().is_some());
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn resident_bytes(&self) -> Option<usize> {
        self.shared.committer.resident().map(|resident| resident.bytes())
    }
}

impl<F: Fingerprint> Reader<F> {
    /// Returns true if searches of this reader use memory.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let index = hamdex::Index::<u64>::create(directory.path(), &hamdex::IndexOptions::new())?;
    /// assert!(!index.reader()?.is_resident());
    /// index.load_resident(64 << 20)?;
    /// assert!(index.reader()?.is_resident());
    /// # Ok::<(), hamdex::Error>(())
    /// ```
    pub fn is_resident(&self) -> bool {
        self.resident().is_some()
    }
}
